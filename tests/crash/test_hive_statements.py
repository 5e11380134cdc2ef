"""Hive's statements at every change of a swap and of a rollback, and in the outage after every kill there: no row is lost silently.

Every row is in one of three places: where the metastore has a table or partition; where the statement itself left it; or in a recorded
backup, and then the command does not report plain success.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from typing import Callable, Dict, List, Mapping, NamedTuple, Tuple

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.report.results import CommandResult
from hivekeeper.runlog import store
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.fakes.files import TRASH, Killed
from support.fakes.rows import DataFile
from support.hive_statements import Calls, Hive, HiveError
from support.joined_desk import survive
from support.world import World

TABLE, OTHER, RENAMED = "sales.events", "sales.other", "sales.events2"
NEW = {"new.parquet": DataFile(("new",))}
SHAPES = {"flat": ([], {"": 3}), "partitioned": (["dt"], {"dt=1": 3, "dt=2": 2})}
PURGE = {"external.table.purge": "true"}
DISCOVERY = {"discover.partitions": "true"}
KINDS: Mapping[str, Tuple[str, Mapping[str, str]]] = {
    "external": ("EXTERNAL_TABLE", {}),
    "external, purged": ("EXTERNAL_TABLE", PURGE),
    "external, discovered": ("EXTERNAL_TABLE", DISCOVERY),
    "external, purged, discovered": ("EXTERNAL_TABLE", {**PURGE, **DISCOVERY}),
    "managed": ("MANAGED_TABLE", {}),
}


class Statement(NamedTuple):
    """`deletes`: it deletes the unit's rows, if Hive deletes files at all; `leaves`: it makes the metastore forget them."""

    make: Callable[[Hive, str], Calls]
    shapes: Tuple[str, ...] = ("flat", "partitioned")
    kinds: Tuple[str, ...] = ("external", "managed")
    deletes: bool = False
    leaves: bool = False
    metadata_first: bool = False


def rename_partition(hive: Hive, unit: str) -> Calls:
    return hive.rename_partition(TABLE, unit, "dt=9")


def rename_table(hive: Hive, _unit: str) -> Calls:
    return hive.rename_table(TABLE, RENAMED)


PARTITIONED = ("partitioned",)
STATEMENTS: Dict[str, Statement] = {
    "rename partition": Statement(rename_partition, PARTITIONED),
    "rename partition in Hive 2": Statement(rename_partition, PARTITIONED, ("managed",), metadata_first=True),
    "rename table": Statement(rename_table),
    "rename table in Hive 2": Statement(rename_table, kinds=("managed",), metadata_first=True),
    "set location": Statement(lambda hive, unit: hive.set_location(TABLE, unit, "hdfs://nn/elsewhere"), leaves=True),
    "drop partition": Statement(lambda hive, unit: hive.drop_partition(TABLE, unit), PARTITIONED, tuple(KINDS), deletes=True, leaves=True),
    "drop table": Statement(
        lambda hive, _unit: hive.drop_table(TABLE), kinds=("external", "external, purged", "managed"), deletes=True, leaves=True
    ),
    "drop and create table": Statement(lambda hive, _unit: hive.drop_and_create(TABLE), kinds=("external", "managed"), deletes=True),
    "truncate": Statement(lambda hive, unit: hive.truncate(TABLE, unit), kinds=("managed",), deletes=True),
    "exchange partition": Statement(lambda hive, unit: hive.exchange_partition(TABLE, unit, OTHER), PARTITIONED),
    "insert overwrite": Statement(lambda hive, unit: hive.insert_overwrite(TABLE, unit, NEW), deletes=True),
}


@built_once
def build(shape: str, kind: str, compacted: bool) -> Desk:
    columns, units = SHAPES[shape]
    world, (table_type, parameters) = World(), KINDS[kind]
    table = a_table(columns, kind=table_type, parameters=parameters, create_time=5)
    world.add_table(table, {unit: [1000] * files for unit, files in units.items()})
    world.add_table(a_table(columns, kind=table_type, name="other", create_time=6), {})
    desk = Desk(world, backup_table=False)
    if compacted:
        desk.compact()
    return desk


COMMANDS: Dict[str, Callable[[Desk], CommandResult]] = {"compact-swap": Desk.compact, "rollback": lambda desk: desk.rollback(desk.runs[0])}


@built_once
def killed(command: str, shape: str, kind: str, step: int) -> Desk:
    """A command was killed after this step."""
    desk = build(shape, kind, compacted=command == "rollback")
    desk.world.files.die_after(step)
    with suppress(Killed):
        COMMANDS[command](desk)
    desk.world.files.revive()
    return desk


class Case(NamedTuple):
    command: str
    shape: str
    kind: str
    statement: str

    @property
    def label(self) -> str:
        return f"{self.command}, {self.shape}, {self.kind}, {self.statement}"

    @property
    def what(self) -> Statement:
        return STATEMENTS[self.statement]

    @property
    def unit(self) -> str:
        return next(iter(SHAPES[self.shape][1]))

    def build(self) -> Desk:
        return build(self.shape, self.kind, compacted=self.command == "rollback")

    def steps(self) -> range:
        """The steps from the first unit's check on: earlier changes are only in our own directories."""
        desk, seen = self.build(), []
        desk.world.files.before_step = seen.append
        COMMANDS[self.command](desk)
        first = next(number for number, what in enumerate(seen) if what.endswith("/clock") or "/restoring/u" in what)
        return range(first - 1, len(seen))


CASES = [
    Case(command, shape, kind, name)
    for command in COMMANDS
    for shape in SHAPES
    for name, statement in STATEMENTS.items()
    for kind in statement.kinds
    if shape in statement.shapes
]
# Each takes a second in each test. A compaction meets each statement on each table daily, a rollback partitioned ones of two kinds.
NIGHTLY = [case for case in CASES if case.command == "rollback" and (case.shape == "flat" or case.kind not in ("external", "managed"))]
EACH = [pytest.param(case, id=case.label, marks=pytest.mark.thorough if case in NIGHTLY else []) for case in CASES]


class Meeting:
    """A statement that meets a running command. It begins before one of our changes, and makes its remaining calls one before each later
    change, or all at once.
    """

    def __init__(self, desk: Desk, case: Case, step: int, at_once: bool) -> None:
        self.desk, self.case, self.step, self.at_once = desk, case, step, at_once
        self.calls = case.what.make(Hive(desk.world, case.what.metadata_first), case.unit)
        self.met = 0
        self.ended = False
        self.failed = False
        # Whether its last call came before the run's last question to the metastore; the run cannot notice a later one.
        self.in_time = False
        desk.world.files.before_step = self.act

    def act(self, what: str) -> None:
        if self.met >= self.step and not self.ended:
            self.go_on(self.at_once)
            self.in_time = self.ended and not ("/entry.json" in what or "/log" in what or "release" in what)
        self.met += 1

    def go_on(self, to_its_end: bool) -> None:
        try:
            for _ in self.calls:
                if not to_its_end:
                    return
        except HiveError:
            self.failed = True
        self.ended = True

    def finish(self) -> None:
        self.desk.world.files.before_step = None
        self.go_on(True)


def visible(world: World) -> Counter:
    """The rows that readers of any table find."""
    return sum((world.rows_of(name) for name in world.catalog.tables), Counter())


def in_backups(world: World) -> Counter:
    """Rows in recorded backups, wherever Hive has moved the control directory."""
    found: Counter = Counter()
    for top in {path.partition("/log/")[0] for path in world.files.contents() if "/.hivekeeper" in path and "/log/" in path}:
        for effect in store.read_history(world.cluster, ControlPaths(top)).standing:
            found.update(world.rows_below(names.join(top, effect.place)))
    return found


def in_trash(world: World) -> Counter:
    files = world.files.contents(TRASH).values()
    return sum((Counter(content.rows) for content in files if isinstance(content, DataFile)), Counter())


def require_no_silent_loss(case: Case, meeting: Meeting, before: Counter, live: str, results: List[CommandResult]) -> None:
    world, what = meeting.desk.world, case.what
    told = any(result.code is not Exit.DONE for result in results)
    seen, kept, left = visible(world), in_backups(world) + in_trash(world), world.rows_below(live)
    for row in before:
        assert seen[row] <= 1, f"readers see {row} twice"
        if seen[row]:
            continue
        assert world.rows_anywhere()[row], f"{row} is nowhere"
        if what.leaves and left[row]:
            continue
        if what.deletes and not meeting.failed and kept[row]:
            continue
        assert told or not meeting.in_time, f"{row} is not where the metastore says, and nothing was said"


def settle(desk: Desk) -> List[CommandResult]:
    """Recover everything that is left, in another process and under the table's current name."""
    desk.world.files.expire_locks()
    desk.world.files.namespace.advance(3_600_000)
    found = [name for name in (TABLE, RENAMED) if name in desk.world.catalog.tables]
    desk.table = found[0] if found else TABLE
    return [desk.recover()]


@pytest.mark.parametrize("case", EACH)
def test_a_statement_at_any_moment_of_a_command_loses_no_row_without_a_word(case):
    has_one_call = len(list(case.what.make(Hive(case.build().world), case.unit))) == 1
    for step in case.steps():
        for at_once in (True,) if has_one_call else (True, False):
            desk = case.build()
            before, live = desk.world.rows_of(TABLE), desk.live(case.unit)
            meeting = Meeting(desk, case, step, at_once)
            result = COMMANDS[case.command](desk)
            meeting.finish()
            try:
                require_no_silent_loss(case, meeting, before, live, [result, *settle(desk)])
            except AssertionError as error:
                raise AssertionError(f"{error}: before change {step}{'' if at_once else ', call by call'}") from error


@pytest.mark.parametrize("case", EACH)
def test_a_statement_in_the_outage_after_any_kill_loses_no_row_without_a_word(case):
    before = case.build().world.rows_of(TABLE)
    for step in case.steps():
        desk = killed(case.command, case.shape, case.kind, step)
        live = desk.live(case.unit)
        meeting = Meeting(desk, case, step, at_once=True)
        meeting.finish()
        meeting.in_time = True
        results = settle(desk)
        if case.statement == "set location":
            # The records stay beside the old place, together with rows that were aside; both come back with the location.
            list(Hive(desk.world).set_location(TABLE, case.unit, live))
            settle(desk)
        try:
            require_no_silent_loss(case, meeting, before, live, results)
        except AssertionError as error:
            raise AssertionError(f"{error}: after change {step}") from error


IN_THE_GAP = {"compact-swap": ["rename_exact", "/ready/u00001 "], "rollback": ["rename_exact", "/restoring/u00001 ", "/dt=1"]}


@pytest.mark.parametrize("is_added_again", [False, True], ids=["", "added again"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_of_the_recovery_of_what_looks_dropped_leaves_the_only_copy_of_its_rows_to_no_cleanup(command, is_added_again):
    """It may have been renamed: nobody can tell, but a user."""
    for number in itertools.count():
        desk = build("partitioned", "managed", compacted=command == "rollback")
        before = desk.world.rows_below(desk.live("dt=1"))
        desk.kill_before(IN_THE_GAP[command], lambda desk=desk: COMMANDS[command](desk))
        list(Hive(desk.world).drop_partition(TABLE, "dt=1"))
        desk.world.files.die_after(number)
        with suppress(Killed):
            desk.recover()
            break
        survive(desk)
        if is_added_again:
            desk.world.make_partition(TABLE, "dt=1")
        desk.recover()
        assert not before - desk.world.rows_below(desk.live("dt=1")) or desk.log().pinned, f"killed after {number} changes"
        desk.cleanup()
        assert not before - desk.world.rows_anywhere(), f"killed after {number} changes"
    assert number > 5
