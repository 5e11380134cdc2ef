"""What tests/crash/test_two_tables_in_disorder.py has found, each in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List

import pytest

from hivekeeper.codes import Exit
from hivekeeper.names import ControlPaths
from support.builders import a_partition, a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.hdfs_user import STICKY, HdfsUser, own, own_tree
from support.world import World

HOME = "hdfs://nn/warehouse/sales"


def a_closed_table() -> Desk:
    """`orders`, unpartitioned and closed to all but its owner, in a directory in which everybody may make names and nobody may rename those
    of others, as in Hive's warehouse.
    """
    world = World()
    world.add_table(a_table(name="orders", create_time=6), {"": [1000] * 3})
    space = world.files.namespace
    own_tree(space, f"{HOME}/orders", "alice", "alice", 0o700)
    own(space.directory(HOME), "hive", "hive", 0o777 | STICKY)
    return Desk(world, "sales.orders", backup_table=False)


def put_in_place(desk: Desk) -> None:
    """What another user does when the name is free: make a directory of it, open to all, with a file."""
    user = HdfsUser(desk.world.files.namespace, "loader")
    assert not user.may_change_in(f"{HOME}/orders")
    assert user.make_directory(f"{HOME}/orders", 0o777)
    assert user.add(f"{HOME}/orders/forged.parquet", DataFile(("forged",)), 1000)


@pytest.mark.parametrize("moment", ["in the gap", "in the outage after a kill"])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_who_may_not_write_to_a_table_adds_no_rows_to_it_by_making_its_directory_while_that_is_away(command: str, moment: str) -> None:
    desk = a_closed_table()
    before, files = desk.world.rows_of("sales.orders"), desk.world.files
    if command == "rollback":
        desk.compact()
    act: Any = getattr(desk, command)
    waiting = "/restoring/" if command == "rollback" else "/ready/"
    if moment == "in the gap":

        def put_in_gap(what: str) -> None:
            if what.startswith("rename_exact") and what.endswith(f"{HOME}/orders") and files.namespace.find(f"{HOME}/orders") is None:
                files.before_step = None
                put_in_place(desk)

        files.before_step = put_in_gap
        act()
    else:
        desk.kill_before(["rename_exact", waiting, f" {HOME}/orders"], act)
        put_in_place(desk)
        desk.recover()
    assert files.namespace.find(f"{HOME}/orders") is not None
    assert desk.world.rows_of("sales.orders") == before


def two_tables(mine_partitioned: bool) -> Desk:
    """`events` of a tenant and `orders`, closed to all but another user, in a directory in which the tenant may rename everything. The
    partitions of `orders` are where somebody has set their locations: in directories that are called by their dates.
    """
    world = World()
    columns, units = (["dt"], ["dt=1"]) if mine_partitioned else ([], [""])
    world.add_table(a_table(columns, name="events", create_time=5), {unit: [1000] * 3 for unit in units})
    days = [a_partition(f"dt={day}", f"{HOME}/orders/{day}") for day in ("20260101", "20260102")]
    world.catalog.add_table(a_table(["dt"], name="orders", create_time=6), days)
    for day in days:
        for nth in range(3):
            world.add_file(f"{day.location}/part-{nth:05d}.parquet", [f"{day.name} {nth}"])
    world.files.namespace.advance(3_600_000)
    space = world.files.namespace
    own_tree(space, f"{HOME}/events", "loader", "loader", 0o755)
    own_tree(space, f"{HOME}/orders", "alice", "alice", 0o700)
    own(space.directory(HOME), "hive", "hive", 0o777)
    return Desk(world, "sales.events", backup_table=False)


@pytest.mark.parametrize("command", ["compact", "rollback", "recover", "cleanup"])
@pytest.mark.parametrize("mine_partitioned", [False, True])
def test_another_tables_directory_in_the_place_of_a_unit_keeps_its_partitions(mine_partitioned: bool, command: str) -> None:
    """Who may rename it, but neither read it nor write to it, puts it there for one command, and back."""
    desk = two_tables(mine_partitioned)
    desk.compact()
    space, theirs, live = desk.world.files.namespace, f"{HOME}/orders", desk.live("dt=1" if mine_partitioned else "")
    user, before, rows = HdfsUser(space, "loader"), {path for path, _ in space.walk(theirs)}, desk.world.rows_of("sales.orders")
    assert not user.may_read(f"{theirs}/20260101")
    assert user.exchange(live, theirs)
    getattr(desk, command)()
    assert user.exchange(live, theirs)
    assert desk.world.rows_of("sales.orders") == rows
    assert {path for path, _ in space.walk(theirs)} == before


@pytest.mark.parametrize("command", ["compact", "rollback", "recover"])
def test_the_log_of_another_table_stays_one_if_its_control_directory_is_put_in_the_place_of_a_unit(command: str) -> None:
    other = a_closed_table()
    other.world.add_table(a_table(name="events", create_time=5), {"": [1000] * 3})
    desk, space, theirs = Desk(other.world, "sales.events", backup_table=False), other.world.files.namespace, other.control.top
    own_tree(space, desk.live(), "loader", "loader", 0o755)
    own(space.directory(HOME), "hive", "hive", 0o777)
    for one in (desk, other):
        one.compact()
    user, before = HdfsUser(space, "loader"), {path for path, _ in space.walk(theirs)}
    assert user.exchange(desk.live(), theirs)
    getattr(desk, command)()
    assert user.exchange(desk.live(), theirs)
    assert {path for path, _ in space.walk(theirs)} == before
    assert other.recover().code is Exit.DONE


@pytest.mark.parametrize("command", ["rollback", "compact"])
def test_late_rows_are_told_of_if_the_table_is_away_for_a_moment_while_they_are_carried_over(command: str) -> None:
    """As when somebody renames its directory by mistake, and back; whoever may rename beside it can do that on purpose."""
    world = World()
    world.add_table(a_table(["dt"], name="orders", create_time=6), {"dt=1": [1000] * 3})
    desk, files = Desk(world, "sales.orders", backup_table=False), world.files
    rows, late = world.rows_of("sales.orders"), ["late 1", "late 2", "late 3"]
    if command == "rollback":
        desk.compact()
        desk.append("dt=1", *late)
    look, met = files.look, []  # type: Any, List[str]

    def look_while_it_is_away(places: Any, *most: int) -> Any:
        if met != ["carried over"] or list(places) != [desk.live("dt=1")]:
            return look(places, *most)
        met.append("away")
        files.writer.rename_into(f"{HOME}/orders", f"{HOME}/.mistake")
        found = look(places, *most)
        files.writer.rename_into(f"{HOME}/.mistake", f"{HOME}/orders")
        return found

    def step(what: str) -> None:
        if command == "compact" and what.startswith(f"rename_exact {desk.live('dt=1')} "):
            for row in late:
                world.add_file(f"{desk.live('dt=1')}/{row}.parquet", [row])
        if what.startswith("rename_exact") and "/retired/u00001/late" in what and not met:
            met.append("carried over")

    files.look, files.before_step = look_while_it_is_away, step
    result = getattr(desk, command)()
    assert met == ["carried over", "away"]
    hidden = {*rows, *late} - set(world.rows_of("sales.orders"))
    assert not hidden or result.code is not Exit.DONE, f"hidden: {sorted(hidden)}"


@pytest.mark.parametrize("columns", [[], ["dt"]], ids=["unpartitioned", "partitioned"])
@pytest.mark.parametrize("command", ["backup", "compact", "rollback", "cleanup", "recover"])
def test_nothing_is_written_to_the_log_of_another_table_that_was_put_in_the_place_of_ones_own(command: str, columns: List[str]) -> None:
    """By whoever may rename it, or by an administrator's mistake: it is there all the time, so no run has to be met at a moment."""
    mine, theirs = two_compacted(columns)
    world, user = mine.world, HdfsUser(mine.world.files.namespace, "hive")
    before = world.files.contents(theirs.control.log)
    assert user.exchange(mine.control.top, theirs.control.top)
    result = getattr(mine, command)()
    assert user.exchange(mine.control.top, theirs.control.top)
    assert world.files.contents(theirs.control.log) == before
    assert command == "recover" or result.code is Exit.INVESTIGATE


def two_compacted(columns: List[str]) -> List[Desk]:
    """`events` and `orders`, compacted by one command."""
    world = World()
    return [a_compacted(world, name, columns) for name in ("events", "orders")]


def a_compacted(world: World, name: str, columns: List[str], location: str = "") -> Desk:
    table = a_table(columns, name=name, create_time=len(name), location=location or f"{HOME}/{name}")
    world.add_table(table, {unit: [1000] * 3 for unit in (["dt=1"] if columns else [""])})
    desk = Desk(world, f"sales.{name}", backup_table=False)
    desk.compact()
    return desk


@pytest.mark.parametrize("columns", [[], ["dt"]], ids=["unpartitioned", "partitioned"])
def test_a_rollback_does_not_take_another_tables_compacted_files_for_its_own(columns: List[str]) -> None:
    """The runs of tables that one command has worked on have one name, and their new files here the same lengths. Somebody exchanges their
    directories (a tenant who may rename both and read one; or an administrator, by mistake), and changes them back after a rollback and a
    cleanup of the one. The other one has no backup any more.
    """
    mine, theirs = two_compacted(columns)
    roll_back_with_others(mine, theirs, "dt=1" if columns else "")


def roll_back_with_others(mine: Desk, theirs: Desk, unit: str) -> None:
    world = mine.world
    rows, user = world.rows_of("sales.orders"), HdfsUser(mine.world.files.namespace, "hive")
    assert theirs.cleanup().code is Exit.DONE
    assert user.exchange(mine.live(unit), theirs.live(unit))
    mine.rollback()
    mine.cleanup()
    assert user.exchange(mine.live(unit), theirs.live(unit))
    assert not rows - world.rows_anywhere(), "rows are nowhere of a table of which only a backup was to go"


@pytest.mark.parametrize("columns", [[], ["dt"]], ids=["unpartitioned", "partitioned"])
def test_nor_does_it_if_the_other_one_was_at_the_same_place_when_the_same_command_compacted_it(columns: List[str]) -> None:
    """It was moved away, with its control directory, before the turn of the one that was set to its place."""
    world, unit = World(), "dt=1" if columns else ""
    theirs = a_compacted(world, "orders", columns)
    user = HdfsUser(world.files.namespace, "hive")
    assert user.rename(f"{HOME}/orders", f"{HOME}/moved")
    assert columns or user.rename(theirs.control.top, ControlPaths.of(f"{HOME}/moved", False).top)
    partitions = [a_partition(unit, f"{HOME}/moved/{unit}")] if columns else []
    world.catalog.add_table(replace(world.table("sales.orders"), location=f"{HOME}/moved"), partitions)
    mine = a_compacted(world, "events", columns, f"{HOME}/orders")
    assert mine.runs == theirs.runs
    roll_back_with_others(mine, theirs, unit)


def two_in_one_directory() -> Desk:
    """`events` of a tenant, and `orders`, closed to all but another user, both unpartitioned; the tenant may rename both."""
    desk = a_closed_table()
    desk.world.add_table(a_table(name="events", create_time=5), {"": [1000] * 3})
    space = desk.world.files.namespace
    own_tree(space, f"{HOME}/events", "loader", "loader", 0o755)
    own(space.directory(HOME), "hive", "hive", 0o777)
    return Desk(desk.world, "sales.events", backup_table=False)


@pytest.mark.parametrize("moment", ["in the gap", "in the outage after a kill"])
def test_another_tables_directory_that_comes_to_a_units_place_while_that_is_away_keeps_its_files(moment: str) -> None:
    """Nobody but their owner may read them, so they are not opened by that; but in the tenant's directory the tenant may delete them."""
    desk = two_in_one_directory()
    files, space, live, theirs = desk.world.files, desk.world.files.namespace, f"{HOME}/events", f"{HOME}/orders"
    user, victim = HdfsUser(space, "loader"), space.directory(theirs)
    before = set(victim.children)

    def put_in_gap(what: str) -> None:
        if what.startswith("rename_exact") and what.endswith(f" {live}") and space.find(live) is None:
            files.before_step = None
            assert user.rename(theirs, live)

    if moment == "in the gap":
        files.before_step = put_in_gap
        desk.compact()
    else:
        desk.kill_before(["rename_exact", "/ready/", f" {live}"], desk.compact)
        assert user.rename(theirs, live)
        desk.recover()
    assert space.find(theirs) is None
    assert not [name for name in before if user.may_take(f"{live}/{name}") and space.file(f"{live}/{name}").attributes.owner == "alice"]
    assert set(victim.children) == before


@pytest.mark.parametrize("whose", ["events", "orders"])
def test_a_late_file_of_an_unpartitioned_table_does_not_come_to_another_table(whose: str) -> None:
    """Their control directories are beside them: they stay where they are when the tables' directories are exchanged for one call."""
    world = two_in_one_directory().world
    desk = Desk(world, f"sales.{whose}", backup_table=False)
    desk.compact()
    world.add_file(f"{HOME}/{whose}/late.parquet", [f"{whose} late"])
    user = HdfsUser(world.files.namespace, "loader")

    def exchange(what: str) -> None:
        if what.startswith("rename_exact") and "/retired/u00001/late" in what:
            world.files.before_step = None
            assert user.exchange(f"{HOME}/events", f"{HOME}/orders")

    world.files.before_step = exchange
    desk.rollback()
    assert world.files.before_step is None
    assert user.exchange(f"{HOME}/events", f"{HOME}/orders")
    other = "orders" if whose == "events" else "events"
    assert not [row for row in world.rows_of(f"sales.{other}") if row.startswith(whose)]
