"""What a rollback undoes, in which order, and why not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hivekeeper.model import Block, Snapshot
from hivekeeper.plan import rollback
from hivekeeper.plan.rollback import Stack, Surroundings
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.joins import Inside, fingerprint
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import ROOT, a_directory, a_file, a_snapshot, a_unit

LIVE = f"{ROOT}/dt=1"
UNIT = a_unit("dt=1")


def entries(*names, directory=LIVE, **more):
    return tuple(a_file(name, directory=directory, file_id=sum(map(ord, name)), **more) for name in names)


def recorded(*names, known=True):
    """Files as the log holds them: a certificate does not know the ids of its files."""
    return tuple(ManifestFile(e.name, e.length, e.mtime_ms, e.file_id if known else 0) for e in entries(*names))


def an_effect(run, before=("old",), after=("new",), undoes=None, version=0, partition="dt=1", table_id="sales.events@0"):
    """By a compaction, or by a rollback if it undoes something."""
    operation = "rollback" if undoes else "compact-swap"
    files = recorded(*before), recorded(*after, known=undoes is not None)
    return Effect(run, 1, version, operation, 5, table_id, partition, partition, f"runs/{run}/x/u00001", *files, undoes)


def a_history(*effects):
    def a_run(version, effect):
        of_run = (effect.run, effect.run, effect.operation, 5, "etl", "edge1", "app", None, True, "", effect.table_id, {}, (), (effect,))
        return LoggedRun(version, *of_run)

    return History(tuple(a_run(version, effect) for version, effect in enumerate(effects)))


A, B = an_effect("A"), an_effect("B", ("new",), ("newer",), version=1)
UNDO_B = an_effect("C", ("newer",), ("new",), undoes=B.key, version=2)
UNDO_A = an_effect("D", ("new",), ("old",), undoes=A.key, version=3)


def stack_of(*effects):
    stack = Stack()
    for effect in effects:
        stack.take(effect)
    return [effect.run for effect in stack.done], [effect.run for effect in stack.undone]


def test_what_was_done_is_undone_from_the_newest_on():
    assert stack_of(A, B) == (["A", "B"], [])
    assert stack_of(A, B, UNDO_B) == (["A"], ["C"])
    assert stack_of(A, B, UNDO_B, UNDO_A) == ([], ["C", "D"])


def test_what_was_undone_can_be_done_again():
    redo_a = an_effect("E", ("old",), ("new",), undoes=UNDO_A.key)
    redo_b = an_effect("F", ("new",), ("newer",), undoes=UNDO_B.key)
    assert stack_of(A, B, UNDO_B, UNDO_A, redo_a) == (["E"], ["C"])
    assert stack_of(A, B, UNDO_B, UNDO_A, redo_a, redo_b) == (["E", "F"], [])


def test_after_a_new_compaction_nothing_can_be_done_again():
    assert stack_of(A, UNDO_A, B) == (["B"], [])


@pytest.mark.parametrize(("run", "chain"), [("A", ["B", "A"]), ("B", ["B"]), ("X", [])])
def test_newer_runs_are_undone_before_older_ones(run, chain):
    stack = Stack([A, B])
    assert [effect.run for effect in stack.chain(run)] == chain


def test_a_rollback_that_is_named_is_itself_undone():
    stack = Stack([], [UNDO_B, UNDO_A])
    assert [effect.run for effect in stack.chain("C")] == ["D", "C"]
    assert [effect.run for effect in stack.chain("D")] == ["D"]
    assert stack.chain("A") == ()


def test_of_several_units_the_newest_run_is_that_of_the_log():
    stacks = rollback.read_stacks(a_history(A, B, an_effect("Z", partition="dt=2", version=2)), A.table_id)
    assert rollback.newest_run(stacks) == "Z"
    assert rollback.newest_run({"dt=1": stacks["dt=1"]}) == "B"
    assert rollback.newest_run({}) is None
    assert rollback.newest_run({"dt=1": Stack([], [UNDO_A])}) is None


def test_a_table_made_anew_begins_anew():
    later = an_effect("B", table_id="sales.events@99", version=1)
    stacks = rollback.read_stacks(a_history(A, later), later.table_id)
    assert [effect.run for effect in stacks["dt=1"].done] == ["B"]


def test_any_order_of_doing_undoing_and_doing_again_ends_where_the_files_are():
    """Live's files, tracked by hand, are those that the newest effect in force put there."""
    for seed in range(200):
        chance, stack, live, made = random.Random(seed), Stack(), ("f0",), 1
        for number in range(30):
            options = [stack.done[-1:], stack.undone[-1:], []]
            (target, *_) = [*chance.choice(options), None]
            if target is None:
                effect = an_effect(f"r{number}", live, (f"f{made}",))
                made += 1
            else:
                assert live == tuple(file.name for file in target.after), (seed, number)
                effect = an_effect(f"r{number}", live, tuple(file.name for file in target.before), undoes=target.key)
            stack.take(effect)
            live = tuple(file.name for file in effect.after)
        if stack.done:
            assert tuple(file.name for file in stack.done[-1].after) == live


# ---- the steps of one unit


def place_path(place):
    return f"{ROOT}/.hivekeeper/{place}"


def plan(chain, live, backups, unit=UNIT):
    seen = {LIVE: live, **{place_path(effect.place): found for effect, found in zip(chain, backups)}}
    return rollback.plan_unit(chain, unit, Surroundings("20260101t020309z-0000", ROOT, seen, place_path), 1)


def a_backup(*names):
    return a_snapshot(*entries(*names))


def test_a_step_brings_back_what_the_run_found_and_takes_away_what_it_wrote():
    (step,) = plan([A], a_snapshot(*entries("new", "late")), [a_backup("old")])
    assert [file.name for file in step.manifest] == ["new"]
    assert step.expected == A.before
    assert (step.backup.run, step.backup.number, step.backup.place) == ("A", 1, A.place)


def test_an_empty_marker_of_any_writer_leaves_with_the_files_of_the_run():
    live = a_snapshot(*entries("new"), *entries("_SUCCESS", length=0))
    (step,) = plan([A], live, [a_backup("old")])
    assert [file.name for file in step.manifest] == ["_SUCCESS", "new"]


def test_live_is_followed_through_the_steps():
    steps = plan([B, A], a_snapshot(*entries("newer", "late")), [a_backup("new"), a_backup("old")])
    assert [step.number for step in steps] == [1, 2]
    assert [[file.name for file in step.manifest] for step in steps] == [["newer"], ["new"]]
    assert [step.backup.run for step in steps] == ["B", "A"]


def test_each_step_has_the_id_of_the_directory_that_the_one_before_brings_in():
    live, newer, older = (replace(a_snapshot(*entries(name)), file_id=number) for name, number in (("newer", 7), ("new", 8), ("old", 9)))
    assert [step.directory_id for step in plan([B, A], live, [newer, older])] == [7, 8]


def test_ids_of_local_directories_are_given_again():
    seen = replace(a_snapshot(), file_id=7)
    assert [seen.lasting_id(path) for path in (LIVE, "file:/warehouse/sales.db/events")] == [7, 0]


def test_a_file_that_was_renamed_by_carrying_over_is_known_by_its_id():
    (undoing,) = [an_effect("D", ("new",), ("old",), undoes=A.key)]
    (moved,) = entries("old")
    renamed = a_file("old-late1", directory=LIVE, file_id=moved.file_id)
    (step,) = plan([undoing], a_snapshot(renamed), [a_backup("new")])
    assert [file.name for file in step.manifest] == ["old-late1"]


@pytest.mark.parametrize(
    ("live", "code"),
    [
        (a_snapshot(*entries("theirs")), Code.OVERWRITTEN_SINCE),
        (a_snapshot(*entries("new", length=7)), Code.OVERWRITTEN_SINCE),
        (a_snapshot(), Code.OVERWRITTEN_SINCE),
        (a_snapshot(a_directory("new", LIVE)), Code.OVERWRITTEN_SINCE),
        (Snapshot(exists=False), Code.DIRECTORY_GONE),
    ],
    ids=["replaced", "changed", "emptied", "a directory now", "gone"],
)
def test_old_rows_do_not_come_back_over_an_overwriters(live, code):
    reason = plan([A], live, [a_backup("old")])
    assert isinstance(reason, Reason)
    assert reason.code is code


@pytest.mark.parametrize(
    ("backup", "code"),
    [
        (Snapshot(exists=False), Code.BACKUP_GONE),
        (a_snapshot(), Code.BACKUP_CHANGED),
        (a_snapshot(*entries("old", length=7)), Code.BACKUP_CHANGED),
        (a_snapshot(*entries("old", "_x")), Code.BACKUP_CHANGED),
    ],
    ids=["gone", "emptied", "changed", "hidden"],
)
def test_a_backup_that_is_not_what_it_was_is_not_restored(backup, code):
    assert plan([A], a_snapshot(*entries("new")), [backup]).code is code


def test_a_late_file_in_the_backup_is_no_obstacle():
    assert len(plan([A], a_snapshot(*entries("new")), [a_backup("old", "late")])) == 1


def test_with_one_backup_of_the_chain_gone_nothing_of_the_unit_is_planned():
    reason = plan([B, A], a_snapshot(*entries("newer")), [a_backup("new"), Snapshot(exists=False)])
    assert reason.code is Code.BACKUP_GONE


def test_what_was_dropped_or_moved_in_the_metastore_is_left_alone():
    live, backups = a_snapshot(*entries("new")), [a_backup("old")]
    assert plan([A], live, backups, unit=None).code is Code.DROPPED
    assert plan([A], live, backups, unit=a_unit("dt=1", live=f"{ROOT}/elsewhere")).code is Code.MOVED


def test_units_are_planned_by_name_and_numbered_through():
    chains = {"dt=2": [an_effect("A", partition="dt=2")], "dt=1": [B, A], "dt=3": [an_effect("A", partition="dt=3")]}
    units = {name: a_unit(name) for name in ("dt=1", "dt=2")}
    seen = {
        LIVE: a_snapshot(*entries("newer")),
        f"{ROOT}/dt=2": a_snapshot(*entries("new")),
        place_path(B.place): a_backup("new"),
        place_path(A.place): a_backup("old"),
    }
    undoing = rollback.plan_undoing(chains, units, Surroundings("20260101t020309z-0000", ROOT, seen, place_path))
    assert [(step.number, step.unit.name) for step in undoing.units] == [(1, "dt=1"), (2, "dt=1"), (3, "dt=2")]
    assert list(undoing.refused) == ["dt=3"]


@pytest.mark.parametrize(("name", "length", "is_marker"), [("_SUCCESS", 0, True), ("_SUCCESS", 5, False), ("part-0", 0, False)])
def test_only_an_empty_hidden_file_is_a_marker(name, length, is_marker):
    assert manifests.is_marker(ManifestFile(name, length, 1000, 7)) is is_marker


def test_a_marker_that_a_run_wrote_may_be_gone():
    after = (*recorded("new", known=False), ManifestFile("_SUCCESS", 0, 1000, 0))
    assert manifests.find_present(after, recorded("new")) == (recorded("new"), "")


class Counted(str):
    """A name that counts how often it is looked up."""

    lookups = 0

    def __hash__(self):
        Counted.lookups += 1
        return super().__hash__()


def test_files_that_no_run_tells_of_are_not_gone_through_for_each_join():
    """A run joins a thousand sets of files in a partition, to which anybody can add a million others."""
    joins, blocks = [], {}
    others = [a_file("x", file_id=10_000 + nth)._replace(path=LIVE, inner=Counted(f"x{nth}")) for nth in range(500)]
    live = list(others)
    for nth in range(1, 51):
        of_file = (Block(nth, 1, 100),)
        inside = Inside(f"s{nth}-j.parquet", 100, 2000 + nth, 20, 30, fingerprint(of_file))
        after = (ManifestFile(inside.file, 100, 1000, 0),)
        before = (ManifestFile(f"s{nth}.parquet", 10, 5, nth),)
        known = "20260101t020304z-0000", nth, 0, "compact-swap", 5, "sales.events@0", "dt=1", "dt=1"
        joins.append(Effect(*known, f"runs/{known[0]}/retired/u{nth:05d}", before, after, inside=inside))
        live.append(a_file(inside.file, directory=LIVE, length=100, file_id=inside.file_id))
        blocks[f"{LIVE}/{inside.file}"] = of_file
    around = Surroundings("20260102t020304z-0000", ROOT, {LIVE: a_snapshot(*live)}, str, blocks)
    Counted.lookups = 0
    planned = rollback.plan_unit(joins, UNIT, around, 1)
    assert [step.inside for step in planned] == [effect.inside for effect in joins]
    assert Counted.lookups <= 10 * len(others)
