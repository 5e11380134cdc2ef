"""A user of the runs who may read partitions, but not write to them: to rename a directory takes no right on it, to move a file does."""

from __future__ import annotations

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from support.desk import outcomes
from support.joined_desk import at
from support.late_directories import BOTH, desk_before, leaves
from unit.commands.test_leftovers import STAGING, age, names_in
from unit.commands.test_leftovers import a_desk as a_plain_desk


def forbid_moves(desk, monkeypatch):
    rename = desk.world.files.rename_exact

    def refuse(source, target):
        if "/retired/" in names.parent(source) and desk.control.top not in target:
            raise NoPermission(f"{names.parent(source)} may not be written to")
        rename(source, target)

    monkeypatch.setattr(desk.world.files, "rename_exact", refuse)


@BOTH
def test_a_late_file_stays_in_the_backup_and_the_table_goes_on(command, monkeypatch):
    desk = desk_before(command)
    forbid_moves(desk, monkeypatch)
    at(desk, leaves(desk), lambda: desk.world.add_file(f"{desk.live('dt=1')}/late.parquet", ["late"]))
    result = getattr(desk, command)()
    assert outcomes(result).get("dt=1") == "misplaced"
    assert "late.parquet came late" in next(unit.reason for unit in result.tables[0].units if unit.name == "dt=1")
    assert desk.recover().code is Exit.DONE
    assert outcomes(desk.compact()).get("dt=1") != "misplaced"
    age(desk)
    desk.cleanup()
    assert [path for path in desk.world.files.contents(desk.live()) if path.endswith("/late.parquet")]
    monkeypatch.undo()
    desk.cleanup()
    assert desk.world.files.stat(f"{desk.live('dt=1')}/late.parquet")


def test_the_staging_directory_of_impala_stays_in_the_backup_and_the_table_goes_on(monkeypatch):
    desk = a_plain_desk()
    forbid_moves(desk, monkeypatch)
    desk.world.files.writer.make_directory(f"{desk.live()}/{STAGING}")
    age(desk)
    before = desk.world.rows_of(desk.table)
    assert outcomes(desk.compact()) == {"": "swapped"}
    assert desk.verify().code is Exit.DONE
    assert outcomes(desk.rollback()) == {"": "rolled-back"}
    assert (STAGING in names_in(desk, desk.live()), desk.world.rows_of(desk.table)) == (True, before)
