"""A managed table is renamed during a run, and another one gets its name and place at once, as who replaces a table does: by CREATE TABLE
and an INSERT, or by the rename of a table that was built beside it. No row of either is lost, hidden or doubled without a word, and no row
of one gets into the other.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Callable, Dict

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import FilesUnavailable
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.every_step import require_nothing_wrong
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hive_statements import Calls, Hive, HiveError
from support.world import World

TABLE, BUILT, RENAMED = "sales.events", "sales.events_new", "sales.events_old"
UNITS = {"dt=1": 3, "dt=2": 2}


def create_and_insert(hive: Hive) -> Calls:
    """ALTER TABLE events RENAME TO events_old; CREATE TABLE events; INSERT INTO events PARTITION (dt=1)."""
    stored = hive.catalog.tables[TABLE]
    yield from hive.rename_table(TABLE, RENAMED)
    yield "create"
    hive.space.make_directory(stored.location)
    hive.catalog.add_table(replace(stored, create_time=stored.create_time + 99))


def rename_built(hive: Hive) -> Calls:
    """ALTER TABLE events RENAME TO events_old; ALTER TABLE events_new RENAME TO events."""
    yield from hive.rename_table(TABLE, RENAMED)
    yield from hive.rename_table(BUILT, TABLE)


HOW: Dict[str, Callable[[Hive], Calls]] = {"create": create_and_insert, "rename built": rename_built}
COMMANDS = {"compact-swap": Desk.compact, "rollback": lambda desk: desk.rollback(desk.runs[0])}


@built_once
def build(command: str, how: str) -> Desk:
    world = World()
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=5), {unit: [1000] * files for unit, files in UNITS.items()})
    desk = Desk(world, backup_table=False)
    if how == "rename built":
        table = a_table(["dt"], kind="MANAGED_TABLE", name="events_new", create_time=6)
        world.add_table(table, {unit: [1000] * n for unit, n in UNITS.items()})
        desk.table = BUILT
        desk.compact()
        desk.table = TABLE
        desk.runs.clear()
    if command == "rollback":
        desk.compact()
    return desk


class Meeting:
    def __init__(self, desk: Desk, how: str, step: int) -> None:
        self.desk, self.step, self.met, self.what = desk, step, 0, ""
        self.calls = HOW[how](Hive(desk.world))
        desk.world.files.before_step = self.act

    def act(self, what: str) -> None:
        if self.met == self.step:
            self.what = what
            with suppress(HiveError):
                for _ in self.calls:
                    pass
        self.met += 1


def below(world: World, name: str) -> Counter:
    """The rows in a table's directory outside its control directory, whether the metastore has partitions there or not yet."""
    location, found = world.catalog.tables[name].location, Counter()
    for path, content in world.files.contents(location).items():
        if isinstance(content, DataFile) and "/.hivekeeper/" not in path:
            found.update(content.rows)
    return found


def then(world: World, what: str, mode: str) -> None:
    """The call that meets the statements is the last one before a kill, or the NameNode fails over before it gets it."""
    if mode == "killed":
        world.files.die_after(1)
    else:
        world.files.fail_next(what.partition(" ")[0], FilesUnavailable("the NameNode fails over"))


def run_and_recover(desk: Desk, command, meeting: Meeting, mode: str, tables):
    """The exit codes of the command and of the recoveries of these tables, and what to say of them. None if the command had ended before,
    () if the statements did not get as far as the rename.
    """
    world, step, act, codes = desk.world, meeting.step, meeting.act, []
    if mode:
        world.files.before_step = lambda what: (act(what), then(world, what, mode) if meeting.met == step + 1 else None)
    with suppress(Killed):
        codes.append(command(desk).code)
    if meeting.met <= step:
        return None
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    world.files.namespace.advance(3_600_000)
    if RENAMED not in world.catalog.tables:
        return ()
    for name in tables:
        desk.table = name
        codes.append(desk.recover().code)
    return codes, f"before change {step} ({meeting.what}), exit codes {[code.name for code in codes]}"


def meet(command: str, how: str, step: int, mode: str):
    desk = build(command, how)
    world = desk.world
    before, built = world.rows_of(TABLE), world.rows_of(BUILT) if BUILT in world.catalog.tables else Counter()
    met = run_and_recover(desk, COMMANDS[command], Meeting(desk, how, step), mode, (RENAMED, TABLE))
    if not met:
        return None if met is None else []
    (_, said), found = met, []
    if below(world, TABLE) != built:
        found.append(f"{said}: the new table's directory has {dict(below(world, TABLE))}, and its rows are {dict(built)}")
    if world.rows_of(RENAMED) != before:
        found.append(f"{said}: the renamed table has {dict(world.rows_of(RENAMED))} of {dict(before)}")
    return found


@pytest.mark.parametrize("mode", ["", "killed", "unanswered"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_replaces_a_renamed_table_at_any_moment_gets_none_of_its_rows(command, how, mode):
    require_nothing_wrong(lambda step: meet(command, how, step, mode))


def names_below(world: World, name: str) -> Dict[str, object]:
    location = world.catalog.tables[name].location
    found = world.files.contents(location).items()
    return {path[len(location) + 1 :]: content.rows for path, content in found if "/.hivekeeper/" not in path}


def meet_join(how: str, step: int, mode: str):
    world = World()
    small = {"dt=1": [1000] * 3, "dt=2": [1000] * 4}
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=1_767_200_000), small)
    if how == "rename built":
        world.add_table(a_table(["dt"], kind="MANAGED_TABLE", name="events_new", create_time=1_767_200_006), small)
    for name in ("events", "events_new")[: 1 + (how == "rename built")]:
        world.add_file(f"hdfs://nn/warehouse/sales/{name}/dt=1/large.parquet", [f"{name} large"], 100 << 20)
    world.files.namespace.advance(3_600_000)
    desk = Desk(world, exchange="files", fewest_joined=2, backup_table=False)
    if how == "rename built":
        desk.table = BUILT
        desk.compact()
        desk.table = TABLE
        desk.runs.clear()
    before, built = world.rows_of(TABLE), names_below(world, BUILT) if BUILT in world.catalog.tables else {}
    met = run_and_recover(desk, Desk.compact, Meeting(desk, how, step), mode, (RENAMED, RENAMED, TABLE))
    if not met:
        return None if met is None else []
    (codes, said), found = met, []
    now = names_below(world, TABLE)
    if now != built:
        found.append(f"{said}: the new table's directory has {now}, and had {built}")
    if world.rows_of(RENAMED) != before:
        found.append(f"{said}: the renamed table has {dict(world.rows_of(RENAMED))} of {dict(before)}")
    if codes[-2] is not Exit.DONE:
        found.append(f"{said}: the second recovery of the renamed table")
    return found


@pytest.mark.parametrize("mode", ["", "killed", "unanswered"])
@pytest.mark.parametrize("how", HOW)
def test_what_replaces_a_renamed_table_at_any_moment_of_a_join_gets_no_file_of_it(how, mode):
    wrong, step = [], 0
    while True:
        found = meet_join(how, step, mode)
        if found is None:
            break
        wrong += found
        step += 1
    assert step > 10
    assert not wrong, "\n".join(wrong)


def drop_and_create(hive: Hive) -> Calls:
    """DROP TABLE events (its directory goes to the trash); CREATE TABLE events, for which Hive makes the directory."""
    stored = hive.catalog.tables[TABLE]
    yield from hive.drop_table(TABLE)
    yield "create"
    hive.space.make_directory(stored.location)
    hive.catalog.add_table(replace(stored, create_time=stored.create_time + 99))


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_a_dropped_table_is_moved_into_another_one_of_its_name(command):
    """docs/swap.md: `DROP TABLE`, `CREATE TABLE`: nothing is moved into it."""
    wrong, step = [], 0
    while True:
        desk = build(command, "create")
        calls, seen = drop_and_create(Hive(desk.world)), []

        def act(what, calls=calls, seen=seen, step=step):
            if len(seen) == step:
                list(calls)
            seen.append(what)

        desk.world.files.before_step = act
        code = COMMANDS[command](desk).code
        if len(seen) <= step:
            break
        if below(desk.world, TABLE):
            wrong.append(f"before change {step} ({seen[step]}), {code.name}: {dict(below(desk.world, TABLE))}")
        step += 1
    assert step > 10
    assert not wrong, "\n".join(wrong)
