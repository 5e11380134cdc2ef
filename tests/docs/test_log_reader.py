"""A log reader that knows only docs/on-disk.md and not the program, against what the program and the files say."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan import retention, rollback
from hivekeeper.runlog import store
from hivekeeper.runlog.strict import UnreadableRecord
from support.builders import a_table, read_log
from support.desk import EVERYTHING, Desk
from support.fakes.files import Killed
from support.world import World

Key = Tuple[str, int]
FileSet = Tuple[Dict[str, int], Dict[str, Tuple[int, str]]]

DAY_MS = 86_400_000

# -- the reader: rules 1 to 12 of the page, its checkpoints, and the standard library -------------------------------------------------


class Untrusted(Exception):
    """The page says that the log must not be trusted, or to stop."""


@dataclass(frozen=True)
class Effect:
    run: str
    unit: int
    version: int
    table: str
    partition: str
    place: str
    undoes: Optional[Key]
    before: Mapping[str, int]
    live: str
    inside: Optional[Mapping[str, Any]]


@dataclass
class Reader:
    """What the page promises that another program can know. `base`: files and tombstones after the last of the `expired` entries."""

    entries: List[List[Dict[str, Any]]] = field(default_factory=list)
    expired: int = 0
    base: FileSet = field(default_factory=lambda: ({}, {}))

    @classmethod
    def of(cls, log: Mapping[str, str], checkpoint: Optional[Reader] = None) -> Reader:
        """`log` maps file names to texts. A log whose oldest entries are expired needs its checkpoint."""
        numbered = {int(name[:20]): text for name, text in log.items() if re.fullmatch(r"\d{20}\.json", name)}
        known = checkpoint if checkpoint and 0 not in numbered else cls()
        if any(number not in numbered for number in range(known.expired, max(numbered, default=0))):
            raise Untrusted("an entry is missing")
        later = [read_lines(numbered[number]) for number in sorted(numbered) if number >= known.expired]
        return cls([*known.entries[: known.expired], *later], known.expired, known.base)

    @classmethod
    def of_checkpoint(cls, packed: bytes, log: Mapping[str, Any]) -> Reader:
        """`log` maps names of entries to size, time and id."""
        head, *lines = (json.loads(line) for line in gzip.decompress(packed).decode("utf-8").split("\n") if line)
        if head["checkpoint"]["version"] > 1:
            raise Untrusted("a newer checkpoint")
        expired, files, tombstones = head["checkpoint"]["expired"], {}, {}
        told, entries = [], []  # type: ignore[var-annotated]
        for action in lines:
            if "base" in action:
                files.update(action["base"]["files"])
                tombstones.update({path: (size, retired) for path, size, retired in action["base"]["tombstones"]})
            elif "entry" in action:
                told.append(action["entry"])
                entries.append([])
            else:
                entries[-1].append(action)
        if [entry["version"] for entry in told] != list(range(head["checkpoint"]["entries"])):
            raise Untrusted("a part of a checkpoint")
        is_exact = compare_entries(told, log, expired)
        return cls(entries if is_exact else entries[:expired], expired, (files, tombstones))

    def infos(self) -> Iterator[Tuple[int, Dict[str, Any]]]:
        for version, actions in enumerate(self.entries):
            yield version, next(action["commitInfo"] for action in actions if "commitInfo" in action)

    def all_of(self, kind: str) -> List[Dict[str, Any]]:
        return [action[kind] for actions in self.entries for action in actions if kind in action]

    @property
    def tables(self) -> List[str]:
        found: List[str] = []
        for actions in self.entries:
            own = [action["metaData"]["id"] for action in actions if "metaData" in action]
            found.append(own[-1] if own else found[-1])
        return found

    @property
    def finished(self) -> Set[str]:
        return {info["run"] for _, info in self.infos() if info["finished"]}

    @property
    def effects(self) -> List[Effect]:
        return [self._effect(version, info, unit) for version, info in self.infos() for unit in info["units"] if unit["place"] is not None]

    def _effect(self, version: int, info: Dict[str, Any], unit: Dict[str, Any]) -> Effect:
        removed = [action["remove"] for action in self.entries[version] if "remove" in action]
        before = {remove["retired"]: remove["size"] for remove in removed if remove["unit"] == unit["unit"]}
        for part in (action["files"] for action in self.entries[version] if "files" in action):
            if (part["unit"], part["side"]) == (unit["unit"], "before"):
                before.update({f"{unit['place']}/{name}": size for name, size, _, _ in part["files"]})
        undoes = (unit["backup"]["run"], unit["backup"]["unit"]) if unit["backup"] else None
        return Effect(
            info["run"],
            unit["unit"],
            version,
            self.tables[version],
            unit["partition"],
            unit["place"],
            undoes,
            before,
            unit["live"],
            unit.get("inside"),
        )

    def files_at(self, version: int) -> Tuple[Dict[str, int], Dict[str, Tuple[int, str]]]:
        if version < self.expired - 1:
            raise Untrusted("its details are expired")
        files, tombstones = dict(self.base[0]), dict(self.base[1])
        for action in (action for actions in self.entries[self.expired : version + 1] for action in actions):
            for unit in action["commitInfo"]["units"] if "commitInfo" in action else ():
                if unit["place"] and unit["backup"]:
                    run, number = re.escape(unit["backup"]["run"]), unit["backup"]["unit"]
                    undone = re.compile(rf"runs/{run}(\.t[0-9]+)?/retired/u{number:05d}/")
                    tombstones = {path: told for path, told in tombstones.items() if not undone.match(told[1])}
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
                tombstones[action["remove"]["path"]] = action["remove"]["size"], action["remove"]["retired"]
            if "add" in action:
                tombstones.pop(action["add"]["path"], None)
                files[action["add"]["path"]] = action["add"]["size"]
            if "discarded" in action:
                gone = [path for path, (_, where) in tombstones.items() if where.startswith(action["discarded"]["place"] + "/")]
                for path in gone:
                    del tombstones[path]
                if action["discarded"].get("path") in files:
                    files[action["discarded"]["path"]] = action["discarded"]["pathSize"]
        return files, tombstones

    @property
    def backups(self) -> Dict[str, Set[str]]:
        """Run → places of its backups; a record's set is empty."""
        discarded = {action["place"] for action in self.all_of("discarded")}
        undone = {effect.undoes for effect in self.effects}
        found: Dict[str, Set[str]] = {}
        for effect in self.effects:
            if effect.place not in discarded and (effect.run, effect.unit) not in undone:
                found.setdefault(effect.run, set()).add(effect.place)
        for _, info in self.infos():
            if info["operation"] == "backup" and f"runs/{info['directory']}" not in discarded:
                found[info["run"]] = set()
        return found

    @property
    def pinned(self) -> Set[str]:
        last = {pin["run"]: pin["pinned"] for pin in self.all_of("pin")}
        return {run for run, pinned in last.items() if pinned}

    @property
    def keys(self) -> Dict[str, str]:
        """Run key → the run that did the work."""
        found: Dict[str, str] = {}
        for version, info in self.infos():
            for action in self.entries[version]:
                if "txn" in action and info["finished"]:
                    found.setdefault(action["txn"]["appId"], info["run"])
        return found

    @property
    def stacks(self) -> Dict[str, Tuple[List[Effect], List[Effect]]]:
        found: Dict[str, Tuple[List[Effect], List[Effect]]] = {}
        for effect in self.effects:
            if effect.table != self.tables[-1]:
                continue
            done, undone = found.setdefault(effect.partition, ([], []))
            if done and effect.undoes == (done[-1].run, done[-1].unit):
                done.pop()
                undone.append(effect)
            elif undone and effect.undoes == (undone[-1].run, undone[-1].unit):
                undone.pop()
                done.append(effect)
            else:
                done.append(effect)
                undone.clear()
        return found


def compare_entries(told: List[Dict[str, int]], log: Mapping[str, Any], expired: int) -> bool:
    """Whether a checkpoint is of exactly these entries; false if it is only right about the expired ones, of which some are missing."""
    pairs = [((one["size"], one["modificationTime"], one["fileId"]), log.get(f"{one['version']:020d}.json")) for one in told]
    if any(found is None for _, found in pairs[expired:]):
        raise Untrusted("a checkpoint of more entries")
    there = [(own, found) for own, found in pairs if found is not None]
    if all(own == found for own, found in there):
        return True
    if len(there) == len(pairs) or any(own[0] != found[0] for own, found in there):
        raise Untrusted("a checkpoint of other entries")
    return False


def read_lines(text: str) -> List[Dict[str, Any]]:
    try:
        actions = [json.loads(line) for line in text.split("\n") if line]
    except ValueError as error:
        raise Untrusted("a broken line") from error
    if not actions:
        raise Untrusted("an entry without actions")
    for protocol in (action["protocol"] for action in actions if "protocol" in action):
        if max(protocol["minReaderVersion"], protocol["minWriterVersion"]) > 2:
            raise Untrusted("a newer protocol")
    return actions


# -- what it reads ---------------------------------------------------------------------------------------------------


def build(columns: Tuple[str, ...]) -> Desk:
    world = World()
    units = {f"{columns[0]}={day}": [1000] * 3 for day in (1, 2)} if columns else {"": [1000] * 3}
    world.add_table(a_table(columns), units)
    return Desk(world, checkpoint_interval=2)


def append(desk: Desk, nth: int) -> None:
    unit = "dt=1" if desk.world.catalog.tables[desk.table].partitioned else ""
    for at in range(2):
        desk.world.add_file(f"{desk.live(unit)}/more{nth}{at}.parquet", [f"{nth}{at}"])
    desk.world.files.namespace.advance(3_600_000)


def compact_twice(desk: Desk) -> None:
    desk.compact()
    append(desk, 1)
    desk.compact()


def roll_back_and_forth(desk: Desk) -> None:
    compact_twice(desk)
    desk.rollback()
    desk.rollback(desk.runs[-1])
    append(desk, 2)
    desk.rollback(desk.runs[0])


def everything(desk: Desk) -> None:
    desk.backup()
    compact_twice(desk)
    desk.rollback()
    desk.pin(desk.runs[1])
    desk.pin(desk.runs[0])
    desk.pin(desk.runs[0], pinned=False)
    desk.cleanup(EVERYTHING)
    append(desk, 2)
    desk.compact()


def killed_and_recovered(desk: Desk) -> None:
    desk.compact()
    append(desk, 1)
    for step, act in ((32, desk.compact), (14, desk.rollback), (9, lambda: desk.cleanup(EVERYTHING))):
        desk.world.files.die_after(step)
        with pytest.raises(Killed):
            act()
        desk.world.files.revive()
        desk.world.files.expire_locks()
        desk.recover()


def killed_in_a_cleanup(desk: Desk) -> None:
    """After its first entry, before it touches a backup."""
    desk.compact()

    def kill(step: str) -> None:
        if step.startswith("rename_exact") and "/held/u" in step:
            raise Killed

    desk.world.files.before_step = kill
    with pytest.raises(Killed):
        desk.cleanup(EVERYTHING)
    desk.world.files.before_step = None


def made_anew(desk: Desk) -> None:
    desk.compact()
    table = desk.world.catalog.tables[desk.table]
    desk.world.catalog.tables[desk.table] = type(table)(**{**vars(table), "create_time": table.create_time + 60})
    append(desk, 1)
    desk.compact()


def joined(desk: Desk) -> None:
    """Old files inside others."""
    desk.settings = replace(desk.settings, exchange="files", fewest_joined=2)
    desk.compact()
    desk.rollback()
    desk.rollback(desk.runs[-1])
    append(desk, 8)
    desk.compact()
    desk.cleanup(EVERYTHING)


def expired(desk: Desk) -> None:
    """Runs whose backups are discarded, among them one that was rolled back, and later runs until their entries are gone."""
    desk.settings = replace(desk.settings, log_retention_ms=DAY_MS)
    compact_twice(desk)
    desk.rollback()
    desk.cleanup(EVERYTHING)
    for nth in range(2, 8):
        desk.world.files.namespace.advance(DAY_MS)
        append(desk, nth)
        desk.compact()
    assert "00000000000000000000.json" not in texts_of_log(desk), "no entry is gone"


STORIES: Dict[str, Callable[[Desk], None]] = {
    story.__name__: story
    for story in (
        *(compact_twice, roll_back_and_forth, everything, killed_and_recovered, killed_in_a_cleanup, made_anew),
        *(joined, expired),
    )
}


@pytest.fixture(scope="module", params=[(name, columns) for name in STORIES for columns in ((), ("dt",))], ids=str)
def desk(request: pytest.FixtureRequest) -> Desk:
    name, columns = request.param
    desk = build(columns)
    desk.run_key = "tonight"
    desk.compact()
    desk.run_key = ""
    append(desk, 9)
    STORIES[name](desk)
    return desk


@pytest.fixture(scope="module")
def reader(desk: Desk) -> Reader:
    return Reader.of(texts_of_log(desk), read_checkpoint(desk))


def read_checkpoint(desk: Desk) -> Reader:
    """The newest one."""
    listed = desk.world.files.look([desk.control.log])[desk.control.log].entries
    *_, newest = sorted(entry.path for entry in listed if "checkpoint" in entry.name)
    packed = desk.world.files.contents(desk.control.log)[newest]
    return Reader.of_checkpoint(packed, {entry.name: (entry.length, entry.mtime_ms, entry.file_id) for entry in listed})


def texts_of_log(desk: Desk) -> Dict[str, str]:
    found = {path.rpartition("/")[2]: content for path, content in desk.world.files.contents(desk.control.log).items()}
    return {name: content for name, content in found.items() if isinstance(content, str)}


def lengths_below(desk: Desk, top: str) -> Dict[str, int]:
    """Path below a directory → length of every file."""
    return {path[len(top) + 1 :]: desk.world.files.namespace.find(path).length for path in desk.world.files.contents(top)}


# -- against the program ---------------------------------------------------------------------------------------------


def test_it_finds_the_finished_runs(desk, reader):
    assert reader.finished == desk.log().finished
    assert reader.finished


def test_it_finds_the_files_and_tombstones_of_every_version(desk, reader):
    assert len(reader.entries) == desk.log().next_version
    for version in range(reader.expired, len(reader.entries)):
        told = store.read_files_at(desk.world.cluster, desk.control, version)
        assert reader.files_at(version) == (told.files, told.tombstones)
    for version in range(reader.expired):
        assert desk.history(at=version).code is Exit.REFUSED


def test_it_finds_the_backups_with_their_places_and_pins(desk, reader):
    told = retention.list_backups(desk.log())
    assert reader.backups == {backup.run: {effect.place for effect in backup.effects} for backup in told}
    assert reader.pinned == desk.log().pinned
    assert {backup.run for backup in told if backup.pinned} == reader.pinned & set(reader.backups)


def test_it_finds_which_run_did_the_work_of_a_key(desk, reader):
    keyed = {run.run_key for run in desk.log().runs if run.run_key}
    assert reader.keys == {key: desk.log().find_key(key).run for key in keyed}
    assert keyed == {"tonight"}


def test_it_knows_what_a_rollback_would_undo(desk, reader):
    told = rollback.read_stacks(desk.log(), desk.log().table_id)
    assert set(reader.stacks) == set(told)
    for partition, (done, undone) in reader.stacks.items():
        assert [(effect.run, effect.unit) for effect in done] == [effect.key for effect in told[partition].done]
        assert [(effect.run, effect.unit) for effect in undone] == [effect.key for effect in told[partition].undone]


def test_it_finds_the_same_in_a_checkpoint(desk, reader):
    found = read_checkpoint(desk)
    known = Reader(reader.entries[: len(found.entries)])
    assert (found.finished, found.backups, found.pinned, found.keys) == (known.finished, known.backups, known.pinned, known.keys)
    assert {key: [[one.place for one in stack] for stack in two] for key, two in found.stacks.items()} == {
        key: [[one.place for one in stack] for stack in two] for key, two in known.stacks.items()
    }
    needed = {place for places in reader.backups.values() for place in places}
    assert {one.place: one.before for one in found.effects if one.place in needed} == {
        one.place: one.before for one in known.effects if one.place in needed
    }


# -- against the files -----------------------------------------------------------------------------------------------


def test_the_files_of_the_last_version_are_live_with_their_sizes(desk, reader):
    files, _ = reader.files_at(len(reader.entries) - 1)
    live = lengths_below(desk, desk.live())
    assert files
    assert {path: live.get(path) for path in files} == files


def test_a_tombstone_lies_where_its_action_says(desk, reader):
    _, tombstones = reader.files_at(len(reader.entries) - 1)
    ours = lengths_below(desk, desk.control.top)
    inside = {where for effect in reader.effects if effect.inside for where in effect.before}
    found = {where: size for size, where in tombstones.values() if where not in inside}
    assert {where: ours.get(where) for where in found} == found


def test_old_files_inside_another_lie_where_the_log_says(desk, reader):
    live = lengths_below(desk, desk.live())
    for effect in (one for one in reader.effects if one.inside and one.place in reader.backups.get(one.run, ())):
        path = effect.inside["file"] if effect.live == "." else f"{effect.live}/{effect.inside['file']}"
        if live.get(path) != effect.inside["length"]:
            # It left live with a later run, whose old files it is among.
            assert any(where.endswith("/" + effect.inside["file"]) for one in reader.effects for where in one.before)
            continue
        node = desk.world.files.namespace.find(names.join(desk.live(), path))
        edges = [0, *accumulate(block.length for block in node.blocks)]
        starts = [effect.inside["begin"], *accumulate(effect.before.values(), initial=effect.inside["begin"])]
        assert set(starts) <= set(edges)
        assert effect.inside["copyBytes"] in edges


def test_the_places_of_the_backups_hold_their_files_and_nothing_of_ours_lies_elsewhere(desk, reader):
    expected: Counter = Counter()
    for effect in reader.effects:
        if effect.place in reader.backups.get(effect.run, ()) and effect.inside is None:
            expected.update(effect.before)
    found = {path: size for path, size in lengths_below(desk, desk.control.top).items() if re.match(r"runs/[^/]+/[^/]+/u\d+", path)}
    assert found == dict(expected)


# -- what must stop it, and what must not ----------------------------------------------------------------------------


@pytest.fixture(params=[compact_twice, expired], ids=["all entries", "expired ones"])
def checkpointed(request: pytest.FixtureRequest) -> Tuple[bytes, Dict[str, Any], Dict[str, str]]:
    """A packed checkpoint; size, time and id of the entries; and their texts."""
    desk = build(("dt",))
    desk.compact()
    append(desk, 9)
    request.param(desk)
    listed = desk.world.files.look([desk.control.log])[desk.control.log].entries
    *_, newest = sorted(entry.path for entry in listed if "checkpoint" in entry.name)
    packed = desk.world.files.contents(desk.control.log)[newest]
    log = {entry.name: (entry.length, entry.mtime_ms, entry.file_id) for entry in listed if entry.name.endswith(".json")}
    return packed, log, texts_of_log(desk)


def test_a_checkpoint_is_of_the_entries_that_it_names(checkpointed):
    packed, log, _ = checkpointed
    oldest = min(log)
    expired = Reader.of_checkpoint(packed, log).expired
    with pytest.raises(Untrusted):
        Reader.of_checkpoint(packed, {**log, oldest: (1, *log[oldest][1:])})
    copied = {name: (size, 2, 3) for name, (size, _, _) in log.items()}
    if "00000000000000000000.json" in log:
        with pytest.raises(Untrusted):
            Reader.of_checkpoint(packed, copied)
    else:
        assert len(Reader.of_checkpoint(packed, copied).entries) == expired > 0
    del log[max(name for name in log if int(name[:20]) < len(Reader.of_checkpoint(packed, log).entries))]
    with pytest.raises(Untrusted):
        Reader.of_checkpoint(packed, log)


def test_only_an_expired_entry_may_be_missing(checkpointed):
    packed, log, texts = checkpointed
    checkpoint = Reader.of_checkpoint(packed, log)
    assert Reader.of(texts, checkpoint).expired == (0 if "00000000000000000000.json" in texts else checkpoint.expired)
    if checkpoint.expired:
        with pytest.raises(Untrusted):
            Reader.of(texts)
    first_needed = f"{checkpoint.expired:020d}.json"
    with pytest.raises(Untrusted):
        Reader.of({name: text for name, text in texts.items() if name != first_needed}, checkpoint)


@pytest.fixture
def log() -> Dict[str, str]:
    desk = build(("dt",))
    compact_twice(desk)
    return texts_of_log(desk)


def first_of(log: Mapping[str, str]) -> str:
    return min(log)


def break_by_a_gap(log: Dict[str, str]) -> None:
    del log[first_of(log)]


def break_by_a_newer_reader(log: Dict[str, str]) -> None:
    log[max(log)] += '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 2}}\n'


def break_by_a_newer_writer(log: Dict[str, str]) -> None:
    log[max(log)] += '{"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}\n'


def break_a_line(log: Dict[str, str]) -> None:
    log[max(log)] += '{"add": {"path'


def break_by_an_empty_entry(log: Dict[str, str]) -> None:
    log[max(log)] = "\n"


@pytest.mark.parametrize("spoil", [break_by_a_gap, break_by_a_newer_reader, break_by_a_newer_writer, break_a_line, break_by_an_empty_entry])
def test_both_stop_at_what_cannot_be_trusted(log, spoil):
    spoil(log)
    with pytest.raises(Untrusted):
        Reader.of(log)
    with pytest.raises(UnreadableRecord):
        read_log({int(name[:20]): text for name, text in log.items()})


def test_both_ignore_an_unknown_action_an_unknown_key_and_another_file(log):
    plain, runs = Reader.of(log), read_log({int(name[:20]): text for name, text in log.items()})
    log["_last_checkpoint"] = "{}"
    log[max(name for name in log if name.endswith(".json"))] += '{"somethingNew": {"place": "runs"}}\n'
    log = {name: text.replace('"dataChange": false', '"dataChange": false, "more": 1') for name, text in log.items()}
    again = Reader.of(log)
    assert (again.effects, again.backups, again.finished) == (plain.effects, plain.backups, plain.finished)
    entries = {int(name[:20]): text for name, text in log.items() if name.endswith(".json")}
    assert read_log(entries) == runs


def test_both_read_a_line_feed_as_the_only_end_of_a_line(log):
    log = {name: text.replace('"userName": "etl"', '"userName": "e\u2028tl"') for name, text in log.items()}
    assert [info["userName"] for _, info in Reader.of(log).infos()] == ["e\u2028tl"] * len(log)
    assert [run.user for run in read_log({int(name[:20]): text for name, text in log.items()}).runs] == ["e\u2028tl"] * len(log)
