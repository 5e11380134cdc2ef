"""A cleanup, once live has lost blocks: no DataNode has them any more, and the old files are the only copy of its rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import ALL
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_table
from support.desk import Desk
from support.world import World


def lose_blocks(desk, unit):
    """Of all files of live, as when DataNodes died or lost power before they had written these blocks to their disks."""
    for _, node in desk.world.files.namespace.walk(desk.world.files.qualify(desk.live(unit))):
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
