"""Random lives of two tables: an operator runs commands on both, some of which are killed, or have a call that fails or loses its answer.

What others do between any two calls, reads too, and what must hold at the end, is for subclasses to say.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, Callable, List, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import Table
from hivekeeper.reasons import Code
from hivekeeper.report.results import CommandResult
from support.between_calls import report_calls
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.disorder import NO_ANSWER, rows_of_all_parts
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hdfs_user import own, own_tree
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
MINE, THEIRS = "sales.events", "sales.orders"
TENANT, OTHER = "loader", "alice"
UNITS = {True: ["dt=1", "dt=2"], False: [""]}
HOUR_MS = 3_600_000
ROUNDS = 4
# How often somebody acts before a call.
OFTEN = 0.04
ENDS = ["go on", "go on", "kill", "kill", "kill later", "fail", "lose"]
# A command makes about so many calls.
MOST_CALLS = 150


class Lives:
    """Two tables and their desks. What a subclass does between two calls is `disturb`."""

    home_mode = 0o755
    kinds: Sequence[str] = ("EXTERNAL_TABLE", "MANAGED_TABLE")

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World()
        self.space = self.world.files.namespace
        self.chance, self.count, self.calls, self.what = 0.0, 0, 0, ""
        self.codes: List[Tuple[str, str, Exit, str]] = []
        self.world.catalog.homes["sales"] = HOME
        self.mine, self.theirs = self.make(MINE, 5, TENANT, 0o755), self.make(THEIRS, 6, OTHER, 0o700)
        own(self.space.directory(HOME), "hive", "hive", self.home_mode)
        self.expected = self.world.rows_of(THEIRS)
        self.known = rows_of_all_parts(self.world)
        self.run(self.theirs, Desk.compact)
        if self.random.random() < 0.7:
            self.run(self.mine, Desk.compact)
        report_calls(self.world, self.call)

    def make(self, full_name: str, create_time: int, owner: str, mode: int) -> Desk:
        table, units = self.new_table(full_name, 1_767_200_000 + create_time)
        self.world.add_table(table, {unit: [1000] * 3 for unit in units})
        directory = names.join(table.location, units[0]).rstrip("/")
        self.world.add_file(f"{directory}/large.parquet", [f"{full_name} large"], 100 << 20)
        own_tree(self.space, table.location, owner, owner, mode)
        settings = {"exchange": self.random.choice(["directory", "directory", "files"]), "backup_table": self.random.random() < 0.5}
        return Desk(self.world, full_name, fewest_joined=2, **settings)

    def new_table(self, full_name: str, create_time: int) -> Tuple[Table, Sequence[str]]:
        """With the names of its units."""
        columns = ["dt"] if self.random.random() < 0.6 else []
        kind = self.random.choice(self.kinds)
        return a_table(columns, name=full_name.partition(".")[2], create_time=create_time, kind=kind), UNITS[bool(columns)]

    # ---- what is done

    def live_on(self) -> None:
        for _ in range(ROUNDS):
            desk = self.random.choice([self.mine, self.mine, self.theirs])
            self.write(desk)
            self.command(desk)
        self.settle()

    def write(self, desk: Desk) -> None:
        for unit in UNITS[self.world.table(desk.table).partitioned]:
            for _ in range(self.random.randint(0, 3)):
                self.append(desk, unit)
        self.world.wait(HOUR_MS)

    def append(self, desk: Desk, unit: str) -> bool:
        """The owner of a table adds a file to it, where its directory is."""
        owner, mode = (OTHER, 0o700) if desk is self.theirs else (TENANT, 0o755)
        node = self.space.find(desk.live(unit))
        if node is None or not node.is_dir or node.attributes.owner != owner:
            return False
        self.count += 1
        row, path = f"{desk.table} row {self.count}", f"{desk.live(unit)}/added-{self.count}.parquet"
        self.world.files.writer.add(path, DataFile((row,)), 1000)
        own(self.space.file(path), owner, owner, mode)
        self.known.add(row)
        self.expected.update([row] if desk is self.theirs else [])
        return True

    def command(self, desk: Desk) -> None:
        self.at_work = desk
        act, ends = self.random.choice(self.commands()), self.random.choice(ENDS)
        self.begin(ends)
        self.run(desk, act)
        self.end()

    def commands(self) -> List[Callable[[Desk], Any]]:
        where = self.random.choice([None, None, "dt = '1'"])

        def compact(desk: Desk) -> Any:
            return desk.compact(where if self.world.table(desk.table).partitioned else None)

        def rollback(desk: Desk) -> Any:
            return desk.rollback(self.random.choice([None, None, *desk.runs]))

        def clean_up(desk: Desk) -> Any:
            return desk.cleanup(EVERYTHING, self.random.choice(["delete", "trash"]), former=self.random.random() < 0.3)

        def verify(desk: Desk) -> Any:
            return desk.verify(level=self.random.choice(["count", "digest", "rows"]))

        return [compact, compact, compact, rollback, rollback, clean_up, clean_up, verify, Desk.backup, Desk.recover, Desk.recover]

    def run(self, desk: Desk, act: Callable[[Desk], Any]) -> Optional[Exit]:
        """The exit code, None if the command was killed."""
        with suppress(Killed):
            result = act(desk)
            self.note(desk, result)
            problems = [table.problem.code for table in result.tables if table.problem is not None]
            assert Code.BUG not in problems, result.tables
            self.codes.append((desk.table, act.__name__, result.code, " ".join(code.name for code in problems)))
            return result.code
        self.codes.append((desk.table, act.__name__, Exit.BUG, "killed"))
        return None

    def note(self, desk: Desk, result: CommandResult) -> None:
        """What a command has answered."""

    def begin(self, ends: str) -> None:
        self.calls, self.ends, self.at = 0, ends, self.random.randint(1, MOST_CALLS)
        self.chance = self.random.choice([0.0, OFTEN, OFTEN, 3 * OFTEN])

    def end(self) -> None:
        """A killed command's outage is over, and nobody acts."""
        self.ends, self.chance = "go on", 0.0
        self.world.revive()

    def call(self, what: str) -> None:
        """Something is asked of HDFS or of the metastore, by the running command."""
        self.calls, self.what = self.calls + 1, what
        if self.chance and self.random.random() < self.chance:
            self.disturb()
        if self.calls < self.at or self.ends == "go on":
            return
        ends, is_read = self.ends, " " not in what
        if ends in ("kill", "kill later"):
            self.world.files.die_after(0 if ends == "kill" else self.random.randint(1, 3), self.random.random() < 0.5)
        elif is_read and ends == "fail" and what in ("look", "stat"):
            self.ends = "go on"
            raise NO_ANSWER
        elif is_read:
            return
        else:
            self.world.fail_call(what, done=ends == "lose")
        self.ends = "go on"

    def disturb(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """Nobody disturbs any more."""
        self.end()
        for desk in (self.theirs, self.mine, self.theirs, self.theirs):
            self.run(desk, Desk.recover)
