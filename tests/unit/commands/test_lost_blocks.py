"""A cleanup, once live has lost blocks: no DataNode has them any more, and the old files are the only copy of its rows."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support import joined_desk


def lose_blocks(desk, unit):
    """Of all files of live, as when DataNodes died or lost power before they had written these blocks to their disks."""
    for _, node in desk.world.files.namespace.walk(desk.world.files.qualify(desk.live(unit))):
        node.is_lost = not node.is_dir


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
    assert not any(node.is_lost for _, node in world.files.namespace.walk(world.files.qualify(desk.live("dt=2"))))


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
        node.is_lost = False
    assert desk.cleanup().code is Exit.DONE
    assert not desk.log().standing


def test_a_backup_goes_if_somebody_else_has_replaced_live_since(desk, world):
    desk.compact()
    world.overwrite(desk.live("dt=2"), "theirs.parquet", ["new"], whole=False)
    lose_blocks(desk, "dt=2")
    assert desk.cleanup().code is Exit.DONE
    assert not desk.log().standing


def test_old_files_inside_a_file_that_has_lost_blocks_are_not_cut_off():
    desk = joined_desk.a_desk()
    desk.compact()
    before = joined_desk.files_of(desk)
    lose_blocks(desk, "dt=1")
    result = desk.cleanup()
    assert (kept(result), result.code) == ({"dt=1": Code.LIVE_LOST_BLOCKS}, Exit.PARTIAL)
    assert joined_desk.files_of(desk) == before
