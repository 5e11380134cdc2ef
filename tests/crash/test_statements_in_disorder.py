"""Random lives of two tables on which users run Hive's statements, call by call, before any call of a command and in any outage.

Each life has few statements, so that what a command tells can be held against them: several at a time, or one after the other, between
commands of which some are killed or have a call that fails or loses its answer. Every row is at the end where readers see it, once; or in
the trash, because Hive put it there; or where a statement left it; or else a command has told (7, or `dropped-meanwhile`) that it is not
where it should be. What a statement has deleted while no command was at work does not come back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import Partition, Table
from hivekeeper.names import BACKUP_OF, ControlPaths
from hivekeeper.report.results import CommandResult
from hivekeeper.runlog.run_files import is_inside
from support.builders import a_partition, a_table
from support.desk import Desk
from support.disorder import act_some, choose, rows_inside
from support.fakes.files import TRASH
from support.fakes.rows import DataFile
from support.hive_statements import Calls, Hive, HiveError
from support.lives import HOME, HOUR_MS, MINE, Lives

SHAPES: Sequence[Tuple[Sequence[str], Sequence[str]]] = [
    ([], [""]),
    (["dt"], ["dt=1", "dt=2"]),
    (["dt", "hr"], ["dt=1/hr=1", "dt=1/hr=2", "dt=2/hr=1"]),
]
PURGE, DISCOVERY = {"external.table.purge": "true"}, {"discover.partitions": "true"}
KINDS: Sequence[Tuple[str, Mapping[str, str]]] = [
    ("EXTERNAL_TABLE", {}),
    ("EXTERNAL_TABLE", PURGE),
    ("EXTERNAL_TABLE", {**PURGE, **DISCOVERY}),
    ("MANAGED_TABLE", {}),
    ("MANAGED_TABLE", {}),
]
MOST_STATEMENTS = 3
# How often there is a statement, or a kill, before a call in a gap.
IN_GAP = 0.3


@dataclass
class Running:
    """A statement. `new_name`: what it calls its table. `begun_at`: how many last checks of commands there were before its first call."""

    what: str
    calls: Calls
    desk: Desk
    new_name: str = ""
    begun_at: Optional[int] = None
    rested: bool = True
    deleted: Set[str] = field(default_factory=set)


class StatementLives(Lives):
    def __init__(self, seed: int) -> None:
        # Of the tables, by their desks: whether a command has told of something; and rows that statements made invisible, or deleted.
        self.told: Set[int] = set()
        self.left: Set[str] = set()
        self.trashed: Set[str] = set()
        self.gone: Set[str] = set()
        self.left_behind: Set[str] = set()
        self.excused, self.has_exchanged = False, False
        self.is_at_work = False
        # Counts the moments after which a command does not ask the metastore again.
        self.checks = 0
        self.running: List[Running] = []
        self.story: List[str] = []
        super().__init__(seed)
        self.hive = Hive(self.world, metadata_first=self.random.random() < 0.3)
        self.statements_left = self.random.randint(1, MOST_STATEMENTS)
        self.kinds_of_statement: List[Callable[[Desk], Optional[Running]]] = [
            self.rename_partition,
            self.rename_table,
            self.set_location,
            self.drop_partition,
            self.drop_partition,
            self.add_partition,
            self.drop_and_create,
            self.truncate,
            self.exchange_partition,
            self.insert_overwrite,
            self.insert_overwrite,
            self.discovery,
        ]

    def new_table(self, full_name: str, create_time: int) -> Tuple[Table, Sequence[str]]:
        (columns, units), (kind, parameters) = self.random.choice(SHAPES), self.random.choice(KINDS)
        name = full_name.partition(".")[2]
        return a_table(columns, name=name, create_time=create_time, kind=kind, parameters=parameters), units

    # ---- commands

    @property
    def desks(self) -> List[Desk]:
        return [self.mine, self.theirs]

    def table(self, desk: Desk) -> Table:
        return self.world.table(desk.table)

    def partitions(self, desk: Desk) -> Dict[str, Partition]:
        return self.world.partitions(desk.table)

    def is_there(self, desk: Desk) -> bool:
        """Not dropped, to be created again."""
        return desk.table in self.world.tables()

    def write(self, desk: Desk) -> None:
        for one in [one for one in self.running if one.desk is desk and not self.is_there(desk)]:
            while one in self.running:
                self.go_on(one)
        for _ in range(self.random.randint(0, 4)):
            self.insert(desk)
        self.world.wait(HOUR_MS)

    def insert(self, desk: Desk) -> bool:
        """A new file where the metastore has a unit."""
        if not self.is_there(desk) or any(one.desk is desk and not one.what.startswith("insert") for one in self.running):
            return False
        places = [one.location for one in self.partitions(desk).values()] if self.table(desk).partitioned else [desk.live()]
        if not places:
            return False
        self.count += 1
        row, place = f"{desk.table} row {self.count}", self.random.choice(sorted(places))
        self.world.files.writer.add(f"{place}/added-{self.count}.parquet", DataFile((row,)), 1000)
        self.known.add(row)
        self.story.append(f"{self.what}: insert {row} at {place}")
        return True

    def command(self, desk: Desk) -> None:
        if not self.is_there(desk):
            return
        self.is_at_work = True
        super().command(desk)
        self.is_at_work = False
        self.pass_check()
        self.what = "at rest"
        self.rest()

    def note(self, desk: Desk, result: CommandResult) -> None:
        units = [unit.outcome for table in result.tables for unit in table.units]
        if result.code is Exit.INVESTIGATE or any(outcome.is_astray for outcome in units):
            self.told.add(id(desk))

    def call(self, what: str) -> None:
        if "/entry.json" in what:
            self.pass_check()
        if self.is_at_work and self.is_away():
            # What happens in the milliseconds of a gap is what this is about.
            if self.random.random() < IN_GAP:
                self.disturb()
            if self.random.random() < IN_GAP:
                self.at = self.calls
        super().call(what)

    def is_away(self) -> bool:
        """Whether a unit of the table at which a command is at work has no directory."""
        if not self.is_there(self.at_work):
            return False
        places = [one.location for one in self.partitions(self.at_work).values()] or [self.at_work.live()]
        return any(self.space.find(place) is None for place in places)

    def pass_check(self) -> None:
        self.checks += 1

    def commands(self) -> List[Callable[[Desk], Any]]:
        """Those that exchange something, more often than in other lives."""
        found = super().commands()
        return [act for act in found if act.__name__ not in ("verify", "back_up", "backup")]

    # ---- users

    def rest(self) -> None:
        """Statements between two commands."""
        if self.random.random() < 0.5:
            act_some(self.random, 8, self.act)

    def disturb(self) -> None:
        act_some(self.random, 3, self.act)

    def act(self) -> bool:
        if self.running and self.random.random() < 0.7:
            return self.go_on(self.random.choice(self.running))
        if self.random.random() < 0.3:
            return self.insert(self.random.choice(self.desks))
        return self.start()

    def start(self) -> bool:
        desk = self.random.choice(self.desks)
        if self.statements_left <= 0 or any(one.desk is desk for one in self.running):
            return False
        made = self.random.choice(self.kinds_of_statement)(desk)
        if made is None:
            return False
        self.statements_left -= 1
        self.running.append(made)
        self.story.append(f"{self.what}: {made.what}")
        return True

    def go_on(self, one: Running) -> bool:
        """One more call of a statement."""
        one.rested = one.rested and not self.is_at_work
        if one.begun_at is None:
            one.begun_at = self.checks
        elif one.begun_at != self.checks:
            self.excused = True
        shown, kept = self.visible(), {node for _, node in self.space.walk(TRASH)}
        try:
            next(one.calls)
        except StopIteration:
            self.end_statement(one, failed=False)
        except HiveError:
            self.end_statement(one, failed=True)
        if one.new_name in self.world.tables():
            one.desk.table = one.new_name
        now = self.visible()
        hidden = {row for row in shown if not now[row]}
        trashed = {row for _, node in self.space.walk(TRASH) if node not in kept for row in rows_inside(node.content)}
        self.trashed |= trashed
        one.deleted |= hidden & trashed
        if one.what.startswith(("set location", "drop partition", "drop and create")):
            self.left |= hidden - trashed
        if one.what.startswith("set location") and not self.table(one.desk).partitioned:
            # Its records stay beside the old place, perhaps with a copy that a killed run had taken out of it.
            self.left_behind |= self.known - set(now)
        if one.what.startswith("drop and create") and self.is_there(one.desk):
            # It was renamed while its directory was away, so that its rows stayed with the records under its former name.
            top = ControlPaths.of(self.table(one.desk).location, self.table(one.desk).partitioned).top
            hidden = {row for row in self.known - set(now) if id(one.desk) in self.homes(row)}
            self.left_behind |= {row for row in hidden if self.is_only_elsewhere(row, top)}
        self.story.append(f"{self.what}: a call of {one.what}")
        return True

    def end_statement(self, one: Running, failed: bool) -> None:
        self.running.remove(one)
        if one.rested and not failed:
            self.gone |= one.deleted

    # ---- statements

    def some_partition(self, desk: Desk) -> str:
        return str(choose(self.random, sorted(self.partitions(desk))))

    def rename_partition(self, desk: Desk) -> Optional[Running]:
        old = self.some_partition(desk)
        new = f"dt=9{old[len('dt=1') :]}"
        if not old or new in self.partitions(desk):
            return None
        return Running(f"rename partition {desk.table} {old}", self.hive.rename_partition(desk.table, old, new), desk)

    def rename_table(self, desk: Desk) -> Optional[Running]:
        """Not of Hive 2, which moves a directory after the metastore has it elsewhere: a command in between makes one for its records."""
        self.count += 1
        new = f"{desk.table}_{self.count}"
        if self.hive.metadata_first and self.table(desk).partitioned:
            return None

        return Running(f"rename table {desk.table}", self.hive.rename_table(desk.table, new), desk, new)

    def set_location(self, desk: Desk) -> Optional[Running]:
        unit = self.some_partition(desk)
        if self.table(desk).partitioned and not unit:
            return None
        self.count += 1
        place = f"{desk.live()}/moved-{self.count}" if unit else f"{HOME}/{names.base(desk.live())}-{self.count}"
        return Running(f"set location {desk.table} {unit} {place}", self.hive.set_location(desk.table, unit, place), desk)

    def drop_partition(self, desk: Desk) -> Optional[Running]:
        unit = self.some_partition(desk)
        return Running(f"drop partition {desk.table} {unit}", self.hive.drop_partition(desk.table, unit), desk) if unit else None

    def add_partition(self, desk: Desk) -> Optional[Running]:
        table = self.table(desk)
        units = next(units for columns, units in SHAPES if len(columns) == len(table.partition_columns))
        name = self.random.choice(units)

        def calls() -> Calls:
            yield "add"
            place = names.join(self.table(desk).location, name)
            used = {one.location for one in self.partitions(desk).values()}
            if name not in self.partitions(desk) and place not in used:
                self.space.make_directory(place)
                self.world.catalog.add_partition(desk.table, a_partition(name, place, table.storage))

        return Running(f"add partition {desk.table} {name}", calls(), desk) if name and name not in self.partitions(desk) else None

    def drop_and_create(self, desk: Desk) -> Optional[Running]:
        return Running(f"drop and create {desk.table}", self.hive.drop_and_create(desk.table), desk)

    def truncate(self, desk: Desk) -> Optional[Running]:
        unit = self.some_partition(desk)
        if not self.hive.moves_files(self.table(desk)) or self.table(desk).partitioned and not unit:
            return None
        return Running(f"truncate {desk.table} {unit}", self.hive.truncate(desk.table, unit), desk)

    def exchange_partition(self, desk: Desk) -> Optional[Running]:
        unit, other = self.some_partition(desk), self.theirs if desk is self.mine else self.mine
        if (
            not unit
            or not self.is_there(other)
            or self.table(other).partition_columns != self.table(desk).partition_columns
            or unit in self.partitions(other)
        ):
            return None
        self.has_exchanged = True
        return Running(f"exchange partition {desk.table} {unit}", self.hive.exchange_partition(desk.table, unit, other.table), desk)

    def insert_overwrite(self, desk: Desk) -> Optional[Running]:
        unit = self.some_partition(desk)
        if self.table(desk).partitioned and not unit:
            return None
        content = {}
        for _ in range(2):
            self.count += 1
            content[f"new-{self.count}.parquet"] = DataFile((f"{desk.table} row {self.count}",))

        def calls() -> Calls:
            for call in self.hive.insert_overwrite(desk.table, unit, content):
                yield call
                self.known |= {row for data in content.values() for row in data.rows if self.world.rows_anywhere()[row]}

        return Running(f"insert overwrite {desk.table} {unit}", calls(), desk)

    def discovery(self, desk: Desk) -> Optional[Running]:
        """The metastore's own: partitions without a directory go, directories of partitions that it does not know come."""
        table = self.table(desk)
        units = next(units for columns, units in SHAPES if len(columns) == len(table.partition_columns))
        if "discover.partitions" not in table.parameters or not table.partitioned:
            return None

        def calls() -> Calls:
            yield "discovery"
            for name, one in self.partitions(desk).items():
                if self.space.find(one.location) is None:
                    self.world.catalog.drop_partition(desk.table, name)
            used = {one.location for one in self.partitions(desk).values()}
            for name in units:
                place = names.join(self.table(desk).location, name)
                if name not in self.partitions(desk) and place not in used and self.space.find(place) is not None:
                    self.world.catalog.add_partition(desk.table, a_partition(name, place, table.storage))

        return Running(f"discovery of {desk.table}", calls(), desk)

    # ---- what must hold

    def settle(self) -> None:
        self.end()
        while self.running:
            self.go_on(self.running[0])
        super().settle()
        for one in filter(None, [self.discovery(desk) for desk in self.desks if self.is_there(desk)]):
            list(one.calls)
        for desk in filter(self.is_there, self.desks):
            if any(unit.outcome.is_astray for run in desk.log().runs for unit in run.units):
                self.told.add(id(desk))
        try:
            self.require_rows()
        except AssertionError as error:
            tables = [(table.kind, dict(table.parameters), table.location) for table in self.world.tables().values()]
            raise AssertionError("\n".join([str(error), *map(str, tables), *self.story, *map(str, self.codes)])) from error

    def visible(self) -> Counter:
        tables = [name for name, table in self.world.tables().items() if BACKUP_OF not in table.parameters]
        return sum((self.world.rows_of(name) for name in tables), Counter())

    def rows_in(self, top: str) -> Set[str]:
        return {row for _, node in self.space.walk(top) for row in rows_inside(node.content)}

    def homes(self, row: str) -> Set[int]:
        """The desks of the tables in which a row may be."""
        is_mine = row.startswith((MINE, "events/"))
        return {id(desk) for desk in self.desks if self.has_exchanged or (desk is self.mine) == is_mine}

    def is_only_elsewhere(self, row: str, top: str) -> bool:
        """Whether it is in control directories of other tables only."""
        return all("/.hivekeeper" in place and not is_inside(place, top) for place in self.places(row))

    def places(self, row: str) -> List[str]:
        return [path for path, node in self.space.walk("hdfs://nn") if row in rows_inside(node.content)]

    def require_rows(self) -> None:
        seen, anywhere = self.visible(), self.rows_in("hdfs://nn")
        for row in sorted(self.known):
            assert seen[row] <= 1, f"{row} is doubled"
            assert not seen[row] or row not in self.gone, f"{row} was deleted, and is back"
            if seen[row] or row in self.trashed:
                continue
            assert row in anywhere, f"{row} is nowhere"
            where = self.places(row)
            is_outside = any("/.hivekeeper" not in path for path in where)
            if row in self.left_behind or is_outside and (row in self.left or self.excused):
                continue
            assert self.told & self.homes(row), f"{row} is hidden in {where}, and nobody was told"


@given(st.integers(0, 2**32))
def test_no_statement_at_any_moment_loses_or_doubles_a_row_or_brings_one_back(seed: int) -> None:
    StatementLives(seed).live_on()
