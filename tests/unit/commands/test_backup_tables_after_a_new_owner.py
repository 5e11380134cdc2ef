"""A table that got another owner (`ALTER TABLE … SET OWNER`): its backup tables belong to the former one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from support.desk import EVERYTHING
from support.leftovers import build, wait


def set_owner(desk):
    """alice was the owner, of the backup tables too; bob is now. Returns the newest backup table."""
    world = desk.world
    found = [name for name in world.tables() if "__bkp_events" in name]
    for name in found:
        world.catalog.put_table(replace(world.table(name), owner="alice"))
    world.catalog.put_table(replace(world.table(desk.table), owner="bob"))
    return max(found)


def shown(world, name):
    partitions = world.partitions(name)
    return [one.location for one in partitions.values()] if partitions else [world.table(name).location]


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_they_go_with_what_they_show_and_the_table_can_be_forgotten(shape):
    desk = build(shape, compactions=1)
    world, name = desk.world, set_owner(desk)
    wait(desk, 30)
    assert desk.cleanup(EVERYTHING).code is Exit.DONE
    assert not desk.log().standing
    result = desk.forget()
    assert (result.code, name in world.tables()) == (Exit.DONE, False)


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_they_are_shown_nothing_more(shape):
    """Whoever owns a table decides in Hive who reads it."""
    desk = build(shape, compactions=1)
    world = desk.world
    desk.backup()
    name = set_owner(desk)
    before = shown(world, name)
    units = ["dt=1", "dt=2"] if shape == "partitioned" else [""]
    for unit in units:
        desk.append(unit, "a", "b", "c")
    desk.backup()
    record = set_owner(desk)
    of_record = shown(world, record)
    # It describes what goes now: with its owner's rights it would follow.
    assert desk.compact().code is Exit.DONE
    assert desk.log().standing[-1].backup_table == record
    assert (shown(world, name), shown(world, record)) == (before, of_record)


@pytest.mark.parametrize("shape", ["flat", "partitioned"])
def test_that_of_a_record_that_could_be_pointed_nowhere_when_it_was_made_is_not_shown_live_later(shape):
    desk = build(shape, compactions=0)
    world = desk.world
    for call in ("point_backup_table", "drop_backup_table"):
        world.metastore.fail_next(call, MetastoreUnavailable("timeout"))
    assert desk.backup().code is Exit.DONE
    name = set_owner(desk)
    before = shown(world, name)
    assert desk.recover().code is Exit.DONE
    assert shown(world, name) == before


def test_they_lose_the_partitions_whose_old_files_are_gone():
    desk = build("partitioned", compactions=1)
    world, name = desk.world, set_owner(desk)
    assert len(world.partitions(name)) == 2
    desk.rollback(where="dt = '1'")
    assert list(world.partitions(name)) == ["dt=2"]


@pytest.mark.parametrize("forged", ["purged", "elsewhere"])
def test_one_that_is_not_as_we_make_them_stays(forged):
    desk = build("flat", compactions=1)
    world, name = desk.world, set_owner(desk)
    table = world.table(name)
    purged = replace(table, parameters={**table.parameters, "external.table.purge": "true"})
    world.catalog.put_table(purged if forged == "purged" else replace(table, location="hdfs://nn/user/mallory/bait"))
    wait(desk, 30)
    assert desk.cleanup(EVERYTHING).code is Exit.DONE
    assert name in world.tables()
