"""Old entries of the log go, and nothing that a command still needs goes with them."""

from __future__ import annotations

import random

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.plan import retention, rollback
from hivekeeper.reasons import Code
from hivekeeper.runlog import checkpoint, expiry, replay, store
from support.builders import a_table, read_log
from support.desk import EVERYTHING, Desk
from support.fakes.files import Killed
from support.world import World
from unit.runlog.test_checkpoint import STEPS, change, checkpoints, compact, read_afresh, repack

DAY_MS = 86_400_000


def build(interval=1, days=10):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world, checkpoint_interval=interval, log_retention_ms=days * DAY_MS, backup_table=False)


def entries(desk):
    return sorted(store.list_log(desk.world.files, desk.control).entries)


class Archive:
    """Every entry that there ever was."""

    def __init__(self, desk):
        self.desk = desk
        self.texts = {}

    def keep(self):
        for path, text in self.desk.world.files.contents(self.desk.control.log).items():
            version = names.log_version(names.base(path))
            if version is not None:
                self.texts.setdefault(version, text)

    @property
    def history(self):
        return read_log(self.texts)


def essence(history, now_ms):
    """What commands ask of a log, but for details of expired entries."""
    newest = {effect.partition: effect for effect in history.effects}
    standing = {effect.key for effect in history.standing}
    stacks = rollback.read_stacks(history, history.table_id)
    return {
        "runs": [(run.version, run.run, run.operation, run.timestamp_ms, run.run_key, run.exit_code, run.finished) for run in history.runs],
        "standing": history.standing,
        "records": [run.run for run in history.records],
        "pinned": history.pinned & {run for run, _ in standing},
        "finished": history.finished,
        "next": history.next_version,
        "table": history.table_id,
        "live": {name: effect.after for name, effect in newest.items() if effect.key not in {each.undoes for each in history.effects}},
        "verdicts": retention.judge_backups(history, lambda _: Settings(min_age_ms=DAY_MS, keep_latest_versions=2), now_ms),
        "undo": {name: [one.key for one in stack.done if one.key in standing] for name, stack in stacks.items()},
        "tops": {name: [each[-1].key if each else None for each in (stack.done, stack.undone)] for name, stack in stacks.items()},
        "verified": history.verified & standing,
    }


# -- what goes


def test_entries_older_than_the_retention_go_with_the_checkpoint_after_the_one_that_marks_them():
    desk = build(days=2)
    for _ in range(3):
        compact(desk, 1)
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    compact(desk, 1)
    assert entries(desk) == [0, 1, 2, 3, 4, 5]
    assert [run.expired for run in read_afresh(desk).runs] == [True] * 5 + [False]
    compact(desk, 1)
    assert entries(desk) == [5, 6]
    assert [run.expired for run in read_afresh(desk).runs] == [True] * 5 + [False] * 2


@pytest.mark.parametrize("needed", ["a backup", "a pinned backup", "a record"])
def test_an_entry_stays_while_its_backup_or_record_exists(needed):
    desk = build(days=2)
    desk.backup() if needed == "a record" else compact(desk, 1)
    if needed == "a pinned backup":
        desk.pin(desk.runs[0])
    compact(desk, 2)
    if needed != "a backup":
        desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=1))
    before = entries(desk)
    desk.world.files.namespace.advance(30 * DAY_MS)
    compact(desk, 3)
    assert entries(desk)[: len(before)] == before
    assert not any(run.expired for run in read_afresh(desk).runs)


def test_a_rollback_keeps_what_it_undid():
    desk = build(days=2)
    compact(desk, 1)
    desk.rollback()
    desk.world.files.namespace.advance(30 * DAY_MS)
    compact(desk, 3)
    assert entries(desk)[:2] == [0, 1]
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(30 * DAY_MS)
    compact(desk, 3)
    assert entries(desk)[0] > 1


def test_the_newest_entry_never_goes():
    desk = build(days=0)
    compact(desk, 1)
    desk.cleanup(EVERYTHING)
    for _ in range(4):
        desk.backup()
        desk.cleanup(EVERYTHING)
    assert entries(desk)[-1] == desk.log().next_version - 1


@pytest.mark.parametrize(
    ("spans", "count", "left"),
    [([], 5, 5), ([(1, 6)], 5, 1), ([(1, 4)], 5, 5), ([(3, 6), (1, 3)], 5, 1), ([(1, 3), (3, 6)], 5, 1), ([(0, 1)], 1, 0)],
)
def test_no_pair_is_parted(spans, count, left):
    assert expiry._before_none(spans, count) == left


# -- what stays


def walk(desk, dice):
    """Commands in any order, then some after which old entries can go."""
    for _ in range(30):
        yield STEPS[dice.choice([*STEPS, "cleanup", "cleanup", "compact"])]
    for run in sorted(desk.log().pinned):
        yield lambda desk, _, run=run: desk.pin(run, pinned=False)
    yield lambda desk, _: desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(30 * DAY_MS)
    for _ in range(6):
        yield STEPS["compact"]


@pytest.mark.repeating
@pytest.mark.parametrize("seed", range(10))
def test_whatever_commands_ask_of_a_log_is_answered_as_with_all_entries(seed):
    dice = random.Random(seed)
    desk = build(interval=dice.choice([1, 2, 3]), days=dice.choice([0, 1, 3]))
    archive = Archive(desk)
    for step in walk(desk, dice):
        step(desk, dice)
        archive.keep()
        desk.world.files.namespace.advance(dice.randrange(2 * DAY_MS))
        now_ms = desk.world.cluster.clock.now_ms()
        history = read_afresh(desk)
        assert essence(history, now_ms) == essence(archive.history, now_ms)
        kept = [run.version for run in history.runs if not run.expired]
        for version in {kept[0], kept[-1], dice.choice(kept)} if kept else ():
            told = replay.files_at((f"{number}", archive.texts[number].split("\n")) for number in range(version + 1))
            assert store.read_files_at(desk.world.cluster, desk.control, version) == told
    assert len(entries(desk)) < desk.log().next_version


def a_desk_with_expired_entries():
    desk = build(days=2)
    for _ in range(3):
        compact(desk, 1)
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    compact(desk, 3)
    assert entries(desk)[0] == 5
    return desk


def test_a_unit_that_is_what_an_expired_run_made_of_it_is_left_alone():
    desk = a_desk_with_expired_entries()
    kept = [(run.version, effect.partition) for run in read_afresh(desk).runs if run.expired for effect in run.effects]
    assert kept == [(0, "dt=2"), (2, "dt=1")]


def test_a_log_with_expired_entries_is_forgotten_like_any_other():
    desk = a_desk_with_expired_entries()
    desk.cleanup(EVERYTHING)
    assert desk.forget().code is Exit.DONE
    assert not [path for path in desk.world.picture() if ".hivekeeper" in path]


@pytest.mark.parametrize("ask", ["files", "at", "verify", "rollback"])
def test_who_asks_for_details_of_an_expired_entry_is_told(ask):
    desk = a_desk_with_expired_entries()
    rows = desk.world.rows_of("sales.events")
    answer = {
        "files": lambda: desk.history(files_of=desk.runs[1]),
        "at": lambda: desk.history(at=1),
        "verify": lambda: desk.verify(desk.runs[1]),
        "rollback": lambda: desk.rollback(desk.runs[1]),
    }[ask]()
    (outcome,) = answer.tables
    assert (outcome.code, outcome.problem.code) == (Exit.REFUSED, Code.NO_SUCH_RUN)
    assert "older than log_retention" in outcome.problem.what
    assert desk.world.rows_of("sales.events") == rows
    assert desk.history(at=5).code is Exit.DONE


def test_the_run_key_of_an_expired_run_is_still_known():
    desk = build(days=2)
    desk.run_key = "monday"
    compact(desk, 1)
    desk.run_key = ""
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    compact(desk, 3)
    assert entries(desk)[0] > 1
    assert read_afresh(desk).find_key("monday").run == desk.runs[0]


@pytest.mark.parametrize("limit", [(checkpoint, "MOST_TEXT", 1000), (store, "MOST_RECORD_BYTES", 100)])
def test_a_checkpoint_that_could_not_be_read_again_is_not_written_and_no_entry_goes(limit, monkeypatch, caplog):
    desk = a_desk_with_expired_entries()
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    before, kept = checkpoints(desk), entries(desk)
    made = store.make_checkpoint

    def make_with_limit(*arguments):
        with monkeypatch.context() as small:
            small.setattr(*limit)
            return made(*arguments)

    monkeypatch.setattr(store, "make_checkpoint", make_with_limit)
    compact(desk, 3)
    assert (checkpoints(desk), entries(desk)[: len(kept)]) == (before, kept)
    assert "step=write-checkpoint failed" in caplog.text
    monkeypatch.undo()
    compact(desk, 2)
    assert entries(desk)[0] > kept[0]


def test_a_checkpoint_that_would_say_something_else_is_not_written(monkeypatch, caplog):
    desk = build(days=2)
    compact(desk, 2)
    lines_of = checkpoint.lines_of
    monkeypatch.setattr(checkpoint, "lines_of", lambda *arguments: (line for line in lines_of(*arguments) if '"before"' not in line))
    before = checkpoints(desk)
    compact(desk, 2)
    assert checkpoints(desk) == before
    assert "would not say what entry 0 says" in caplog.text


# -- when checkpoints are damaged


def test_with_one_of_the_two_checkpoints_damaged_nothing_is_missing():
    desk = a_desk_with_expired_entries()
    told = read_afresh(desk)
    for version in checkpoints(desk):
        desk = a_desk_with_expired_entries()
        change(desk, version, lambda content: content[:-1])
        assert read_afresh(desk).standing == told.standing
        compact(desk, 3)
        assert read_afresh(desk).next_version == told.next_version + 3


def copy_the_log(desk, change=lambda _version, text: text):
    """As distcp does: other ids and times."""
    for version, file in store.list_log(desk.world.files, desk.control).entries.items():
        text = desk.world.files.contents(desk.control.log)[file.path]
        desk.world.files.writer.delete(file.path)
        desk.world.files.writer.add(file.path, change(version, text), None)


def test_a_log_that_was_copied_is_read_with_what_is_left_of_its_expired_entries(caplog):
    desk = a_desk_with_expired_entries()
    told, before = read_afresh(desk), desk.history(at=6).tables[0].files
    copy_the_log(desk)
    found = read_afresh(desk)
    assert (found.standing, found.next_version, found.finished) == (told.standing, told.next_version, told.finished)
    assert [run.expired for run in found.runs] == [run.expired for run in told.runs]
    assert desk.history(at=6).tables[0].files == before
    compact(desk, 3)
    caplog.clear()
    assert read_afresh(desk).next_version == told.next_version + 3
    assert not caplog.text
    assert entries(desk)[0] >= 5


def test_a_log_in_which_other_entries_follow_is_not_completed_from_a_checkpoint():
    desk = a_desk_with_expired_entries()
    copy_the_log(desk, lambda version, text: text + " " * (version == 6))
    desk.world.cluster.log_entries.clear()
    assert desk.compact().code is Exit.INVESTIGATE


def test_a_checkpoint_ahead_of_the_log_is_left_alone():
    desk = a_desk_with_expired_entries()
    ahead = names.join(desk.control.log, names.checkpoint(99))
    desk.world.files.writer.add(ahead, b"of a log that was longer", None)
    compact(desk, 3)
    assert desk.world.files.stat(ahead) is not None


def test_with_both_damaged_the_log_is_not_trusted_and_nothing_is_touched():
    desk = a_desk_with_expired_entries()
    for version in checkpoints(desk):
        change(desk, version, lambda content: content[:-1])
    desk.world.cluster.log_entries.clear()
    desk.append("dt=1", "x", "y")
    rows = desk.world.rows_of("sales.events")
    (outcome,) = desk.compact().tables
    assert (outcome.code, outcome.problem.code) == (Exit.INVESTIGATE, Code.UNREADABLE_LOG)
    assert desk.world.rows_of("sales.events") == rows


def test_an_entry_that_is_missing_and_not_expired_is_missed():
    desk = a_desk_with_expired_entries()
    desk.world.files.writer.delete(names.join(desk.control.log, names.log_entry(5)))
    desk.world.cluster.log_entries.clear()
    assert desk.compact().code is Exit.INVESTIGATE


@pytest.mark.parametrize(
    "how",
    [
        lambda lines: [lines[0].replace('"expired":5', '"expired":99'), *lines[1:]],
        lambda lines: [lines[0].replace('"expired":5', '"expired":-1'), *lines[1:]],
        lambda lines: [lines[0], '{"base":{"files":[["x"]],"tombstones":[]}}', *lines[1:]],
        lambda lines: [lines[0], '{"base":{"files":[["x","1"]],"tombstones":[]}}', *lines[1:]],
        lambda lines: [lines[0], '{"base":{"files":[],"tombstones":[["x",1,2]]}}', *lines[1:]],
        lambda lines: [lines[0], '{"other":{}}', *lines[1:]],
    ],
)
def test_a_checkpoint_with_a_strange_base_is_not_used(how, caplog):
    desk = a_desk_with_expired_entries()
    newest = max(checkpoints(desk))
    told = read_afresh(desk)
    change(desk, newest, repack(how))
    assert read_afresh(desk).standing == told.standing
    assert names.checkpoint(newest) in caplog.text


@pytest.mark.repeating
def test_long_bases_are_cut_and_put_together_again(monkeypatch):
    monkeypatch.setattr(checkpoint, "FILES_OF_A_LINE", 1)
    test_whatever_commands_ask_of_a_log_is_answered_as_with_all_entries(3)


# -- killed


def steps_of_removal():
    desk = a_desk_with_expired_entries()
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    compact(desk, 1)
    desk.append("dt=1", "x", "y")
    seen, before = [], desk.world.files.steps
    desk.world.files.before_step = lambda what: seen.append((desk.world.files.steps - before, what))
    desk.compact()
    removing = [step for step, what in seen if "delete_file" in what and "/log/" in what]
    assert len(removing) >= 4
    return range(min(removing), max(removing) + 1)


@pytest.mark.repeating
@pytest.mark.parametrize("at_once", [True, False], ids=["after the change", "before the next"])
@pytest.mark.parametrize("step", steps_of_removal())
def test_a_run_killed_while_it_removes_entries_needs_no_hand(step, at_once):
    desk = a_desk_with_expired_entries()
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    archive = Archive(desk)
    compact(desk, 1)
    desk.append("dt=1", "x", "y")
    rows = desk.world.rows_of("sales.events")
    desk.world.files.die_after(step, at_once)
    with pytest.raises(Killed):
        desk.compact()
    desk.world.files.revive()
    desk.world.files.expire_locks()
    archive.keep()
    assert desk.world.rows_of("sales.events") == rows
    assert desk.recover().code is Exit.DONE
    standing = read_afresh(desk).standing
    compact(desk, 3)
    assert read_afresh(desk).standing[: len(standing)] == standing
    assert max(checkpoints(desk)) == desk.log().next_version - 1


def test_a_run_that_lost_the_lock_after_its_checkpoint_removes_nothing():
    """Another log may lie at these paths by now."""
    desk = a_desk_with_expired_entries()
    desk.cleanup(EVERYTHING)
    desk.world.files.namespace.advance(3 * DAY_MS)
    compact(desk, 1)
    desk.append("dt=1", "x", "y")
    removed = []

    def lose_the_lock(what):
        if "rename_exact" in what and "checkpoint" in what and "/log/" in what:
            desk.world.files.expire_locks()
        if "delete_file" in what and "/log/" in what:
            removed.append(what)

    before = entries(desk)
    desk.world.files.before_step = lose_the_lock
    result = desk.compact()
    assert (removed, set(before) <= set(entries(desk))) == ([], True)
    assert result.code is Exit.DONE
    desk.world.files.before_step = None
    compact(desk, 2)
    assert not set(before) <= set(entries(desk))
