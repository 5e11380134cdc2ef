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


KNOWN_STATES = frozenset(["stage", "ready", "retired", "recreated"])
KNOWN_FILES = frozenset(["plan.json", "plan.json.part", "entry.json", "entry.json.part", "tick"])


def find_strangers(top: str, tree: Iterable[FileInfo], units: Set[int]) -> List[str]:
    """Paths in a run directory that its plan does not explain; a person has to look at them."""
    strangers = []
    for entry in tree:
        parts = entry.path[len(top) :].strip("/").split("/")
        if len(parts) == 1 and not _explains_top(entry):
            strangers.append(entry.path)
        if len(parts) == 2 and parts[0] in ("ready", "retired", "recreated") and _number(parts[1]) not in units:
            strangers.append(entry.path)
    return strangers


def _explains_top(entry: FileInfo) -> bool:
    if entry.is_dir:
        return entry.name in KNOWN_STATES
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
