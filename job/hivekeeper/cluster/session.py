"""Opens the Spark session and fixes every setting that could change what is read or written.

Whatever a site, a user or a running context sets, our settings win or the start is refused. It never touches a
table; `metastore.py` makes the first call to the metastore.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple

from hivekeeper.errors import Unusable, UsageError
from hivekeeper.reasons import Code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Where(Enum):
    """Which configuration a setting is read from."""

    CORE = "SparkConf, read when the context starts"
    SESSION = "the session's SQL configuration"
    HADOOP = "the Hadoop configuration of jobs, where the session's SQL configuration wins"


class Guard(NamedTuple):
    key: str
    value: str
    where: Where
    reason: str


GUARDS = (
    # Reading: every file or an error.
    Guard("spark.files.ignoreCorruptFiles", "false", Where.CORE, "a damaged file would read as no rows"),
    Guard("spark.files.ignoreMissingFiles", "false", Where.CORE, "a missing file would read as no rows"),
    Guard("spark.sql.files.ignoreCorruptFiles", "false", Where.SESSION, "a damaged file would read as no rows"),
    Guard("spark.sql.files.ignoreMissingFiles", "false", Where.SESSION, "a missing file would read as no rows"),
    Guard("spark.sql.sources.useV1SourceList", "avro,csv,json,kafka,orc,parquet,text", Where.SESSION, "the proved reader and writer"),
    Guard("spark.sql.parquet.aggregatePushdown", "false", Where.SESSION, "reading back means the rows, not the footers"),
    Guard("spark.sql.orc.aggregatePushdown", "false", Where.SESSION, "reading back means the rows, not the footers"),
    # Reading: each file by its own schema, nothing added and nothing guessed.
    Guard("spark.sql.parquet.mergeSchema", "false", Where.SESSION, "files of one form share one schema"),
    Guard("spark.sql.orc.mergeSchema", "false", Where.SESSION, "files of one form share one schema"),
    Guard("spark.sql.parquet.respectSummaryFiles", "false", Where.SESSION, "a summary file may describe other files"),
    Guard("spark.sql.caseSensitive", "true", Where.SESSION, "columns that differ only in case are two columns"),
    Guard("spark.sql.parquet.fieldId.read.enabled", "false", Where.SESSION, "columns are found by their own names"),
    Guard("spark.sql.parquet.fieldId.write.enabled", "true", Where.SESSION, "field ids are kept"),
    Guard("spark.sql.parquet.binaryAsString", "false", Where.SESSION, "bytes stay bytes"),
    Guard("spark.sql.parquet.int96AsTimestamp", "true", Where.SESSION, "INT96 is a timestamp"),
    Guard("spark.sql.parquet.int96TimestampConversion", "false", Where.SESSION, "values are kept as stored, whoever wrote them"),
    Guard("spark.sql.parquet.inferTimestampNTZ.enabled", "true", Where.SESSION, "timestamps without zone stay so"),
    Guard("spark.sql.legacy.parquet.nanosAsLong", "false", Where.SESSION, "nanoseconds would become plain numbers"),
    Guard("spark.sql.readSideCharPadding", "false", Where.SESSION, "values are not padded"),
    Guard("spark.sql.legacy.charVarcharAsString", "false", Where.SESSION, "char and varchar are seen, and refused"),
    Guard("spark.sql.orc.impl", "native", Where.SESSION, "the Hive reader converts through text and zone"),
    Guard("spark.sql.sources.partitionColumnTypeInference.enabled", "true", Where.SESSION, "the stage's unit column is a number"),
    Guard("spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION", Where.SESSION, "ancient dates are refused, not shifted"),
    Guard("spark.sql.parquet.int96RebaseModeInWrite", "EXCEPTION", Where.SESSION, "ancient dates are refused, not shifted"),
    Guard("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION", Where.SESSION, "ancient dates are refused, not shifted"),
    Guard("spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION", Where.SESSION, "ancient dates are refused, not shifted"),
    # Writing: the plain committer, version 1, and only data files.
    Guard("spark.speculation", "false", Where.CORE, "two attempts may leave one task's file twice"),
    Guard(
        "spark.sql.sources.commitProtocolClass",
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        Where.SESSION,
        "the proved committer",
    ),
    Guard(
        "spark.sql.sources.outputCommitterClass",
        "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
        Where.SESSION,
        "the proved committer",
    ),
    Guard(
        "spark.sql.parquet.output.committer.class",
        "org.apache.parquet.hadoop.ParquetOutputCommitter",
        Where.SESSION,
        "the proved committer",
    ),
    Guard("mapreduce.fileoutputcommitter.algorithm.version", "1", Where.HADOOP, "version 2 exposes a failed attempt's files"),
    Guard("mapreduce.fileoutputcommitter.cleanup.skipped", "false", Where.HADOOP, "a stage holds no leftovers"),
    Guard("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false", Where.HADOOP, "_SUCCESS would be moved into the table"),
    Guard("parquet.summary.metadata.level", "NONE", Where.HADOOP, "_metadata would describe files that later leave"),
    Guard("parquet.writer.version", "v1", Where.HADOOP, "older readers cannot read version 2 pages"),
    Guard("spark.sql.sources.partitionOverwriteMode", "STATIC", Where.SESSION, "dynamic mode writes through a staging directory"),
    Guard("spark.sql.files.maxRecordsPerFile", "0", Where.SESSION, "files are as many as were planned"),
    Guard("spark.sql.parquet.writeLegacyFormat", "false", Where.SESSION, "lists keep their shape; a form may override it"),
    # Metadata: nothing is written to the metastore behind our back.
    Guard("spark.sql.hive.caseSensitiveInferenceMode", "NEVER_INFER", Where.SESSION, "INFER_AND_SAVE alters the table"),
    Guard("spark.sql.statistics.size.autoUpdate.enabled", "false", Where.SESSION, "statistics are set by us alone"),
    Guard("spark.sql.statistics.updatePartitionStatsInAnalyzeTable.enabled", "false", Where.SESSION, "statistics are set by us alone"),
    # Text of statements: quoting.py relies on these.
    Guard("spark.sql.parser.escapedStringLiterals", "false", Where.SESSION, "back-slashes in literals are escapes"),
    Guard("spark.sql.variable.substitute", "false", Where.SESSION, "a value that holds ${…} is a value"),
    # Speed.
    Guard("spark.sql.sources.parallelPartitionDiscovery.parallelism", "8", Where.SESSION, "paths by name would cost one task each"),
)


# Defaults of a session. They are not guards, because no row depends on them.
DEFAULTS = {
    # A task that runs out of memory or stack on one file would end the whole process (in local mode the driver's own). YARN still kills an
    # executor that runs out of memory.
    "spark.executor.killOnFatalError.depth": "0",
    # The same as in bin/hivekeeper.
    "spark.ui.enabled": "false",
}
# Local mode is one process, in which Spark creates the secret itself.
LOCAL_DEFAULTS = {"spark.authenticate": "true"}


def open_session(options: Mapping[str, str], log_level: str = "WARN") -> SparkSession:
    """The session of this process, with Hive support; `options` are Spark's own, and the guards override them."""
    builder_class = _find_builder()
    spark = _start(builder_class(), {**options, **_configuration()})
    guard_session(spark)
    _require_guards(spark)
    spark.sparkContext.setLogLevel(log_level)
    return spark


def guard_session(spark: SparkSession) -> None:
    """Fix the settings of one session, whatever it inherited from its context."""
    for guard in GUARDS:
        if guard.where is not Where.CORE:
            spark.conf.set(guard.key, guard.value)


def _configuration() -> Dict[str, str]:
    """All guards in the form of a SparkConf, so that every session of a new context starts with them."""
    return {f"spark.hadoop.{guard.key}" if guard.where is Where.HADOOP else guard.key: guard.value for guard in GUARDS}


def _find_builder() -> type:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Unusable(
            f"Spark's Python package cannot be imported ({error})",
            next="run it through bin/hivekeeper, or with spark-submit; Spark 3.3 takes Python up to 3.12: set HIVEKEEPER_PYTHON",
        ) from error
    return SparkSession.Builder


def _start(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    from hivekeeper.cluster.java_classes import compiled
    from hivekeeper.cluster.java_errors import CALL_ERRORS, explain_unusable, java_causes

    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        # Java first, so that our classes are compiled while Spark starts.
        compiled(_start_java(settings))
        for key, value in _find_defaults(settings).items():
            builder = builder.config(key, value)
        return builder.enableHiveSupport().getOrCreate()
    except CALL_ERRORS as error:
        trouble = explain_unusable(java_causes(error))
        what = f"Spark did not start: {trouble.what}"
        if trouble.configured:
            raise UsageError(what, next=trouble.next) from error
        raise Unusable(what, next=trouble.next, code=trouble.code or Code.SPARK_NOT_STARTED) from error
    except (RuntimeError, OSError) as error:
        # PySpark starts Java through a shell script and sees only that it ended.
        raise Unusable(f"Spark's Java process did not start ({error})", code=Code.SPARK_NOT_STARTED, next=_NEXT_JAVA) from error


def _find_defaults(settings: Mapping[str, str]) -> Dict[str, str]:
    """The defaults that nothing overrides: not the caller, spark-submit or spark-defaults.conf. Java must be running."""
    from pyspark import SparkConf

    given = SparkConf().setAll(list(settings.items()))
    local = str(given.get("spark.master", "local")).startswith("local")
    defaults = {**DEFAULTS, **(LOCAL_DEFAULTS if local else {})}
    return {key: value for key, value in defaults.items() if not given.contains(key)}


def _start_java(settings: Mapping[str, str]) -> Any:
    """PySpark's gateway to the JVM; if none runs yet, it is started as the session's builder would."""
    from pyspark import SparkConf, SparkContext

    if SparkContext._gateway is None:
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))
    return SparkContext._gateway


_NEXT_JAVA = "its own message is above: mostly JAVA_HOME (Java 8, 11 or 17; for Spark 4: 17 or 21) or HADOOP_CONF_DIR is not set"


def _require_guards(spark: SparkSession) -> None:
    """Raise Unusable if a context that was already running has other settings: it keeps those it started with."""
    wrong: List[str] = []
    core = spark.sparkContext.getConf()
    for guard in GUARDS:
        found = core.get(guard.key, "false") if guard.where is Where.CORE else spark.conf.get(guard.key, "")
        if found is None or found.lower() != guard.value.lower():
            wrong.append(f"{guard.key}={found}")
    if spark.conf.get("spark.sql.catalogImplementation", "") != "hive":
        wrong.append("spark.sql.catalogImplementation=in-memory")
    if wrong:
        raise Unusable(
            f"a Spark context is already running, with settings that could lose rows: {', '.join(wrong)}",
            next="start it in a process of its own, through bin/hivekeeper or spark-submit",
        )
