"""Correcting backup tables on the fakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names, ports
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps import backup_tables
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.world import World


def allow(monkeypatch, most, of_table):
    """How many partitions of backup tables a command may drop."""
    monkeypatch.setattr(backup_tables, "MOST_TRIMMED", most)
    monkeypatch.setattr(backup_tables, "TRIMMED_OF_TABLE", of_table)


def test_what_others_add_to_a_backup_table_is_dropped_a_part_at_a_time(monkeypatch):
    """Each is a request, and there may be a million."""
    allow(monkeypatch, 3, 0)
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    catalog = world.cluster.metastore.catalog
    (backup,) = [name for name, table in catalog.tables.items() if names.BACKUP_OF in table.parameters]
    (own,) = catalog.partitions[backup].values()
    for day in range(2, 10):
        catalog.add_partition(backup, replace(own, name=f"dt={day}", values=(str(day),)))
    left = []
    for _ in range(3):
        desk.append("dt=1", "a", "b", "c")
        before = len(catalog.partitions[backup])
        desk.compact()
        left.append(before - len(catalog.partitions[backup]))
    assert left == [3, 3, 2]
    assert list(catalog.partitions[backup]) == ["dt=1"]


@pytest.mark.parametrize("nights", [1, 6])
def test_what_others_add_to_all_backup_tables_is_dropped_by_one_allowance(nights, monkeypatch):
    """There is one for each night, and a command corrects them twice."""
    allow(monkeypatch, 30, 10)
    world = World()
    tables = ["first", "second", "third"]
    for name in tables:
        world.add_table(a_table(["dt"], name=name, location=f"hdfs://nn/warehouse/sales/{name}"), {"dt=1": [1000] * 3})

    def compact(night):
        for name in tables:
            Desk(world, f"sales.{name}").append("dt=1", f"a{night}", f"b{night}", f"c{night}")
        return compact_swap(a_context(world.cluster, Selection(databases=("sales",)), f"20260101t02030{night}z-0000"))

    for night in range(nights):
        compact(night)
    made = [name for name, table in world.catalog.tables.items() if table.backup_of]
    assert len(made) == len(tables) * nights
    for name in made:
        for number in range(50):
            world.catalog.add_partition(name, a_partition(f"dt=x{number}", "hdfs://nn/nowhere"))
    compact(nights)
    left = {name: sum(len(world.partitions(one)) - 1 for one in made if world.table(one).backup_of == f"sales.{name}") for name in tables}
    assert [50 * nights - left[name] for name in tables] == [30, 10, 10]


BAIT = "hdfs://nn/user/mallory/bait"


def squat(world, name, columns=("dt",)):
    """A table of somebody who has guessed the name of a backup table, and given it the property of one."""
    table = a_table(columns, kind="MANAGED_TABLE", name=name.partition(".")[2], location=BAIT)
    table = replace(table, owner="mallory", parameters={names.BACKUP_OF: "sales.events"})
    world.catalog.add_table(table, [a_partition("dt=1", f"{BAIT}/dt=1")] if columns else [])
    return table.full_name


def squat_all(world, columns=("dt",)):
    return [squat(world, f"sales.__bkp_events_20260101_0200{second:02d}", columns) for second in range(5)]


def shown_by(world, full_names):
    """The directories that tables show, of those outside the bait."""
    there = [name for name in full_names if name in world.catalog.tables]
    places = [world.table(name).location for name in there]
    places += [one.location for name in there for one in world.partitions(name).values()]
    return [place for place in places if not place.startswith(BAIT)]


@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
def test_a_table_that_had_the_name_before_is_neither_shown_old_files_nor_dropped(columns):
    """Whoever owns it would read them, and drop live files with it after a rollback."""
    world = World()
    world.add_table(a_table(columns, owner="alice"), {"dt=1" if columns else "": [1000] * 3})
    desk = Desk(world)
    theirs = squat_all(world, columns)
    result = desk.compact()
    assert (result.code, result.tables[0].backup_table) == (Exit.DONE, "")
    desk.backup()
    desk.rollback()
    assert shown_by(world, theirs) == []
    desk.cleanup()
    assert set(theirs) <= set(world.catalog.tables)


def test_a_table_that_takes_the_name_just_before_ours_is_made_is_not_believed_to_be_ours():
    world = World()
    world.add_table(a_table(["dt"], owner="alice"), {"dt=1": [1000] * 3})
    desk, theirs = Desk(world), []

    def come(step):
        if step.startswith("metastore.make_backup_table ") and not theirs:
            theirs.append(squat(world, step.partition(" ")[2]))

    world.files.before_step = come
    assert desk.compact().tables[0].backup_table == ""
    assert shown_by(world, theirs) == []


FORGERIES = {
    "managed": lambda table: replace(table, kind="MANAGED_TABLE"),
    "purged": lambda table: replace(table, parameters={**table.parameters, "external.table.purge": "true"}),
    "translated": lambda table: replace(table, parameters={**table.parameters, "TRANSLATED_TO_EXTERNAL": "TRUE"}),
    "elsewhere": lambda table: replace(table, location=BAIT),
    "unmarked": lambda table: replace(table, parameters={**table.parameters, names.BACKUP_OF: "sales.other"}),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("columns", [("dt",), ()], ids=["partitioned", "unpartitioned"])
def test_a_backup_table_that_is_not_as_we_make_them_any_more_is_neither_changed_nor_dropped(forge, columns):
    world = World()
    world.add_table(a_table(columns, owner="alice"), {"dt=1" if columns else "": [1000] * 3})
    desk = Desk(world)
    desk.backup()
    (name,) = [name for name, table in world.catalog.tables.items() if names.BACKUP_OF in table.parameters]
    theirs = world.catalog.tables[name] = forge(world.table(name))
    before = theirs, dict(world.partitions(name))
    for act in (desk.compact, desk.rollback, desk.cleanup):
        assert act().code is Exit.DONE
    assert (world.table(name), dict(world.partitions(name))) == before


def make_heavy(world, backup):
    (own,) = world.partitions(backup).values()
    heavy = replace(own, name="dt=7", values=("7",), parameters={"x": "y" * (ports.MOST_OF_PARTITIONS + 1)})
    world.catalog.add_partition(backup, heavy)


def make_unreadable(world, backup):
    world.set_property(backup, x="y" * (ports.MOST_OF_TABLE + 1))


@pytest.mark.parametrize("spoil", [make_heavy, make_unreadable])
def test_a_backup_table_that_is_too_large_to_be_read_ends_no_command(spoil):
    """Else the next run would have swapped its units without saying so, and no later command would do anything."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    desk.compact(where="dt = '1'")
    (backup,) = [name for name, table in world.catalog.tables.items() if names.BACKUP_OF in table.parameters]
    spoil(world, backup)
    result = desk.compact()
    assert (result.tables[0].problem, outcomes(result)["dt=2"]) == (None, "swapped")
    for command in (desk.recover, desk.rollback, desk.cleanup):
        assert command().code is Exit.DONE


def backup_tables_of(world):
    return [name for name, table in world.catalog.tables.items() if names.BACKUP_OF in table.parameters]


def test_the_backup_table_of_a_killed_run_that_cannot_be_read_is_dropped_as_soon_as_it_can():
    """It is in no log: without the records of its run nobody would know that it is ours."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/entry.json"], desk.backup)
    (backup,) = backup_tables_of(world)
    make_unreadable(world, backup)
    desk.recover()
    assert backup_tables_of(world) == [backup]
    world.set_property(backup, x="")
    desk.recover()
    assert (backup_tables_of(world), desk.run_directories()) == ([], [])


def test_a_strange_table_at_a_place_that_no_file_system_answers_for_ends_no_command(monkeypatch):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    desk.compact(where="dt = '1'")
    (backup,) = backup_tables_of(world)
    world.catalog.drop_table(backup)
    squat(world, backup)
    qualify = world.files.qualify

    def fail(path):
        if path.startswith(BAIT):
            raise FilesUnavailable("no such file system")
        return qualify(path)

    monkeypatch.setattr(world.files, "qualify", fail)
    for command in (desk.compact, desk.recover, desk.rollback, desk.cleanup):
        assert command().code is Exit.DONE
    assert backup in world.catalog.tables
