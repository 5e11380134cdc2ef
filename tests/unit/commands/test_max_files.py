"""One table of millions of files does not take the driver's memory, which all tables share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hivekeeper import jail, names
from hivekeeper.codes import Exit
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.reasons import Code
from hivekeeper.steps import observe
from hivekeeper.steps.run_directory import Run
from support import joined_desk
from support.builders import ROOT, a_table
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import DataFile
from support.late_directories import act_before_live_is_settled, nest
from support.world import World

UNITS = {f"dt={number}": [1000] * 10 for number in range(4)}


def a_desk(max_files, parameters=None, **settings):
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_000, parameters=parameters or {}), UNITS)
    world.files.namespace.advance(3_600_000)
    return Desk(world, max_files=max_files, backup_table=False, **settings)


def a_joined_desk(max_files):
    return joined_desk.a_desk(max_files=max_files)


def listed(monkeypatch, where="/dt="):
    """What is listed of live, or of other directories, call by call."""
    counts, look = [], FakeFiles.look

    def count(self, directories, *most):
        found = look(self, directories, *most)
        counts.append(sum(len(one.entries) for path, one in found.items() if where in path))
        return found

    monkeypatch.setattr(FakeFiles, "look", count)
    return counts


def code_of(result):
    (table,) = result.tables
    return table.problem.code if table.problem else None


@pytest.mark.parametrize("command", ["analyze", "compact", "backup"])
def test_a_table_with_too_many_files_is_refused_before_all_are_listed(command, monkeypatch):
    monkeypatch.setattr(observe, "LOOK_AT_FIRST", 1)
    monkeypatch.setattr(observe, "ENTRIES_AT_ONCE", 10)
    desk, counts = a_desk(25), listed(monkeypatch)
    result = getattr(desk, command)()
    assert (code_of(result), result.code) == (Code.TOO_MANY_FILES, Exit.REFUSED)
    assert sum(counts) <= 30
    assert desk.run_directories() == []


def test_a_directory_with_too_many_files_is_not_listed_to_its_end(monkeypatch):
    desk, counts = a_desk(5), listed(monkeypatch)
    assert code_of(desk.compact(where="dt = '1'")) is Code.TOO_MANY_FILES
    assert sum(counts) == 6


def test_those_are_not_counted_that_are_not_selected():
    desk = a_desk(25)
    assert outcomes(desk.compact(where="dt < '2'")) == {"dt=0": "swapped", "dt=1": "swapped"}


def test_as_many_as_are_allowed_are_listed():
    assert len(outcomes(a_desk(40).compact())) == 4


def test_those_beside_a_closed_directory_are_counted_once():
    """What may not be listed is found by halves, each of which is listed again."""
    desk = a_desk(30)
    desk.world.files.namespace.unreadable.add(desk.live("dt=3"))
    assert len(outcomes(desk.compact())) == 4
    desk = a_desk(29)
    desk.world.files.namespace.unreadable.add(desk.live("dt=3"))
    assert code_of(desk.compact()) is Code.TOO_MANY_FILES


@pytest.mark.parametrize("command", ["verify", "rollback"])
def test_files_that_came_after_a_run_are_counted(command):
    desk = a_desk(45)
    desk.compact()
    for number in range(45):
        desk.world.add_file(f"{desk.live('dt=1')}/{number}.parquet", [str(number)])
    result = getattr(desk, command)()
    assert (code_of(result), result.code) == (Code.TOO_MANY_FILES, Exit.REFUSED)
    desk.settings = replace(desk.settings, max_files=1000)
    assert code_of(getattr(desk, command)()) is None


def test_what_was_recovered_is_told_although_the_table_has_too_many_files():
    desk = a_desk(45)
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    for number in range(45):
        desk.world.add_file(f"{desk.live('dt=2')}/{number}.parquet", [str(number)])
    (table,) = desk.compact().tables
    assert table.recovered != ()
    assert table.problem.code is Code.TOO_MANY_FILES


def test_files_that_came_to_a_unit_in_quarantine_are_not_listed_to_their_end_by_history(monkeypatch):
    desk = a_desk(45)
    desk.world.rows.fail = lambda _batch: "disk is full"
    for _ in range(3):
        desk.compact(where="dt = '1'")
        desk.world.files.namespace.advance(86_400_000)
    assert len(desk.history().tables[0].quarantined) == 1
    for number in range(100):
        desk.world.add_file(f"{desk.live('dt=1')}/{number}.parquet", [str(number)])
    counts = listed(monkeypatch)
    (table,) = desk.history().tables
    assert sum(counts) <= 46
    assert (len(table.log), table.quarantined, table.problem) == (3, (), None)


def put_many(desk, unit, number=400):
    """As whoever renames a directory of so many files to its place does at once."""
    for nth in range(number):
        desk.world.files.writer.add(f"{desk.live(unit)}/x{nth}.parquet", DataFile((str(nth),)), 10)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["stage", "/ready/u00002"], {"dt=0": "swapped", "dt=1": "given-up", "dt=2": "swapped", "dt=3": "swapped"}),
        (["/retired/u00001"], {"dt=0": "swapped", "dt=1": "given-up", "dt=2": "swapped", "dt=3": "swapped"}),
        (["/retired/u00002"], {"dt=0": "swapped", "dt=1": "put-back", "dt=2": "swapped", "dt=3": "swapped"}),
    ],
)
def test_files_that_come_during_a_run_are_not_listed_to_their_end(words, found, monkeypatch):
    desk, before = a_desk(45), a_desk(45).world.rows_of("sales.events")
    joined_desk.at(desk, words, lambda: put_many(desk, "dt=1"))
    monkeypatch.setattr(observe, "LOOK_AT_FIRST", 1)
    monkeypatch.setattr(observe, "ENTRIES_AT_ONCE", 10)
    counts = listed(monkeypatch)
    result = desk.compact()
    assert max(counts) <= 91
    assert outcomes(result) == found
    monkeypatch.undo()
    assert desk.world.rows_of(desk.table) == before + Counter(map(str, range(400)))


def test_files_that_came_after_a_swap_are_not_counted_to_their_end_for_the_metastore(monkeypatch):
    desk = a_desk(45)
    joined_desk.at(desk, ["/retired/u00004"], lambda: put_many(desk, "dt=1"))
    monkeypatch.setattr(observe, "LOOK_AT_FIRST", 1)
    monkeypatch.setattr(observe, "ENTRIES_AT_ONCE", 10)
    counts = listed(monkeypatch)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert max(counts) <= 91


def test_files_that_came_while_a_run_lay_killed_are_not_listed_to_their_end(monkeypatch):
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", "/ready/u00001 "], lambda: desk.compact(where="dt = '1'"))
    put_many(desk, "dt=1")
    counts = listed(monkeypatch)
    assert code_of(desk.recover()) is Code.CHANGED_MEANWHILE
    assert max(counts) <= 91
    monkeypatch.undo()
    desk.settings = replace(desk.settings, max_files=1000)
    assert code_of(desk.recover()) is None
    assert desk.world.rows_of(desk.table) == before + Counter(map(str, range(400)))


def put_many_in_joined(desk):
    put_many(desk, "dt=1")
    joined_desk.replace_one(desk)


def put_many_then_compact(desk):
    """The files that a join took by mistake are not put back then."""
    joined_desk.at(desk, ["concat", "/dt=1/part"], lambda: put_many_in_joined(desk))
    desk.compact(where="dt = '1'")


def put_many_beside_the_copies(desk):
    joined_desk.kill_in_put_back(desk, ["rename_exact", "/taken/"], lambda: desk.compact(where="dt = '1'"))
    put_many(desk, "dt=1")


def overwrite_with_many(desk):
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    for name in joined_desk.files_of(desk):
        desk.world.files.writer.delete(desk.live(f"dt=1/{name}"))
    put_many(desk, "dt=1")


@pytest.mark.parametrize("put", [put_many_then_compact, put_many_beside_the_copies, overwrite_with_many])
def test_files_that_come_to_a_join_are_not_listed_to_their_end(put, monkeypatch):
    desk = joined_desk.a_desk(max_files=20)
    before = set(joined_desk.rows(desk))
    counts = listed(monkeypatch)
    put(desk)
    assert code_of(desk.recover()) is Code.CHANGED_MEANWHILE
    assert max(counts) <= 41
    monkeypatch.undo()
    desk.settings = replace(desk.settings, max_files=1000)
    assert code_of(desk.recover()) is None
    assert set(map(str, range(400))) <= set(joined_desk.rows(desk))
    assert put is overwrite_with_many or before - {joined_desk.SMALL[1]} <= {*joined_desk.rows(desk), *joined_desk.rows_aside(desk)}


@pytest.mark.parametrize("words", [["rename_exact", "/ready/u00002 "], ["/retired/u00003"], ["entry.json"]])
def test_a_run_is_recovered_although_max_files_is_lower_by_now(words):
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    desk.kill_before(words, desk.compact)
    desk.settings = replace(desk.settings, max_files=3)
    (table,) = desk.recover().tables
    assert table.recovered != ()
    assert desk.run_directories() != []
    assert desk.world.rows_of(desk.table) == before


@pytest.mark.parametrize("words", [["rename_exact", "/restoring/u00002 "], ["entry.json"]])
def test_a_rollback_is_recovered_although_max_files_is_lower_by_now(words):
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    desk.compact()
    desk.kill_before(words, desk.rollback)
    desk.settings = replace(desk.settings, max_files=3)
    (table,) = desk.recover().tables
    assert table.recovered != ()
    assert desk.world.rows_of(desk.table) == before


def test_a_partition_that_discovery_dropped_comes_back_although_max_files_is_lower_by_now():
    desk = a_desk(45, parameters={"discover.partitions": "true"})
    desk.kill_before(["rename_exact", "/ready/u00002 "], desk.compact)
    desk.world.catalog.drop_partition("sales.events", "dt=1")
    desk.settings = replace(desk.settings, max_files=3)
    assert desk.recover().tables[0].recovered != ()
    assert "dt=1" in desk.world.catalog.partitions["sales.events"]


@pytest.mark.parametrize(
    ("a_desk", "words"),
    [
        (a_desk, ["/retired/u00001"]),
        (a_joined_desk, ["certificates"]),
        (a_joined_desk, ["rename_exact", "/ready/u00001/"]),
        (a_joined_desk, ["concat", "/dt=1/part"]),
    ],
)
def test_a_run_that_was_killed_before_its_exchange_is_recovered_however_many_files_came(a_desk, words, monkeypatch):
    desk = a_desk(20)
    before = desk.world.rows_of(desk.table)
    desk.kill_before(words, lambda: desk.compact(where="dt = '1'"))
    put_many(desk, "dt=1")
    monkeypatch.setattr(observe, "LOOK_AT_FIRST", 1)
    monkeypatch.setattr(observe, "ENTRIES_AT_ONCE", 10)
    counts = listed(monkeypatch)
    (table,) = desk.recover().tables
    assert table.recovered != ()
    assert table.problem is None
    assert max(counts) <= 41
    monkeypatch.undo()
    assert desk.world.rows_of(desk.table) == before + Counter(map(str, range(400)))


@pytest.mark.parametrize("a_desk", [a_desk, a_joined_desk])
def test_who_has_to_look_at_a_run_is_told_that_max_files_helps(a_desk):
    desk = a_desk(20)
    desk.kill_before(["entry.json"], lambda: desk.compact(where="dt = '1'"))
    put_many(desk, "dt=1")
    (table,) = desk.recover().tables
    assert table.problem.code is Code.CHANGED_MEANWHILE
    assert "max_files" in table.problem.next


def test_files_that_come_while_late_ones_are_carried_over_are_not_listed_to_their_end(monkeypatch):
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)

    def come_late():
        put_many(desk, "dt=1", 2)
        joined_desk.at(desk, ["rename_exact", "/retired/u00001/x"], lambda: put_many(desk, "dt=1"))

    joined_desk.at(desk, ["/retired/u00001"], come_late)
    counts = listed(monkeypatch)
    assert code_of(desk.compact(where="dt = '1'")) is Code.CHANGED_MEANWHILE
    assert max(counts) <= 91
    monkeypatch.undo()
    desk.settings = replace(desk.settings, max_files=1000)
    assert code_of(desk.recover()) is None
    assert desk.world.rows_of(desk.table) == before + Counter([*map(str, range(400)), "0", "1"])


def test_files_that_come_while_a_cleanup_moves_late_ones_to_live_are_not_listed_to_their_end(monkeypatch):
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    desk.compact(where="dt = '1'")
    (backup,) = desk.log().standing
    for nth in range(2):
        desk.world.add_file(names.join(desk.control.top, backup.place, f"x{nth}.parquet"), [str(nth)])
    joined_desk.at(desk, ["rename_exact", "/held/u00001/x"], lambda: put_many(desk, "dt=1"))
    counts = listed(monkeypatch)
    (kept,) = desk.cleanup(replace(desk.settings, min_age_ms=0)).tables[0].backups
    assert [why.code for _, why in kept.kept_units] == [Code.LATE_IN_BACKUP]
    assert max(counts) <= 91
    monkeypatch.undo()
    assert desk.world.rows_of(desk.table) == before + Counter([*map(str, range(400)), "0"])


@pytest.mark.parametrize("killed", [False, True])
def test_files_that_came_to_a_backup_are_not_listed_to_their_end_by_a_cleanup(killed, monkeypatch):
    """Whoever may write to a partition may write to what was one."""
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    desk.compact(where="dt = '1'")
    (backup,) = desk.log().standing
    for nth in range(400):
        desk.world.files.writer.add(names.join(desk.control.top, backup.place, f"x{nth}.parquet"), DataFile((str(nth),)), 10)
    settings = replace(desk.settings, min_age_ms=0)
    if killed:
        desk.kill_before(["rename_exact", "/held/u00001 "], lambda: desk.cleanup(settings))
    counts = listed(monkeypatch, "/u00001")
    result = desk.recover() if killed else desk.cleanup(settings)
    assert max(counts) <= 91
    if not killed:
        (kept,) = result.tables[0].backups
        assert [why.code for _, why in kept.kept_units] == [Code.CHANGED_MEANWHILE]
    monkeypatch.undo()
    assert backup.place in {effect.place for effect in desk.log().standing}
    desk.cleanup(replace(settings, max_files=1000))
    assert desk.world.rows_of(desk.table) == before + Counter(map(str, range(400)))


def test_files_that_come_while_a_committed_directory_is_lifted_are_not_listed_to_their_end(monkeypatch):
    desk = a_desk(45)

    def come(desk):
        nest(desk)
        joined_desk.at(desk, ["remove_empty", "/dt=1/attempt"], lambda: put_many(desk, "dt=1"))

    act_before_live_is_settled(desk, come, monkeypatch)
    counts = listed(monkeypatch)
    desk.compact(where="dt = '1'")
    assert len(counts) > 1
    assert max(counts) <= 91


def test_records_for_which_somebody_exchanges_millions_of_files_are_not_listed_to_their_end(monkeypatch):
    """The control directory was checked when the run began, which may be hours ago."""
    monkeypatch.setattr(jail, "MOST_ENTRIES", 50)
    desk = a_desk(45)
    before = desk.world.rows_of(desk.table)
    files, aside, theirs = desk.world.files, desk.live(".aside"), desk.live(".theirs")
    files.finds_by_id = False
    for nth in range(400):
        files.writer.add(f"{theirs}/log/x{nth}", DataFile(("x",)), 10)
    counts, look = [], FakeFiles.look

    def exchange_and_look(self, directories, *most):
        is_swapped = any(path.endswith("/retired/u00001/part-00000.parquet") for path in desk.world.picture())
        if is_swapped and desk.control.log in directories and files.stat(theirs):
            files.namespace.rename(desk.control.top, aside)
            files.namespace.rename(theirs, desk.control.top)
        found = look(self, directories, *most)
        counts.append(sum(len(one.entries) for one in found.values()))
        return found

    monkeypatch.setattr(FakeFiles, "look", exchange_and_look)
    result = desk.compact(where="dt = '1'")
    assert files.stat(theirs) is None
    assert max(counts) <= 51
    assert code_of(result) is Code.RECORDS_OF_ANOTHER
    monkeypatch.undo()
    files.namespace.rename(desk.control.top, theirs)
    files.namespace.rename(aside, desk.control.top)
    assert code_of(desk.recover()) is None
    assert desk.world.rows_of(desk.table) == before


# ---- files with long paths


def deep():
    """A table's directory, as deep as a metastore keeps one (4,000 characters)."""
    return "/".join([ROOT, *["d" * 250] * 15])


@pytest.mark.parametrize("command", ["compact", "backup"])
def test_with_long_paths_a_table_may_have_fewer_files(command, monkeypatch):
    """Each has its whole path here: where one of its characters is wide, 16 KB in place of the kilobyte that is counted."""
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_000, location=deep()), UNITS)
    world.files.namespace.advance(3_600_000)
    desk, counts = Desk(world, max_files=50, backup_table=False), listed(monkeypatch)
    assert code_of(getattr(desk, command)(where="dt = '1'")) is Code.TOO_MANY_FILES
    assert sum(counts) == 4
    desk.settings = replace(desk.settings, max_files=550)
    assert code_of(getattr(desk, command)()) is Code.TOO_MANY_FILES
    desk.settings = replace(desk.settings, max_files=560)
    assert code_of(getattr(desk, command)()) is None


def test_of_those_that_come_while_a_run_is_at_work_fewer_are_listed():
    run = SimpleNamespace(cluster=SimpleNamespace(most_listed=300))
    short, long = (SimpleNamespace(live=live, manifest=range(10), expected=range(1)) for live in (ROOT, deep()))
    assert Run.most_listed(run, [short]) == 300
    assert Run.most_listed(run, [short, long]) == 44
    assert Run.most_listed(run, iter([long])) == 22


def test_of_records_with_long_paths_fewer_are_listed(monkeypatch):
    monkeypatch.setattr(jail, "MOST_ENTRIES", 100)
    files, place = FakeFiles(), deep()
    files.make_directory(place)
    for number in range(10):
        files.write_new(f"{place}/{number}", "")
    with pytest.raises(NeedsInvestigation, match="more than 7 entries"):
        jail.confine_files(files).look([place])
