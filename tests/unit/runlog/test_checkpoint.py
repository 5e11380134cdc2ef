"""Checkpoints of the log: whoever reads one knows what the entries say, and one that cannot be trusted is not used."""

from __future__ import annotations

import gzip
import json
import random
import sys
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.ports import FilesUnavailable, NoPermission
from hivekeeper.reasons import Code
from hivekeeper.runlog import checkpoint, store, strict
from support.builders import a_table
from support.desk import Desk
from support.fakes.files import Killed
from support.world import World


def build(interval=3, **settings):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world, checkpoint_interval=interval, cleanup_requires="age", **settings)


def compact(desk, times, unit="dt=1", where=None):
    for _ in range(times):
        desk.append(unit, f"a{len(desk.runs)}", f"b{len(desk.runs)}")
        desk.compact(where)


@pytest.fixture
def desk():
    """A table with a log of five entries and a checkpoint of the first three."""
    built = build()
    compact(built, 5)
    assert list(checkpoints(built)) == [2]
    return built


def checkpoints(desk):
    return store.list_log(desk.world.files, desk.control).checkpoints


def read_afresh(desk):
    desk.world.cluster.log_entries.clear()
    return desk.log()


def read_entries_only(desk, monkeypatch):
    with monkeypatch.context() as patch:
        listed = store.list_log
        patch.setattr(store, "list_log", lambda *arguments: replace(listed(*arguments), checkpoints={}))
        return read_afresh(desk)


class Counting:
    """Records what is read."""

    def __init__(self, monkeypatch, files):
        self.packed, self.texts, self.calls = [], [], 0
        read_texts, read_bytes, look = files.read_texts, files.read_bytes, files.look
        monkeypatch.setattr(files, "read_texts", lambda lot: self.count(self.texts, [file.name for file in lot]) or read_texts(lot))
        monkeypatch.setattr(files, "read_bytes", lambda file: self.count(self.packed, [file.name]) or read_bytes(file))
        monkeypatch.setattr(files, "look", lambda *arguments: self.count([], []) or look(*arguments))

    def count(self, kind, read):
        kind.extend(read)
        self.calls += 1


def change(desk, version, content):
    """Write other bytes over a checkpoint; its owner and mode stay."""
    node = desk.world.files.namespace.file(names.join(desk.control.log, names.checkpoint(version)))
    node.content = content(node.content)
    node.length = len(node.content)


def repack(change_lines):
    def changed(content):
        lines = gzip.decompress(content).decode().splitlines()
        return gzip.compress("".join(line + "\n" for line in change_lines(lines)).encode())

    return changed


# -- what is written, and when


def test_every_few_entries_a_checkpoint_is_written_and_the_last_two_stay():
    desk, seen = build(interval=2), []
    for _ in range(8):
        compact(desk, 1)
        seen.append(sorted(checkpoints(desk)))
    assert seen == [[], [1], [1], [1, 3], [1, 3], [3, 5], [3, 5], [5, 7]]
    assert not [entry for entry in desk.world.files.tree(desk.control.runs) if entry.name == "checkpoint.json.gz"]


def test_only_the_tail_of_the_log_is_read_beside_a_checkpoint(desk, monkeypatch):
    desk.world.cluster.log_entries.clear()
    counting = Counting(monkeypatch, desk.world.files)
    desk.log()
    desk.log()
    assert counting.packed == [names.checkpoint(2)]
    assert sorted(counting.texts) == [names.log_entry(3), names.log_entry(4)]
    # Two listings, and one call for the checkpoint more than without.
    assert counting.calls == 4


STEPS = {
    "compact": lambda desk, _: compact(desk, 1),
    "compact one": lambda desk, _: compact(desk, 1, "dt=2", "dt = '2'"),
    "rollback": lambda desk, _: desk.rollback(),
    "rollback far": lambda desk, dice: desk.rollback(dice.choice(backups(desk))) if backups(desk) else None,
    "pin": lambda desk, dice: desk.pin(dice.choice(backups(desk)), dice.random() < 0.7) if backups(desk) else None,
    "backup": lambda desk, _: desk.backup(),
    "verify": lambda desk, _: desk.verify(),
    "cleanup": lambda desk, dice: desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=dice.choice([None, 1, 2]))),
}


def backups(desk):
    return sorted({effect.run for effect in desk.log().standing})


@pytest.mark.repeating
@pytest.mark.parametrize("seed", range(8))
def test_whoever_reads_checkpoints_knows_exactly_what_the_entries_say(seed, monkeypatch):
    dice = random.Random(seed)
    desk = build(interval=dice.choice([1, 2, 3]), backup_table=False)
    for _ in range(25):
        STEPS[dice.choice(list(STEPS))](desk, dice)
        assert read_afresh(desk) == read_entries_only(desk, monkeypatch)
    assert len(checkpoints(desk)) == 2


def test_a_checkpoint_repeats_the_actions_and_only_the_lists_that_are_needed(desk):
    compact(desk, 1)
    desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=1))
    compact(desk, 3)
    (newest,) = [file for version, file in checkpoints(desk).items() if version == max(checkpoints(desk))]
    actions = [json.loads(line) for line in gzip.decompress(b"".join(desk.world.files.read_bytes(newest))).splitlines()]
    kinds = [next(iter(action)) for action in actions]
    assert not {"remove", "add"}.intersection(kinds)
    assert (kinds[0], kinds.count("entry"), kinds.count("commitInfo")) == ("checkpoint", *[max(checkpoints(desk)) + 1] * 2)
    repeated = [entry for entry in desk.log().runs if entry.version <= max(checkpoints(desk))]
    standing = {effect.key for entry in repeated for effect in entry.effects if effect.before}
    listed, run = set(), ""
    for action in actions:
        run = action["commitInfo"]["run"] if "commitInfo" in action else run
        if action.get("files", {}).get("side") == checkpoint.BEFORE:
            listed.add((run, action["files"]["unit"]))
    assert listed == standing
    assert {run for run, _ in listed} < {entry.run for entry in repeated if entry.effects}


def test_long_lists_are_cut_and_put_together_again(monkeypatch):
    monkeypatch.setattr(checkpoint, "FILES_OF_A_LINE", 2)
    desk = build(interval=1)
    compact(desk, 2)
    assert read_afresh(desk) == read_entries_only(desk, monkeypatch)


def test_a_checkpoint_may_be_read_by_those_who_may_read_the_entries(desk):
    def modes():
        return {entry.name: entry.mode for entry in desk.world.files.look([desk.control.log])[desk.control.log].entries}

    before = modes()
    assert set(before.values()) == {0o640}
    root = desk.world.files.namespace.directory(desk.live())
    root.attributes = replace(root.attributes, mode=0o700)
    compact(desk, 1)
    assert max(checkpoints(desk)) == 5
    assert {mode for name, mode in modes().items() if name not in before} == {0o600}
    # What was written before stays as it is, in a directory that is closed.
    assert desk.world.files.stat(desk.control.log).mode == 0o700


@pytest.mark.parametrize("error", [FilesUnavailable("standby"), NoPermission("no")])
def test_a_run_that_cannot_write_its_checkpoint_has_done_all_the_same(error, caplog):
    desk = build(interval=2)
    compact(desk, 1)
    desk.append("dt=1", "x", "y")
    desk.world.files.before_step = lambda what: (
        desk.world.files.fail_next("write_new", error) if "rename_exact" in what and "/log/" in what else None
    )
    assert desk.compact().code is Exit.DONE
    assert not checkpoints(desk)
    assert "step=write-checkpoint failed" in caplog.text
    desk.world.files.before_step = None
    compact(desk, 1)
    assert list(checkpoints(desk)) == [2]


# -- what is not trusted


def _with_line(number, **more):
    def changed(lines):
        action = json.loads(lines[number])
        (kind,) = action
        return [*lines[:number], json.dumps({kind: {**action[kind], **more}}, separators=(",", ":")), *lines[number + 1 :]]

    return repack(changed)


BROKEN = {
    "empty": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "not packed": gzip.decompress,
    "a bit": lambda content: content[:-6] + bytes([content[-6] ^ 1]) + content[-5:],
    "something follows": lambda content: content + b"x",
    "two in one": lambda content: content + content,
    "one entry less": repack(lambda lines: lines[: max(nth for nth, line in enumerate(lines) if line.startswith('{"entry"'))]),
    "one entry more is said": _with_line(0, entries=4),
    "no head": repack(lambda lines: lines[1:]),
    "no entry": repack(lambda lines: lines[:1]),
    "another entry's number": _with_line(1, version=1),
    "of another file": _with_line(1, fileId=1),
    "of a longer file": _with_line(1, size=1),
    "no json": repack(lambda lines: [*lines[:-1], lines[-1][:-3]]),
    "a list of nobody": repack(lambda lines: [*lines, '{"files":{"unit":7,"side":"before","files":[]}}']),
    "a path for a name": repack(lambda lines: [*lines, '{"files":{"unit":1,"side":"before","files":[["../x",1,1,1]]}}']),
    "a third side": repack(lambda lines: [*lines, '{"files":{"unit":1,"side":"between","files":[]}}']),
    "a remove": repack(lambda lines: [*lines, '{"remove":{"path":"dt=1/x"}}']),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_checkpoint_is_not_used_and_the_entries_are_read(desk, how, monkeypatch, caplog):
    told = read_entries_only(desk, monkeypatch)
    change(desk, 2, BROKEN[how])
    desk.world.cluster.log_entries.clear()
    counting = Counting(monkeypatch, desk.world.files)
    assert desk.log() == told
    assert len(counting.texts) == 5
    assert names.checkpoint(2) in caplog.text
    assert "the entries are read instead" in caplog.text
    compact(desk, 1)
    assert max(checkpoints(desk)) == 5
    caplog.clear()
    assert read_afresh(desk) == read_entries_only(desk, monkeypatch)
    assert "read instead" not in caplog.text


def test_a_text_that_becomes_too_long_is_not_unpacked(desk, monkeypatch, caplog):
    monkeypatch.setattr(checkpoint, "MOST_TEXT", 100)
    assert read_afresh(desk).next_version == 5
    assert "when it is unpacked" in caplog.text


def test_a_checkpoint_ahead_of_a_log_that_was_restored_is_not_used(desk, monkeypatch):
    """The log has other entries of these numbers later on."""
    for version in (2, 3, 4):
        desk.world.files.writer.delete(names.join(desk.control.log, names.log_entry(version)))
    monkeypatch.setattr(checkpoint, "read", None)
    assert read_afresh(desk).next_version == 2
    monkeypatch.undo()
    compact(desk, 1)
    assert read_afresh(desk) == read_entries_only(desk, monkeypatch)


def test_a_checkpoint_of_a_newer_version_is_one_clear_error_and_nothing_is_touched(desk):
    rows = desk.world.rows_of("sales.events")
    change(desk, 2, _with_line(0, version=2))
    desk.world.cluster.log_entries.clear()
    desk.append("dt=1", "x", "y")
    (outcome,) = desk.compact().tables
    assert (outcome.code, outcome.problem.code) == (Exit.REFUSED, Code.NEWER_LOG)
    assert names.checkpoint(2) in outcome.problem.what
    assert len(desk.world.rows_of("sales.events")) == len(rows) + 2


def test_a_checkpoint_of_somebody_else_is_not_believed(desk):
    node = desk.world.files.namespace.file(names.join(desk.control.log, names.checkpoint(2)))
    node.attributes = replace(node.attributes, owner="mallory")
    desk.append("dt=1", "x", "y")
    (outcome,) = desk.compact().tables
    assert (outcome.code, outcome.problem.code) == (Exit.INVESTIGATE, Code.RECORDS_OF_ANOTHER)


def test_a_missing_entry_is_missed_although_a_checkpoint_repeats_it(desk):
    desk.world.files.writer.delete(names.join(desk.control.log, names.log_entry(1)))
    desk.world.cluster.log_entries.clear()
    (outcome,) = desk.compact().tables
    assert (outcome.code, outcome.problem.code) == (Exit.INVESTIGATE, Code.UNREADABLE_LOG)


# -- killed


def steps_of_a_checkpoint():
    """The steps of a run that writes a checkpoint and removes one."""
    desk = build(interval=1)
    compact(desk, 2)
    desk.append("dt=1", "x", "y")
    seen, before = [], desk.world.files.steps
    desk.world.files.before_step = lambda what: seen.append((desk.world.files.steps - before, what))
    desk.compact()
    of_checkpoint = [step for step, what in seen if "checkpoint" in what]
    assert len(of_checkpoint) >= 4
    return range(min(of_checkpoint), max(of_checkpoint) + 2)


@pytest.mark.parametrize("at_once", [True, False], ids=["after the change", "before the next"])
@pytest.mark.parametrize("step", steps_of_a_checkpoint())
def test_a_run_killed_at_its_checkpoint_needs_no_hand(step, at_once, monkeypatch):
    desk = build(interval=1)
    compact(desk, 2)
    desk.append("dt=1", "x", "y")
    rows = desk.world.rows_of("sales.events")
    desk.world.files.die_after(step, at_once)
    with pytest.raises(Killed):
        desk.compact()
    desk.world.files.revive()
    desk.world.files.expire_locks()
    assert desk.world.rows_of("sales.events") == rows
    assert desk.recover().code is Exit.DONE
    assert read_afresh(desk) == read_entries_only(desk, monkeypatch)
    compact(desk, 1)
    assert max(checkpoints(desk)) == desk.log().next_version - 1
    assert read_afresh(desk) == read_entries_only(desk, monkeypatch)
    assert not [entry for entry in desk.world.files.tree(desk.control.runs) if entry.name == "checkpoint.json.gz"]


def calls_to_read_a_checkpoint(files):
    """How many Python functions are called to read one of a compaction of so many files."""
    desk = build(interval=1)
    desk.append("dt=1", *(f"f{nth}" for nth in range(files)))
    desk.compact()
    (file,) = checkpoints(desk).values()
    listed = store.list_log(desk.world.files, desk.control).entries
    lines = list(strict.lines_of(checkpoint.decompress(desk.world.files.read_bytes(file), "x"), "x"))
    calls = []
    sys.setprofile(lambda _frame, event, _what: calls.append(event) if event == "call" else None)
    try:
        found = checkpoint.read(lines, "x", listed)
    finally:
        sys.setprofile(None)
    assert len(found.runs[0].effects[0].before) == files + 3
    return len(calls)


def test_a_checkpoint_is_read_without_a_call_for_each_file():
    assert calls_to_read_a_checkpoint(300) < calls_to_read_a_checkpoint(100) + 100
