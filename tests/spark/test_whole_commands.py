"""Whole commands on local Spark, with an embedded metastore or the cluster's; a reader other than Spark compares the rows."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path

import pyarrow.dataset
import pyarrow.orc
import pyarrow.parquet
import pytest

from hivekeeper.cluster.connect import assemble
from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.analyze_image import analyze_image
from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.commands.recover import recover
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.analysis import predict
from hivekeeper.quoting import HIVE_NULL, literal, partition_name
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from support import step_by_step
from support.contexts import a_context
from support.images import image
from support.storage import local_only

QUIET = Settings(min_quiet_ms=0)
# A file costs milliseconds on HDFS.
MANY_FILES = 60
VALUES = ["plain", "a b", "50%", "it's", "k=v", "x:y", "p/q", 'say "x"', "ü", None]
COLUMNS = (
    "id",
    "concat('row ', id) AS text",
    "IF(id % 3 = 0, NULL, CAST(id AS DECIMAL(10,2))) AS amount",
    "TIMESTAMP '2024-03-31 02:30:00' + make_interval(0, 0, 0, 0, 0, 0, id) AS at",
    "array('a', NULL, concat('b', id)) AS words",
)
DDL = "id BIGINT, text STRING, amount DECIMAL(10,2), at TIMESTAMP, words ARRAY<STRING>"


@pytest.fixture(scope="module")
def cluster(driver):
    return assemble(driver)


@pytest.fixture
def database(spark, storage):
    name = f"w{abs(hash(storage.root)) % 10**8}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{storage.root}/{name}.db'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def make_table(spark, database, name, format, storage, partitions=(), kind="EXTERNAL", codec=None):
    """A table with the same six small files in each unit; a partition is (column → value, …)."""
    columns = ", ".join(f"{column} STRING" for column in partitions[0]) if partitions else ""
    place = f"{storage.root}/{name}" if kind == "EXTERNAL" else f"{storage.root}/{database}.db/{name}"
    location = f"LOCATION '{place}'" if kind == "EXTERNAL" else ""
    by = f"PARTITIONED BY ({columns})" if partitions else ""
    spark.sql(f"CREATE {kind if kind == 'EXTERNAL' else ''} TABLE {database}.{name} ({DDL}) {by} STORED AS {format} {location}")
    rows = spark.range(60).selectExpr(*COLUMNS).repartition(6)
    options = {"compression": codec} if codec else {}
    first, *others = [partition_directory(partition, place) for partition in partitions] or [place]
    rows.write.mode("append").format(format).options(**options).save(first)
    files = storage.copy(first)
    for other in others:
        storage.bring(files, other)
    if partitions:
        added = " ".join(f"PARTITION ({spec_of(partition)})" for partition in partitions)
        spark.sql(f"ALTER TABLE {database}.{name} ADD {added}")
    return place


def spec_of(partition):
    return ", ".join(f"{column}={'NULL' if value is None else literal(value)}" for column, value in partition.items())


def partition_directory(partition, place):
    return f"{place}/" + partition_name(list(partition), [HIVE_NULL if value is None else value for value in partition.values()])


def data_files(directory: Path) -> list:
    """Files that readers see: neither hidden nor in a hidden directory."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return [path for path in found if not any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)]


def read_rows(directory: Path, format: str) -> Counter:
    """All rows below a directory, each with its directory."""
    found: Counter = Counter()
    for path in data_files(directory):
        table = pyarrow.orc.read_table(path) if format == "orc" else pyarrow.parquet.read_table(path, partitioning=None)
        found.update((str(path.parent.relative_to(directory)), repr(sorted(row.items()))) for row in table.to_pylist())
    return found


def count_files(directory: Path) -> int:
    return len(data_files(directory))


def names_below(directory: Path) -> list:
    return [str(path.relative_to(directory)) for path in data_files(directory)]


def compact(cluster, database, settings=QUIET, run=1, **selected):
    selected = selected or {"databases": (database,)}
    return compact_swap(a_context(cluster, Selection(**selected), f"20260101t0203{run:02d}z-0000", settings))


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=local_only)])
def test_tables_of_every_shape_hold_the_same_rows_in_fewer_files(spark, cluster, database, storage, format):
    shapes = {
        "flat": [],
        "by_one": [{"v": value} for value in VALUES],
        "by_two": [{"v": value, "w": "z z%"} for value in VALUES[1:4]],
    }
    places = {name: make_table(spark, database, name, format, storage, partitions) for name, partitions in shapes.items()}
    places["managed"] = make_table(spark, database, "managed", format, storage, kind="MANAGED")
    before = {name: read_rows(storage.copy(place), format) for name, place in places.items()}
    recorded = definitions(cluster, database, places)

    result = compact(cluster, database)

    assert result.code is Exit.DONE, [table.problem or table.units for table in result.tables]
    assert {name: read_rows(storage.copy(place), format) for name, place in places.items()} == before
    units = {"flat": 1, "by_one": len(VALUES), "by_two": 3, "managed": 1}
    assert {name: count_files(storage.copy(place)) for name, place in places.items()} == units
    assert definitions(cluster, database, places) == recorded
    for name in ("by_one", "by_two"):
        spark.sql(f"MSCK REPAIR TABLE {database}.{name}")
        assert spark.read.format(format).load(places[name]).count() == 60 * units[name], "a path read of the root"
    assert set(definitions(cluster, database, places)) == set(recorded)
    for name in places:
        spark.sql(f"REFRESH TABLE {database}.{name}")
        assert spark.table(f"{database}.{name}").count() == 60 * units[name]
    left = names_below(storage.copy(storage.root))
    again = compact(cluster, database, run=2)
    assert (again.code, [table.units for table in again.tables]) == (Exit.DONE, [()] * 4)
    assert names_below(storage.copy(storage.root)) == left


CHANGING = ("numFiles", "totalSize", "transient_lastDdlTime")


def definitions(cluster, database, names):
    """Locations and properties in the metastore, except those that must follow the files."""
    found = {}
    for name, table in cluster.metastore.tables(database, list(names)).items():
        for partition in (table, *cluster.metastore.partitions(table)):
            kept = {key: value for key, value in partition.parameters.items() if key not in CHANGING}
            found[name, partition.name] = (partition.location, kept)
    return found


@pytest.mark.parametrize("format", [pytest.param("parquet", marks=local_only), "orc"])
def test_hives_own_reader_and_sparks_see_the_same_rows_as_before(spark, cluster, database, storage, format):
    make_table(spark, database, "t", format, storage, [{"v": "a b"}, {"v": "x/y"}])
    hive = spark.newSession()
    for key in ("spark.sql.hive.convertMetastoreParquet", "spark.sql.hive.convertMetastoreOrc"):
        hive.conf.set(key, "false")

    def read():
        spark.sql(f"REFRESH TABLE {database}.t")
        hive.sql(f"REFRESH TABLE {database}.t")
        # Hive 2.3 cannot read the decimals that Spark writes to Parquet by default (HIVE-12069), before a compaction or after.
        return [Counter(map(str, session.table(f"{database}.t").drop("amount").collect())) for session in (spark, hive)]

    before = read()
    assert compact(cluster, database).tables[0].count(Outcome.SWAPPED) == 2
    assert read() == before
    assert sum(before[0].values()) == sum(before[1].values()) == 120


def test_analyze_predicts_what_compaction_does_and_writes_nothing(spark, cluster, database, storage):
    place = make_table(spark, database, "t", "parquet", storage, [{"v": "1"}, {"v": "2"}])
    before = storage.tree(storage.root)
    observed = analyze(a_context(cluster, Selection(databases=(database,)), "r")).tables[0].observed
    assert storage.tree(storage.root) == before
    dry = compact_swap(a_context(cluster, Selection(databases=(database,)), "20260101t020301z-0000", dry_run=True))
    assert [unit.outcome.code for unit in dry.tables[0].units] == ["planned", "planned"]
    assert storage.tree(storage.root) == before
    compact(cluster, database)
    assert count_files(storage.copy(place)) == sum(unit.target_files for unit in observed.units) == 2


@local_only
def test_an_image_gives_the_figures_of_a_listing_and_what_belongs_to_no_table(spark, cluster, database, storage, tmp_path):
    partitions = [{"v": "1"}, {"v": "a b"}, {"v": 'say "x", ü'}]
    make_table(spark, database, "t", "parquet", storage, partitions)
    make_table(spark, database, "flat", "orc", storage)
    compact_swap(a_context(cluster, Selection(tables=(f"{database}.flat",)), "20260101t020301z-0000"))
    storage.write(f"{storage.root}/dropped/old", bytes(1000))
    root = storage.root.partition(":")[2]
    found = [path for path in Path(root).rglob("*") if path.suffix != ".crc"]
    files = [(str(path), path.stat().st_size) for path in found if path.is_file()]
    (tmp_path / "image.tsv.gz").write_bytes(gzip.compress(image(files, [str(path) for path in found if path.is_dir()])))
    context = a_context(cluster, Selection(databases=(database,)), "r")
    listed, seen = analyze(context), analyze_image(context, str(tmp_path / "image.tsv.gz"), is_remote=False)
    for by_listing, by_image in zip(listed.tables, seen.tables):
        assert predict(by_image.observed) == predict(by_listing.observed)
        assert [unit.sizes for unit in by_image.observed.units] == [unit.sizes for unit in by_listing.observed.units]
    assert sum(len(table.observed.units) for table in seen.tables) == len(partitions) + 1
    orphans = {one.path: (one.files, one.total_bytes) for one in seen.image.orphans}
    assert orphans[f"{root}/dropped"] == (1, 1000)


def test_who_reads_by_a_pattern_of_spark_finds_no_file_of_ours(spark, cluster, database, storage):
    def count(pattern):
        return spark.read.parquet(f"{storage.root}/{pattern}").count()

    for name in ("d1", "d2"):
        make_table(spark, database, name, "parquet", storage)
    assert count("*") == 120
    assert compact(cluster, database).code is Exit.DONE
    assert count("*") == count("[^.]*/*") == 120
    make_table(spark, database, "by_day", "parquet", storage, [{"dt": "1"}, {"dt": "2"}])
    assert compact(cluster, database, run=2, tables=(f"{database}.by_day",)).code is Exit.DONE
    assert count("by_day/*") == count("by_day/[^.]*/*") == 120


@pytest.fixture
def turkish(gateway):
    """As on a node with LANG=tr_TR.UTF-8, where GZIP in small letters is not gzip."""
    locale = gateway.jvm.java.util.Locale
    before = locale.getDefault()
    locale.setDefault(locale.forLanguageTag("tr-TR"))
    yield
    locale.setDefault(before)


@local_only
@pytest.mark.usefixtures("turkish")
@pytest.mark.parametrize(
    ("format", "codec", "compression", "written"), [("parquet", "gzip", "source", "GZIP"), ("orc", "zlib", "snappy", "SNAPPY")]
)
def test_the_codec_is_that_of_the_files_or_as_it_is_named(spark, cluster, database, storage, format, codec, compression, written):
    place = make_table(spark, database, "t", format, storage, codec=codec)
    assert compact(cluster, database, Settings(min_quiet_ms=0, compression=compression)).code is Exit.DONE
    (file,) = data_files(storage.copy(place))
    if format == "orc":
        assert pyarrow.orc.ORCFile(file).compression == written
    else:
        assert pyarrow.parquet.read_metadata(file).row_group(0).column(0).compression == written


def test_rows_are_sorted_and_counted_where_that_is_asked_for(spark, cluster, database, storage):
    place = make_table(spark, database, "t", "parquet", storage)
    settings = Settings(min_quiet_ms=0, sort_columns=("text",), analyze_stats=True)
    assert compact(cluster, database, settings, tables=(f"{database}.t",)).code is Exit.DONE
    (file,) = data_files(storage.copy(place))
    texts = pyarrow.parquet.read_table(file, columns=["text"])["text"].to_pylist()
    assert texts == sorted(texts)
    assert "60 rows" in str(spark.sql(f"DESCRIBE EXTENDED {database}.t").where("col_name = 'Statistics'").collect())


def test_a_database_with_unfit_tables_is_done_all_the_same_and_says_why(spark, cluster, database, storage):
    broken = make_table(spark, database, "broken", "parquet", storage)
    storage.write(f"{broken}/part-broken.parquet", b"PAR1 this is no footer")
    nested = make_table(spark, database, "nested", "parquet", storage)
    storage.bring(storage.copy(nested), f"{nested}/HIVE_UNION_SUBDIR_1")
    writing = make_table(spark, database, "writing", "parquet", storage)
    storage.make_directory(f"{writing}/_temporary/0")
    make_table(spark, database, "good", "parquet", storage)
    spark.sql(f"CREATE VIEW {database}.a_view AS SELECT 1 AS x")
    spark.sql(f"CREATE TABLE {database}.bucketed (id INT) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS PARQUET")

    result = compact(cluster, database)

    said = {table.table.partition(".")[2]: why(table) for table in result.tables}
    for name, words in {
        "broken": "a file cannot be read (first: part-broken.parquet",
        "nested": "sub-directory (HIVE_UNION_SUBDIR_1)",
        "writing": "a writer is at work (_temporary)",
        "a_view": "it is a view",
        "bucketed": "bucketed",
        "good": "",
    }.items():
        assert words in said[name], said
    assert [unit.outcome.code for table in result.tables for unit in table.units if table.table.endswith(".good")] == ["swapped"]
    assert compact(cluster, database, run=2, tables=(f"{database}.broken",)).code is Exit.REFUSED


def test_files_of_several_forms_become_one_file_of_each(spark, cluster, database, storage):
    place = make_table(spark, database, "mixed", "parquet", storage)
    spark.range(5).selectExpr("id", "'x' AS other").repartition(2).write.mode("append").parquet(place)
    before = Counter(map(repr, spark.table(f"{database}.mixed").collect()))
    settings = Settings(min_quiet_ms=0, compression="zstd")
    assert compact(cluster, database, settings, tables=(f"{database}.mixed",)).code is Exit.DONE
    files = data_files(storage.copy(place))
    assert sorted(pyarrow.parquet.ParquetFile(file).metadata.num_rows for file in files)[0] == 5
    assert len(files) == 2
    spark.catalog.refreshTable(f"{database}.mixed")
    assert Counter(map(repr, spark.table(f"{database}.mixed").collect())) == before
    assert compact(cluster, database, settings, run=2, tables=(f"{database}.mixed",)).code is Exit.DONE
    assert [file.name for file in data_files(storage.copy(place))] == [file.name for file in files]


def why(table) -> str:
    return table.problem.what if table.problem else " ".join(unit.reason for unit in table.units)


class Stopped(BaseException):
    """Stands for a kill: no handler in the program catches it."""


def test_a_run_that_died_in_the_gap_is_finished_by_the_next(spark, cluster, database, storage, monkeypatch):
    place = make_table(spark, database, "t", "parquet", storage)
    before = read_rows(storage.copy(place), "parquet")
    storage.write(f"{place}/_SUCCESS")
    rename = type(cluster.files).rename_exact

    def rename_and_die(self, source, target):
        rename(self, source, target)
        if "/retired/" in target:
            raise Stopped

    monkeypatch.setattr(type(cluster.files), "rename_exact", rename_and_die)
    monkeypatch.setattr(type(cluster.files), "exchange", step_by_step.exchange)
    with pytest.raises(Stopped):
        compact(cluster, database)
    monkeypatch.undo()
    assert not storage.exists(place)
    result = recover(a_context(cluster, Selection(databases=(database,)), "20260101t020309z-0000"))
    assert dict(result.tables[0].recovered) == {"20260101t020301z-0000": {Outcome.SWAPPED: 1}}
    assert read_rows(storage.copy(place), "parquet") == before
    assert count_files(storage.copy(place)) == 1
    assert storage.exists(f"{place}/_SUCCESS")


def test_the_old_files_of_a_table_that_was_dropped_are_found(spark, driver, cluster, database, storage):
    for name, partitions in (("flat", ()), ("split", ({"dt": "1"},))):
        make_table(spark, database, name, "parquet", storage, partitions)
    compact(cluster, database)
    for name in ("flat", "split"):
        spark.sql(f"DROP TABLE {database}.{name}")
    make_table(spark, database, "stays", "parquet", storage)
    another_process = assemble(driver)
    (found,) = show_orphans(a_context(another_process, Selection(databases=(database,)), "20260101t020309z-0000", QUIET)).tables
    told = sorted((one.kind.code, one.table.partition(".")[2], one.files) for one in found.orphans)
    assert told == [("backup-table", "flat", 0), ("backup-table", "split", 0), ("records", "flat", 6), ("records", "split", 6)]


def test_gateway_calls_do_not_grow_with_files(spark, cluster, database, storage, tmp_path):
    """One call per file would be noticeable: the gateway is the bottleneck of a PySpark driver."""
    calls = {}
    # The first table pays for what is loaded, or asked for, once.
    for files in (5, 10, MANY_FILES):
        place = make_table(spark, database, f"t{files}", "parquet", storage)
        file, many = data_files(storage.copy(place))[0], tmp_path / f"many-{files}"
        many.mkdir()
        for number in range(files):
            os.link(file, many / f"part-copy-{number:05d}.parquet")
        storage.delete(place)
        storage.bring(many, place)
        gateway = cluster.rows.gateway
        begin = gateway.calls
        assert compact(cluster, database, run=files % 60, tables=(f"{database}.t{files}",)).code is Exit.DONE
        calls[files] = gateway.calls - begin
        assert count_files(storage.copy(place)) == 1
    assert abs(calls[MANY_FILES] - calls[10]) <= 10, calls


def test_old_files_of_one_table_go_while_another_is_copied(spark, cluster, database, storage):
    names = [f"{database}.{name}" for name in ("first", "second")]
    settings = Settings(min_quiet_ms=0, min_age_ms=0, cleanup_after=True, cleanup_beside=True)
    for name in ("first", "second"):
        make_table(spark, database, name, "PARQUET", storage)
    before = [spark.table(name).count() for name in names]
    result = compact_swap(a_context(cluster, Selection(tables=tuple(names)), "20260101t020304z-1f0c", settings))
    assert result.code is Exit.DONE
    for table in result.tables:
        assert [unit.outcome for unit in table.units] == [Outcome.SWAPPED]
        assert [backup.state.code for backup in table.backups] == ["discarded"]
        spark.catalog.refreshTable(table.table)
    assert [spark.table(name).count() for name in names] == before


def test_a_table_of_spark_that_hive_cannot_read_keeps_the_backup_that_it_shows_and_its_directory(spark, driver, cluster, database, storage):
    """Its location is a placeholder (SPARK-15269): where it lies says only the property `path` of its SerDe."""
    place = make_table(spark, database, "events", "parquet", storage)
    assert compact(cluster, database).code is Exit.DONE
    backup = f"{storage.root}/.hivekeeper-events/runs/20260101t020301z-0000/retired/u00001"
    # Spark 3.3 has no TIMESTAMP_NTZ.
    type = "TIMESTAMP_NTZ" if spark.version >= "3.4" else "INTERVAL YEAR"
    for name, where in (("rescue", backup), ("own", f"{storage.root}/shown")):
        spark.sql(f"CREATE TABLE {database}.{name} (id BIGINT, more {type}) USING parquet LOCATION '{where}'")
    spark.sql(f"CREATE EXTERNAL TABLE {database}.shown (id BIGINT) STORED AS PARQUET LOCATION '{storage.root}/shown'")
    cleaning = Settings(min_age_ms=0, discard="delete")
    cleaned = clean_up(a_context(assemble(driver), Selection(tables=(f"{database}.events",)), "20260101t020302z-0000", cleaning))
    compacted = compact(assemble(driver), database, run=3, tables=(f"{database}.shown",))
    for result in (cleaned, compacted):
        assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.SHARED_DIRECTORY)
    assert [spark.table(f"{database}.{name}").count() for name in ("events", "rescue")] == [60, 60]
    assert count_files(storage.copy(place)) == 1
