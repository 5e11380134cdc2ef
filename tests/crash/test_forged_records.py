"""Records forged by somebody who may write to one table: no command takes, deletes or shows another table's files."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Tuple

import pytest

from hivekeeper.codes import Exit
from support.builders import a_partition, a_table
from support.built_once import built_once
from support.desk import Desk
from support.world import World

SALARIES = "hdfs://nn/warehouse/sales/salaries"
# Paths to the victim's partition from the control directory and from the table's root.
FROM_CONTROL, FROM_ROOT = "../../salaries/dt=1", "../salaries/dt=1"


@built_once
def build(discover: bool = False) -> Desk:
    world = World()
    parameters = {"discover.partitions": "true"} if discover else {}
    world.add_table(a_table(["dt"], parameters=parameters), {"dt=1": [1000] * 3})
    world.add_table(a_table(["dt"], name="salaries"), {"dt=1": [1000] * 3})
    return Desk(world)


def forge(desk: Desk, path: str, change: Callable[[Any], None]) -> None:
    """Change every line of a record in JSON lines."""
    found = [json.loads(line) for line in desk.world.files.content(path).splitlines()]
    for document in found:
        change(document)
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, "".join(json.dumps(document) + "\n" for document in found))


def forge_plan(desk: Desk, change: Callable[[Desk, Dict[str, Any]], None]) -> None:
    """Change every unit of the newest run's plan."""
    newest = desk.run_directories()[-1]
    forge(desk, desk.control.run(newest).plan, lambda line: change(desk, line) if "unit" in line else None)


def set_live(desk: Desk, unit: Dict[str, Any]) -> None:
    unit["live"] = FROM_ROOT
    unit["files"] = files_of_victim(desk)


def set_backup(desk: Desk, unit: Dict[str, Any]) -> None:
    """Make it the backup of a rollback or a cleanup."""
    unit["backup"]["place"] = FROM_CONTROL
    unit["expected" if unit["digest"] else "files"] = files_of_victim(desk)


def set_new_backup(desk: Desk, unit: Dict[str, Any]) -> None:  # noqa: ARG001
    """A free place in the victim's directory, to which a cancelled rollback would return its files."""
    unit["backup"]["place"] = "../../salaries/dt=9"


def set_both(desk: Desk, unit: Dict[str, Any]) -> None:
    set_live(desk, unit)
    set_backup(desk, unit)


def files_of_victim(desk: Desk) -> List[Any]:
    """The files as in a manifest: anyone who may list the directory knows them."""
    (seen,) = desk.world.files.look([f"{SALARIES}/dt=1"]).values()
    return [[entry.name, entry.length, entry.mtime_ms, entry.file_id] for entry in seen.entries]


def kill_compaction(desk: Desk) -> None:
    desk.kill_before(["rename_exact", "retired", " hdfs"], desk.compact)


def kill_in_the_gap(desk: Desk) -> None:
    desk.kill_before(["rename_exact", "ready/", f" {desk.live('dt=1')}"], desk.compact)


def kill_rollback(desk: Desk) -> None:
    desk.compact()
    desk.kill_before(["rename_exact", "retired/u00001", "restoring"], desk.rollback)


def kill_rollback_at_restoring(desk: Desk) -> None:
    desk.compact()
    desk.kill_before(["rename_exact", f" {desk.live('dt=1')} ", "retired"], desk.rollback)


def kill_cleanup(desk: Desk) -> None:
    desk.compact()
    desk.kill_before(["rename_exact", "retired/u00001", "held"], desk.cleanup)


def compact_whole(desk: Desk) -> None:
    desk.compact()


COMMANDS = ("recover", "compact", "rollback", "cleanup")
PLANS = {
    "compaction, live": (kill_compaction, set_live),
    "compaction in the gap, live": (kill_in_the_gap, set_live),
    "rollback, live": (kill_rollback, set_live),
    "rollback, backup": (kill_rollback, set_backup),
    "rollback, both": (kill_rollback, set_both),
    "rollback that has its backup, live": (kill_rollback_at_restoring, set_live),
    "rollback that has its backup, another place for it": (kill_rollback_at_restoring, set_new_backup),
    "cleanup, live": (kill_cleanup, set_live),
    "cleanup, backup": (kill_cleanup, set_backup),
}


def picture_of_victim(desk: Desk) -> Tuple[Any, Any, Any]:
    world = desk.world
    return world.files.contents(SALARIES), world.table("sales.salaries"), world.partitions("sales.salaries")


def places_known(desk: Desk) -> set:
    """All locations in the metastore, except the victim's."""
    catalog = desk.world.catalog
    tables = [table.location for name, table in catalog.tables.items() if name != "sales.salaries"]
    return {*tables, *(one.location for name, each in catalog.partitions.items() if name != "sales.salaries" for one in each.values())}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("kill", "change"), PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("discover", [False, True], ids=["", "discovery"])
def test_a_forged_plan_of_an_interrupted_run_reaches_nothing_outside(kill, change, command, discover):
    desk = build(discover)
    kill(desk)
    before = picture_of_victim(desk)
    forge_plan(desk, change)
    if discover:
        desk.world.catalog.drop_partition("sales.events", "dt=1")
        desk.world.catalog.add_partition("sales.events", a_partition("dt=2", desk.live("dt=2")))
    code = getattr(desk, command)().code
    assert code is Exit.INVESTIGATE
    assert picture_of_victim(desk) == before
    assert not any(SALARIES in place for place in places_known(desk))


def set_place(document: Any) -> None:
    """Change the place of a backup in an action, or in a unit inside it."""
    for key, value in document.items() if isinstance(document, dict) else []:
        if key == "place" and value:
            document[key] = FROM_CONTROL
        for one in value if isinstance(value, list) else [value]:
            set_place(one)


def set_backup_table(document: Dict[str, Any]) -> None:
    if "commitInfo" in document:
        document["commitInfo"]["operationParameters"]["backupTable"] = "sales.salaries"


@pytest.mark.parametrize("command", [*COMMANDS, "verify", "backup"])
@pytest.mark.parametrize("change", [set_place, set_backup_table], ids=["place", "backup table"])
def test_a_forged_log_entry_reaches_nothing_outside(change, command):
    desk = build()
    desk.compact()
    before = picture_of_victim(desk)
    entry = f"{desk.control.log}/{0:020d}.json"
    forge(desk, entry, change)
    desk.append("dt=1", "late1", "late2")
    code = getattr(desk, command)().code
    assert change is set_backup_table or code is Exit.INVESTIGATE
    assert picture_of_victim(desk) == before
    assert not any(SALARIES in place for place in places_known(desk))
