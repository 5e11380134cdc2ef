import itertools
from dataclasses import replace

import pytest

from hivekeeper.model import Snapshot, Storage
from hivekeeper.plan import eligibility
from hivekeeper.reasons import Code, Reason
from support.builders import ORC, PARQUET, ROOT, a_directory, a_file, a_snapshot, a_table, a_unit

DIRECTORIES_OF_WRITERS = [
    *("+tmp", "__magic", "__magic_job-1", "-ext-10000", "_tmp.-ext-10000", "_task_tmp.x", ".staging_1", "_sqoop"),
    *("_DYN0.7316541", "_SCRATCH0.25", "_DYN6.1E-4"),
]
HUDI = Storage("org.apache.hudi.hadoop.HoodieParquetInputFormat", *list(eligibility.FORMATS)[0][1:])


@pytest.mark.parametrize("storage", [a_table().storage, ORC])
@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_plain_parquet_and_orc_tables_are_fit(storage, kind):
    assert eligibility.refuse_table(a_table(storage=storage, kind=kind)) is None


@pytest.mark.parametrize(
    ("table", "code"),
    [
        (a_table(kind="VIRTUAL_VIEW"), Code.VIEW),
        (a_table(kind="MATERIALIZED_VIEW"), Code.VIEW),
        (a_table(kind="INDEX_TABLE"), Code.UNKNOWN_TABLE_TYPE),
        (a_table(parameters={"transactional": "TRUE"}), Code.TRANSACTIONAL),
        (a_table(parameters={"hivekeeper.skip": "true"}), Code.SKIP_PROPERTY),
        (a_table(parameters={"table_type": "ICEBERG"}), Code.OTHER_ENGINE),
        (a_table(parameters={"spark.sql.sources.provider": "delta"}), Code.OTHER_ENGINE),
        (a_table(parameters={"spark.sql.sources.provider": "csv"}), Code.OTHER_ENGINE),
        (a_table(parameters={"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}), Code.OTHER_ENGINE),
        (a_table(buckets=4, bucket_columns=("id",)), Code.BUCKETED),
        (a_table(parameters={"spark.sql.sources.schema.numBuckets": "4"}), Code.BUCKETED),
        (a_table(skewed_columns=("id",)), Code.SKEWED),
        (a_table(sort_columns=("id",)), Code.SORTED),
        (a_table(parameters={"skip.header.line.count": "1"}), Code.SKIPPED_ROWS),
        (a_table(parameters={"skip.footer.line.count": "2"}), Code.SKIPPED_ROWS),
        (a_table(parameters={"skip.header.line.count": "one"}), Code.SKIPPED_ROWS),
        (a_table(storage=replace(ORC, serde_parameters={"skip.header.line.count": "1"})), Code.SKIPPED_ROWS),
        (a_table(storage=HUDI), Code.OTHER_FORMAT),
        (a_table(location=""), Code.NO_LOCATION),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_could_be_harmed_is_refused_with_a_reason(table, code):
    reason = eligibility.refuse_table(table)
    assert reason.code is code
    assert reason.next


@pytest.mark.parametrize("lines", ["0", "", " 0 "])
def test_a_table_whose_property_skips_no_rows_is_fit(lines):
    assert eligibility.refuse_table(a_table(parameters={"skip.header.line.count": lines, "skip.footer.line.count": lines})) is None


@pytest.mark.parametrize(("layout", "code"), [("bucketed", Code.BUCKETED), ("sorted", Code.SORTED), ("skewed", Code.SKEWED)])
def test_a_partition_that_promises_a_layout_which_its_table_has_given_up_is_refused(layout, code):
    unit = replace(a_unit(), storage=replace(PARQUET, layout=layout))
    assert eligibility.refuse_unit(a_table(["dt"]), unit).code is code
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit()) is None


def test_a_partition_in_another_format_than_its_table_is_refused():
    assert eligibility.refuse_unit(a_table(["dt"]), replace(a_unit(), storage=ORC)).code is Code.OTHER_FORMAT


@pytest.mark.parametrize("location", ["hdfs://nn/warehouse/sales/events_archive/dt=1", "hdfs://other/x", ROOT])
def test_a_partition_outside_the_table_is_refused(location):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=location)).code is Code.OUTSIDE_TABLE


@pytest.mark.parametrize("place", [".hivekeeper", ".hivekeeper/runs/20260101t020304z-0000/retired/u00001", "dt=1/.hivekeeper-x/y"])
def test_a_partition_in_a_control_directory_is_refused(place):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=f"{ROOT}/{place}")).code is Code.IN_CONTROL_DIRECTORY


@pytest.mark.parametrize("place", [".snapshot/s1", "a/.snapshot/s1/b", ".reserved/.inodes/17/x"])
def test_a_place_that_hdfs_reserves_is_refused(place):
    assert eligibility.refuse_unit(a_table(["dt"]), a_unit(live=f"{ROOT}/{place}")).code is Code.RESERVED_NAME
    assert eligibility.refuse_kind(a_table(location=f"hdfs://nn/{place}")).code is Code.RESERVED_NAME


def test_partitions_that_share_or_nest_directories_are_refused_and_others_are_not():
    units = [
        a_unit("dt=1", f"{ROOT}/a"),
        a_unit("dt=2", f"{ROOT}/a"),
        a_unit("dt=3", f"{ROOT}/b"),
        a_unit("dt=4", f"{ROOT}/b/c"),
        a_unit("dt=5", f"{ROOT}/bc"),
    ]
    found = eligibility.find_shared_locations(units)
    assert {name: (reason.code, reason.what.split()[-1]) for name, reason in found.items()} == {
        "dt=1": (Code.SHARED_DIRECTORY, "dt=2"),
        "dt=2": (Code.SHARED_DIRECTORY, "dt=1"),
        "dt=3": (Code.SHARED_DIRECTORY, "dt=4"),
        "dt=4": (Code.SHARED_DIRECTORY, "dt=3"),
    }


@pytest.mark.parametrize("inner", ["a/b", "a/b{}", "a/{}/c"])
def test_many_partitions_around_many_others_are_judged_one_by_one(monkeypatch, inner):
    """A reason for each pair would take hours."""
    made, make = [], Reason
    monkeypatch.setattr(eligibility, "Reason", lambda *values: made.append(values) or make(*values))
    units = [a_unit(f"dt={n}", f"{ROOT}/a") for n in range(500)]
    units += [a_unit(f"dt={n}", f"{ROOT}/{inner.format(n)}") for n in range(500, 1000)]
    found = eligibility.find_shared_locations(units)
    assert len(found) == len(units)
    assert len(made) <= 3 * len(units)


def test_partitions_inside_one_another_are_all_refused():
    places = ["a", "a/b", "a/b/c", "a/b-x", "a-x", "a/d", "b", "b.c/d"]
    found = eligibility.find_shared_locations([a_unit(f"dt={place}", f"{ROOT}/{place}") for place in places])
    assert {name.partition("=")[2]: reason.what.partition(" directory ")[2] for name, reason in found.items()} == {
        "a": "contains that of dt=a/b-x",
        "a/b": "lies inside that of dt=a",
        "a/b/c": "lies inside that of dt=a/b",
        "a/b-x": "lies inside that of dt=a",
        "a/d": "lies inside that of dt=a",
    }


HOMES = {"default": "hdfs://nn/w", "sales": "hdfs://nn/w/sales.db", "fin": "hdfs://nn/w/fin.db", "shared": "hdfs://nn/w/sales.db"}


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("hdfs://nn/w/sales.db/events", ""),
        ("hdfs://nn/w/sales.db", ""),
        ("hdfs://nn/data/events", ""),
        ("hdfs://other/w/fin.db/events", ""),
        ("hdfs://nn/w/fin.db/events", "fin"),
        ("hdfs://nn/w/fin.db", "fin"),
        ("hdfs://nn/w/fin.db.old/events", "default"),
        ("hdfs://nn/w/events", "default"),
        ("hdfs://nn", "default"),
    ],
)
def test_a_table_in_or_around_the_directory_of_another_database_is_refused_and_the_innermost_counts(location, named):
    reason = eligibility.refuse_home(a_table(location=location), HOMES)
    assert (reason.code if reason else None) is (Code.SHARED_DIRECTORY if named else None)
    assert not named or f"database {named} ({HOMES[named]})" in reason.what


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (a_directory("_temporary"), Code.WRITER_AT_WORK),
        (a_directory(".hive-staging_hive_2026"), Code.WRITER_AT_WORK),
        (a_directory(".spark-staging-1"), Code.WRITER_AT_WORK),
        (a_directory("_impala_insert_staging"), Code.WRITER_AT_WORK),
        *((a_directory(name), Code.WRITER_AT_WORK) for name in DIRECTORIES_OF_WRITERS),
        (a_file(".distcp.tmp.attempt_1_0001_m_000000_0"), Code.WRITER_AT_WORK),
        (a_file("_tmp_sdc-1.parquet"), Code.WRITER_AT_WORK),
        (a_file(".part-0-0.inprogress.4a1f"), Code.UNFINISHED_FILE),
        (a_file("_part-0-0.in-progress"), Code.UNFINISHED_FILE),
        (a_file("part-1", is_open=True), Code.OPEN_FILE),
        (a_directory("_spark_metadata"), Code.OTHER_ENGINE),
        (a_directory("_delta_log"), Code.OTHER_ENGINE),
        (a_directory(".hoodie"), Code.OTHER_ENGINE),
        (a_directory("delta_0000001_0000001"), Code.ACID_DIRECTORY),
        (a_directory("base_0000001"), Code.ACID_DIRECTORY),
        (a_file("_orc_acid_version"), Code.ACID_DIRECTORY),
        (a_directory("HIVE_UNION_SUBDIR_1"), Code.SUBDIRECTORY),
        (a_directory("x=9"), Code.SUBDIRECTORY),
        (a_file("part-1._COPYING_"), Code.UNFINISHED_FILE),
        (a_file("part-1.tmp"), Code.UNFINISHED_FILE),
        (a_file("part-1.TMP"), Code.UNFINISHED_FILE),
        (a_file("part-1.Copying"), Code.UNFINISHED_FILE),
        (a_file("part-1.inprogress"), Code.UNFINISHED_FILE),
        (a_file(".part-1.swp"), Code.HIDDEN_FILE),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_a_directory_with_what_we_do_not_understand_is_refused(entry, code):
    reason = eligibility.refuse_directory(a_snapshot(a_file("good.parquet"), entry))
    assert reason.code is code
    assert entry.name in reason.what


def test_markers_and_summary_files_and_empty_files_are_no_reason():
    snapshot = a_snapshot(a_file("b"), a_file("a"), a_file("empty", length=0), a_file("_SUCCESS", length=0), a_file("_metadata"))
    assert eligibility.refuse_directory(snapshot) is None
    assert [file.name for file in eligibility.data_files(snapshot)] == ["a", "b"]
    assert eligibility.marker_files(snapshot) == ("_SUCCESS",)


# ---- leftovers of writers

NOW, WEEK = 10**12, 7 * 86_400_000
OLD, YOUNG = NOW - WEEK - 1, NOW - WEEK + 1


def a_tree(top, *entries, **times):
    """A writer's mark in the root and everything below it, with a snapshot of each directory."""
    mark = a_directory(top)._replace(mtime_ms=times.get("mark", OLD))
    inside = {mark.path: a_snapshot(*entries)}
    inside.update({entry.path: a_snapshot() for entry in entries if entry.is_dir})
    return mark, inside


def writer_among(mark, inside, age=WEEK):
    return eligibility.find_writer([mark], inside, NOW, age)


@pytest.mark.parametrize("name", [*DIRECTORIES_OF_WRITERS, "_temporary", ".hive-staging_hive_1", "_impala_insert_staging"])
def test_what_has_not_changed_for_long_is_left_behind(name):
    below = f"{ROOT}/{name}"
    old = a_directory("0", below)._replace(mtime_ms=OLD)
    assert writer_among(*a_tree(name, old)) is None
    assert writer_among(*a_tree(name, old), age=None) == name
    assert writer_among(*a_tree(name, old, mark=YOUNG)) == name
    assert writer_among(*a_tree(name, old._replace(mtime_ms=YOUNG))) == name
    assert writer_among(*a_tree(name, a_file("f", mtime_ms=OLD, directory=below))) is None
    assert writer_among(*a_tree(name, a_file("f", mtime_ms=OLD, directory=below, is_open=True))) == name


def test_a_young_attempt_deep_below_an_old_directory_is_a_writer():
    mark, inside = a_tree("_temporary", a_directory("0", f"{ROOT}/_temporary")._replace(mtime_ms=OLD))
    deep = f"{ROOT}/_temporary/0"
    assert writer_among(mark, {**inside, deep: a_snapshot(a_file("part", mtime_ms=YOUNG, directory=deep))}) == "_temporary"
    assert writer_among(mark, {mark.path: inside[mark.path]}) == "_temporary", "a directory that was not seen tells nothing"
    assert writer_among(mark, {**inside, deep: Snapshot(exists=False)}) == "_temporary", "somebody removes it now"


def test_impalas_staging_directory_is_a_writers_as_long_as_it_holds_anything():
    assert writer_among(*a_tree("_impala_insert_staging", mark=YOUNG)) is None
    assert writer_among(*a_tree("_impala_insert_staging"), age=None) is None
    query = a_directory("1_2", f"{ROOT}/_impala_insert_staging")
    mark, inside = a_tree("_impala_insert_staging", query._replace(mtime_ms=YOUNG))
    assert writer_among(mark, inside) == "_impala_insert_staging"
    assert eligibility.without_empty_staging([mark], inside) == (mark,)
    assert eligibility.without_empty_staging([mark], {}) == (mark,), "a directory that was not seen tells nothing"
    assert eligibility.without_empty_staging([mark], {mark.path: a_snapshot()}) == ()


def test_in_a_unit_an_old_directory_of_others_is_not_passed():
    mark, inside = a_tree("_temporary")
    assert eligibility.without_empty_staging([mark], inside) == (mark,)


@pytest.mark.parametrize("name", [".distcp.tmp.attempt_1", ".part-0.inprogress.1", ".nifi.parquet.tmp"])
def test_files_of_writers_in_the_root_count_as_their_directories_do(name):
    assert writer_among(a_file(name, mtime_ms=YOUNG), {}) == name
    assert writer_among(a_file(name, mtime_ms=OLD), {}) is None
    assert writer_among(a_file(name, mtime_ms=OLD, is_open=True), {}) == name


def test_any_open_hidden_file_in_the_root_is_a_writers_and_a_closed_one_nobodys():
    assert writer_among(a_file(".events.parquet", is_open=True), {}) == ".events.parquet"
    assert writer_among(a_file(".events.parquet", mtime_ms=YOUNG), {}) is None


@pytest.mark.parametrize("name", ["topic+0+0000000099+0000000199.parquet", "a.b-c+11+0+0.avro", "t+0+1+2"])
def test_files_with_offsets_in_their_names_keep_them(name):
    reason = eligibility.refuse_offset_names([a_file("part-0.parquet"), a_file(name)])
    assert reason.code is Code.OFFSETS_IN_NAMES
    assert name in reason.what


@pytest.mark.parametrize("name", ["part-00000-1f0c.parquet", "a+b.parquet", "t+0+1.parquet", "t+0+1+x.parquet", "+0+1+2", "000000_0"])
def test_other_names_hold_no_offsets(name):
    assert eligibility.refuse_offset_names([a_file(name)]) is None


SOME_BITS = [0o0, 0o1, 0o4, 0o5, 0o7]


def rights_of(entry, groups):
    """What a user who is not the owner may do, in these groups."""
    return (entry.mode >> 3 if entry.group in groups else entry.mode) & 0o7


def test_whoever_may_read_an_entry_that_moves_to_another_directory_could_read_it_where_it_was():
    modes = [0o700 | group << 3 | other for group in SOME_BITS for other in SOME_BITS]
    for mode, mode_of_entry, group in itertools.product(modes, modes, ["hr", "etl"]):
        directory = a_directory("moved")._replace(mode=mode, group="hr")
        entry = a_file("part-0", mode=mode_of_entry, group=group)
        users = [set(), {"hr"}, {"etl"}, {"hr", "etl"}]
        gain = [groups for groups in users if rights_of(entry, groups) & 0o5 and rights_of(directory, groups) & 0o5 != 0o5]
        assert eligibility.is_shielded(entry, directory) or not gain


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o027, 0o077])
def test_what_a_writer_makes_with_any_umask_is_not_shielded_by_its_own_directory(umask):
    directory = a_directory("moved")._replace(mode=0o777 & ~umask, group="hr")
    assert not eligibility.is_shielded(a_file("part-0", mode=0o666 & ~umask, group="hr"), directory)
    assert not eligibility.is_shielded(a_directory("_temporary")._replace(mode=0o777 & ~umask, group="hr"), directory)
