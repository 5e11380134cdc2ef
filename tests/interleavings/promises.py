"""What must hold in every state of an exploration, and what must hold at its end: design promises as questions to a world."""

from __future__ import annotations

from collections import defaultdict
from typing import Dict, Iterator, List, Mapping, Sequence, Set

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.names import RUN_DIRECTORY
from hivekeeper.runlog import checkpoint, strict
from hivekeeper.runlog.entry_reader import read_entry
from hivekeeper.runlog.history import LoggedRun
from hivekeeper.runlog.strict import UnreadableRecord
from interleavings.runners import TABLE
from interleavings.world import World
from interleavings.writers import LIVE, ORIGINAL, ROOT, RUNS, UNIT, rows_in_live
from support.fakes.files import info
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
    if path.startswith(f"{LIVE}/"):
        return names.parent("live" + path[len(LIVE) :])
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
    yield from (f"{fact[1]} ends with {fact[2]}: {fact[3]}" for fact in world.facts if fact[0] == "ended")


def is_right(rows: Sequence[str]) -> bool:
    """Whether a reader got the rows of the snapshot once each. For worlds without writers."""
    return set(ORIGINAL) <= set(rows) and len(set(rows)) == len(rows)


def judge_end(world: World) -> Iterator[str]:
    seen, places = rows_in_live(world), find_places(world)
    for row in needed(world):
        if not seen[row]:
            yield f"{label(row)} is not in live but in {', '.join(sorted(places[row])) or 'nothing'}"
    if ("overwrote",) in world.facts:
        yield from (f"overwritten: {label(row)} is back" for row in sorted(seen) if ("may go", row) in world.facts)
    gone = bool({("overwrote",), ("dropped",)} & world.facts)
    if not world.exists(LIVE) and not gone:
        yield "live is missing"
    if ("overwrote",) not in world.facts and any("/recreated/" in path for path, _ in world.files_below(RUNS)):
        yield "something is left in recreated"
    if any(not isinstance(node.content, DataFile) or not node.content.rows for _, node in world.files_below(LIVE)):
        yield "a file without rows is left in live"
    if any(names.is_hidden(names.base(path)) and not node.is_dir for path, node in world.files_below(LIVE)):
        yield "a hidden file is left in live"
    if any("/taken/" in path or "/stage/" in path or "/ready/" in path for path, _ in world.files_below(RUNS)):
        yield "something is left in stage or ready"
    if (UNIT in world.catalog.partitions[TABLE]) != (("dropped",) not in world.facts):
        yield f"the partition is {'back in' if ('dropped',) in world.facts else 'gone from'} the metastore"
    yield from _judge_log(world)


def _judge_log(world: World) -> Iterator[str]:
    files = dict(world.files_below(LOG))
    numbers = {path: names.log_version(names.base(path)) for path in files}
    listed = {number: info(path, files[path]) for path, number in numbers.items() if number is not None}
    entries = [read_entry(files[file.path].content.splitlines(), version, file.path) for version, file in sorted(listed.items())]
    for path, node in files.items():
        if names.checkpoint_version(names.base(path)) is not None:
            yield from _judge_checkpoint(path, node.content, listed, entries)
    finished = [entry.run for entry in entries if entry.finished]
    if len(set(finished)) < len(finished):
        yield "a run is twice in the log"
    directories = {RUN_DIRECTORY.fullmatch(name) for name in _names_in(world, RUNS)}
    if any(match is not None and match["run"] not in finished for match in directories):
        yield "a run that is not in the log is left"


def _judge_checkpoint(path: str, content: bytes, listed: Mapping[int, FileInfo], entries: Sequence[LoggedRun]) -> Iterator[str]:
    """A checkpoint is whole, of the entries that are there, and says of their units what they say."""
    try:
        found = checkpoint.read(strict.lines_of(checkpoint.decompress([content], path), path), path, listed)
    except UnreadableRecord as broken:
        yield f"a checkpoint cannot be used: {broken}"
        return
    if any(found.runs[version].units != entries[version].units for version in found.runs):
        yield "a checkpoint says something else than the log"


def _names_in(world: World, directory: str) -> List[str]:
    node = world.namespace.find(directory)
    return list(node.children) if node is not None else []
