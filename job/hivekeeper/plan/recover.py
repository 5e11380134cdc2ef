"""Decide what an interrupted exchange of one unit needs, and which entries of a run's directory its plan does not explain.

Pure and total: every combination has one answer. docs/swap.md has the table.
"""

from __future__ import annotations

from enum import Enum
from typing import Container, Dict, Iterable, List, Mapping, Set, Tuple

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.names import RunId, UnitNumber
from hivekeeper.runlog.run_files import BACKUP, CLEANUP, COMPACT_SWAP, ROLLBACK, PlannedUnit, RunPlan


class Move(Enum):
    """What recovery of an exchange does next. An exchange is a swap or its rollback."""

    CANCEL = "nothing was exchanged: live is as it was, what was to come in is given up"
    DECIDE = "stopped in the gap: look at what left live, then bring the new files in or put the old ones back"
    FINISH = "exchanged: carry over, verify, record"
    OVERWRITTEN = "exchanged and overwritten since: record only"
    PUT_BACK = "the new files have no room, or were given up by a recovery that was killed: put the old ones back"


def next_move(left: bool, incoming: bool, holds: bool) -> Move:
    """What to do next, based on where a unit's files are.

    `left`: the old files have left live. `incoming`: the new ones are not live yet. `holds`: live holds the files that it must hold
    afterwards.
    """
    if not left:
        return Move.CANCEL
    if incoming:
        return Move.DECIDE
    return Move.FINISH if holds else Move.OVERWRITTEN


# The directories that each operation creates in its run's directory, each holding one directory per unit (stage: per batch).
STATES = {
    "compact-swap": ("stage", "ready", "retired", "recreated", "taken", "kept"),
    "rollback": ("stage", "ready", "restoring", "retired", "recreated", "taken"),
    "cleanup": ("held", "discarding"),
    "backup": ("backup_table",),
    "pin": (),
    "unpin": (),
    "verify": (),
}
# Of these, those made only by runs that join files.
OF_JOINS = {COMPACT_SWAP: ("taken",), ROLLBACK: ("stage", "ready", "taken")}
# Made once it is needed, which it hardly ever is.
MADE_LATER = ("kept",)
# The states that a backup table may show; everything in the others belongs to the run alone.
SHOWN_STATES = ("retired", "backup_table")
KNOWN_FILES = frozenset(["plan.json", "plan.json.part", "entry.json", "entry.json.part", "checkpoint.json.gz", "clock"])


def find_elsewhere(plan: RunPlan) -> Tuple[PlannedUnit, ...]:
    """Units whose directory recovery may change and does not follow from the partition's name.

    Only the metastore can say whether it is that partition's. The record of a `backup` is only read; of a cleanup nothing is moved to live
    any more, and the log says where its backups were (`refuse_unlogged`).
    """
    if plan.operation in (BACKUP, CLEANUP):
        return ()
    root = plan.table.location
    return tuple(unit for unit in plan.units if unit.live != (names.join(root, unit.name) if unit.name else root))


def find_foreign(units: Iterable[PlannedUnit], lives: Mapping[str, str], nowhere: Container[UnitNumber]) -> List[PlannedUnit]:
    """Those of find_elsewhere whose directory cannot be this partition's; `lives` are the locations of all partitions by name.

    A partition that was dropped, renamed or moved while the run was interrupted is not foreign: its former directory is nobody's now,
    or that of the new name. Foreign is what is another partition's while this one is elsewhere, what lies around or inside another's,
    and what was never there: `nowhere` are the units that lie neither in live nor where they left it for, as that of a dropped partition
    does whose files were deleted.
    """
    units, taken = list(units), set(lives.values())
    asked = {unit.live for unit in units}
    # Only what is asked about: the names of all directories above thousands of deep ones would take a driver's memory.
    around = {above for live in taken for above in _above(live) if above in asked}

    def is_foreign(unit: PlannedUnit) -> bool:
        overlaps = unit.live in around or not taken.isdisjoint(_above(unit.live))
        return overlaps or (unit.name in lives and (unit.live in taken or unit.number in nowhere))

    return [unit for unit in units if lives.get(unit.name) != unit.live and is_foreign(unit)]


def _above(path: str) -> List[str]:
    found = []
    while "/" in path.strip("/"):
        path = names.parent(path)
        found.append(path)
    return found


def find_strangers(top: str, tree: Iterable[FileInfo], units: Set[UnitNumber], operation: str) -> List[str]:
    """Paths in a run directory that its plan does not explain; an operator has to investigate them."""
    states = STATES.get(operation, ())
    strangers = []
    for entry in tree:
        parts = entry.path[len(top) :].strip("/").split("/")
        if len(parts) == 1 and not _explains_top(entry, states):
            strangers.append(entry.path)
        if len(parts) == 2 and parts[0] in states and parts[0] != "stage" and _number(parts[1]) not in units:
            strangers.append(entry.path)
    return strangers


def is_known_in_run(entry: FileInfo) -> bool:
    """Whether any operation creates an entry of this name in its run's directory."""
    return _explains_top(entry, {state for states in STATES.values() for state in states})


def _explains_top(entry: FileInfo, states: Iterable[str]) -> bool:
    if entry.is_dir:
        return entry.name in states or entry.name == "backup_table"
    return entry.name in KNOWN_FILES or entry.name.startswith("certificates-") or names.AWAY.fullmatch(entry.name) is not None


def _number(name: str) -> UnitNumber:
    match = names.UNIT.fullmatch(name) or names.RECREATED.fullmatch(name) or names.TAKEN.fullmatch(name)
    return UnitNumber(int(match["number"]) if match else -1)


def next_taken_name(run: RunId, directories: Iterable[str]) -> str:
    """The name under which a run directory is taken over: `RUN.tN`, never used before."""
    taken: Dict[str, int] = {}
    for directory in directories:
        match = names.RUN_DIRECTORY.fullmatch(directory)
        if match:
            taken[match["run"]] = max(taken.get(match["run"], 0), int(match["taken"] or 0))
    return f"{run}.t{taken.get(run, 0) + 1}"
