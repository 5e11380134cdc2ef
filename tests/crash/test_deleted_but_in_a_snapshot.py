"""A NameNode keeps the inode of a directory that was deleted while a snapshot has it. `/.reserved/.inodes/ID` is resolved by the names of
that inode and of those around it (FSDirectory.resolveDotInodesPath, INode.getPathComponents, which "cannot handle scenarios where the inode
is in a snapshot"), so it leads to whatever is at the path by now. Whoever deletes a directory of theirs, instead of renaming it away, can
have another one found by its id.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.joined_desk import a_desk
from support.late_directories import act_before_live_is_settled
from support.world import World

# Another partition of the same table, which belongs to bob: the tenant owns the table's directory, and may rename it, but neither read it
# nor write to it.
NAME = "000000_0"


def add_theirs(desk):
    files, theirs = desk.world.files, desk.live("dt=9")
    files.writer.add(f"{theirs}/{NAME}", DataFile(("secret",)), 10)
    node = files.namespace.directory(theirs)
    node.attributes = replace(node.attributes, owner="bob", group="bobs", mode=0o700, file_mode=0o644)
    return node


def set_up(keeps):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=9": []})
    desk = Desk(world, backup_table=False)
    node = add_theirs(desk)
    world.files.namespace.advance(3_600_000)
    return desk, node, world.files.namespace.delete_into_snapshot if keeps else world.files.writer.delete


SITES = pytest.mark.parametrize("keeps", [False, True], ids=["no snapshot", "in a snapshot"])


def put_late_file_into_backup(desk):
    desk.compact(where="dt='1'")
    [place] = [path for path, _ in desk.world.files.namespace.walk(desk.live()) if path.endswith("/retired/u00001")]
    desk.world.files.writer.add(f"{place}/late.parquet", DataFile(("late",)), 7)
    desk.world.files.namespace.advance(30 * 86_400_000)


@SITES
def test_a_late_file_of_a_backup_does_not_come_into_a_directory_of_others(keeps):
    """S. Cleanup moves it to live by live's id. Live, old enough to be in a nightly snapshot, is deleted just then, and bob's closed
    partition takes its name for a moment.
    """
    desk, theirs, delete = set_up(keeps)
    put_late_file_into_backup(desk)
    live, seen = desk.live("dt=1"), []

    def act(what):
        if not seen and what.startswith("rename_exact") and what.endswith(f"{live}/late.parquet"):
            seen.append(what)
            delete(live)
            desk.world.files.writer.rename_into(desk.live("dt=9"), live)

    desk.world.files.before_step = act
    desk.cleanup()
    desk.world.files.before_step = None
    assert seen
    assert sorted(theirs.children) == [NAME]


@SITES
def test_a_late_file_of_a_backup_does_not_come_beside_what_has_replaced_it(keeps):
    """A: nobody means harm. INSERT OVERWRITE deletes the directory and makes it again, just as a cleanup moves a late file."""
    desk, _, delete = set_up(keeps)
    put_late_file_into_backup(desk)
    live, seen = desk.live("dt=1"), []

    def act(what):
        if not seen and what.startswith("rename_exact") and what.endswith(f"{live}/late.parquet"):
            seen.append(what)
            delete(live)
            desk.world.files.writer.add(f"{live}/{NAME}", DataFile(("new",)), 10)

    desk.world.files.before_step = act
    code = desk.cleanup().code
    desk.world.files.before_step = None
    assert seen
    assert dict(desk.world.rows_below(live)) == {"new": 1}, code


@SITES
def test_files_of_a_closed_directory_do_not_leave_it(keeps, monkeypatch):
    """S, and the right to make snapshots. The tenant renames a directory into live, makes a snapshot, deletes that one, and puts bob's
    closed partition in its place, while what is in it is moved up: bob's file, which all may read, comes into the open live.
    """
    desk, theirs, delete = set_up(keeps)
    inner, seen = f"{desk.live('dt=1')}/job", []
    act_before_live_is_settled(desk, lambda desk: desk.world.files.writer.add(f"{inner}/{NAME}", DataFile(("forged",)), 7), monkeypatch)

    def act(what):
        if not seen and what.startswith(f"rename_exact {inner}/{NAME} "):
            seen.append(what)
            delete(inner)
            desk.world.files.writer.rename_into(desk.live("dt=9"), inner)

    desk.world.files.before_step = act
    desk.compact(where="dt='1'")
    desk.world.files.before_step = None
    assert seen
    assert sorted(theirs.children) == [NAME]


@SITES
@pytest.mark.parametrize("is_put_back", [False, True], ids=["it stays", "it is put back"])
@pytest.mark.parametrize("name", [".hivekeeper.tail-", "part-"])
def test_what_a_join_makes_does_not_come_into_a_directory_of_others(keeps, is_put_back, name):
    """S. The tail, or the file that takes the sources, shows no rows. Once bob's directory is back, nobody looks for it there."""
    desk = a_desk()
    theirs, files, live, seen = add_theirs(desk), desk.world.files, desk.live("dt=1"), []

    def act(what):
        if not seen and what.startswith("rename_exact") and "/ready/" in what and f" {live}/{name}" in what:
            seen.append(what)
            (files.namespace.delete_into_snapshot if keeps else files.writer.delete)(live)
            files.writer.rename_into(desk.live("dt=9"), live)
        elif seen and is_put_back and files.namespace.find(live) is theirs:
            files.writer.rename_into(live, desk.live("dt=9"))

    files.before_step = act
    desk.compact(where="dt='1'")
    files.before_step = None
    assert seen
    assert sorted(theirs.children) == [NAME]
