"""docs/evidence/foreign-files.md: what became of every case, a column for each Spark, which a run of all cases replaces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Tuple

from foreign.cases import COMPACTED
from foreign.lives import Life

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "foreign-files.md"
BEGIN = """# What became of foreign files

Written by `make test-foreign` (`tests/foreign/`), by hand or by night: a run of all cases on one Spark replaces what is said of that Spark,
if every test passed. The writers are the same for each.

Each case is a directory with files of one writer, or of two; whole commands go through it (analyze, compact-swap, verify, rollback,
verify). `compacted 6 → 2` means that every reader that could read the six files finds the same in the two, and that a rollback brought back
every byte. Otherwise there is the [reason](../refusals.md) for which the directory was left as it was. `footers` compares the footers' own
bytes, too.
"""
RUNS = ("Spark", "run", "compacted", "left as they were", "not tested", "read the same by")
UNTESTED = "not tested"
MANY = ", "


@dataclass(frozen=True)
class Column:
    """One Spark: the cells about its run, and the outcome of each case by `writer.case`."""

    run: Tuple[str, ...]
    outcomes: Mapping[str, str]

    @property
    def spark(self) -> str:
        return self.run[0]


def describe(lives: Iterable[Life], spark: str, run: str) -> Column:
    """`run` says when and with what."""
    lives = list(lives)
    outcomes = {life.case.name: _outcome(life) for life in lives}
    readers = Counter(reader for life in lives if life.is_compacted for reader in life.before)
    judged = MANY.join(f"{reader} {count}" for reader, count in sorted(readers.items()))
    counts = Counter(outcome.split(" ")[0] if outcome.startswith(COMPACTED) else outcome for outcome in outcomes.values())
    left = sum(counts.values()) - counts[COMPACTED] - counts[UNTESTED]
    return Column((spark, run, str(counts[COMPACTED]), str(left), str(counts[UNTESTED]), judged), outcomes)


def _outcome(life: Life) -> str:
    if life.unavailable:
        return UNTESTED
    return f"{COMPACTED} {len(life.hashes[0])} → {life.files}" if life.is_compacted else life.outcome


def as_text(columns: Iterable[Column]) -> str:
    """The page; cases of a writer with the same outcomes share a line."""
    columns = sorted(columns, key=lambda column: [int(part) for part in column.spark.split(".")])
    alike: Dict[Tuple[str, ...], List[str]] = {}
    for name in dict.fromkeys(name for column in columns for name in column.outcomes):
        writer, _, case = name.partition(".")
        alike.setdefault((writer, *(column.outcomes.get(name, UNTESTED) for column in columns)), []).append(case)
    order = list(dict.fromkeys(key[0] for key in alike))
    lines = [_line((key[0], MANY.join(alike[key]), *key[1:])) for key in sorted(alike, key=lambda key: order.index(key[0]))]
    head = ("writer", "cases", *(f"Spark {column.spark}" for column in columns))
    return "\n".join([BEGIN, *_head(RUNS), *(_line(column.run) for column in columns), "", *_head(head), *lines, ""])


def read(text: str) -> List[Column]:
    """The columns of a page that `as_text` made."""
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if line.startswith("| ")]
    heads = [index for index, row in enumerate(rows) if row[0] in (RUNS[0], "writer")]
    if len(heads) < 2:
        return []
    runs, cases = rows[heads[0] + 2 : heads[1]], rows[heads[1] + 2 :]
    return [Column(run, {f"{row[0]}.{name}": row[2 + at] for row in cases for name in row[1].split(MANY)}) for at, run in enumerate(runs)]


def replace_column(column: Column, page: Path = PAGE) -> None:
    known = read(page.read_text("utf-8")) if page.exists() else []
    page.write_text(as_text([*(other for other in known if other.spark != column.spark), column]), "utf-8")


def _head(cells: Tuple[str, ...]) -> List[str]:
    return [_line(cells), _line(("---",) * len(cells))]


def _line(cells: Tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
