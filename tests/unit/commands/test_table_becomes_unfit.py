"""A table may become unfit for compaction while a run is at work on it, whose swaps begin hours after it was looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.steps.fitness import FitnessOfTable
from support import joined_desk
from support.desk import desk_by, outcomes
from support.joined_desk import at

CHANGES = {
    "transactional": ({"parameters": {"transactional": "true"}}, Code.TRANSACTIONAL),
    "Iceberg": ({"parameters": {"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"}}, Code.OTHER_ENGINE),
    "skip": ({"parameters": {"hivekeeper.skip": "true"}}, Code.SKIP_PROPERTY),
    "sorted": ({"sort_columns": ("id",)}, Code.SORTED),
}
STAGED = ["rename_exact", "/stage/", "/ready/"]


def change(desk, how):
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), **CHANGES[how][0]))


@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("how", CHANGES)
def test_a_table_that_becomes_unfit_before_a_swap_is_left_as_it_is(how, by):
    desk = desk_by(by)
    before = desk.world.files.contents(desk.live("dt=1" if by else ""))
    at(desk, STAGED, lambda: change(desk, how))
    result = desk.compact()
    assert set(outcomes(result).values()) == {"given-up"}
    assert {unit.why.code for unit in result.tables[0].units} == {CHANGES[how][1]}
    assert result.code is not Exit.DONE
    assert before.items() <= desk.world.files.contents(desk.live()).items()


@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
def test_so_is_one_of_which_that_cannot_be_asked(by):
    desk = desk_by(by)
    before = desk.world.files.contents(desk.live())
    at(desk, STAGED, lambda: (change(desk, "transactional"), desk.world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))))
    assert desk.compact().code is Exit.UNUSABLE
    assert before.items() <= desk.world.files.contents(desk.live()).items()


def test_without_an_answer_copies_are_written_by_the_last_one_and_the_next_unit_asks_again():
    desk = desk_by(["dt"])
    fitness = FitnessOfTable(desk.world.cluster, desk.world.table(desk.table))
    desk.world.metastore.fail_next("tables", MetastoreUnavailable("timeout"))
    assert fitness.why_known_unfit() is None
    change(desk, "transactional")
    assert fitness.why_known_unfit().code is fitness.why_unfit().code is Code.TRANSACTIONAL


def test_nor_are_its_files_joined():
    desk = joined_desk.a_desk()
    before = joined_desk.files_of(desk)
    at(desk, STAGED, lambda: change(desk, "skip"))
    assert set(outcomes(desk.compact()).values()) == {"given-up"}
    assert joined_desk.files_of(desk) == before


def test_the_metastore_is_asked_once_for_many_swaps_of_a_few_seconds():
    desk, asked = desk_by(["dt"]), []
    for number in range(3, 40):
        desk.world.make_partition(desk.table, f"dt={number}")
        for file in "ab":
            desk.world.add_file(f"{desk.live(f'dt={number}')}/{file}.parquet", [f"{number}{file}"])
    desk.world.files.namespace.advance(3_600_000)
    tables = desk.world.metastore.tables

    def count(database, names):
        asked.append(names)
        return tables(database, names)

    desk.world.metastore.tables = count
    assert len(outcomes(desk.compact())) == 39
    assert len(asked) < 20


def test_a_partition_whose_location_is_set_before_its_swap_is_left_as_it_is():
    desk = desk_by(["dt"])
    before = desk.world.files.contents(desk.live("dt=1"))

    def move():
        stored = desk.world.catalog.partitions[desk.table]["dt=1"]
        desk.world.catalog.put_partition(desk.table, replace(stored, location=f"{desk.live()}/elsewhere"))

    at(desk, STAGED, move)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "given-up", "dt=2": "swapped"}
    assert result.tables[0].units[0].why.code is Code.MOVED
    assert before.items() <= desk.world.files.contents(desk.live()).items()


def create_again(desk):
    """At the same place, with the same partitions: its files were kept, and MSCK found them."""
    table, partitions = desk.world.table(desk.table), dict(desk.world.catalog.partitions.get(desk.table, {}))
    desk.world.catalog.drop_table(desk.table)
    desk.world.catalog.add_table(replace(table, create_time=99), partitions.values())


@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
def test_nothing_is_moved_into_another_table_of_that_name(monkeypatch, by):
    desk = desk_by(by)
    before, write = desk.world.files.contents(desk.live()), desk.world.rows.write_stage
    # Before the check of step 4, whose question for the partitions finds them at their places.
    monkeypatch.setattr(desk.world.rows, "write_stage", lambda batch: (write(batch), create_again(desk))[0])
    result = desk.compact()
    assert (result.code, set(outcomes(result).values())) == (Exit.PARTIAL, {"given-up"})
    assert {unit.why.code for unit in result.tables[0].units} == {Code.TABLE_CREATED_AGAIN}
    assert before.items() <= desk.world.files.contents(desk.live()).items()


def test_nor_are_its_files_joined_with_those_of_a_former_table(monkeypatch):
    desk = joined_desk.a_desk()
    before, write = joined_desk.files_of(desk), desk.world.rows.write_stage
    monkeypatch.setattr(desk.world.rows, "write_stage", lambda batch: (write(batch), create_again(desk))[0])
    assert set(outcomes(desk.compact()).values()) == {"given-up"}
    assert joined_desk.files_of(desk) == before


def drop(desk):
    desk.world.catalog.drop_table(desk.table)


@pytest.mark.parametrize("exchange", ["directory", "files"])
@pytest.mark.parametrize("by", [["dt"], []], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize(("change", "code"), [(create_again, Code.TABLE_CREATED_AGAIN), (drop, None)], ids=["created again", "dropped"])
def test_nor_is_a_backup_given_to_another_table_of_that_name_or_to_none(change, code, by, exchange):
    """Nothing was moved, so nothing is in a wrong place."""
    desk = desk_by(by, exchange=exchange, fewest_joined=2)
    for _ in range(2):
        assert desk.compact().code is Exit.DONE
        desk.append("dt=1" if by else "", "a", "b", "c")
    top, live = desk.control.top, desk.live()
    before = rows_by_path(desk, live), rows_by_path(desk, f"{top}/runs")
    at(desk, ["rename_exact", "/plan"], lambda: change(desk))
    result = desk.rollback(desk.runs[0])
    assert (result.code, set(outcomes(result).values())) == (Exit.PARTIAL, {"given-up"})
    assert not code or code in {unit.why.code for unit in result.tables[0].units}
    assert (rows_by_path(desk, live), rows_by_path(desk, f"{top}/runs")) == before


def rows_by_path(desk, top):
    found = desk.world.files.namespace.walk(top)
    return [path for path, node in found if not node.is_dir and path.endswith(".parquet")]


def test_a_rollback_asks_only_whether_it_is_the_same_table():
    desk = desk_by(["dt"])
    desk.compact()
    at(desk, ["rename_exact", "/plan"], lambda: change(desk, "skip"))
    assert desk.rollback().code is Exit.DONE
