"""A table that was dropped with its backups, and cleanup --orphans as an operator types it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence

from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import Orphan, OrphanKind, OrphanState
from hivekeeper.report.results import CommandResult
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.world import World

HOME = "hdfs://nn/warehouse/sales"
DAY_MS = 86_400_000
SHAPES = {"flat": ([], [""]), "partitioned": (["dt"], ["dt=1", "dt=2"])}


def build(shape: str, compactions: int = 2) -> Desk:
    """A table with the backups of some compactions, beside another table."""
    columns, units = SHAPES[shape]
    world = World()
    world.catalog.homes["sales"] = HOME
    world.add_table(a_table(columns, create_time=5), {unit: [1000] * 3 for unit in units})
    world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    for number in range(1, compactions):
        for unit in units:
            desk.append(unit, *(f"{unit}-{number}-{nth}" for nth in range(3)))
        desk.compact()
    return desk


def drop(desk: Desk) -> None:
    desk.world.catalog.drop_table(desk.table)
    wait(desk, 30)


def wait(desk: Desk, days: int) -> None:
    """Long enough for clients to ask for the locations of tables again."""
    desk.world.wait(days * DAY_MS)
    desk.world.clock.elapsed_ms += days * DAY_MS


def clean(desk: Desk, dry_run: bool = False, databases: Sequence[str] = ("sales",), **settings: Any) -> CommandResult:
    desk.runs.append(f"20260901t020304z-{len(desk.runs):04x}")
    context = a_context(desk.world.cluster, Selection(databases=tuple(databases)), desk.runs[-1], Settings(**settings), dry_run=dry_run)
    return clean_up_orphans(context)


def leftovers(result: CommandResult) -> List[Orphan]:
    return list(result.tables[0].orphans or ())


def records(result: CommandResult) -> Orphan:
    (found,) = [one for one in leftovers(result) if one.kind is OrphanKind.RECORDS]
    return found


def drop_and_mark(desk: Desk) -> None:
    """Until the next `clean` may discard."""
    drop(desk)
    assert records(clean(desk)).state is OrphanState.MARKED
    wait(desk, 8)


def backups_in(desk: Desk, top: str) -> List[str]:
    return sorted(path for path in desk.world.files.contents(top) if "/retired/" in path)


def without_mark(picture: Mapping[str, object]) -> Dict[str, object]:
    """A mark goes where it is not certain any more that the table was dropped."""
    return {path: content for path, content in picture.items() if not path.endswith("/_orphan.json")}


def before_first(desk: Desk, words: Sequence[str], act: Callable[[], object]) -> None:
    """Let somebody act just before the first step of a command that contains all these words."""

    def watch(what: str) -> None:
        if all(word in what for word in words):
            desk.world.files.before_step = None
            act()
            desk.world.clock.elapsed_ms += 61_000

    desk.world.files.before_step = watch
