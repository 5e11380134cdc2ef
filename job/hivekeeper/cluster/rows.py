"""Reads footers, rewrites files and computes digests with Spark jobs; the `Rows` port.

Files are always read by name and with their own schema. It writes only below a stage's target and never
accesses a table or its location.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from hivekeeper import names
from hivekeeper.cluster import digest
from hivekeeper.cluster.differences import Side, find_differences
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.hash_partitioning import task_keys
from hivekeeper.cluster.java_errors import CALL_ERRORS, explain_job_error
from hivekeeper.cluster.nanoseconds import NanosecondChecks, find_checks
from hivekeeper.cluster.session import GUARDS, Where
from hivekeeper.cluster.writer_settings import session_settings, whole_file_settings, writer_options
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
    StageUnit,
    UnitFooters,
)
from hivekeeper.ports import Key, RowsError
from hivekeeper.quoting import identifier
from hivekeeper.schemas import PARQUET, ParquetField, parse_parquet

# The most reads (one per output file) in one plan; more make planning slow.
_READS_PER_JOB = 40
# The observed digest travels over Spark's event bus, which drops events when it overflows.
_METRICS_TIMEOUT_S = 120
# Our sessions set them for jobs that write, or return few rows.
_FOR_LARGE_SHUFFLES = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")

_UNIT = names.UNIT_COLUMN
# All our columns have a common prefix; a data column with this prefix is refused.
_FILE, _KNOWN, _KEY, _ORDINAL, _TASK, _BLOCK, _ROW, _HASH, _MIXED = (
    f"{names.UNIT_COLUMN}_{suffix}" for suffix in ("file", "known", "key", "ordinal", "task", "block", "row", "hash", "mixed")
)
_PLACE_SCHEMA = "struct<file: string, key: int, ordinal: int, task: int>"
_BY_NAME = {"__globPaths__": "false", "recursiveFileLookup": "true", "mergeSchema": "false"}


class Place(NamedTuple):
    """A file, and the values added to its rows: the key of its unit or group, its position there, the task that writes them."""

    file: str
    key: int
    ordinal: int = 0
    task: int = 0


class SparkRows:
    """`ports.Rows` on Spark. Each call uses a session of its own, so the settings of forms never mix."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @cached_property
    def _footers(self) -> Any:
        return self.gateway.helper("Footers", self.gateway.hadoop_conf)

    @cached_property
    def stage_files(self) -> Any:
        return self.gateway.helper("StageFiles", self.gateway.hadoop_conf)

    # ---- footers

    def footers(self, format: str, sets: Mapping[Key, Sequence[FileInfo]]) -> Mapping[Key, UnitFooters]:
        keys = list(sets)
        files = {str(index): [[file.path, file.length] for file in sets[key] if file.length > 0] for index, key in enumerate(keys)}
        with _rows_errors():
            answer = json.loads(self._footers.read(format, json.dumps(files)))
        return {keys[int(index)]: _unit_footers(said) for index, said in answer.items()}

    # ---- writing

    def write_stage(self, batch: StageBatch) -> StageResult:
        with _rows_errors():
            session = self._session(batch.format, batch.form)
            schema = self._schema(session, batch.format, batch.form, batch.units[0].files[0].path)
            job = _Writer(self, session, batch, schema)
            return StageResult(job.write_one(batch.units[0]) if len(batch.units) == 1 else job.write_many())

    def read_stage(self, batch: StageBatch) -> StageDigests:
        with _rows_errors():
            session = self._session(batch.format, batch.form)
            output = session.read.format(batch.format).option("__globPaths__", "false").load(batch.target)
            columns = StructType([field for field in output.schema.fields if field.name != _UNIT])
            found = self._digest_by_key(output, columns, _UNIT)
            return StageDigests({**{unit.number: Digest(0, 0, 0) for unit in batch.units}, **found.units}, found.mixed)

    def digests(self, format: str, groups: Mapping[Key, FooterGroup]) -> Mapping[Key, Digest]:
        keys = list(groups)
        by_number = dict(enumerate(groups.values()))
        found = {number: Digest(0, 0, 0) for number in by_number}
        with _rows_errors():
            for form, members in _by_form(by_number).items():
                session = self._session(format, form)
                places = [Place(path, number) for number in members for path in by_number[number].rows]
                schema = self._schema(session, format, form, places[0].file)
                data = self._read_placed(session, format, schema, places)
                found.update(self._digest_by_key(data, schema, _KEY).units.items())
        return {keys[number]: digest for number, digest in found.items()}

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        forms = [group.form for group in (*one, *other) if group.rows]
        if not forms:
            return Differences(0, 0)
        with _rows_errors():
            # One session can read all forms: their settings differ only for writing.
            session = self._session(format, forms[0])
            for key in _FOR_LARGE_SHUFFLES:
                session.conf.set(key, str(self.gateway.spark.conf.get(key)))
            return find_differences(self._side(session, format, one), self._side(session, format, other), limit)

    def _side(self, session: SparkSession, format: str, groups: Sequence[FooterGroup]) -> Side:
        frames = []
        for group in groups:
            if group.rows:
                paths = list(group.rows)
                frames.append(self._load(session, format, paths, self._schema(session, format, group.form, paths[0])))
        return Side(frames, sum(group.row_count for group in groups))

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        units = list(groups)
        reasons: Dict[str, str] = {}
        with _rows_errors():
            for form, members in _by_form({at: groups[unit] for at, unit in enumerate(units)}).items():
                checks = find_checks(format, form)
                if checks.refusal:
                    reasons.update({units[at]: checks.refusal for at in members})
                elif checks.columns:
                    places = [Place(path, at) for at in members for path in groups[units[at]].rows]
                    reasons.update({units[at]: reason for at, reason in self._find_nanoseconds(format, form, checks, places).items()})
        return reasons

    def _find_nanoseconds(self, format: str, form: Form, checks: NanosecondChecks, places: Sequence[Place]) -> Dict[int, str]:
        session = self._session(format, form)
        # The vectorized reader does not give INT96 as bytes.
        session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
        data = self._read_placed(session, format, checks.schema, places)
        found_any = [F.max(F.expr(check)).alias(f"c{index}") for index, (_, check) in enumerate(checks.columns)]
        found = {}
        for row in data.groupBy(_KEY).agg(*found_any).collect():
            guilty = [name for index, (name, _) in enumerate(checks.columns) if row[f"c{index}"]]
            if guilty:
                found[row[_KEY]] = f"the timestamps of {', '.join(guilty)} have nanoseconds; Spark keeps microseconds"
        return found

    # ---- what all jobs share

    def _session(self, format: str, form: Form) -> SparkSession:
        """A copy of the session with the settings of this form; other sessions are not affected."""
        spark = self.gateway.spark
        session = type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())
        for guard in GUARDS:
            if guard.where is not Where.CORE:
                session.conf.set(guard.key, guard.value)
        for key, value in session_settings(format, form).items():
            session.conf.set(key, value)
        return session

    def _schema(self, session: SparkSession, format: str, form: Form, path: str) -> StructType:
        """The schema that Spark reads from one file of the form, plus the field ids that it would drop."""
        schema = self._load(session, format, [path], None).schema
        clash = [field.name for field in schema.fields if field.name.lower().startswith(_UNIT)]
        if clash:
            raise RowsError(f"the column {clash[0]} has a name that Hivekeeper itself uses")
        return _with_field_ids(schema, parse_parquet(form.schema)) if format == PARQUET else schema

    def _load(self, session: SparkSession, format: str, paths: Sequence[str], schema: Union[StructType, str, None]) -> DataFrame:
        reader = session.read.format(format)
        for key, value in _BY_NAME.items():
            reader = reader.option(key, value)
        if schema is not None:
            reader = reader.schema(schema)
        return DataFrame(reader._jreader.load(self.gateway.strings(paths)), session)

    def _read_placed(self, session: SparkSession, format: str, schema: Union[StructType, str], places: Sequence[Place]) -> DataFrame:
        """The rows of many files, each with the key, ordinal and task of its file. A row of an unknown file fails the job."""
        data = self._load(session, format, [place.file for place in places], schema)
        data = data.select(
            "*",
            F.input_file_name().alias(_FILE),
            F.expr("input_file_block_start()").alias(_BLOCK),
            F.monotonically_increasing_id().alias(_ROW),
        )
        lines = self.stage_files.lines(data._jdf.inputFiles(), json.dumps([place._asdict() for place in places]))
        encoder = self.gateway.jvm.org.apache.spark.sql.Encoders.STRING()
        mapping = DataFrame(session._jsparkSession.createDataset(lines, encoder).toDF(), session)
        mapping = mapping.select(F.from_json("value", _PLACE_SCHEMA).alias("p")).select(
            F.col("p.file").alias(_FILE), F.col("p.key").alias(_KNOWN), F.col("p.ordinal").alias(_ORDINAL), F.col("p.task").alias(_TASK)
        )
        joined = data.join(F.broadcast(mapping), _FILE, "left")
        # An inner join would drop the rows of a file whose name Spark spells differently than expected.
        known = F.expr(f"IF({_KNOWN} IS NULL, CAST(raise_error(concat('rows of an unknown file: ', {_FILE})) AS INT), {_KNOWN})")
        return joined.withColumn(_KEY, known)

    def _digest_by_key(self, data: DataFrame, columns: StructType, key: str) -> StageDigests:
        """The digest of each key's rows, and the mixed digest of all rows, in one pass."""
        hashed = data.select(F.expr(f"CAST({key} AS INT)").alias("key"), F.expr(digest.row_hash(_as_json(columns))).alias(_HASH))
        hashed = hashed.withColumn(_MIXED, F.expr(digest.mixed(_HASH, "key")))
        plain = [F.expr(text).alias(name) for name, text in digest.sums(_HASH).items()]
        mixed = [F.expr(text).alias(f"m{name}") for name, text in digest.sums(_MIXED).items()]
        found = hashed.groupBy("key").agg(*plain, *mixed).collect()
        units = {row["key"]: _digest(row.asDict(), "") for row in found}
        return StageDigests(units, add(_digest(row.asDict(), "m") for row in found))


class _Writer:
    """The jobs that write one batch."""

    def __init__(self, rows: SparkRows, session: SparkSession, batch: StageBatch, schema: StructType) -> None:
        self.rows, self.session, self.batch, self.schema = rows, session, batch, schema
        self.writes = 0

    def write_one(self, unit: StageUnit) -> Digest:
        """Write one unit without a shuffle. Each output file is one task that reads the whole files of its bin."""
        for key, value in whole_file_settings().items():
            self.session.conf.set(key, value)
        found = []
        for start in range(0, unit.outputs, _READS_PER_JOB):
            bins = range(start, min(start + _READS_PER_JOB, unit.outputs))
            reads = [self._read_bin(unit, bin_number) for bin_number in bins]
            data = reads[0]
            for read in reads[1:]:
                data = data.union(read)
            found.append(self._write(data, self._directory(unit), unit))
        self._complete()
        return add(found)

    def _read_bin(self, unit: StageUnit, bin_number: int) -> DataFrame:
        paths = [file.path for file, assigned in zip(unit.files, unit.bins) if assigned == bin_number]
        data = self.rows._load(self.session, self.batch.format, paths, self.schema).coalesce(1)
        return data.sortWithinPartitions(*map(_column, self.batch.sort_columns)) if self.batch.sort_columns else data

    def write_many(self) -> Digest:
        """Write many units in one job. Each output file is one task of the shuffle, which keeps the order of files and rows."""
        places = self._places()
        data = self.rows._read_placed(self.session, self.batch.format, self.schema, places)
        tasks = sum(unit.outputs for unit in self.batch.units)
        order = list(map(_column, self.batch.sort_columns)) or [F.col(name) for name in (_ORDINAL, _BLOCK, _ROW)]
        data = data.withColumnRenamed(_KEY, _UNIT).repartition(tasks, F.col(_TASK)).sortWithinPartitions(F.col(_UNIT), *order)
        found = self._write(data.select(*map(_column, self.schema.names), _UNIT), self.batch.target)
        self._complete()
        return found

    def _places(self) -> List[Place]:
        keys = iter(task_keys(sum(unit.outputs for unit in self.batch.units)))
        places = []
        for unit in self.batch.units:
            of_bin = [next(keys) for _ in range(unit.outputs)]
            places += [Place(file.path, unit.number, ordinal, of_bin[unit.bins[ordinal]]) for ordinal, file in enumerate(unit.files)]
        return places

    def _write(self, data: DataFrame, target: str, unit: Optional[StageUnit] = None) -> Digest:
        """Write the rows of one unit, or of many with their unit's number, and observe the digest in the same pass.

        The observation comes last, after any shuffle: before a shuffle, a stage that is rerun would be counted twice.
        """
        watch = Observation()
        hashed = digest.mixed(digest.row_hash(_as_json(self.schema)), str(unit.number) if unit else _UNIT)
        data = data.observe(watch, *(F.expr(text).alias(name) for name, text in digest.sums(hashed).items()))
        writer = data.write if unit else data.write.partitionBy(_UNIT)
        for key, value in writer_options(self.batch.format, self.batch.form, self.batch.codec).items():
            writer = writer.option(key, value)
        writer.format(self.batch.format).mode("append").save(target)
        self.writes += 1
        # The name of the stage's directory is unique in the run, and the number makes the mark unique among its writes.
        mark = f"{self.batch.run}-{names.base(self.batch.target)}-{self.writes}"
        self.rows.stage_files.mark(self.batch.target, mark)
        return _digest(_get(watch), "")

    def _directory(self, unit: StageUnit) -> str:
        return names.join(self.batch.target, f"{_UNIT}={unit.number}")

    def _complete(self) -> None:
        """Ensure exactly the planned number of files: Spark writes no file for an output without rows, so an empty one is added."""
        found = json.loads(self.rows.stage_files.list(self.batch.target))
        for unit in self.batch.units:
            written = found.pop(names.base(self._directory(unit)), [])
            if len(written) > unit.outputs:
                raise RowsError(f"{len(written)} files were written for unit {unit.number} instead of the planned {unit.outputs}")
            for _ in range(unit.outputs - len(written)):
                self._write_empty(unit)
        if found:
            raise RowsError(f"the stage holds more than its units: {', '.join(sorted(found))}")

    def _write_empty(self, unit: StageUnit) -> None:
        empty = self.rows._load(self.session, self.batch.format, [unit.files[0].path], self.schema).where("false").coalesce(1)
        self._write(empty, self._directory(unit), unit)


def add(digests: Iterable[Digest]) -> Digest:
    """The digest of rows counted in parts. Sums wrap at 64 bits, as in Spark."""
    parts = list(digests)
    return Digest(sum(part.rows for part in parts), _wrap(sum(part.high for part in parts)), _wrap(sum(part.low for part in parts)))


def _wrap(number: int) -> int:
    return number & 0xFFFFFFFFFFFFFFFF


def _digest(values: Mapping[str, Any], prefix: str) -> Digest:
    """A digest from aggregates; sums over no rows are NULL."""
    count, high, low = (values.get(prefix + name) or 0 for name in (digest.COUNT, digest.HIGH, digest.LOW))
    return Digest(count, _wrap(high), _wrap(low))


def _get(watch: Observation) -> Dict[str, Any]:
    found: List[Dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: found.append(watch.get), daemon=True)
    waiting.start()
    waiting.join(_METRICS_TIMEOUT_S)
    if not found:
        raise RowsError(f"Spark did not report the digest of what it read within {_METRICS_TIMEOUT_S} s (its event queue may have overrun)")
    return found[0]


def _column(name: str) -> Any:
    return F.col(identifier(name))


def _as_json(schema: StructType) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(schema.json())
    return found


def _by_form(groups: Mapping[int, FooterGroup]) -> Dict[Form, List[int]]:
    """The keys of the groups with files, by form: each form is a job."""
    found: Dict[Form, List[int]] = {}
    for key, group in groups.items():
        if group.rows:
            found.setdefault(group.form, []).append(key)
    return found


def _with_field_ids(schema: StructType, fields: Sequence[ParquetField]) -> StructType:
    """Add the field ids to the metadata of fields: Spark writes ids from there, but does not set them when it reads a file."""
    by_name = {field.name: field for field in fields}
    out = []
    for field in schema.fields:
        physical = by_name[field.name]
        metadata = field.metadata if physical.field_id is None else {**field.metadata, "parquet.field.id": physical.field_id}
        kind = _with_field_ids(field.dataType, physical.children) if isinstance(field.dataType, StructType) else field.dataType
        out.append(StructField(field.name, kind, field.nullable, metadata))
    return StructType(out)


def _unit_footers(said: Mapping[str, Any]) -> UnitFooters:
    groups = []
    for group in said["groups"]:
        lists = {name: tuple(group["form"].get(name, ())) for name in ("keys", "blooms", "undecodable")}
        form = Form(**{**group["form"], **lists})
        columns = {name: ColumnFacts(**facts) for name, facts in group["columns"].items()}
        groups.append(FooterGroup(form, group["rows"], columns))
    return UnitFooters(tuple(groups), tuple((one["path"], one["reason"]) for one in said["unreadable"]))


@contextmanager
def _rows_errors() -> Iterator[None]:
    try:
        yield
    except CALL_ERRORS as error:
        raise RowsError(explain_job_error(error)) from error
    except digest.NoDigestError as error:
        raise RowsError(str(error)) from error
