"""What strangers may have made in thousands: neither the memory nor the calls of a command grow with it, let alone with its product."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.orphans import show_orphans
from hivekeeper.model import Selection
from hivekeeper.names import backup_marks
from hivekeeper.reasons import Code
from hivekeeper.steps.left_behind import Strays
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

RUN = "20260101t020304z-0000"
HOME = "hdfs://nn/home/mallory"


def make_directories(world, paths, owner="mallory"):
    for path in paths:
        world.files.writer.make_directory(path)
        node = world.files.namespace.directory(path)
        node.attributes = replace(node.attributes, owner=owner)


def listen(monkeypatch, port, method, size):
    """The sizes of the answers that a method gives."""
    told, ask = [], getattr(port, method)

    def asked(*words):
        answer = ask(*words)
        told.append(size(answer))
        return answer

    monkeypatch.setattr(port, method, asked)
    return told


@pytest.mark.parametrize("command", [Desk.compact, Desk.recover, Desk.cleanup, Desk.backup])
def test_tables_around_many_directories_are_not_told_for_each_of_these(command, monkeypatch):
    world = World()
    world.add_table(a_table(kind="MANAGED_TABLE", name="mallorys", location=f"{HOME}/t", create_time=6), {"": [1000] * 3})
    make_directories(world, [f"{HOME}/.hivekeeper-x{number}" for number in range(100)], owner="hive")
    for number in range(100):
        world.catalog.add_table(a_table(name=f"m{number}", location=HOME, create_time=7))
    told = listen(monkeypatch, world.metastore, "locations_below", lambda found: sum(map(len, found.values())))
    command(Desk(world, "sales.mallorys"))
    assert max(told, default=0) <= 250


def test_directories_of_others_beside_many_tables_are_not_kept():
    world = World()
    for table in range(20):
        home = f"{HOME}/{table}"
        world.add_table(a_table(kind="MANAGED_TABLE", name=f"t{table}", location=f"{home}/t", create_time=table + 1), {"": [1000] * 3})
        make_directories(world, [f"{home}/.hivekeeper-x{number}" for number in range(40)])
    compact_swap(a_context(world.cluster, Selection(databases=("sales",)), RUN))
    known = world.cluster.memory.of(Strays).controls
    assert len(known) == 20
    assert not any(found for _, found in known.values())


def test_what_is_hidden_in_directories_beside_a_table_is_not_kept(monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.orphans.MOST_HIDDEN_INSIDE", 35)
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table(["dt"], name="mallorys", location=f"{HOME}/t", create_time=6), {"dt=1": [1000]})
    make_directories(world, [f"{HOME}/d{number}/.h{hidden}" for number in range(20) for hidden in range(30)])
    make_directories(world, [f"{HOME}/full/.h{hidden}" for hidden in range(40)])
    make_directories(world, [f"{HOME}/d7/.hivekeeper.removed-{RUN}"])
    told = listen(monkeypatch, world.files, "look_hidden_directories", lambda seen: sum(len(one.entries) for one in seen.values()))
    result = show_orphans(a_context(world.cluster, Selection(databases=("sales",)), RUN))
    assert max(told) <= 36
    found = [orphan.place for table in result.tables for orphan in table.orphans or ()]
    assert f"{HOME}/d7/.hivekeeper.removed-{RUN}" in found


def test_a_closed_directory_beside_a_table_hides_nothing_that_is_left_over_and_lifts_no_bound(monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.orphans.MOST_LISTED", 40)
    world = World()
    world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    world.add_table(a_table(["dt"], name="mallorys", location=f"{HOME}/t", create_time=6), {"dt=1": [1000]})
    left_over = [f"{HOME}/d{number:02}/.hivekeeper.removed-{RUN}" for number in range(20)]
    make_directories(world, left_over)
    world.files.make_directory(f"{HOME}/d99")
    world.files.namespace.unreadable.add(f"{HOME}/d99")

    def show():
        result = show_orphans(a_context(world.cluster, Selection(databases=("sales",)), RUN))
        return {orphan.place for table in result.tables for orphan in table.orphans or ()}

    assert show() >= set(left_over)
    make_directories(
        world, [f"{HOME}/d{number:02}/.hivekeeper.removed-{RUN[:-1]}{digit}" for number in range(20) for digit in range(1, 10)]
    )
    assert len(show()) <= 40 + 2


def show_of_many(world, parents):
    """The outcomes of databases that each have a table in one of these directories."""
    for number, parent in enumerate(parents):
        home = f"hdfs://nn/warehouse/db{number}"
        world.catalog.homes[f"db{number}"] = home
        make_directories(world, [home])
        world.catalog.add_table(replace(a_table(name="t", location=f"{parent}/t{number}", create_time=7), database=f"db{number}"))
    databases = tuple(f"db{number}" for number in range(len(parents)))
    world.metastore.forget()
    return show_orphans(a_context(world.cluster, Selection(databases=databases), RUN)).tables


@pytest.mark.parametrize("made", [".hivekeeper-x{}", "x{}/.hivekeeper", ".hivekeeper.removed-20260101t020304z-{:04}"])
def test_what_looks_like_records_beside_tables_of_many_databases_is_told_once(made, monkeypatch, caplog):
    monkeypatch.setattr("hivekeeper.steps.orphans.MOST_UNREAD", 30)
    world = World()
    make_directories(world, [f"{HOME}/{made.format(number)}" for number in range(40)])
    listed = []
    look = world.files.look
    monkeypatch.setattr(world.files, "look", lambda places, *most: (listed.extend(places), look(places, *most))[1])
    assert [len(outcome.orphans) for outcome in show_of_many(world, [HOME] * 3)] == [30, 0, 0]
    assert listed.count(HOME) == 1
    assert "and 9 more beside tables of db0" in caplog.text


def test_what_looks_like_records_in_directories_of_many_databases_is_not_all_kept_and_hides_nothing(monkeypatch, caplog):
    monkeypatch.setattr("hivekeeper.steps.orphans.MOST_UNREAD", 15)
    monkeypatch.setattr("hivekeeper.steps.orphans.MOST_UNREAD_OF_ALL", 40)
    world = World()
    world.add_table(a_table(name="a", location=f"{HOME}/9/y", create_time=6), {"": [1000] * 3})
    Desk(world, "sales.a").compact()
    world.catalog.drop_table("sales.a")
    make_directories(world, [f"{HOME}/{parent}/.hivekeeper-x{number}" for parent in range(10) for number in range(20)])
    make_directories(world, [f"{HOME}/0/.hivekeeper.removed-20250101t020304z-{number:04}" for number in range(20)])
    finished = f"{HOME}/0/.hivekeeper.removed-{RUN}"
    make_directories(world, [finished], owner=world.files.user_at(finished))
    outcomes = show_of_many(world, [f"{HOME}/{parent}" for parent in range(10)])
    assert finished in {one.place for one in outcomes[0].orphans}
    assert (f"{HOME}/9/.hivekeeper-y", True) in {(one.place, one.is_read) for one in outcomes[9].orphans}
    # What is ours, or was read, is told besides.
    assert sum(len(outcome.orphans) for outcome in outcomes) == 40 + 2
    assert caplog.text.count("is left out") == 10


def test_records_beside_tables_of_several_databases_are_told_for_each_as_only_one_may_discard_them():
    world = World()
    world.add_table(a_table(name="a", location=f"{HOME}/y", create_time=6), {"": [1000] * 3})
    Desk(world, "sales.a").compact()
    world.catalog.drop_table("sales.a")
    assert [len(outcome.orphans) for outcome in show_of_many(world, [HOME] * 2)] == [1, 1]


@pytest.mark.parametrize("location", ["hdfs://nn/warehouse", "hdfs://nn/warehouse/sales/events/x"], ids=["around", "inside"])
def test_tables_that_are_marked_as_backups_of_none_cost_nobody_a_call_each(location, monkeypatch):
    calls = []
    for marked in (100, 1000):
        world = World()
        world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
        for number in range(marked):
            marks = backup_marks(f"sales.m{number}", f"gone{number}.t")
            world.catalog.add_table(a_table(name=f"m{number}", location=location, parameters=marks, create_time=7))
        asked = listen(monkeypatch, world.metastore, "tables", len)
        compact_swap(a_context(world.cluster, Selection(tables=("sales.events",)), RUN))
        calls.append(len(asked))
    few, many = calls
    # Inside, a call for a hundred of them.
    assert many <= few + 20


def definitions_read(monkeypatch, tables, marked):
    """How many a command over all tables asks for, with some at one place, around many that are marked as backups of none."""
    world = World()
    for number in range(marked):
        marks = backup_marks(f"sales.a{number}", "sales.gone")
        world.catalog.add_table(a_table(name=f"a{number}", location=f"{HOME}/x{number}", parameters=marks, create_time=7))
    for number in range(tables):
        world.catalog.add_table(a_table(name=f"z{number}", location=HOME, create_time=8))
    make_directories(world, [HOME])
    told = listen(monkeypatch, world.metastore, "databases", len)
    asked, tables_of = [], world.metastore.tables
    monkeypatch.setattr(world.metastore, "tables", lambda database, names: (asked.extend(names), tables_of(database, names))[1])
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), RUN))
    assert [table.problem.code for table in result.tables] == [Code.SHARED_DIRECTORY] * tables
    return len(asked), len(told)


def test_tables_at_one_place_do_not_each_read_all_that_are_marked_as_backups_there(monkeypatch):
    of_few, told_few = definitions_read(monkeypatch, tables=20, marked=0)
    of_many, told_many = definitions_read(monkeypatch, tables=20, marked=500)
    # Each is selected by its definition, and read for the first of the tables.
    assert of_many - of_few <= 2 * 500 + 20
    assert told_many - told_few <= 2


class Locations:
    def qualify(self, path):
        return path


def test_names_of_servers_are_not_all_remembered():
    files = HadoopFiles.__new__(HadoopFiles)
    files._spelling, files._locations = {}, Locations()
    for number in range(3000):
        for length in (30, 3000):
            assert files.qualify(f"hdfs://{'x' * length}{number}//a") == f"hdfs://{'x' * length}{number}/a"
    assert sum(map(len, files._spelling)) <= 300_000


class AclsAlike:
    """Directories of one long ACL, each with an extended attribute of its own."""

    acl = [f"user:{'u' * 240}{number:02d}:r-x" for number in range(31)]

    def read(self, asked, _by_id):
        alike = {"owner": "o", "group": "g", "mode": 0o755, "acl": self.acl, "file_mode": 0o644, "file_acl": self.acl, "directory_id": 0}
        return json.dumps({place: {**alike, "xattrs": {"user.a": place}} for place in json.loads(asked)})

    def fileRights(self, asked, _most):  # noqa: N802
        rights = {"owner": "o", "group": "g", "mode": 0o644, "acl": self.acl, "ids": [1]}
        return json.dumps({place: [rights] for place in json.loads(asked)})


def test_acls_alike_are_not_held_for_each_directory():
    files = HadoopFiles.__new__(HadoopFiles)
    files._attributes, files._held, files._anchors = AclsAlike(), {}, {}
    places = [f"hdfs://nn/t/dt={number}" for number in range(100)]
    found = files.attributes(places).values()
    rights = [one for some in files.file_rights(dict.fromkeys(places, 0), 5).values() for one in some]
    texts = [text for one in found for text in (*one.acl, *one.file_acl)] + [text for one in rights for text in one.acl]
    held = sum({id(text): sys.getsizeof(text) for text in texts}.values())
    assert held <= 2 * sum(map(len, AclsAlike.acl))
