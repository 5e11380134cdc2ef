"""The page of results, docs/evidence/interleavings.md: a configuration's rows are replaced when it is explored again, others stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from interleavings.configurations import CONFIGURATIONS, Configuration

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "interleavings.md"
HEAD = """# The last exploration of interleavings

Written by `make interleavings` (`tests/interleavings/`), by hand or by night: what those runs saw, of the commands as they were then.
[What it tries, what it leaves out and what the open cases are](../swap.md#every-interleaving).

Each row: so many kills, lost leases, failing renames and switches between two runs at most, in every order. *Stopped*: not explored to its
end, for lack of memory or time; the rows below it try fewer, until one is. CPU seconds and memory are those of its own process.

| configuration | kills | leases | failures | switches | states | ends | CPU s | MB | on | outcome |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Result:
    """What one exploration saw. `limits` as its configuration had them; `broken` and `open` in words, `day` as YYYY-MM-DD."""

    name: str
    limits: Configuration
    states: int
    ends: int
    complete: bool
    cpu_s: float
    peak_mb: int
    day: str
    broken: Tuple[str, ...] = ()
    open: Tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        words = [] if self.complete else ["*stopped*"]
        words += [f"**broken**: {kind}" for kind in self.broken] or ["nothing broken"]
        words += [f"open: {', '.join(self.open)}"] if self.open else []
        return "; ".join(words)

    def row(self) -> str:
        most = self.limits
        numbers = [
            most.kills,
            most.lapses,
            most.errors,
            most.switches,
            f"{self.states:,}",
            f"{self.ends:,}",
            f"{self.cpu_s:,.0f}",
            f"{self.peak_mb:,}",
        ]
        return f"| {' | '.join([self.name, *map(str, numbers), self.day, self.outcome])} |"


def read_rows(text: str) -> Dict[str, List[str]]:
    """The rows of each configuration, in the order of the page."""
    found: Dict[str, List[str]] = {}
    for line in text.splitlines():
        name = line[2:].partition(" | ")[0] if line.startswith("| ") else ""
        if name in CONFIGURATIONS:
            found.setdefault(name, []).append(line)
    return found


def with_results(text: str, results: Iterable[Result]) -> str:
    """The page with the rows of these configurations replaced; one that was never explored says so."""
    rows, fresh = read_rows(text), {}  # type: ignore[var-annotated]
    for result in results:
        fresh.setdefault(result.name, []).append(result.row())
    rows.update(fresh)
    missing = "| {} | | | | | | | | | | not explored |"
    return HEAD + "".join(f"{row}\n" for name in CONFIGURATIONS for row in rows.get(name) or [missing.format(name)])


def record(results: Iterable[Result]) -> None:
    before = PAGE.read_text("utf-8") if PAGE.exists() else ""
    PAGE.write_text(with_results(before, results), "utf-8")
