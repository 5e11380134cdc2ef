"""The clock of the machine that a cleanup runs on, or the NameNode's, is wrong: nothing goes before its time by both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.reasons import Code
from support.contexts import a_context
from support.desk import EVERYTHING, desk_by
from support.joined_desk import at
from support.leftovers import DAY_MS, build, clean, drop, records, wait
from unit.commands.test_former_tables import old_files, reasons, take_place


class Wrong:
    """A clock that is ahead of the NameNode's."""

    def __init__(self, clock, ahead_ms):
        self._clock, self._ahead_ms = clock, ahead_ms

    def now_ms(self):
        return self._clock.now_ms() + self._ahead_ms

    def monotonic_ms(self):
        return self._clock.monotonic_ms()

    def sleep_ms(self, ms):
        self._clock.sleep_ms(ms)


def by_wrong_clock(desk, ahead_ms, settings, **more):
    cluster = replace(desk.world.cluster, clock=Wrong(desk.world.clock, ahead_ms))
    return clean_up(a_context(cluster, Selection(tables=(desk.table,)), "20260901t000000z-0000", settings, **more))


@pytest.mark.parametrize("days", [8, -8], ids=["the NameNode's is behind", "the NameNode's is ahead"])
def test_young_backups_stay(days):
    desk = build("partitioned")
    before = old_files(desk)
    result = by_wrong_clock(desk, days * DAY_MS, Settings())
    assert reasons(result) == {Code.TOO_YOUNG if days > 0 else Code.DATE_IN_FUTURE}
    assert before and old_files(desk) == before
    assert not [path for path in desk.world.files.contents(desk.control.top) if path.endswith(".part")]


@pytest.mark.parametrize("seconds", [0, 50, -50])
def test_old_ones_go_by_clocks_that_differ_by_less_than_a_minute(seconds):
    desk = build("partitioned")
    wait(desk, 8)
    by_wrong_clock(desk, seconds * 1000, Settings())
    assert old_files(desk) == []


def test_so_do_those_of_a_run_that_has_just_ended_where_no_age_is_asked_for():
    desk = build("partitioned")
    by_other = Wrong(desk.world.clock, 50_000)
    desk.append("dt=1", *"abc")
    desk.compact(cluster=replace(desk.world.cluster, clock=by_other))
    by_wrong_clock(desk, 50_000, EVERYTHING)
    assert old_files(desk) == []


def test_young_backups_stay_that_a_machine_has_written_whose_clock_was_behind():
    desk = desk_by([])
    desk.world.wait(9 * DAY_MS)
    desk.compact(cluster=replace(desk.world.cluster, clock=Wrong(desk.world.clock, -8 * DAY_MS)))
    before = old_files(desk)
    assert reasons(desk.cleanup(Settings(), dry_run=True)) == reasons(desk.cleanup(Settings())) == {Code.TOO_YOUNG}
    assert before and old_files(desk) == before


def test_those_of_a_former_table_stay_while_the_one_at_its_place_is_young():
    theirs = take_place(build("flat"), "sales.events")
    before = old_files(theirs)
    assert reasons(by_wrong_clock(theirs, 8 * DAY_MS, Settings(), former_tables=True)) == {Code.TOO_YOUNG}
    assert before and old_files(theirs) == before


def test_those_of_a_dropped_table_stay_as_long_as_keep_for_says():
    desk = build("flat")
    control, rules = desk.control, {"min_age_ms": DAY_MS, "keep_for_ms": 60 * DAY_MS}
    drop(desk)
    clean(desk, **rules)
    wait(desk, 2)
    before = [path for path in desk.world.files.contents(control.top) if "/retired/" in path]
    cluster = replace(desk.world.cluster, clock=Wrong(desk.world.clock, 60 * DAY_MS))
    clean_up_orphans(a_context(cluster, Selection(databases=("sales",)), "20260901t000000z-0000", Settings(**rules)))
    assert before and [path for path in desk.world.files.contents(control.top) if "/retired/" in path] == before


def look_while_the_namenodes_clock_is_wrong(desk, ahead_ms):
    """`cleanup --orphans` on a machine whose clock is right; both are, afterwards."""
    namespace = desk.world.files.namespace
    namespace.advance(ahead_ms)
    cluster = replace(desk.world.cluster, clock=Wrong(desk.world.clock, -ahead_ms))
    desk.runs.append(f"20260901t030304z-{len(desk.runs):04x}")
    result = clean_up_orphans(a_context(cluster, Selection(databases=("sales",)), desk.runs[-1], Settings()))
    namespace.advance(-ahead_ms)
    return records(result)


def backups_in(desk, top):
    return sorted(path for path in desk.world.files.contents(top) if "/retired/" in path)


@pytest.mark.parametrize("days", [-8, 8])
def test_a_table_counts_as_dropped_from_no_time_that_only_the_namenode_tells(days):
    """Its mark would be days older than it is, or a mark of a day ago."""
    desk = build("flat")
    top = desk.control.top
    drop(desk)
    before = backups_in(desk, top)
    if days > 0:
        assert records(clean(desk)).state is OrphanState.MARKED
        wait(desk, 1)
    told = look_while_the_namenodes_clock_is_wrong(desk, days * DAY_MS)
    assert told.state is OrphanState.FOUND
    assert "clock" in told.why
    assert records(clean(desk)).state is OrphanState.MARKED
    assert before and backups_in(desk, top) == before
    wait(desk, 8)
    assert records(clean(desk)).state is OrphanState.REMOVED


@pytest.mark.parametrize("seconds", [50, -50])
def test_a_mark_counts_by_clocks_that_differ_by_less_than_a_minute(seconds):
    desk = build("flat")
    drop(desk)
    assert look_while_the_namenodes_clock_is_wrong(desk, seconds * 1000).state is OrphanState.MARKED
    wait(desk, 8)
    assert look_while_the_namenodes_clock_is_wrong(desk, seconds * 1000).state is OrphanState.REMOVED


def test_a_mark_counts_where_the_namenode_takes_long_to_tell_its_time():
    desk = build("flat")
    drop(desk)
    at(desk, ["write_new.close", "_orphan.json.part"], lambda: desk.world.clock.sleep_ms(600_000))
    assert records(clean(desk)).state is OrphanState.MARKED


@pytest.mark.parametrize("seconds", [90, -90])
def test_what_is_left_of_dropped_tables_goes_by_clocks_that_differ_by_little_of_its_wait(seconds):
    """Kerberos allows five minutes, and in cluster mode any node's clock counts."""
    desk = build("flat")
    drop(desk)
    states = []
    for day in (0, 8):
        wait(desk, day)
        cluster = replace(desk.world.cluster, clock=Wrong(desk.world.clock, seconds * 1000))
        result = clean_up_orphans(a_context(cluster, Selection(databases=("sales",)), f"20260901t03030{day}z-0000", Settings()))
        states.append(records(result).state)
    assert states == [OrphanState.MARKED, OrphanState.REMOVED]
