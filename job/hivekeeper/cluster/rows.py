"""The `Rows` port: footers read on the driver, files copied as they are stored, or rewritten as sorted rows by Spark SQL.

Files are always read by name and with their own schema. It writes only below a stage's target and never
accesses a table or its location.
"""

from __future__ import annotations

import json
import secrets
from array import array
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.cluster.digest import NoDigestError
from hivekeeper.cluster.driver import StopAsked
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import CALL_ERRORS, explain_job_error
from hivekeeper.cluster.nanoseconds import find_checks
from hivekeeper.cluster.physical_copy import Answer, CopyTask, PhysicalCopy, as_asked
from hivekeeper.cluster.sql_rows import SqlRows
from hivekeeper.model import (
    ColumnFacts,
    Content,
    Differences,
    Ends,
    FileInfo,
    FileRowGroups,
    FooterGroup,
    Form,
    RowGroup,
    StageBatch,
    StageUnit,
    UnitFooters,
    ValueCounts,
    expect_values,
)
from hivekeeper.names import UnitNumber
from hivekeeper.ports import Key, RowsError
from hivekeeper.schemas import ORC, PARQUET

# Where the attempts of copying tasks write, below the stage's target; the finished ones are renamed from there.
_ATTEMPTS = "_attempts"
# The size of a row group or stripe: its key in Hadoop's configuration, and the library's default.
_GROUP_BYTES = {PARQUET: ("parquet.block.size", 128 << 20), ORC: ("orc.stripe.size", 64 << 20)}


class SparkRows:
    """`ports.Rows` on Spark. `exact`: the path by which a directory is found though another one came to its own path meanwhile."""

    def __init__(self, gateway: Gateway, exact: Callable[[str], str] = str) -> None:
        self.gateway = gateway
        self._exact = exact
        self.sql = SqlRows(gateway)
        self.physical = PhysicalCopy(gateway)

    @cached_property
    def _footers(self) -> Any:
        return self.gateway.helper("Footers", self.gateway.hadoop_conf)

    def warm_up(self) -> None:
        self.physical.warm_up()

    def require_started(self) -> None:
        with _rows_errors():
            self.physical.require_started()

    def footers(
        self,
        format: str,
        sets: Mapping[Key, Sequence[FileInfo]],
        by_identity: bool = False,
        most_row_groups: int = 0,
        most_characters: Optional[int] = None,
    ) -> Mapping[Key, UnitFooters]:
        files = {str(index): [file for file in some if file.length > 0] for index, some in enumerate(sets.values())}
        asked = {index: [as_asked(file) for file in some] for index, some in files.items()}
        with _rows_errors():
            most = -1 if most_characters is None else most_characters
            answer = json.loads(self._footers.read(format, json.dumps(asked), by_identity, most_row_groups, most))
        forms, column_names = [_form(said) for said in answer["forms"]], [tuple(some) for some in answer["names"]]
        told = answer["units"]
        return {key: _unit_footers(told[index], forms, column_names, files[index]) for key, index in zip(sets, files) if index in told}

    def write_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        # Its jobs take hours, and delete directories of attempts as trees.
        target = self._exact(batch.target)
        if batch.is_copied:
            return self._copy(batch, target)
        # A read of its own, so that the proof does not rest on the job that writes.
        bare_values = {unit.number: unit.bare_values for unit in batch.units}
        read = self._read(batch.format, {unit.number: unit.files for unit in batch.units}, bare_values, check_claims=False)
        failed = next((content.failed for content in read.values() if content.failed), "")
        if failed:
            raise RowsError(failed)
        with _rows_errors():
            self.sql.write(replace(batch, target=target), sum(content.digest.rows for content in read.values()))
        return read

    def _copy(self, batch: StageBatch, target: str) -> Mapping[UnitNumber, Content]:
        group_bytes = int(self.gateway.hadoop_conf.getLong(*_GROUP_BYTES[batch.format]))
        tasks = {unit.number: _copy_tasks(batch, unit, target, group_bytes) for unit in batch.units}
        with _rows_errors():
            answers = iter(self.physical.copy(names.join(target, _ATTEMPTS), [task for of_unit in tasks.values() for task in of_unit]))
        return {number: _content([next(answers) for _ in of_unit]) for number, of_unit in tasks.items()}

    def read_stage(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        target = self._exact(batch.target)
        with _rows_errors():
            listed = json.loads(self.sql.stage_files.list(target))
        found: Dict[UnitNumber, List[FileInfo]] = {}
        for unit in batch.units:
            directory = f"{names.UNIT_COLUMN}={unit.number}"
            place = names.join(target, directory)
            found[unit.number] = [
                FileInfo(names.join(place, name), length, 0, is_dir=False, file_id=0) for name, length in listed.get(directory, {}).items()
            ]
        # A copy may have as many values as its sources, in fewer bytes.
        values = {unit.number: expect_values(unit.files) + unit.bare_values for unit in batch.units}
        return self._read(batch.format, found, values, check_claims=True)

    def digests(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, Content]:
        # What other writers claim of their values (bounds, NULLs) is often wrong.
        return self._read(format, sets, {}, check_claims=False)

    def _read(
        self, format: str, sets: Mapping[Key, Sequence[FileInfo]], bare_values: Mapping[Key, int], check_claims: bool
    ) -> Mapping[Key, Content]:
        """`bare_values`: how many the files may have beyond `expect_values`."""
        keys = list(sets)
        files = [[file for file in sets[key] if file.length > 0] for key in keys]
        with _rows_errors():
            answers = self.physical.digest(files, check_claims, format, [bare_values.get(key, 0) for key in keys])
            return {key: _content([answer]) for key, answer in zip(keys, answers)}

    @cached_property
    def _ends(self) -> Mapping[str, Any]:
        """By format. They count what took all memory, so one of each serves all calls."""
        helpers = {PARQUET: "concat.ParquetEnds", ORC: "concat.OrcEnds"}
        return {format: self.gateway.helper(name, self.gateway.hadoop_conf) for format, name in helpers.items()}

    def write_ends(self, format: str, wanted: Mapping[Key, Ends]) -> Mapping[Key, str]:
        targets = [(ends.without_rows, ends.own, ends.alone) for ends in wanted.values()]
        exact = [[self._exact(target) if target else "" for target in some] for some in targets]
        asked = [[as_asked(ends.file), *some] for ends, some in zip(wanted.values(), exact)]
        with _rows_errors():
            return _failed(wanted, json.loads(self._ends[format].write(json.dumps(asked))))

    def find_unlike(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, str]:
        asked = [list(map(as_asked, files)) for files in sets.values()]
        with _rows_errors():
            return _failed(sets, json.loads(self._ends[format].findUnlike(json.dumps(asked))))

    def write_restored(self, format: str, file: FileInfo, begin: int, lengths: Sequence[int], target: str) -> None:
        with _rows_errors():
            self._ends[format].restore(file.path, file.file_id, begin, json.dumps(list(lengths)), self._exact(target))

    def find_starts(self, format: str, file: FileInfo, offsets: Sequence[int]) -> Tuple[int, ...]:
        with _rows_errors():
            return tuple(json.loads(self._ends[format].starts(file.path, json.dumps(list(offsets)))))

    def ends_like_whole(self, format: str, file: FileInfo, length: int) -> bool:
        with _rows_errors():
            return bool(self._ends[format].endsLikeWhole(file.path, file.length, length))

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        with _rows_errors():
            return self.sql.differences(format, one, other, limit)

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        # At some malformed pages, which our own reader finds, Spark's readers wait for ever, or end the JVM.
        forms = {form for form in {group.form for group in groups.values()} if find_checks(format, form).columns}
        to_read = {unit: group for unit, group in groups.items() if group.form in forms}
        bare_values = {unit: _bare_values(group) for unit, group in to_read.items()}
        files = {unit: group.counted_files for unit, group in to_read.items()}
        read = self._read(format, files, bare_values, check_claims=False) if files else {}
        failed = {unit: f"its timestamps cannot be checked: {content.failed}" for unit, content in read.items() if content.failed}
        with _rows_errors():
            return {**self.sql.hazards(format, {unit: group for unit, group in groups.items() if unit not in failed}), **failed}


def _bare_values(group: FooterGroup) -> int:
    """How many its files claim beyond `expect_values`; a column that does not tell has one in each row."""
    claimed = group.row_count + sum(group.row_count if facts.values is None else facts.values for facts in group.columns.values())
    return max(0, claimed - expect_values(group.counted_files))


def _copy_tasks(batch: StageBatch, unit: StageUnit, target: str, group_bytes: int) -> List[CopyTask]:
    directory = names.join(target, f"{names.UNIT_COLUMN}={unit.number}")
    mark = names.stage_mark(batch.run, batch.target, secrets.token_hex(16))
    return [
        CopyTask(
            names.join(directory, names.output_name(number, mark, batch.format)),
            output.files,
            output.codec,
            output.form.blooms,
            group_bytes,
            batch.format,
            output.may_grow,
            output.block_bytes,
            output.copies,
            unit.bare_values,
        )
        for number, output in enumerate(unit.outputs)
    ]


def _content(answers: Sequence[Answer]) -> Content:
    """What all outputs of a unit hold, or why one of them failed."""
    failed = next((answer.failed for answer in answers if answer.failed), "")
    if failed:
        return Content(failed=failed)
    return Content(sum((answer.digest for answer in answers), Content().digest))


def _form(said: Mapping[str, Any]) -> Form:
    return Form(**{**said, **{name: tuple(said.get(name, ())) for name in ("keys", "blooms", "undecodable")}})


def _unit_footers(
    said: Mapping[str, Any], forms: Sequence[Form], column_names: Sequence[Tuple[str, ...]], files: Sequence[FileInfo]
) -> UnitFooters:
    """`files` are those that were read, in their order."""
    groups = []
    for group in said["groups"]:
        # The listing's own paths, not copies of them: there may be a million.
        of_group = tuple(files[number] for number in group["files"])
        rows = {file.key: rows for file, rows in zip(of_group, group["rows"])}
        groups.append(FooterGroup(forms[group["form"]], rows, _columns(column_names[group["names"]], group["facts"]), of_group))
    row_groups = tuple(FileRowGroups(files[number], _row_groups(claims)) for number, claims in said["rowGroups"])
    return UnitFooters(tuple(groups), tuple((one["path"], one["reason"]) for one in said["unreadable"]), row_groups, said["values"])


def _columns(column_names: Tuple[str, ...], facts: Sequence[Any]) -> Mapping[str, ColumnFacts]:
    """`facts`: a number of values or None for each column, or a list of all facts."""
    if facts and isinstance(facts[0], list):
        return {name: ColumnFacts(*some) for name, some in zip(column_names, facts)}
    return ValueCounts(column_names, array("q", [-1 if values is None else values for values in facts]))


def _row_groups(claims: Sequence[int]) -> Tuple[RowGroup, ...]:
    """From three numbers for each."""
    return tuple(map(RowGroup, claims[::3], claims[1::3], claims[2::3]))


def _failed(keys: Iterable[Key], told: Sequence[Optional[str]]) -> Mapping[Key, str]:
    return {key: why for key, why in zip(keys, told) if why}


@contextmanager
def _rows_errors() -> Iterator[None]:
    try:
        yield
    except CALL_ERRORS as error:
        raise RowsError(explain_job_error(error)) from error
    except StopAsked as error:
        raise RowsError("asked to stop while Spark was starting") from error
    except NoDigestError as error:
        raise RowsError(str(error)) from error
