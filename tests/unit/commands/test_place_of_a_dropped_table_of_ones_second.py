"""A tenant's loop creates a table each second, so that one of them is of the second of another's table. Once that was dropped, or renamed,
hers gets its former place (`ALTER TABLE … SET LOCATION`), or its name, and the nightly command takes what the other one has left for hers.
No right on the other's directory is needed. That must not lie in a database's directory, or hers is of that database.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands import cleanup
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import DAY_MS, HOME, SHAPES, build, wait
from support.world import World


@pytest.fixture(params=list(SHAPES))
def old(request):
    return build(request.param)


def old_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/" in path)


def rules(table):
    """The site keeps what is the victim's for a year, and of a sandbox nothing."""
    return Settings(min_age_ms=365 * DAY_MS if table.startswith("sales.") else 0)


def managed():
    """A managed table without partitions, whose records lie beside its place."""
    world = World()
    world.catalog.homes["sales"] = HOME
    world.add_table(a_table((), kind="MANAGED_TABLE", create_time=5, location=f"{HOME}/events"), {"": [1000] * 3})
    return Desk(world, backup_table=False)


def killed_and_renamed():
    """It, killed in its gap and renamed in the outage, and what it was."""
    old = managed()
    old.kill_before(["rename_exact", f"/ready/u00001 {HOME}/events"], old.compact)
    known = old.world.table("sales.events")
    list(Hive(old.world).rename_table("sales.events", "sales.renamed"))
    wait(old, 1)
    return old, known


def compact_all(world):
    result = compact_swap(a_context(world.cluster, Selection(databases=("sales",)), "20260901t020304z-0000"))
    return {one.table: one.problem and one.problem.code for one in result.tables}


@pytest.mark.parametrize("is_renamed", [False, True], ids=["dropped", "renamed"])
@pytest.mark.parametrize("of_second", [0, 1], ids=["of its second", "of the next second"])
def test_a_nightly_cleanup_keeps_what_the_table_has_left(old, is_renamed, of_second):
    world, known = old.world, old.world.table("sales.events")
    wait(old, 30)
    world.catalog.databases.update(["tenant", "archive"])
    world.catalog.homes.pop("sales", None)
    world.catalog.drop_table("sales.events")
    if is_renamed:
        world.add_table(replace(known, name="renamed", database="archive", location="hdfs://nn/warehouse/archive.db/renamed"), {})
    mine = replace(known, database="tenant", name="mine", owner="mallory", parameters={}, create_time=known.create_time + of_second)
    world.catalog.add_table(mine, [])
    wait(old, 1)
    theirs = Desk(world, "tenant.mine")
    before = old_files(theirs)
    context = a_context(world.cluster, Selection(databases=("tenant",)), "20260901t020304z-0000")
    result = cleanup.clean_up(replace(context, settings_for=rules))
    assert before and old_files(theirs) == before, [(one.state, one.why.what) for one in result.tables[0].backups]


@pytest.mark.parametrize("of_second", [0, 1], ids=["of its second", "of the next second"])
def test_a_nightly_cleanup_keeps_what_a_rename_has_left_behind(of_second):
    """`ALTER TABLE events RENAME TO renamed`, of a managed table without partitions: its records stay beside its former place."""
    old = managed()
    world = old.world
    old.compact()
    wait(old, 30)
    known, before = world.table("sales.events"), old_files(old)
    list(Hive(world).rename_table("sales.events", "sales.renamed"))
    wait(old, 1)
    renamed = Desk(world, "sales.renamed", backup_table=False)
    renamed.runs.extend(old.runs)
    # The renamed table is there, and is to have these records back.
    assert renamed.compact().tables[0].problem.code is Code.LEFT_BEHIND
    mine = replace(known, name="mine", owner="mallory", kind="EXTERNAL_TABLE", create_time=known.create_time + of_second)
    world.catalog.add_table(mine, [])
    wait(old, 1)
    result = cleanup.clean_up(a_context(world.cluster, Selection(databases=("sales",)), "20260901t020304z-0000"))
    told = {one.table: (one.problem and one.problem.code, [backup.why.code for backup in one.backups]) for one in result.tables}
    assert before and old_files(Desk(world, "sales.mine")) == before, told


@pytest.mark.parametrize("name", ["mine", "z_mine"], ids=["before it", "after it"])
def test_the_rows_of_a_renamed_table_do_not_go_to_another_one_of_its_second_at_its_former_place(name):
    """Its run was killed in the gap, and it was renamed in the outage: it is there, without rows, until its records are brought."""
    old, known = killed_and_renamed()
    world = old.world
    world.catalog.add_table(replace(known, name=name, owner="mallory"), [])
    wait(old, 1)
    told = compact_all(world)
    assert not world.rows_of(f"sales.{name}"), told


@pytest.mark.parametrize("makes_directory", [False, True], ids=["without a directory", "with a new one"])
def test_nor_do_they_when_that_one_gets_its_former_name(makes_directory):
    """`ALTER TABLE mine RENAME TO events`: no location is set, and the directory, if there is one, was made after the kill."""
    old, known = killed_and_renamed()
    world = old.world
    world.catalog.add_table(replace(known, name="mine", owner="mallory", location=f"{HOME}/mine"), [])
    if makes_directory:
        world.add_file(f"{HOME}/mine/part-0.parquet", ["mine"])
    list(Hive(world).rename_table("sales.mine", "sales.events"))
    wait(old, 1)
    told = compact_all(world)
    assert set(world.rows_of("sales.events")) <= {"mine"}, told


@pytest.mark.parametrize("is_other", [False, True], ids=["the same owner", "another owner"])
def test_what_it_has_left_is_closed_before_its_control_directory_gets_the_rights_of_another_owners_table(old, is_other):
    world, known = old.world, old.world.table("sales.events")
    runs = [entry.path for entry in world.files.look([old.control.runs])[old.control.runs].entries]
    before = {path: world.files.stat(path).mode for path in runs}
    unit = next(iter(world.partitions("sales.events")), "")
    old.append(unit, *"abc")
    world.catalog.homes.pop("sales", None)
    world.catalog.databases.add("tenant")
    world.catalog.add_table(
        replace(known, database="tenant", name="mine", owner="mallory" if is_other else known.owner),
        list(world.partitions("sales.events").values()),
    )
    world.catalog.drop_table("sales.events")
    wait(old, 1)
    mine = Desk(world, "tenant.mine", backup_table=False)
    mine.runs.extend(old.runs)
    assert mine.compact().tables[0].units
    after = {path: 0o700 if is_other else mode for path, mode in before.items()}
    assert runs and {path: world.files.stat(path).mode for path in runs} == after
