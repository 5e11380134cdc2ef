"""Blocks that no DataNode has any more: what a command must not delete, and not bring to live, because its rows are nowhere else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import RunSettings
from hivekeeper.ports import ALL
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support import joined_desk
from support.builders import a_partition, a_table
from support.desk import Desk, desk_by, outcomes
from support.fakes.files import Killed
from support.late_directories import desk_in_gap
from support.late_directories import place as place_of
from support.world import World


def lose_blocks(desk, unit):
    """Of all files of live, as when DataNodes died or lost power before they had written these blocks to their disks."""
    lose_all_in(desk, desk.world.files.qualify(desk.live(unit)))


def lose_all_in(desk, place):
    for _, node in desk.world.files.namespace.walk(place):
        node.lost = (0, 0) if node.is_dir else (0, node.length)


def kept(result):
    return {name: why.code for one in result.tables[0].backups for name, why in one.kept_units}


@pytest.mark.parametrize("how", ["delete", "trash"])
def test_a_backup_stays_while_live_has_lost_blocks_and_the_others_go(desk, world, how):
    desk.compact()
    rows = world.rows_of(desk.table)
    lose_blocks(desk, "dt=2")
    result = desk.cleanup(how=how)
    assert kept(result) == {"dt=2": Code.LIVE_LOST_BLOCKS}
    assert result.code is Exit.PARTIAL
    assert [effect.partition for effect in desk.log().standing] == ["dt=2"]
    assert desk.rollback(desk.runs[0], where="dt = '2'").code is Exit.DONE
    assert world.rows_of(desk.table) == rows
    assert not any(node.lost[1] for _, node in world.files.namespace.walk(world.files.qualify(desk.live("dt=2"))))


def test_each_backup_of_a_unit_stays_while_live_has_lost_blocks(desk):
    desk.compact()
    desk.append("dt=2", "late1", "late2")
    desk.compact()
    lose_blocks(desk, "dt=2")
    assert desk.cleanup().code is Exit.PARTIAL
    assert [(effect.run, effect.partition) for effect in desk.log().standing] == [(run, "dt=2") for run in desk.runs[:2]]


def test_a_backup_goes_once_live_was_repaired(desk, world):
    desk.compact()
    lose_blocks(desk, "dt=2")
    desk.cleanup()
    for _, node in world.files.namespace.walk(world.files.qualify(desk.live("dt=2"))):
        node.lost = (0, 0)
    assert desk.cleanup().code is Exit.DONE
    assert not desk.log().standing


def test_a_backup_goes_if_somebody_else_has_replaced_live_since(desk, world):
    desk.compact()
    world.overwrite(desk.live("dt=2"), "theirs.parquet", ["new"], whole=False)
    lose_blocks(desk, "dt=2")
    assert desk.cleanup().code is Exit.DONE
    assert not desk.log().standing


def a_joined_desk(first=""):
    """dt=1 has three old files inside one that a run joined; with an older backup that is a directory, if `first` is its exchange."""
    desk = joined_desk.a_desk()
    settings = desk.settings
    if first:
        desk.settings = replace(settings, exchange=first)
        desk.compact()
        desk.settings = settings
        desk.append("dt=1", "late1", "late2", "late3")
    desk.compact()
    (found,) = [effect for effect in desk.log().standing if effect.partition == "dt=1" and effect.inside]
    return desk, found.inside


def a_grown_joined_desk():
    """One whose dt=1 is due for a swap of its directory, with the joined file in it."""
    desk, inside = a_joined_desk()
    desk.settings = replace(desk.settings, exchange="directory")
    desk.append("dt=1", *(f"late{nth}" for nth in range(9)))
    return desk, inside


def lose(desk, inside, begin, end):
    desk.world.files.namespace.find(desk.world.files.qualify(f"{desk.live('dt=1')}/{inside.file}")).lost = (begin, end)


def test_old_files_inside_a_file_whose_copy_has_lost_blocks_are_not_cut_off():
    desk, inside = a_joined_desk()
    before = joined_desk.files_of(desk)
    for begin, end in ((0, 10), (inside.copy_bytes - 1, inside.begin + 10), (0, inside.length)):
        lose(desk, inside, begin, end)
        result = desk.cleanup()
        assert (kept(result), result.code) == ({"dt=1": Code.LIVE_LOST_BLOCKS}, Exit.PARTIAL)
        assert joined_desk.files_of(desk) == before


def test_old_files_inside_a_file_that_cannot_be_read_are_not_cut_off():
    """Its end tells of no copy any more, and so cannot be compared with the copy's."""
    desk, inside = a_joined_desk()
    lose(desk, inside, inside.length - 10, inside.length)
    assert kept(desk.cleanup()) == {"dt=1": Code.LIVE_LOST_BLOCKS}


def test_old_files_of_which_some_are_lost_are_cut_off_if_their_rows_are_in_the_copy():
    desk, inside = a_joined_desk()
    lose(desk, inside, inside.begin, inside.begin + 1000)
    result = desk.cleanup()
    assert (kept(result), result.code) == ({}, Exit.DONE)
    assert joined_desk.files_of(desk)[inside.file][0] == inside.copy_bytes
    assert joined_desk.rows(desk) == joined_desk.ALL


@pytest.mark.parametrize("part", ["copy", "old file"])
def test_an_older_backup_stays_only_for_what_readers_of_a_joined_file_need(part):
    desk, inside = a_joined_desk(first="directory")
    stays, begin = part == "copy", 0 if part == "copy" else inside.begin
    lose(desk, inside, begin, begin + 10)
    rows = joined_desk.rows(desk)
    result = desk.cleanup()
    codes = [why.code for one in result.tables[0].backups for _, why in one.kept_units]
    assert codes == ([Code.LIVE_LOST_BLOCKS, Code.NEEDED_BY_ROLLBACK] if stays else [])
    assert len([one for one in desk.log().standing if one.partition == "dt=1"]) == (2 if stays else 0)
    assert joined_desk.rows(desk) == rows


def listings_of_live(desk, command):
    """How often a command lists live of dt=1 with all that is in it."""
    found = []
    look = desk.world.files.look

    def count(directories, most=ALL):
        found.extend(path for path in directories if path == desk.live("dt=1") and most > 0)
        return look(directories, most)

    desk.world.files.look = count
    command()
    del desk.world.files.look
    return len(found)


def test_live_is_listed_once_for_all_backups_of_a_unit_that_go_within_a_minute():
    numbers = []
    for times in (1, 4):
        world = World()
        world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
        desk = Desk(world)
        desk.compact()
        for nth in range(1, times):
            desk.append("dt=1", f"late{nth}", f"more{nth}")
            desk.compact()
        assert len(desk.log().standing) == times
        numbers.append(listings_of_live(desk, desk.cleanup))
        assert not desk.log().standing
    assert numbers[0] == numbers[1]


def rows_in(desk, run, state, number):
    return set(desk.world.rows_below(desk.control.run(run).unit(state, number)))


def killed_before_its_swaps(desk):
    """The rows of dt=1, of which a killed run has left a proved copy."""
    rows = set(desk.world.rows_below(desk.live("dt=1")))
    desk.kill_before([desk.live("dt=1"), "/retired/"], desk.compact)
    assert rows_in(desk, desk.runs[0], "ready", 1) == rows
    return rows


def taken_over(desk, by=1):
    return f"{desk.runs[0]}.t{by}"


def test_the_proved_copy_of_a_killed_run_stays_where_blocks_of_live_are_lost(desk):
    rows = killed_before_its_swaps(desk)
    lose_blocks(desk, "dt=1")
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].recovered == ((desk.runs[0], {Outcome.MISPLACED: 1, Outcome.NOT_SWAPPED: 2}),)
    logged = {unit.partition: unit for unit in desk.log().find(desk.runs[0]).units}
    assert logged["dt=1"].reason_code == Code.LIVE_LOST_BLOCKS.code
    assert desk.control.run(taken_over(desk)).unit("kept", 1) in logged["dt=1"].reason
    # It is told once, and no later command deletes it.
    for command in (lambda: desk.compact(where="dt = '2'"), desk.cleanup, desk.recover):
        assert command().code is Exit.DONE
        assert rows_in(desk, taken_over(desk), "kept", 1) == rows
    assert rows_in(desk, taken_over(desk), "ready", 2) == rows_in(desk, taken_over(desk), "kept", 2) == set()


def test_the_directories_of_the_run_go_once_somebody_has_removed_the_copy(desk):
    killed_before_its_swaps(desk)
    lose_blocks(desk, "dt=1")
    desk.recover()
    desk.world.files.delete_tree(desk.control.run(taken_over(desk)).unit("kept", 1))
    desk.recover()
    assert desk.run_directories() == []


def test_forget_leaves_the_copy_and_says_that_a_run_may_have_kept_it(desk):
    rows = killed_before_its_swaps(desk)
    lose_blocks(desk, "dt=1")
    desk.recover()
    result = desk.forget()
    assert (result.code, "a run has kept files in it" in result.tables[0].problem.what) == (Exit.REFUSED, True)
    assert rows_in(desk, taken_over(desk), "kept", 1) == rows


def is_recovered_again(desk, step):
    """Kill a recovery after so many changes, and look that the next one, or the log, tells; False if it has no more of them."""
    desk.world.files.die_after(step)
    try:
        desk.recover()
    except Killed:
        desk.world.files.revive()
        desk.world.files.expire_locks()
        assert desk.recover().code is Exit.INVESTIGATE or desk.log().find(desk.runs[0]), step
        return True
    return False


def test_a_recovery_that_is_killed_anywhere_leaves_the_copy_too():
    for step in count():
        desk = desk_by(["dt"])
        rows = killed_before_its_swaps(desk)
        lose_blocks(desk, "dt=1")
        if not is_recovered_again(desk, step):
            break
        (directory,) = [name for name in desk.run_directories() if name.startswith(desk.runs[0])]
        assert rows_in(desk, directory, "kept", 1) == rows, step
    assert step


def a_desk_with_unreadable_old_files(what):
    """A killed run has them aside, and they are to stay there. Returns the desk, and the rows of the proved copy."""
    desk, killed, coming = desk_in_gap("compact")
    rows = set(desk.world.rows_below(place_of(desk, killed, f"{coming}/u00001")))
    if what == "its partition is dropped":
        joined_desk.manage(desk)
        joined_desk.drop_partition(desk)
    else:
        desk.world.catalog.put_table(replace(desk.world.table(desk.table), create_time=6))
    lose_all_in(desk, place_of(desk, killed, "retired/u00001"))
    return desk, rows


STAY_ASIDE = pytest.mark.parametrize("what", ["its partition is dropped", "its table is created again"])


@STAY_ASIDE
def test_the_copy_stays_where_old_files_that_stay_aside_have_lost_blocks(what):
    desk, rows = a_desk_with_unreadable_old_files(what)
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    (logged,) = [unit for unit in desk.log().find(desk.runs[0]).units if unit.partition == "dt=1"]
    assert place_of(desk, desk.runs[0], "kept/u00001") in logged.reason
    for command in (desk.recover, desk.compact, desk.cleanup):
        command()
        assert rows_in(desk, taken_over(desk), "kept", 1) == rows


@STAY_ASIDE
def test_a_recovery_of_these_that_is_killed_anywhere_leaves_the_copy_too(what):
    for step in count():
        desk, rows = a_desk_with_unreadable_old_files(what)
        if not is_recovered_again(desk, step):
            break
        assert set(desk.world.rows_below(place_of(desk, desk.runs[0], "kept/u00001"))) == rows, step
    assert step


def test_so_it_does_where_they_are_lost_once_a_killed_recovery_has_given_it_up():
    desk, killed, _ = desk_in_gap("compact")
    rows = set(desk.world.rows_below(place_of(desk, killed, "ready/u00001")))
    joined_desk.manage(desk)
    joined_desk.drop_partition(desk)
    desk.kill_before(["rename_exact", "/entry.json"], desk.recover)
    lose_all_in(desk, place_of(desk, killed, "retired/u00001"))
    assert desk.recover().code is Exit.INVESTIGATE
    assert rows_in(desk, taken_over(desk, by=2), "kept", 1) == rows


def test_a_partition_that_is_added_again_meanwhile_is_put_back_and_its_copy_stays():
    """A recovery that was killed had left it aside."""
    desk, rows = a_desk_with_unreadable_old_files("its partition is dropped")
    desk.kill_before(["rename_exact", "entry.json"], desk.recover)
    desk.world.catalog.add_partition(desk.table, a_partition("dt=1", desk.live("dt=1")))
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert set(desk.world.rows_below(place_of(desk, desk.runs[0], "kept/u00001"))) == rows
    assert desk.world.rows_below(desk.live("dt=1"))


def test_the_copy_goes_where_somebody_has_replaced_live_since(desk, world):
    killed_before_its_swaps(desk)
    world.overwrite(desk.live("dt=1"), "theirs.parquet", ["new"], whole=False)
    lose_blocks(desk, "dt=1")
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


def test_a_run_that_ends_before_a_swap_keeps_its_copy_where_blocks_of_live_are_lost(desk, world):
    rows = set(world.rows_below(desk.live("dt=1")))

    def lose(what):
        if "/ready/u00002" in what:
            lose_blocks(desk, "dt=1")
            world.files.writer.start_committer(desk.live("dt=1"))
            world.files.before_step = None

    world.files.before_step = lose
    result = desk.compact()
    assert (result.code, outcomes(result)) == (Exit.INVESTIGATE, {"dt=1": "misplaced", "dt=2": "swapped", "dt=3": "swapped"})
    assert rows_in(desk, desk.runs[0], "kept", 1) == rows


def test_a_run_that_is_stopped_keeps_the_copy_of_a_unit_that_waits_and_says_why(desk, world):
    rows = set(world.rows_below(desk.live("dt=2")))
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(stop_file="hdfs://nn/ops/stop")))

    def stop(what):
        if "/retired/u00001" in what:
            world.files.before_step = None
            lose_blocks(desk, "dt=2")
            world.files.writer.add("hdfs://nn/ops/stop", "")
            world.clock.elapsed_ms += LOOK_EVERY_MS

    world.files.before_step = stop
    result = desk.compact()
    assert (result.code, outcomes(result)) == (Exit.INVESTIGATE, {"dt=1": "swapped", "dt=2": "misplaced", "dt=3": "left"})
    left, why = (next(unit.why for unit in result.tables[0].units if unit.name == name) for name in ("dt=3", "dt=2"))
    assert why.what.startswith(left.what)
    assert rows_in(desk, desk.runs[0], "kept", 2) == rows


@pytest.mark.parametrize("a_desk", [lambda: desk_by(["dt"]), joined_desk.a_desk], ids=["directory", "join"])
def test_a_copy_that_has_lost_blocks_does_not_come_to_live(a_desk):
    desk = a_desk()
    world, rows = desk.world, desk.world.rows_of(desk.table)

    def lose(what):
        if "/ready/u00002" in what and what.startswith("rename_exact"):
            world.files.before_step = None
            lose_all_in(desk, desk.control.run(desk.runs[0]).unit("ready", 1))

    world.files.before_step = lose
    result = desk.compact()
    assert sorted(outcomes(result).values()) == ["given-up", "swapped"]
    assert [unit.why.code for unit in result.tables[0].units if unit.why] == [Code.LOST_BLOCKS]
    assert world.rows_of(desk.table) == rows
    assert desk.compact().code is Exit.DONE


def lose_backup(desk, run, number=1):
    lose_all_in(desk, desk.control.run(run).unit("retired", number))


def codes_of(result):
    return {unit.name: unit.why.code for unit in result.tables[0].units if unit.why}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_backup_that_has_lost_blocks_is_not_brought_back_over_live_that_can_be_read(desk, world, dry_run):
    desk.compact()
    before = world.files.contents(desk.live("dt=1"))
    lose_backup(desk, desk.runs[0])
    result = desk.rollback(dry_run=dry_run)
    done = "planned" if dry_run else "rolled-back"
    assert outcomes(result) == {"dt=1": "refused", "dt=2": done, "dt=3": done}
    assert (codes_of(result), result.code) == ({"dt=1": Code.LOST_BLOCKS}, Exit.PARTIAL)
    assert world.files.contents(desk.live("dt=1")) == before


def test_where_live_cannot_be_read_either_the_operator_decides_and_can_take_it_back(desk, world):
    desk.compact()
    rows = world.rows_of(desk.table)
    lose_backup(desk, desk.runs[0])
    lose_blocks(desk, "dt=1")
    planned = desk.rollback(where="dt = '1'", dry_run=True)
    assert (outcomes(planned), codes_of(planned)) == ({"dt=1": "planned"}, {"dt=1": Code.LOST_BLOCKS})
    result = desk.rollback(where="dt = '1'")
    assert (outcomes(result), codes_of(result)) == ({"dt=1": "rolled-back"}, {"dt=1": Code.LOST_BLOCKS})
    assert desk.log().find(desk.runs[-1]).units[0].reason_code == Code.LOST_BLOCKS.code
    assert outcomes(desk.rollback(desk.runs[-1], where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert world.rows_of(desk.table) == rows


@pytest.mark.parametrize("dry_run", [False, True])
def test_that_is_told_once_of_a_unit_that_takes_several_steps(desk, dry_run):
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    desk.compact()
    lose_backup(desk, desk.runs[0])
    lose_blocks(desk, "dt=1")
    steps = desk.rollback(desk.runs[0], where="dt = '1'", dry_run=dry_run).tables[0].units
    assert [unit.why.code if unit.why else None for unit in steps] == [None, Code.LOST_BLOCKS]


def test_a_backup_on_the_way_to_an_older_one_may_have_lost_blocks(desk, world):
    rows = world.rows_below(desk.live("dt=1"))
    desk.compact()
    desk.append("dt=1", "late1", "late2")
    desk.compact()
    lose_backup(desk, desk.runs[1])
    assert codes_of(desk.rollback(desk.runs[1], where="dt = '1'")) == {"dt=1": Code.LOST_BLOCKS}
    assert set(outcomes(desk.rollback(desk.runs[0], where="dt = '1'")).values()) == {"rolled-back"}
    assert world.rows_below(desk.live("dt=1")) == rows + Counter(["late1", "late2"])


def test_a_joined_file_in_a_backup_comes_back_where_only_old_files_inside_it_have_lost_blocks():
    desk, inside = a_grown_joined_desk()
    desk.compact()
    (effect,) = [one for one in desk.log().standing if one.partition == "dt=1" and one.inside is None]
    node = desk.world.files.namespace.find(names.join(desk.control.top, effect.place, inside.file))
    node.lost = (0, 10)
    assert codes_of(desk.rollback(effect.run, where="dt = '1'")) == {"dt=1": Code.LOST_BLOCKS}
    node.lost = (inside.begin, inside.begin + 10)
    assert outcomes(desk.rollback(effect.run, where="dt = '1'")) == {"dt=1": "rolled-back"}


@pytest.mark.parametrize("command", ["compact", "rollback"])
@pytest.mark.parametrize("both", [False, True])
def test_a_recovery_in_the_gap_puts_old_files_back_that_can_be_read_if_the_new_ones_cannot(desk, world, command, both):
    if command == "rollback":
        desk.compact()
    before, state = world.files.contents(desk.live("dt=1")), "ready" if command == "compact" else "restoring"
    desk.kill_before(["rename_exact", f"/{state}/u00001 {desk.live('dt=1')}"], getattr(desk, command))
    killed = desk.control.run(desk.runs[-1])
    for place in (killed.unit(state, 1), *([killed.unit("retired", 1)] if both else ())):
        lose_all_in(desk, place)
    desk.recover()
    logged = {unit.partition: unit for unit in desk.log().find(desk.runs[-2]).units}
    done = "swapped" if command == "compact" else "rolled-back"
    assert (logged["dt=1"].outcome.code, logged["dt=1"].reason_code) == ((done, "") if both else ("put-back", Code.LOST_BLOCKS.code))
    assert (world.files.contents(desk.live("dt=1")) == before) is not both


@pytest.mark.parametrize("part", ["copy", "old file"])
def test_a_proved_copy_stays_only_for_what_readers_of_a_joined_file_need(part):
    desk, inside = a_grown_joined_desk()
    desk.kill_before([desk.live("dt=1"), "/retired/"], desk.compact)
    stays, begin = part == "copy", 0 if part == "copy" else inside.begin
    lose(desk, inside, begin, begin + 10)
    result = desk.recover()
    assert result.code is (Exit.INVESTIGATE if stays else Exit.DONE)
    assert result.tables[0].recovered == ((desk.runs[-2], {Outcome.MISPLACED if stays else Outcome.NOT_SWAPPED: 1}),)


@pytest.mark.parametrize("part", ["copy", "old file"])
def test_a_recovery_in_the_gap_takes_new_files_with_lost_blocks_only_for_a_joined_file_that_cannot_be_read(part):
    desk, inside = a_grown_joined_desk()
    desk.kill_before(["rename_exact", f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    killed, begin = desk.control.run(desk.runs[-1]), 0 if part == "copy" else inside.begin
    desk.world.files.namespace.find(f"{killed.unit('retired', 1)}/{inside.file}").lost = (begin, begin + 10)
    lose_all_in(desk, killed.unit("ready", 1))
    desk.recover()
    (logged,) = desk.log().find(desk.runs[-2]).units
    assert logged.outcome is (Outcome.SWAPPED if part == "copy" else Outcome.PUT_BACK)


@pytest.mark.parametrize("part", ["copy", "old file"])
def test_a_recovery_in_the_gap_brings_a_joined_file_back_that_can_be_read(part):
    desk, inside = a_grown_joined_desk()
    desk.compact()
    desk.kill_before(["rename_exact", f"/restoring/u00001 {desk.live('dt=1')}"], lambda: desk.rollback(desk.runs[1], where="dt = '1'"))
    killed, begin = desk.control.run(desk.runs[-1]), 0 if part == "copy" else inside.begin
    desk.world.files.namespace.find(f"{killed.unit('restoring', 1)}/{inside.file}").lost = (begin, begin + 10)
    desk.recover()
    (logged,) = desk.log().find(desk.runs[-2]).units
    assert logged.outcome is (Outcome.PUT_BACK if part == "copy" else Outcome.ROLLED_BACK)
