"""How a log is read: in calls of bounded size, and without the lists of files that are no longer needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.backup import back_up_table
from hivekeeper.commands.cleanup import clean_up_table
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.commands.compact_table import compact_table
from hivekeeper.commands.pin import pin_table
from hivekeeper.commands.recover import recover_table
from hivekeeper.commands.rollback import roll_back_table
from hivekeeper.commands.verify import verify_table
from hivekeeper.config.settings import Settings
from hivekeeper.errors import NeedsInvestigation, Refused
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.runlog import store, strict
from hivekeeper.runlog.history import History
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.fakes.files import PIECE
from support.world import World


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world)


def compact(desk, times):
    for nth in range(times):
        desk.append("dt=1", f"a{nth}", f"b{nth}")
        desk.compact()


def whole(desk):
    return store.read_whole(desk.world.cluster, desk.control, desk.log())


def lists(history):
    """Partition, files before and files after, of every effect."""
    return [(effect.partition, len(effect.before), len(effect.after)) for effect in history.effects]


def test_what_was_discarded_keeps_no_list_of_files_and_what_stands_keeps_both(desk):
    compact(desk, 2)
    everything = lists(desk.log())
    assert all(before and after for _, before, after in everything)
    # The runs are an hour apart.
    desk.cleanup(Settings(min_age_ms=0, keep_for_ms=60_000))
    first, second, third = desk.log().effects
    assert (first.whole, second.whole, third.whole) == (False, False, True)
    # The next compaction of dt=1 can be rolled back, and then live holds these files again.
    assert (first.partition, first.before, len(first.after)) == ("dt=1", (), 1)
    # No later run has compacted dt=2, so live may still hold its files.
    assert (second.partition, second.before, len(second.after)) == ("dt=2", (), 1)
    assert lists(whole(desk)) == everything


def test_what_was_rolled_back_keeps_no_list_and_the_rollback_does(desk):
    compact(desk, 1)
    desk.rollback()
    undone = [effect for effect in desk.log().effects if effect.operation == "compact-swap"]
    undoing = [effect for effect in desk.log().effects if effect.operation == "rollback"]
    assert [(effect.before, effect.after, effect.whole) for effect in undone] == [((), (), False)] * 2
    assert all(effect.whole and effect.before and effect.after for effect in undoing)
    assert all(effect.whole for effect in whole(desk).effects)


def test_the_lists_in_memory_do_not_grow_with_the_number_of_runs(desk):
    held = []
    for _ in range(4):
        compact(desk, 1)
        desk.cleanup(EVERYTHING)
        held.append(sum(before + after for _, before, after in lists(desk.log())))
    assert held == [held[0]] * 4


def test_a_backup_that_was_discarded_cannot_be_rolled_back_even_if_its_directory_is_there_again(desk):
    compact(desk, 1)
    places = [effect.place for effect in desk.log().effects]
    desk.cleanup(EVERYTHING)
    for place in places:
        desk.world.files.writer.make_directory(names.join(desk.control.top, place))
    before = desk.world.rows_of("sales.events")
    assert {unit.why.code for unit in desk.rollback().tables[0].units} == {Code.BACKUP_DISCARDED}
    assert desk.world.rows_of("sales.events") == before


class Counting:
    """Records which of a table's files are read."""

    def __init__(self, monkeypatch, files):
        self.lots, self.pieces = [], []
        read_texts, read_pieces = files.read_texts, files.read_pieces
        monkeypatch.setattr(files, "read_texts", lambda lot: self.lots.append([file.path for file in lot]) or read_texts(lot))
        monkeypatch.setattr(files, "read_pieces", lambda file: self.pieces.append(file.path) or read_pieces(file))


@pytest.mark.parametrize("lot", [1, 3000, 5000, 10_000, 2**23])
def test_no_call_brings_more_than_a_lot_and_the_history_is_the_same(desk, monkeypatch, lot):
    compact(desk, 4)
    desk.cleanup(Settings(min_age_ms=0, keep_latest_versions=1))
    told = desk.log()
    sizes = {entry.path: entry.length for entry in desk.world.files.look([desk.control.log])[desk.control.log].entries}
    monkeypatch.setattr(store, "LOT_BYTES", lot)
    counting = Counting(monkeypatch, desk.world.files)
    desk.world.cluster.log_entries.clear()
    assert desk.log() == told
    assert all(sum(sizes[path] for path in paths) <= lot for paths in counting.lots)
    assert all(sizes[path] > lot for path in counting.pieces)
    assert sorted([*counting.pieces, *(path for paths in counting.lots for path in paths)]) == sorted(sizes)
    assert max(sizes.values()) > 10 * PIECE
    desk.history(at=3)
    assert all(sum(sizes[path] for path in paths) <= lot for paths in counting.lots)


def test_an_entry_is_read_once_per_table_and_let_go_with_it(desk, monkeypatch):
    world = desk.world
    world.add_table(a_table(["dt"], name="ways"), {"dt=1": [1000] * 3})
    compact(desk, 2)
    counting = Counting(monkeypatch, world.files)
    world.cluster.log_entries.clear()
    desk.append("dt=1", "more", "and more")
    compact_swap(a_context(world.cluster, Selection(databases=("sales",)), desk._new_run(), Settings(min_quiet_ms=0)))
    read = [path for paths in counting.lots for path in paths if "/log/" in path]
    assert len(read) == len(set(read)) > 2
    assert world.cluster.log_entries == {}


@pytest.mark.parametrize("limit", ["MOST_RECORD_BYTES", "MOST_ENTRY_BYTES", "MOST_LINE"])
@pytest.mark.parametrize("command", ["compact", "rollback", "cleanup", "backup"])
def test_a_run_whose_records_could_not_be_read_again_is_not_begun(desk, monkeypatch, limit, command):
    if command in ("rollback", "cleanup"):
        desk.compact()
    before = desk.world.rows_of("sales.events")
    done = desk.log()
    monkeypatch.setattr(store, "why_not_readable", _with(monkeypatch, limit))
    (outcome,) = getattr(desk, command)().tables
    assert (outcome.problem.code, outcome.code) == (Code.NOT_RECORDABLE, Exit.REFUSED)
    assert (desk.world.rows_of("sales.events"), desk.log()) == (before, done)
    assert desk.runs[-1] not in desk.run_directories()
    monkeypatch.undo()
    assert getattr(desk, command)().code is Exit.DONE


def _with(monkeypatch, limit):
    """The check with one limit set too small for anything; the limit for reading stays."""
    check = store.why_not_readable

    def why(*arguments):
        with monkeypatch.context() as small:
            small.setattr(strict if limit == "MOST_LINE" else store, limit, 10)
            return check(*arguments)

    return why


def test_a_history_without_entries_is_whole(desk):
    assert store.read_whole(desk.world.cluster, desk.control, History()) == History()


def rename(desk, name):
    """Hive leaves the directory of an external table where it is."""
    catalog = desk.world.catalog
    catalog.tables[f"sales.{name}"] = replace(catalog.tables.pop(desk.table), name=name)
    catalog.partitions[f"sales.{name}"] = catalog.partitions.pop(desk.table)
    renamed = Desk(desk.world, f"sales.{name}")
    renamed.runs, renamed.settings = desk.runs, desk.settings
    return renamed


COMMANDS = {
    "pin": lambda desk, table: pin_table(desk._context(), table, desk.runs[0], True),
    "unpin": lambda desk, table: pin_table(desk._context(), table, desk.runs[0], False),
    "verify": lambda desk, table: verify_table(desk._context(), table, None, "digest"),
    "rollback": lambda desk, table: roll_back_table(desk._context(), table, None),
    "cleanup": lambda desk, table: clean_up_table(desk._context(settings=EVERYTHING), table),
    "backup": lambda desk, table: back_up_table(desk._context(), table),
    "compact": lambda desk, table: compact_table(desk._context(), table),
    "recover": lambda desk, table: recover_table(desk._context(), table),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["e.vents", "events\x7f"])
def test_a_table_that_no_entry_can_name_gets_none(name, command):
    """Hive 4 allows such names. An entry that cannot be read again would close the log to every command."""
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, cleanup_requires="verified")
    desk.compact()
    if command == "unpin":
        desk.pin(desk.runs[0])
    done = desk.log().next_version
    desk.append("dt=1", "more", "and more")
    if command == "recover":
        desk.kill_before(["rename_exact", "/ready/u"], desk.compact)
    renamed = rename(desk, name)
    if command == "verify":
        # What it says is right all the same.
        assert COMMANDS[command](renamed, world.table(renamed.table)).problem is None
    else:
        with pytest.raises((Refused, NeedsInvestigation), match="no record can hold this name"):
            COMMANDS[command](renamed, world.table(renamed.table))
    assert renamed.log().next_version == done
