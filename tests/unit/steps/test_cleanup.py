"""A cleanup by a user without all rights: what cannot be deleted goes back to its place, with the reason."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code, Reason
from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world)
    desk.compact()
    return desk


def forbid(desk, method, word):
    """The first call of this method with this word is denied."""

    def act(what):
        if what.startswith(method) and word in what:
            desk.world.files.fail_next(method, NoPermission("permission denied: user=etl"))
            desk.world.files.before_step = None

    desk.world.files.before_step = act


def retired(desk):
    return sorted(path for path in desk.world.picture() if "/retired/u00001/" in path)


@pytest.mark.parametrize(
    ("method", "word", "how"),
    [
        ("rename_exact", "/held/u00001", "delete"),
        ("rename_exact", "/discarding/u00001", "delete"),
        ("delete_tree", "/discarding/u00001", "delete"),
        ("move_to_trash", "/held/u00001", "trash"),
    ],
)
def test_a_backup_that_we_may_not_delete_stays_where_it_was(desk, method, word, how):
    before, rows = retired(desk), desk.world.rows_of(desk.table)
    forbid(desk, method, word)
    result = desk.cleanup(how=how)
    assert result.code is Exit.PARTIAL
    assert result.tables[0].backups[0].kept_units == (("dt=1", Reason(Code.NO_PERMISSION, "permission denied: user=etl")),)
    assert (retired(desk), desk.world.rows_of(desk.table)) == (before, rows)
    assert desk.run_directories() == [desk.runs[0]]
    assert desk.cleanup(how=how).code is Exit.DONE
    assert desk.run_directories() == []


def test_a_backup_of_which_a_part_was_deleted_is_left_to_a_person(desk):
    """Local files are deleted one by one; HDFS deletes a directory completely or not at all."""

    def act(what):
        if what.startswith("delete_tree") and "/discarding/u00001" in what:
            desk.world.files.before_step = None
            place = desk.control.run(desk.runs[-1]).unit("discarding", 1)
            desk.world.files.writer.delete(f"{place}/part-00000.parquet")
            desk.world.files.fail_next("delete_tree", NoPermission("permission denied"))

    desk.world.files.before_step = act
    result = desk.cleanup()
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is Code.BACKUP_HALF_DELETED


def test_a_rollback_that_is_not_allowed_says_why_and_leaves_everything(desk):
    before, rows = retired(desk), desk.world.rows_of(desk.table)
    forbid(desk, "rename_exact", "/restoring/u00001")
    result = desk.rollback()
    assert {unit.name: (unit.outcome.code, unit.reason) for unit in result.tables[0].units} == {
        "dt=1": ("given-up", "permission denied: user=etl"),
        "dt=2": ("rolled-back", ""),
    }
    assert (result.code, retired(desk)) == (Exit.PARTIAL, before)
    assert desk.world.rows_of(desk.table) == rows
