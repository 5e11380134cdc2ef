"""--run-key: a retry of the same execution does nothing twice, and answers as the first attempt did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup, compact_swap, rollback
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.report import document, overview, screen
from support.builders import a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk, outcomes
from support.world import World

KEY = "0000012-260101000000001-oozie-oozi-W@compact"
COMMANDS = {"compact": compact_swap.compact_swap, "rollback": rollback.rollback, "cleanup": cleanup.clean_up}


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    return Desk(world)


def run(desk, command, key=KEY, **settings):
    """One attempt of a scheduler."""
    desk.settings = replace(desk.settings, min_age_ms=0, **settings)
    context = a_context(desk.world.cluster, Selection(tables=(desk.table,)), desk._new_run(), desk.settings)
    return COMMANDS[command](replace(context, run_key=key))


def picture(desk):
    return {path: content for path, content in desk.world.picture().items() if not path.endswith("/_lock")}


def prepare(desk, command):
    """Work for two attempts, if both did any."""
    desk.compact()
    desk.append("dt=1", "a", "b")
    if command != "compact":
        desk.compact()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_second_attempt_does_nothing_and_answers_as_the_first(desk, command):
    prepare(desk, command)
    first = run(desk, command)
    desk.append("dt=1", "c", "d")
    before = picture(desk)
    second = run(desk, command)
    assert picture(desk) == before
    (table,) = second.tables
    assert (second.code, table.run, table.log_version) == (first.code, desk.runs[-2], first.tables[0].log_version)
    assert second.code is Exit.DONE
    if command == "cleanup":
        desk.compact()
        before = picture(desk)
    assert run(desk, command, key="another").tables[0].answered_by is None
    assert picture(desk) != before


def test_a_retry_does_not_roll_back_the_run_before(desk):
    prepare(desk, "rollback")
    run(desk, "rollback")
    rows = desk.world.rows_of(desk.table)
    assert run(desk, "rollback").code is Exit.DONE
    # Without a key it would: the first compaction is the newest in force by now.
    assert outcomes(run(desk, "rollback", key="")) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}
    assert desk.world.rows_of(desk.table) == rows


def test_the_exit_code_is_that_of_then_though_the_log_has_only_what_was_done(desk):
    """A refused unit is not in the log."""
    desk.world.files.writer.make_directory(f"{desk.live('dt=2')}/_temporary")
    first = run(desk, "compact")
    assert first.code is Exit.PARTIAL
    desk.world.files.writer.delete(f"{desk.live('dt=2')}/_temporary")
    assert run(desk, "compact").code is Exit.PARTIAL


@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_an_attempt_that_was_killed_is_settled_and_its_retry_does_no_more(desk, command):
    prepare(desk, command)
    desk.kill_before(["/log/"], lambda: run(desk, command))
    rows = desk.world.rows_of(desk.table)
    second = run(desk, command)
    (table,) = second.tables
    assert [name for name, _ in table.recovered] == [desk.runs[-2]]
    assert (second.code, table.run, table.answered_by.recovered_by) == (Exit.DONE, desk.runs[-2], desk.runs[-1])
    assert desk.world.rows_of(desk.table) == rows
    assert desk.log().runs[-1].run == desk.runs[-2]


def test_an_attempt_that_was_killed_before_it_could_finish_answers_that_something_is_left(desk):
    desk.kill_before(["retired/u00002"], lambda: run(desk, "compact"))
    second = run(desk, "compact")
    assert (second.code, [unit.outcome.code for unit in second.tables[0].answered_by.units]) == (Exit.PARTIAL, ["swapped", "not-swapped"])
    assert outcomes(run(desk, "compact", key="tomorrow")) == {"dt=2": "swapped"}


@pytest.mark.parametrize("command", ["compact", "cleanup"])
def test_a_second_attempt_has_the_exit_code_of_the_first_that_settled_a_run_with_rows_astray(desk, command):
    desk.world.set_property(desk.table, **{"external.table.purge": "true"})
    desk.compact(where="dt = '2'")
    desk.kill_before(["/log/", "/entry.json "], desk.compact)
    # Hive deletes the new files.
    desk.world.catalog.drop_partition(desk.table, "dt=1")
    desk.world.files.writer.delete(desk.live("dt=1"))
    desk.append("dt=2", "a", "b", "c")
    first, second = run(desk, command), run(desk, command)
    assert second.tables[0].answered_by is not None
    assert (first.code, second.code) == (Exit.PARTIAL, Exit.PARTIAL)


def test_an_attempt_that_changed_nothing_may_be_made_again(desk):
    assert run(desk, "rollback").code is Exit.DONE
    assert outcomes(run(desk, "compact", key="k2")) == {"dt=1": "swapped", "dt=2": "swapped"}
    assert run(desk, "compact", key="k3").tables[0].answered_by is None


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_table_that_the_execution_drops_and_creates_again_is_done_and_a_renamed_one_is_not(desk, is_renamed):
    """A job that builds a table, compacts it and then fails is tried again as a whole."""
    run(desk, "compact")
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table).values()
    desk.world.catalog.drop_table(desk.table)
    changed = replace(table, name="events2") if is_renamed else replace(table, create_time=table.create_time + 60)
    desk.world.catalog.add_table(changed, partitions)
    desk.table = changed.full_name
    desk.append("dt=1", "a", "b")
    second = run(desk, "compact")
    assert (second.tables[0].answered_by is not None) == is_renamed
    assert outcomes(second) == ({} if is_renamed else {"dt=1": "swapped"})


def test_another_command_with_a_used_key_is_refused(desk):
    run(desk, "compact")
    before = picture(desk)
    result = run(desk, "rollback")
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.RUN_KEY_TAKEN)
    assert f"is that of run {desk.runs[0]}, a compact-swap" in result.tables[0].problem.what
    assert picture(desk) == before


def test_a_retry_begins_no_cleanup_either(desk):
    run(desk, "compact", cleanup_after=True, keep_for_ms=3_600_000)
    desk.world.wait(10 * 3_600_000)
    assert run(desk, "compact").tables[0].backups == ()
    assert desk.log().standing


def test_the_key_is_that_of_the_compaction_and_not_of_the_cleanup_after_it(desk):
    run(desk, "compact", cleanup_after=True)
    assert [(entry.operation, entry.run_key) for entry in desk.log().runs] == [("compact-swap", KEY), ("cleanup", ""), ("cleanup", "")]


def test_a_dry_run_asks_for_no_key(desk):
    run(desk, "compact")
    desk.append("dt=1", "a", "b")
    context = a_context(desk.world.cluster, Selection(tables=(desk.table,)), desk._new_run(), desk.settings, dry_run=True)
    assert outcomes(compact_swap.compact_swap(replace(context, run_key=KEY))) == {"dt=1": "planned"}


def test_the_answer_is_told(desk):
    desk.compact()
    run(desk, "rollback")
    again = run(desk, "rollback")
    (line,) = screen.render(again).splitlines()
    assert line.startswith(f"sales.events: run {desk.runs[1]} has this run key (rollback, ")
    assert line.endswith(": 2 rolled back); nothing was done again, the exit code is that of then: 0")
    (table,) = document.build(again)["tables"]
    assert (table["answered_by"]["run"], table["answered_by"]["run_key"], table["exit_code"]) == (desk.runs[1], KEY, 0)


def test_among_many_tables_it_is_one_line(desk):
    run(desk, "compact")
    again = run(desk, "compact")
    lines = overview.render_compaction(again)
    assert "has this run key" in lines[0]
    assert "1 done before" in lines[-1]
    assert screen.render(again).splitlines() == lines[:1]


def test_the_last_entry_of_a_cleanup_has_the_key_not_the_first(desk):
    """The first only says what is about to go."""
    desk.compact()
    run(desk, "cleanup")
    begin, end = desk.log().runs[-2:]
    assert (begin.finished, begin.run_key, end.finished, end.run_key) == (False, "", True, KEY)
    assert EVERYTHING.min_age_ms == desk.settings.min_age_ms
