"""What must hold in every state of an exploration, and what must hold at its end: design promises as questions to a world."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.model import FileInfo
from hivekeeper.names import RUN_DIRECTORY
from hivekeeper.reasons import Code
from hivekeeper.runlog import checkpoint, strict
from hivekeeper.runlog.checkpoint import Checkpoint
from hivekeeper.runlog.entry_reader import read_entry
from hivekeeper.runlog.history import LoggedRun
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.strict import UnreadableRecord
from interleavings.runners import TABLE
from interleavings.world import World
from interleavings.writers import LIVE, MOVED, ORIGINAL, ROOT, RUNS, UNIT, rows_in_live
from support.fakes.namespace import Node, info
from support.fakes.rows import DataFile

LOG = f"{ROOT}/.hivekeeper/log"
KEPT = frozenset(["live", "retired", "restoring", "a joined file"])
# In the gap a late file may be in live before the snapshot's rows are back: no order of renames can prevent that.
ACCEPTED = frozenset(
    ["readers see late rows without the snapshot's", "readers see late rows without the snapshot's, in an outage"],
)


def needed(world: World) -> List[str]:
    """Rows that nobody meant to replace."""
    rows = [*ORIGINAL, *sorted(fact[1] for fact in world.facts if fact[0] == "told")]
    return [row for row in rows if ("may go", row) not in world.facts]


def find_places(world: World) -> Mapping[str, Set[str]]:
    """The kinds of directories that hold each row; proofs in stage and ready do not count as a place to keep one."""
    found: Dict[str, Set[str]] = defaultdict(set)
    for path, node in world.files_below("hdfs://nn"):
        kind = _kind_of(path) if isinstance(node.content, DataFile) else ""
        for row in node.content.rows if kind not in ("", "stage", "ready") else ():
            found[row].add(kind)
        # Behind the proved copy and the footer without rows.
        for part in node.content.parts[2:-1] if kind in ("live", "taken") else ():
            for row in part.rows:
                found[row].add("a joined file")
    return found


def _kind_of(path: str) -> str:
    for live in (LIVE, MOVED):
        if path.startswith(f"{live}/"):
            return names.parent("live" + path[len(live) :])
    if path.startswith(f"{RUNS}/"):
        return path[len(RUNS) + 1 :].split("/")[1]
    return ""


def label(row: str) -> str:
    kinds = {"s": "a row of the snapshot", "t": "a row of a committed task", "o": "a row of an overwriter"}
    return kinds.get(row[0], "a row of a late file")


def judge_now(world: World) -> Iterator[str]:
    seen, need, places = rows_in_live(world), needed(world), find_places(world)
    yield from (f"readers see {label(row)} twice" for row, times in seen.items() if times > 1)
    if ("the job commits",) not in world.facts and any(row[0] == "t" for row in seen):
        yield "readers see a row of a task whose job has not committed"
    kept = [fact[1] for fact in world.facts if fact[0] == "kept"]
    yield from (f"{label(row)} is nowhere" for row in [*need, *kept] if not places[row])
    if any(not KEPT & places[row] for row in ORIGINAL if row in need):
        yield "a row of the snapshot is in none of live, retired, restoring, a joined file"
    shown = [row for row in ORIGINAL if row in need and seen[row]]
    if 0 < len(shown) < len([row for row in ORIGINAL if row in need]):
        yield "readers see a part of the snapshot"
    if world.exists(LIVE) and not shown and set(ORIGINAL) <= set(need) and any(seen[row] for row in need):
        yield "readers see late rows without the snapshot's" + (", in an outage" if ("killed",) in world.facts else "")
    yield from (f"a reader gets [{', '.join(fact[1])}]" for fact in world.facts if fact[0] == "read" and not is_right(fact[1]))
    # What is dropped while it is away after a kill may have been dropped for that.
    may_investigate = bool({("moved",), ("nested",)} & world.facts) or {("dropped",), ("killed",)} <= world.facts
    ended = [fact for fact in world.facts if fact[0] == "ended"]
    if ended and (may_investigate or _tells_of_an_overwriter(world)):
        ended = [fact for fact in ended if fact[2] is not Exit.INVESTIGATE]
    yield from (f"{fact[1]} ends with {fact[2]}: {fact[3]}" for fact in ended)


def _tells_of_an_overwriter(world: World) -> bool:
    """Whether a run tells of one that has deleted the new files, and not written its own yet."""
    if ("may go", ORIGINAL[0]) not in world.facts:
        return False
    told = (unit.reason_code for run in read_entries(world).values() for unit in run.units)
    return Code.REMOVED_AFTER.code in told


def is_right(rows: Sequence[str]) -> bool:
    """Whether a reader got the rows of the snapshot once each. For worlds without writers."""
    return set(ORIGINAL) <= set(rows) and len(set(rows)) == len(rows)


def judge_end(world: World) -> Iterator[str]:
    seen, places = rows_in_live(world), find_places(world)
    for row in needed(world):
        # What cannot go back where a partition was moved is a backup, and the run says so.
        if not seen[row] and not (("moved",) in world.facts and "retired" in places[row]) and not _is_nested_and_told(world, places[row]):
            yield f"{label(row)} is not in live but in {', '.join(sorted(places[row])) or 'nothing'}"
    if ("overwrote",) in world.facts:
        yield from (f"overwritten: {label(row)} is back" for row in sorted(seen) if ("may go", row) in world.facts)
    gone = bool({("overwrote",), ("dropped",)} & world.facts)
    if not (world.exists(LIVE) or world.exists(MOVED)) and not gone:
        yield "live is missing"
    if ("overwrote",) not in world.facts and any("/recreated/" in path for path, _ in world.files_below(RUNS)):
        yield "something is left in recreated"
    in_live = [*world.files_below(LIVE), *world.files_below(MOVED)]
    if any(not isinstance(node.content, DataFile) or not node.content.rows for _, node in in_live):
        yield "a file without rows is left in live"
    if any(names.is_hidden(names.base(path)) and not node.is_dir for path, node in in_live):
        yield "a hidden file is left in live"
    if any("/taken/" in path or "/stage/" in path or "/ready/" in path for path, _ in world.files_below(RUNS)):
        yield "something is left in stage or ready"
    if (UNIT in world.catalog.partitions[TABLE]) != (("dropped",) not in world.facts):
        yield f"the partition is {'back in' if ('dropped',) in world.facts else 'gone from'} the metastore"
    yield from _judge_log(world)


def _is_nested_and_told(world: World, places: Set[str]) -> bool:
    """Whether a row is in a directory of live that a run has told of, or that none has met: the next compaction refuses the unit for it."""
    if ("nested",) not in world.facts or not any(place.startswith("live/") for place in places):
        return False
    return ("met what is nested",) not in world.facts or any(
        unit.outcome is Outcome.MISPLACED for run in read_entries(world).values() for unit in run.units
    )


def read_entries(world: World) -> Dict[int, LoggedRun]:
    return {version: read_entry(file.content.splitlines(), version, path) for version, (path, file) in sorted(_list_log(world).items())}


def _list_log(world: World) -> Dict[int, Tuple[str, Node]]:
    numbered = [(names.log_version(names.base(path)), path, node) for path, node in world.files_below(LOG)]
    return {number: (path, node) for number, path, node in numbered if number is not None}


def list_checkpoints(world: World) -> Set[int]:
    """The entries up to which there is one each."""
    numbered = (names.checkpoint_version(names.base(path)) for path, _ in world.files_below(LOG))
    return {number for number in numbered if number is not None}


def _judge_log(world: World) -> Iterator[str]:
    listed = {number: info(path, node) for number, (path, node) in _list_log(world).items()}
    entries = read_entries(world)
    found, unusable = _read_checkpoints(dict(world.files_below(LOG)), listed)
    yield from unusable
    for each in found:
        yield from _judge_checkpoint(each, entries)
    runs = {version: run for each in found for version, run in each.runs.items()}
    if any(sum(version in each.runs for each in found) < 2 for version in runs.keys() - entries.keys()):
        yield "what is left of an expired entry is in one checkpoint only"
    runs.update(entries)
    if sorted(runs) != list(range(len(runs))):
        yield "an entry of the log is gone"
    finished = [run.run for run in runs.values() if run.finished]
    if len(set(finished)) < len(finished):
        yield "a run is twice in the log"
    directories = {RUN_DIRECTORY.fullmatch(name) for name in _names_in(world, RUNS)}
    if any(match is not None and match["run"] not in finished for match in directories):
        yield "a run that is not in the log is left"


def _read_checkpoints(files: Mapping[str, Node], listed: Mapping[int, FileInfo]) -> Tuple[List[Checkpoint], List[str]]:
    """The checkpoints, and why others cannot be used."""
    found, unusable = [], []
    for path, node in files.items():
        if names.checkpoint_version(names.base(path)) is not None:
            try:
                found.append(checkpoint.read(strict.lines_of(checkpoint.decompress([node.content], path), path), path, listed))
            except UnreadableRecord as broken:
                unusable.append(f"a checkpoint cannot be used: {broken}")
    return found, unusable


def _judge_checkpoint(found: Checkpoint, entries: Mapping[int, LoggedRun]) -> Iterator[str]:
    """A checkpoint says of the units of each entry what the entry says; of an expired one only some are left."""
    told = [(run, entries[version]) for version, run in found.runs.items() if version in entries]
    if any(run.units != entry.units if not run.expired else not set(run.units) <= set(entry.units) for run, entry in told):
        yield "a checkpoint says something else than the log"


def _names_in(world: World, directory: str) -> List[str]:
    node = world.namespace.find(directory)
    return list(node.children) if node is not None else []
