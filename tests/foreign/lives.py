"""A directory's life under the program, for many cases in few commands: analyze, compact-swap, verify, rollback, verify."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import pytest

from foreign import evidence
from foreign.cases import COMPACTED, Case, Unavailable
from foreign.evidence import Evidence
from foreign.tools import Tools
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.rollback import rollback
from hivekeeper.commands.verify import verify
from hivekeeper.model import Selection
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome
from support.contexts import a_context

DATABASE = "foreign_files"
# Where a session keeps what it saw, for its summary.
LIVES: pytest.StashKey[Mapping[str, Life]] = pytest.StashKey()


@dataclass
class Life:
    """What was seen of one case. `outcome`: COMPACTED, or the code of a reason or of another outcome."""

    case: Case
    directory: Path
    unavailable: str = ""
    broken: str = ""
    before: Evidence = field(default_factory=dict)
    after: Evidence = field(default_factory=dict)
    hashes: List[Mapping[str, str]] = field(default_factory=list)
    files: int = 0
    analyzed: str = ""
    outcome: str = "no outcome"
    reason: str = ""
    verified: str = ""
    undone: str = ""
    verified_again: str = ""

    @property
    def is_compacted(self) -> bool:
        return self.outcome == COMPACTED

    @property
    def changed(self) -> List[str]:
        """The readers that find something else after the compaction; a reader that could not read the files before does not count."""
        if not self.is_compacted:
            return []
        return [reader for reader in self.before if self.after.get(reader) != self.before[reader]]


class Lives:
    """`spark` and `cluster` are those of the tests; everything lies below `top`."""

    def __init__(self, spark: Any, cluster: Any, top: Path) -> None:
        self._spark, self._cluster, self._top = spark, cluster, top
        self._lives: Dict[str, Life] = {}
        self._tools = Tools(spark)

    def live(self, cases: Sequence[Case]) -> Mapping[str, Life]:
        """Write all cases, then give all of them to each command."""
        tables = self._write(cases)
        self._create(tables)
        self._look("before")
        for unit in self._run(analyze, "a"):
            self._lives[unit.name].analyzed = unit.status.code
        self._look("")
        self._compact()
        for attribute, command, run in (("verified", verify, "c"), ("undone", rollback, "d"), ("verified_again", verify, "e")):
            for unit in self._run(command, run):
                setattr(self._lives[unit.name], attribute, unit.outcome.code)
            self._look("")
        self._tools.close()
        return self._lives

    def _compact(self) -> None:
        for unit in self._run(compact_swap, "b"):
            life = self._lives[unit.name]
            life.outcome, life.reason = _told(unit), unit.reason
        self._look("after")

    def _write(self, cases: Sequence[Case]) -> Mapping[Tuple[str, str], str]:
        """The tables needed: by format and columns, the name."""
        tables: Dict[Tuple[str, str], str] = {}
        for case in cases:
            table = tables.setdefault((case.format, case.columns), f"t{len(tables)}")
            life = self._lives[f"c={case.name}"] = Life(case, self._top / table / f"c={case.name}")
            life.directory.mkdir(parents=True)
            try:
                case.write(life.directory, self._tools)
            except Unavailable as missing:
                life.unavailable = str(missing)
            except Exception as error:  # costs only this case
                life.broken = f"{type(error).__name__}: {error}"
        return tables

    def _create(self, tables: Mapping[Tuple[str, str], str]) -> None:
        self._spark.sql(f"CREATE DATABASE {DATABASE} LOCATION 'file:{self._top}/db'")
        for (format, columns), table in tables.items():
            place = self._top / table
            partitions = [life.case.name for life in self._there() if life.directory.parent == place]
            if partitions:
                by = f"PARTITIONED BY (c STRING) STORED AS {format} LOCATION 'file:{place}'"
                self._spark.sql(f"CREATE EXTERNAL TABLE {DATABASE}.{table} ({columns}) {by}")
                added = " ".join(f"PARTITION (c='{name}')" for name in partitions)
                self._spark.sql(f"ALTER TABLE {DATABASE}.{table} ADD {added}")

    def _there(self) -> List[Life]:
        return [life for life in self._lives.values() if not life.unavailable and not life.broken]

    def _look(self, when: str) -> None:
        """Keep what is live: its bytes, and at two times what it says."""
        for life in self._there():
            life.hashes.append(evidence.hashes(life.directory))
            if when:
                setattr(life, when, evidence.gather(life.directory, life.case.format, life.case.columns, self._tools.hive_reader))
            if when == "after":
                life.files = len(evidence.data_files(life.directory))

    def _run(self, command: Any, minute: str) -> List[Any]:
        run = f"20260101t0203{ord(minute) - ord('a'):02d}z-0000"
        result: CommandResult = command(a_context(self._cluster, Selection(databases=(DATABASE,)), run))
        troubles = {table.table: table.problem.what for table in result.tables if table.problem and not table.units}
        found = [unit for table in result.tables for unit in _units(table, command)]
        assert found or not troubles, troubles
        return found


def _units(table: TableOutcome, command: Any) -> Sequence[Any]:
    return table.observed.units if command is analyze and table.observed else table.units


def _told(unit: UnitOutcome) -> str:
    if unit.outcome is Outcome.SWAPPED:
        return COMPACTED
    return unit.why.code.code if unit.outcome is Outcome.REFUSED and unit.why else unit.outcome.code
