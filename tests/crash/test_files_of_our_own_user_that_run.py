"""A tenant makes a directory of our own user, closed to others, with a file of our own user in it that has any name and, but for its end,
any bytes; and renames it to a place below a sticky directory at which a run looks for what it is started from.

A site as docs/permissions.md has it: the user of the runs is no superuser, tables have `owner: try`, and one of the tenant's is joined. A
zip archive may have anything behind it that fits into its comment, such as the end of a Parquet file.
"""

from __future__ import annotations

from dataclasses import replace

from hivekeeper import names
from hivekeeper.commands.shipped_files import refuse_untrusted
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.hdfs_user import HdfsUser, own, own_tree, take_no_superuser
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
ONE, TWO = f"{HOME}/drafts/dt=1", f"{HOME}/drafts/dt=2"
ARCHIVE = "hdfs://nn/tmp/apps/hivekeeper.py"
TENANT, OURS = "loader", "hive"
SETTINGS = {"owner": "try", "backup_table": False, "fewest_joined": 2}


def build() -> World:
    """A table of the tenant's, and a directory in which everybody may make names, with nothing in it. All modes are the usual ones."""
    world = World()
    world.add_table(a_table(["dt"], name="drafts"), {"dt=1": [1000] * 4, "dt=2": [1000] * 4})
    space = world.files.namespace
    space.make_directory("hdfs://nn/tmp")
    for path in ("hdfs://nn/", "hdfs://nn/warehouse", HOME):
        own(space.find(path), "hdfs", "supergroup", 0o755)
    own(space.find("hdfs://nn/tmp"), "hdfs", "supergroup", 0o1777)
    own_tree(space, f"{HOME}/drafts", TENANT, TENANT, 0o755)
    for _, node in space.walk(f"{HOME}/drafts"):
        if not node.is_dir:
            own(node, TENANT, TENANT, 0o644)
    take_no_superuser(world.files)
    return world


def owner_of(world: World, path: str) -> str:
    return world.files.namespace.find(path).attributes.owner


def test_nothing_is_started_from_what_a_tenant_put_where_there_was_nothing():
    world = build()
    user, name = HdfsUser(world.files.namespace, TENANT, [TENANT]), names.base(ARCHIVE)
    assert user.rename(f"{ONE}/part-00002.parquet", f"{ONE}/{name}")
    world.rows.find_starts = lambda *_: ()  # type: ignore[method-assign]

    def replace_another(what: str) -> None:
        if "concat" in what and f"{ONE}/" in what:
            world.files.before_step = None
            assert user.delete(f"{ONE}/part-00001.parquet")
            assert user.add(f"{ONE}/part-00001.parquet", DataFile(("any bytes",)), 15)

    world.files.before_step = replace_another
    before = world.files.namespace.find(f"{ONE}/{name}").content
    desk = Desk(world, "sales.drafts", exchange="files", **SETTINGS)
    assert outcomes(desk.compact(where="dt = '1'")) == {"dt=1": "misplaced"}
    # What was planned has come back, byte for byte, as a file of our user.
    assert world.files.namespace.find(f"{ONE}/{name}").content == before
    assert owner_of(world, f"{ONE}/{name}") == OURS

    def come_late(what: str) -> None:
        if "/ready/u00001" in what:
            world.files.before_step = None
            assert user.rename(f"{ONE}/{name}", f"{TWO}/{name}")

    world.files.before_step = come_late
    desk.settings = replace(desk.settings, exchange="directory")
    assert outcomes(desk.compact(where="dt = '2'")) == {"dt=2": "swapped"}
    # It came late, and was carried over. What the tenant had cannot be written to by others now, only renamed as a whole.
    assert owner_of(world, TWO) == owner_of(world, f"{TWO}/{name}") == OURS
    assert not user.may_take(f"{TWO}/{name}")
    assert user.rename(TWO, names.parent(ARCHIVE))
    assert world.files.stat(ARCHIVE) is not None
    assert refuse_untrusted(world.files, [ARCHIVE], ()) is not None
