"""Fixes every setting of Spark that could change what is read or written.

Whatever a site, a user or a running context sets, our settings win or the start is refused.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Dict, NamedTuple

from hivekeeper.errors import Unusable, UsageError
from hivekeeper.reasons import Code

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

HDFS_CLIENT, OWN_HDFS_CLIENT = "fs.hdfs.impl", "org.apache.hadoop.hdfs.DistributedFileSystem"
# Which metastore Spark SQL uses: read when the context starts.
CATALOG, HIVE = "spark.sql.catalogImplementation", "hive"


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
        # One that a format makes is told it by Hadoop's configuration, which replaces variables in it.
        "the proved committer, and Spark tells it the path itself",
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
    # A task that runs out of memory or stack on one file would end the whole process (in local mode the driver's own).
    "spark.executor.killOnFatalError.depth": "0",
    # On YARN, Spark gives executors `kill %p` here, unless they have the option (YarnSparkHadoopUtil). A thread of Spark's own that runs
    # out of memory still ends its process.
    "spark.executor.defaultJavaOptions": "-XX:OnOutOfMemoryError=true",
    # The same as in bin/hivekeeper.
    "spark.ui.enabled": "false",
}
# Local mode is one process, in which Spark creates the secret itself.
LOCAL_DEFAULTS = {"spark.authenticate": "true"}


def configuration() -> Dict[str, str]:
    """All guards in the form of a SparkConf, so that every session of a new context starts with them."""
    return {f"spark.hadoop.{guard.key}" if guard.where is Where.HADOOP else guard.key: guard.value for guard in GUARDS}


def defaults(conf: SparkConf) -> Dict[str, str]:
    """The defaults that nothing overrides: not the caller, spark-submit or spark-defaults.conf."""
    local = str(conf.get("spark.master", "local")).startswith("local")
    wanted = {**DEFAULTS, **(LOCAL_DEFAULTS if local else {})}
    return {key: value for key, value in wanted.items() if not conf.contains(key)}


def require_guarded(context: SparkContext) -> None:
    """Raise Unusable if a context that was already running has other settings: it keeps those it started with."""
    conf = context.getConf()
    found = {guard.key: conf.get(guard.key, "false") for guard in GUARDS if guard.where is Where.CORE}
    wrong = [f"{guard.key}={found[guard.key]}" for guard in GUARDS if guard.key in found and str(found[guard.key]).lower() != guard.value]
    if conf.get(CATALOG, "in-memory") != HIVE:
        wrong.append(f"{CATALOG}=in-memory")
    if wrong:
        raise Unusable(
            f"a Spark context is already running, with settings that could lose rows: {', '.join(wrong)}",
            next="start it in a process of its own, through bin/hivekeeper or spark-submit",
        )


def require_own_client(hadoop_conf: Any) -> None:
    """Raise UsageError if a Hadoop configuration has another client for HDFS than Hadoop's own, which finds a path on the server it names.

    Those that show mounts at `hdfs:` (ViewDistributedFileSystem, ViewFileSystemOverloadScheme) list and lock by the ids and calls of one
    NameNode, and read and rename on another one.
    """
    client = str(hadoop_conf.getTrimmed(HDFS_CLIENT, OWN_HDFS_CLIENT))
    if client != OWN_HDFS_CLIENT:
        raise UsageError(
            f"{HDFS_CLIENT} of the Hadoop configuration is {client}: a path at hdfs:// may then be on another NameNode than it names",
            code=Code.OTHER_HDFS_CLIENT,
            next="give tables behind mounts locations at viewfs://; once every location at hdfs:// is on the NameNode that it names, set "
            f"spark.hadoop.{HDFS_CLIENT} to {OWN_HDFS_CLIENT} under spark.extra_conf",
        )


def open_session() -> SparkSession:
    """The session of the context that runs, with Hive support, for what needs Spark SQL; the guards override what it inherited."""
    from pyspark.sql import SparkSession

    spark = SparkSession.Builder().enableHiveSupport().getOrCreate()
    guard_session(spark)
    return spark


def guard_session(spark: SparkSession) -> None:
    """Fix the settings of one session, whatever it inherited from its context."""
    for guard in GUARDS:
        if guard.where is not Where.CORE:
            spark.conf.set(guard.key, guard.value)
