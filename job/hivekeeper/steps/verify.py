"""Compare a backup's files with live ones by content: row counts, digests, or row by row. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Collection, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from hivekeeper.model import Content, Differences, Digest, FileInfo, FooterGroup, UnitFooters
from hivekeeper.plan.chain import Link
from hivekeeper.plan.fidelity import refuse_as_rows
from hivekeeper.plan.verify import Proof, add_digests, first_sets
from hivekeeper.ports import Rows
from hivekeeper.reasons import Code, Reason

COUNT, DIGEST, ROWS = "count", "digest", "rows"
MOST_EXAMPLES = 10
# Of the examples of all units of a table, in characters: a value may have a million.
MOST_OF_EXAMPLES = 2**22

Files = Tuple[FileInfo, ...]


@dataclass(frozen=True)
class Compared:
    """The comparison of one unit: `why` is None if live holds what the backup holds. `rows` are the backup's.

    `is_replaced`: the backup is gone and live now has other files, so only row counts can be compared.
    """

    why: Optional[Reason]
    rows: Optional[int] = None
    note: Optional[Reason] = None
    is_replaced: bool = False
    differences: Optional[Differences] = None


@dataclass(frozen=True)
class Measured:
    """What some files hold; `digest` has only a row count if no more was requested."""

    digest: Digest
    groups: Tuple[FooterGroup, ...]
    unreadable: str = ""

    @property
    def meanings(self) -> FrozenSet[Tuple[str, str, str, str, Tuple[str, ...]]]:
        """How readers understand the values, which a digest of stored values does not tell."""
        forms = [group.form for group in self.groups if group.row_count]
        return frozenset((form.schema, form.writer, form.calendar, form.zone, form.keys) for form in forms)


class Prover:
    """Compares at one level. Everything is read in a few calls, whatever the number of units, and no set of files twice."""

    def __init__(self, rows: Rows, format: str, level: str) -> None:
        self._rows = rows
        self._format = format
        self._level = level
        self._left = MOST_OF_EXAMPLES

    def compare(self, proofs: Mapping[str, Proof]) -> Mapping[str, Compared]:
        if proofs and self._level != COUNT:
            # Spark starts while footers are read, where any are needed.
            self._rows.warm_up()
        # By rows, too: Spark's own readers would read a value of megabytes that a few bytes repeat for weeks. Ours knows bounds.
        digested = {files for proof in proofs.values() if self._level != COUNT for files in self._read_whole(proof)}
        # Whoever digests a file reads its footer, too. What its values mean is asked only where other files than a run's are compared.
        counted = {files for proof in proofs.values() for files in self._sets(proof) if self._needs_forms(proof) or files not in digested}
        measured = self._measure(list(counted), digested)
        return {name: self._judge(proof, measured) for name, proof in proofs.items()}

    def _take_examples(self, found: Differences) -> Differences:
        """With its examples as long as there is room for them."""
        characters = sum(len(value or "") for row in found.examples for value in row.values())
        if characters > self._left:
            return found.without_examples()
        self._left -= characters
        return found

    def _by_rows(self, proof: Proof) -> bool:
        return self._level == ROWS and proof.base is not None and proof.has_all_rows and not proof.has_inner_files

    def _needs_forms(self, proof: Proof) -> bool:
        return proof.broken is not None or self._by_rows(proof)

    def _read_whole(self, proof: Proof) -> Sequence[Files]:
        """The sets of files whose rows are read."""
        return self._sets(proof) if self._by_rows(proof) else _sides(proof)

    def _sets(self, proof: Proof) -> List[Files]:
        """The sets of files whose footers are needed."""
        base = [proof.base] if proof.base is not None else []
        if self._by_rows(proof):
            return [*base, proof.compacted_arrivals, _newer(proof)]
        return [*base, *_sides(proof)]

    def _measure(self, counted: Sequence[Files], digested: Collection[Files]) -> Mapping[Files, Measured]:
        footers = self._rows.footers(self._format, dict(zip(counted, counted))) if counted else {}
        # Files with unreadable footers are reported without reading their rows.
        wanted = {files: files for files in digested if files not in footers or not footers[files].unreadable}
        contents = self._rows.digests(self._format, wanted) if wanted else {}
        measured = {}
        for files in {*counted, *digested}:
            found = footers.get(files, UnitFooters())
            content = contents.get(files, Content(Digest(sum(group.row_count for group in found.groups), 0, 0)))
            measured[files] = Measured(content.digest, found.groups, content.failed or _unreadable(found.unreadable))
        return measured

    def _judge(self, proof: Proof, measured: Mapping[Files, Measured]) -> Compared:
        unreadable = [measured[files].unreadable for files in self._sets(proof) if measured[files].unreadable]
        if unreadable:
            return Compared(Reason(Code.UNREADABLE_FILE, unreadable[0]))
        base = measured[proof.base] if proof.base is not None else None
        if base is not None and self._by_rows(proof):
            return self._judge_rows(proof, base, measured)
        if proof.broken:
            return self._judge_replaced(proof, base, measured[proof.live])
        rows = base.digest.rows if base else _certified_rows(proof)
        whys = (self._judge_link(link, [measured[side] for side in (link.before, link.after) if side is not None]) for link in proof.links)
        only = self._level == ROWS and proof.has_inner_files
        note = Reason(Code.SAME_ROWS, "its old files lie inside a joined one, so they were compared by digest") if only else None
        return Compared(next(filter(None, whys), None), rows, note)

    def _judge_replaced(self, proof: Proof, base: Optional[Measured], live: Measured) -> Compared:
        """Compare all of live with the backup, or with the run's certificate."""
        certified = self._at_level(proof.certified) if proof.certified and proof.gone and not proof.is_lost else None
        wanted = base.digest if base else certified
        rows = wanted.rows if wanted else None
        if base is not None and self._level != COUNT and wanted == live.digest and base.meanings != live.meanings:
            what = f"{_what(proof.broken)}; it stores the same values, but its files say otherwise how to read them (schema or writer)"
            return Compared(Reason(Code.ROWS_DIFFER, what), rows)
        # As many rows say nothing where others are among them.
        if wanted is not None and wanted == live.digest and not (self._level == COUNT and proof.has_older):
            same = "as many" if self._level == COUNT else "the same"
            return Compared(None, rows, Reason(Code.SAME_ROWS, f"{_what(proof.broken)}; its rows are {same}"))
        is_overwritten = proof.broken is not None and proof.broken.code is Code.OVERWRITTEN_SINCE and not (proof.has_older or proof.is_back)
        is_replaced = base is None and certified is not None and live.digest.rows >= certified.rows
        return Compared(proof.broken, rows, is_replaced=is_replaced and is_overwritten)

    def _judge_link(self, link: Link, sides: Sequence[Measured]) -> Optional[Reason]:
        """Compare both sides with each other, and with the run's certificate if there is one; a missing side is left out."""
        said = [self._at_level(link.effect.digest)] if link.effect.digest else []
        claims = [*said, *(side.digest for side in sides)]
        wrong = [claim for claim in claims if claim != claims[-1]]
        if not wrong:
            return None
        if wrong[0].rows != claims[-1].rows:
            return Reason(Code.ROWS_DIFFER, f"{wrong[0].rows} rows before run {link.effect.run}, {claims[-1].rows} after it")
        what = f"the same number of rows before and after run {link.effect.run}, but not the same rows (digests differ)"
        return Reason(Code.ROWS_DIFFER, what)

    def _at_level(self, digest: Digest) -> Digest:
        return digest if self._level != COUNT else Digest(digest.rows, 0, 0)

    def _judge_rows(self, proof: Proof, base: Measured, measured: Mapping[Files, Measured]) -> Compared:
        """Compare row by row; arrivals compacted since then count as rows of the backup's side."""
        since, newer = measured[proof.compacted_arrivals].groups, measured[_newer(proof)].groups
        # Nothing is read of files without rows, whatever their footers say.
        with_rows = (group for group in (*base.groups, *since, *newer) if group.row_count)
        unfit = next(filter(None, (refuse_as_rows(group.form) for group in with_rows)), None)
        if unfit:
            return Compared(unfit, base.digest.rows)
        found = self._take_examples(self._rows.differences(self._format, [*base.groups, *since], newer, MOST_EXAMPLES))
        missing, extra = found.only_in_one, 0 if proof.broken else found.only_in_other
        if missing or extra:
            what = f"{missing} rows are only in the backup, {found.only_in_other} only in live"
            return Compared(_differing(proof, what), base.digest.rows, differences=found)
        unseen = self._find_unseen([*base.groups, *since]) if self._differ_as_stored(proof, measured) else None
        if unseen:
            what = f"its rows are the same for Spark, but not as they are stored: {unseen}"
            # Digests always differ where live has more rows. That it has cut off the nanoseconds is certain only if it has none.
            if found.only_in_other and self._find_unseen(newer):
                what = f"its rows are among those of live for Spark, but {unseen}, so they cannot be compared by rows"
            return Compared(_differing(proof, what), base.digest.rows)
        note = Reason(Code.SAME_ROWS, f"{proof.broken.what}; its rows are the same") if proof.broken else None
        return Compared(None, base.digest.rows, note)

    def _differ_as_stored(self, proof: Proof, measured: Mapping[Files, Measured]) -> bool:
        assert proof.base is not None
        older = sum((measured[files].digest for files in (proof.base, proof.compacted_arrivals)), Digest(0, 0, 0))
        return older != measured[_newer(proof)].digest

    def _find_unseen(self, groups: Sequence[FooterGroup]) -> Optional[str]:
        """What Spark does not show of these rows: their nanoseconds."""
        hazards = self._rows.hazards(self._format, {str(nth): group for nth, group in enumerate(groups)})
        return next(iter(hazards.values()), None)


def _sides(proof: Proof) -> List[Files]:
    """The sets of files whose content is compared."""
    if proof.broken:
        return [side for side in (proof.base, proof.live) if side is not None]
    return [side for link in proof.links for side in (link.before, link.after) if side is not None]


def _what(why: Optional[Reason]) -> str:
    return why.what if why else ""


def _differing(proof: Proof, what: str) -> Reason:
    if proof.broken:
        return Reason(proof.broken.code, f"{proof.broken.what}; {what}")
    return Reason(Code.ROWS_DIFFER, what)


def _newer(proof: Proof) -> Files:
    return proof.live if proof.broken else proof.newest


def _certified_rows(proof: Proof) -> Optional[int]:
    digest = add_digests(first_sets([link.effect for link in proof.links]))
    return digest.rows if digest else None


def _unreadable(found: Sequence[Tuple[str, str]]) -> str:
    return f"{found[0][0]} cannot be read ({found[0][1]})" if found else ""
