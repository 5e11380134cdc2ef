"""What came to a unit's place in the gap, and may not be merged, is told of (misplaced, 7), also where the exchange is put back and
something then ends the command before its log entry: its own answer and the next recovery are all that can tell.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hdfs_user import own
from support.world import World

SHAPES = {"flat": ([], [""]), "partitioned": (["dt"], ["dt=1", "dt=2"])}
FIRST, NEW = DataFile(("first",)), DataFile(("new",))


class Writers:
    """`replaced`: an INSERT OVERWRITE replaces the directory between check and rename, and another writer, of the same user, makes it again
    in the gap. `closed`: a committer begins just before the rename, and another user's job with umask 077 makes it again.
    """

    def __init__(self, desk, live, how):
        self.space, self.writer = desk.world.files.namespace, desk.world.files.writer
        self.live, self.how, self.have_begun, self.have_come = live, how, False, False

    def act(self, what):
        if not self.have_begun and what.startswith(f"rename_exact {self.live} "):
            self.have_begun = True
            if self.how == "replaced":
                self.writer.overwrite(self.live, {"first.parquet": FIRST})
            else:
                self.writer.start_committer(self.live)
        elif self.have_begun and not self.have_come and self.space.find(self.live) is None:
            self.have_come = True
            self.writer.add(f"{self.live}/new.parquet", NEW, 100)
            if self.how == "closed":
                own(self.space.directory(self.live), "bob", "bob", 0o700)


def interrupt(desk, live, writers, ends):
    """Returns what tells, by not being empty, that the command has met its end."""
    files, met, is_next = desk.world.files, [], []

    def act(what):
        writers.act(what)
        is_back = what.startswith("rename_exact") and what.endswith(f"/retired/u00001 {live}") and files.namespace.find(live) is None
        if ends == "killed before its entry" and what.startswith("write_new") and what.endswith("/entry.json"):
            met.append(what)
            files.die_after(0)
        elif writers.have_come and is_back and not met:
            met.append(what)
            if ends == "killed at once":
                files.die_after(1)
            elif ends == "lost answer":
                desk.world.fail_call(what, done=True)
            elif ends == "lost answer of the next call":
                is_next.append(what)
        elif is_next:
            is_next.clear()
            desk.world.fail_call(what, done=True)

    files.before_step = act
    return met


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("command", ["compact", "rollback"])
@pytest.mark.parametrize("how", ["replaced", "closed"])
@pytest.mark.parametrize("ends", ["not", "killed at once", "killed before its entry", "lost answer", "lost answer of the next call"])
def test_rows_that_are_set_aside_are_told_of_whatever_ends_the_command(shape, command, how, ends):
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns, create_time=5), {unit: [1000] * 3 for unit in units})
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    live = desk.live(units[0])
    writers = Writers(desk, live, how)
    met = interrupt(desk, live, writers, ends)
    codes = []
    with suppress(Killed):
        codes.append(getattr(desk, command)().code)
    assert met and writers.have_come
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    world.wait(3_600_000)
    codes += [desk.recover().code, desk.recover().code]
    assert world.rows_anywhere()["new"] == 1
    assert world.rows_of(desk.table)["new"] or Exit.INVESTIGATE in codes
