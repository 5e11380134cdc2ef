"""Two tables that one script has made in one second exchange their names: `ALTER TABLE events RENAME TO events_old; ALTER TABLE events_new
RENAME TO events`. Both are then, one after the other, the table of that name and second.

The metastore counts a table's creation time in seconds (HMSHandler.create_table_core of Hive 2.3 and 3.1), and a rename keeps it
(HiveAlterHandler.alterTable). test_renamed_and_replaced.py has tables of two seconds.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.every_step import require_nothing_wrong
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hive_statements import Hive, HiveError
from support.world import World

TABLE, BUILT, RENAMED = "sales.events", "sales.events_new", "sales.events_old"
COMMANDS = {"compact-swap": Desk.compact, "rollback": Desk.rollback}


@built_once
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
    require_nothing_wrong(lambda step: meet(by, command, step, mode))


@pytest.mark.parametrize("later", ["", "insert", "owner"])
def test_neither_an_answer_that_does_not_come_nor_what_becomes_of_the_old_table_mixes_rows(later):
    desk = build((), "compact-swap")
    world, built = desk.world, desk.world.rows_of(BUILT)
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    exchange_names(world)
    if later == "insert":
        world.add_file(f"{world.catalog.tables[RENAMED].location}/part-late.parquet", ["late"])
    if later == "owner":
        world.catalog.tables[RENAMED] = replace(world.catalog.tables[RENAMED], owner="archivist")
    desk.table, met = TABLE, []

    def act(what):
        if what.startswith("rename_exact") and what.endswith("/u00001 hdfs://nn/warehouse/sales/events"):
            met.append(what)
            world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))

    world.files.before_step = act
    code = desk.recover().code
    assert met
    assert (code, below(world, TABLE) - built) == (Exit.INVESTIGATE, Counter())


def test_a_directory_that_a_writer_has_made_in_the_gap_is_merged_whatever_tables_there_are():
    desk = build((), "compact-swap")
    world, live = desk.world, desk.live()
    before = world.rows_of(TABLE)
    world.catalog.tables[BUILT] = replace(world.catalog.tables[BUILT], location="s3a://bucket/built")
    desk.kill_before(["rename_exact", "/ready/u00001 hdfs://nn/warehouse/sales/events"], desk.compact)
    world.add_file(f"{live}/part-new.parquet", ["new"])
    assert desk.recover().code is Exit.DONE
    assert not before - world.rows_of(TABLE)
    assert sum(world.rows_of(TABLE).values()) == sum(before.values()) + 1


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
