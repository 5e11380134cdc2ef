"""history on the fakes: what runs did, which files a run removed and added, which files the log knows at a version."""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from support import joined_desk
from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    return world


@pytest.fixture
def desk(world):
    return Desk(world)


def operations(result):
    return [(entry.operation, entry.run) for entry in result.tables[0].log]


def test_every_run_is_listed_oldest_first_with_its_backup(desk):
    desk.compact()
    desk.backup()
    desk.pin(desk.runs[0])
    desk.rollback(where="dt = '1'")
    result = desk.history()
    assert result.code is Exit.DONE
    assert operations(result) == list(zip(("compact-swap", "backup", "pin", "rollback"), desk.runs))
    found = {one.backup.run: (one.state.code, len(one.backup.effects), one.backup.pinned) for one in result.tables[0].backups}
    assert found == {desk.runs[0]: ("there", 1, True), desk.runs[1]: ("there", 0, False), desk.runs[3]: ("there", 1, False)}
    assert f"pins {desk.runs[0]}" in screen.render(result, width=200)


def test_a_cleanup_shows_when_it_began_and_what_it_left(desk):
    desk.compact()
    desk.cleanup()
    result = desk.history()
    assert [entry.finished for entry in result.tables[0].log] == [True, False, True]
    assert result.tables[0].backups == ()
    lines = screen.render(result).splitlines()
    assert [line.rstrip().endswith("begun") for line in lines if "cleanup" in line] == [True, False]


def test_where_chooses_what_is_about_partitions(desk):
    desk.compact()
    desk.rollback(where="dt = '2'")
    desk.pin(desk.runs[0])
    (one,) = desk.history(where="dt = '1'").tables
    assert [(entry.run, [unit.partition for unit in entry.units]) for entry in one.log] == [(desk.runs[0], ["dt=1"])]
    (shown,) = one.backups
    assert (shown.backup.run, [effect.partition for effect in shown.backup.effects]) == (desk.runs[0], ["dt=1"])
    (changed,) = desk.history(files_of=desk.runs[0], where="dt = '2'").tables[0].changes
    assert changed.partition == "dt=2"
    assert desk.history(where="dt = '9'").tables[0].log == ()


def test_the_files_of_one_run_are_those_it_took_and_those_it_put(desk):
    desk.compact()
    (first, second) = desk.history(files_of=desk.runs[0]).tables[0].changes
    assert [file.name for file in first.before] == [f"part-{n:05d}.parquet" for n in range(3)]
    assert [desk.runs[0] in file.name for file in first.after] == [True]
    shown = screen.render(desk.history(files_of=desk.runs[0]))
    assert f"  dt=1: old files in runs/{desk.runs[0]}/retired/u00001" in shown
    assert "    - part-00000.parquet  1000 B" in shown
    assert second.partition == "dt=2"


def test_of_joined_files_it_is_said_where_they_begin():
    """tests/faults/test_joined.py reads them there."""
    desk = joined_desk.a_desk()
    desk.compact()
    result = desk.history(files_of=desk.runs[0])
    (change,) = (one for one in document.build(result)["tables"][0]["changes"] if one["partition"] == "dt=1")
    file, begin = (change["inside"][key] for key in ("file", "begin"))
    assert file == change["added"][0]["name"]
    assert 0 < begin < begin + sum(removed["bytes"] for removed in change["removed"]) < change["added"][0]["bytes"]
    assert f"  dt=1: old files inside {file}, one behind the other from byte {begin} on" in screen.render(result)


def test_of_a_run_that_changed_no_file_it_is_said(desk):
    desk.compact()
    desk.pin(desk.runs[0])
    assert screen.render(desk.history(files_of=desk.runs[1])).endswith("changed no file")


def test_at_a_version_the_files_and_the_tombstones_of_the_log_are_shown(desk):
    desk.compact()
    desk.rollback()
    compacted, rolled_back = (desk.history(at=version).tables[0].files for version in (0, 1))
    assert (len(compacted.files), len(compacted.tombstones)) == (2, 6)
    assert (len(rolled_back.files), len(rolled_back.tombstones)) == (6, 2)
    assert "sales.events: 2 files, 6 tombstones" in screen.render(desk.history(at=0))
    desk.cleanup()
    assert len(desk.history(at=desk.log().next_version - 1).tables[0].files.tombstones) == 0


@pytest.mark.parametrize("version", [1, 99])
def test_a_version_out_of_range_is_refused(desk, version):
    desk.compact()
    result = desk.history(at=version)
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN


def test_a_version_of_a_table_without_a_log_is_refused(desk):
    result = desk.history(at=0)
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN


def test_an_unknown_run_is_refused(desk):
    desk.compact()
    result = desk.history(files_of="20990101t000000z-ffff")
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NO_SUCH_RUN
    assert "hivekeeper history --table sales.events" in result.tables[0].problem.next


def test_a_table_without_a_log_has_no_runs(desk, world):
    steps = world.files.steps
    result = desk.history()
    assert (result.code, result.tables[0].log) == (Exit.DONE, ())
    assert screen.render(result) == "sales.events: no runs"
    assert world.files.steps == steps


def test_a_recovered_run_says_by_whom(desk):
    desk.kill_before(["log/"], desk.compact)
    desk.recover()
    (entry,) = desk.history().tables[0].log
    assert (entry.run, entry.recovered_by) == (desk.runs[0], desk.runs[1])
    assert f"recovered by {desk.runs[1]}" in screen.render(desk.history(), width=200)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_ids_of_runs_stay_whole_in_the_columns_of_a_narrow_terminal(desk, width):
    desk.compact()
    desk.rollback(where="dt = '1'")
    lines = screen.render(desk.history(), width=width).splitlines()
    assert [sum(run in line for line in lines) for run in desk.runs[:2]] == [2, 2]


@pytest.mark.parametrize("width", [80, 120])
def test_ids_of_runs_stay_whole_in_the_notes_too(desk, width):
    desk.compact()
    desk.pin(desk.runs[0])
    assert f"pins {desk.runs[0]}" in screen.render(desk.history(), width=width)


def test_the_names_of_backup_tables_stay_whole(desk):
    desk.compact()
    assert desk.log().runs[0].backup_table in screen.render(desk.history(), width=120)


def test_a_log_of_one_run_that_swapped_nothing_is_listed_like_any_other(desk, world):
    world.rows.fail = lambda _batch: "the disk is full"
    desk.compact()
    shown = screen.render(desk.history())
    assert "compact-swap" in shown
    assert "2 failed" in shown


def test_history_writes_nothing(desk, world):
    desk.compact()
    picture, steps = world.picture(), world.files.steps
    desk.history()
    desk.history(files_of=desk.runs[0])
    desk.history(at=0)
    assert (world.picture(), world.files.steps) == (picture, steps)


COMMANDS = {
    "verify": lambda desk: desk.verify(),
    "history": lambda desk: desk.history(),
    "history of a version": lambda desk: desk.history(at=0),
    "cleanup": lambda desk: desk.cleanup(),
    "cleanup, dry": lambda desk: desk.cleanup(dry_run=True),
    "rollback": lambda desk: desk.rollback(),
    "rollback, dry": lambda desk: desk.rollback(dry_run=True),
    "backup": lambda desk: desk.backup(),
    "pin": lambda desk: desk.pin(desk.runs[0]),
    "unpin": lambda desk: desk.pin(desk.runs[0], pinned=False),
    "recover": lambda desk: desk.recover(),
    "compact-swap": lambda desk: desk.compact(),
}


def without_lock(picture):
    return {path: content for path, content in picture.items() if not path.endswith("/_lock")}


def a_desk_with_work_to_do(desk):
    desk.compact()
    for row in "abc":
        desk.world.add_file(f"{desk.live('dt=1')}/{row}.parquet", [row])
    desk.world.files.namespace.advance(3_600_000)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_with_a_log_of_a_newer_version_every_command_refuses_and_changes_nothing(desk, world, command):
    a_desk_with_work_to_do(desk)
    path = names.join(desk.control.log, names.log_entry(1))
    world.files.writer.add(path, '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 3}}\n{"commitInfo": "of another shape"}\n')
    before = without_lock(world.picture())
    result = command(desk)
    assert result.code is Exit.REFUSED
    assert result.tables[0].problem.code is Code.NEWER_LOG
    assert without_lock(world.picture()) == before


@pytest.mark.parametrize("broken", ["", "{", '{"commitInfo": {}}', "[]"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_with_an_entry_that_cannot_be_read_every_command_asks_a_person_and_changes_nothing(desk, world, command, broken):
    a_desk_with_work_to_do(desk)
    world.files.writer.add(names.join(desk.control.log, names.log_entry(1)), broken)
    before = without_lock(world.picture())
    result = command(desk)
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code in (Code.UNREADABLE_LOG, Code.FOREIGN_RECORD)
    assert without_lock(world.picture()) == before


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_with_an_entry_missing_every_command_asks_a_person_and_changes_nothing(desk, world, command):
    a_desk_with_work_to_do(desk)
    desk.pin(desk.runs[0])
    world.files.writer.delete(names.join(desk.control.log, names.log_entry(0)))
    before = without_lock(world.picture())
    assert command(desk).code is Exit.INVESTIGATE
    assert without_lock(world.picture()) == before


def test_files_are_known_by_their_path_below_the_table(desk):
    desk.compact()
    files = desk.history(at=0).tables[0].files
    assert all(names.parent(path) in ("dt=1", "dt=2") for path in (*files.files, *files.tombstones))


def test_with_a_log_of_a_newer_version_a_dry_run_of_a_compaction_is_refused_too(desk, world):
    a_desk_with_work_to_do(desk)
    path = names.join(desk.control.log, names.log_entry(1))
    world.files.writer.add(path, '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 3}}\n')
    assert desk.compact(dry_run=True).code is Exit.REFUSED


HOUR_MS = 3_600_000


def test_the_old_files_of_each_partition_have_the_verdict_of_today(desk):
    desk.compact()
    desk.append("dt=1", "a", "b")
    desk.compact()
    desk.settings = Settings(min_quiet_ms=0, min_age_ms=0, keep_latest_versions=1)
    result = desk.history(partitions=True)
    found = [(one.effect.partition, one.backup.run, one.stay, one.why.code) for one in result.tables[0].old_files]
    first, second = desk.runs[:2]
    newest, gone = Code.AMONG_NEWEST, Code.NOT_KEPT
    assert found == [("dt=1", first, False, gone), ("dt=1", second, True, newest), ("dt=2", first, True, newest)]
    head, *_, last = screen.render(result, width=200).splitlines()
    assert head == "sales.events: old files of 2 partitions; a cleanup now: 1 go"
    assert last.endswith("it is the newest of its unit")
    (one,) = desk.history(partitions=True, where="dt = '2'").tables[0].old_files
    assert one.effect.partition == "dt=2"
    # And the cleanup does what was told.
    desk.cleanup(desk.settings)
    assert [one.stay for one in desk.history(partitions=True).tables[0].old_files] == [True, True]


def test_a_table_without_old_files_or_cleanups_says_so(desk):
    assert screen.render(desk.history(partitions=True)) == "sales.events: no old files"
    assert screen.render(desk.history(cleanups=True)) == "sales.events: no cleanups"


def test_cleanups_show_what_they_discarded_and_by_which_rules(desk):
    desk.compact()
    desk.cleanup(Settings(min_age_ms=0, keep_for_ms=HOUR_MS))
    desk.world.wait(2 * HOUR_MS)
    desk.cleanup(Settings(min_age_ms=0, keep_for_ms=HOUR_MS))
    result = desk.history(cleanups=True)
    (done,) = result.tables[0].cleanups
    assert (done.run, len(done.discarded), done.discarded_files, done.discarded_bytes) == (desk.runs[2], 2, 6, 6000)
    told = screen.render(result, width=200)
    assert "min_age 0s, keep_for 1h" in told
    assert "5.9 KiB" in told


def test_rules_of_which_cleanup_refuses_one_have_no_verdicts(desk):
    desk.compact()
    desk.settings = Settings(min_quiet_ms=0, min_age_ms=7 * 24 * HOUR_MS, keep_for_ms=24 * HOUR_MS)
    result = desk.history(partitions=True)
    assert (result.code, result.tables[0].problem.code) == (Exit.USAGE, Code.WRONG_CONFIGURATION)
    assert result.tables[0].old_files is None
    assert desk.history().code is Exit.DONE
