"""What a join took by mistake is copied out byte for byte, and the copy belongs to our user where it cannot be given away. Where others
could rename it, it would be a plan, a certificate or a log entry of ours, of any content.

A site as docs/permissions.md has it: the user of the runs is no superuser, tables have `owner: try`, and one of the tenant's is joined.
"""

from __future__ import annotations

from typing import Mapping

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser, own, own_tree, take_no_superuser
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
LIVE = f"{HOME}/drafts/dt=1"
TENANT, OURS = "loader", "hive"
SETTINGS = {"owner": "try", "backup_table": False, "fewest_joined": 2, "exchange": "files"}


def build(owner: str, mode: int) -> World:
    """A table of four files, in directories that belong to this user."""
    world = World()
    world.add_table(a_table(["dt"], name="drafts"), {"dt=1": [1000] * 4})
    space = world.files.namespace
    own_tree(space, f"{HOME}/drafts", owner, owner, mode)
    for _, node in space.walk(f"{HOME}/drafts"):
        if not node.is_dir:
            own(node, owner, owner, 0o644)
    take_no_superuser(world.files)
    return world


def replace_a_source(world: World, user: HdfsUser) -> None:
    """Somebody's file comes to the place of one that is about to be joined."""
    path = names.join(LIVE, "part-00001.parquet")
    # Not side by side: what lies between two files of the table is one file, whatever its bytes are.
    world.rows.find_starts = lambda *_: ()  # type: ignore[method-assign]

    def replace(what: str) -> None:
        if "concat" in what and f"{LIVE}/part" in what:
            world.files.before_step = None
            assert user.delete(path)
            assert user.add(path, DataFile(("any bytes",)), 15)

    world.files.before_step = replace


def files_with_the_bytes(world: World) -> Mapping[str, str]:
    """Their owners, by path."""
    found = world.files.namespace.walk(HOME)
    return {path: node.attributes.owner for path, node in found if not node.is_dir and "any bytes" in getattr(node.content, "rows", ())}


def test_a_copy_of_what_a_tenant_put_there_stays_where_no_tenant_may_rename_it():
    world = build(TENANT, 0o777)
    user = HdfsUser(world.files.namespace, TENANT, [TENANT])
    replace_a_source(world, user)
    taken, replace_source = [], world.files.before_step

    def look_for_copies(what):
        if "concat" in what and f"{LIVE}/part" in what:
            replace_source(what)
            world.files.before_step = look_for_copies
        taken.extend(path for path, owner in files_with_the_bytes(world).items() if owner == OURS and user.may_take(path))

    world.files.before_step = look_for_copies
    desk = Desk(world, "sales.drafts", **SETTINGS)
    result = desk.compact()
    assert not taken
    assert outcomes(result) == {"dt=1": "misplaced"}
    assert "or could be renamed by others" in result.tables[0].units[0].reason
    ((path, owner),) = files_with_the_bytes(world).items()
    assert "/retired/u00001/" in path
    assert owner == OURS
    # What was planned is back, but for the file that was replaced.
    assert len(world.files.contents(LIVE)) == 3
    assert not user.may_take(path)
    # Nor does a rollback take it where they may, once they have emptied live.
    world.files.before_step = None
    assert all(user.delete(file) for file in world.files.contents(LIVE))
    world.files.namespace.advance(3_600_000)
    desk.rollback(desk.runs[0])
    assert not any(user.may_take(path) for path in files_with_the_bytes(world))


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_it_goes_back_where_nobody_but_our_user_may_write(mode):
    """As on sites where one functional user owns everything: a writer of that user has replaced the file."""
    world = build(OURS, mode)
    replace_a_source(world, HdfsUser(world.files.namespace, OURS, [OURS]))
    result = Desk(world, "sales.drafts", **SETTINGS).compact()
    assert outcomes(result) == {"dt=1": "put-back"}
    assert files_with_the_bytes(world) == {f"{LIVE}/part-00001.parquet": OURS}


def test_a_directory_of_copies_that_is_gone_while_its_rights_are_read_ends_no_exchange():
    world = build(TENANT, 0o777)
    replace_a_source(world, HdfsUser(world.files.namespace, TENANT, [TENANT]))
    ask, missed = world.files.attributes, []

    def attributes(directories, *more):
        found = ask(directories, *more)
        if not missed and any("/ready/" in path for path in directories):
            missed.extend(directories)
            return {}
        return found

    world.files.attributes = attributes  # type: ignore[method-assign]
    result = Desk(world, "sales.drafts", **SETTINGS).compact()
    assert missed
    assert (result.code, outcomes(result)) == (Exit.INVESTIGATE, {"dt=1": "misplaced"})
