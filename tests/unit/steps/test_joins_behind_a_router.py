"""Joins of a table behind a router whose default nameservice is another one: what is asked for by its id would be told of whatever has that
id there. Both count from the same number, so that most ids of one are in use in the other.
"""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.desk import outcomes
from support.joined_desk import a_desk, joined_path, kill_in_put_back, manage, rename_partition, rows, rows_aside, rows_by_file


def go_by_router(desk, by_router=True):
    """From now on, all commands do."""
    desk.world.files.asks_another_for_ids, desk.world.files.finds_by_id = by_router, not by_router


@pytest.fixture
def desk():
    return a_desk()


def test_files_are_not_joined_where_their_ids_are_those_of_others(desk):
    go_by_router(desk)
    found = outcomes(desk.compact(where="dt = '1'"))
    assert not any(names.may_be_joined(name) for name in rows_by_file(desk)), found


def test_old_files_in_a_renamed_partition_are_not_called_discarded(desk):
    """The table is looked at by way of a router only after its files were joined."""
    manage(desk)
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "swapped"}
    holder = desk.world.files.stat(joined_path(desk))
    rename_partition(desk)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    go_by_router(desk)
    assert desk.cleanup().code is Exit.PARTIAL
    assert [effect.partition for effect in desk.log().standing] == ["dt=1"]
    go_by_router(desk, by_router=False)
    desk.cleanup()
    assert desk.world.files.stat(names.join(desk.live("dt=9"), holder.name)).length < holder.length


def test_rows_that_were_joined_by_mistake_are_not_forgotten_in_a_renamed_partition(desk):
    """By way of a router no command can put them back, and none says that all is well; without it, the next one does."""
    manage(desk)
    kill_in_put_back(desk, ["copy_part"], lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    rename_partition(desk)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.catalog.add_partition(desk.table, partition)
    go_by_router(desk)
    assert all(int(desk.recover().code) != 0 for _ in range(3))
    go_by_router(desk, by_router=False)
    desk.recover()
    assert "new" in set(rows(desk, "dt=9")) | rows_aside(desk)
