"""What the metastore and its fake do with backup tables, and with what only looks like one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import quoting
from hivekeeper.ports import MetastoreRefused
from support.metastore_worlds import (
    MARKS,
    NASTY,
    STATS,
    add_partitions,
    backup_of,
    find,
    let_answer,
    make_backup,
    partition_of,
    place,
    shown_by,
    without_time,
)

OF_OTHERS = {
    "TRANSLATED_TO_EXTERNAL": "TRUE",
    "external.table.purge": "true",
    "auto.purge": "true",
    "discover.partitions": "true",
    "partition.retention.period": "7d",
}
SIZES = {"numFiles": "9", "totalSize": "99"}
OF_SPARK = {"spark.sql.statistics.numRows": "7", "spark.sql.statistics.colStats.id.max": "9"}
OF_A_BACKUP = {**MARKS, "mine": "x", "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}


def test_a_backup_table_has_the_definition_of_its_table_and_shows_the_places_given(world):
    table = world.add_table("events")
    world.set_parameters(table, "", {**STATS, **OF_OTHERS, **SIZES, **OF_SPARK, "EXTERNAL": "TRUE", "hivekeeper.run": "older"})
    odd = replace(partition_of(table, "a"), storage=replace(table.storage, serde_parameters={"serialization.format": "1", "k": "v"}))
    world.metastore.add_partition(table, odd)
    add_partitions(world, table, ["b", "c"])
    world.set_parameters(table, "dt=a", {**STATS, **SIZES, **OF_SPARK})
    stored = find(world, table.full_name)

    name = make_backup(world, table, {"dt=a": place(world, 1), "dt=b": place(world, 2)})

    found = find(world, name)
    expected = {
        "name": found.name,
        "location": place(world, 0, "backup_table"),
        "create_time": found.create_time,
        "parameters": OF_A_BACKUP,
    }
    assert replace(found, parameters=without_time(found.parameters)) == replace(stored, **expected)
    assert found.create_time > 0
    shown = {partition.name: partition for partition in world.metastore.partitions(found)}
    assert {name: partition.location for name, partition in shown.items()} == {"dt=a": place(world, 1), "dt=b": place(world, 2)}
    assert without_time(shown["dt=a"].parameters) == {"mine": "x", **SIZES}
    assert (shown["dt=a"].values, shown["dt=a"].storage) == (("a",), odd.storage)
    assert shown_by(world, table.full_name) == {f"dt={value}": f"{table.location}/dt={value}" for value in "abc"}
    assert find(world, table.full_name) == stored


def test_a_backup_table_shows_nothing_before_it_is_pointed(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b"])
    world.metastore.make_backup_table(table, backup_of(world), place(world, 0, "backup_table"), MARKS, ["dt=a"])
    assert shown_by(world, backup_of(world)) == {"dt=a": place(world, 0, "backup_table")}


@pytest.mark.parametrize("partitioned", [False, True])
def test_no_directory_is_made_again_that_a_backup_table_is_to_show(world, partitioned):
    """A loader that replaces it may have deleted it, and would move the new one into it (FileSystem.rename)."""
    table = world.add_table("events", partitioned)
    if partitioned:
        add_partitions(world, table, ["a", "b"])
    lives = shown_by(world, table.full_name)
    world.delete(table.location)
    made, name = f"{world.root}/made", backup_of(world)
    world.add_file(f"{made}/f")
    world.metastore.make_backup_table(table, name, made, MARKS, list(lives))
    world.metastore.point_backup_table(name, MARKS, lives)
    assert shown_by(world, name) == lives
    assert not world.exists(table.location)


def test_a_backup_table_of_an_unpartitioned_table_lies_at_the_place_itself(world):
    table = world.add_table("plain", partitioned=False)
    world.set_parameters(table, "", {**STATS, **OF_OTHERS, **SIZES, **OF_SPARK, "EXTERNAL": "TRUE"})
    name = make_backup(world, table, {"": place(world, 1)})
    found = find(world, name)
    assert (found.kind, found.location) == ("EXTERNAL_TABLE", place(world, 1))
    assert without_time(found.parameters) == {**OF_A_BACKUP, **SIZES}
    assert not world.exists(place(world, 1))


def test_a_backup_table_follows_its_units_by_any_partition_value_and_lets_go_of_them(world):
    table = world.add_table("events")
    add_partitions(world, table, [*NASTY, quoting.HIVE_NULL])
    lives = shown_by(world, table.full_name)
    name = make_backup(world, table, lives)
    assert shown_by(world, name) == lives
    moved = {one: place(world, number) for number, one in enumerate(lives) if number % 2}
    world.metastore.point_backup_table(name, MARKS, {**moved, "dt=no": place(world, 99)})
    assert shown_by(world, name) == {**lives, **moved}
    world.metastore.trim_backup_table(name, MARKS, [*(one for one in lives if one not in moved), "dt=no"])
    assert shown_by(world, name) == moved
    assert world.metastore.drop_backup_table(name, MARKS)
    assert find(world, name) is None
    assert shown_by(world, table.full_name) == lives


def test_a_backup_table_of_an_unpartitioned_table_follows_it_and_has_nothing_to_trim(world):
    table = world.add_table("plain", partitioned=False)
    name = make_backup(world, table, {"": table.location})
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 2)})
    assert shown_by(world, name) == {"": table.location}
    world.metastore.point_backup_table(name, MARKS, {"": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, [""])
    assert shown_by(world, name) == {"": place(world, 1)}
    assert world.metastore.drop_backup_table(name, MARKS)
    assert find(world, table.full_name) == table


@pytest.mark.parametrize("partitioned", [False, True])
def test_the_serde_path_of_a_backup_table_follows_where_there_is_one(world, partitioned):
    table = world.add_table("events", partitioned)
    table = world.set_serde_path(table, table.location)
    if partitioned:
        world.metastore.add_partition(table, partition_of(table, "a"))
    unit = "dt=a" if partitioned else ""
    name = make_backup(world, table, {unit: place(world, 1)})
    assert find(world, name).storage.serde_parameters["path"] == (place(world, 0, "backup_table") if partitioned else place(world, 1))
    world.metastore.point_backup_table(name, MARKS, {unit: place(world, 2)})
    found = find(world, name)
    moved = world.metastore.partitions(found)[0] if partitioned else found
    assert (moved.location, moved.storage.serde_parameters["path"]) == (place(world, 2), place(world, 2))


@pytest.mark.parametrize("partitioned", [False, True])
def test_no_file_is_touched_by_what_happens_to_a_backup_table(world, partitioned):
    table = world.add_table("events", partitioned)
    if partitioned:
        add_partitions(world, table, ["a", "b"])
    places = {"dt=a": place(world, 1), "dt=b": place(world, 2)} if partitioned else {"": place(world, 1)}
    lives = shown_by(world, table.full_name)
    for directory in (*lives.values(), *places.values(), place(world, 0, "backup_table")):
        world.add_file(f"{directory}/f")
    before = world.listing()
    name = make_backup(world, table, lives)
    world.metastore.point_backup_table(name, MARKS, places)
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert world.metastore.drop_backup_table(name, MARKS)
    assert world.listing() == before


def test_a_partition_that_its_table_does_not_have_is_left_out_of_the_backup_table(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a", "b"])
    world.drop_partition(table, "dt=b")
    name = make_backup(world, table, {"dt=a": place(world, 1), "dt=b": place(world, 2)})
    assert shown_by(world, name) == {"dt=a": place(world, 1)}


def test_a_backup_table_without_partitions_as_a_kill_leaves_it_is_ours_all_the_same(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    name = make_backup(world, table, {})
    assert shown_by(world, name) == {}
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert shown_by(world, name) == {}
    assert world.metastore.drop_backup_table(name, MARKS)


def test_a_backup_table_may_lie_in_another_database(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    name = make_backup(world, table, {"dt=a": place(world, 1)}, backup_of(world, world.add_database()))
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 2)})
    assert shown_by(world, name) == {"dt=a": place(world, 2)}
    assert world.metastore.table_names(world.database) == ("events",)
    assert world.metastore.drop_backup_table(name, MARKS)


def test_without_its_database_no_backup_table_is_made_nor_found(world):
    table = world.add_table("events")
    name = backup_of(world, "no_such_database")
    with pytest.raises(MetastoreRefused):
        make_backup(world, table, {}, name)
    world.metastore.point_backup_table(name, MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(name, MARKS, ["dt=a"])
    assert not world.metastore.drop_backup_table(name, MARKS)


def test_a_backup_name_that_is_taken_is_refused_and_stays_with_its_holder(world):
    table, other = world.add_table("events"), world.add_table("__bkp_events_20260101_020304")
    add_partitions(world, other, ["a"])
    with pytest.raises(MetastoreRefused, match="already exists"):
        make_backup(world, table, {})
    assert find(world, other.full_name) == other
    assert list(shown_by(world, other.full_name)) == ["dt=a"]


HARMLESS = {"external.table.purge": "false"}


@pytest.mark.parametrize(
    "carried",
    [
        {},
        {**MARKS, **HARMLESS, "hivekeeper.run": "another"},
        {"hivekeeper.backup-of": "contract.events", **HARMLESS},
        MARKS,
        {**MARKS, "external.table.purge": "true"},
        {**MARKS, **HARMLESS, "TRANSLATED_TO_EXTERNAL": "TRUE"},
    ],
)
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_table_without_all_marks_of_a_backup_or_whose_files_may_go_with_it_is_not_ours_to_change(world, carried, partitioned):
    table = world.add_table("__bkp_events_20260101_020304", partitioned)
    if partitioned:
        add_partitions(world, table, ["a"])
    world.set_parameters(table, "", {"EXTERNAL": "TRUE", **carried})
    before = find(world, table.full_name), shown_by(world, table.full_name)
    unit = "dt=a" if partitioned else ""
    world.metastore.point_backup_table(table.full_name, MARKS, {unit: place(world, 1)})
    world.metastore.trim_backup_table(table.full_name, MARKS, [unit])
    assert not world.metastore.drop_backup_table(table.full_name, MARKS)
    assert (find(world, table.full_name), shown_by(world, table.full_name)) == before


def test_a_backup_table_that_is_gone_is_no_error(world):
    world.metastore.point_backup_table(backup_of(world), MARKS, {"dt=a": place(world, 1)})
    world.metastore.trim_backup_table(backup_of(world), MARKS, ["dt=a"])
    assert not world.metastore.drop_backup_table(backup_of(world), MARKS)


def test_no_backup_table_is_made_of_a_table_that_is_gone(world):
    table = world.add_table("events")
    world.drop_table(table)
    with pytest.raises(MetastoreRefused):
        make_backup(world, table, {"dt=a": place(world, 1)})
    assert find(world, backup_of(world)) is None


@pytest.mark.parametrize(
    "seen", [{"owner": "mallory"}, {"create_time": 5}, {"location": "/elsewhere"}, {"location": ""}], ids=["owner", "time", "place", "none"]
)
def test_no_backup_table_is_made_of_another_table_that_has_the_name_by_now(world, seen):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    with pytest.raises(MetastoreRefused, match="another table by now"):
        make_backup(world, replace(table, **seen), {"dt=a": place(world, 1)})
    assert find(world, backup_of(world)) is None


def test_no_backup_table_has_partitions_of_another_table_that_gets_the_name_while_they_are_read(world):
    table, other = world.add_table("events"), world.add_table("closed")
    add_partitions(world, table, ["a"])
    foreign = replace(table.storage, serde_parameters={"serialization.format": "1", "key": "of others"})
    world.metastore.add_partition(other, replace(partition_of(other, "a"), storage=foreign))
    renames = [(table, "former"), (other, "events")]

    def act() -> None:
        while renames:
            world.rename_table(*renames.pop(0))

    world.let_act(act, "getPartitionsByNames")
    with pytest.raises(MetastoreRefused, match="another table by now"):
        make_backup(world, table, {"dt=a": place(world, 1)})
    assert not renames and find(world, backup_of(world)) is None


def test_a_backup_table_that_can_lie_nowhere_is_not_left_behind(world):
    table = world.add_table("events")
    add_partitions(world, table, ["a"])
    world.add_file(place(world, 0, "backup_table"))
    with pytest.raises(MetastoreRefused):
        world.metastore.make_backup_table(table, backup_of(world), f"{place(world, 0, 'backup_table')}/below a file", MARKS, ["dt=a"])
    assert find(world, backup_of(world)) is None


def test_comments_and_owner_come_along_to_a_backup_table(real):
    real.gateway.spark.sql(
        f"CREATE EXTERNAL TABLE {real.database}.events (id int COMMENT 'the key') COMMENT 'what happened' "
        f"PARTITIONED BY (dt string COMMENT 'its day') STORED AS PARQUET LOCATION '{real.root}/events'"
    )
    table = find(real, f"{real.database}.events")
    stored = real.stored(table, "")
    stored.setOwner("somebody")
    real.client.alter_table(table.database, table.name, stored)
    table = find(real, table.full_name)
    add_partitions(real, table, ["a"])
    made = real.stored(find(real, make_backup(real, table, {"dt=a": place(real, 1)})), "")
    comments = [column.getComment() for column in (*made.getSd().getCols(), *made.getPartitionKeys())]
    assert [*comments, made.getParameters()["comment"]] == ["the key", "its day", "what happened"]
    assert made.getOwner() == "somebody"


def test_many_places_of_a_backup_table_cost_as_many_gateway_calls_as_few(real):
    def calls_for(name: str, count: int) -> int:
        table = real.add_table(name)
        spec = " ".join(f"PARTITION (dt='{number:04d}')" for number in range(count))
        real.gateway.spark.sql(f"ALTER TABLE {table.full_name} ADD {spec}")
        lives = shown_by(real, table.full_name)
        before = real.gateway.calls
        backup = make_backup(real, table, lives, f"{real.database}.backup_of_{name}")
        real.metastore.point_backup_table(backup, MARKS, {one: f"{live}-moved" for one, live in lives.items()})
        real.metastore.trim_backup_table(backup, MARKS, list(lives)[1:])
        calls = real.gateway.calls - before
        assert len(shown_by(real, backup)) == 1
        return int(calls)

    assert calls_for("few", 2) == calls_for("many", 40)


@pytest.mark.parametrize("way", ["name", "location"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_no_other_table_goes_with_a_backup_table_that_has_an_index(real, partitioned, way):
    """Metastores before Hive 3 drop each index of a table with that table, and with the index, whatever is asked for, its own table and all
    files of that. Who may make a table in some database makes an index of the backup table by the metastore's own interface (add_index).
    The index remembers its table without the database, so that at the drop it is the one of that name beside the backup table.
    """
    other = _add_tables(real, partitioned)
    name = make_backup(real, find(real, f"{real.database}.events"), {"dt=a" if partitioned else "": place(real, 1)})
    _add_index(real, name, other, way)
    with pytest.raises(MetastoreRefused, match="an index"):
        real.metastore.drop_backup_table(name, MARKS)
    _require_there(real, other, name)


def test_nor_with_one_that_is_left_half_made(real):
    """Its partitions were not added, as somebody gave the table to another owner meanwhile."""
    other, name = _add_tables(real, True), backup_of(real)
    table = find(real, f"{real.database}.events")

    def act():
        _add_index(real, name, other, "location")
        real.hand_over(table, "owner")

    real.let_act(act, "getPartitionsByNames")
    with pytest.raises(MetastoreRefused, match="another table by now"):
        real.metastore.make_backup_table(table, name, place(real, 0, "backup_table"), MARKS, ["dt=a"])
    _require_there(real, other, name)


def test_a_server_before_hive_3_gets_no_backup_tables_and_drops_none(real):
    """Another client may add the index just before the drop. The embedded metastore stands for one: it is said to be of another process."""
    if real.is_remote:
        pytest.skip("from 3.0 on there are no indexes")
    name = make_backup(real, real.add_table("events", partitioned=False), {"": place(real, 1)})
    elsewhere = real.another_client()
    assert elsewhere.why_no_backup_tables() == ""
    let_answer(real, elsewhere, "isLocalMetaStore", False)
    assert "before 3.0" in elsewhere.why_no_backup_tables()
    for change in (
        lambda: elsewhere.drop_backup_table(name, MARKS),
        lambda: elsewhere.make_backup_table(find(real, f"{real.database}.events"), f"{name}_more", place(real, 0), MARKS, []),
    ):
        with pytest.raises(MetastoreRefused, match="before 3.0"):
            change()
    assert find(real, name) is not None
    assert find(real, f"{name}_more") is None


def test_a_metastore_from_hive_3_on_knows_no_setting_of_indexes(real):
    """By which its clients of any version tell that it has none."""
    answer = real.client.getConfigValue("hive.index.compact.query.max.size", "")
    assert (answer == "") == real.is_remote
    assert real.metastore.why_no_backup_tables() == ""


def _add_tables(real, partitioned):
    """`events`, and another one, which is told."""
    if real.is_remote:
        pytest.skip("from 3.0 on there are no indexes")
    other = real.add_table("other", partitioned=False)
    real.add_file(f"{other.location}/f")
    table = real.add_table("events", partitioned)
    if partitioned:
        add_partitions(real, table, ["a"])
    return other


def _require_there(real, other, name):
    assert real.exists(f"{other.location}/f")
    assert find(real, other.full_name) == other
    assert find(real, name) is not None


def _add_index(real, backup, other, way):
    """With a table of its own: of the other table's name in another database, or at the other one's location."""
    api, java = real.hive.metastore.api, real.gateway.jvm.java.util
    held = real.stored(other, "").deepCopy()
    if way == "name":
        held.setDbName(real.add_database())
        held.getSd().setLocation(f"{real.root}/mine")
    else:
        held.setTableName("mine")
    base, holder = backup.partition(".")[2], f"{held.getDbName()}.{held.getTableName()}"
    real.client.createIndex(api.Index("i", "any", real.database, base, 0, 0, holder, held.getSd(), java.HashMap(), False), held)
