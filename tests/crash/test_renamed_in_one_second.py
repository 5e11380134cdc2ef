"""Two tables that one script has made in one second exchange their names: `ALTER TABLE events RENAME TO events_old; ALTER TABLE events_new
RENAME TO events`. Both are then, one after the other, the table of that name and second.

The metastore counts a table's creation time in seconds (HMSHandler.create_table_core of Hive 2.3 and 3.1), and a rename keeps it
(HiveAlterHandler.alterTable). test_renamed_and_replaced.py has tables of two seconds.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from hivekeeper import names
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable
from support.builders import a_table
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hive_statements import Hive, HiveError
from support.world import World

TABLE, BUILT, RENAMED = "sales.events", "sales.events_new", "sales.events_old"
COMMANDS = {"compact-swap": Desk.compact, "rollback": Desk.rollback}


def build(by, command):
    world = World()
    units = {"dt=1": [1000] * 3, "dt=2": [1000] * 2} if by else {"": [1000] * 3}
    for name in ("events", "events_new"):
        world.add_table(a_table(by, kind="MANAGED_TABLE", name=name, create_time=5), units)
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    return desk


def exchange_names(world):
    hive = Hive(world)
    with suppress(HiveError):
        for old, new in ((TABLE, RENAMED), (BUILT, TABLE)):
            for _ in hive.rename_table(old, new):
                pass


def below(world, name):
    location, found = world.catalog.tables[name].location, Counter()
    for path, content in world.files.contents(location).items():
        if isinstance(content, DataFile) and "/.hivekeeper" not in path:
            found.update(content.rows)
    return found


def meet(by, command, step, mode):
    """What is wrong if the names are exchanged before this change; None if the command had ended before."""
    desk = build(by, command)
    world, met, said = desk.world, [], []
    own, built = world.rows_of(TABLE), world.rows_of(BUILT)

    def act(what):
        if len(met) == step:
            exchange_names(world)
        if len(met) == step + 1 and mode == "killed":
            world.files.die_after(1)
        if len(met) == step + 1 and mode == "unanswered":
            world.files.fail_next(what.partition(" ")[0], FilesUnavailable("the NameNode fails over"))
        met.append(what)

    world.files.before_step = act
    with suppress(Killed):
        said.append(COMMANDS[command](desk).code.name)
    world.files.before_step = None
    if len(met) <= step:
        return None
    world.files.revive()
    world.files.expire_locks()
    world.files.namespace.advance(3_600_000)
    if RENAMED not in world.catalog.tables or TABLE not in world.catalog.tables:
        return []
    for name in (RENAMED, TABLE):
        desk.table = name
        said.append(desk.recover().code.name)
    strange = below(world, TABLE) - built
    if strange:
        return [f"before change {step} ({met[step]}), exit codes {said}: {dict(strange)} is in the other table"]
    hidden = own - world.rows_of(RENAMED)
    is_told = {"INVESTIGATE", "PARTIAL", "UNUSABLE"}.intersection(said)
    return [f"before change {step} ({met[step]}), exit codes {said}: nobody is told of {dict(hidden)}"] if hidden and not is_told else []


@pytest.mark.parametrize("mode", ["", "killed", "unanswered"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("by", [("dt",), ()], ids=["partitioned", "flat"])
def test_no_row_gets_into_a_table_of_the_same_second_that_has_the_name_by_now(by, command, mode):
    wrong, step = [], 0
    while True:
        found = meet(by, command, step, mode)
        if found is None:
            break
        wrong += found
        step += 1
    assert step > 10
    assert not wrong, "\n".join(wrong)


def test_who_follows_the_advice_of_a_refusal_puts_no_row_into_another_table():
    """To move the records back to where the name is that they have would be to move them into the other table."""
    desk = build(("dt",), "compact-swap")
    world, built = desk.world, desk.world.rows_of(BUILT)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    exchange_names(world)
    world.files.namespace.advance(3_600_000)
    desk.table = RENAMED
    problem = desk.recover().tables[0].problem
    if "move them back to sales.events" in problem.next:
        tops = [ControlPaths.of(world.catalog.tables[name].location, True).top for name in (RENAMED, TABLE)]
        world.files.writer.rename_into(*tops)
        desk.table = TABLE
        code = desk.recover().code
        assert below(world, TABLE) == built, (code, names.base(tops[1]))
