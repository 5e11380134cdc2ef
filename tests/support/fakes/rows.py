"""The in-memory fake of `cluster/rows.py`: a data file is a tuple of rows, each row one text; jobs write through the files fake.

A stage job writes one file after another, so kills fall between them. Tests can make it fail or write wrong rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from array import array
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

from hivekeeper import names
from hivekeeper.model import (
    ColumnFacts,
    Content,
    Differences,
    Digest,
    Ends,
    FileInfo,
    FileRowGroups,
    FooterGroup,
    Form,
    RowGroup,
    StageBatch,
    StageOutput,
    UnitFooters,
    ValueCounts,
)
from hivekeeper.names import UnitNumber
from hivekeeper.ports import FilesError, Key, RowsError
from support.fakes.files import FakeFiles

Value = TypeVar("Value")

FORM = Form("message schema {\n  optional binary row (STRING);\n}", "snappy", "spark", identity="a footer of Spark")
COLUMN = "row"
ROWS_OF_GROUP = 2

RowTexts = Tuple[str, ...]


@dataclass(frozen=True)
class DataFile:
    """The content of a data file. `hazard` is what only reading its data can reveal; `before` are data files that lie in it unseen.
    `values`: as many as its footer claims.
    """

    rows: RowTexts = ()
    form: Form = FORM
    hazard: str = ""
    before: Tuple[DataFile, ...] = ()
    values: int = 0

    def __len__(self) -> int:
        return sum(len(row) for row in self.rows) + 100

    @property
    def row_groups(self) -> Tuple[RowGroup, ...]:
        """One byte for each row, behind the four that a file begins with."""
        portions = [(start, len(self.rows[start : start + ROWS_OF_GROUP])) for start in range(0, len(self.rows), ROWS_OF_GROUP)]
        return tuple(RowGroup(4 + start, count, count) for start, count in portions)

    @property
    def parts(self) -> Tuple[DataFile, ...]:
        return (*self.before, dataclasses.replace(self, before=()))

    def behind(self, files: Sequence[DataFile]) -> DataFile:
        """This one's rows in a file that begins with other ones."""
        return dataclasses.replace(self, before=(*(part for file in files for part in file.parts), *self.before))

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

    def warm_up(self) -> None:
        """Nothing has to start in memory."""

    def require_started(self) -> None:
        """Nor to be waited for."""

    def footers(
        self,
        format: str,  # noqa: ARG002
        sets: Mapping[Key, Sequence[FileInfo]],
        by_identity: bool = False,
        most_row_groups: int = 0,
        most_characters: Optional[int] = None,
    ) -> Mapping[Key, UnitFooters]:
        read = {key: self._footers([file for file in files if file.length > 0], by_identity) for key, files in sets.items()}
        if most_characters is not None:
            read = dict(itertools.takewhile(partial(_has_room, [most_characters], set()), read.items()))
        left = [most_row_groups]
        return {key: dataclasses.replace(found, row_groups=self._row_groups(sets[key], left)) for key, found in read.items()}

    def _row_groups(self, files: Sequence[FileInfo], left: List[int]) -> Tuple[FileRowGroups, ...]:
        """`left` says how many may still be told."""
        told = []
        for file in files:
            content = self._content(file)
            claimed = content.row_groups if isinstance(content, DataFile) and not file.begin else ()
            if 0 < len(claimed) <= left[0]:
                left[0] -= len(claimed)
                told.append(FileRowGroups(file, claimed))
        return tuple(told)

    def write_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        read: Dict[UnitNumber, Content] = {}
        last = batch.units[-1].outputs[-1]
        for unit in batch.units:
            content = Content()
            for number, output in enumerate(unit.outputs):
                rows, unreadable = self._source_rows(output, batch)
                if unreadable and not batch.is_copied:
                    raise RowsError(unreadable)
                if unreadable:
                    content = Content(failed=unreadable)
                    break
                content = Content(content.digest + digest_of(rows))
                written = self.spoil(unit.number, rows) if self.spoil else rows
                reason = self.fail(batch) if self.fail and output is last else None
                if reason:
                    raise RowsError(reason)
                form = dataclasses.replace(output.form, codec=output.codec)
                self._put(self._path(batch, unit.number, number), DataFile(written, form), sum(file.length for file in output.files))
            read[unit.number] = content
        return read

    def read_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        found = {unit.number: Content() for unit in batch.units}
        for entry in self.files.tree(self.files.exact(batch.target)):
            column, _, number = names.base(names.parent(entry.path)).partition("=")
            if not entry.is_dir and column == names.UNIT_COLUMN and int(number) in found:
                unit = UnitNumber(int(number))
                found[unit] = Content(found[unit].digest + digest_of(self._read(entry).rows))
        return found

    def digests(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, Content]:  # noqa: ARG002
        return {key: self._content_of(files) for key, files in sets.items()}

    def _content_of(self, files: Sequence[FileInfo]) -> Content:
        try:
            return Content(sum((digest_of(self._read(file).rows) for file in files if file.length > 0), Content().digest))
        except RowsError as error:
            return Content(failed=str(error))

    def write_ends(self, format: str, wanted: Mapping[Key, Ends]) -> Mapping[Key, str]:  # noqa: ARG002
        return _failed(wanted, self._write_ends)

    def _write_ends(self, ends: Ends) -> None:
        content = self._read(ends.file)
        self._put(ends.without_rows, DataFile((), content.form), 10, "write_ends")
        self._put(ends.own, content, 20, "write_ends")
        if ends.alone:
            self._put(ends.alone, DataFile((), content.form), 15, "write_ends")

    def find_unlike(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, str]:  # noqa: ARG002
        return _failed(sets, self._require_alike)

    def _require_alike(self, files: Sequence[FileInfo]) -> None:
        if len({self._read(file).form for file in files}) > 1:
            raise RowsError("their footers differ in more than their rows")

    def write_restored(self, format: str, file: FileInfo, begin: int, lengths: Sequence[int], target: str) -> None:  # noqa: ARG002
        edges = [begin, *itertools.accumulate(lengths, initial=begin)][1:]
        parts = [self._read(file._replace(begin=at, length=length)) for at, length in zip(edges, lengths)]
        whole = DataFile(tuple(row for part in parts for row in part.rows), parts[0].form)
        self._put(target, whole, sum(lengths) + 30, "write_restored")

    def find_starts(self, format: str, file: FileInfo, offsets: Sequence[int]) -> Tuple[int, ...]:  # noqa: ARG002
        """Each block is a file."""
        return tuple(offsets)

    def ends_like_whole(self, format: str, file: FileInfo, length: int) -> bool:  # noqa: ARG002
        whole, first = self._read(file), self.files.part(file.path, 0, length)
        return (first.form, first.rows) == (whole.form, whole.rows)

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:  # noqa: ARG002
        counts, counts_of_other = self._counts(one), self._counts(other)
        more, more_in_other = counts - counts_of_other, counts_of_other - counts
        columns = (COLUMN,) if more or more_in_other else ()
        return Differences(
            sum(more.values()), sum(more_in_other.values()), columns, _examples(more, limit), _examples(more_in_other, limit)
        )

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:  # noqa: ARG002
        found = {unit: [self._read_at(path).hazard for path in group.rows] for unit, group in groups.items()}
        return {unit: next(filter(None, hazards)) for unit, hazards in found.items() if any(hazards)}

    def _counts(self, groups: Sequence[FooterGroup]) -> Counter[str]:
        rows = [row for group in groups for path in group.rows for row in self._read_at(path, group.form).rows]
        promised = sum(group.row_count for group in groups)
        if len(rows) != promised:
            raise RowsError(f"{promised} rows in the files' footers, {len(rows)} were read")
        return Counter(rows)

    def _source_rows(self, output: StageOutput, batch: StageBatch) -> Tuple[RowTexts, str]:
        """The rows of an output's sources, or why one of them cannot be read."""
        try:
            rows = tuple(row for file in output.files for row in self._read(file, output.form).rows)
        except RowsError as error:
            return (), str(error)
        return (tuple(sorted(rows)) if batch.sort_columns else rows), ""

    def _path(self, batch: StageBatch, unit: UnitNumber, number: int) -> str:
        # Of each file another one, and the same again where all steps are done again.
        chance = f"{self.files.namespace.last_id:032x}"
        name = names.output_name(number, names.stage_mark(batch.run, batch.target, chance), batch.format)
        return names.join(batch.target, f"{names.UNIT_COLUMN}={unit}", name)

    def _footers(self, files: Sequence[FileInfo], by_identity: bool) -> UnitFooters:
        groups: Dict[Form, Dict[str, RowTexts]] = {}
        unreadable = []
        values = 0
        for file in files:
            content = self._content(file)
            values += content.values if isinstance(content, DataFile) else 0
            if content is not None and self._is_other(file):
                unreadable.append((file.path, "another file is there"))
            elif isinstance(content, DataFile):
                form = content.form if by_identity else dataclasses.replace(content.form, identity="")
                groups.setdefault(form, {})[f"{file.path}+{file.begin}" if file.begin else file.path] = content.rows
            else:
                unreadable.append((file.path, "not a data file" if content is not None else "no such file"))
        return UnitFooters(tuple(_group(form, rows, not by_identity) for form, rows in groups.items()), tuple(unreadable), values=values)

    def _content(self, file: FileInfo) -> object:
        try:
            return self.files.part(file.path, file.begin, file.length) if file.begin else self.files.content(file.path)
        except FilesError:
            return None

    def _is_other(self, file: FileInfo) -> bool:
        """Whether another file than the one that was listed is at its path."""
        return bool(file.file_id and not file.begin and not self.files.is_at_path(file))

    def _read_at(self, path: str, form: Optional[Form] = None) -> DataFile:
        return self._read(FileInfo(path, 1, 0, is_dir=False, file_id=0), form)

    def _read(self, file: FileInfo, form: Optional[Form] = None) -> DataFile:
        content = self._content(file)
        if content is None:
            raise RowsError(f"a file is gone: {file.path}")
        if self._is_other(file):
            raise RowsError(f"{file.path}: another file is there")
        if not isinstance(content, DataFile) or (form is not None and content.form.schema != form.schema):
            raise RowsError(f"{file.path} cannot be read")
        return content

    def _put(self, path: str, content: DataFile, length: int, step: str = "put") -> None:
        try:
            self.files.put(path, content, length, step)
        except FilesError as error:
            raise RowsError(str(error)) from error


def _failed(wanted: Mapping[Key, Value], act: Callable[[Value], None]) -> Mapping[Key, str]:
    """Why this failed, of those with which it did."""
    failed = {}
    for key, value in wanted.items():
        try:
            act(value)
        except RowsError as error:
            failed[key] = str(error)
    return failed


def _has_room(left: List[int], known: Set[object], of_set: Tuple[Key, UnitFooters]) -> bool:
    """`left`: of characters; `known`: forms and names of columns that are told already."""
    for group in of_set[1].groups:
        texts = {group.form: len(str(group.form)), tuple(group.columns): len(str(list(group.columns)))}
        left[0] -= sum(length for text, length in texts.items() if text not in known) + 8 * len(group.columns)
        known.update(texts)
    return left[0] >= 0


def _group(form: Form, rows: Mapping[str, RowTexts], with_bounds: bool) -> FooterGroup:
    every = [row for of_file in rows.values() for row in of_file]
    columns: Mapping[str, ColumnFacts] = ValueCounts((COLUMN,), array("q", [len(every)]))
    if with_bounds:
        columns = {COLUMN: ColumnFacts(len(every), 0, min(every, default=None), max(every, default=None))}
    return FooterGroup(form, {path: len(of_file) for path, of_file in rows.items()}, columns, ())


def _examples(surplus: Iterable[str], limit: int) -> Tuple[Mapping[str, Optional[str]], ...]:
    return tuple({COLUMN: row} for row in sorted(surplus, key=_hash_of)[:limit])


def _hash_of(row: str) -> int:
    return int.from_bytes(hashlib.sha256(row.encode()).digest()[:8], "big")


def digest_of(rows: Iterable[str]) -> Digest:
    hashes = [_hash_of(row) for row in rows]
    return Digest(len(hashes), sum(value >> 32 for value in hashes), sum(value & 0xFFFFFFFF for value in hashes))
