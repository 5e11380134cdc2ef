from dataclasses import replace

import pytest

from hivekeeper.model import Block, Digest
from hivekeeper.plan import compaction
from hivekeeper.plan.compaction import CompactionPlan
from hivekeeper.runlog import run_files
from hivekeeper.runlog.joins import Inside, Join, JoinedFile
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import BackupPlace, PlannedUnit
from hivekeeper.runlog.strict import HIGHEST, LOWEST, ForeignRecord, NewerRecord, Node, UnreadableRecord
from support.builders import FORM, ROOT, a_file, a_group, a_table, a_unit
from support.records import plan_from_json_lines, plan_to_json_lines, plan_to_text, read_plan

MANIFEST = (ManifestFile.of(a_file("a b%2F'.parquet")), ManifestFile.of(a_file("_SUCCESS", length=0)))
PLANNED = PlannedUnit(1, a_unit("dt=2026-01-01"), MANIFEST, ("_SUCCESS",))
RUN = "20260101t020304z-0000"
PLAN = CompactionPlan(RUN, a_table(["dt"], create_time=5), (PLANNED,))
RECORDED = compaction.to_run_plan(PLAN, "sales.__bkp_events_20260101_020304", RUN)
OUTPUT = a_group({f"{ROOT}/x/new.parquet": 7}, FORM)
CERTIFICATE = compaction.certify(
    PLANNED, [a_group({"old": 7})], [OUTPUT], [a_file("new.parquet"), a_file("_SUCCESS", length=0)], Digest(7, 1, 2)
)


def test_a_plan_is_read_back_as_it_was():
    text = plan_to_text(RECORDED, created_ms=1)
    assert read_plan(text) == RECORDED


def test_a_plan_stays_true_when_the_nameservice_is_renamed():
    text = plan_to_text(RECORDED, created_ms=1)
    read = run_files.plan_from_lines(text.split("\n"), "hdfs://ha/warehouse/sales/events", "plan.json", RUN)
    assert read.units[0].unit.live == "hdfs://ha/warehouse/sales/events/dt=2026-01-01"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "run": 1, "operation": 2, "table": 3, "units": [{}]}'])
def test_a_plan_that_cannot_be_read_says_which(text):
    with pytest.raises(UnreadableRecord, match="runs/R/plan.json"):
        run_files.plan_from_lines(text.split("\n"), ROOT, "runs/R/plan.json", RUN)


def test_a_plan_of_a_newer_version_is_refused():
    newer = plan_to_json_lines({**plan_from_json_lines(plan_to_text(RECORDED)), "version": 4})
    with pytest.raises(NewerRecord, match="newer Hivekeeper"):
        read_plan(newer)


def test_a_plan_of_a_cleanup_is_read_back_with_what_it_discards():
    unit = PlannedUnit(1, a_unit("dt=2026-01-01"), MANIFEST, (), BackupPlace(RUN, 3, f"runs/{RUN}.t1/retired/u00003"), MANIFEST[:1])
    plan = replace(RECORDED, operation="cleanup", units=(unit,), records=(RUN,), discard="trash")
    assert read_plan(plan_to_text(plan)) == plan


def test_a_plan_that_is_cut_off_between_two_lines_is_not_a_shorter_plan():
    text = plan_to_text(replace(RECORDED, units=(PLANNED, replace(PLANNED, number=2, unit=a_unit("dt=2026-01-02")))))
    first, second, third = text.splitlines(keepends=True)
    assert len(read_plan(first + second + third).units) == 2
    with pytest.raises(ForeignRecord, match="units: only 1 units follow"):
        read_plan(first + second)
    with pytest.raises(ForeignRecord, match="units: more units follow"):
        read_plan(first + second + third + third)


TWICE = (RECORDED.units[0], RECORDED.units[0])


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (replace(RECORDED, units=TWICE), r"units\[1\].unit: another unit has this number"),
        (replace(RECORDED, operation="cleanup"), "discard"),
        (replace(RECORDED, units=(replace(RECORDED.units[0], manifest=MANIFEST * 2),)), "stands there twice"),
    ],
)
def test_what_could_not_be_read_back_is_found_before_it_is_written(plan, what):
    for read in (
        lambda: run_files.check_plan(plan, 1, "plan.json", RUN),
        lambda: read_plan(plan_to_text(plan)),
    ):
        with pytest.raises(UnreadableRecord, match=what):
            read()
    run_files.check_plan(RECORDED, 1, "plan.json", RUN)


def test_certificates_are_read_back_as_they_were():
    text = run_files.certificates_to_text([CERTIFICATE, CERTIFICATE])
    assert run_files.certificates_from_lines(text.split("\n"), "c") == (CERTIFICATE, CERTIFICATE)


def test_characters_that_python_takes_for_line_ends_do_not_end_a_line():
    odd = replace(CERTIFICATE, partition="dt=a\u2028b\x85c")
    assert run_files.certificates_from_lines(run_files.certificates_to_text([odd, CERTIFICATE]).split("\n"), "c") == (odd, CERTIFICATE)


def test_a_path_that_only_begins_like_the_root_is_not_below_it():
    with pytest.raises(ValueError, match="is not below"):
        run_files.relative(f"{ROOT}_archive/dt=1", ROOT)


SOURCES = tuple(ManifestFile.of(a_file(f"{name}.parquet", 100)) for name in "abc")
JOIN = Join(f"b-{RUN}-1.parquet", f".hivekeeper.tail-{RUN}-1", tuple((Block(nth, -1, 60), Block(10 + nth, 5, 40)) for nth in range(3)))
JOINED = replace(PLANNED, manifest=SOURCES, markers=(), join=JOIN)


def test_a_plan_with_joined_units_is_read_back_and_no_older_version_reads_it():
    again = replace(JOINED, number=2, join=replace(JOIN, file=f"b-{RUN}-2.parquet", tail=f".hivekeeper.tail-{RUN}-2"))
    alone = replace(PLANNED, number=3, unit=a_unit("dt=2026-01-02"))
    plan = replace(RECORDED, units=(JOINED, again, alone))
    text = plan_to_text(plan)
    assert read_plan(text) == plan
    assert plan_from_json_lines(text)["version"] == 2
    assert plan_from_json_lines(plan_to_text(RECORDED))["version"] == 1


def test_a_plan_with_the_id_of_a_directory_is_read_back_and_one_of_a_former_version_has_none():
    plan = replace(RECORDED, units=(replace(PLANNED, directory_id=16390), replace(PLANNED, number=2, unit=a_unit("dt=2026-01-02"))))
    text = plan_to_text(plan)
    assert read_plan(text) == plan
    assert plan_from_json_lines(text)["version"] == 3
    assert read_plan(plan_to_text(RECORDED)).units[0].directory_id == 0


@pytest.mark.parametrize("value", [-1, "16390", None, True, 1 << 64])
def test_an_id_of_a_directory_that_is_not_what_we_write_is_refused(value):
    document = plan_from_json_lines(plan_to_text(replace(RECORDED, units=(replace(PLANNED, directory_id=16390),))))
    document["units"][0]["directoryId"] = value
    with pytest.raises(ForeignRecord, match="directoryId"):
        read_plan(plan_to_json_lines(document))


def joined_with(**changed):
    document = plan_from_json_lines(plan_to_text(replace(RECORDED, units=(JOINED,))))
    document["units"][0]["join"].update(changed)
    return plan_to_json_lines(document)


@pytest.mark.parametrize(
    "changed",
    [
        {"file": "victim.parquet"},
        {"file": "../dt=2/b.parquet"},
        {"file": f"b-{RUN}-2.parquet"},
        {"file": f"x-{RUN}-1.parquet"},
        {"tail": "victim.parquet"},
        {"tail": ".hivekeeper.tail-20260101t020304z-0001-1"},
        {"tail": f"../.hivekeeper.tail-{RUN}-1"},
        {"blocks": []},
        {"blocks": [[[1, 1, 100]]] * 2},
        {"blocks": [[[1, 1, 99]]] * 3},
        {"blocks": [[[1, 1]]] * 3},
        {"blocks": [[[1, 1, 200], [2, 1, -100]]] * 3},
        {"blocks": [[["1", 1, 100]]] * 3},
        {"blocks": 7},
        {"more": 1},
    ],
)
def test_a_join_that_is_not_what_we_write_is_refused(changed):
    with pytest.raises(ForeignRecord, match="join"):
        read_plan(joined_with(**changed))


def test_a_join_of_one_file_or_in_another_operation_is_refused():
    alone = replace(JOINED, manifest=SOURCES[1:2], join=replace(JOIN, blocks=JOIN.blocks[:1]))
    with pytest.raises(ForeignRecord):
        read_plan(plan_to_text(replace(RECORDED, units=(alone,))))
    with pytest.raises(ForeignRecord, match="a backup has none"):
        read_plan(plan_to_text(replace(RECORDED, operation="backup", units=(JOINED,))))
    document = plan_from_json_lines(plan_to_text(replace(RECORDED, units=(JOINED,))))
    with pytest.raises(ForeignRecord, match="unknown key"):
        read_plan(plan_to_json_lines({**document, "version": 1}))


def test_two_units_of_a_partition_are_both_joined_ones():
    with pytest.raises(ForeignRecord, match="another unit is about this partition"):
        read_plan(plan_to_text(replace(RECORDED, units=(JOINED, replace(PLANNED, number=2)))))


def test_certificates_of_joined_files_are_read_back_as_they_were():
    joined = replace(CERTIFICATE, join=JoinedFile(77, 5, 6, 8, (Block(1, 2, 77), Block(2, 2, 9)), (Block(3, 2, 8),), (Block(4, 2, 1),), 7))
    text = run_files.certificates_to_text([joined, CERTIFICATE])
    assert run_files.certificates_from_lines(text.split("\n"), "c") == (joined, CERTIFICATE)
    assert (joined.join.head_bytes, joined.join.tail_bytes) == (86, 8)


NO_FILES = [
    *("abcd", {"a": 1, "b": 2, "c": 3, "d": 4}, None, ["b", 1, 2], ["b", 1, 2, 3, 4], [None, 1, 2, 3], [7, 1, 2, 3]),
    *([name, 1, 2, 3] for name in ("", ".", "..", "a/b", "a\0b", "x" * 1025)),
    *(["b", length, 2, 3] for length in (-1, HIGHEST + 1, True, 1.0, "1", None)),
    *(["b", 1, mtime_ms, 3] for mtime_ms in (LOWEST - 1, HIGHEST + 1, False, 2.0)),
    *(["b", 1, 2, file_id] for file_id in (LOWEST - 1, HIGHEST + 1, True, [])),
]


@pytest.mark.parametrize("item", NO_FILES, ids=[repr(item)[:40] for item in NO_FILES])
def test_an_item_that_is_no_file_is_found_among_many(item):
    good = [[f"a{nth}", nth, -nth, LOWEST] for nth in range(3)]
    assert run_files.files_from(Node(good, "x")) == tuple(ManifestFile(*each) for each in good)
    with pytest.raises(ForeignRecord, match=r"\[2\]: it is not \[name, length, modification time, id\] of a file"):
        run_files.files_from(Node([*good[:2], item, good[2]], "x"))


def test_a_file_that_is_in_a_list_twice_is_found():
    with pytest.raises(ForeignRecord, match=r"\[2\]: the file stands there twice"):
        run_files.files_from(Node([["a", 1, 2, 3], ["b", 1, 2, 3], ["a", 4, 5, 6]], "x"))


def test_a_list_without_files_is_one():
    assert run_files.files_from(Node([], "x")) == ()


# ---- old files inside others

INSIDE = Inside("t.parquet", 500, 77, 60, 80, "ab" * 32)
AROUND = ManifestFile("t.parquet", 500, 1000, 77)
UNDONE = BackupPlace(RUN, 3, f"runs/{RUN}/retired/u00003")
REJOIN = Join(f"t-{RUN}-1.parquet", f".hivekeeper.tail-{RUN}-1", ((Block(1, 1, 500),),), f"t--{RUN}-1.parquet")
REJOINED = PlannedUnit(1, a_unit("dt=2026-01-01"), (AROUND,), (), UNDONE, SOURCES, None, REJOIN, INSIDE)
CUT = PlannedUnit(1, a_unit("dt=2026-01-01"), SOURCES, (), UNDONE, inside=INSIDE)


def a_plan_of(unit, **changed):
    """With other values in `inside` or `join` of its only unit."""
    operation, discard = ("rollback", "") if unit is REJOINED else ("cleanup", "delete")
    plan = replace(RECORDED, operation=operation, discard=discard, units=(unit,), record="", backup_table="")
    document = plan_from_json_lines(plan_to_text(plan))
    for key, values in changed.items():
        document["units"][0][key] = values and {**document["units"][0][key], **values}
    return plan, plan_to_json_lines(document)


@pytest.mark.parametrize("unit", [REJOINED, CUT], ids=["rollback", "cleanup"])
def test_a_plan_about_old_files_inside_another_is_read_back(unit):
    plan, text = a_plan_of(unit)
    assert read_plan(text) == plan


@pytest.mark.parametrize("unit", [REJOINED, CUT], ids=["rollback", "cleanup"])
@pytest.mark.parametrize(
    "changed",
    [
        {"file": "../dt=2/t.parquet"},
        {"file": ""},
        {"copyBytes": 80},
        {"copyBytes": -1},
        {"begin": 200},
        {"length": 380},
        {"blocks": "ab"},
        {"blocks": "AB" * 32},
        {"fileId": "77"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_place_inside_another_file_that_is_not_what_we_write_is_refused(unit, changed):
    with pytest.raises(ForeignRecord, match=r"units\[0\]\.inside"):
        read_plan(a_plan_of(unit, inside=changed)[1])


@pytest.mark.parametrize(
    "changed",
    [
        {"inside": {"file": "other.parquet"}},
        {"inside": {"length": 501}},
        {"inside": None},
        {"join": None},
        {"join": {"beside": "victim.parquet"}},
        {"join": {"beside": ""}},
        {"join": {"file": f"t--{RUN}-1.parquet"}},
    ],
    ids=str,
)
def test_a_rollback_joins_just_the_file_that_has_the_old_ones_inside(changed):
    with pytest.raises(ForeignRecord, match=r"units\[0\]"):
        read_plan(a_plan_of(REJOINED, **changed)[1])


def test_a_cleanup_joins_nothing():
    with pytest.raises(ForeignRecord, match="a cleanup has none"):
        read_plan(a_plan_of(replace(CUT, join=JOIN))[1])
