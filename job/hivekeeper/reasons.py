"""Why something was not done, as one value, and the catalogue of all such reasons.

Pure. Every error and every unit, table or backup that is left alone has a reason with a code from the catalogue. Programs use
the code; the text may change. docs/refusals.md and the messages in docs/runbook.md are generated from the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import auto
from typing import Optional

from hivekeeper.codes import Coded, Exit


class Topic(Coded):
    """What a reason is about: the section of the docs that lists it."""

    TABLES = auto()
    UNITS = auto()
    FILES = auto()
    ROLLBACK = auto()
    BACKUPS = auto()
    VERIFY = auto()
    RUN = auto()
    COMMAND = auto()
    DOCTOR = auto()


_LEAVE_OUT = "leave it out of the selection"
_WHERE = "leave the unit out with `--where`"
_INVESTIGATE = "[stop and investigate](runbook.md#stop-and-investigate)"
_HISTORY = "`bin/hivekeeper history --table sales.events` lists them"


class Code(Coded):
    """The catalogue: topic, exit code, meaning in a sentence, and what to do.

    The exit code applies if the reason ends the work on a table or a command; with None the outcome of the unit decides.
    """

    VIEW = Topic.TABLES, Exit.REFUSED, "a view has no files", "name the table behind it"
    UNKNOWN_TABLE_TYPE = Topic.TABLES, Exit.REFUSED, "neither an external nor a managed table", _LEAVE_OUT
    UNREADABLE_DEFINITION = (
        Topic.TABLES,
        Exit.REFUSED,
        "the metastore cannot give the table's definition, or it has more than 2²⁴ characters, or the properties and long names of its "
        "partitions more than 2²⁷ together, or there are more than 2,000,000 of these; of `analyze --fsimage` also the table with the "
        "most of long locations, if those of all tables together are too long to be held",
        "find out who gave the table such properties, and remove them",
    )
    NO_LOCATION = Topic.TABLES, Exit.REFUSED, "the metastore gives no directory", _LEAVE_OUT
    BACKUP_TABLE = Topic.TABLES, Exit.REFUSED, "its files are another table's backup (`hivekeeper.backup-of`)", "name that table"
    CATALOGUE_TABLE = Topic.TABLES, Exit.REFUSED, "it is the catalogue's own (`hivekeeper.catalogue`), which compacts itself", _LEAVE_OUT
    SKIP_PROPERTY = (
        Topic.TABLES,
        Exit.REFUSED,
        "the owner set `hivekeeper.skip=true` (or any other word than `false`, `no`, `off` and `0`)",
        "unset the property to have the table compacted",
    )
    TRANSACTIONAL = Topic.TABLES, Exit.REFUSED, "Hive compacts transactional (ACID) tables itself", "`ALTER TABLE … COMPACT` in Hive"
    OTHER_ENGINE = (
        Topic.TABLES,
        Exit.REFUSED,
        "Iceberg, Delta, Hudi or another storage handler: its own metadata or commit log lists the files",
        "use that engine's maintenance",
    )
    BUCKETED = Topic.TABLES, Exit.REFUSED, "file names carry the bucket, which a rewrite breaks; a partition may say so itself", _LEAVE_OUT
    SKEWED = Topic.TABLES, Exit.REFUSED, "list bucketing promises a layout that a rewrite breaks; as `bucketed`", _LEAVE_OUT
    SORTED = Topic.TABLES, Exit.REFUSED, "`SORTED BY` promises an order that a rewrite breaks; as `bucketed`", _LEAVE_OUT
    SKIPPED_ROWS = (
        Topic.TABLES,
        Exit.REFUSED,
        "`skip.header.line.count` or `skip.footer.line.count` is set: Hive leaves out so many rows of each file, of Parquet and ORC too "
        "(`HiveContextAwareRecordReader`, `FetchOperator`), so with fewer files it would show rows that it has not shown",
        "unset the property, if Hive is to show all rows",
    )
    OTHER_FORMAT = (
        Topic.TABLES,
        Exit.REFUSED,
        "not Parquet or ORC, or a partition that differs from the table; input format, output format and SerDe must be exactly Hive's, "
        "as a Hudi table has Hive's Parquet SerDe and another input format",
        _LEAVE_OUT,
    )
    SHARED_DIRECTORY = (
        Topic.TABLES,
        Exit.REFUSED,
        "another table of any database, or another partition, has the same, an outer or an inner directory, and would be swapped with it "
        "(a backup table of its own is no reason); or the table lies in another database's directory, or in the catalogue's, or around one."
        " Another table has its location, the property `path` of its SerDe, where Spark reads it, and, if one is a pattern (`*`, `?`, `[`, "
        "`{`), the directory before that",
        "give each a directory of its own",
    )
    NOT_IN_IMAGE = (
        Topic.TABLES,
        Exit.REFUSED,
        "`analyze --fsimage`: the table is not on the default file system, whose NameNode the image is taken to be from",
        "analyze it without `--fsimage`",
    )

    WRITER_AT_WORK = (
        Topic.UNITS,
        Exit.LOCKED,
        "a writer's temporary directory or file in the unit, in the table's root or between: somebody is writing "
        "([which ones](#what-writers-leave-behind))",
        "run again when the writer is done; if nobody writes, remove what it left",
    )
    OPEN_FILE = Topic.UNITS, Exit.LOCKED, "a file is open for writing", "run again when it is closed"
    OFFSETS_IN_NAMES = (
        Topic.UNITS,
        Exit.REFUSED,
        "`TOPIC+PARTITION+FIRST+LAST.parquet`: Kafka Connect's HDFS sink reads its offsets from the names of its files, and would write "
        "everything again ([below](#writers-that-read-the-names-of-files))",
        "leave the unit out with `--where`; once the connector is gone, `compact_offset_files: true`",
    )
    SUBDIRECTORY = (
        Topic.UNITS,
        Exit.REFUSED,
        "Hive and Impala read a sub-directory, Spark does not",
        f"move its files up or away, or {_WHERE}",
    )
    ACID_DIRECTORY = (
        Topic.UNITS,
        Exit.REFUSED,
        "`base_…`, `delta_…`: Hive's transaction log decides which files count",
        "let Hive compact it",
    )
    UNFINISHED_FILE = (
        Topic.UNITS,
        Exit.REFUSED,
        "`*._COPYING_`, `*.tmp`, `*.inprogress`, `*.inprogress.…`, `*.copying`, `*.pending`: somebody has not finished, or gave up",
        "rename or remove the file",
    )
    HIDDEN_FILE = Topic.UNITS, Exit.REFUSED, "a hidden file with content that is neither a marker nor a Parquet summary", "move it away"
    UNREADABLE_DIRECTORY = Topic.UNITS, Exit.REFUSED, "this user may not read the directory", f"run as a user who may, or {_WHERE}"
    NOT_RENAMABLE = (
        Topic.UNITS,
        Exit.REFUSED,
        "this user may not rename the directory: its parent is not writable, or has the sticky bit and both belong to others",
        "run as the owner or as the superuser",
    )
    OTHER_ENCRYPTION_ZONE = Topic.UNITS, Exit.REFUSED, "nothing can be renamed from one encryption zone into another", _WHERE
    NO_ZONE_KEY = (
        Topic.UNITS,
        Exit.REFUSED,
        "this user may not use the key of the directory's encryption zone",
        f"have the use of the key allowed in the KMS (`DECRYPT_EEK`), run as a user who may, or {_WHERE}",
    )
    SNAPSHOTTABLE = Topic.UNITS, Exit.REFUSED, "snapshots can be made of the directory itself, and would stay with the old files", _WHERE
    OWN_QUOTA = Topic.UNITS, Exit.REFUSED, "the directory has a quota of its own, which would stay with the old files", _WHERE
    OUTSIDE_TABLE = Topic.UNITS, Exit.REFUSED, "the partition lies outside the table's directory: its files may be somebody else's", _WHERE
    TOO_DEEP = Topic.UNITS, Exit.REFUSED, "the partition lies more than 50 levels below the table's directory", _WHERE
    IN_CONTROL_DIRECTORY = (
        Topic.UNITS,
        Exit.REFUSED,
        "the partition, or the table, lies in a control directory (`.hivekeeper`), where only backups and records belong, or "
        "Spark reads the table there (the property `path` of its SerDe); "
        "`cleanup` keeps the backup that a partition shows",
        "give it a directory of its own, or " + _WHERE,
    )
    RESERVED_NAME = (
        Topic.UNITS,
        Exit.REFUSED,
        "the partition, or the table, lies in a snapshot (`.snapshot`), which never changes, or below `/.reserved`, where HDFS finds "
        "files by their numbers",
        "give it the path of a directory, or " + _WHERE,
    )
    TOO_MANY_HIDDEN = (
        Topic.UNITS,
        Exit.REFUSED,
        "more than 10,000 hidden files or directories in the table's root or between it and a unit, or 200,000 in all such directories: "
        "they are listed before each swap, because writers' are among them. Partitions count if the name of their column begins with "
        "one of `._+-`. Or more than 200,000 beside an unpartitioned table whose directory Hive moves with its name, as one of them may be "
        "its control directory. Or more than 100 empty ones in a partition, each of which a swap would make again",
        "find out who makes them, and remove them",
    )
    TOO_MANY_FILES = (
        Topic.UNITS,
        Exit.REFUSED,
        "more files than `max_files` in the selected partitions of one table, all of which would be held in the driver's memory; where a "
        "directory's path has 512 characters or more, fewer are allowed",
        "select some partitions with `--where`; or raise `max_files`, and the memory of the driver outside the JVM by a kilobyte for each",
    )
    DIRECTORY_GONE = Topic.UNITS, None, "the directory no longer exists", "somebody is removing it: run again later"
    NO_ROWS = Topic.UNITS, None, "the files hold no rows, so there is nothing to write", "remove the files if nobody needs them"
    FEWEST_FILES = (
        Topic.UNITS,
        None,
        "the files are of different forms (writers, schemas, codecs, or labels of pandas), which must not be merged, and each form has "
        "as few files as it needs",
        "nothing; `--set compression=snappy` merges forms that differ only in codec",
    )
    NOT_JOINABLE = (
        Topic.UNITS,
        None,
        "its files cannot be joined ([when](concat.md#which-exchange-a-unit-gets)): `sort_columns` or `discard: trash` set, "
        "in an encryption zone, with snapshots, erasure-coded, without blocks, behind a router, or of a table that LLAP may read",
        "`exchange: directory` for this table",
    )
    FEW_TO_JOIN = Topic.UNITS, None, "the unit has fewer than ten small files of one form, too few to be joined", "nothing"
    EXCHANGE_SET = Topic.UNITS, None, "why this exchange: the setting `exchange` says so", "nothing"
    MOSTLY_WELL_SIZED = (
        Topic.UNITS,
        None,
        "why its files are joined: well-sized files make up more than half of the unit's bytes, and stay as they are",
        "nothing",
    )
    MOSTLY_SMALL = (
        Topic.UNITS,
        None,
        "why its directory is exchanged: well-sized files make up no more than half of the unit's bytes",
        "nothing",
    )
    RECENTLY_WRITTEN = Topic.UNITS, None, "written to within `min_quiet`", "run again later, or lower `--min-quiet`"
    QUARANTINED = (
        Topic.UNITS,
        None,
        "the compaction failed several nights in a row ([many-tables.md](many-tables.md#quarantine))",
        "fix the cause; `--set quarantine_after=0` tries it at once, and so does a change of its files",
    )

    UNREADABLE_FILE = (
        Topic.FILES,
        None,
        "a file cannot be read, and would be left behind",
        "repair the file or move it away, then run again",
    )
    TOO_MANY_VALUES = (
        Topic.FILES,
        None,
        "its files claim more values than files of their size can be expected to hold: more than 1,000 for each byte and a million for "
        "each file, as long runs of NULL or of one value may. Of such values 2²⁶ are read of one table, and 2³⁵ more of all tables of a "
        "command; and no file is written with more than 2³⁰",
        "compact the table by a command of its own; if that does not help, write the files anew",
    )
    MIXED_FORMS = (
        Topic.FILES,
        None,
        "more than 1,000 forms in one unit, or schemas of more than eight million characters (with what footers say of columns: "
        "67 million); or, with `sort_columns`: the files differ in physical schema, codec, kind of writer or calendar, so no one schema "
        "and writer fits them all",
        _WHERE,
    )
    MORE_XATTRS = (
        Topic.FILES,
        None,
        "the directory has more than 4 KiB of extended attributes (`user.*`), and those of all units are held in memory",
        f"remove some of them, or {_WHERE}",
    )
    MIXED_RIGHTS = (
        Topic.FILES,
        None,
        "its files have owners, groups, modes or ACLs so different that a copy would be closed to all who may read them, or open to others "
        "([permissions.md](permissions.md#files-with-different-rights))",
        f"give the files one owner, group and mode, or {_WHERE}",
    )
    NOT_FAITHFUL = (
        Topic.FILES,
        None,
        "this cluster's library cannot decode it (encrypted, unknown encoding or type, Hadoop's LZ4 in Parquet), two columns have one "
        "name, or the files are those of a transactional table. With `sort_columns` also: Spark would not write it back as it was "
        "([rewrite.md](rewrite.md#two-ways))",
        _WHERE,
    )
    CODEC_NOT_WRITABLE = Topic.FILES, None, "Spark cannot write this format with this codec", "set `compression` to another codec"

    ALREADY_ROLLED_BACK = Topic.ROLLBACK, None, "the run was undone before; typed twice, a rollback does nothing", "nothing"
    SUPERSEDED = Topic.ROLLBACK, None, "a later run took the place of this one on the unit", "nothing, or name the later run"
    TABLE_CREATED_AGAIN = (
        Topic.ROLLBACK,
        None,
        "the table was dropped and created again: the old files are another table's",
        "nothing, unless a run had been interrupted: [the table changed meanwhile](runbook.md#the-table-changed-meanwhile)",
    )
    DROPPED = Topic.ROLLBACK, None, "the metastore does not have it any more", "nothing: the old files stay in the backup until cleanup"
    MOVED = Topic.ROLLBACK, None, "its location in the metastore was changed", "compare the two locations by hand"
    OVERWRITTEN_SINCE = (
        Topic.ROLLBACK,
        None,
        "somebody replaced the files after the run, and old rows must not come back over newer ones",
        "[a partition was overwritten since](runbook.md#a-partition-was-overwritten-since)",
    )
    JOINED_SINCE = (
        Topic.ROLLBACK,
        None,
        "a later run joined files of it ([a join](concat.md)), which comes back by a rollback of its own",
        "roll the later run back first, by its id",
    )
    BACKUP_GONE = Topic.ROLLBACK, None, "the backup is not where the log says", "look for it in the trash and in snapshots"
    BACKUP_DISCARDED = Topic.ROLLBACK, None, "a cleanup deleted the backup", "it cannot be rolled back any more"
    BACKUP_CHANGED = Topic.ROLLBACK, None, "the backup does not hold what its manifest says", "find out who wrote to it"
    LOST_BLOCKS = (
        Topic.ROLLBACK,
        None,
        "no DataNode has some blocks of what was to come to live, a backup or a proved copy, and the rows that are live can be read",
        "a compaction is done again by the next run; for a rollback: [blocks are lost](runbook.md#blocks-are-lost)",
    )
    NEWER_RUN_STAYS = Topic.ROLLBACK, None, "a newer run of this unit could not be undone, so older ones are not tried", "run again"

    PINNED = Topic.BACKUPS, None, "it is pinned", "`unpin` releases it"
    DATE_UNKNOWN = Topic.BACKUPS, None, "its date cannot be read, so it is kept", "nothing"
    DATE_IN_FUTURE = Topic.BACKUPS, None, "its date lies in the future, so it is kept", "compare the clocks"
    TOO_YOUNG = Topic.BACKUPS, None, "younger than `min_age` or `keep_for` (`--older-than`)", "wait, or lower the age"
    IN_WINDOW = Topic.BACKUPS, None, "of one of the last runs, which `keep_latest_runs` keeps", "nothing"
    AMONG_NEWEST = Topic.BACKUPS, None, "one of the newest of its unit, which `keep_latest_versions` (`--keep-last`) keeps", "nothing"
    NOT_VERIFIED = (
        Topic.BACKUPS,
        None,
        "the newest backup of its unit, and `verify` has not compared it with live since (`cleanup_requires: verified`)",
        "run `verify` on the table",
    )
    NEEDED_BY_ROLLBACK = Topic.BACKUPS, None, "an older backup of its unit stays, and a rollback to that one needs it", "nothing"
    UNIT_IN_QUARANTINE = Topic.BACKUPS, None, "its unit is in quarantine", "find out why the compaction of this unit fails"
    OF_FORMER_TABLE = (
        Topic.BACKUPS,
        None,
        "of another table that lay at this place: one that was dropped, also if it was created again under the same name, or moved away",
        "copy what somebody needs of it; `cleanup --former-tables` lets it go "
        "([old files of a former table](retention.md#old-files-of-a-former-table))",
    )
    NOT_KEPT = Topic.BACKUPS, None, "no rule that is set keeps it: it goes", "nothing"
    BEYOND_ONE_CLEANUP = (
        Topic.BACKUPS,
        None,
        "no rule keeps it, but no more fits into the plan of one cleanup: a million units, two million files, 256 MB; the oldest go first",
        "run cleanup again, or leave it to the next one",
    )
    BACKUP_SHOWN = (
        Topic.BACKUPS,
        None,
        "a partition of the table lies in it, or around it: its rows would go with it",
        "give that partition a directory of its own with a copy of the files, or drop it; then run cleanup again",
    )
    TRASH_OFF = Topic.BACKUPS, None, "the trash is switched off on this cluster (`fs.trash.interval`)", "set `discard: delete`"
    TRASH_NOT_OURS = (
        Topic.BACKUPS,
        None,
        "the trash of this user, or a directory in it, belongs to another user or is open for others to write to, who could read or take "
        "what goes there; in an encryption zone anybody may make it before this user does. Or a router has it in another nameservice "
        "than the directory around it, so that nobody knows whose that is",
        "find out who made it (what this user itself has deleted goes with the next checkpoint of the trash), and have an administrator "
        "move it away; then run cleanup again, or set `discard: delete`",
    )
    TRASH_FULL = (
        Topic.BACKUPS,
        None,
        "a quota on the home of this user, or around it, has no room for more in the trash, to which the old files of all tables go",
        "free that space (`hdfs dfs -expunge` as this user), raise the quota, or set `discard: delete`; then run cleanup again",
    )
    NOT_TO_TRASH = (
        Topic.BACKUPS,
        None,
        "the old files lie inside a file of the table ([a join](concat.md)), and a part of a file cannot go to the trash",
        "set `discard: delete`",
    )
    IN_OTHER_BACKUP = Topic.BACKUPS, None, "the file that it lies in is in the backup of a later run", "nothing: it goes after that one"
    LATE_IN_BACKUP = (
        Topic.BACKUPS,
        None,
        "a file came into the backup late and is not in live, perhaps because live was overwritten since (also if runs have exchanged it "
        "after that), is another table's, or was closed to users who may still write to the backup "
        "([permissions.md](permissions.md#what-is-kept))",
        "find out who has put it there; move the file to where its rows are missed, or away if they were overwritten on purpose; then run "
        "cleanup again",
    )

    LIVE_LOST_BLOCKS = (
        Topic.BACKUPS,
        None,
        "no DataNode has some blocks of a file of live, so the old files that it replaced may be the only copy of its rows, or the proved "
        "copy that a run had made of it; of such a copy also: so many files came to live that nobody can tell",
        "[blocks are lost](runbook.md#blocks-are-lost). The backup goes once live can be read, or was replaced",
    )

    ROWS_DIFFER = Topic.VERIFY, None, "live does not hold the rows of the backup", "[verify says differs](runbook.md#verify-says-differs)"
    SAME_ROWS = Topic.VERIFY, None, "the files were replaced or discarded since, but the rows, or the certificate, are the same", "nothing"
    USER_DEFINED_TYPE = (
        Topic.VERIFY,
        None,
        "Spark would run code that a file of the backup or of live names (a type, or an expression for a missing column's value), so "
        "`--level rows` does not read it",
        "compare with `--level digest`",
    )
    VARIABLE_IN_SCHEMA = (
        Topic.VERIFY,
        None,
        "a name or comment of a column, or other row metadata, in a file of the backup or of live has `${`, where Hadoop's configuration "
        "would put in other text before Spark reads it, so `--level rows` does not read the file",
        "compare with `--level digest`",
    )
    OTHER_COLUMNS = (
        Topic.VERIFY,
        None,
        "in a file of the backup or of live Spark's row metadata names other columns than the file has, or a column of ORC has a "
        "back-quote in its name, at which ORC's Java library cuts it, so `--level rows` does not read it",
        "compare with `--level digest`",
    )
    NOTHING_LEFT_TO_COMPARE = Topic.VERIFY, None, "the backup is discarded, or went with its file, and all files were replaced", "nothing"

    TABLE_GONE = Topic.RUN, None, "the table is not in the metastore under its name any more", "see whether its rows are needed"
    RENAMED = Topic.RUN, None, "the partition was renamed meanwhile; its files stay where they are, the log has its new name", "nothing"
    CHANGED_MEANWHILE = (
        Topic.RUN,
        None,
        "a file of the unit is gone, or was changed, since the plan, or who may read it",
        "run again when it is quiet",
    )
    KEEPS_CHANGING = Topic.RUN, None, "the unit keeps changing, or the file system is too slow for the check", "run again when it is quiet"
    CHECKS_HELD_UP = (
        Topic.RUN,
        None,
        "ten minutes of a run went into partitions that changed while they were checked, or into what is hidden above them, so it began "
        "no more",
        "run again; if thousands of hidden files are above the partitions, find out who makes them, and remove them, but never "
        "`.hivekeeper`, which has the backups",
    )
    REPLACED_AFTER = Topic.RUN, None, "done, and somebody replaced the files before the run ended: theirs are live", "nothing"
    REMOVED_AFTER = (
        Topic.RUN,
        None,
        "somebody removed the new files before the run ended, and nothing has replaced them: the backup alone has the rows",
        "unpin the run if that was done on purpose, else roll it back",
    )
    LATE_DIRECTORY = (
        Topic.RUN,
        None,
        "done or put back, and a directory is in the unit: a writer that met it away may have brought it, somebody keeps a copy there, or "
        "it is another table's, which somebody has renamed",
        "if it is this table's, and its rows are nowhere else, move its files up, else move it away",
    )
    RUN_ENDED = Topic.RUN, None, "the run was interrupted before this unit was exchanged, or its backup discarded", "run again"
    CALL_FAILED = Topic.RUN, None, "a call of the file system failed; live is as it was", "fix the cause, then run again"
    JOB_FAILED = (
        Topic.RUN,
        None,
        "the unit could not be written: a file of it cannot be read, or the Spark job failed",
        "read the reason; fix the cause, then run again",
    )
    JOBS_KEEP_FAILING = (
        Topic.RUN,
        None,
        "job after job failed, so the run ended ([long-runs.md](long-runs.md#jobs-that-fail))",
        "fix the cause, then run again",
    )
    PROOF_FAILED = (
        Topic.RUN,
        None,
        "what was written is not what was read; it was not swapped",
        "[verify says differs](runbook.md#verify-says-differs)",
    )
    NOT_ENOUGH_SPACE = (
        Topic.RUN,
        Exit.UNUSABLE,
        "no room, on disk or in a space quota, for the new files beside the old ones; what fits was done",
        "free space or raise the quota: [get disk space back](runbook.md#get-disk-space-back), "
        "[is there room?](many-tables.md#is-there-room)",
    )
    NOT_ENOUGH_NAMES = (
        Topic.RUN,
        Exit.UNUSABLE,
        "a name quota leaves too few files and directories; what fits was done",
        "raise the quota: [is there room?](many-tables.md#is-there-room)",
    )
    BACKUPS_TOO_LARGE = (
        Topic.RUN,
        None,
        "the site lets backups take no more (`max_backup_bytes`, `max_backup_objects`)",
        "[get disk space back](runbook.md#get-disk-space-back); [many-tables.md](many-tables.md#how-much-backups-may-take)",
    )
    MORE_THAN_WANTED = Topic.RUN, None, "more than `max_bytes` would be rewritten", "run again, or raise `max_bytes`"
    BEYOND_ONE_RUN = (
        Topic.RUN,
        None,
        "no more is done in one run: the units, of many forms, need more than 100 jobs that are not full, or their ACLs, extended "
        "attributes, schemas and columns have more than 2²⁸ characters together. What fits was done",
        "run again, or leave it to the next run",
    )
    STOP_ASKED = (
        Topic.RUN,
        Exit.PARTIAL,
        "the command had to end: a signal, `max_duration` or the stop file ([long-runs.md](long-runs.md#stop-pause-limits))",
        "run again",
    )
    NO_PERMISSION = (
        Topic.RUN,
        Exit.REFUSED,
        "the file system refused for lack of rights",
        "run as a user who may read and write all of the table",
    )

    BUG = Topic.COMMAND, Exit.BUG, "a bug; the next run settles what was begun", "run `recover`, then report the traceback"
    DRIVER_FAILED = Topic.COMMAND, Exit.BUG, "the driver ended without output", "read the application's log"
    OUTPUT_LOST = (
        Topic.COMMAND,
        Exit.BUG,
        "the driver ended, but its output did not come back",
        "`bin/hivekeeper history --table sales.events` shows what was done",
    )
    KILLED_ON_YARN = Topic.COMMAND, Exit.BUG, "the application or its driver was killed on YARN", "run again"
    DRIVER_OUT_OF_MEMORY = (
        Topic.COMMAND,
        Exit.BUG,
        "YARN killed the driver, which took too much memory",
        "raise `spark.driver_memory_overhead`",
    )
    WRONG_USAGE = (
        Topic.COMMAND,
        Exit.USAGE,
        "the command line is wrong",
        "read the message; it names the option",
    )
    WRONG_CONFIGURATION = (
        Topic.COMMAND,
        Exit.USAGE,
        "a value or key of the configuration is wrong",
        "`config` shows the effective values and where each one comes from",
    )
    OTHER_HDFS_CLIENT = (
        Topic.COMMAND,
        Exit.USAGE,
        "`fs.hdfs.impl` of the Hadoop configuration is not Hadoop's own client of HDFS, as with `ViewDistributedFileSystem`: a path at "
        "`hdfs://` may be on another NameNode than it names",
        "give tables behind mounts locations at `viewfs://`; once every location at `hdfs://` is on the NameNode that it names, set "
        "`spark.hadoop.fs.hdfs.impl` to `org.apache.hadoop.hdfs.DistributedFileSystem` under `spark.extra_conf`",
    )
    UNTRUSTED_FILE = (
        Topic.COMMAND,
        Exit.USAGE,
        "somebody else could change what decides what is run: a configuration, a list of tables, the archive, a script, a file to be "
        "shipped, a directory above",
        "the message has the `chmod`; [whose files are used](install.md#whose-files-are-used)",
    )
    WRONG_PYTHON = (
        Topic.COMMAND,
        Exit.USAGE,
        "the driver does not run on the packed Python",
        "[python-env.md](python-env.md#is-it-the-one-that-runs)",
    )
    NO_TABLE_SELECTED = Topic.COMMAND, Exit.USAGE, "no table is named", "give `--table`, `--tables`, `--tables-file` or `--database`"
    WRONG_FILTER = Topic.COMMAND, Exit.USAGE, "`--where` cannot be read", "correct it; the message names the partition columns"
    LOCAL_FILE = (
        Topic.COMMAND,
        Exit.USAGE,
        "a local file is named but the driver runs elsewhere, or a remote file is named where only local ones work",
        "name another",
    )
    UNREADABLE_IMAGE = (
        Topic.COMMAND,
        Exit.USAGE,
        "the file of `--fsimage` is not the whole output of `hdfs oiv -p Delimited`; the message names the line",
        "[make the text again, and copy all of it](fsimage.md#when-the-image-cannot-be-read)",
    )
    CATALOGUE_PLACE = (
        Topic.COMMAND,
        Exit.USAGE,
        "the catalogue would lie where a table does, or a table or view of another has a name that it needs",
        "[give it a directory and a database of its own](catalogue.md#settings)",
    )
    CATALOGUE_UNREADABLE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a commit of the catalogue is not what Hivekeeper writes; tables are not concerned",
        "find out who wrote it; [`catalogue purge` begins anew](catalogue.md#when-it-cannot-be-read)",
    )
    SUBMISSION_REFUSED = Topic.COMMAND, Exit.USAGE, "YARN or Spark refused the application: the configuration is wrong", "correct it"
    NO_SUCH_TABLE = Topic.COMMAND, Exit.REFUSED, "the metastore has no such table", "look at the spelling; SHOW TABLES lists them"
    TABLE_DIRECTORY_GONE = (
        Topic.COMMAND,
        Exit.REFUSED,
        "the directory that the table's control directory is to be made in is gone, and is not made again",
        "who removed it may be about to put another one there: run again later",
    )
    NO_SUCH_DATABASE = Topic.COMMAND, Exit.REFUSED, "the metastore has no such database", "look at the spelling; SHOW DATABASES lists them"
    NO_SUCH_RUN = Topic.COMMAND, Exit.REFUSED, "the table's log has no such run, backup or version", _HISTORY
    RUN_KEY_TAKEN = Topic.COMMAND, Exit.REFUSED, "another command used this `--run-key`", "give each command a key of its own"
    NOTHING_OF_THIS_RUN = (
        Topic.COMMAND,
        Exit.REFUSED,
        "the run changed no files, left no backup, or its record is gone",
        f"name another; {_HISTORY}",
    )
    RECORDS_NEEDED = (
        Topic.COMMAND,
        Exit.REFUSED,
        "`forget`: a backup or record is left, a run was interrupted, or the control directory holds a file that Hivekeeper does not write",
        "what the message says: `cleanup`, `unpin` or `recover`, or move the file away",
    )
    NO_PARTITIONS = (
        Topic.COMMAND,
        Exit.REFUSED,
        "`--where` on a table without partitions, or by columns that it does not have",
        "leave out `--where`",
    )
    UNREADABLE_VALUE = (
        Topic.COMMAND,
        Exit.REFUSED,
        "a partition's value is not of its column's type, so `--where` cannot tell",
        "repair or drop the partition, or select without this column",
    )
    NOT_CONFIRMED = Topic.COMMAND, Exit.REFUSED, "the rollback was not confirmed", "answer yes, or give `--yes`"
    NEWER_LOG = Topic.COMMAND, Exit.REFUSED, "a newer version wrote the table's log", "use that version"
    CONTROL_NOT_A_DIRECTORY = (
        Topic.COMMAND,
        Exit.REFUSED,
        "a file lies where the table's control directory belongs",
        "find out who made it, and move it away",
    )
    NOT_RECORDABLE = (
        Topic.COMMAND,
        Exit.REFUSED,
        "the records of the run would be too large, or hold a name that none may hold; nothing was begun",
        "select fewer units at a time (`--max-units`, `--where`)",
    )
    ATTRIBUTES_NOT_KEPT = (
        Topic.COMMAND,
        Exit.REFUSED,
        "owner, group, mode, ACLs or policies of the files cannot be kept",
        "run as the owner or superuser, or set `owner: try`",
    )
    NO_LOCK = Topic.COMMAND, Exit.REFUSED, "the file system has no lock that ends with its holder", "only tables on HDFS can be compacted"
    FOREIGN_SERVER = (
        Topic.COMMAND,
        Exit.REFUSED,
        "the table's location is on a server or file system that the configuration of Hadoop does not name; it is not called, because it "
        "may never answer",
        "leave the table out, and find out who gave it this location; a server that you trust can be named in "
        "`spark.kerberos.access.hadoopFileSystems` (under `spark.extra_conf`)",
    )
    LOCAL_TABLE = (
        Topic.COMMAND,
        Exit.REFUSED,
        "the table lies on the local file system of the machine that the command runs on, although the cluster's tables are elsewhere",
        "leave the table out, and find out who gave it this location",
    )
    TABLE_LOCKED = (
        Topic.COMMAND,
        Exit.LOCKED,
        "another run holds the table; the message says who, where and since when",
        "wait; a killed run's lock ends by itself after about a minute",
    )
    RUN_UNFINISHED = Topic.COMMAND, Exit.LOCKED, "a run is at work, or was interrupted; verify waits for nobody", "wait, or run `recover`"
    RUN_ID_TAKEN = (
        Topic.COMMAND,
        Exit.LOCKED,
        "the table has had a run of this id already: it was renamed while the command was at work, so that it came twice, or another "
        "command of the same second has the id; nothing was begun",
        "run again",
    )
    RUN_TAKEN_OVER = (
        Topic.COMMAND,
        Exit.LOCKED,
        "this run stalled too long (a stopped machine, a long pause), and another one settled what it had begun",
        "look at the other run's result",
    )
    UNKNOWN_FILES = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "an interrupted run holds files or directories that its plan does not explain, or nothing shows that a run has made the control "
        "directory",
        _INVESTIGATE,
    )
    CHANGED_IN_OUTAGE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "while a run was interrupted its table was created again, or a partition renamed, moved or dropped: readers may miss its rows",
        "[the table changed meanwhile](runbook.md#the-table-changed-meanwhile)",
    )
    SHARED_SINCE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a run was interrupted, and another table has the same, an outer or an inner directory now, or a database has: a recovery could "
        "move its files; readers may miss a partition until then",
        "give each table a directory of its own (`ALTER TABLE … SET LOCATION`; `DROP TABLE` may delete the files), then run `recover`",
    )
    UNSETTLED = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a run was interrupted, and the table, or a right that this user lacks, does not let it be finished or undone: readers may miss a "
        "partition until then",
        "do what the message says, then run `recover`",
    )
    OTHER_TABLE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "the control directory holds the records of another table, which is still there, or may be under another name",
        "find out who moved it, and move it back to that table; or a table was renamed: "
        "[the table changed meanwhile](runbook.md#the-table-changed-meanwhile)",
    )
    CONTROL_GONE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "the table's control directory went away during the run: Hive renamed the table's directory, or the table was dropped",
        "if renamed, run `recover` under the new name at once; [the table changed meanwhile](runbook.md#the-table-changed-meanwhile)",
    )
    LEFT_BEHIND = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "the table was renamed, and Hive moved its directory but not the control directory beside it",
        "move the control directory to its new name, which the message gives, then run again",
    )
    UNREADABLE_LOG = Topic.COMMAND, Exit.INVESTIGATE, "the table's log, or the record of a run, is damaged or incomplete", _INVESTIGATE
    FOREIGN_RECORD = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a plan, a certificate or a log entry is not what Hivekeeper writes: somebody else wrote or changed it; the message names the "
        "file, the field and why",
        _INVESTIGATE,
    )
    NOT_OUR_OWN = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a record names a file or table that is not this table's own; nothing outside the table is ever changed",
        _INVESTIGATE,
    )
    RECORDS_OF_ANOTHER = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a record, the lock or a directory of Hivekeeper's, or one above the catalogue, belongs to a user who is not trusted "
        "([permissions.md](permissions.md#whose-records))",
        "find out who made it; then `chown`, `trusted_owners`, or move it away",
    )
    RECORDS_WRITABLE = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a record, or a directory above the catalogue, may be written by others than its owner "
        "([permissions.md](permissions.md#whose-records))",
        "find out whether somebody changed it; then `chmod go-w`",
    )
    NOT_AS_PROVED = Topic.COMMAND, Exit.INVESTIGATE, "somebody else writes below the control directory", _INVESTIGATE
    RENAME_KEEPS_FAILING = Topic.COMMAND, Exit.INVESTIGATE, "the file system refuses a rename again and again", _INVESTIGATE
    RE_CREATED_AGAIN = Topic.COMMAND, Exit.INVESTIGATE, "a job re-creates the unit's directory over and over", _INVESTIGATE
    NO_CERTIFICATE = Topic.COMMAND, Exit.INVESTIGATE, "the unit left live, and the proof of its new files is gone", _INVESTIGATE
    OLD_FILES_REMOVED = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a unit may have left live, and its old files are gone: what was to replace them may be the only copy",
        _INVESTIGATE,
    )
    NO_FREE_NAME = Topic.COMMAND, Exit.INVESTIGATE, "every name that a file or a log entry could get is taken", _INVESTIGATE
    BACKUP_HALF_DELETED = Topic.COMMAND, Exit.INVESTIGATE, "a part of a backup was deleted and the rest could not be", _INVESTIGATE
    TOO_LARGE_TO_RETURN = (
        Topic.COMMAND,
        Exit.INVESTIGATE,
        "a joined file took more than 64 GiB that were not to be joined ([concat.md](concat.md#put-back))",
        "`hivekeeper recover --table` copies them out of it, however long that takes",
    )
    CLUSTER_UNUSABLE = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "the cluster cannot be used, for another reason than those below",
        "fix the cause, then run again",
    )
    SPARK_NOT_STARTED = Topic.COMMAND, Exit.UNUSABLE, "Spark did not start", "read Spark's own messages; `doctor` says what to fix"
    FILE_SYSTEM_UNUSABLE = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "a call of HDFS failed: no connection, safe mode, a standby NameNode, a path that is gone",
        "fix the cause, then run again",
    )
    METASTORE_UNUSABLE = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "the metastore does not answer, declines, or speaks another version",
        "read the metastore's log; then run again",
    )
    SPARK_JOB_FAILED = Topic.COMMAND, Exit.UNUSABLE, "Spark could not read the files of the table", "fix the cause, then run again"
    NO_TICKET = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "there is no valid Kerberos ticket, or it ended during the run ([long-runs.md](long-runs.md#tickets-and-tokens))",
        "`klist` shows what there is; `kinit`, or set `kerberos.principal` and `kerberos.keytab`; then run again",
    )
    SPARK_ENDED = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "Spark's Java process, or its application on YARN, ended in the middle: out of memory, killed; no further table is begun",
        "read Spark's own messages; raise `spark.driver_memory` if it ran out of memory; then run again",
    )
    EXCHANGE_INTERRUPTED = (
        Topic.COMMAND,
        Exit.UNUSABLE,
        "HDFS went away during an exchange: no row is lost, but readers may not find the unit "
        "([long-runs.md](long-runs.md#a-server-restarts))",
        "fix the cause, then run again at once, or run `recover`",
    )

    CHECK_BASH = Topic.DOCTOR, None, "bash is older than 4.2", "install a newer one and put it first on PATH"
    CHECK_ARCHIVE = (
        Topic.DOCTOR,
        None,
        "the archive is missing, or somebody else could change it",
        "`make dist`, or unpack the bundle again; `chmod`",
    )
    CHECK_PYTHON = Topic.DOCTOR, None, "no Python 3.9 or newer was found", "set `HIVEKEEPER_PYTHON`"
    CHECK_TEMP_DIR = Topic.DOCTOR, None, "no private temporary directory can be made", "set `TMPDIR`"
    CHECK_CONFIGURATION = Topic.DOCTOR, None, "the configuration is not accepted", "correct it; `config` shows where each value comes from"
    CHECK_SPARK = (
        Topic.DOCTOR,
        None,
        "no usable spark-submit, or a Spark that was not tried",
        "set `SPARK_HOME`, `spark.home` or `spark.submit_command`",
    )
    CHECK_JAVA = Topic.DOCTOR, None, "no Java, or one that does not fit the Spark", "set `JAVA_HOME` or `spark.java_home`"
    CHECK_HADOOP_CONF = Topic.DOCTOR, None, "the cluster's client configuration is missing or incomplete", "set `HADOOP_CONF_DIR`"
    CHECK_YARN_CONF = Topic.DOCTOR, None, "no ResourceManager is named", "the cluster's yarn-site.xml belongs into `HADOOP_CONF_DIR`"
    CHECK_HIVE_CONF = (
        Topic.DOCTOR,
        None,
        "no metastore is named",
        "the cluster's hive-site.xml belongs into `HADOOP_CONF_DIR` or Spark's `conf`",
    )
    CHECK_KEYTAB = Topic.DOCTOR, None, "the keytab cannot be used, or others may read it", "`klist -kt KEYTAB`; `chmod 600`"
    CHECK_TICKET = Topic.DOCTOR, None, "there is no ticket, or it does not last", "`kinit`, or configure a keytab"
    CHECK_LOG_DIR = Topic.DOCTOR, None, "`log_dir` cannot be written to", "correct it"
    CHECK_FILES = Topic.DOCTOR, None, "a local file to be shipped is missing", "correct the configuration under `spark:`"
    CHECK_SESSION = Topic.DOCTOR, None, "no session of Spark could be opened", "what the finding says"
    CHECK_LOGIN = Topic.DOCTOR, None, "the job is not authenticated", "`kinit`, or configure a keytab"
    CHECK_FILE_SYSTEM = Topic.DOCTOR, None, "the default file system does not answer", "look at the NameNode and `fs.defaultFS`"
    CHECK_SAFE_MODE = Topic.DOCTOR, None, "HDFS is in safe mode", "wait until it has left it"
    CHECK_ACLS = Topic.DOCTOR, None, "ACLs are switched off", "nothing, unless tables have ACLs"
    CHECK_XATTRS = Topic.DOCTOR, None, "extended attributes are switched off", "nothing, unless tables have some"
    CHECK_ENCRYPTION = Topic.DOCTOR, None, "the key provider cannot be asked for", "look at the KMS"
    CHECK_SPACE = Topic.DOCTOR, None, "the file system is full", "free space"
    CHECK_STAGING = Topic.DOCTOR, None, "Spark's staging directory cannot be written to", "have `/user/NAME` made for this user"
    CHECK_CLOCK = Topic.DOCTOR, None, "the clocks of the file system and of this machine differ", "let both follow one time server"
    CHECK_SHIPPED_FILES = (
        Topic.DOCTOR,
        None,
        "a file on the cluster to be shipped is missing",
        "upload it, or correct the configuration under `spark:`",
    )
    CHECK_QUEUE = (
        Topic.DOCTOR,
        None,
        "the queue does not exist, is stopped, or is closed to this user",
        "correct `spark.queue`, or have it allowed",
    )
    CHECK_METASTORE = Topic.DOCTOR, None, "the metastore does not answer, or speaks another version", "use a Spark whose Hive client fits"
    CHECK_TABLE = (
        Topic.DOCTOR,
        None,
        "the table does not exist, or its location cannot be checked",
        "look at the spelling, or at the location",
    )
    CHECK_CONTROL = Topic.DOCTOR, None, "the control directory cannot be made or written to", "rights on the table's root, or on its parent"
    CHECK_WRITE = Topic.DOCTOR, None, "a file cannot be written below the table", "space, quota, encryption keys"
    CHECK_RENAME = Topic.DOCTOR, None, "a directory cannot be renamed below the table", "rights on the table's root"
    CHECK_OWNER = Topic.DOCTOR, None, "files cannot be given to the table's owner", "run as the owner, or `owner: try`"
    CHECK_GROUP = Topic.DOCTOR, None, "files cannot be given to the table's group", "make this user a member, or `owner: try`"
    CHECK_SET_ACL = Topic.DOCTOR, None, "an ACL like the table's cannot be set", "let this user own the directories"
    CHECK_SET_XATTR = Topic.DOCTOR, None, "an extended attribute cannot be set", "see `check-xattrs`"
    CHECK_POLICY = Topic.DOCTOR, None, "the table's storage policy cannot be set", "rights on it, or remove it"
    CHECK_UNITS = Topic.DOCTOR, None, "directories of units must not be renamed", "do what the finding says, or leave these partitions out"
    CHECK_ROOM = (
        Topic.DOCTOR,
        None,
        "there is no room to rewrite all of the table at once",
        "raise the quota, run `cleanup`, or compact less at a time",
    )

    def __init__(self, topic: Topic, exit: Optional[Exit], meaning: str, advice: str) -> None:
        self.topic = topic
        self.exit = exit
        self.meaning = meaning
        self.advice = advice


# Of one text of a reason. Tenants choose the names in it, and a run may have to keep and to log one for each of a hundred thousand units.
MOST_CHARACTERS = 1000


def shorten(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and its end if it is long."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end - 3]}...{text[-end:]}"


# Of each text of an answer that would otherwise become too large.
SHORT = 200
# So many late files of a unit are named in such an answer.
MOST_NAMED = 10


def count_beyond(text: str) -> int:
    return max(0, len(text) - SHORT)


@dataclass(frozen=True)
class Reason:
    """Why something was not done, or not as planned: what happened, what to do next, and for an error the state of the table.

    `next` may be a command for an operator to copy, so it is never cut: what is left of a quoted name may be a command of its own, whose
    text somebody has chosen. Neither `what` nor `state` has a command.
    """

    code: Code
    what: str
    next: str = ""
    state: str = ""

    def __post_init__(self) -> None:
        for name in ("what", "state"):
            object.__setattr__(self, name, shorten(getattr(self, name)))
        if len(self.next) > MOST_CHARACTERS:
            object.__setattr__(self, "next", f"the names are too long to show what to do: {self._documented}")

    @property
    def _documented(self) -> str:
        return f"look for {self.code.code} in docs/runbook.md and docs/refusals.md"

    @property
    def exit(self) -> Exit:
        """The exit code if the reason ends the work on a table or a command."""
        return self.code.exit or Exit.REFUSED

    @property
    def dispensable(self) -> int:
        """How many characters `shortened` takes away."""
        return count_beyond(self.what) + len(self.next) - len(self._short_next) + count_beyond(self.state)

    def shortened(self) -> Reason:
        if not self.dispensable:
            # Thousands of units may share one.
            return self
        return replace(self, what=shorten(self.what, SHORT), next=self._short_next, state=shorten(self.state, SHORT))

    @property
    def _short_next(self) -> str:
        return self.next if len(self.next) <= SHORT else f"name this table alone to see what to do, or {self._documented}"

    @property
    def waits_for_writer(self) -> bool:
        """Whether this ends by itself once another writer is done."""
        return self.code in (Code.WRITER_AT_WORK, Code.OPEN_FILE)

    def advising(self, next: str) -> Reason:
        return replace(self, next=next)

    def about(self, name: str, state: str = "nothing was changed") -> Reason:
        """The same reason as an error of a table."""
        return replace(self, what=f"{name}: {self.what}", state=state)
