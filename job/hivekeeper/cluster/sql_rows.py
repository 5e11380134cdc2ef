"""Rewrites and compares files as rows, by Spark SQL: where they are to be sorted, and to show the rows that differ.

Files are always read one by one and with their own schema: by their ids where HDFS finds them so, and no more rows than another reader has
counted, because whoever may write to a directory can put another file there meanwhile. It writes only below a stage's target and never
accesses a table or its location.
"""

from __future__ import annotations

import json
import re
import secrets
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from hivekeeper import names
from hivekeeper.cluster.differences import Side, find_differences
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.hash_partitioning import task_keys
from hivekeeper.cluster.java_errors import CALL_ERRORS, explain_job_error
from hivekeeper.cluster.nanoseconds import NanosecondChecks, find_checks
from hivekeeper.cluster.physical_copy import as_asked
from hivekeeper.cluster.session import GUARDS, Where
from hivekeeper.cluster.writer_settings import session_settings, whole_file_settings, writer_options
from hivekeeper.model import Differences, FileInfo, FooterGroup, Form, StageBatch, StageOutput, StageUnit
from hivekeeper.plan.fidelity import refuse_as_rows
from hivekeeper.ports import RowsError
from hivekeeper.quoting import identifier, literal
from hivekeeper.schemas import PARQUET, ParquetField, parse_parquet

# The most reads (one per output file) in one plan; more make planning slow.
_READS_PER_JOB = 40
# Our sessions set them for jobs that write, or return few rows.
_FOR_LARGE_SHUFFLES = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")

_UNIT = names.UNIT_COLUMN
# All our columns have a common prefix; a data column with this prefix is refused.
_FILE, _KNOWN, _KEY, _ORDINAL, _TASK, _BLOCK, _ROW, _HASH = (
    f"{names.UNIT_COLUMN}_{suffix}" for suffix in ("file", "known", "key", "ordinal", "task", "block", "row", "hash")
)
_PLACE_SCHEMA = "struct<file: string, key: int, ordinal: int, task: int>"
# Also what PySpark raises for a type of Spark's that it does not know.
_SCHEMA_ERRORS: Tuple[Type[Exception], ...] = (*CALL_ERRORS, ValueError, TypeError, LookupError, AttributeError)
_BY_ID = re.compile(r"(?:\w+://[^/\s]*)?/\.reserved/\.inodes/(\d+)")
_MOST_ROWS = (1 << 63) - 1
_BY_NAME = {"__globPaths__": "false", "recursiveFileLookup": "true", "mergeSchema": "false"}


class Place(NamedTuple):
    """A file, by the path at which Spark reads it, its length, and the values added to its rows: the key of its unit or group, its position
    there, the task that writes them.
    """

    file: str
    length: int
    key: int = 0
    ordinal: int = 0
    task: int = 0


class Sources:
    """The files that a job reads, and the paths at which Spark does."""

    def __init__(self, files: Sequence[FileInfo], paths: Sequence[str]) -> None:
        self._paths = {file.path: path for file, path in zip(files, paths)}
        self._by_id = {str(file.file_id): file.path for file in files}

    def place(self, file: FileInfo, key: int = 0, ordinal: int = 0, task: int = 0) -> Place:
        return Place(self._paths[file.path], file.length, key, ordinal, task)

    def named(self, message: str) -> str:
        """With the files' own paths."""
        return _BY_ID.sub(lambda found: self._by_id.get(found[1], found[0]), message)


class SqlRows:
    """The jobs that make rows of files. Each call uses a session of its own, so the settings of forms never mix."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @cached_property
    def stage_files(self) -> Any:
        return self.gateway.helper("StageFiles", self.gateway.hadoop_conf)

    def write(self, batch: StageBatch, rows: int) -> None:
        """Write all outputs of a batch, which have one form and so many rows. Raises RowsError if they are not those that were planned."""
        form = batch.first.form
        session = self._session(batch.format, form)
        with self._sources([file for unit in batch.units for file in unit.files]) as sources:
            schema = self._schema(session, batch.format, form, batch.first.files[0])
            job = _Writer(self, session, batch, schema, sources, rows)
            if len(batch.units) == 1:
                job.write_one(batch.units[0])
            else:
                job.write_many()

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        """`ports.Rows.differences`."""
        forms = [group.form for group in (*one, *other) if group.row_count]
        if not forms:
            return Differences(0, 0)
        # One session can read all forms: their settings differ only for writing.
        session = self._session(format, forms[0])
        for key in _FOR_LARGE_SHUFFLES:
            session.conf.set(key, str(self.gateway.spark.conf.get(key)))
        with self._sources([file for group in (*one, *other) for file in group.counted_files]) as sources:
            return find_differences(self._side(session, format, one, sources), self._side(session, format, other, sources), limit)

    def _side(self, session: SparkSession, format: str, groups: Sequence[FooterGroup], sources: Sources) -> Side:
        frames = []
        for group in groups:
            if group.row_count:
                files = group.counted_files
                schema = self._schema(session, format, group.form, files[0])
                frames.append(self._load(session, format, list(map(sources.place, files)), schema, group.row_count))
        return Side(frames, sum(group.row_count for group in groups))

    def hazards(self, format: str, groups: Mapping[str, FooterGroup]) -> Mapping[str, str]:
        """`ports.Rows.hazards`."""
        units = list(groups)
        reasons: Dict[str, str] = {}
        for form, members in _by_form([[groups[unit]] for unit in units]).items():
            checks = find_checks(format, form)
            unfit = refuse_as_rows(form)
            refusal = unfit.what if unfit else checks.refusal
            if refusal:
                reasons.update({units[at]: refusal for at, _ in members})
            elif checks.columns:
                found = self._find_nanoseconds(format, form, checks, dict(members))
                reasons.update({units[at]: reason for at, reason in found.items()})
        return reasons

    def _find_nanoseconds(self, format: str, form: Form, checks: NanosecondChecks, groups: Mapping[int, FooterGroup]) -> Dict[int, str]:
        session = self._session(format, form)
        # The vectorized reader does not give INT96 as bytes.
        session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
        files = [(file, at) for at, group in groups.items() for file in group.counted_files]
        found_any = [F.max(F.expr(check)).alias(f"c{index}") for index, (_, check) in enumerate(checks.columns)]
        with self._sources([file for file, _ in files]) as sources:
            places = [sources.place(file, at) for file, at in files]
            data = self._read_placed(session, format, checks.schema, places, sum(group.row_count for group in groups.values()))
            rows = data.groupBy(_KEY).agg(*found_any).collect()
        found = {}
        for row in rows:
            guilty = [name for index, (name, _) in enumerate(checks.columns) if row[f"c{index}"]]
            if guilty:
                found[row[_KEY]] = f"the timestamps of {', '.join(guilty)} have nanoseconds; Spark keeps microseconds"
        return found

    # ---- what all jobs share

    @contextmanager
    def _sources(self, files: Sequence[FileInfo]) -> Iterator[Sources]:
        """The files of a job, whose errors name their own paths."""
        sources = Sources(files, json.loads(self.stage_files.exactPaths(json.dumps(list(map(as_asked, files))))))
        try:
            yield sources
        except CALL_ERRORS as error:
            raise RowsError(sources.named(explain_job_error(error))) from error

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

    def _schema(self, session: SparkSession, format: str, form: Form, file: FileInfo) -> StructType:
        """The schema that Spark reads from one file of the form, plus the field ids that it would drop."""
        why = refuse_as_rows(form)
        if why:
            raise RowsError(why.what)
        schema = self._read_schema(session, format, file)
        clash = [field.name for field in schema.fields if field.name.lower().startswith(_UNIT)]
        if clash:
            raise RowsError(f"the column {clash[0]} has a name that Hivekeeper itself uses")
        return _with_field_ids(schema, parse_parquet(form.schema)) if format == PARQUET else schema

    def _read_schema(self, session: SparkSession, format: str, file: FileInfo) -> StructType:
        """The schema that Spark makes of one file's footer. Another file may be there since it was judged, and both Spark and PySpark run
        what it names: Spark is given the very footer that was checked, and Python a schema that names no code.
        """
        asked, sources = json.dumps(as_asked(file)), self.gateway.jvm.org.apache.spark.sql.execution.datasources
        try:
            if format == PARQUET:
                converter = sources.parquet.ParquetToSparkSchemaConverter(session._jsparkSession.sessionState().conf())
                schema = sources.parquet.ParquetFileFormat.readSchemaFromFooter(self._row_schema.footer(asked), converter)
            else:
                schema = sources.orc.OrcUtils.toCatalystSchema(self._row_schema.orcType(asked))
            return StructType.fromJson(json.loads(self._row_schema.requireBuiltIn(schema.json())))
        except _SCHEMA_ERRORS as error:
            raise RowsError(f"{file.path}: {explain_job_error(error)}") from error

    @cached_property
    def _row_schema(self) -> Any:
        return self.gateway.helper("RowSchema", self.gateway.hadoop_conf)

    def _reader(self, session: SparkSession, format: str) -> Any:
        """Spark's own reader, of the JVM."""
        reader = session._jsparkSession.read().format(format)
        for key, value in _BY_NAME.items():
            reader = reader.option(key, value)
        return reader

    def _load(
        self, session: SparkSession, format: str, places: Sequence[Place], schema: Union[StructType, str], row_count: int
    ) -> DataFrame:
        """The rows of files, which have no more than so many together: a task that reads more fails."""
        ddl_or_json = schema if isinstance(schema, str) else session._jsparkSession.parseDataType(schema.json())
        read = self._reader(session, format).schema(ddl_or_json).load(self.gateway.strings([place.file for place in places]))
        listed = read.queryExecution().analyzed().relation().location().allFiles()
        self.stage_files.requireListed(listed, json.dumps({place.file: place.length for place in places}))
        return DataFrame(read, session).where(_no_more_than(row_count))

    def _read_placed(
        self, session: SparkSession, format: str, schema: Union[StructType, str], places: Sequence[Place], row_count: int
    ) -> DataFrame:
        """The rows of many files, each with the key, ordinal and task of its file. A row of an unknown file fails the job."""
        data = self._load(session, format, places, schema, row_count)
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


class _Writer:
    """The jobs that write one batch."""

    def __init__(
        self, rows: SqlRows, session: SparkSession, batch: StageBatch, schema: StructType, sources: Sources, row_count: int
    ) -> None:
        self.rows, self.session, self.batch, self.schema = rows, session, batch, schema
        self.sources, self.row_count = sources, row_count
        self.sort_columns = _find_columns(batch.sort_columns, schema)

    def write_one(self, unit: StageUnit) -> None:
        """Write one unit without a shuffle. Each output file is one task that reads the whole files of its bin."""
        for key, value in whole_file_settings().items():
            self.session.conf.set(key, value)
        for start in range(0, len(unit.outputs), _READS_PER_JOB):
            reads = [self._read(output) for output in unit.outputs[start : start + _READS_PER_JOB]]
            self._write(reduce(DataFrame.union, reads), self._directory(unit), unit)
        self._complete()

    def _read(self, output: StageOutput) -> DataFrame:
        data = self._load(output.files).coalesce(1)
        return data.sortWithinPartitions(*map(_column, self.sort_columns)) if self.sort_columns else data

    def _load(self, files: Sequence[FileInfo]) -> DataFrame:
        # One output's files cannot have more rows than all.
        places = list(map(self.sources.place, files))
        return self.rows._load(self.session, self.batch.format, places, self.schema, self.row_count)

    def write_many(self) -> None:
        """Write many units in one job. Each output file is one task of the shuffle, which keeps the order of files and rows."""
        places = self._places()
        data = self.rows._read_placed(self.session, self.batch.format, self.schema, places, self.row_count)
        tasks = sum(len(unit.outputs) for unit in self.batch.units)
        order = list(map(_column, self.sort_columns)) or [F.col(name) for name in (_ORDINAL, _BLOCK, _ROW)]
        data = data.withColumnRenamed(_KEY, _UNIT).repartition(tasks, F.col(_TASK)).sortWithinPartitions(F.col(_UNIT), *order)
        self._write(data.select(*map(_column, self.schema.names), _UNIT), self.batch.target)
        self._complete()

    def _places(self) -> List[Place]:
        keys = iter(task_keys(sum(len(unit.outputs) for unit in self.batch.units)))
        places: List[Place] = []
        for unit in self.batch.units:
            of_unit = [(file, key) for output, key in zip(unit.outputs, keys) for file in output.files]
            places += [self.sources.place(file, unit.number, ordinal, key) for ordinal, (file, key) in enumerate(of_unit)]
        return places

    def _write(self, data: DataFrame, target: str, unit: Optional[StageUnit] = None) -> None:
        """Write the rows of one unit, or of many with their unit's number."""
        writer = data.write if unit else data.write.partitionBy(_UNIT)
        for key, value in writer_options(self.batch.format, self.batch.first.form, self.batch.first.codec).items():
            writer = writer.option(key, value)
        writer.format(self.batch.format).mode("append").save(target)
        self.rows.stage_files.mark(self.batch.target, names.stage_mark(self.batch.run, self.batch.target, secrets.token_hex(16)))

    def _directory(self, unit: StageUnit) -> str:
        return names.join(self.batch.target, f"{_UNIT}={unit.number}")

    def _complete(self) -> None:
        """Ensure exactly the planned number of files: Spark writes no file for an output without rows, so an empty one is added."""
        found = json.loads(self.rows.stage_files.list(self.batch.target))
        for unit in self.batch.units:
            written = found.pop(names.base(self._directory(unit)), [])
            if len(written) > len(unit.outputs):
                raise RowsError(f"{len(written)} files were written for unit {unit.number} instead of the planned {len(unit.outputs)}")
            for _ in range(len(unit.outputs) - len(written)):
                self._write_empty(unit)
        if found:
            raise RowsError(f"the stage holds more than its units: {', '.join(sorted(found))}")

    def _write_empty(self, unit: StageUnit) -> None:
        empty = self._load(unit.files[:1]).where("false").coalesce(1)
        self._write(empty, self._directory(unit), unit)


def _find_columns(wanted: Sequence[str], schema: StructType) -> List[str]:
    """The columns to sort by, in the spelling of the files: Hive's names have no case."""
    found = []
    for name in wanted:
        exact = [column for column in schema.names if column == name]
        matches = exact or [column for column in schema.names if column.lower() == name.lower()]
        if len(matches) != 1:
            raise RowsError(f"the files have {len(matches) or 'no'} columns {name} to sort by")
        found += matches
    return found


def _no_more_than(row_count: int) -> Any:
    """True for each row, and an error at the first one beyond so many of a task. A file may claim billions of rows in a few bytes, and
    nothing else ends a job that reads them. Spark neither drops a filter that is not deterministic nor moves it to another place.
    """
    before = "monotonically_increasing_id() - shiftleft(CAST(spark_partition_id() AS BIGINT), 33)"
    text = literal(f"more rows were read than the {row_count} that were counted")
    return F.expr(f"IF({before} < {min(row_count, _MOST_ROWS)}L, TRUE, CAST(raise_error({text}) AS BOOLEAN))")


def _column(name: str) -> Any:
    return F.col(identifier(name))


def _by_form(sets: Sequence[Sequence[FooterGroup]]) -> Dict[Form, List[Tuple[int, FooterGroup]]]:
    """The groups with rows, each with the index of its set, by form: each form is a job."""
    found: Dict[Form, List[Tuple[int, FooterGroup]]] = {}
    for at, groups in enumerate(sets):
        for group in groups:
            if group.row_count:
                found.setdefault(group.form, []).append((at, group))
    return found


def _with_field_ids(schema: StructType, fields: Sequence[ParquetField]) -> StructType:
    """Add the field ids to the metadata of fields: Spark writes ids from there, but does not set them when it reads a file."""
    by_name = {field.name: field for field in fields}
    if sorted(schema.names) != sorted(field.name for field in fields):
        # Another file may be there since the form was judged.
        raise RowsError("its row metadata names other columns than the file has")
    out = []
    for field in schema.fields:
        physical = by_name[field.name]
        metadata = field.metadata if physical.field_id is None else {**field.metadata, "parquet.field.id": physical.field_id}
        kind = _with_field_ids(field.dataType, physical.children) if isinstance(field.dataType, StructType) else field.dataType
        out.append(StructField(field.name, kind, field.nullable, metadata))
    return StructType(out)
