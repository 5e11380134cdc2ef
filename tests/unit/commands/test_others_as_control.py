"""A directory of another table at the place of a control directory: whoever may rename it there may not be allowed to read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk
from support.leftovers import clean
from support.world import World

COMMANDS = {
    "compact-swap": lambda desk: desk.compact(),
    "backup": lambda desk: desk.backup(),
    "cleanup": lambda desk: desk.cleanup(replace(desk.settings, min_age_ms=0)),
    "rollback": lambda desk: desk.rollback(),
    "recover": lambda desk: desk.recover(),
    "forget": lambda desk: desk.forget(),
}


def set_up(has_records):
    """A table that everybody may read, and one that is closed, whose directory our user owns: its copy could not be given away."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    world.add_table(a_table(name="orders"), {"": [1000] * 3})
    desk = Desk(world)
    if has_records:
        assert desk.compact().code is Exit.DONE
        desk.append("dt=1", "a", "b", "c")
    orders = world.table("sales.orders").location
    node = world.files.namespace.find(orders)
    node.attributes = replace(node.attributes, mode=0o700)
    return desk, orders


def picture(desk, place):
    nodes = [(place, desk.world.files.namespace.find(place)), *desk.world.files.namespace.walk(place)]
    return {path[len(place) :]: (node.attributes, node.content) for path, node in nodes}


def put_in_place(desk, orders):
    writer, top = desk.world.files.writer, desk.control.top
    if desk.world.files.stat(top) is not None:
        writer.rename_into(top, names.parent(top) + "/.ours")
    writer.rename_into(orders, top)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("has_records", [True, False])
@pytest.mark.parametrize("also", ["", "log", "runs"], ids=["data alone", "a log", "runs"])
def test_it_gets_neither_the_lock_nor_records_nor_the_rights_of_the_table(command, has_records, also):
    """A project, or a database with tables of such names, has directories of these names."""
    desk, orders = set_up(has_records)
    if also:
        desk.world.files.make_directory(f"{orders}/{also}")
    before = picture(desk, orders)
    put_in_place(desk, orders)
    result = COMMANDS[command](desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert picture(desk, desk.control.top) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["log", "runs"])
@pytest.mark.parametrize("inside", ["inner/x", "payroll.parquet"])
def test_nor_does_one_that_has_nothing_else(command, name, inside):
    desk, _ = set_up(has_records=False)
    other = "hdfs://nn/apps/secret"
    desk.world.files.make_directory(names.parent(f"{other}/{name}/{inside}"))
    desk.world.files.write_new(f"{other}/{name}/{inside}", "x")
    for place in (other, f"{other}/{name}"):
        node = desk.world.files.namespace.find(place)
        node.attributes = replace(node.attributes, mode=0o700)
    before = picture(desk, other)
    put_in_place(desk, other)
    result = COMMANDS[command](desk)
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert picture(desk, desk.control.top) == before


# What may lie in a closed directory of our user that is empty by now: our own lock, too, which whoever takes it makes.
EMPTY = {"nothing": (), "an empty log": ("log/",), "empty runs": ("runs/",), "both": ("log/", "runs/"), "a lock": ("_lock",)}


def add_closed(desk, inside, owner=""):
    """A closed directory of our user with this inside, which somebody may rename."""
    other, files = "hdfs://nn/apps/secret", desk.world.files
    files.make_directory(other)
    for name in inside:
        if name.endswith("/"):
            files.make_directory(f"{other}/{name[:-1]}")
        else:
            files.write_new(f"{other}/{name}", "")
            node = files.namespace.find(f"{other}/{name}")
            node.attributes = replace(node.attributes, owner=owner or node.attributes.owner)
    return other


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("inside", EMPTY)
def test_nor_does_an_empty_one(command, inside):
    """It would be open for all who may read the table when it is back at its own place, with all that comes into it there."""
    desk, _ = set_up(has_records=False)
    other = add_closed(desk, EMPTY[inside])
    before = picture(desk, other)
    put_in_place(desk, other)
    result = COMMANDS[command](desk)
    problem = result.tables[0].problem
    assert (result.code, problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert f"hdfs dfs -rmdir {desk.control.top}" in problem.next
    if inside != "a lock":
        assert picture(desk, desk.control.top) == before
    assert {mode for mode in (node.mode for _, node in desk.world.files.namespace.walk(desk.control.top)) if mode & 0o077} == set()


# What a directory of our user may have in it under a name that we give, but to another kind of entry.
OF_OTHER_KINDS = {
    "a directory for the seal": [f"{names.SEAL}/"],
    "a file for a run": ["runs/", "runs/20260101t000000z-0000"],
    "a directory for an entry": ["log/", f"log/{names.log_entry(0)}/"],
}


@pytest.mark.parametrize("inside", OF_OTHER_KINDS)
def test_nor_does_one_that_has_only_names_of_ours_in_it(inside):
    desk, _ = set_up(has_records=False)
    other = add_closed(desk, OF_OTHER_KINDS[inside])
    before = picture(desk, other)
    put_in_place(desk, other)
    assert desk.compact().tables[0].problem.code is Code.UNKNOWN_FILES
    assert picture(desk, desk.control.top) == before


@pytest.mark.parametrize("owner", ["loader", "hive"])
def test_a_seal_counts_only_if_our_user_made_it(owner):
    desk, _ = set_up(has_records=False)
    put_in_place(desk, add_closed(desk, [names.SEAL], owner))
    result = desk.compact()
    assert result.code is (Exit.DONE if owner == "hive" else Exit.INVESTIGATE)


def test_a_run_on_a_table_makes_no_seal_there_because_somebody_has_put_a_file_of_that_name_into_it():
    """Empty hidden files are made again beside a copy, by our user, as is `_SUCCESS`. Later the table is closed to whoever did that."""
    desk, orders = set_up(has_records=False)
    files = desk.world.files

    def give(path, **attributes):
        node = files.namespace.find(path)
        node.attributes = replace(node.attributes, **attributes)

    give(orders, mode=0o755)
    for path in (f"{orders}/_SUCCESS", f"{orders}/{names.SEAL}"):
        files.writer.add(path, "")
        give(path, owner="loader")
    assert Desk(desk.world, "sales.orders").compact().code is Exit.DONE
    assert files.stat(f"{orders}/_SUCCESS") is not None
    give(orders, mode=0o700)
    before = picture(desk, orders)
    put_in_place(desk, orders)
    assert desk.compact().tables[0].problem.code is Code.UNKNOWN_FILES
    assert picture(desk, desk.control.top) == before


@pytest.mark.parametrize("step", ["hold.make ", "hold.seal ", "hold.rename ", "hold.tidy ", "hold ", "make_directory", "/plan.json"])
def test_a_first_run_that_was_killed_is_followed_by_another_one(step):
    desk, _ = set_up(has_records=False)
    desk.kill_before([step], desk.compact)
    assert desk.compact().code is Exit.DONE


def test_a_control_directory_of_which_only_the_seal_is_left_is_one_still():
    desk, _ = set_up(has_records=True)
    for place in ("log", "runs"):
        desk.world.files.writer.delete(f"{desk.control.top}/{place}")
    desk.world.files.writer.delete(desk.control.lock)
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("lost", ["", "_lock"])
def test_a_control_directory_that_lost_its_seal_is_one_still(lost):
    desk, _ = set_up(has_records=True)
    for path in (desk.control.seal, f"{desk.control.top}/{lost}" if lost else ""):
        if path:
            desk.world.files.writer.delete(path)
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("by_id", [True, False])
def test_nor_does_an_empty_one_that_has_the_name_of_the_new_one_just_when_that_comes_to_its_place(by_id):
    """By its id the new one comes there all the same."""
    desk, _ = set_up(has_records=False)
    desk.world.files.finds_by_id = by_id
    other, writer = add_closed(desk, ()), desk.world.files.writer

    def exchange(step):
        if step.startswith("hold.rename "):
            desk.world.files.before_step = None
            new = step.split()[1]
            closed = names.parent(new)
            writer.rename_into(closed, f"{names.parent(closed)}/.aside")
            writer.make_directory(closed)
            writer.rename_into(other, new)

    desk.world.files.before_step = exchange
    result = desk.compact()
    if by_id:
        assert result.code is Exit.DONE
        return
    assert result.tables[0].problem.code is Code.UNKNOWN_FILES
    assert picture(desk, desk.control.top).keys() == {""}
    assert desk.world.files.namespace.find(desk.control.top).mode == 0o700


def test_a_directory_in_place_of_the_closed_one_gets_no_seal_and_loses_nothing():
    """It is another table's, whose control directory is closed, and of an earlier version, which made no seals."""
    desk, _ = set_up(has_records=False)
    other, writer = add_closed(desk, ()), desk.world.files.writer
    desk.world.files.make_directory(f"{other}/{names.CONTROL}/log")
    for path in (f"{other}/{names.CONTROL}", f"{other}/{names.CONTROL}/log"):
        node = desk.world.files.namespace.find(path)
        node.attributes = replace(node.attributes, mode=0o700)
    before = picture(desk, other)
    closed = []

    def exchange(step):
        if step.startswith("hold.seal "):
            closed.append(names.parent(step.split()[1]))
            writer.rename_into(closed[0], f"{names.parent(closed[0])}/.aside")
            writer.rename_into(other, closed[0])

    desk.world.files.before_step = exchange
    assert desk.compact().code is not Exit.DONE
    assert picture(desk, closed[0]) == before
    assert desk.world.files.stat(desk.control.top) is None


def test_of_two_first_runs_one_waits_for_the_other_and_nothing_else_is_left():
    desk, _ = set_up(has_records=False)
    others = []

    def come_first(step):
        if step.startswith("hold.rename "):
            desk.world.files.before_step = None
            others.append(desk.world.another_process().files.hold(desk.control.lock, "run x"))

    desk.world.files.before_step = come_first
    assert desk.compact().tables[0].problem.code is Code.TABLE_LOCKED
    root = names.parent(desk.control.top)
    assert [entry.name for entry in desk.world.files.look_hidden([root])[root].entries] == [names.CONTROL]


DAY_MS = 86_400_000


def left_by_a_killed_run(table, step="hold.rename "):
    """A table of which the first run was killed before its control directory was in its place; and what it left."""
    desk, _ = set_up(has_records=False)
    desk.world.catalog.homes["sales"] = "hdfs://nn/warehouse/sales"
    desk = Desk(desk.world, table)
    desk.kill_before([step], desk.compact)
    beside = names.parent(desk.control.top)
    (left,) = [entry.path for entry in desk.world.files.look_hidden([beside])[beside].entries if entry.path != desk.control.top]
    assert names.NEW.fullmatch(names.base(left))
    return desk, left


@pytest.mark.parametrize("step", ["hold.seal ", "hold.rename ", "hold.tidy "])
@pytest.mark.parametrize("table", ["sales.events", "sales.orders"])
def test_what_a_killed_first_run_left_beside_its_place_is_no_reason_and_goes_a_day_later(table, step):
    desk, left = left_by_a_killed_run(table, step)
    rows, files = desk.world.rows_of(table), desk.world.files

    def clean_up():
        return desk.forget() if table == "sales.events" else clean(desk)

    assert desk.compact().code is Exit.DONE
    desk.cleanup()
    clean_up()
    assert files.stat(left) is not None
    files.namespace.advance(DAY_MS)
    clean_up()
    assert files.stat(left) is None
    assert desk.world.rows_of(table) == rows


@pytest.mark.parametrize("below", ["", f"/{names.CONTROL}"])
@pytest.mark.parametrize("table", ["sales.events", "sales.orders"])
def test_what_has_such_a_name_and_holds_more_stays(table, below):
    desk, left = left_by_a_killed_run(table)
    desk.world.files.write_new(f"{left}{below}/rows.parquet", "x")
    desk.world.files.namespace.advance(2 * DAY_MS)
    desk.forget()
    clean(desk)
    assert {path[len(left) :] for path in desk.world.files.contents(left)} == {f"/{names.CONTROL}/{names.SEAL}", f"{below}/rows.parquet"}


@pytest.mark.parametrize("table", ["sales.events", "sales.orders"])
def test_what_has_such_a_name_and_is_somebody_elses_stays(table):
    desk, left = left_by_a_killed_run(table)
    node = desk.world.files.namespace.find(left)
    node.attributes = replace(node.attributes, owner="loader")
    desk.world.files.namespace.advance(2 * DAY_MS)
    desk.forget()
    clean(desk)
    assert desk.world.files.stat(left) is not None


def test_a_first_run_that_was_killed_in_the_gap_is_recovered_whatever_else_lies_in_its_control_directory():
    desk, _ = set_up(has_records=False)
    live = desk.live("dt=1")
    desk.kill_before([f"/ready/u00001 {live}"], desk.compact)
    desk.world.files.write_new(f"{desk.control.top}/README", "mine")
    assert desk.recover().tables[0].problem is None
    assert desk.world.files.stat(live) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_nor_does_it_if_it_comes_there_just_when_the_lock_is_taken(command):
    desk, orders = set_up(has_records=True)
    before = picture(desk, orders)

    def exchange(step):
        if step.startswith("hold "):
            desk.world.files.before_step = None
            put_in_place(desk, orders)

    desk.world.files.before_step = exchange
    assert COMMANDS[command](desk).tables[0].problem.code is Code.UNKNOWN_FILES
    assert picture(desk, desk.control.top) == before


def test_what_a_killed_doctor_leaves_in_a_control_directory_is_no_reason():
    desk, _ = set_up(has_records=False)
    desk.world.files.hold(desk.control.lock, "us").release()
    desk.world.files.make_directory(f"{desk.control.top}/{names.trial_directory('20260101t000000z-0000')}/x")
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("command", COMMANDS)
def test_nor_does_it_if_an_empty_one_is_there_as_soon_as_the_lock_is_taken(command, monkeypatch):
    """Its time shows when the lock is in it. The directory that is looked at then is one of our user that others may write to, such as that
    of a partition whose copy could not be given away: what is taken from the others' rights there is the rights of the one with the lock.
    """
    desk, orders = set_up(has_records=False)
    files, top = desk.world.files, desk.control.top
    wide, aside = names.parent(top) + "/.wide", names.parent(top) + "/.aside"
    files.make_directory(wide)
    node = files.namespace.find(wide)
    node.attributes = replace(node.attributes, mode=0o775)
    put_in_place(desk, orders)
    hold = files.hold

    def hold_and_exchange(path, holder):
        lock = hold(path, holder)
        files.writer.rename_into(top, aside)
        files.writer.rename_into(wide, top)
        return lock

    monkeypatch.setattr(files, "hold", hold_and_exchange)
    COMMANDS[command](desk)
    assert oct(files.namespace.find(aside).mode) == oct(0o700)


def test_directories_of_a_closed_backup_get_no_rights_of_what_is_at_their_place_while_they_are_looked_at(monkeypatch):
    """The directories of a run are closed where its units lie below a closed directory. Somebody exchanges the control directory only while
    it is looked at, for one with directories of our user of the same names, which others may write to.
    """
    desk, _ = set_up(has_records=True)
    files, top = desk.world.files, desk.control.top
    (run,) = (entry.name for entry in files.look([desk.control.runs])[desk.control.runs].entries)
    closed = [f"runs/{run}", f"runs/{run}/retired"]
    wide, aside = names.parent(top) + "/.wide", names.parent(top) + "/.aside"
    files.make_directory(f"{wide}/{closed[1]}")
    for place, mode in [*((f"{top}/{below}", 0o700) for below in closed), *((f"{wide}/{below}", 0o775) for below in closed)]:
        node = files.namespace.find(place)
        node.attributes = replace(node.attributes, mode=mode)
    exposed = files.exposed

    def look_at_another(place, levels):
        if levels:
            files.writer.rename_into(top, aside)
            files.writer.rename_into(wide, top)
        found = exposed(place, levels)
        if levels:
            files.writer.rename_into(top, wide)
            files.writer.rename_into(aside, top)
        return found

    monkeypatch.setattr(files, "exposed", look_at_another)
    desk.compact()
    assert [oct(files.namespace.find(f"{top}/{below}").mode) for below in closed] == [oct(0o700)] * 2


@pytest.mark.parametrize("command", ["compact-swap", "backup"])
def test_nor_does_it_if_it_is_away_only_while_it_is_looked_at(command, monkeypatch):
    """From the call that takes the lock on, but for the two looks behind that."""
    desk, orders = set_up(has_records=False)
    files, top = desk.world.files, desk.control.top
    aside = names.parent(top) + "/.aside"
    put_in_place(desk, orders)
    hold, exposed = files.hold, files.exposed

    def hold_and_move_away(path, holder):
        lock = hold(path, holder)
        files.writer.rename_into(top, aside)
        return lock

    def look_and_bring_back(place, levels):
        found = exposed(place, levels)
        if files.stat(aside) is not None:
            files.writer.rename_into(aside, top)
        return found

    monkeypatch.setattr(files, "hold", hold_and_move_away)
    monkeypatch.setattr(files, "exposed", look_and_bring_back)
    COMMANDS[command](desk)
    assert oct((files.namespace.find(top) or files.namespace.find(aside)).mode) == oct(0o700)
