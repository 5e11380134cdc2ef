"""A command over many tables does not keep what their owners wrote into their definitions: it tells all results at its end."""

from __future__ import annotations

import gc
from dataclasses import replace
from types import FunctionType, ModuleType

import pytest

from hivekeeper.catalogue.columns import TABLES, VIEWS
from hivekeeper.catalogue.rows import MOST_TEXT, Actor, Level, describes, rows_of
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.analyze_image import analyze_image
from hivekeeper.commands.backup import back_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.history import View, show_history
from hivekeeper.model import MOST_TOLD_IN_SHORT, Column, Selection, Storage, Table
from hivekeeper.plan import image_analysis
from hivekeeper.ports import Beside
from hivekeeper.reasons import Code
from hivekeeper.report import document
from support.builders import a_partition, a_table
from support.contexts import QUIET, a_context
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.images import image
from support.world import World

RUN = "20260101t020304z-0000"
MUCH = 2**20
EVERYTHING = Selection(databases=("sales",))


def much(of):
    return {of: "x" * MUCH}


def a_world():
    world = World()
    table = a_table(["dt"], parameters=much("of the table"))
    table = replace(table, storage=replace(table.storage, serde_parameters=much("of its SerDe")))
    world.add_table(table, {"dt=1": [1000] * 3, "dt=2": [1000]})
    for partition in list(world.catalog.partitions["sales.events"].values()):
        storage = Storage(**{**vars(partition.storage), "serde_parameters": much("of a partition's SerDe")})
        world.catalog.put_partition("sales.events", replace(partition, parameters=much("of a partition"), storage=storage))
    wide = a_table(name="wide", parameters=much("of the other table"))
    world.add_table(replace(wide, columns=(*wide.columns, Column("s", f"struct<{'x' * MUCH}:int>"))), {"": [1000] * 3})
    view = replace(a_table(name="a_view", kind="VIRTUAL_VIEW", location=""), view_text="y" * MUCH)
    world.add_table(view, {})
    return world


def run(command, world, **more):
    return command(a_context(world.cluster, EVERYTHING, RUN, **more))


@pytest.mark.parametrize("keeps_files", [False, True])
@pytest.mark.parametrize("command", [analyze, compact_swap, back_up])
def test_a_result_does_not_hold_the_texts_of_definitions(command, keeps_files):
    result = run(command, a_world(), keeps_files=keeps_files)
    assert len(result.tables) == 3
    assert len(repr(result)) < MUCH


def test_nor_does_the_survey_of_an_image(tmp_path):
    result = run(from_an_image(tmp_path), a_world())
    assert len(result.tables) == 3
    assert len(repr(result)) < MUCH


@pytest.mark.parametrize("component", [TABLES, VIEWS])
def test_the_catalogue_tells_as_much_as_before(component, monkeypatch):
    actor, level = Actor("etl", "edge1", ""), Level.of("partition")

    def told():
        result = run(analyze, a_world())
        return [row for outcome in result.tables if outcome.observed for row in rows_of(component, result, outcome, actor, level)]

    short = told()
    monkeypatch.setattr("hivekeeper.model.MOST_TOLD", 2 * MUCH)
    assert short == told()
    assert any(len(str(cell)) > MOST_TEXT for row in short for cell in row)


def with_long_locations(tables, partitions):
    world = World()
    for number in range(tables):
        table = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}")
        world.add_table(table, {})
        for at in range(partitions):
            location = f"hdfs://nn/elsewhere/{number}/{at}/{'x' * 4000}"
            world.catalog.add_partition(table.full_name, a_partition(f"dt={at}", location))
    return world


def from_an_image(tmp_path):
    path = tmp_path / "image.tsv"
    path.write_bytes(image([("/a", 1)], ["/warehouse"]))
    return lambda context: analyze_image(context, str(path), is_remote=False)


@pytest.mark.parametrize("command", [analyze, compact_swap, analyze_image])
def test_a_result_does_not_hold_the_long_locations_of_the_partitions_of_all_tables(command, monkeypatch, tmp_path):
    """Each table may have 2**27 characters of them (ports.MOST_OF_PARTITIONS), and whoever owns a database makes as many tables as they
    like: the result had all of them twice, as the place of the unit and in the reason why it is refused.
    """
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", 2**20)
    tables, partitions = 16, 256
    result = run(from_an_image(tmp_path) if command is analyze_image else command, with_long_locations(tables, partitions))
    assert len(result.tables) == tables
    assert len(repr(result)) < tables * partitions * 4000 / 2, f"{len(repr(result)):,} characters"


@pytest.mark.parametrize("where", ["inside", "elsewhere"])
def test_an_image_is_not_read_with_the_long_locations_of_all_tables_in_memory(monkeypatch, tmp_path, where):
    """The table with the most of them is refused: others are not in its place."""
    monkeypatch.setattr("hivekeeper.commands.analyze_image.MOST_OF_LOCATIONS", 20_000)
    find_places, held = image_analysis.find_places, []

    def measure(defined, *more):
        places = find_places(defined, *more)
        held.append(sum(map(len, (*places.units, *places.tables))))
        return places

    monkeypatch.setattr(image_analysis, "find_places", measure)
    world = World()
    for number, partitions in enumerate((2, 9, 3)):
        table = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}")
        world.add_table(table, {})
        top = table.location if where == "inside" else f"hdfs://nn/elsewhere/{number}"
        for at in range(partitions):
            world.catalog.add_partition(table.full_name, a_partition(f"dt={at}", f"{top}/{at}/{'x' * 3000}"))
    result = run(from_an_image(tmp_path), world)
    assert max(held) < 20_000
    codes = [table.problem.code if table.problem else None for table in result.tables]
    assert codes == [None, Code.UNREADABLE_DEFINITION, None]
    assert result.code is Exit.DONE


def test_backups_and_logs_hold_no_long_locations_of_all_tables():
    """They show none, and a table has as many backups of each partition as a rule keeps, and a log of a year."""
    world = World()
    for number in range(3):
        table = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}")
        long = "/".join(["x" * 200] * 15)
        world.add_table(table, {})
        for at in range(5):
            place = f"{table.location}/{long}/dt={at}"
            world.catalog.add_partition(table.full_name, a_partition(f"dt={at}", place, table.storage))
            for nth in range(3):
                world.add_file(f"{place}/p{nth}.parquet", [f"{number} {at} {nth}"])
    world.files.namespace.advance(3_600_000)
    context = a_context(world.cluster, EVERYTHING, RUN, replace(QUIET, cleanup_after=True))
    backups = [one.backup for table in compact_swap(context).tables for one in table.backups]
    logged = [entry for table in show_history(a_context(world.cluster, EVERYTHING, RUN), View()).tables for entry in table.log]
    assert len(backups) == len(logged) == 3
    assert len(repr(backups)) < 15 * 2000
    assert len(repr(logged)) < 15 * 2000


def test_neither_the_catalogue_nor_a_document_names_a_part_of_a_location_as_the_place(monkeypatch):
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", 2**21)
    result = run(analyze, with_long_locations(3, 256))
    whole = {f"hdfs://nn/elsewhere/{number}/{at}/{'x' * 4000}" for number in range(3) for at in range(256)}
    at = list(TABLES.columns).index("place")
    level, actor = Level.of("partition"), Actor("etl", "edge1", "")
    told = {row[at] for outcome in result.tables for row in rows_of(TABLES, result, outcome, actor, level)}
    assert None in told and told & whole
    assert told <= {None, *whole, *(f"hdfs://nn/warehouse/sales.db/t{number}" for number in range(3))}
    said = {one["location"] for table in document.build(result)["tables"] for one in table["analysis"]["partitions"]}
    assert "" in said and said <= {"", *whole}


def test_cleanups_that_wait_beside_later_tables_do_not_hold_the_definitions_of_all_databases(monkeypatch):
    """With cleanup_beside each waits for the next Spark job, or for the end: where nothing is to be copied, all of them do."""
    world, databases = World(), [f"db{number}" for number in range(8)]
    for database in databases:
        wide = a_table(location=f"hdfs://nn/warehouse/{database}/wide", parameters=much("of the table"))
        world.add_table(replace(wide, database=database), {"": [2**30]})
    held, do = [], Beside.do

    def measure_and_do(beside):
        waiting, seen = list(beside._waiting), set()
        while waiting:
            one = waiting.pop()
            if id(one) in seen or isinstance(one, (type, ModuleType)) or one is world or one is world.catalog:
                continue
            seen.add(id(one))
            if isinstance(one, FunctionType):
                # Not its module, through which it reaches all of the tests.
                waiting += [cell.cell_contents for cell in one.__closure__ or ()]
                continue
            held.extend([one.full_name] if isinstance(one, Table) and one.parameters else [])
            waiting += [] if isinstance(one, (FakeMetastore, FakeFiles)) else gc.get_referents(one)
        do(beside)

    monkeypatch.setattr(Beside, "do", measure_and_do)
    settings = replace(QUIET, cleanup_after=True, cleanup_beside=True)
    result = compact_swap(a_context(world.cluster, Selection(databases=tuple(databases)), RUN, settings))
    assert [table.problem for table in result.tables] == [None] * len(databases)
    assert len(held) <= 1, held


COLUMNS = tuple(Column(f"c{number}", "int") for number in range(2000))


def with_many_columns(tables, columns=COLUMNS):
    world = World()
    for number in range(tables):
        table = a_table(name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}")
        world.add_table(replace(table, columns=columns), {"": [1000]})
        view = replace(a_table(name=f"v{number}", kind="VIRTUAL_VIEW", location=""), view_text="select 1", columns=columns)
        world.add_table(view, {})
    return world


def count_objects(of, kind):
    """Of a kind, in all that a value refers to."""
    seen, waiting, count = set(), [of], 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(one))
        count += isinstance(one, kind)
        waiting += gc.get_referents(one)
    return count


@pytest.mark.parametrize("command", [analyze, compact_swap, analyze_image])
def test_nor_does_it_hold_an_object_for_each_column(command, tmp_path):
    """One of a short name takes two hundred bytes, and only its five characters counted: `CREATE TABLE … LIKE` a table of eleven thousand
    columns left 2.2 MB each in the driver, to the end of the command, and a thousand of them 2.2 GB.
    """
    result = run(from_an_image(tmp_path) if command is analyze_image else command, with_many_columns(3))
    assert len(result.tables) == 6
    assert count_objects(result, Column) < len(COLUMNS)


@pytest.mark.parametrize("command", [analyze, compact_swap, analyze_image])
def test_nor_the_columns_and_queries_of_all_tables(command, monkeypatch, tmp_path, caplog):
    """The tables with the most of them are told in short, never those with a few, and the log says which."""
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", 2**16)
    world = with_many_columns(12)
    usual = a_table(name="usual", location="hdfs://nn/warehouse/sales.db/usual")
    world.add_table(replace(usual, columns=COLUMNS[:100]), {"": [1000]})
    result = run(from_an_image(tmp_path) if command is analyze_image else command, world)
    at, actor, level = list(TABLES.columns).index("table_name"), Actor("etl", "edge1", ""), Level.of("table")
    told = {}
    for component in (TABLES, VIEWS):
        of_columns = list(component.columns).index("column_list")
        for outcome in result.tables:
            if describes(component, outcome):
                told.update({row[at]: row[of_columns] for row in rows_of(component, result, outcome, actor, level)})
    assert len(told) == 25
    assert sum(map(len, told.values())) < 2**17
    assert told["usual"] == ", ".join(f"{column.name} {column.type}" for column in COLUMNS[:100])
    short = {f"sales.{name}": text for name, text in told.items() if len(text) <= MOST_TOLD_IN_SHORT}
    assert short and all(text.endswith("…") for text in short.values())
    said = [record.getMessage() for record in caplog.records if "step=cut-definition" in record.getMessage()]
    assert {line.partition(" ")[0] for line in said} == {f"table={name}" for name in short}
