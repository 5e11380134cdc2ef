"""Records forged by a tenant in files of our own user, which a join has made: what it took by mistake is copied out byte for byte.

A site as docs/permissions.md has it: the user of the runs is no superuser, tables have `owner: try`, and one of the tenant's is joined. The
tenant may write to their own two tables, and make names beside other tables, which they may not rename (the sticky bit).
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

from hivekeeper import names
from hivekeeper.model import Attributes, Digest, Unit
from hivekeeper.names import ControlPaths
from hivekeeper.ports import NoPermission
from hivekeeper.runlog import store
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import COMPACT_SWAP, Certificate, OutputForm, PlannedUnit, RunPlan, certificates_to_text, plan_pieces
from support.builders import a_table
from support.desk import Desk
from support.fakes.namespace import info
from support.fakes.rows import DataFile
from support.hdfs_user import STICKY, HdfsUser, own, own_tree
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
TENANT, OTHER, OURS = "loader", "alice", "hive"
RUN = "20260101t010000z-0000"
STATES = ["", "log", "runs", f"runs/{RUN}", f"runs/{RUN}/ready", f"runs/{RUN}/retired", f"runs/{RUN}/recreated"]
SETTINGS = {"owner": "try", "backup_table": False, "fewest_joined": 2}


def build() -> World:
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_005), {f"dt={nth}": [1000] * 3 for nth in range(len(STATES))})
    world.add_table(a_table(["dt"], name="drafts", create_time=1_767_200_006), {"dt=1": [1000] * 4})
    world.add_table(a_table(name="orders", create_time=1_767_200_007), {"": [1000] * 3})
    space = world.files.namespace
    for table in ("events", "drafts"):
        own_tree(space, f"{HOME}/{table}", TENANT, TENANT, 0o777)
        for _, node in space.walk(f"{HOME}/{table}"):
            if not node.is_dir:
                own(node, TENANT, TENANT, 0o644)
    own_tree(space, f"{HOME}/orders", OTHER, OTHER, 0o755)
    own(space.directory(HOME), OURS, OURS, 0o777 | STICKY)
    as_no_superuser(world)
    return world


def as_no_superuser(world: World) -> None:
    dress = world.files.dress

    def dress_own(wanted: Mapping[str, Attributes]) -> None:
        if any({one.owner, one.file_owner} - {"", None, OURS} for one in wanted.values()):
            raise NoPermission("only a superuser may change the owner")
        dress(wanted)

    world.files.dress = dress_own  # type: ignore[method-assign]


def have_written(world: World, user: HdfsUser, texts: Mapping[str, str]) -> Dict[str, str]:
    """Where files of these bytes are afterwards that belong to our user, and nobody else may write to: they come to the places of files
    that are about to be joined. The fake keeps rows where HDFS has bytes, so the bytes are put in their place at the end.
    """
    live, space = f"{HOME}/drafts/dt=1", world.files.namespace
    # Not side by side: what lies between two files of the table is one file, whatever its bytes are.
    found = {text: names.join(live, f"part-{2 * nth + 1:05d}.parquet") for nth, text in enumerate(texts)}
    world.rows.find_starts = lambda *_: ()  # type: ignore[method-assign]

    def replace_sources(what: str) -> None:
        if "concat" in what and f"{live}/part" in what:
            world.files.before_step = None
            for text, path in found.items():
                assert user.delete(path)
                assert user.add(path, DataFile((text,)), len(texts[text].encode()))

    world.files.before_step = replace_sources
    Desk(world, "sales.drafts", exchange="files", **SETTINGS).compact()
    for text, path in found.items():
        node = space.file(path)
        assert node.content.rows == (text,)
        node.content = texts[text]
    return found


def is_ours_alone(world: World, path: str) -> bool:
    node = world.files.namespace.file(path)
    return node.attributes.owner == OURS and not node.mode & 0o022


def test_no_file_of_bytes_that_others_chose_is_a_record_of_ours():
    """Nor may it lie where they can rename it: then it can be a plan, a certificate or a log entry."""
    world = build()
    user = HdfsUser(world.files.namespace, TENANT, [TENANT])
    found = have_written(world, user, {"plan": '{"version": 1}\n'})
    assert not is_ours_alone(world, found["plan"]) or not user.may_take(found["plan"])


def forge(world: World, ready: str, retired: str) -> Tuple[str, str]:
    """A plan and certificates about somebody else's table, as if a run had been killed in its gap: they follow docs/on-disk.md."""
    table, space = world.table("sales.orders"), world.files.namespace
    (old,) = ((names.join(retired, name), node) for name, node in space.directory(retired).children.items())
    (new,) = space.directory(ready).children
    unit = PlannedUnit(1, Unit(table.full_name, "", (), table.location, table.storage), (ManifestFile.of(info(*old)),))
    plan = RunPlan(RUN, COMPACT_SWAP, table, (unit,), record=RUN)
    certificate = Certificate(1, "", {new: 1000}, 1, Digest(1, 1, 1), 1, 1000, (OutputForm("s", "c", "i"),), {new: 1})
    return "".join(plan_pieces(plan, world.clock.now_ms())), certificates_to_text([certificate])


def make_control(world: World, user: HdfsUser) -> None:
    """Of directories that belong to our user, because their owner could not be kept, and of two such files."""
    events, space = f"{HOME}/events", world.files.namespace
    Desk(world, "sales.events", **SETTINGS).compact()
    assert user.make_directory(f"{events}/.old")
    for state in ("ready", "retired"):
        assert user.make_directory(f"{events}/.old/{state}")
        assert user.add(f"{events}/.old/{state}/{state}.parquet", DataFile((f"{state} of the tenant",)), 1000)
    texts = dict(zip(["plan.json", "certificates-1.jsonl"], forge(world, f"{events}/.old/ready", f"{events}/.old/retired")))
    made = have_written(world, user, texts)
    control = f"{events}/.new"
    for nth, state in enumerate(STATES):
        for name in list(space.directory(f"{events}/dt={nth}").children):
            assert user.delete(f"{events}/dt={nth}/{name}")
        assert user.rename(f"{events}/dt={nth}", names.join(control, state) if state else control)
    for state in ("ready", "retired"):
        assert user.rename(f"{events}/.old/{state}", f"{control}/runs/{RUN}/{state}/u00001")
    for name, path in made.items():
        assert user.rename(path, f"{control}/runs/{RUN}/{name}")
    assert user.rename(control, ControlPaths.of(f"{HOME}/orders", partitioned=False).top)


def test_another_table_keeps_its_rows_when_a_control_directory_is_forged_for_it():
    world = build()
    user = HdfsUser(world.files.namespace, TENANT, [TENANT])
    before: Any = world.rows_of("sales.orders")
    assert not user.may_take(f"{HOME}/orders")
    assert not user.may_change_in(f"{HOME}/orders")
    make_control(world, user)
    theirs = Desk(world, "sales.orders", **SETTINGS)
    assert store.find_runs(world.files, theirs.control) == [RUN]
    result = theirs.compact()
    assert world.rows_of("sales.orders") == before, (result.code, result.tables[0].problem)
