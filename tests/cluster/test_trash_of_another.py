"""`discard: trash` in an encryption zone: the trash there is a directory in which anybody may make that of the user of the runs."""

from __future__ import annotations

import pytest

from cluster.test_encryption_zones import DAYS, Zones, outcomes
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code


@pytest.fixture
def zones(spark, gateway, superuser, database):
    return Zones(spark, gateway, superuser, database)


def mode(gateway, bits):
    return gateway.jvm.org.apache.hadoop.fs.permission.FsPermission(bits)


def test_no_old_files_go_to_a_trash_that_another_user_has_made(zones, gateway, loader, monkeypatch):
    zone = zones.make("shared")
    root, path = f"{zone}/events", zones.path
    for day in DAYS:
        zones.add_rows(f"{root}/{day}")
    desk = zones.define("events", root, {day: f"{root}/{day}" for day in DAYS})
    # Closed above the partitions, which are open: only the root keeps others away.
    zones.dfs.setPermission(path(root), mode(gateway, "700"))
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    # As an administrator sets up the trash of a zone; everybody may make their own directory in it, and that of others.
    zones.dfs.provisionEZTrash(path(zone), mode(gateway, "1777"))
    trash = f"{zone}/.Trash/etl"
    runs = f"{trash}/Current{root}/.hivekeeper/runs"
    at = path(runs)
    loader.mkdirs(at)
    while str(at) != f"{zone}/.Trash":
        loader.setPermission(at, mode(gateway, "777"))
        at = at.getParent()
    move, moved = HadoopFiles.move_to_trash, []

    def move_to_trash(self, directory):
        done = move(self, directory)
        if not moved:
            # What etl has made there is closed, but lies in loader's directory, and the next unit goes to the same place.
            (run,) = [status.getPath() for status in loader.listStatus(path(runs))]
            loader.rename(run, path(f"{runs}/aside"))
            loader.mkdirs(path(f"{run}/held"))
            for one in (run, path(f"{run}/held")):
                loader.setPermission(one, mode(gateway, "777"))
            moved.append(f"{run}/held")
        return done

    monkeypatch.setattr(HadoopFiles, "move_to_trash", move_to_trash)
    result = desk.cleanup(how="trash")
    listed = []
    for held in moved:
        for unit in loader.listStatus(path(held)):
            listed += [status.getPath().getName() for status in loader.listStatus(unit.getPath())]
            # And it is his to move.
            loader.rename(unit.getPath(), path(f"{trash}/mine"))
    assert listed == [], (result.code, [backup.state for backup in result.tables[0].backups], listed)
    (backup,) = result.tables[0].backups
    assert (result.code, {name: why.code for name, why in backup.kept_units}) == (Exit.PARTIAL, dict.fromkeys(DAYS, Code.TRASH_NOT_OURS))
    # Once an administrator has moved it away, the old files go to a trash that is closed to all others.
    monkeypatch.undo()
    zones.dfs.delete(path(trash), True)
    result = desk.cleanup(how="trash")
    assert (result.code, [backup.state.code for backup in result.tables[0].backups]) == (Exit.DONE, ["discarded"])
    assert zones.names_in(f"{zone}/.Trash") == {"etl"}
    with pytest.raises(Exception, match="AccessControlException"):
        loader.listStatus(path(trash))
