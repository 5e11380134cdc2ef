"""What to compare to prove that live holds what a backup holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.model import Snapshot
from hivekeeper.plan import verify
from hivekeeper.reasons import Code
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import ROOT, a_directory, a_file, a_snapshot

LIVE = f"{ROOT}/dt=1"
GONE = Snapshot(exists=False)


def entries(*names, directory=LIVE, **more):
    return tuple(a_file(name, directory=directory, file_id=sum(map(ord, name)), **more) for name in names)


def recorded(*names, known=True):
    return tuple(ManifestFile(e.name, e.length, e.mtime_ms, e.file_id if known else 0) for e in entries(*names))


def an_effect(run, before, after):
    files = recorded(*before), recorded(*after, known=False)
    return Effect(run, 1, 0, "compact-swap", 5, "sales.events@0", "dt=1", "dt=1", f"runs/{run}/retired/u00001", *files)


A = an_effect("A", ("a1", "a2"), ("A.new",))
B = an_effect("B", ("A.new", "b1"), ("B.new",))


def plan(manifest, effects, live, holders):
    seen = {effect.place: holder for effect, holder in zip(effects, holders)}
    discarded = {effect.place for effect, holder in zip(effects, holders) if not holder.exists}
    return verify.plan_proof(recorded(*manifest), effects, live, seen, str, {}, (), discarded)


def names(files):
    return None if files is None else [file.name for file in files]


def links(found):
    return [(link.effect.run, names(link.before), names(link.after)) for link in found.links]


def test_one_run_claims_that_its_backup_and_its_files_hold_the_same_rows():
    found = plan(("a1", "a2"), [A], a_snapshot(*entries("A.new", "later")), [a_snapshot(*entries("a1", "a2"))])
    assert links(found) == [("A", ["a1", "a2"], ["A.new"])]
    assert (names(found.base), names(found.newest), names(found.arrivals), found.broken) == (["a1", "a2"], ["A.new"], ["later"], None)


def test_two_runs_are_linked_and_what_came_between_them_is_an_arrival():
    holders = [a_snapshot(*entries("a1", "a2")), a_snapshot(*entries("A.new", "b1", directory=f"{ROOT}/x"))]
    found = plan(("a1", "a2"), [A, B], a_snapshot(*entries("B.new", "later")), holders)
    assert links(found) == [("A", ["a1", "a2"], ["A.new"]), ("B", ["A.new", "b1"], ["B.new"])]
    assert (names(found.newest), names(found.arrivals), names(found.compacted_arrivals)) == (["B.new"], ["b1", "later"], ["b1"])


def test_where_a_backup_was_discarded_the_certificate_stands_for_it():
    found = plan(("a1", "a2"), [A], a_snapshot(*entries("A.new")), [GONE])
    assert links(found) == [("A", None, ["A.new"])]
    assert (found.base, found.broken) == (None, None)


def test_files_that_lie_in_a_discarded_backup_are_not_taken_for_no_files():
    """Compared with nothing, every row would seem lost; only the run's certificate is left of them."""
    found = plan(("a1", "a2"), [A, B], a_snapshot(*entries("B.new")), [a_snapshot(*entries("a1", "a2")), GONE])
    assert () not in [link.after for link in found.links]


def test_a_record_without_runs_since_is_compared_with_live_itself():
    found = plan(("a1", "a2"), [], a_snapshot(*entries("a1", "a2", "later")), [])
    assert (names(found.base), names(found.newest), names(found.arrivals)) == (["a1", "a2"], ["a1", "a2"], ["later"])
    assert (found.links, found.broken) == ((), None)


@pytest.mark.parametrize("live", [a_snapshot(*entries("a1", "later")), a_snapshot(), GONE], ids=["one lost", "all lost", "no directory"])
def test_files_lost_since_a_record_leave_no_base_to_compare_with(live):
    """What is left of them would be compared with itself."""
    found = plan(("a1", "a2"), [], live, [])
    assert found.broken
    assert found.base is None


@pytest.mark.parametrize(
    "live",
    [
        a_snapshot(*entries("theirs")),
        a_snapshot(*entries("A.new", length=7)),
        a_snapshot(a_directory("A.new", LIVE)),
        a_snapshot(),
        GONE,
    ],
    ids=["replaced", "changed", "a directory now", "emptied", "gone"],
)
def test_where_somebody_replaced_the_files_only_the_rows_themselves_can_tell(live):
    found = plan(("a1", "a2"), [A], live, [a_snapshot(*entries("a1", "a2"))])
    assert found.broken.code is Code.OVERWRITTEN_SINCE
    assert "run A (A.new " in found.broken.what
    assert (names(found.base), found.links) == (["a1", "a2"], ())


def test_an_overwrite_between_two_runs_breaks_the_proof():
    other = an_effect("B", ("theirs",), ("B.new",))
    holders = [a_snapshot(*entries("a1", "a2")), a_snapshot(*entries("theirs"))]
    found = plan(("a1", "a2"), [A, other], a_snapshot(*entries("B.new")), holders)
    assert found.broken.code is Code.OVERWRITTEN_SINCE
    assert names(found.base) == ["a1", "a2"]


def test_an_overwrite_between_a_record_and_a_run_breaks_the_proof():
    found = plan(("r1",), [A], a_snapshot(*entries("A.new")), [a_snapshot(*entries("a1", "a2"))])
    assert found.broken.code is Code.BACKUP_CHANGED
    assert found.base is None


@pytest.mark.parametrize("known", [True, False])
def test_a_file_of_a_record_that_a_run_moved_over_is_known_by_its_id_alone(known):
    """Without it, another file may have been put in its place before the run, with its name, length and time."""
    manifest = (*recorded("a1", "a2"), *recorded("x", known=known))
    seen = {A.place: a_snapshot(*entries("a1", "a2"))}
    found = verify.plan_proof(manifest, [A], a_snapshot(*entries("A.new", "x")), seen, str, {}, (), set())
    assert (found.broken is None) == known


def test_a_file_that_a_run_put_there_is_known_without_an_id_where_the_next_one_moved_it_over():
    """The claim of its run compares its rows there."""
    first = an_effect("A", ("a1", "a2"), ("A.new", "A.two"))
    holders = [a_snapshot(*entries("a1", "a2")), a_snapshot(*entries("A.new"))]
    found = plan(("a1", "a2"), [first, an_effect("B", ("A.new",), ("B.new",))], a_snapshot(*entries("B.new", "A.two")), holders)
    assert links(found) == [("A", ["a1", "a2"], ["A.new", "A.two"]), ("B", ["A.new"], ["B.new"])]
    assert (names(found.newest), found.broken) == (["B.new", "A.two"], None)


@pytest.mark.parametrize("holder", [a_snapshot(*entries("a1")), a_snapshot(*entries("a1", "a2", mtime_ms=7))], ids=["lost", "touched"])
def test_a_backup_that_is_not_what_it_was_proves_nothing(holder):
    found = plan(("a1", "a2"), [A], a_snapshot(*entries("A.new")), [holder])
    assert found.broken.code is Code.BACKUP_CHANGED
    assert found.base is None


def test_a_file_is_known_by_its_id_under_another_name():
    (moved,) = entries("a1")
    renamed = moved._replace(path=f"{LIVE}/a1-late1")
    found, missing = manifests.find_present(recorded("a1"), [renamed])
    assert (names(found), missing) == (["a1-late1"], "")


def test_another_file_under_the_name_of_a_known_one_is_another_file():
    (other,) = entries("a1")
    found, missing = manifests.find_present(recorded("a1"), [other._replace(file_id=4711)])
    assert (found, missing) == ((), "a1 is gone")


def test_empty_markers_prove_nothing_and_are_missed_by_nobody():
    marker = ManifestFile("_SUCCESS", 0, 5, 99)
    assert manifests.find_present([marker], []) == ((), "")


def test_a_hidden_file_is_no_arrival():
    found = plan(("a1", "a2"), [A], a_snapshot(*entries("A.new"), *entries("_SUCCESS", ".x")), [a_snapshot(*entries("a1", "a2"))])
    assert found.arrivals == ()


def test_a_file_that_came_into_a_backup_late_is_named_and_is_no_arrival():
    found = plan(("a1", "a2"), [A], a_snapshot(*entries("A.new")), [a_snapshot(*entries("a1", "a2", "late"))])
    assert (found.late_in_backup, found.arrivals, found.broken) == (("late",), (), None)


def test_a_file_that_a_later_run_found_with_another_length_was_replaced_although_its_backup_is_gone():
    changed = replace(B, before=tuple(file._replace(length=9) if file.name == "A.new" else file for file in B.before))
    found = plan(("a1", "a2"), [A, changed], a_snapshot(*entries("B.new")), [a_snapshot(*entries("a1", "a2")), GONE])
    assert found.broken.code is Code.OVERWRITTEN_SINCE
    assert "run B (A.new " in found.broken.what


def test_a_hidden_file_between_two_runs_is_no_arrival():
    with_marker = replace(B, before=(*B.before, *recorded("_meta")))
    holders = [a_snapshot(*entries("a1", "a2")), a_snapshot(*entries("A.new", "b1", "_meta"))]
    found = plan(("a1", "a2"), [A, with_marker], a_snapshot(*entries("B.new")), holders)
    assert (found.broken, names(found.arrivals)) == (None, ["b1"])


class Counted(str):
    """A path that counts how often its name is asked for."""

    asked = 0

    def rpartition(self, separator):
        Counted.asked += 1
        return super().rpartition(separator)


class NotToBeReadThrough(dict):
    """What a log has of all files that were cut: each unit looks up its own."""

    def items(self):
        raise AssertionError

    values = __iter__ = items


def test_files_that_no_run_tells_of_are_not_gone_through_for_each_join():
    """A run joins a thousand sets of files in a partition, to which anybody can add a million others."""
    joins, live = [], [a_file("x", file_id=10_000 + nth)._replace(path=Counted(f"{LIVE}/x{nth}")) for nth in range(500)]
    for nth in range(1, 101):
        before = (ManifestFile(f"s{nth}", 10, 5, nth), ManifestFile(f"t{nth}", 10, 5, 1000 + nth))
        inside = Inside(f"s{nth}-j", 100, 2000 + nth, 20, 30, "")
        after = (ManifestFile(inside.file, 100, 5, 0),)
        known = "A", nth, 0, "compact-swap", 5, "sales.events@0", "dt=1", "dt=1", f"runs/A/retired/u{nth:05d}"
        joins.append(Effect(*known, before, after, inside=inside))
        live.append(a_file(inside.file, directory=LIVE, length=100, file_id=inside.file_id))
    manifest = tuple(file for effect in joins for file in effect.before)
    seen = {effect.place: GONE for effect in joins}
    Counted.asked = 0
    found = verify.plan_proof(manifest, joins, a_snapshot(*live), seen, str, NotToBeReadThrough(other=None), (), ())
    assert (found.broken, len(found.links), len(found.base), len(found.newest)) == (None, 100, 200, 100)
    assert Counted.asked <= 20 * 500
