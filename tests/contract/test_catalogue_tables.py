"""The catalogue's tables and views: what the metastore and its fake make, and what they leave to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

import pytest
from py4j.protocol import Py4JError

from hivekeeper.model import CatalogueTable
from support.metastore_worlds import RealWorld, add_partitions, find, place, shown_by

MARK = {"hivekeeper.catalogue": "tables"}
CELLS = {"name": "string", "files": "bigint", "median": "double"}


def make_catalogue_table(world: Any, name: str, columns: Mapping[str, str] = CELLS) -> bool:
    made: bool = world.metastore.make_catalogue_table(catalogue_table(world, name, columns))
    return made


def catalogue_table(world: Any, name: str, columns: Mapping[str, str] = CELLS) -> CatalogueTable:
    return CatalogueTable(name, place(world, 0, "catalogue"), columns, "bucket", MARK)


def test_a_table_of_the_catalogue_is_external_and_nothing_deletes_its_files(world):
    name = f"{world.database}.metadata_tables"
    assert make_catalogue_table(world, name)
    assert make_catalogue_table(world, name, {**CELLS, "new": "string"})
    found = find(world, name)
    assert (found.kind, found.location) == ("EXTERNAL_TABLE", place(world, 0, "catalogue"))
    assert [(column.name, column.type) for column in found.columns] == [*CELLS.items(), ("new", "string")]
    assert [column.name for column in found.partition_columns] == ["bucket"]
    assert {**MARK, "EXTERNAL": "TRUE", "external.table.purge": "false", "discover.partitions": "false"}.items() <= found.parameters.items()


def test_a_table_of_the_catalogue_has_exactly_the_partitions_it_is_given(world):
    name = f"{world.database}.metadata_tables"
    make_catalogue_table(world, name)
    for places in ({"01": 1, "02": 2}, {"01": 1, "02": 3, "03": 4}, {"03": 4}, {}):
        wanted = {value: place(world, number) for value, number in places.items()}
        assert world.metastore.point_catalogue_table(catalogue_table(world, name), wanted)
        assert shown_by(world, name) == {f"bucket={value}": location for value, location in wanted.items()}


def test_a_table_of_somebody_else_is_not_touched(world):
    table = world.add_table("metadata_tables")
    add_partitions(world, table, ["1"])
    before = find(world, table.full_name)
    assert not make_catalogue_table(world, table.full_name)
    assert not world.metastore.make_catalogue_view(table.full_name, "SELECT 1 AS `one`", {"one": "bigint"}, MARK, ())
    assert not world.metastore.point_catalogue_table(catalogue_table(world, table.full_name), {})
    assert not world.metastore.point_catalogue_table(catalogue_table(world, f"{world.database}.gone"), {})
    assert find(world, table.full_name) == before
    assert list(shown_by(world, table.full_name)) == ["dt=1"]


@pytest.mark.parametrize("differs", ["location", "partition_column", "parameters"])
def test_a_table_with_the_mark_of_the_catalogue_that_differs_from_ours_is_not_touched(world, differs):
    name = f"{world.database}.metadata_tables"
    assert make_catalogue_table(world, name)
    before = find(world, name)
    other = {"location": place(world, 1, "catalogue"), "partition_column": "day", "parameters": {"hivekeeper.catalogue": "runs"}}
    wanted = replace(catalogue_table(world, name), **{differs: other[differs]})
    assert not world.metastore.make_catalogue_table(replace(wanted, columns={"new": "string"}))
    assert not world.metastore.point_catalogue_table(wanted, {"01": place(world, 1)})
    assert (find(world, name), shown_by(world, name)) == (before, {})


@pytest.mark.parametrize("change", ["owner", "purge", "kind"])
def test_a_table_of_the_catalogue_that_somebody_else_may_drop_with_its_files_is_not_touched(world, change):
    table = catalogue_table(world, f"{world.database}.metadata_tables")
    assert world.metastore.make_catalogue_table(table)
    world.hand_over(find(world, table.name), change)
    before = find(world, table.name)
    assert not world.metastore.make_catalogue_table(replace(table, columns={"new": "string"}))
    assert not world.metastore.point_catalogue_table(table, {"01": place(world, 1)})
    assert (find(world, table.name), shown_by(world, table.name)) == (before, {})
    if change == "owner":
        assert world.metastore.point_catalogue_table(replace(table, owners=("mallory",)), {"01": place(world, 1)})


def test_a_view_of_somebody_else_with_the_mark_of_the_catalogue_is_not_touched(world):
    name, mark = f"{world.database}.tables_now", {"hivekeeper.catalogue": "tables_now"}
    assert world.metastore.make_catalogue_view(name, "SELECT 1 AS `one`", {"one": "bigint"}, mark, ())
    world.hand_over(find(world, name), "owner")
    assert not world.metastore.make_catalogue_view(name, "SELECT 2 AS `one`", {"one": "bigint"}, mark, ())
    assert find(world, name).view_text == "SELECT 1 AS `one`"
    assert world.metastore.make_catalogue_view(name, "SELECT 2 AS `one`", {"one": "bigint"}, mark, ("mallory",))


def test_a_view_of_the_catalogue_has_its_newest_text(world):
    name = f"{world.database}.tables_now"
    for text in ("SELECT 1 AS `one`", "SELECT 1 AS `one`", "SELECT 2 AS `one`"):
        assert world.metastore.make_catalogue_view(name, text, {"one": "bigint"}, {"hivekeeper.catalogue": "tables_now"}, ())
        found = find(world, name)
        assert (found.kind, found.view_text, [column.name for column in found.columns]) == ("VIRTUAL_VIEW", text, ["one"])


def test_a_database_is_made_once(world):
    name = f"{world.database}_made"
    for _ in range(2):
        world.metastore.make_database(name, "a comment")
    assert name in world.metastore.databases()
    if isinstance(world, RealWorld):
        world.databases.append(name)


def test_a_table_that_gets_the_name_of_a_view_of_the_catalogue_just_before_that_is_changed_stays_a_table(real):
    if "EXPECTED_PARAMETER_KEY" not in dir(real.hive.metastore.api.hive_metastoreConstants):
        pytest.skip("this metastore knows no conditions")

    def make(column: str) -> bool:
        text = f"SELECT 1 AS `{column}`"
        return bool(real.metastore.make_catalogue_view(f"{real.database}.tables_now", text, {column: "bigint"}, MARK, ()))

    assert make("one")
    ours, other = find(real, f"{real.database}.tables_now"), real.add_table("closed", partitioned=False)
    renames = [(ours, "aside"), (other, ours.name)]

    def act() -> None:
        while renames:
            real.rename_table(*renames.pop(0))

    real.let_act(act, "alter_table_with_environmentContext")
    # The client that lets others act hides the kind of the error.
    with pytest.raises(Py4JError, match="The table has been modified"):
        make("two")
    found = find(real, ours.full_name)
    assert (found.kind, found.location, found.columns) == (other.kind, other.location, other.columns)
