import pytest

from hivekeeper.model import Snapshot
from hivekeeper.reasons import Code
from hivekeeper.runlog import manifests
from hivekeeper.runlog.manifests import ManifestFile, Seen
from support.builders import a_directory, a_file, a_snapshot

A, B = a_file("a"), a_file("b")
MANIFEST = (ManifestFile.of(A), ManifestFile.of(B))


def seen(*entries):
    return manifests.judge(MANIFEST, entries).seen


def test_the_same_files_are_the_same():
    assert seen(A, B) is Seen.SAME


def test_a_new_complete_file_is_late_and_named():
    new = a_file("c")
    judgement = manifests.judge(MANIFEST, [A, B, new])
    assert judgement.seen is Seen.LATE
    assert judgement.late == (new,)
    assert judgement.why is None


@pytest.mark.parametrize(
    ("entries", "code", "name"),
    [
        ([A], Code.CHANGED_MEANWHILE, "b"),
        ([A, a_file("b", length=7)], Code.CHANGED_MEANWHILE, "b"),
        ([A, a_file("b", mtime_ms=7)], Code.CHANGED_MEANWHILE, "b"),
        ([A, a_file("b", file_id=7)], Code.CHANGED_MEANWHILE, "b"),
        ([A, a_file("b", is_open=True)], Code.OPEN_FILE, "b"),
        ([A, B, a_directory("_temporary")], Code.WRITER_AT_WORK, "_temporary"),
        ([A, B, a_directory("part=x")], Code.WRITER_AT_WORK, "part=x"),
        ([A, B, a_file("_SUCCESS")], Code.WRITER_AT_WORK, "_SUCCESS"),
        ([A, B, a_file("c", is_open=True)], Code.WRITER_AT_WORK, "c"),
        ([A, B, a_file("c._COPYING_")], Code.WRITER_AT_WORK, "c._COPYING_"),
        ([A, B, a_file("c.1234.tmp")], Code.WRITER_AT_WORK, "c.1234.tmp"),
        ([A, a_directory("b")], Code.WRITER_AT_WORK, "b"),
    ],
)
def test_anything_else_spoils(entries, code, name):
    judgement = manifests.judge(MANIFEST, entries)
    assert judgement.seen is Seen.SPOILED
    assert judgement.why.code is code
    assert judgement.why.what.startswith(f"{name} ")


def untouched(mark, now, clock_ms=5000):
    return manifests.is_untouched(mark, now, clock_ms, grain_ms=1)


def test_a_directory_with_its_old_id_and_time_is_untouched():
    assert untouched(Snapshot(True, 7, 1000), a_directory("u00001"))


@pytest.mark.parametrize("mark", [Snapshot(True, 8, 1000), Snapshot(True, 7, 999), Snapshot(True, 0, 1000)])
def test_another_id_another_time_or_no_id_has_to_be_listed(mark):
    assert not untouched(mark, a_directory("u00001"))


def test_a_time_as_young_as_the_clock_proves_nothing():
    assert not untouched(Snapshot(True, 7, 1000), a_directory("u00001"), clock_ms=1001)
    assert untouched(Snapshot(True, 7, 1000), a_directory("u00001"), clock_ms=1002)


def test_a_certificate_is_held_by_name_and_length():
    assert manifests.holds(manifests.expect_new({"a": 1000}), [A, B])
    assert not manifests.holds(manifests.expect_new({"a": 999}), [A, B])
    assert not manifests.holds(manifests.expect_new({"c": 1000}), a_snapshot(A, B).entries)
    assert manifests.holds({"a": (1000, A.file_id)}, [A, B])
    assert not manifests.holds({"a": (1000, B.file_id)}, [A, B])
    assert manifests.holds_exactly({"a": 1000, "b": 1000}, [A, B])
    assert not manifests.holds_exactly({"a": 1000}, [A, B])
