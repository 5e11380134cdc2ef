"""Decide what an interrupted swap of one unit needs: the recovery table of docs/swap.md.

Pure, and total: every picture has one answer.
"""

from __future__ import annotations

from enum import Enum
from typing import Dict, Iterable, List, Set

from hivekeeper import names
from hivekeeper.model import FileInfo


class Live(Enum):
    ABSENT = "absent"
    OURS = "holds the certificate's files"
    OTHER = "without the certificate's files"


class Move(Enum):
    NOTHING_SWAPPED = "nothing swapped: drop stage and ready"
    FINISH_GAP = "killed in the gap: look at retired, then promote or put back"
    FINISH = "swapped: carry over, verify, record"
    OVERWRITTEN = "swapped and overwritten since: record only"


def next_move(live: Live, ready: bool, retired: bool) -> Move:
    """What to do next, from where the unit's directories lie."""
    if not retired:
        return Move.NOTHING_SWAPPED
    if ready:
        return Move.FINISH_GAP
    if live is Live.OURS:
        return Move.FINISH
    return Move.OVERWRITTEN


class Undo(Enum):
    """What an interrupted rollback of one unit needs."""

    LOOK = "both copies are aside: look at discarded, then restore or put back"
    RESTORED = "restored: live holds the older files; carry back, record"
    OVERWRITTEN = "restored and overwritten since: record only"
    GIVE_BACK = "nothing restored: the backup goes back to its place"
    NOTHING = "nothing was done"


def next_undo(live_is_older: bool, restoring: bool, discarded: bool) -> Undo:
    """What to do next with a unit of a rollback. `live_is_older`: live holds the files that the rollback brings back."""
    if discarded and restoring:
        return Undo.LOOK
    if discarded:
        return Undo.RESTORED if live_is_older else Undo.OVERWRITTEN
    return Undo.GIVE_BACK if restoring else Undo.NOTHING


# The directories that a run of each operation makes in its own, each holding one directory per unit (stage: per batch).
STATES = {
    "compact-swap": ("stage", "ready", "retired", "recreated"),
    "rollback": ("restoring", "discarded", "recreated"),
    "cleanup": ("discarding", "deleting"),
    "backup": ("shown",),
    "pin": (),
    "unpin": (),
}
KNOWN_FILES = frozenset(["plan.json", "plan.json.part", "entry.json", "entry.json.part", "tick"])


def find_strangers(top: str, tree: Iterable[FileInfo], units: Set[int], operation: str) -> List[str]:
    """Paths in a run directory that its plan does not explain; a person has to look at them."""
    states = STATES.get(operation, ())
    strangers = []
    for entry in tree:
        parts = entry.path[len(top) :].strip("/").split("/")
        if len(parts) == 1 and not _explains_top(entry, states):
            strangers.append(entry.path)
        if len(parts) == 2 and parts[0] in states and parts[0] != "stage" and _number(parts[1]) not in units:
            strangers.append(entry.path)
    return strangers


def _explains_top(entry: FileInfo, states: Iterable[str]) -> bool:
    if entry.is_dir:
        return entry.name in states or entry.name == "shown"
    return entry.name in KNOWN_FILES or entry.name.startswith("certificates-")


def _number(name: str) -> int:
    match = names.UNIT.fullmatch(name) or names.RECREATED.fullmatch(name)
    return int(match["number"]) if match else -1


def next_taken_name(run: str, directories: Iterable[str]) -> str:
    """The name under which a run directory is taken over: `RUN.tN`, never used before."""
    taken: Dict[str, int] = {}
    for directory in directories:
        match = names.RUN_DIRECTORY.fullmatch(directory)
        if match:
            taken[match["run"]] = max(taken.get(match["run"], 0), int(match["taken"] or 0))
    return f"{run}.t{taken.get(run, 0) + 1}"
