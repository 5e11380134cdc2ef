"""The commit log of another engine lies in a table's root, above its partitions: its readers find there which files are the table's."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.desk import desk_by, outcomes
from support.joined_desk import at

LOGS = {
    "a sink of Spark's streaming": "_spark_metadata/0",
    "Delta": "_delta_log/00000000000000000000.json",
    "Hudi": ".hoodie/hoodie.properties",
}


def age(desk):
    desk.world.files.namespace.advance(30 * 86_400_000)


@pytest.fixture(params=[["dt"], []], ids=["partitioned", "unpartitioned"])
def desk(request):
    return desk_by(request.param)


def add_log(desk, engine):
    named = [path for path in desk.world.files.contents(desk.live()) if path.endswith(".parquet") and "/.hivekeeper/" not in path]
    desk.world.files.writer.add(f"{desk.live()}/{LOGS[engine]}", "\n".join(named))
    age(desk)
    return set(named)


@pytest.mark.parametrize("engine", LOGS)
def test_the_files_that_a_commit_log_names_stay(desk, engine):
    named = add_log(desk, engine)
    result = desk.compact()
    assert named <= desk.world.files.contents(desk.live()).keys(), outcomes(result)
    assert result.code is Exit.REFUSED


def test_a_table_that_becomes_another_engines_while_a_run_is_at_work_is_left_alone(desk):
    """As CONVERT TO DELTA makes one of it."""
    named = set()
    at(desk, ["rename_exact", "/stage/", "/ready/"], lambda: named.update(add_log(desk, "Delta")))
    desk.compact()
    assert named
    assert named <= desk.world.files.contents(desk.live()).keys()


def test_nor_is_it_rolled_back(desk):
    desk.compact()
    named = add_log(desk, "Delta")
    desk.rollback()
    assert named <= desk.world.files.contents(desk.live()).keys()
    if desk.world.table(desk.table).partitioned:
        assert desk.compact().tables[0].problem.code is Code.OTHER_ENGINE
