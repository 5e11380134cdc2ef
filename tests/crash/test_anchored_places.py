"""What honest programs do around a unit while it is found by the id of the directory that was around it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.builders import a_table
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.hive_statements import Calls, Hive, HiveError
from support.world import World

TABLE = "sales.events"


def drop_sibling(hive: Hive, name: str) -> Calls:
    """ALTER TABLE … DROP PARTITION, with HMSHandler.deleteParentRecursive: an empty directory of the level above goes to the trash, too."""
    location = hive.catalog.partitions[TABLE][name].location
    yield from hive.drop_partition(TABLE, name)
    above = names.parent(location)
    yield "is empty"
    node = hive.space.find(above)
    if node is not None and not node.children:
        yield from hive._delete_directory(above)


def run_with(desk: Desk, command, step: int, act):
    seen = []

    def meet(what):
        if len(seen) == step:
            act()
        seen.append(what)

    desk.world.files.before_step = meet
    code = command(desk).code
    desk.world.files.before_step = None
    return code, seen


COMMANDS = {"compact-swap": Desk.compact, "rollback": lambda desk: desk.rollback(desk.runs[0])}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_sibling_that_is_dropped_takes_no_rows_along(command):
    """a=1/b=2 is in its gap, so a=1 is empty once a=1/b=1 is dropped, and goes to the trash with it."""
    wrong, step = [], 0
    while True:
        world = World()
        table = a_table(["a", "b"], kind="MANAGED_TABLE")
        world.add_table(table, {"a=1/b=1": [1000], "a=1/b=2": [1000] * 3})
        desk = Desk(world, backup_table=False)
        if command == "rollback":
            desk.compact()
        before = world.rows_below(desk.live("a=1/b=2"))

        def act(world=world):
            with suppress(HiveError):
                list(drop_sibling(Hive(world), "a=1/b=1"))

        code, seen = run_with(desk, COMMANDS[command], step, act)
        if len(seen) <= step:
            break
        codes = [code, desk.recover().code, desk.recover().code]
        if world.rows_below(desk.live("a=1/b=2")) != before and Exit.INVESTIGATE not in codes:
            where = [path for path, content in world.files.contents().items() if "/b=2/" in path]
            wrong.append(f"before change {step} ({seen[step]}), {[one.name for one in codes]}: {where}")
        step += 1
    assert step > 10
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_the_rows_of_an_overwriter_that_began_before_the_gap_are_live(partitioned):
    """Hive.replaceFiles: the old files go to the trash, one by one, then the new ones are renamed into the directory, which Hive makes
    again in the gap.
    """
    wrong = []
    for first in range(60):
        world = World()
        unit = "dt=1" if partitioned else ""
        world.add_table(a_table(["dt"] if partitioned else []), {unit: [1000] * 3})
        desk, calls = Desk(world, backup_table=False), None
        live = desk.live(unit)
        calls = Hive(world).insert_overwrite(TABLE, unit, {"000000_0": DataFile(("new",))})
        seen = []

        def act(what, seen=seen, first=first, calls=calls):
            # The old files go before this step, the new one comes with the next.
            if len(seen) == first:
                for call in calls:
                    if call == "mkdirs":
                        break
            if len(seen) == first + 1:
                list(calls)
            seen.append(what)

        world.files.before_step = act
        code = desk.compact().code
        world.files.before_step = None
        if len(seen) <= first + 1:
            break
        codes = [code, desk.recover().code]
        now = world.rows_below(live)
        if "new" not in now:
            where = [path for path, content in world.files.contents().items() if getattr(content, "rows", ()) == ("new",)]
            wrong.append(f"before {first} ({seen[first]}), {[one.name for one in codes]}: {dict(now)}; {where}")
    assert first > 10
    assert not wrong, "\n".join(wrong)


def test_a_directory_whose_namesake_goes_at_once_is_told():
    """Two tasks of a writer make the same directory in the gap and after it; that of the second one goes, with its last file, between the
    rename that found its name taken and the look at what has it.
    """
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk, seen = Desk(world, backup_table=False), []
    live, writer, stat = desk.live("dt=1"), world.files.writer, world.files.stat
    inner = f"{live}/HIVE_UNION_SUBDIR_1"

    def act(what):
        if "/ready/u00001 " in what and live in what and "gap" not in seen:
            seen.append("gap")
            writer.add(f"{inner}/000000_0", DataFile(("late",)), 10)
        if "/recreated/u00001.0/HIVE_UNION_SUBDIR_1 " in what and "taken" not in seen:
            seen.append("taken")
            writer.make_directory(inner)

    def stat_later(path):
        if path == inner:
            writer.delete(path)
        return stat(path)

    world.files.before_step, world.files.stat = act, stat_later
    code = desk.compact().code
    world.files.before_step, world.files.stat = None, stat
    assert seen == ["gap", "taken"]
    [where] = [path for path, content in world.files.contents().items() if getattr(content, "rows", ()) == ("late",)]
    assert where.startswith(f"{live}/") or code is Exit.INVESTIGATE, (where, code)


def spoil_and_append(desk: Desk, unit: str, owner: str, mode: int) -> None:
    """A committer begins in live just before it leaves, so that the old files go back; in the gap an appender makes live again. The run is
    killed before it brings them back.
    """
    live, space = desk.live(unit), desk.world.files.namespace

    def act(what):
        if what.startswith(f"rename_exact {live} ") and "/retired/u00001" in what:
            space.make_directory(f"{live}/_temporary")
        if what.startswith("rename_exact ") and "/retired/u00001 " in what and what.endswith(live):
            space.make_directory(live)
            node = space.directory(live)
            node.attributes = replace(node.attributes, owner=owner, mode=mode, file_mode=0o640)
            written = space.create(f"{live}/appended", DataFile(("appended",)), 10)
            written.attributes = replace(written.attributes, owner=owner, file_mode=0o640)
            desk.world.files.die_after(0)

    desk.world.files.before_step = act
    with suppress(Killed):
        desk.compact()
        raise AssertionError("nothing was put back")
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()


@pytest.mark.parametrize(
    ("unit", "owner", "mode"),
    [("dt=1", "hive", 0o750), ("", "hive", 0o750), ("", "etl_b", 0o755)],
    ids=["umask 027", "unpartitioned, umask 027", "unpartitioned, of the group"],
)
def test_what_a_recovery_that_puts_back_does_not_merge_is_no_success(unit, owner, mode):
    """Its exit code is that of a recovery that left nothing to do, and no later command tells of the rows."""
    world = World()
    world.add_table(a_table(["dt"] if unit else []), {unit: [1000] * 3})
    desk = Desk(world, backup_table=False)
    node = world.files.namespace.directory(desk.live(unit))
    node.attributes = replace(node.attributes, mode=0o775)
    spoil_and_append(desk, unit, owner, mode)
    code = desk.recover().code
    where = [path for path, content in world.files.contents().items() if getattr(content, "rows", ()) == ("appended",)]
    assert "appended" in world.rows_below(desk.live(unit)) or code is Exit.INVESTIGATE, (code, where)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_recovery_brings_back_the_rows_of_an_overwriter_that_began_before_the_gap(partitioned):
    world, unit = World(), "dt=1" if partitioned else ""
    world.add_table(a_table(["dt"] if partitioned else []), {unit: [1000] * 3})
    desk = Desk(world, backup_table=False)
    live = desk.live(unit)
    calls = Hive(world).insert_overwrite(TABLE, unit, {"000000_0": DataFile(("new",))})

    def act(what):
        if what.startswith(f"rename_exact {live} "):
            for call in calls:
                if call == "mkdirs":
                    break
            # The answer to this call is the last that the run gets.
            world.files.die_after(1)

    world.files.before_step = act
    with suppress(Killed):
        desk.compact()
        raise AssertionError("it was not killed")
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    list(calls)
    code = desk.recover().code
    where = [path for path, content in world.files.contents().items() if getattr(content, "rows", ()) == ("new",)]
    assert "new" in world.rows_below(live) or code is Exit.INVESTIGATE, (code, where)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_is_replaced_in_the_gap_is_no_bug(command):
    """Of a table without partitions; the statements of docs/swap.md: DROP TABLE, CREATE TABLE, and an INSERT."""
    world = World()
    world.add_table(a_table([], kind="MANAGED_TABLE", create_time=5), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    if command == "rollback":
        desk.compact()
    live, seen = desk.live(), []

    def act(what):
        if what.startswith("rename_exact ") and what.endswith(f" {live}") and not seen:
            seen.append(what)
            stored = world.catalog.tables[TABLE]
            world.catalog.drop_table(TABLE)
            world.catalog.add_table(replace(stored, create_time=99))
            world.files.namespace.create(f"{live}/000000_0", DataFile(("new",)), 10)

    world.files.before_step = act
    result = COMMANDS[command](desk)
    assert result.code is Exit.INVESTIGATE, [one.problem for one in result.tables]
