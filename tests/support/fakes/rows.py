"""The in-memory fake of `cluster/rows.py`: a data file is a tuple of rows, each row one text; jobs write through the files fake.

A stage job writes one file after another, so kills fall between them. Tests can make it fail or write wrong rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.model import (
    ColumnFacts,
    Differences,
    Digest,
    FileInfo,
    FooterGroup,
    Form,
    StageBatch,
    StageDigests,
    StageResult,
    UnitFooters,
)
from hivekeeper.ports import FilesError, Key, RowsError
from support.fakes.files import FakeFiles

FORM = Form("message schema {\n  optional binary row (STRING);\n}", "snappy", "spark")
COLUMN = "row"

RowTexts = Tuple[str, ...]


@dataclass(frozen=True)
class DataFile:
    """The content of a data file. `hazard` is what only reading its data can reveal."""

    rows: RowTexts = ()
    form: Form = FORM
    hazard: str = ""

    def __len__(self) -> int:
        return sum(len(row) for row in self.rows) + 100

    def __add__(self, more: DataFile) -> DataFile:
        return dataclasses.replace(self, rows=self.rows + more.rows)


class FakeRows:
    """`ports.Rows` in memory.

    `spoil` changes the rows that a job writes for a unit (unit number and rows in, rows out); `fail` is the reason why a batch's
    job fails, after it has written all but its last file.
    """

    def __init__(self, files: FakeFiles) -> None:
        self.files = files
        self.spoil: Optional[Callable[[int, RowTexts], RowTexts]] = None
        self.fail: Optional[Callable[[StageBatch], Optional[str]]] = None

    def footers(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, UnitFooters]:  # noqa: ARG002
        return {key: self._footers([file.path for file in files if file.length > 0]) for key, files in sets.items()}

    def write_stage(self, batch: StageBatch) -> StageResult:
        read: List[Digest] = []
        planned = list(self._outputs(batch))
        for path, number, rows, length in planned:
            read.append(digest_of(f"{number}/{row}" for row in rows))
            written = self.spoil(number, rows) if self.spoil else rows
            reason = self.fail(batch) if self.fail and path == planned[-1][0] else None
            if reason:
                raise RowsError(reason)
            self._put(path, DataFile(written, dataclasses.replace(batch.form, codec=batch.codec)), length)
        return StageResult(add(read))

    def read_stage(self, batch: StageBatch) -> StageDigests:
        units = {unit.number: Digest(0, 0, 0) for unit in batch.units}
        mixed: List[Digest] = []
        for entry in self.files.tree(batch.target):
            column, _, number = names.base(names.parent(entry.path)).partition("=")
            if not entry.is_dir and column == names.UNIT_COLUMN:
                rows = self._read(entry.path).rows
                units[int(number)] = add([units[int(number)], digest_of(rows)])
                mixed.append(digest_of(f"{number}/{row}" for row in rows))
        return StageDigests(units, add(mixed))

    def digests(self, format: str, groups: Mapping[Key, FooterGroup]) -> Mapping[Key, Digest]:  # noqa: ARG002
        return {key: add(digest_of(self._read(path).rows) for path in group.rows) for key, group in groups.items()}

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:  # noqa: ARG002
        counts, counts_of_other = self._counts(one), self._counts(other)
        more, more_in_other = counts - counts_of_other, counts_of_other - counts
        columns = (COLUMN,) if more or more_in_other else ()
        return Differences(
            sum(more.values()), sum(more_in_other.values()), columns, _examples(more, limit), _examples(more_in_other, limit)
        )

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:  # noqa: ARG002
        found = {unit: [self._read(path).hazard for path in group.rows] for unit, group in groups.items()}
        return {unit: next(filter(None, hazards)) for unit, hazards in found.items() if any(hazards)}

    def _counts(self, groups: Sequence[FooterGroup]) -> Counter[str]:
        rows = [row for group in groups for path in group.rows for row in self._read(path, group.form).rows]
        promised = sum(group.row_count for group in groups)
        if len(rows) != promised:
            raise RowsError(f"{promised} rows in the files' footers, {len(rows)} were read")
        return Counter(rows)

    def _outputs(self, batch: StageBatch) -> Iterator[Tuple[str, int, RowTexts, int]]:
        """Path, unit, rows and length of each file to write; a missing source is noticed when its turn comes, before any output."""
        for unit in batch.units:
            for bin_number in range(unit.outputs):
                sources = [file for file, assigned in zip(unit.files, unit.bins) if assigned == bin_number]
                rows = tuple(row for file in sources for row in self._read(file.path, batch.form).rows)
                name = f"part-{bin_number:05d}-{batch.run}-{names.base(batch.target)}.{batch.format}"
                path = names.join(batch.target, f"{names.UNIT_COLUMN}={unit.number}", name)
                yield path, unit.number, tuple(sorted(rows)) if batch.sort_columns else rows, sum(file.length for file in sources)

    def _footers(self, paths: Sequence[str]) -> UnitFooters:
        groups: Dict[Form, Dict[str, RowTexts]] = {}
        unreadable = []
        for path in paths:
            content = self._content(path)
            if isinstance(content, DataFile):
                groups.setdefault(content.form, {})[path] = content.rows
            else:
                unreadable.append((path, "not a data file" if content is not None else "no such file"))
        return UnitFooters(tuple(_group(form, rows) for form, rows in groups.items()), tuple(unreadable))

    def _content(self, path: str) -> object:
        try:
            return self.files.content(path)
        except FilesError:
            return None

    def _read(self, path: str, form: Optional[Form] = None) -> DataFile:
        content = self._content(path)
        if content is None:
            raise RowsError(f"a file is gone: {path}")
        if not isinstance(content, DataFile) or (form is not None and content.form.schema != form.schema):
            raise RowsError(f"{path} cannot be read")
        return content

    def _put(self, path: str, content: DataFile, length: int) -> None:
        try:
            self.files.put(path, content, length)
        except FilesError as error:
            raise RowsError(str(error)) from error


def _group(form: Form, rows: Mapping[str, RowTexts]) -> FooterGroup:
    every = [row for of_file in rows.values() for row in of_file]
    facts = ColumnFacts(len(every), 0, min(every, default=None), max(every, default=None))
    return FooterGroup(form, {path: len(of_file) for path, of_file in rows.items()}, {COLUMN: facts})


def _examples(surplus: Iterable[str], limit: int) -> Tuple[Mapping[str, Optional[str]], ...]:
    return tuple({COLUMN: row} for row in sorted(surplus, key=_hash_of)[:limit])


def _hash_of(row: str) -> int:
    return int.from_bytes(hashlib.sha256(row.encode()).digest()[:8], "big")


def digest_of(rows: Iterable[str]) -> Digest:
    hashes = [_hash_of(row) for row in rows]
    return Digest(len(hashes), sum(value >> 32 for value in hashes), sum(value & 0xFFFFFFFF for value in hashes))


def add(digests: Iterable[Digest]) -> Digest:
    parts = list(digests)
    return Digest(sum(part.rows for part in parts), sum(part.high for part in parts), sum(part.low for part in parts))
