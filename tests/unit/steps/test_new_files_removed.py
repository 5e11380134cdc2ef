"""Somebody removes what an exchange has put into live before the log has the run, and puts nothing in its place: the only rows of the unit
are in the backup then.
"""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from support.desk import desk_by, outcomes
from support.joined_desk import at
from unit.commands.test_made_by_the_metastore_in_a_gap import COLUMNS

RUNS = pytest.mark.parametrize("command", ["swap", "rollback"])


def make(columns, command="swap"):
    """A desk, its unit's directory, and the command that exchanges it."""
    desk = desk_by(columns, backup_table=False)
    live = desk.live("dt=1" if columns else "")
    if command == "rollback":
        desk.compact()
    run = desk.rollback if command == "rollback" else desk.compact
    return desk, live, run


def after_the_exchange(desk, live, act):
    """As soon as files are in live again after it was away. A writer has made it in the gap, so there is still something to do then."""
    space, seen = desk.world.files.namespace, []

    def look(_):
        if space.find(live) is None:
            if not seen:
                space.make_directory(live)
            seen.append(True)
        elif seen and any(not one.is_dir for _, one in space.walk(live)):
            desk.world.files.before_step = None
            act()

    desk.world.files.before_step = look


def remove(desk, live):
    desk.world.files.writer.delete(live)


def empty(desk, live):
    for name in list(desk.world.files.namespace.directory(live).children):
        desk.world.files.writer.delete(f"{live}/{name}")


def assert_told_and_back(desk, live, rows, result):
    unit = desk.log().runs[-1].units[0]
    assert (unit.outcome.code, unit.reason_code) == ("misplaced", "removed-after")
    assert result.code is Exit.INVESTIGATE
    number = desk.log().runs[-1].run
    assert desk.log().pinned == {number}
    desk.cleanup()
    if desk.world.files.namespace.find(live) is None:
        desk.world.files.namespace.make_directory(live)
    assert desk.rollback(number).code is Exit.DONE
    assert desk.world.rows_below(live) == rows


@COLUMNS
@RUNS
@pytest.mark.parametrize("act", [remove, empty])
def test_it_is_told_and_the_old_files_stay_until_somebody_decides(columns, command, act):
    desk, live, run = make(columns, command)
    rows = desk.world.rows_below(live)
    after_the_exchange(desk, live, lambda: act(desk, live))
    assert_told_and_back(desk, live, rows, run())


@COLUMNS
@RUNS
@pytest.mark.parametrize("act", [remove, empty])
def test_so_it_is_while_the_run_lies_killed(columns, command, act):
    desk, live, run = make(columns, command)
    rows = desk.world.rows_below(live)
    desk.kill_before(["update_sizes"], run)
    act(desk, live)
    result = desk.recover()
    assert (result.tables[0].problem.code.code, "hivekeeper rollback" in result.tables[0].problem.next) == ("changed-in-outage", True)
    assert_told_and_back(desk, live, rows, result)
    assert desk.recover().code is Exit.DONE


@COLUMNS
def test_so_it_is_where_only_some_of_them_are_left(columns):
    desk, live, run = make(columns, "rollback")
    before = desk.world.rows_anywhere()
    desk.kill_before(["update_sizes"], run)
    desk.world.files.writer.delete(next(path for path in desk.world.picture() if path.startswith(f"{live}/") and path.endswith(".parquet")))
    assert desk.recover().code is Exit.INVESTIGATE
    assert desk.log().pinned
    desk.cleanup()
    assert desk.world.rows_anywhere().keys() == before.keys()
    unit = "dt=1" if columns else ""
    assert outcomes(desk.rollback(desk.runs[1], where="dt = '1'" if columns else None)) == {unit: "refused"}
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("rows", [["new"], []], ids=["rows", "none"])
@RUNS
def test_who_has_overwritten_it_is_not_told_of(command, rows):
    """Whatever they wrote: also a file without rows."""
    desk, live, run = make(["dt"], command)
    desk.kill_before(["update_sizes"], run)
    desk.world.overwrite(live, "other.parquet", rows, whole=True)
    assert desk.recover().code is Exit.DONE
    assert desk.log().runs[-1].units[0].outcome.code == "overwritten"
    assert not desk.log().pinned


@COLUMNS
def test_who_has_put_copies_in_their_place_has_removed_nothing(columns):
    """As from a snapshot, after an accident: of a rollback's files the ids are known, and copies have other ones."""
    desk, live, run = make(columns, "rollback")
    desk.kill_before(["update_sizes"], run)
    rows = desk.world.rows_below(live)
    for path in [path for path in desk.world.picture() if path.startswith(f"{live}/") and path.endswith(".parquet")]:
        former = desk.world.files.namespace.find(path)
        desk.world.files.writer.delete(path)
        desk.world.add_file(path, former.content.rows, former.length)
    assert desk.world.rows_below(live) == rows
    assert desk.recover().code is Exit.DONE
    assert desk.log().runs[-1].units[0].outcome.code == "overwritten"
    assert not desk.log().pinned


@RUNS
def test_a_partition_that_was_dropped_with_its_files_is_that(command):
    desk, live, run = make(["dt"], command)
    desk.kill_before(["update_sizes"], run)
    desk.world.catalog.drop_partition(desk.table, "dt=1")
    desk.world.files.writer.delete(live)
    desk.recover()
    assert desk.log().runs[-1].units[0].reason_code == "dropped"
    assert not desk.log().pinned


def test_who_overwrites_it_just_then_may_need_a_moment():
    desk, live, run = make(["dt"])
    writer = desk.world.files.writer

    def act():
        writer.delete(live)
        at(desk, ["update_sizes"], lambda: desk.world.add_file(f"{live}/new.parquet", ["new"]))

    after_the_exchange(desk, live, act)
    assert outcomes(run()) == {"dt=1": "overwritten", "dt=2": "swapped"}
    assert not desk.log().pinned
