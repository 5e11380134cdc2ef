"""Where tables, databases and partitions are, which of them share a directory, and how long that is known: the metastore and its fake."""

from __future__ import annotations

import socket
import threading
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hivekeeper import names
from hivekeeper.cluster import metastore as metastore_module
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.metastore import Roots, _Places
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.steps.census import Census
from hivekeeper.steps.observe import qualify_all
from support.metastore_worlds import MARKS, add_partitions, backup_of, find, let_fail, make_backup, partition_of, place


def test_tables_at_above_and_below_a_location_are_named_and_neighbours_are_not(world):
    for name, below in (("at", "x/y"), ("above", "x"), ("inside", "x/y/z"), ("beside", "x/y2"), ("far", "q")):
        world.add_table(name, location=f"{world.root}/{below}")
    asked = [f"{world.root}/x/y", f"{world.root}/q/"]
    found = world.metastore.locations_below(asked)
    touching = tuple(f"{world.database}.{name}" for name in ("above", "at", "inside"))
    assert found == {asked[0]: touching, asked[1]: (f"{world.database}.far",)}


@pytest.mark.parametrize("key", ["path", "PATH", "Path"])
def test_a_table_is_also_where_spark_finds_it(world, key):
    """Spark looks for its SerDe's property `path` in any case (CaseInsensitiveMap); Hive's SET LOCATION changes the location alone."""
    table = world.set_serde_path(world.add_table("events"), f"{world.root}/x/", key)
    asked = [table.location, f"{world.root}/x", f"{world.root}/x/y", f"{world.root}/xx", world.root]
    found = world.metastore.locations_below(asked)
    # Not around: whoever may alter a table may set it to anything.
    assert [found[place] for place in asked] == [(table.full_name,), (table.full_name,), (), (), (table.full_name,)]
    assert world.metastore.table_locations()[table.full_name] == table.location
    assert world.metastore.table_places()[table.full_name] == (table.location, f"{world.root}/x")


def test_a_path_of_a_table_that_is_not_sparks_is_no_place(world):
    """Hive's CREATE TABLE … LIKE copies it from a table of Spark, and Spark does not read it there (3.2, SPARK-28266)."""
    table = world.set_serde_path(world.add_table("events"), f"{world.root}/x", provider="")
    assert world.metastore.table_places()[table.full_name] == (table.location,)


def test_who_has_tables_of_spark_around_a_place_by_their_paths_is_told(world):
    top = f"{world.root}/x"
    at, other = (world.set_serde_path(world.add_table(name), f"{top}/{below}") for name, below in (("at", "y"), ("above", "")))
    world.set_serde_path(world.add_table("beside"), f"{top}/y2")
    # Around what is below its location, it is told with the locations.
    world.set_serde_path(world.add_table("located", location=f"{top}/y"), f"{top}/y/")
    told = {f"{top}/y": ((at.full_name, at.owner),), top: ((other.full_name, other.owner),)}
    assert world.metastore.paths_around(f"{top}/y/z/") == told
    assert world.metastore.paths_around(f"{top}/y") == {top: told[top]}
    assert world.metastore.paths_around(top) == {}


def test_a_path_that_is_the_location_is_no_further_place(world):
    table = world.set_serde_path(world.add_table("events"), f"{world.root}//events/")
    assert world.metastore.table_places()[table.full_name] == (table.location,)


@pytest.mark.parametrize("name", ["d*", "d?", "[de]1", "{d1,e/x}", "*/x", "d\\1"])
def test_a_table_at_a_pattern_has_files_in_the_directory_before_it(world, name):
    """Hive (FileInputFormat) and Spark (DataSource) take such a location, or path, for a pattern of Hadoop."""
    located = world.add_table("located", location=f"{world.root}/a/b/{name}")
    pathed = world.set_serde_path(world.add_table("pathed"), f"{world.root}/a/c/{name}")
    asked = [f"{world.root}/a/{place}" for place in ("b/d1", "b", "c", "d1", "bb")]
    found = world.metastore.locations_below(asked)
    assert [found[place] for place in asked] == [(located.full_name,), (located.full_name,), (pathed.full_name,), (), ()]
    assert world.metastore.table_places()[pathed.full_name] == (pathed.location, f"{world.root}/a/c")
    assert world.metastore.table_locations()[located.full_name] == located.location


@pytest.mark.parametrize("text", ["", "x:y", "a b:/x", "/" + "x" * names.MOST_PATH], ids=["empty", "relative", "no scheme", "too long"])
def test_a_path_that_cannot_be_one_is_no_place(world, text):
    table = world.set_serde_path(world.add_table("events"), text)
    assert world.metastore.table_places()[table.full_name] == (table.location,)
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


def test_a_table_without_a_location_is_where_spark_finds_it(real):
    """Hive cannot read intervals (nor TIMESTAMP_NTZ, which Spark 3.3 does not know), and the location of such a table is a placeholder."""
    where = f"{real.root}/x"
    real.gateway.spark.sql(f"CREATE TABLE {real.database}.events (id INT, during INTERVAL YEAR) USING parquet LOCATION '{where}'")
    location, place = real.metastore.table_places()[f"{real.database}.events"]
    assert (location.endswith("-__PLACEHOLDER__"), place) == (True, where)
    assert real.metastore.locations_below([where])[where] == (f"{real.database}.events",)


def test_a_table_of_another_database_on_the_same_directory_is_named(world):
    other = world.add_database()
    world.add_table("events", location=f"{world.root}/x")
    world.add_table("copy", location=f"{world.root}/x", database=other)
    (found,) = world.metastore.locations_below([f"{world.root}/x"]).values()
    assert set(found) == {f"{world.database}.events", f"{other}.copy"}


def test_tables_at_deep_locations_take_no_more_memory_than_these_are_long():
    """A location need not exist, and whoever may create tables chooses it: the directories above all of them were kept, 4 MB for each."""
    locations = {f"loader.t{number}": f"hdfs://nn/{number}{'/d' * 2000}" for number in range(50)}
    asked = ("hdfs://nn/7", f"{locations['loader.t7']}/x", "hdfs://nn/70", "hdfs://nn")
    tracemalloc.start()
    try:
        told = _Places()
        told.locations, told.of = locations, {name: (location,) for name, location in locations.items()}
        roots = Roots(told)
        found = {place: sorted(roots.touching(place)) for place in asked}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(found.values()) == [["loader.t7"], ["loader.t7"], [], sorted(locations)]
    # Also what other threads of the test process take meanwhile.
    assert peak < 100 * sum(map(len, locations.values()))


def test_the_locations_of_tables_are_compared_without_calling_their_servers(world):
    world.add_table("events", location=f"{world.root}/x")
    found = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        asked = [f"{scheme}://{server}/x" for scheme in ("ftp", "hdfs", "webhdfs", "swebhdfs")] + [f"har://hdfs-{server}/x.har/y"]
        # As a daemon, what waits for a server ends with the process.
        thread = threading.Thread(target=lambda: found.append(world.metastore.locations_below(asked)), daemon=True)
        thread.start()
        thread.join(20)
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert found == [dict.fromkeys(asked, ())]


def test_one_broken_location_does_not_make_the_others_unreadable(real):
    table = real.add_table("events")
    schemes = ("", "hdfs:", "ftp:", "har:", "viewfs:", "file:", "s3a:", "nothing:", ":", "a b:", "1:")
    rests = (
        "//",
        "//:",
        "//:8020/x",
        "//a:b:c/x",
        "//[::1]:8020/x",
        "//[/x",
        "//a b/x",
        "//%zz/x",
        "x",
        "",
        "//@/x",
        "//./x",
        "//a:99999999999/x",
    )
    broken = [f"{scheme}{rest}" for scheme in schemes for rest in rests] + ["/x\0", "/x\n", "hdfs://" + "a." * 2000 + "/x", "/.." * 1000]
    found = real.metastore.locations_below([*broken, table.location])
    assert found[table.location] == (table.full_name,)


@pytest.mark.parametrize("broken", ["x:.hivekeeper/y", "hdfs://[/.hivekeeper", "a b:/.hivekeeper/y"])
def test_a_partition_at_no_location_hides_no_partition_of_another_table(real, broken):
    """The server looks at the location of a table, and of a partition that is added, but not of one that is altered with others."""
    table, victim = real.add_table("parted"), real.add_table("other")
    add_partitions(real, table, ["1"])
    stored = real.stored(table, "dt=1")
    stored.getSd().setLocation(broken)
    altered = real.gateway.jvm.java.util.ArrayList([stored])
    real.client.alter_partitions(table.database, table.name, altered, real.keep_statistics())
    inside = f"{victim.location}/.hivekeeper/runs/x/retired/u00001"
    real.metastore.add_partition(victim, partition_of(victim, "2", location=inside))
    files = HadoopFiles(real.gateway)
    (found,) = qualify_all(files, table, real.metastore.partitions(table))
    assert found == broken
    assert files.is_foreign(found)
    census = Census(SimpleNamespace(files=files, metastore=real.metastore, clock=SimpleNamespace(monotonic_ms=lambda: 0.0)))
    top = files.qualify(f"{victim.location}/.hivekeeper")
    assert [name for name, _ in census.partitions_inside(top, [], victim.database)] == [f"{victim.full_name}/dt=2"]


def add_view_with_partition(real):
    """`CREATE VIEW … PARTITIONED ON (dt)` and `ALTER VIEW … ADD PARTITION`, which Hive's client stores without a place."""
    jvm, view = real.gateway.jvm, real.add_view("shown")
    partition = real.hive.metastore.api.Partition()
    partition.setDbName(view.database)
    partition.setTableName("shown")
    partition.setValues(jvm.java.util.ArrayList(["1"]))
    partition.setParameters(jvm.java.util.HashMap({}))
    real.client.add_partition(partition)
    return find(real, view.full_name)


@pytest.mark.jvm
def test_a_view_that_has_partitions_hides_nothing_from_whoever_looks_through_all_tables(real):
    victim = real.add_table("other")
    view = add_view_with_partition(real)
    assert (view.kind, view.partitioned) == ("VIRTUAL_VIEW", True)
    inside = f"{victim.location}/.hivekeeper/runs/x/retired/u00001"
    real.metastore.add_partition(victim, partition_of(victim, "2", location=inside))
    files = HadoopFiles(real.gateway)
    census = Census(SimpleNamespace(files=files, metastore=real.metastore, clock=SimpleNamespace(monotonic_ms=lambda: 0.0)))
    top = files.qualify(f"{victim.location}/.hivekeeper")
    assert [name for name, _ in census.partitions_inside(top, [], victim.database)] == [f"{victim.full_name}/dt=2"]


def test_a_view_with_a_location_is_nowhere(world):
    """The metastore's own interface takes any for it, and makes no directory there."""
    table, view = world.add_table("events", location=f"{world.root}/x/y"), world.add_view("shown", f"{world.root}/x")
    assert view.location == ""
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    assert world.metastore.table_places()[table.full_name] == (table.location,)
    assert view.full_name not in {**world.metastore.table_places(), **world.metastore.table_locations()}
    world.metastore.read_places_again(table.full_name)
    assert view.full_name not in world.metastore.table_places()


def test_the_directories_of_all_tables_are_told_in_their_one_spelling(world):
    table = world.add_table("events")
    assert world.metastore.table_locations()[table.full_name] == table.location


def test_the_directories_of_databases_are_told_in_their_one_spelling(world):
    homes = world.metastore.database_locations()
    assert homes[world.database] == world.root
    # Other tests make and drop databases in the same metastore.
    assert world.database in world.metastore.databases()


def test_this_client_is_not_told_where_a_database_has_its_managed_tables(real):
    """One that is could have it compared as the location is (docs/SECURITY.md)."""
    told = dir(real.hive.metastore.api.Database())
    assert "getLocationUri" in told
    assert "getManagedLocationUri" not in told


def test_a_table_that_is_renamed_while_the_places_of_all_are_read_is_known(world):
    """Before its definition, after its name."""
    table, waiting = world.add_table("events"), ["renamed"]
    world.let_act(lambda: waiting and world.rename_table(table, waiting.pop()), "getTableObjectsByName")
    (found,) = world.metastore.locations_below([table.location]).values()
    assert not waiting
    assert found == (f"{world.database}.renamed",)


def test_a_database_that_is_dropped_while_the_places_of_all_are_read_has_none(real):
    """Before the definitions of its tables, after their names."""
    table, other = real.add_table("events"), real.add_table("other", database=real.add_database(f"{real.root}/backups"))

    def drop(database: str) -> bool:
        if database == other.database and database in real.databases:
            real.databases.remove(database)
            real.client.dropDatabase(database, False, True, True)
        return False

    let_fail(real, lambda database, _: drop(database))
    assert real.metastore.table_locations()[table.full_name] == table.location
    assert other.database not in real.databases
    assert other.full_name not in real.metastore.table_locations()


def test_a_table_that_was_renamed_since_is_known_once_places_are_read_again(world):
    table = world.add_table("events")
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    world.rename_table(table, "renamed")
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    world.metastore.read_places_again(table.full_name)
    assert world.metastore.locations_below([table.location])[table.location] == (f"{world.database}.renamed",)


def test_places_are_not_read_again_all_the_time(world, monkeypatch):
    table = world.add_table("events")
    # As if that took long.
    monkeypatch.setattr(metastore_module, "KEEP_READ_AGAIN", 10**6)
    monkeypatch.setattr(world.metastore, "keeps_read_again_ms", 10**6, raising=False)
    world.metastore.read_places_again(table.full_name)
    with pytest.raises(MetastoreUnavailable, match=f"{table.full_name}, .* under another name") as raised:
        world.metastore.read_places_again(table.full_name)
    assert not isinstance(raised.value, MetastoreRefused)
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@pytest.fixture
def database_elsewhere(world):
    """No table of another database lies in its directory."""
    return world.add_database(f"{world.root}_elsewhere")


@pytest.fixture
def just_read(world, monkeypatch):
    """All places were read again a moment ago, and may not be for a long time."""
    monkeypatch.setattr(metastore_module, "KEEP_READ_AGAIN", 10**6)
    monkeypatch.setattr(world.metastore, "keeps_read_again_ms", 10**6, raising=False)
    world.metastore.read_places_again("")
    return world


@pytest.mark.usefixtures("just_read")
def test_newer_places_are_those_of_new_names_and_of_the_databases_of_the_table_and_around_it(world, database_elsewhere):
    table, beside = world.add_table("events"), world.add_table("beside")
    known = world.add_table("known", database=database_elsewhere)
    world.metastore.read_newer_places(table)
    new = world.add_table("new", database=database_elsewhere)
    for one in (table, beside, known):
        world.set_location(one, f"{world.root}/elsewhere/{one.name}")
    before = world.metastore.table_locations()
    moved = replace(table, location=f"{world.root}/elsewhere/events")
    world.metastore.read_newer_places(moved)
    now = world.metastore.table_locations()
    assert [now[one.full_name] for one in (table, beside, known, new)] == [
        moved.location,
        f"{world.root}/elsewhere/beside",
        known.location,
        new.location,
    ]
    # What was asked for before stays as it was.
    assert (before[table.full_name], before.get(new.full_name)) == (table.location, None)


@pytest.mark.usefixtures("just_read")
def test_a_table_that_is_renamed_while_newer_places_are_read_is_known(world):
    table, waiting = world.add_table("events"), ["renamed"]
    world.let_act(lambda: waiting and world.rename_table(table, waiting.pop()), "getTableObjectsByName")
    world.metastore.read_newer_places(replace(table, name="none"))
    assert not waiting
    assert world.metastore.locations_below([table.location])[table.location] == (f"{world.database}.renamed",)


@pytest.mark.usefixtures("just_read")
def test_of_a_database_that_is_gone_no_newer_places_are_known(world):
    """Its table may have been elsewhere, and others go on."""
    table = world.add_table("events")
    world.metastore.read_newer_places(replace(table, database="no_such_database"))
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@pytest.mark.usefixtures("just_read")
def test_newer_places_come_with_the_directories_of_new_databases(world):
    """A table that is elsewhere by now may lie in one of them."""
    known, database = world.add_table("known"), world.add_database(world.root)
    world.metastore.read_newer_places(known)
    assert world.metastore.database_locations().get(database) == world.root


@pytest.mark.usefixtures("just_read")
def test_newer_places_are_not_read_all_the_time(world, monkeypatch):
    monkeypatch.setattr(world.metastore, "_newer_left_s", 1e-9, raising=False)
    monkeypatch.setattr(world.metastore, "newer_left", 1, raising=False)
    table = world.add_table("events")
    world.metastore.read_newer_places(table)
    with pytest.raises(MetastoreUnavailable, match="so many have moved since") as raised:
        world.metastore.read_newer_places(table)
    assert not isinstance(raised.value, MetastoreRefused)


def test_all_places_are_read_again_for_a_table_that_is_elsewhere_if_that_was_not_done_lately(world):
    table, other = world.add_table("events"), world.add_table("other")
    assert table.full_name in world.metastore.table_locations()
    world.set_location(other, f"{world.root}/elsewhere")
    world.metastore.read_newer_places(table)
    assert world.metastore.table_locations()[other.full_name] == f"{world.root}/elsewhere"


def test_a_backup_table_that_was_dropped_by_this_client_is_not_known_any_more(world):
    table = world.add_table("events")
    make_backup(world, table, {})
    asked = [table.location, place(world, 0)]
    before = {name for found in world.metastore.locations_below(asked).values() for name in found}
    assert before == {table.full_name, backup_of(world)}
    assert world.metastore.drop_backup_table(backup_of(world), MARKS)
    after = {name for found in world.metastore.locations_below(asked).values() for name in found}
    assert after == {table.full_name}


@pytest.mark.usefixtures("just_read")
@pytest.mark.parametrize("is_told", [True, False])
def test_who_takes_the_name_of_a_backup_table_that_was_dropped_by_this_client_is_known_with_newer_places(world, is_told):
    """`is_told`: whether the backup table was known before."""
    table = world.add_table("events")
    make_backup(world, table, {})
    if is_told:
        world.metastore.read_newer_places(table)
    assert world.metastore.drop_backup_table(backup_of(world), MARKS)
    world.add_table(backup_of(world).partition(".")[2], location=f"{world.root}/x")
    world.metastore.read_newer_places(table)
    assert world.metastore.locations_below([f"{world.root}/x"]) == {f"{world.root}/x": (backup_of(world),)}
