"""Somebody sets a table's location while a command reads where all tables are, or to the place of one that took a name which was told."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import pytest

from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.hive_statements import Hive
from support.world import World

THEIRS = "hdfs://nn/warehouse/sales/buckets"


@pytest.fixture
def world():
    """Two tables of one owner share a place, so that both are read once more after the others; and files of a table that is to come."""
    world = World()
    world.add_table(a_table(name="first", create_time=1), {"": [1000] * 3})
    world.add_table(a_table(name="mine", owner="mallory", create_time=2), {"": [1000] * 3})
    world.catalog.add_table(a_table(name="mine_too", owner="mallory", location="hdfs://nn/warehouse/sales/mine", create_time=3), [])
    for number in range(4):
        world.add_file(f"{THEIRS}/00000{number}_0", [f"b{number}"])
    world.files.namespace.advance(30 * 86_400_000)
    return world


def come(world):
    """CREATE TABLE buckets; ALTER TABLE mine SET LOCATION: the other one was there first."""
    world.catalog.add_table(replace(a_table(name="buckets", owner="alice", create_time=4), buckets=4, bucket_columns=("id",)), [])
    world.catalog.put_table(replace(world.table("sales.mine"), location=THEIRS))


def come_before_request(world, number, read):
    """Let both come before one of the requests in which places are read, the last one being -1."""
    asked = []
    world.metastore.before_request = asked.append
    read()
    left = iter(range(len(asked) + number, -1, -1))
    came = []

    def before(_called):
        if next(left, None) == 0:
            came.append(True)
            come(world)

    world.metastore.before_request = before
    read()
    assert came
    world.metastore.before_request = lambda _: None


def problems(world):
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    return {table.table: table.problem and table.problem.code for table in result.tables}


def test_its_files_are_left_as_they_are_if_both_come_while_all_places_are_read(world):
    """After the names were told, and before the tables at one place are read once more."""
    before = world.files.contents(THEIRS)

    def read():
        world.metastore.forget()
        world.metastore.locations_below([])

    come_before_request(world, -1, read)
    found = problems(world)
    assert world.files.contents(THEIRS) == before, found


def test_its_files_are_left_as_they_are_if_both_come_while_newer_places_are_read(world):
    """For another table that is elsewhere, whose own place is read last."""
    before = world.files.contents(THEIRS)
    world.metastore.keeps_read_again_ms = 10**12
    world.metastore.read_places_again("")
    come_before_request(world, -2, lambda: world.metastore.read_newer_places(world.table("sales.mine_too")))
    found = problems(world)
    assert world.files.contents(THEIRS) == before, found


@pytest.mark.parametrize("how", ["all are read again", "newer ones are read"])
def test_its_files_are_left_as_they_are_if_it_was_renamed_to_a_name_that_was_told(how):
    """Of one that has been dropped since, and lay elsewhere. Hive moves the directory of a managed table."""
    world = World()
    world.add_table(a_table(name="first", create_time=1), {"": [1000] * 3})
    world.add_table(a_table(name="mine", owner="mallory", create_time=2), {"": [1000] * 3})
    world.catalog.add_table(a_table(name="buckets", owner="alice", location="hdfs://nn/archive/buckets", create_time=3), [])
    anew = a_table(name="buckets_new", owner="alice", create_time=4, kind="MANAGED_TABLE")
    world.catalog.add_table(replace(anew, buckets=4, bucket_columns=("id",)), [])
    for number in range(4):
        world.add_file(f"{anew.location}/00000{number}_0", [f"b{number}"])
    world.files.namespace.advance(30 * 86_400_000)
    world.metastore.keeps_read_again_ms = 0 if how == "all are read again" else 10**12
    world.metastore.read_places_again("")
    world.catalog.drop_table("sales.buckets")
    deque(Hive(world).rename_table("sales.buckets_new", "sales.buckets"), maxlen=0)
    world.catalog.put_table(replace(world.table("sales.mine"), location=THEIRS))
    before = world.files.contents(THEIRS)
    assert before
    found = problems(world)
    assert found["sales.mine"] in (Code.SHARED_DIRECTORY, Code.METASTORE_UNUSABLE), found
    assert world.files.contents(THEIRS) == before
