"""An exchange whose new files have no room at live's place is killed, or loses an answer, at every change: each row is there once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.quotas import limit, make_copies_longer
from support.world import World

UNIT = "region=eu/dt=1"
COMMANDS = {"compact": "ready", "rollback": "restoring"}


def build(command):
    world = World()
    world.add_table(a_table(("region", "dt"), create_time=5), {UNIT: [1000] * 3})
    desk = Desk(world, backup_table=False)
    make_copies_longer(desk, 2 if command == "compact" else 1 / 2)
    if command == "rollback":
        desk.compact()
    limit(desk, 20)
    return desk


class Writer:
    """A file comes late to live, just before it leaves, and another one to its place. Something ends the nth step, if any."""

    def __init__(self, desk, command, ends=None, nth=None):
        self.desk, self.incoming, self.ends, self.nth, self.steps = desk, COMMANDS[command], ends, nth, 0
        self.waiting = {"late": f"rename_exact {desk.live(UNIT)} ", "new": f"/{self.incoming}/u00001 {desk.live(UNIT)}"}

    def act(self, what):
        for row, words in list(self.waiting.items()):
            if words in what:
                del self.waiting[row]
                namespace = self.desk.world.files.namespace
                namespace.create(f"{self.desk.live(UNIT)}/{row}.parquet", DataFile((row,)), 0).length = 10
        self.steps += 1
        if self.steps == self.nth and self.ends == "killed":
            self.desk.world.files.die_after(1)
        elif self.steps == self.nth and what.startswith("rename_exact"):
            self.desk.world.fail_call(what, done=self.ends == "done")


@pytest.mark.parametrize("ends", ["killed", "done", "not done"])
@pytest.mark.parametrize("command", COMMANDS)
def test_each_row_is_there_once_whatever_ends_the_command(command, ends):
    known = build(command)
    first = Writer(known, command)
    rows = known.world.rows_of("sales.events")
    known.world.files.before_step = first.act
    assert outcomes(getattr(known, command)()) == {UNIT: "put-back"}
    assert known.world.rows_of("sales.events") == rows + Counter(["late", "new"])
    for nth in range(1, first.steps + 1):
        desk = build(command)
        writer = Writer(desk, command, ends, nth)
        desk.world.files.before_step = writer.act
        with suppress(Killed):
            getattr(desk, command)()
        desk.world.files.before_step = None
        desk.world.files.revive()
        desk.world.files.expire_locks()
        assert desk.recover().code is Exit.DONE
        came = Counter({"late", "new"} - set(writer.waiting))
        assert desk.world.rows_of("sales.events") == rows + came, (nth, writer.waiting)
