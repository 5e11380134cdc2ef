"""Tables whose files were joined, and which became another engine's where they lie: that engine has noted each file with its length."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.desk import outcomes
from support.joined_desk import ALL, a_desk, at, files_of, rows

ENGINES = {
    "Hive's SET STORED BY ICEBERG": {"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler", "table_type": "ICEBERG"},
    "a migration by Trino": {"table_type": "iceberg"},
    "Spark's CONVERT TO DELTA": {"spark.sql.sources.provider": "delta"},
}


@pytest.fixture
def desk():
    desk = a_desk()
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    desk.world.files.namespace.advance(30 * 86_400_000)
    return desk


def why_stay(result):
    return {backup.why.code for backup in result.tables[0].backups}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_files_of_a_table_that_is_another_engines_by_now_keep_their_length(desk, engine):
    noted = files_of(desk)
    desk.world.set_property(desk.table, **ENGINES[engine])
    result = desk.cleanup()
    assert (files_of(desk), rows(desk)) == (noted, ALL)
    assert (result.code, why_stay(result)) == (Exit.DONE, {Code.OTHER_ENGINE})


@pytest.mark.parametrize("log", ["_delta_log/00000000000000000000.json", ".hoodie/hoodie.properties", "metadata/v1.metadata.json"])
def test_so_do_those_that_a_commit_log_in_the_root_may_name(desk, log):
    noted = files_of(desk)
    desk.world.files.writer.add(f"{desk.live()}/{log}", "add")
    result = desk.cleanup()
    assert files_of(desk) == noted
    assert (result.code, why_stay(result)) == (Exit.DONE, {Code.OTHER_ENGINE})


def test_a_table_that_becomes_another_engines_before_the_turn_of_its_files_keeps_their_length(desk):
    noted = {unit: files_of(desk, unit) for unit in ("dt=1", "dt=2")}

    def migrate():
        desk.world.set_property(desk.table, table_type="ICEBERG")
        desk.world.clock.sleep_ms(10 * 60_000)

    at(desk, ["cut "], migrate)
    assert desk.cleanup().code is Exit.PARTIAL
    assert [files_of(desk, unit) == before for unit, before in noted.items()].count(True) == 1


def test_they_are_cut_once_the_table_is_hives_again(desk):
    desk.world.set_property(desk.table, table_type="ICEBERG")
    noted = files_of(desk)
    desk.cleanup()
    desk.world.set_property(desk.table, table_type="")
    assert desk.cleanup().code is Exit.DONE
    assert files_of(desk) != noted
    assert desk.log().standing == ()
