"""A statement meets a unit in its gap, or in an outage, and the metastore does not answer the question that is to find it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.hive_statements import Hive
from support.world import World

TABLE = "sales.events"
STATEMENTS = {
    "rename partition": lambda hive: hive.rename_partition(TABLE, "dt=1", "dt=9"),
    "set location": lambda hive: hive.set_location(TABLE, "dt=1", "hdfs://nn/elsewhere"),
}
COMMANDS = ["compact", "rollback"]


def set_up(command):
    world = World()
    world.add_table(a_table(["dt"], kind="MANAGED_TABLE", create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    return desk


def leave_one_unanswered(world, is_now):
    """Of the questions where partitions are, the first one about which `is_now` says so has no answer; returns what tells that it came."""
    ask, met = world.metastore.partitions_named, []

    def partitions_named(table, wanted):
        if not met and is_now(wanted):
            met.append(wanted)
            raise MetastoreUnavailable("Connection refused")
        return ask(table, wanted)

    world.metastore.partitions_named = partitions_named
    return met


def is_shown(world):
    return all(world.rows_of(TABLE)[f"events/dt=1/{number}"] for number in range(3))


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_in_gap", [False, True], ids=["in the outage", "in the gap of the recovery"])
def test_a_recovery_whose_last_question_has_no_answer_is_done_once_more(command, statement, is_in_gap):
    desk = set_up(command)
    world, live = desk.world, desk.live("dt=1")
    incoming = "/restoring/u00001 " if command == "rollback" else "/ready/u00001 "
    desk.kill_before(["rename_exact", incoming, "/dt=1"], getattr(desk, command))
    met = []

    def act(what):
        if not met and what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            met.append(what)
            list(STATEMENTS[statement](Hive(world)))

    if is_in_gap:
        world.files.before_step = act
    else:
        list(STATEMENTS[statement](Hive(world)))
    unanswered = leave_one_unanswered(world, lambda _: world.files.namespace.find(live) is not None)
    code = desk.recover().code
    assert unanswered and not is_shown(world)
    assert code is Exit.UNUSABLE
    assert desk.recover().code is Exit.INVESTIGATE


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_whose_last_question_has_no_answer_is_left_for_the_next_one(command, statement):
    desk = set_up(command)
    world, live, met = desk.world, desk.live("dt=1"), []

    def act(what):
        if not met and what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            met.append(what)
            list(STATEMENTS[statement](Hive(world)))

    world.files.before_step = act
    unanswered = leave_one_unanswered(world, lambda wanted: met and len(wanted) > 1)
    code = getattr(desk, command)().code
    assert unanswered and not is_shown(world)
    assert code is Exit.PARTIAL
    assert desk.recover().code is Exit.INVESTIGATE


def set_up_discovering(command):
    world = World()
    table = a_table(["dt"], kind="MANAGED_TABLE", create_time=5, parameters={"discover.partitions": "true"})
    world.add_table(table, {f"dt={number}": [1000] * 3 for number in (1, 2)})
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    return desk


@pytest.mark.parametrize("command", COMMANDS)
def test_what_discovery_dropped_and_cannot_be_put_back_does_not_hide_where_others_are(command):
    desk, met = set_up_discovering(command), []
    world, one, two = desk.world, desk.live("dt=1"), desk.live("dt=2")

    def act(what):
        if "moved" not in met and what.startswith("rename_exact") and what.endswith(f"/u00001 {one}"):
            met.append("moved")
            list(STATEMENTS["set location"](Hive(world)))
        if "dropped" not in met and what.startswith("rename_exact") and what.endswith(f"/u00002 {two}"):
            met.append("dropped")
            world.catalog.drop_partition(TABLE, "dt=2")

    def refuse(*_):
        raise MetastoreRefused("no right to add partitions")

    world.files.before_step, world.metastore.add_partition = act, refuse
    code = getattr(desk, command)().code
    assert met == ["moved", "dropped"] and not is_shown(world)
    assert code is Exit.INVESTIGATE


@pytest.mark.parametrize("command", COMMANDS)
def test_what_discovery_dropped_is_told_and_stops_nothing_if_the_metastore_fails_at_it_each_time(command):
    """`Internal error processing add_partition`, as when a listener throws."""
    desk, met = set_up_discovering(command), []
    world, live = desk.world, desk.live("dt=1")

    def act(what):
        if not met and what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            met.append("dropped")
            world.catalog.drop_partition(TABLE, "dt=1")

    def add_partition(*_):
        met.append("failed")
        raise MetastoreUnavailable("Internal error processing add_partition")

    world.files.before_step, world.metastore.add_partition = act, add_partition
    result = getattr(desk, command)()
    assert set(met) == {"dropped", "failed"} and not is_shown(world)
    (unit,) = [unit for unit in result.tables[0].units if unit.name == "dt=1"]
    assert (result.code, unit.why.code, "could not be put back" in unit.why.what) == (Exit.INVESTIGATE, Code.MOVED, True)
    assert desk.recover().code is Exit.DONE
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("command", COMMANDS)
def test_what_discovery_dropped_is_not_put_back_into_another_table_that_has_the_name_by_then(command):
    """RENAME TO and CREATE TABLE, just after the run has asked: each partition that comes back is a call."""
    desk, met = set_up_discovering(command), []
    world, live = desk.world, desk.live("dt=1")

    def act(what):
        if "dropped" not in met and what.startswith("rename_exact") and what.endswith(f"/u00001 {live}"):
            met.append("dropped")
            world.catalog.drop_partition(TABLE, "dt=1")
        if "renamed" not in met and what.startswith("metastore.add_partition"):
            met.append("renamed")
            world.catalog.add_table(replace(world.table(TABLE), name="former"), world.catalog.partitions[TABLE].values())
            world.catalog.drop_table(TABLE)
            elsewhere = "hdfs://nn/warehouse/sales/elsewhere"
            world.catalog.add_table(a_table(["dt"], owner="mallory", location=elsewhere, create_time=6), [])

    world.files.before_step = act
    result = getattr(desk, command)()
    assert met == ["dropped", "renamed"]
    assert not world.catalog.partitions[TABLE]
    assert result.code is Exit.INVESTIGATE
