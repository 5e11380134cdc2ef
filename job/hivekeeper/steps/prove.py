"""Compare a backup's files with live ones by content: row counts, digests, or row by row. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import Differences, Digest, FileInfo, FooterGroup
from hivekeeper.plan.proof import Link, Proof
from hivekeeper.seams import Rows

COUNT, DIGEST, ROWS = "count", "digest", "rows"
LEVELS = (COUNT, DIGEST, ROWS)
MOST_EXAMPLES = 10

Key = Tuple[str, int, str]


@dataclass(frozen=True)
class Compared:
    """What a comparison found for one unit: `why` is empty where live holds what the backup holds. `rows` are the backup's.

    `is_replaced`: the backup is gone and live has other files since, so there is nothing to compare but numbers of rows.
    """

    why: str
    rows: Optional[int] = None
    note: str = ""
    is_replaced: bool = False
    differences: Optional[Differences] = None


@dataclass(frozen=True)
class Measured:
    """What some files hold; `digest` has only its number of rows where just those were asked for."""

    digest: Digest
    groups: Tuple[FooterGroup, ...]
    unreadable: str = ""


class Prover:
    """Compares by one level. Everything is read in few calls, whatever the number of units."""

    def __init__(self, rows: Rows, format: str, level: str) -> None:
        self._rows = rows
        self._format = format
        self._level = level

    def compare(self, proofs: Mapping[str, Proof]) -> Mapping[str, Compared]:
        wanted: Dict[Key, Sequence[FileInfo]] = {}
        for name, proof in proofs.items():
            wanted.update(_wanted(name, proof))
        measured = self._measure(wanted)
        return {name: self._judge(name, proof, measured) for name, proof in proofs.items()}

    def _measure(self, wanted: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, Measured]:
        keys = list(wanted)
        footers = self._rows.footers(self._format, {str(index): wanted[key] for index, key in enumerate(keys)})
        groups = [(index, group) for index in range(len(keys)) for group in footers[str(index)].groups]
        digests: Mapping[int, Digest] = {}
        if self._level != COUNT:
            digests = self._rows.digests(self._format, {number: group for number, (_, group) in enumerate(groups)})
        parts: Dict[int, List[Digest]] = {}
        for number, (index, group) in enumerate(groups):
            parts.setdefault(index, []).append(digests[number] if digests else Digest(group.row_count, 0, 0))
        return {
            key: Measured(add_digests(parts.get(index, ())), footers[str(index)].groups, _unreadable(footers[str(index)].unreadable))
            for index, key in enumerate(keys)
        }

    def _judge(self, name: str, proof: Proof, measured: Mapping[Key, Measured]) -> Compared:
        unreadable = [found.unreadable for key, found in measured.items() if key[0] == name and found.unreadable]
        if unreadable:
            return Compared(unreadable[0])
        base = measured.get((name, 0, "base"))
        if self._level == ROWS and base is not None and proof.has_all_rows:
            return self._judge_rows(name, proof, base, measured)
        rows = base.digest.rows if base else None
        if proof.broken:
            return self._judge_replaced(proof, base, measured[(name, 0, "live")])
        for index, link in enumerate(proof.links):
            why = self._judge_link(link, measured.get((name, index, "before")), measured.get((name, index, "after")))
            if why:
                return Compared(why, rows)
        return Compared("", rows if rows is not None else _certified_rows(proof))

    def _judge_replaced(self, proof: Proof, base: Optional[Measured], live: Measured) -> Compared:
        """All of live against the backup, or against what the run's certificate says of it."""
        certified = self._at_level(proof.certified) if proof.certified and proof.is_discarded else None
        wanted = base.digest if base else certified
        rows = wanted.rows if wanted else None
        if wanted is not None and wanted == live.digest:
            return Compared("", rows, f"{proof.broken}; its rows are {'as many' if self._level == COUNT else 'the same'}")
        is_replaced = base is None and certified is not None and live.digest.rows >= certified.rows
        return Compared(proof.broken, rows, is_replaced=is_replaced)

    def _judge_link(self, link: Link, before: Optional[Measured], after: Optional[Measured]) -> str:
        """Both sides against each other, and against the run's certificate where there is one; what is gone is left out."""
        said = [self._at_level(link.effect.digest)] if link.effect.digest else []
        claims = [*said, *(side.digest for side in (before, after) if side)]
        wrong = [claim for claim in claims if claim != claims[-1]]
        if not wrong:
            return ""
        if wrong[0].rows != claims[-1].rows:
            return f"{wrong[0].rows} rows before run {link.effect.run}, {claims[-1].rows} after it"
        return f"the same number of rows before and after run {link.effect.run}, but not the same rows (digests differ)"

    def _at_level(self, digest: Digest) -> Digest:
        return digest if self._level != COUNT else Digest(digest.rows, 0, 0)

    def _judge_rows(self, name: str, proof: Proof, base: Measured, measured: Mapping[Key, Measured]) -> Compared:
        """Row by row; arrivals that were compacted since are rows of the backup's side."""
        since = measured[(name, 0, "arrivals")].groups
        newer = measured[(name, 0, "live" if proof.broken else "newest")].groups
        found = self._rows.differences(self._format, [*base.groups, *since], newer, MOST_EXAMPLES)
        missing, extra = found.only_in_one, 0 if proof.broken else found.only_in_other
        if missing or extra:
            why = f"{missing} rows are only in the backup, {found.only_in_other} only in live"
            return Compared(f"{proof.broken}; {why}" if proof.broken else why, base.digest.rows, differences=found)
        return Compared("", base.digest.rows, f"{proof.broken}; its rows are the same" if proof.broken else "")


def _wanted(name: str, proof: Proof) -> Dict[Key, Sequence[FileInfo]]:
    wanted: Dict[Key, Sequence[FileInfo]] = {(name, 0, "arrivals"): proof.compacted_arrivals}
    if proof.base is not None:
        wanted[(name, 0, "base")] = proof.base
    if proof.broken:
        wanted[(name, 0, "live")] = proof.live
        return wanted
    wanted[(name, 0, "newest")] = proof.newest
    for index, link in enumerate(proof.links):
        if link.after is not None:
            wanted[(name, index, "after")] = link.after
        if link.before is not None:
            wanted[(name, index, "before")] = link.before
    return wanted


def _certified_rows(proof: Proof) -> Optional[int]:
    digest = proof.links[0].effect.digest if proof.links else None
    return digest.rows if digest else None


def _unreadable(found: Sequence[Tuple[str, str]]) -> str:
    return f"{found[0][0]} cannot be read ({found[0][1]})" if found else ""


def add_digests(digests: Iterable[Digest]) -> Digest:
    """The digest of all rows together: sums add up."""
    parts = list(digests)
    return Digest(sum(part.rows for part in parts), sum(part.high for part in parts), sum(part.low for part in parts))
