"""Rewrites and compares files as rows, by Spark SQL: where they are to be sorted, and to show the rows that differ.

Files are always read by name and with their own schema. It writes only below a stage's target and never
accesses a table or its location.
"""

from __future__ import annotations

import json
from functools import cached_property, reduce
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from hivekeeper import names
from hivekeeper.cluster.differences import Side, find_differences
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.hash_partitioning import task_keys
from hivekeeper.cluster.nanoseconds import NanosecondChecks, find_checks
from hivekeeper.cluster.session import GUARDS, Where
from hivekeeper.cluster.writer_settings import session_settings, whole_file_settings, writer_options
from hivekeeper.model import Differences, FooterGroup, Form, StageBatch, StageOutput, StageUnit
from hivekeeper.plan.fidelity import refuse_as_rows
from hivekeeper.ports import RowsError
from hivekeeper.quoting import identifier
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
_BY_NAME = {"__globPaths__": "false", "recursiveFileLookup": "true", "mergeSchema": "false"}


class Place(NamedTuple):
    """A file, and the values added to its rows: the key of its unit or group, its position there, the task that writes them."""

    file: str
    key: int
    ordinal: int = 0
    task: int = 0


class SqlRows:
    """The jobs that make rows of files. Each call uses a session of its own, so the settings of forms never mix."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    @cached_property
    def stage_files(self) -> Any:
        return self.gateway.helper("StageFiles", self.gateway.hadoop_conf)

    def write(self, batch: StageBatch) -> None:
        """Write all outputs of a batch, which have one form. Raises RowsError if they are not those that were planned."""
        form = batch.first.form
        session = self._session(batch.format, form)
        schema = self._schema(session, batch.format, form, batch.first.files[0].path)
        job = _Writer(self, session, batch, schema)
        if len(batch.units) == 1:
            job.write_one(batch.units[0])
        else:
            job.write_many()

    def differences(self, format: str, one: Sequence[FooterGroup], other: Sequence[FooterGroup], limit: int) -> Differences:
        """`ports.Rows.differences`."""
        forms = [group.form for group in (*one, *other) if group.rows]
        if not forms:
            return Differences(0, 0)
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
        """`ports.Rows.hazards`."""
        units = list(groups)
        reasons: Dict[str, str] = {}
        for form, members in _by_form([[groups[unit]] for unit in units]).items():
            checks = find_checks(format, form)
            if checks.refusal:
                reasons.update({units[at]: checks.refusal for at, _ in members})
            elif checks.columns:
                places = [Place(path, at) for at, group in members for path in group.rows]
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
        why = refuse_as_rows(form)
        if why:
            raise RowsError(why)
        schema = self._read_schema(session, format, path)
        clash = [field.name for field in schema.fields if field.name.lower().startswith(_UNIT)]
        if clash:
            raise RowsError(f"the column {clash[0]} has a name that Hivekeeper itself uses")
        return _with_field_ids(schema, parse_parquet(form.schema)) if format == PARQUET else schema

    def _read_schema(self, session: SparkSession, format: str, path: str) -> StructType:
        """The schema that Spark reads from one file. The file may have changed since its footer was judged, and both Spark and PySpark run
        what a user-defined type in it names: Spark is given the very footer that was checked, and Python a schema without such types.
        """
        reader = self._reader(session, format)
        if format == PARQUET:
            parquet = self.gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
            converter = parquet.ParquetToSparkSchemaConverter(session._jsparkSession.sessionState().conf())
            footer = self._row_schema.footer(path)
            reader = reader.schema(parquet.ParquetFileFormat.readSchemaFromFooter(footer, converter))
        data = reader.load(self.gateway.strings([path]))
        return StructType.fromJson(json.loads(self._row_schema.requireBuiltIn(data.schema().json())))

    @cached_property
    def _row_schema(self) -> Any:
        return self.gateway.helper("RowSchema", self.gateway.hadoop_conf)

    def _reader(self, session: SparkSession, format: str) -> Any:
        """Spark's own reader, of the JVM."""
        reader = session._jsparkSession.read().format(format)
        for key, value in _BY_NAME.items():
            reader = reader.option(key, value)
        return reader

    def _load(self, session: SparkSession, format: str, paths: Sequence[str], schema: Union[StructType, str]) -> DataFrame:
        ddl_or_json = schema if isinstance(schema, str) else session._jsparkSession.parseDataType(schema.json())
        return DataFrame(self._reader(session, format).schema(ddl_or_json).load(self.gateway.strings(paths)), session)

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


class _Writer:
    """The jobs that write one batch."""

    def __init__(self, rows: SqlRows, session: SparkSession, batch: StageBatch, schema: StructType) -> None:
        self.rows, self.session, self.batch, self.schema = rows, session, batch, schema
        self.sort_columns = _find_columns(batch.sort_columns, schema)
        self.writes = 0

    def write_one(self, unit: StageUnit) -> None:
        """Write one unit without a shuffle. Each output file is one task that reads the whole files of its bin."""
        for key, value in whole_file_settings().items():
            self.session.conf.set(key, value)
        for start in range(0, len(unit.outputs), _READS_PER_JOB):
            reads = [self._read(output) for output in unit.outputs[start : start + _READS_PER_JOB]]
            self._write(reduce(DataFrame.union, reads), self._directory(unit), unit)
        self._complete()

    def _read(self, output: StageOutput) -> DataFrame:
        paths = [file.path for file in output.files]
        data = self.rows._load(self.session, self.batch.format, paths, self.schema).coalesce(1)
        return data.sortWithinPartitions(*map(_column, self.sort_columns)) if self.sort_columns else data

    def write_many(self) -> None:
        """Write many units in one job. Each output file is one task of the shuffle, which keeps the order of files and rows."""
        places = self._places()
        data = self.rows._read_placed(self.session, self.batch.format, self.schema, places)
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
            places += [Place(file.path, unit.number, ordinal, key) for ordinal, (file, key) in enumerate(of_unit)]
        return places

    def _write(self, data: DataFrame, target: str, unit: Optional[StageUnit] = None) -> None:
        """Write the rows of one unit, or of many with their unit's number."""
        writer = data.write if unit else data.write.partitionBy(_UNIT)
        for key, value in writer_options(self.batch.format, self.batch.first.form, self.batch.first.codec).items():
            writer = writer.option(key, value)
        writer.format(self.batch.format).mode("append").save(target)
        self.writes += 1
        # The name of the stage's directory is unique in the run, and the number makes the mark unique among its writes.
        mark = f"{self.batch.run}-{names.base(self.batch.target)}-{self.writes}"
        self.rows.stage_files.mark(self.batch.target, mark)

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
        empty = self.rows._load(self.session, self.batch.format, [unit.files[0].path], self.schema).where("false").coalesce(1)
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


def _column(name: str) -> Any:
    return F.col(identifier(name))


def _by_form(sets: Sequence[Sequence[FooterGroup]]) -> Dict[Form, List[Tuple[int, FooterGroup]]]:
    """The groups with files, each with the index of its set, by form: each form is a job."""
    found: Dict[Form, List[Tuple[int, FooterGroup]]] = {}
    for at, groups in enumerate(sets):
        for group in groups:
            if group.rows:
                found.setdefault(group.form, []).append((at, group))
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
