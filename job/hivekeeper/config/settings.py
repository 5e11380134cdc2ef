"""All settings, and the frozen values the program uses. Sizes are bytes, times are milliseconds.

Pure. To add a setting, add a line here and run `make generated`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from hivekeeper.config.definitions import Alias, Flag, Setting, setting, settings_of
from hivekeeper.config.value_types import (
    BLOCK_SIZE,
    CODEC,
    COUNT,
    DAYS,
    DIRECTORY,
    DURATION,
    EXPIRY,
    FLAG,
    MASTER,
    MEBIBYTES,
    MEMORY,
    NAME,
    PERIOD,
    PROPERTY,
    RATIO,
    SIZE,
    TEXT,
    WHOLE,
    WORDS,
    choice,
    optional,
)

SIZING = ("analyze", "compact-swap")
COMPACTION = ("compact-swap",)
RETENTION = ("cleanup",)
LONG = ("compact-swap", "rollback", "cleanup")

# A value of cleanup_requires.
VERIFIED = "verified"
# Values of `exchange`.
AT_ONCE, JOINED, AUTO = "directory", "files", "auto"
# A value of `discard`.
TRASH = "trash"


@dataclass(frozen=True)
class Settings:
    """Settings that apply to one table."""

    block_bytes: int = setting(
        "block_size",
        BLOCK_SIZE,
        "128m",
        "Target size of the files that compaction writes. The HDFS block size is a good choice.",
        per_table=True,
        flag=Flag("--block-size", "SIZE", SIZING, bare_unit="m"),
        alias=Alias("block_size_mb", MEBIBYTES),
    )
    ratio_threshold: float = setting(
        "ratio_threshold",
        RATIO,
        "10",
        "Compact a unit when its files are typically smaller than block_size divided by this.",
        per_table=True,
        flag=Flag("--ratio-threshold", "X", SIZING),
    )
    min_quiet_ms: int = setting(
        "min_quiet",
        DURATION,
        "15m",
        "Leave a unit for a later run if its last write is more recent than this, by this machine's clock or by the NameNode's.",
        per_table=True,
        flag=Flag("--min-quiet", "TIME", SIZING),
    )
    leftover_age_ms: int = setting(
        "leftover_age",
        DAYS,
        "7d",
        "A writer's temporary directory above the units, such as .hive-staging, is no reason to wait if unchanged for this long.",
        per_table=True,
    )
    compact_offset_files: bool = setting(
        "compact_offset_files",
        FLAG,
        "false",
        "Compact files whose names hold the offsets of Kafka Connect's HDFS sink. It would write their rows again: only once it is gone.",
        per_table=True,
    )
    max_units: Optional[int] = setting(
        "max_units",
        optional(COUNT),
        "",
        "Compact at most this many units of a table in one run, those with the greatest gain first.",
        per_table=True,
        flag=Flag("--max-units", "N", COMPACTION),
    )
    max_bytes: Optional[int] = setting(
        "max_bytes",
        optional(SIZE),
        "",
        "Rewrite at most this much of a table in one run, such as 2TB, the units with the greatest gain first.",
        per_table=True,
        flag=Flag("--max-bytes", "SIZE", COMPACTION),
    )
    max_files: int = setting(
        "max_files",
        COUNT,
        "2000000",
        "Refuse a table with more files in the partitions that --where selects: the driver needs a kilobyte outside the JVM for each.",
        per_table=True,
    )
    quarantine_after: int = setting(
        "quarantine_after",
        WHOLE,
        "3",
        "Skip a unit for a while after its compaction failed on this many consecutive nights with the same files. 0: never.",
        per_table=True,
    )
    quarantine_for_ms: int = setting(
        "quarantine_for",
        DURATION,
        "7d",
        "How long such a unit is skipped after its last failure.",
        per_table=True,
    )
    max_backup_bytes: Optional[int] = setting(
        "max_backup_bytes",
        optional(SIZE),
        "",
        "Leave units for a later run if the backups of their table would take more than this.",
        per_table=True,
    )
    max_backup_objects: Optional[int] = setting(
        "max_backup_objects",
        optional(COUNT),
        "",
        "Leave units for a later run if the backups of their table would have more NameNode objects than this: files, blocks, directories.",
        per_table=True,
    )
    compression: str = setting(
        "compression",
        CODEC,
        "source",
        "Codec of the new files: source (as the old files), table (as the table's properties say), or a codec such as zstd.",
        per_table=True,
    )
    sort_columns: Tuple[str, ...] = setting(
        "sort_columns",
        WORDS,
        "",
        "Sort the rows of each unit by these columns.",
        per_table=True,
        flag=Flag("--sort-columns", "A,B", COMPACTION),
    )
    analyze_stats: bool = setting(
        "analyze_stats",
        FLAG,
        "false",
        "Set numRows in the metastore to the rows that were counted when a unit was proved. Sizes are set in any case.",
        per_table=True,
        flag=Flag("--analyze-stats", commands=COMPACTION),
    )
    batch_bytes: int = setting("batch_bytes", SIZE, "8g", "Write the units of a table together in one Spark job up to this size.")
    batch_units: int = setting("batch_units", COUNT, "500", "Write at most this many units together in one Spark job.")
    quota_directories: Tuple[str, ...] = setting(
        "quota_directories",
        WORDS,
        "",
        "HDFS directories above a database's directory that have a quota. Quotas of a table and its database are found without this.",
    )
    backup_table: bool = setting(
        "backup_table",
        FLAG,
        "true",
        "Create a backup table, which shows the rows of the old files.",
        per_table=True,
    )
    backup_prefix: str = setting("backup_prefix", NAME, "__bkp_", "Prefix of the names of backup tables.")
    backup_database: Optional[str] = setting(
        "backup_database",
        optional(NAME),
        "",
        "Database of the backup tables. Without it they are in the database of their table.",
        per_table=True,
    )
    trusted_owners: Tuple[str, ...] = setting(
        "trusted_owners",
        WORDS,
        "",
        "Other users whose records are believed, such as the one who ran Hivekeeper before. The user of the run is always trusted.",
    )
    checkpoint_interval: int = setting(
        "checkpoint_interval",
        COUNT,
        "10",
        "Entries of a table's log after which a checkpoint repeats them all in one small file, which commands read instead.",
        per_table=True,
    )
    log_retention_ms: int = setting(
        "log_retention",
        DAYS,
        "400d",
        "Entries of a table's log older than this go when a checkpoint is written, unless a backup or a later entry needs them.",
        per_table=True,
    )
    min_age_ms: int = setting(
        "min_age",
        DURATION,
        "7d",
        "cleanup keeps every backup younger than this.",
        per_table=True,
        flag=Flag("--min-age", "TIME", RETENTION),
    )
    keep_for_ms: Optional[int] = setting(
        "keep_for",
        optional(PERIOD),
        "",
        "cleanup also keeps every backup younger than this, such as 30d.",
        per_table=True,
        flag=Flag("--older-than", "TIME", RETENTION),
    )
    keep_latest_runs: Optional[int] = setting(
        "keep_latest_runs",
        optional(COUNT),
        "",
        "cleanup keeps what a look back over this many runs of a table takes: the backups of its last N+1 runs.",
        per_table=True,
        flag=Flag("--keep-latest-runs", "N", RETENTION),
    )
    keep_latest_versions: Optional[int] = setting(
        "keep_latest_versions",
        optional(COUNT),
        "",
        "cleanup keeps this many of the newest backups of each unit, whatever their age.",
        per_table=True,
        flag=Flag("--keep-last", "N", RETENTION),
    )
    cleanup_requires: str = setting(
        "cleanup_requires",
        choice("age", VERIFIED),
        "age",
        "What lets a unit's newest backup go: its age, or also that verify has found since that live holds the same (verified).",
        per_table=True,
    )
    cleanup_after: bool = setting(
        "cleanup_after",
        FLAG,
        "false",
        "At the end of compact-swap, discard what cleanup would discard, table by table.",
        per_table=True,
        flag=Flag("--cleanup-after", commands=COMPACTION),
    )
    cleanup_beside: bool = setting(
        "cleanup_beside",
        FLAG,
        "false",
        "With cleanup_after: discard while Spark copies the files of a later table, or at the end of the command.",
        per_table=True,
    )
    delete_pause_ms: int = setting(
        "delete_pause",
        DURATION,
        "0s",
        "cleanup waits this long after each unit whose backup it discarded, to spare the NameNode.",
        per_table=True,
    )
    discard: str = setting(
        "discard",
        choice("delete", TRASH),
        "delete",
        "How cleanup removes old files: delete, or trash, which the cluster empties later.",
        per_table=True,
    )
    hive_lock: str = setting(
        "hive_lock",
        choice("try", "off"),
        "try",
        "Take Hive's own lock during the swap where that works (try), or never (off).",
        per_table=True,
    )
    owner: str = setting(
        "owner",
        choice("require", "try", "ignore"),
        "require",
        "Owner and group of the new files: refuse if they cannot be kept (require), keep them if possible (try), or ignore.",
        per_table=True,
    )
    exchange: str = setting(
        "exchange",
        choice(AT_ONCE, JOINED, AUTO),
        AT_ONCE,
        "What a swap of a unit exchanges: its directory (directory), its small files by HDFS's concat (files), or what suits it (auto).",
        per_table=True,
    )
    read_by_llap: bool = setting(
        "read_by_llap",
        FLAG,
        "true",
        "Whether LLAP daemons, or a Presto that keeps the tails of ORC files, may read the table. They can keep showing no rows of a file "
        "that they met while it was joined (docs/swap.md, what caches keep), so its files are joined only with false.",
        per_table=True,
    )
    # No setting for operators: fewer sources let a reader slip through (docs/concat.md).
    fewest_joined: int = 10


@dataclass(frozen=True)
class RunSettings:
    """Settings that apply to a whole run."""

    dry_run: bool = setting(
        "dry_run", FLAG, "false", "Print the plan and change nothing.", flag=Flag("--dry-run", commands=(*LONG, "forget"))
    )
    max_duration_ms: Optional[int] = setting(
        "max_duration",
        optional(DURATION),
        "",
        "Start no new unit after this time, such as 4h. The current unit is finished; the run ends with exit code 6 and lists the rest.",
        flag=Flag("--max-duration", "TIME", LONG),
    )
    stop_file: Optional[str] = setting(
        "stop_file",
        optional(TEXT),
        "",
        "Start no new unit while this file exists. A path without a scheme is local; one on HDFS begins with hdfs://.",
    )
    pause_file: Optional[str] = setting(
        "pause_file",
        optional(TEXT),
        "",
        "Wait between units while this file exists. The waiting counts towards max_duration.",
    )
    log_level: str = setting(
        "log_level",
        choice("debug", "info", "warning", "error"),
        "info",
        "Lowest level that is logged: debug, info, warning or error.",
        flag=Flag("--log-level", "LEVEL"),
    )
    log_dir: Optional[str] = setting("log_dir", optional(TEXT), "", "Directory for a log file of each run. Without it none is written.")
    log_keep: int = setting("log_keep", COUNT, "30", "How many of the newest files in log_dir are kept.")


@dataclass(frozen=True)
class CatalogueSettings:
    """The catalogue of what commands saw and did; off without a base path."""

    base_path: Optional[str] = setting(
        "catalogue.base_path",
        optional(TEXT),
        "",
        "Directory of the catalogue, tables for SQL of what commands saw and did, which its group may read; nobody else may be able to "
        "exchange it or what is in it. Without it there is none.",
    )
    relative_path: str = setting("catalogue.relative_path", DIRECTORY, "metadata", "Directory of the components, in base_path.")
    tables: str = setting("catalogue.tables", DIRECTORY, "tables", "Directory of the component about tables, in relative_path.")
    views: str = setting("catalogue.views", DIRECTORY, "views", "Directory of the component about views, in relative_path.")
    runs: str = setting("catalogue.runs", DIRECTORY, "runs", "Directory of the component about runs, in relative_path.")
    database: str = setting("catalogue.database", NAME, "hivekeeper", "Database of the catalogue's tables; created if it does not exist.")
    level: str = setting(
        "catalogue.level",
        choice("table", "segment", "partition", "file", "row_group"),
        "partition",
        "How deep tables are described: as a whole, by first-level partition (segment), by partition, by file, or by row group where a "
        "command read footers anyway.",
    )
    expire_after_ms: Optional[int] = setting(
        "catalogue.expire_after",
        EXPIRY,
        "30d",
        "How long files and commits of the catalogue that a newer commit replaced stay, for queries that still read them.",
    )
    keep_runs_ms: int = setting("catalogue.keep_runs", DAYS, "400d", "How long the catalogue keeps the rows about a run.")


@dataclass(frozen=True)
class SparkSettings:
    """How spark-submit is called."""

    master: str = setting("spark.master", MASTER, "local[*]", "Spark master: local[N], local[*] or yarn.")
    deploy_mode: str = setting("spark.deploy_mode", choice("client", "cluster"), "client", "Where the driver runs with YARN.")
    queue: Optional[str] = setting("spark.queue", optional(TEXT), "", "YARN queue.")
    num_executors: Optional[int] = setting("spark.num_executors", optional(COUNT), "", "Number of executors on YARN.")
    executor_memory: Optional[str] = setting("spark.executor_memory", optional(MEMORY), "", "Memory of an executor, such as 4g.")
    executor_cores: Optional[int] = setting("spark.executor_cores", optional(COUNT), "", "Cores of an executor.")
    executor_memory_overhead: Optional[str] = setting(
        "spark.executor_memory_overhead", optional(MEMORY), "", "Memory of an executor outside the heap, such as 512m."
    )
    driver_memory: Optional[str] = setting("spark.driver_memory", optional(MEMORY), "", "Memory of the driver.")
    driver_cores: Optional[int] = setting("spark.driver_cores", optional(COUNT), "", "Cores of the driver in cluster mode.")
    driver_memory_overhead: Optional[str] = setting(
        "spark.driver_memory_overhead", optional(MEMORY), "", "Memory of the driver outside the heap in cluster mode."
    )
    extra_conf: Mapping[str, str] = setting(
        "spark.extra_conf", PROPERTY, "", "More Spark properties. They win over those that Hivekeeper sets.", is_map=True
    )
    archives: Tuple[str, ...] = setting(
        "spark.archives", WORDS, "", "Archives that YARN unpacks beside the driver and the executors (NAME.tar.gz#alias)."
    )
    python_env: Optional[str] = setting(
        "spark.python_env",
        optional(TEXT),
        "",
        "A packed Python environment (venv-pack, conda-pack) for the driver in cluster mode and for the executors.",
    )
    py_files: Tuple[str, ...] = setting("spark.py_files", WORDS, "", "Python files for the driver and the executors.")
    extra_files: Tuple[str, ...] = setting(
        "spark.extra_files", WORDS, "", "Files for the driver and the executors, such as a hive-site.xml in cluster mode."
    )
    archive: Optional[str] = setting(
        "spark.archive",
        optional(TEXT),
        "",
        "The archive for spark-submit, such as hdfs:///apps/hivekeeper/hivekeeper.py. Without it the local one is used.",
    )
    driver_output_dir: str = setting(
        "spark.driver_output_dir",
        TEXT,
        ".hivekeeper/driver-output",
        "HDFS directory where a driver in cluster mode leaves its output for the launcher. A relative path is below the user's home.",
    )
    submit_command: Optional[str] = setting(
        "spark.submit_command",
        optional(TEXT),
        "",
        "The spark-submit command. Without it: the one in SPARK_HOME, then spark3-submit and spark-submit on PATH.",
    )
    home: Optional[str] = setting("spark.home", optional(TEXT), "", "SPARK_HOME for spark-submit.")
    java_home: Optional[str] = setting("spark.java_home", optional(TEXT), "", "JAVA_HOME for spark-submit.")


@dataclass(frozen=True)
class KerberosSettings:
    """The keytab that Spark logs in with and renews its tickets from."""

    principal: Optional[str] = setting("kerberos.principal", optional(TEXT), "", "For example etl@EXAMPLE.COM.")
    keytab: Optional[str] = setting("kerberos.keytab", optional(TEXT), "", "Local path of the keytab file.")
    proxy_user: Optional[str] = setting(
        "kerberos.proxy_user",
        optional(TEXT),
        "",
        "Impersonate this user (needs hadoop.proxyuser.* on the cluster). Such a run cannot last longer than its ticket can be renewed.",
        flag=Flag("--proxy-user", "USER"),
    )


def list_settings() -> Tuple[Setting, ...]:
    """All definitions, in the order in which they are shown."""
    classes = (Settings, RunSettings, CatalogueSettings, SparkSettings, KerberosSettings)
    return tuple(each for settings in classes for each in settings_of(settings).values())
