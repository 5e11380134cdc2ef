"""What an honest statement between the copy and the exchange did to a unit is told as what it was."""

from __future__ import annotations

import pytest

from hivekeeper.reasons import Code
from support.desk import desk_by
from support.joined_desk import at, drop_partition, move_partition, rename_partition, replace_one


def why_of(result):
    (why,) = (unit.why for unit in result.tables[0].units if unit.name == "dt=1")
    return why


@pytest.mark.parametrize("exchange", ["directory", "files"])
@pytest.mark.parametrize(("act", "code"), [(drop_partition, Code.DROPPED), (rename_partition, Code.DROPPED), (move_partition, Code.MOVED)])
def test_a_partition_that_was_dropped_renamed_or_moved(act, code, exchange):
    desk = desk_by(["dt"], backup_table=False, exchange=exchange, fewest_joined=2)
    at(desk, ["rename_exact", "/ready/"], lambda: act(desk))
    assert why_of(desk.compact()).code is code


def test_files_that_a_writer_replaced_are_named():
    desk = desk_by(["dt"], backup_table=False)
    at(desk, ["rename_exact", "/ready/"], lambda: replace_one(desk))
    why = why_of(desk.compact())
    assert "part-00001.parquet" in why.what and "rights" not in why.what


def test_a_rollback_of_a_directory_that_an_overwrite_replaced_does_not_say_that_there_is_none():
    desk = desk_by(["dt"], backup_table=False)
    desk.compact()
    at(desk, ["make_directory", "/restoring"], lambda: desk.world.overwrite(desk.live("dt=1"), "n.parquet", ["n"], True))
    why = why_of(desk.rollback())
    assert desk.world.files.stat(desk.live("dt=1")) is not None
    assert why.code is Code.CHANGED_MEANWHILE


def test_a_rollback_of_a_partition_that_was_dropped():
    desk = desk_by(["dt"], backup_table=False)
    desk.compact()
    at(desk, ["make_directory", "/restoring"], lambda: drop_partition(desk))
    assert why_of(desk.rollback()).code is Code.DROPPED
