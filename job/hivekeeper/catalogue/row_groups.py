"""Rows about single row groups: those that a command has read, and those of before whose files are still the same.

Pure. No command reads footers for them, so a file has some from the time a command needed its footer. What a footer claims comes from
whoever may write to the table: so the number of rows is bounded. The bounds of values are values, which not everybody may read.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Mapping, Tuple

from hivekeeper.catalogue.columns import TABLES
from hivekeeper.catalogue.rows import identity, seen_by, segment_of
from hivekeeper.plan.analysis import UnitAnalysis
from hivekeeper.ports import Cell, Row
from hivekeeper.report.results import CommandResult, TableOutcome

# Of one table: as many as a table of 6 TB has in files of the usual size. A footer of a megabyte may claim more.
MOST_OF_TABLE = 50_000

KIND = "ROW_GROUP"
_FOUND_BY = ("database_name", "table_name", "partition_name", "file_name", "file_bytes", "modified_ms")
_PLACES = tuple(tuple(TABLES.columns).index(column) for column in _FOUND_BY)
# What tells which row groups stay.
TABLE_AND_PARTITION = _FOUND_BY[:3]


class RowGroups:
    """The row groups of some tables after a command. `staying`: how many of each table stay as they are, of partitions not looked at."""

    def __init__(self, result: CommandResult, outcomes: Iterable[TableOutcome], staying: Mapping[str, int]) -> None:
        self._result = result
        self._outcomes = {outcome.table: outcome for outcome in outcomes if outcome.observed}
        self._units = {table: _units_as_listed(outcome) for table, outcome in self._outcomes.items()}
        self._left = {table: MOST_OF_TABLE - staying.get(table, 0) for table in self._outcomes}
        self._told = {
            (table, unit, one.file.name)
            for table, outcome in self._outcomes.items()
            for unit, files in outcome.row_groups.items()
            for one in files
        }
        self._file: Tuple[Cell, ...] = ()
        self._keeps_file = False
        self._files_of: Tuple[str, str] = ("", "")
        self._files: Dict[str, Tuple[int, int]] = {}

    def read(self, table: str) -> Iterator[Dict[str, Any]]:
        """The cells of those that the command has read."""
        for unit, files in self._outcomes[table].row_groups.items() if table in self._outcomes else ():
            for file, groups in files:
                # Of a file all or none, as they were read.
                if len(groups) > self._left[table]:
                    continue
                self._left[table] -= len(groups)
                for index, group in enumerate(groups):
                    yield {
                        **identity(self._result, table, segment_of(unit), f"{unit}/{file.name}/{index}", KIND),
                        **seen_by(self._result),
                        "partition_name": unit,
                        "file_name": file.name,
                        "file_bytes": file.length,
                        "modified_ms": file.mtime_ms,
                        "row_group_index": index,
                        "row_group_start": group.start,
                        "total_bytes": group.length,
                        "row_count": group.rows,
                    }

    def keeps(self, row: Row) -> bool:
        """Whether a row of before, with all columns, is about a file that is still the same, and was not read again.

        Rows of one file follow one another: it stays with all of them or none, so those of one may be too many.
        """
        file = tuple(row[place] for place in _PLACES)
        if file != self._file:
            self._file, self._keeps_file = file, self._is_still_there(*file)
        if self._keeps_file:
            self._left[f"{file[0]}.{file[1]}"] -= 1
        return self._keeps_file

    def _is_still_there(self, database: Cell, name: Cell, partition: Cell, file: Cell, length: Cell, time_ms: Cell) -> bool:
        table = f"{database}.{name}"
        unit = self._units.get(table, {}).get(str(partition))
        if unit is None or (table, partition, file) in self._told or self._left[table] <= 0:
            return False
        return unit.known is not None or self._list(table, unit).get(str(file)) == (length, time_ms)

    def _list(self, table: str, unit: UnitAnalysis) -> Mapping[str, Tuple[int, int]]:
        """The length and time of each file. Rows of one partition mostly follow one another, too."""
        if self._files_of != (table, unit.name):
            self._files_of = table, unit.name
            self._files = {file.name: (file.length, file.mtime_ms) for file in unit.files}
        return self._files


def _units_as_listed(outcome: TableOutcome) -> Mapping[str, UnitAnalysis]:
    """The units that still have the files that the command has listed."""
    exchanged = {unit.name for unit in outcome.units if unit.outcome.exchanged}
    return {unit.name: unit for unit in outcome.observed.units if unit.name not in exchanged} if outcome.observed else {}


def count_staying(before: Iterable[Row], outcomes: Iterable[TableOutcome]) -> Mapping[str, int]:
    """How many row groups of each table are of partitions that were not looked at; `before` are the TABLE_AND_PARTITION of all."""
    looked_at = {outcome.table: {unit.name for unit in outcome.observed.units} for outcome in outcomes if outcome.observed}
    counts: Dict[str, int] = {}
    for database, name, partition in before:
        table = f"{database}.{name}"
        if table in looked_at and partition not in looked_at[table]:
            counts[table] = counts.get(table, 0) + 1
    return counts
