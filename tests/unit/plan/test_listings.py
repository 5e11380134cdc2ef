import itertools

import pytest

from hivekeeper.model import Attributes, Snapshot
from hivekeeper.plan import listings
from hivekeeper.reasons import Code
from support.builders import ROOT, a_directory, a_file, a_snapshot

DIRECTORIES_OF_WRITERS = [
    *("+tmp", "__magic", "__magic_job-1", "-ext-10000", "_tmp.-ext-10000", "_task_tmp.x", ".staging_1", "_sqoop"),
    *("_DYN0.7316541", "_SCRATCH0.25", "_DYN6.1E-4"),
]


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
    reason = listings.refuse_directory(a_snapshot(a_file("good.parquet"), entry))
    assert reason.code is code
    assert entry.name in reason.what


def test_markers_and_summary_files_and_empty_files_are_no_reason():
    snapshot = a_snapshot(a_file("b"), a_file("a"), a_file("empty", length=0), a_file("_SUCCESS", length=0), a_file("_metadata"))
    assert listings.refuse_directory(snapshot) is None
    assert [file.name for file in listings.data_files(snapshot)] == ["a", "b"]
    assert listings.marker_files(snapshot) == ("_SUCCESS",)


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
    return listings.find_writer([mark], inside, NOW, age)


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
    assert listings.without_empty_staging([mark], inside) == (mark,)
    assert listings.without_empty_staging([mark], {}) == (mark,), "a directory that was not seen tells nothing"
    assert listings.without_empty_staging([mark], {mark.path: a_snapshot()}) == ()


def test_in_a_unit_an_old_directory_of_others_is_not_passed():
    mark, inside = a_tree("_temporary")
    assert listings.without_empty_staging([mark], inside) == (mark,)


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
    reason = listings.refuse_offset_names([a_file("part-0.parquet"), a_file(name)])
    assert reason.code is Code.OFFSETS_IN_NAMES
    assert name in reason.what


@pytest.mark.parametrize("name", ["part-00000-1f0c.parquet", "a+b.parquet", "t+0+1.parquet", "t+0+1+x.parquet", "+0+1+2", "000000_0"])
def test_other_names_hold_no_offsets(name):
    assert listings.refuse_offset_names([a_file(name)]) is None


SOME_BITS = [0o0, 0o1, 0o4, 0o5, 0o7]


def rights_of(entry, groups):
    """What a user who is not the owner may do, in these groups."""
    return (entry.mode >> 3 if entry.group in groups else entry.mode) & 0o7


def test_whoever_may_read_an_entry_that_moves_to_another_directory_could_read_it_where_it_was():
    modes = [0o700 | group << 3 | other for group in SOME_BITS for other in SOME_BITS]
    for mode, mode_of_entry, group in itertools.product(modes, modes, ["hr", "etl"]):
        directory = Attributes("etl", "hr", mode, 0o644)
        entry = a_file("part-0", mode=mode_of_entry, group=group)
        users = [set(), {"hr"}, {"etl"}, {"hr", "etl"}]
        gain = [groups for groups in users if rights_of(entry, groups) & 0o5 and rights_of(directory, groups) & 0o5 != 0o5]
        assert listings.is_shielded(entry, directory) or not gain


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o027, 0o077])
def test_what_a_writer_makes_with_any_umask_is_not_shielded_by_its_own_directory(umask):
    directory = Attributes("etl", "hr", 0o777 & ~umask, 0o644)
    assert not listings.is_shielded(a_file("part-0", mode=0o666 & ~umask, group="hr"), directory)
    assert not listings.is_shielded(a_directory("_temporary")._replace(mode=0o777 & ~umask, group="hr"), directory)


KEEPS_BOB_OUT = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:---")
LETS_BOB_IN = ("group::r-x", "mask::r-x", "other::r-x", "user::rwx", "user:bob:r-x")


@pytest.mark.parametrize(
    "acl, acl_of_live, is_as_open",
    [(KEEPS_BOB_OUT, (), False), (KEEPS_BOB_OUT, KEEPS_BOB_OUT, True), (LETS_BOB_IN, (), True), ((), LETS_BOB_IN, True)],
)
def test_a_directory_whose_acl_keeps_somebody_out_is_as_open_only_as_one_with_the_same(acl, acl_of_live, is_as_open):
    assert listings.is_as_open(Attributes("etl", "hr", 0o755, 0o644, acl), Attributes("etl", "hr", 0o755, 0o644, acl_of_live)) == is_as_open


@pytest.mark.parametrize("entry", [a_file("part-0", mode=0o640, group="hr"), a_directory("_temporary")._replace(mode=0o750, group="hr")])
def test_what_an_acl_may_let_others_than_the_group_read_is_shielded_by_a_directory_for_the_group_alone(entry):
    closed, for_all = Attributes("etl", "hr", 0o750, 0o644), Attributes("etl", "hr", 0o755, 0o644)
    named = entry._replace(has_acl=True)
    assert list(listings.find_open([entry, named], closed, for_all)) == [entry]


def test_what_is_in_a_directory_whose_acl_keeps_somebody_out_is_shielded():
    directory = Attributes("etl", "hr", 0o755, 0o644, KEEPS_BOB_OUT)
    assert listings.is_shielded(a_file("part-0", mode=0o644, group="hr"), directory)
    assert listings.is_shielded(a_file("part-0", mode=0o640, group="hr"), directory)
    assert not listings.is_shielded(a_file("part-0", mode=0o644, group="hr"), Attributes("etl", "hr", 0o755, 0o644, LETS_BOB_IN))
