"""A cleanup that takes hours, or waits for the end of a pause for as long: what others have done with the table, or with its backups, is
asked again before anything goes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup
from hivekeeper.commands.cleanup_orphans import clean_up_orphans
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable, NeverStops
from hivekeeper.reasons import Code
from hivekeeper.report.results import BackupState
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.hive_statements import Hive
from support.leftovers import SHAPES, backups_in, build, clean, drop_and_mark, wait
from support.world import World
from unit.commands.test_former_tables import take_place

HOURS_MS = 5 * 3_600_000
FIRST, SECOND = "before it asks the metastore", "before the first backup"
# How often a cleanup has looked by then whether it is to wait: when it takes a table it does so once more.
LOOKS = {FIRST: 2, SECOND: 3}


def pass_hours(world):
    world.clock.sleep_ms(HOURS_MS)


def carry_out(calls):
    for _ in calls:
        pass


class Paused(NeverStops):
    """Hours of a pause begin with one of the looks."""

    def __init__(self, world, look, act):
        self.world, self.left, self.act = world, look, act

    def why(self):
        self.left -= 1
        if self.left == 0:
            self.act()
            pass_hours(self.world)
        return ""


def clean_up(desk, look, act, is_orphan=False):
    cluster = replace(desk.world.cluster, stopping=Paused(desk.world, LOOKS[look] + (not is_orphan), act))
    command, selection = cleanup.clean_up, Selection(tables=(desk.table,))
    if is_orphan:
        command, selection = clean_up_orphans, Selection(databases=("sales",))
    result = command(a_context(cluster, selection, "20260901t000000z-0000", EVERYTHING))
    assert cluster.stopping.left <= 0
    return result


def after_the_first(desk, act):
    """Hours pass when the first backup goes, in which others act."""

    def before_step(what):
        if "delete_tree" in what and "/discarding/" in what:
            desk.world.files.before_step = None
            act()
            pass_hours(desk.world)

    desk.world.files.before_step = before_step


def codes(result):
    """Why tables, backups, or units, were not done."""
    backups = [backup for table in result.tables for backup in table.backups]
    told = [table.problem for table in result.tables] + [backup.why for backup in backups if backup.state is BackupState.KEPT]
    return {why.code for why in (*told, *(why for backup in backups for _, why in backup.kept_units)) if why}


# ---- a pause


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize(
    ("act", "look", "code", "exit_code"),
    [
        ("drop_table", FIRST, Code.NO_SUCH_TABLE, Exit.REFUSED),
        ("drop_table", SECOND, Code.NO_SUCH_TABLE, Exit.PARTIAL),
        ("drop_and_create", FIRST, Code.OF_FORMER_TABLE, Exit.DONE),
        ("drop_and_create", SECOND, Code.TABLE_CREATED_AGAIN, Exit.PARTIAL),
    ],
)
def test_the_only_copy_of_a_table_that_is_dropped_in_a_pause_stays(act, look, code, exit_code, shape):
    desk = build(shape)
    top = desk.control.top
    before = backups_in(desk, top)
    wait(desk, 30)
    result = clean_up(desk, look, lambda: carry_out(getattr(Hive(desk.world), act)(desk.table)))
    assert (codes(result), result.code) == ({code}, exit_code)
    assert (bool(before), backups_in(desk, top)) == (True, before)


@pytest.mark.parametrize("look", list(LOOKS))
def test_a_backup_that_a_partition_is_pointed_at_in_a_pause_stays(look):
    desk = build("partitioned")
    place = names.join(desk.control.top, desk.log().standing[0].place)
    act = lambda: desk.world.catalog.add_partition(desk.table, a_partition("dt=rescue", place))  # noqa: E731
    result = clean_up(desk, look, act)
    assert result.code is (Exit.DONE if look == FIRST else Exit.PARTIAL)
    # With the later one of its partition, which a rollback to it needs.
    left = {path.rpartition("/")[0] for path in backups_in(desk, desk.control.top)}
    assert (place in left, len(left)) == (True, 2)


@pytest.mark.parametrize("look", list(LOOKS))
def test_a_late_file_of_a_partition_that_moves_in_a_pause_stays_in_the_backup(look):
    """Nobody would read it in the former directory."""
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world, backup_table=False)
    assert desk.compact().code is Exit.DONE
    late = names.join(desk.control.top, desk.log().standing[0].place, "late.parquet")
    world.add_file(late, ["late"])
    elsewhere = f"{desk.live()}/dt=1_again"
    world.add_file(f"{elsewhere}/a.parquet", ["a"])
    wait(desk, 30)
    result = clean_up(desk, look, lambda: carry_out(Hive(world).set_location(desk.table, "dt=1", elsewhere)))
    assert (result.code, codes(result)) == (Exit.PARTIAL, {Code.LATE_IN_BACKUP})
    assert world.files.stat(late)


@pytest.mark.parametrize("look", list(LOOKS))
@pytest.mark.parametrize("shape", list(SHAPES))
def test_what_a_dropped_table_has_left_stays_when_it_comes_back_in_a_pause(shape, look):
    desk = build(shape)
    top, table, before = desk.control.top, desk.world.table(desk.table), backups_in(desk, desk.control.top)
    drop_and_mark(desk)
    back = lambda: desk.world.catalog.add_table(table, [])  # noqa: E731
    result = clean_up(desk, look, back, is_orphan=True)
    assert (codes(result), backups_in(desk, top)) == ({Code.RECORDS_NEEDED}, before)
    # The wait begins anew when it is dropped again.
    assert not desk.world.files.stat(names.join(top, "_orphan.json"))


# ---- hours


@pytest.fixture(params=list(SHAPES))
def desk(request):
    return build(request.param)


def rescue(desk, how, place):
    """Somebody of another database wants to read old files."""
    table = a_table(["dt"] if how == "partition" else [], name="rescue", create_time=88)
    table = replace(table, database="fin", location="hdfs://nn/warehouse/fin/rescue" if how == "partition" else place)
    return lambda: desk.world.catalog.add_table(table, [a_partition("dt=1", place)] if how == "partition" else [])


def last_place(desk, control):
    return names.join(control.top, desk.log().standing[-1].place)


def test_a_backup_that_somebody_makes_a_table_of_while_others_go_stays(desk):
    wait(desk, 30)
    place = last_place(desk, desk.control)
    after_the_first(desk, rescue(desk, "table", place))
    assert codes(desk.cleanup()) == {Code.SHARED_DIRECTORY}
    assert [path for path in backups_in(desk, desk.control.top) if path.startswith(place)]


@pytest.mark.parametrize("how", ["partition", "table"])
def test_old_files_of_a_former_table_that_somebody_shows_while_others_go_stay(desk, how):
    theirs = take_place(desk, "sales.events")
    place = last_place(theirs, theirs.control)
    after_the_first(theirs, rescue(theirs, how, place))
    assert theirs.cleanup(EVERYTHING, former=True).code is Exit.PARTIAL
    assert [path for path in backups_in(theirs, theirs.control.top) if path.startswith(place)]


@pytest.mark.parametrize("how", ["former", "orphans"])
def test_old_files_of_a_table_that_comes_back_while_others_go_stay(desk, how):
    """From a backup of the metastore, for example."""
    table, top = desk.world.table(desk.table), desk.control.top
    if how == "former":
        theirs = take_place(desk, "sales.events")
        table = replace(table, name="restored", location="hdfs://nn/elsewhere/restored")
    else:
        drop_and_mark(desk)
    before = backups_in(desk, top)
    after_the_first(desk, lambda: desk.world.catalog.add_table(table, []))
    result = theirs.cleanup(EVERYTHING, former=True) if how == "former" else clean(desk, min_age_ms=0)
    assert (result.code, codes(result)) == (Exit.PARTIAL, {Code.RECORDS_NEEDED})
    left = {path.rpartition("/")[0] for path in backups_in(desk, top)}
    assert len(left) == len({path.rpartition("/")[0] for path in before}) - 1


def test_a_backup_that_is_shown_while_it_is_compared_stays():
    desk = build("partitioned")
    wait(desk, 30)
    place = last_place(desk, desk.control)

    def before_step(what):
        if "rename_exact" in what and place in what:
            desk.world.files.before_step = None
            desk.world.catalog.add_partition(desk.table, a_partition("dt=rescue", place))
            pass_hours(desk.world)

    desk.world.files.before_step = before_step
    assert codes(desk.cleanup()) == {Code.BACKUP_SHOWN}
    assert {path.rpartition("/")[0] for path in backups_in(desk, desk.control.top)} == {place}


def test_a_backup_that_is_shown_while_a_namenode_does_not_answer_stays():
    desk = build("partitioned")
    wait(desk, 30)
    place = last_place(desk, desk.control)

    def before_step(what):
        if "rename_exact" in what and "/discarding/" in what and desk.world.files.namespace.find(place) is None:
            desk.world.files.before_step = None
            desk.world.files.fail_next("rename_exact", FilesUnavailable("safe mode"), done=True)
            desk.world.catalog.add_partition(desk.table, a_partition("dt=rescue", place))
            pass_hours(desk.world)

    desk.world.files.before_step = before_step
    assert codes(desk.cleanup()) == {Code.BACKUP_SHOWN}
    assert {path.rpartition("/")[0] for path in backups_in(desk, desk.control.top)} == {place}
