"""A late file waits in the backup of a run; then somebody overwrites the partition, and later runs exchange what it holds now. It comes to
live only if each run since took what the one before had put there.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.fakes.rows import DataFile
from support.joined_desk import a_desk
from support.world import World

A_YEAR_MS = 365 * 24 * 3_600_000


def compacted_once(**settings):
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False, **settings)
    desk.compact()
    return desk


def add_late(desk, run=0):
    """A writer had it open across the exchange, and closes it now. Of a rollback over two runs, the first of its exchanges."""
    effect = next(effect for effect in desk.log().standing if effect.run == desk.runs[run] and effect.partition == "dt=1")
    desk.world.add_file(f"{desk.control.top}/{effect.place}/late.parquet", ["late"])


def delete_all(desk):
    for path in list(desk.world.files.contents(desk.live("dt=1"))):
        desk.world.files.writer.delete(path)


def overwrite(desk, *rows):
    delete_all(desk)
    desk.append("dt=1", *rows)


def rows(desk):
    return sorted(desk.world.rows_below(desk.live("dt=1")).elements())


def clean_up(desk):
    desk.world.wait(A_YEAR_MS)
    return desk.cleanup(EVERYTHING)


def assert_aside(desk, *expected):
    """The late file stays where it is, and the exit code and a next step tell of it."""
    result = clean_up(desk)
    assert result.code is Exit.PARTIAL
    (why,) = (why for backup in result.tables[0].backups for _, why in backup.kept_units if why.code is Code.LATE_IN_BACKUP)
    assert "move it" in why.next
    assert rows(desk) == sorted(expected)
    assert desk.world.rows_anywhere()["late"] == 1


def assert_carried(desk, *expected):
    assert clean_up(desk).code is Exit.DONE
    assert rows(desk) == sorted([*expected, "late"])
    assert desk.log().standing == ()


def overwritten_after_a_run(compacts_again):
    desk = compacted_once()
    add_late(desk)
    overwrite(desk, "a", "b", "c")
    if compacts_again:
        desk.compact()
    return desk


@pytest.mark.parametrize("compacts_again", [False, True])
def test_its_rows_were_overwritten_too(compacts_again):
    assert_aside(overwritten_after_a_run(compacts_again), "a", "b", "c")


def test_nor_does_it_come_after_more_runs():
    desk = overwritten_after_a_run(compacts_again=True)
    desk.append("dt=1", "d", "e")
    desk.compact()
    assert_aside(desk, "a", "b", "c", "d", "e")


def test_nor_after_the_run_that_took_the_new_files_was_rolled_back_and_brought_back():
    """Then the log has no lists of that run any more, but those of the rollbacks."""
    desk = overwritten_after_a_run(compacts_again=True)
    desk.rollback()
    desk.rollback(desk.runs[-1])
    assert_aside(desk, "a", "b", "c")


def test_nor_after_that_run_was_rolled_back():
    desk = overwritten_after_a_run(compacts_again=True)
    desk.rollback()
    assert_aside(desk, "a", "b", "c")


def test_nor_where_files_of_the_former_ones_names_and_lengths_were_written_anew():
    desk = compacted_once()
    desk.append("dt=1", "x", "y")
    desk.compact()
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    add_late(desk, run=2)
    lengths = {path: desk.world.files.stat(path).length for path in desk.world.files.contents(desk.live("dt=1"))}
    delete_all(desk)
    for path, length in lengths.items():
        desk.world.add_file(path, [names.base(path)], length)
    desk.world.wait(3_600_000)
    desk.compact()
    assert_aside(desk, *map(names.base, lengths))


def test_nor_where_a_run_has_joined_the_new_files():
    """A join tells only of the files that it took."""
    desk = a_desk(exchange="directory")
    desk.compact()
    add_late(desk)
    overwrite(desk, "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="files")
    desk.compact()
    assert [effect.partition for effect in desk.log().joined] == ["dt=1"]
    assert_aside(desk, "a", "b", "c")


# ---- nobody has overwritten anything


def test_it_comes_below_many_runs():
    desk = compacted_once()
    held = rows(desk)
    add_late(desk)
    for nth in range(3):
        desk.append("dt=1", f"a{nth}", f"b{nth}")
        desk.compact()
        held += [f"a{nth}", f"b{nth}"]
    assert_carried(desk, *held)


@pytest.mark.parametrize("redone", [False, True])
def test_it_comes_below_a_run_that_was_rolled_back(redone):
    desk = compacted_once()
    held = rows(desk)
    add_late(desk)
    desk.append("dt=1", "a", "b")
    desk.compact()
    desk.append("dt=1", "c")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    if redone:
        assert outcomes(desk.rollback(desk.runs[-1])) == {"dt=1": "rolled-back"}
    desk.append("dt=1", "d")
    assert_carried(desk, *held, "a", "b", "c", "d")


def test_it_comes_from_what_a_rollback_took_out_below_another_rollback():
    """The second one leaves in live what came between the two runs."""
    desk = compacted_once()
    held = rows(desk)
    desk.append("dt=1", "a", "b")
    desk.compact()
    desk.rollback()
    add_late(desk, run=2)
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back"}
    assert_carried(desk, *held, "a", "b")


def test_it_comes_below_a_join():
    desk = a_desk(exchange="directory")
    desk.compact()
    held = rows(desk)
    add_late(desk)
    desk.settings = replace(desk.settings, exchange="files")
    desk.append("dt=1", "a", "b", "c")
    desk.compact()
    assert [effect.partition for effect in desk.log().joined] == ["dt=1"]
    assert_carried(desk, *held, "a", "b", "c")


@pytest.mark.parametrize("is_cut", [False, True])
def test_it_comes_where_the_file_that_a_rollback_brought_back_was_cut(is_cut):
    """By this cleanup, or by an earlier one."""
    desk = compacted_once(fewest_joined=2, exchange="files")
    held = rows(desk)
    assert len(desk.log().joined) == 1
    desk.settings = replace(desk.settings, exchange="directory")
    desk.append("dt=1", "a", "b")
    desk.compact()
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    if is_cut:
        desk.pin(desk.runs[2])
        desk.world.wait(A_YEAR_MS)
        desk.cleanup(EVERYTHING)
        desk.pin(desk.runs[2], False)
        assert desk.log().joined == ()
    add_late(desk, run=2)
    assert_carried(desk, *held, "a", "b")


def a_rollback_over_two_runs_that_renames():
    """Each INSERT of Hive into a directory without one gives its file the name 000000_0."""
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": []})
    desk = Desk(world, backup_table=False)
    for rows_of_insert in ("abc", "xy"):
        for nth, row in enumerate(rows_of_insert):
            world.add_file(f"{desk.live('dt=1')}/00000{nth}_0", [row])
            world.wait(3_600_000)
        desk.compact()
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back"}
    assert rows(desk) == list("abcxy")
    return desk


@pytest.mark.parametrize("compacts_again", [False, True])
def test_it_comes_where_a_rollback_had_to_rename_what_came_between_two_runs(compacts_again):
    desk = a_rollback_over_two_runs_that_renames()
    add_late(desk, run=2)
    if compacts_again:
        desk.append("dt=1", "z")
        desk.compact()
    assert_carried(desk, *"abcxy", *("z" if compacts_again else ""))


def test_but_not_where_that_file_was_overwritten_since():
    desk = a_rollback_over_two_runs_that_renames()
    add_late(desk, run=2)
    path = next(path for path in desk.world.files.contents(desk.live("dt=1")) if "-late1" in path)
    desk.world.files.writer.delete(path)
    desk.world.add_file(path, ["n"])
    desk.world.wait(3_600_000)
    clean_up(desk)
    assert "late" not in rows(desk)


# ---- what stays beside what else goes or stays


def names_of_late(result):
    return [name for backup in result.tables[0].backups for name in backup.late_files]


def add_newer(desk):
    (effect,) = (effect for effect in desk.log().standing if effect.run == desk.runs[-1])
    desk.world.add_file(f"{desk.control.top}/{effect.place}/new.parquet", ["new"])


def test_a_newer_one_comes_although_one_from_before_an_overwrite_stays():
    desk = overwritten_after_a_run(compacts_again=True)
    add_newer(desk)
    assert names_of_late(clean_up(desk)) == ["new.parquet"]
    assert rows(desk) == ["a", "b", "c", "new"]
    assert [effect.run for effect in desk.log().standing] == [desk.runs[0]]


@pytest.mark.parametrize("overwrites", [False, True])
def test_what_stays_from_before_an_overwrite_does_not_keep_what_came_after_it(overwrites):
    """No rollback leads over the overwrite: it is refused."""
    desk = overwritten_after_a_run(compacts_again=True)
    for nth in range(3):
        if overwrites:
            delete_all(desk)
        desk.append("dt=1", f"d{nth}", f"e{nth}")
        desk.compact()
    clean_up(desk)
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "refused"}
    assert [effect.run for effect in desk.log().standing] == [desk.runs[0]]


def an_older_one_that_stays():
    """A writer has a file open in the backup of the first of two runs, and the second one's is needed by a rollback to it."""
    desk = compacted_once()
    (effect,) = desk.log().standing
    desk.world.files.writer.open(f"{desk.control.top}/{effect.place}/open.parquet", DataFile(("open",)), 1000)
    desk.append("dt=1", "a", "b")
    desk.compact()
    add_newer(desk)
    return desk


def test_what_comes_late_to_a_backup_that_a_rollback_needs_goes_to_live():
    desk = an_older_one_that_stays()
    held = rows(desk)
    result = clean_up(desk)
    assert rows(desk) == sorted([*held, "new"])
    assert names_of_late(result) == ["new.parquet"]
    assert Code.NEEDED_BY_ROLLBACK in {why.code for backup in result.tables[0].backups for _, why in backup.kept_units}
    assert [effect.run for effect in desk.log().standing] == desk.runs[:2]


def test_or_is_told():
    desk = an_older_one_that_stays()
    overwrite(desk, "x", "y", "z")
    whys = [why for backup in clean_up(desk).tables[0].backups for _, why in backup.kept_units]
    assert [why.code for why in whys] == [Code.OPEN_FILE, Code.LATE_IN_BACKUP]
    assert "new.parquet" in whys[1].what
