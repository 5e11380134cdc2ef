"""Joins of a table behind a router whose default nameservice is another one: what is asked for by its id is told of whatever has that id
there. Both count from the same number, so that most ids of one are in use in the other.
"""

from __future__ import annotations

import pytest

from hivekeeper import names
from support.desk import outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import FakeRows
from support.joined_desk import a_desk, joined_path, kill_in_put_back, manage, rename_partition, rows, rows_aside, rows_by_file


class Router(FakeFiles):
    """`elsewhere`: the ids that are in use in the default nameservice, with the paths there. Locks are not found by their ids: none there
    has that name.
    """

    elsewhere = {}

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.finds_by_id = False

    def is_anywhere(self, near, file_id):  # noqa: ARG002
        return file_id in self.elsewhere

    def find_paths(self, near, former):  # noqa: ARG002
        return {file_id: self.elsewhere[file_id] for file_id in former if file_id in self.elsewhere}


@pytest.fixture
def desk():
    """The ids of the table's files are in use elsewhere, those that are given later are not yet."""
    desk = a_desk()
    world, space = desk.world, desk.world.files.namespace
    files = Router(namespace=space)
    files.elsewhere = {node.id: f"hdfs://nn/user/etl/{node.id}" for _, node in space.walk("hdfs://nn/")}
    world.files = files
    world.cluster = world.cluster_of(files, world.metastore, FakeRows(files))
    return desk


def test_files_are_not_joined_where_their_ids_are_those_of_others(desk):
    found = outcomes(desk.compact(where="dt = '1'"))
    assert not any(names.may_be_joined(name) for name in rows_by_file(desk)), found


def test_old_files_in_a_renamed_partition_are_not_called_discarded(desk):
    """No attacker is needed."""
    manage(desk)
    assert outcomes(desk.compact(where="dt = '1'")) == {"dt=1": "swapped"}
    holder = desk.world.files.stat(joined_path(desk))
    rename_partition(desk)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    result = desk.cleanup()
    left = desk.world.files.stat(names.join(desk.live("dt=9"), holder.name))
    is_cut = left.length < holder.length
    assert is_cut or desk.log().standing, f"exit {result.code}: {outcomes(result)}; the old files are still inside {left.path}"


@pytest.mark.parametrize("are_directories", [True, False])
def test_rows_that_were_joined_by_mistake_do_not_stay_hidden_in_a_renamed_partition(desk, are_directories):
    """Only a writer who replaces a file just before the join is needed. `are_directories`: the ids of directories are in use there, too.
    If they are not, the rows stay hidden and each command says that all is well; if they are, no command of the table gets further.
    """
    if not are_directories:
        own = {node.id for _, node in desk.world.files.namespace.walk(desk.live()) if not node.is_dir}
        desk.world.files.elsewhere = {file_id: path for file_id, path in desk.world.files.elsewhere.items() if file_id in own}
    manage(desk)
    kill_in_put_back(desk, ["copy_part"], lambda: desk.compact(where="dt = '1'"))
    partition = desk.world.partitions(desk.table)["dt=1"]
    rename_partition(desk)
    desk.world.files.writer.make_directory(desk.live("dt=1"))
    desk.world.catalog.add_partition(desk.table, partition)
    codes = [int(desk.recover().code) for _ in range(3)]
    assert "new" in set(rows(desk, "dt=9")) | rows_aside(desk), f"exit {codes}"
