"""The results of a kill matrix, and docs/evidence/kill-matrix.md, which shows them."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

from faults.scenarios import Point, all_points

if TYPE_CHECKING:
    from support.real_world import Picture

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "kill-matrix.md"
BEGIN = """# The last kill matrix

Written by `make test-matrix` (`tests/faults/`), by hand or by night: what that run saw, of the changes that the commands made then.

Every change of every subcommand is taken, on a flat and a partitioned table on HDFS: a kill after it, a call that fails with and without
its effect, a kill of the recovery too, and processes that are really killed. Rows are counted by pyarrow.
"""
HEAD = "| subcommand | at the change | shapes | times | rows of live: then → after recovery | settled as |\n" + "| --- " * 6 + "|"


@dataclass(frozen=True)
class Row:
    """One fault: the rows that readers saw just after it, and after the next command."""

    subcommand: str
    change: str
    shape: str
    kind: str
    rows_then: int
    rows_after: int
    settled: str
    seconds: float


@dataclass
class Matrix:
    """What a test session has seen so far, and where."""

    rows: List[Row] = field(default_factory=list)
    gaps_ms: List[float] = field(default_factory=list)
    where: str = ""

    def add(self, point: Point, kind: str, then: Picture, after: Picture, settled: str, seconds: float) -> None:
        counts = sum(then.rows.values()), sum(after.rows.values())
        self.rows.append(Row(point.scenario.subcommand, point.name, point.shape, kind, *counts, settled, seconds))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def include(self, text: str) -> None:
        """Add the results of another process."""
        other = json.loads(text)
        self.rows += [Row(**row) for row in other.get("rows", ())]
        self.gaps_ms += other.get("gaps_ms", ())
        self.where = self.where or other.get("where", "")

    def as_text(self, day: str, failed: Sequence[str] = ()) -> str:
        """The page below its introduction: one line for each change of each subcommand, with all faults at that change that were passed.

        `failed` are the names of tests that failed, of faults or others.
        """
        kinds = Counter(row.kind for row in self.rows)
        seconds = sum(row.seconds for row in self.rows)
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        lines = [
            f"{len(self.rows)} faults ({told}) in {seconds:.0f} s of tests, {day}, {self.where}. Not one row was lost or doubled in them."
        ]
        if failed:
            lines += ["", f"**{len(failed)} tests failed**, which are not among these: {', '.join(sorted(failed))}."]
        if self.gaps_ms:
            middle, worst = statistics.median(self.gaps_ms), max(self.gaps_ms)
            gap = f"{middle:.1f} ms (median of {len(self.gaps_ms)} swaps), {worst:.1f} ms at most"
            lines.append(f"The gap, in which an overwriter is not seen: {gap}.")
        lines += ["", HEAD]
        by_change: Dict[Tuple[str, str], List[Row]] = {}
        order = list(dict.fromkeys((point.scenario.subcommand, point.name) for point in all_points()))
        for row in sorted(self.rows, key=lambda row: order.index((row.subcommand, row.change))):
            by_change.setdefault((row.subcommand, row.change), []).append(row)
        return "\n".join([*lines, *(_line(*key, rows) for key, rows in by_change.items())])


def _line(subcommand: str, name: str, rows: List[Row]) -> str:
    shapes = " ".join(sorted({row.shape for row in rows}))
    counts = ", ".join(f"{then} → {after}" for then, after in sorted({(row.rows_then, row.rows_after) for row in rows}))
    settled = "; ".join(sorted({row.settled for row in rows}))
    return f"| {subcommand} | `{name}` | {shapes} | {len(rows)} | {counts} | {settled} |"


def write_page(text: str) -> None:
    PAGE.write_text(f"{BEGIN}\n{text}\n", "utf-8")
