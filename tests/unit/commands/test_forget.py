"""forget: every trace of Hivekeeper goes from a table whose backups are gone; from any other table nothing goes."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names, ports
from hivekeeper.codes import Exit
from hivekeeper.commands.forget import forget
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from hivekeeper.steps import removal
from support import joined_desk
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles, Killed
from support.leftovers import SHAPES
from support.listings import listen
from support.world import World


@pytest.fixture(params=list(SHAPES))
def desk(request):
    """A compacted table; its backups are discarded."""
    columns, units = SHAPES[request.param]
    world = World()
    world.add_table(a_table(columns, create_time=5), {unit: [1000] * 3 for unit in units})
    desk = Desk(world)
    desk.compact()
    desk.cleanup()
    return desk


def a_unit_of(desk):
    return "dt=1" if desk.world.table(desk.table).partitioned else ""


def refused(desk, before=None):
    """What it says of a table that it refuses; nothing but a line in the lock changes."""
    before = desk.world.picture()
    for dry_run in (True, False):
        result = desk.forget(dry_run=dry_run)
        problem = result.tables[0].problem
        assert (result.code, problem.code, problem.state) == (Exit.REFUSED, Code.RECORDS_NEEDED, "nothing was removed")
        changed = {path for path, content in desk.world.picture().items() if before.get(path) != content}
        assert changed <= {desk.control.lock} and set(before) <= set(desk.world.picture())
    return problem


def test_nothing_of_ours_is_left_and_the_table_is_compacted_again(desk):
    rows, live = desk.world.rows_of(desk.table), {path for path in desk.world.picture() if ".hivekeeper" not in path}
    result = desk.forget()
    assert result.code is Exit.DONE
    assert set(desk.world.picture()) == live
    assert desk.world.files.stat(desk.control.top) is None
    assert desk.world.rows_of(desk.table) == rows
    desk.append(a_unit_of(desk), "a", "b")
    assert "swapped" in outcomes(desk.compact()).values()
    assert desk.log().next_version == 1


def test_twice_there_is_nothing_to_forget(desk):
    desk.forget()
    before = desk.world.picture()
    result = desk.forget()
    assert (result.code, result.tables[0].forgotten) == (Exit.DONE, None)
    assert desk.world.picture() == before
    assert "nothing to forget" in screen.render(result)


def test_a_dry_run_says_what_would_go(desk):
    before = desk.world.picture()
    result = desk.forget(dry_run=True)
    assert result.tables[0].forgotten.place == desk.control.top
    assert "would forget" in screen.render(result)
    assert desk.world.picture() == before


def test_it_is_shown_as_text_and_json(desk):
    place = desk.control.top
    result = desk.forget()
    assert f"sales.events: forgot {place} (3 log entries)" in screen.render(result)
    assert document.build(result)["tables"][0]["forgotten"] == {"place": place, "entries": 3, "backup_tables": []}


def test_a_backup_is_in_the_way(desk):
    desk.append(a_unit_of(desk), "a", "b")
    desk.compact()
    problem = refused(desk)
    assert f"the backup of run {desk.runs[2]} is left" in problem.what
    assert "hivekeeper cleanup --table sales.events" in problem.next


def test_a_pinned_backup_is_in_the_way_and_the_pin_is_named(desk):
    desk.append(a_unit_of(desk), "a", "b")
    desk.compact()
    desk.pin(desk.runs[2])
    problem = refused(desk)
    assert "1 of them pinned" in problem.what
    assert f"unpin --table sales.events --run {desk.runs[2]}" in problem.next


def test_the_record_of_a_backup_is_in_the_way(desk):
    desk.backup()
    refused(desk)
    desk.cleanup()
    assert desk.forget().code is Exit.DONE


def test_an_interrupted_run_is_in_the_way_and_not_settled(desk):
    desk.append(a_unit_of(desk), "a", "b")
    desk.kill_before(["rename_exact", "/ready/u"], desk.compact)
    assert "hivekeeper recover" in refused(desk).next


def test_records_stay_while_a_backup_table_cannot_be_read(monkeypatch):
    """It may be ours, and then nothing else knows that."""
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    (backup,) = [name for name, table in world.catalog.tables.items() if names.BACKUP_OF in table.parameters]
    world.set_property(backup, x="y" * 1000)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 900)
    desk.cleanup()
    assert desk.forget().tables[0].problem.code is Code.METASTORE_UNUSABLE
    assert desk.log().next_version > 0
    assert backup in world.catalog.tables


STRANGE = [
    "notes.txt",
    "log/notes.txt",
    "runs/strange/rows.parquet",
    "_orphan.json/rows.parquet",
    f"log/{names.checkpoint(9)}/rows.parquet",
]


@pytest.mark.parametrize("place", STRANGE)
def test_a_strange_file_is_in_the_way_and_named(desk, place):
    desk.world.add_file(names.join(desk.control.top, place), ["x"])
    assert names.join(desk.control.top, place.rpartition("/rows")[0] or place) in refused(desk).what


def test_a_run_at_work_is_waited_for(desk):
    desk.world.another_process().files.hold(desk.control.lock, "run x")
    assert desk.forget().tables[0].problem.code is Code.TABLE_LOCKED
    assert desk.log().next_version == 3


def test_records_of_somebody_else_are_not_removed(desk):
    node = desk.world.files.namespace.directory(desk.control.log)
    node.attributes = replace(node.attributes, owner="mallory")
    result = desk.forget()
    assert result.tables[0].problem.code is Code.RECORDS_OF_ANOTHER
    assert desk.world.files.stat(desk.control.log)


def test_the_records_of_another_table_that_still_exists_are_not_removed():
    world = World()
    for name, created in (("events", 5), ("other", 6)):
        world.add_table(a_table(["dt"], name=name, create_time=created), {"dt=1": [1000] * 3})
    other = Desk(world, "sales.other")
    other.compact()
    other.cleanup()
    top = ControlPaths.of(world.table("sales.events").location, True).top
    world.files.writer.rename_into(other.control.top, top)
    result = Desk(world).forget()
    assert result.tables[0].problem.code is Code.OTHER_TABLE
    assert world.files.stat(names.join(top, "log"))


def test_a_table_with_files_of_another_one_in_its_records_is_refused(desk):
    location = f"{desk.control.top}/x"
    desk.world.catalog.add_table(a_table(name="inside", location=location), [])
    desk.world.wait(7_200_000)
    assert desk.forget().tables[0].problem.code is Code.SHARED_DIRECTORY
    assert desk.log().next_version == 3


def test_backup_tables_that_a_cleanup_could_not_drop_go_too():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    (backup,) = {effect.backup_table for effect in desk.log().effects}
    kept = world.table(backup)
    desk.cleanup()
    world.catalog.add_table(kept, [])
    assert desk.forget(dry_run=True).tables[0].forgotten.backup_tables == (backup,)
    result = desk.forget()
    assert result.tables[0].forgotten.backup_tables == (backup,)
    assert set(world.catalog.tables) == {"sales.events"}
    assert f"backup table {backup}" in screen.render(result)


def test_a_metastore_that_does_not_drop_a_backup_table_keeps_the_records(desk):
    desk.append(a_unit_of(desk), "a", "b")
    desk.compact()
    (backup,) = {effect.backup_table for effect in desk.log().standing}
    kept = desk.world.table(backup)
    desk.cleanup()
    desk.world.catalog.add_table(kept, [])

    def refuse(what):
        if what.startswith("metastore.drop_backup_table"):
            desk.world.metastore.fail_next("drop_backup_table", MetastoreUnavailable("timeout"))

    desk.world.files.before_step = refuse
    assert desk.forget().tables[0].problem.code is Code.METASTORE_UNUSABLE
    assert desk.world.files.stat(desk.control.log)


def test_a_directory_that_was_set_aside_with_backups_in_it_comes_back(desk):
    """Only a run that had lost its lock can have set it aside; or whoever may write beside it."""
    desk.append(a_unit_of(desk), "a", "b")
    desk.compact()
    top, aside = desk.control.top, desk.control.removed("20260101t000000z-0000")
    held = {path for path in desk.world.picture() if path.startswith(top)}
    desk.world.files.namespace.rename(top, aside)
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.REFUSED, Code.RECORDS_NEEDED)
    assert held <= set(desk.world.picture())


def test_a_file_with_the_name_of_what_was_set_aside_is_left_alone(desk):
    aside = desk.control.removed("20260101t000000z-0000")
    desk.world.add_file(aside, ["x"])
    assert desk.forget().code is Exit.DONE
    assert desk.world.files.stat(aside)


def test_a_directory_that_was_set_aside_and_is_half_deleted_does_not_come_back(desk):
    """Its lock is gone, and so may be entries of its log."""
    aside = desk.control.removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(desk.control.top, aside)
    desk.world.files.writer.delete(f"{aside}/_lock")
    desk.world.add_file(f"{aside}/notes.txt", ["x"])
    before = desk.world.picture()
    assert desk.forget().tables[0].problem.code is Code.UNKNOWN_FILES
    assert desk.world.picture() == before


def test_another_directory_that_is_exchanged_for_it_at_the_last_moment_comes_back(desk):
    """Whoever may write beside two control directories can rename both."""
    desk.world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    other = Desk(desk.world, "sales.other")
    other.compact()
    other.cleanup()
    top, theirs = desk.control.top, desk.world.files.stat(other.control.top).file_id

    def exchange(what):
        if what.startswith(f"rename_exact {top} "):
            desk.world.files.before_step = None
            desk.world.files.namespace.rename(top, f"{top}-away")
            desk.world.files.namespace.rename(other.control.top, top)

    desk.world.files.before_step = exchange
    assert desk.forget().tables[0].problem.code is Code.UNKNOWN_FILES
    assert desk.world.files.stat(top).file_id == theirs
    assert desk.world.files.stat(names.join(top, "log", names.log_entry(0)))


def test_a_dry_run_only_names_what_a_killed_one_had_set_aside(desk):
    aside = desk.control.removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(desk.control.top, aside)
    before = desk.world.picture()
    assert desk.forget(dry_run=True).tables[0].forgotten.place == aside
    assert desk.world.picture() == before


def test_what_is_set_aside_beside_it_from_another_table_is_left_alone():
    world = World()
    world.add_table(a_table(create_time=5), {"": [1000] * 3})
    desk = Desk(world)
    desk.compact()
    desk.cleanup()
    other = ControlPaths.of("hdfs://nn/warehouse/sales/events2", partitioned=False).removed("20260101t000000z-0000")
    world.add_file(f"{other}/log/{names.log_entry(0)}", ["x"])
    assert desk.forget().code is Exit.DONE
    assert world.files.stat(other)


def test_tables_of_a_database_are_forgotten_one_by_one():
    world = World()
    for name in ("events", "kept", "never"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3})
    Desk(world, "sales.kept").compact()
    desk = Desk(world)
    desk.compact()
    desk.cleanup()
    result = forget(a_context(world.cluster, Selection(databases=("sales",)), "20260901t020304z-0000"))
    told = {table.table: (bool(table.forgotten), table.problem and table.problem.code) for table in result.tables}
    assert told == {
        "sales.events": (True, None),
        "sales.kept": (False, Code.RECORDS_NEEDED),
        "sales.never": (False, None),
    }
    assert result.code is Exit.DONE


def test_the_directory_around_many_tables_is_listed_once():
    world = World()
    for name in ("one", "two", "three"):
        world.add_table(a_table(name=name), {"": [1000] * 3})
        desk = Desk(world, f"sales.{name}")
        desk.compact()
        desk.cleanup()
    listed, looked_at = listen(world.files, "look_hidden_directories"), listen(world.files, "look", "look_hidden")
    result = forget(a_context(world.cluster, Selection(databases=("sales",)), "20260901t020304z-0000"))
    assert all(table.forgotten for table in result.tables)
    assert (listed, looked_at.count("hdfs://nn/warehouse/sales")) == (["hdfs://nn/warehouse/sales"], 0)


# ---- killed


def count_steps(shape):
    desk = prepare(shape)
    before = desk.world.files.steps
    assert desk.forget().code is Exit.DONE
    return desk.world.files.steps - before


def prepare(shape):
    columns, units = SHAPES[shape]
    world = World()
    world.add_table(a_table(columns, create_time=5), {unit: [1000] * 3 for unit in units})
    desk = Desk(world)
    desk.compact()
    desk.cleanup()
    return desk


CASES = [(shape, step) for shape in SHAPES for step in range(count_steps(shape))]


@pytest.mark.parametrize("meanwhile", ["nothing", "a compaction"])
@pytest.mark.parametrize(("shape", "step"), CASES)
def test_a_killed_forget_is_finished_by_the_next_one(shape, step, meanwhile):
    desk = prepare(shape)
    rows, live = desk.world.rows_of(desk.table), {path for path in desk.world.picture() if ".hivekeeper" not in path}
    desk.world.die_after(step, at_once=True)
    with suppress(Killed):
        desk.forget()
    desk.world.revive()
    if meanwhile == "a compaction":
        desk.append(a_unit_of(desk), "a", "b")
        assert "swapped" in outcomes(desk.compact()).values()
        assert desk.rollback().code is Exit.DONE
        assert desk.cleanup().code is Exit.DONE
        rows, live = desk.world.rows_of(desk.table), {path for path in desk.world.picture() if ".hivekeeper" not in path}
    assert desk.forget().code is Exit.DONE
    assert set(desk.world.picture()) == live
    assert desk.world.rows_of(desk.table) == rows


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
@pytest.mark.parametrize(("shape", "step"), CASES)
def test_a_call_that_fails_anywhere_in_a_forget_costs_nothing(shape, step, done):
    desk = prepare(shape)
    live = {path for path in desk.world.picture() if ".hivekeeper" not in path}
    desk.world.fail_at(step, done)
    desk.forget()
    desk.world.files.before_step = None
    desk.world.revive()
    assert desk.forget().code is Exit.DONE
    assert set(desk.world.picture()) == live


@pytest.mark.parametrize("shape", SHAPES)
def test_a_compaction_that_took_the_table_over_keeps_its_backups(shape):
    """The lock is lost just before the control directory is renamed away; in a pause another run compacts the table."""
    desk = prepare(shape)
    desk.append(a_unit_of(desk), "a", "b")

    def pause(what):
        if what.startswith("rename_exact") and "/.hivekeeper.removed-" in what:
            desk.world.files.before_step = None
            desk.world.files.expire_locks()
            assert "swapped" in outcomes(desk.compact(cluster=desk.world.another_process())).values()

    desk.world.files.before_step = pause
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert desk.rollback().code is Exit.DONE


@pytest.mark.parametrize("shape", SHAPES)
def test_backups_that_cannot_come_back_are_named_with_the_way_back(shape):
    """As above; and tasks of a job of the other run make its directories again before the control directory comes back."""
    desk = prepare(shape)
    desk.append(a_unit_of(desk), "a", "b")
    top = desk.control.top

    def pause(what):
        if what.startswith(f"rename_exact {top} "):
            desk.world.files.expire_locks()
            assert "swapped" in outcomes(desk.compact(cluster=desk.world.another_process())).values()
        elif what.startswith("rename_exact ") and what.endswith(f" {top}"):
            desk.world.files.writer.make_directory(f"{top}/runs/x/stage")

    desk.world.files.before_step = pause
    problem = desk.forget().tables[0].problem
    desk.world.files.before_step = None
    (aside,) = {names.parent(path) for path in desk.world.picture() if ".removed-" in path and path.endswith("/_lock")}
    assert (problem.code, problem.state) == (Code.UNKNOWN_FILES, "nothing was removed")
    assert f"hdfs dfs -mv {aside} {top}, then: hivekeeper recover" in problem.next
    desk.world.files.writer.delete(top)
    desk.world.files.namespace.rename(aside, top)
    assert desk.rollback().code is Exit.DONE


# ---- records that are still needed, set aside by whoever may write beside them, or by a run that had lost its lock


def put_aside(desk, top):
    """Give this control directory the name of one that a killed command has set aside from the desk's own."""
    aside = desk.control.removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(top, aside)
    return aside


def test_records_of_another_table_that_lie_under_the_name_of_what_was_set_aside_are_left_alone(desk):
    """Backups in joined files have no directory there: only the log tells of them."""
    desk.world.add_table(a_table(["dt"], name="other", create_time=6), {"dt=1": [1000] * 3})
    other = Desk(desk.world, "sales.other")
    other.compact()
    other.cleanup()
    aside = put_aside(desk, other.control.top)
    before = {path for path in desk.world.picture() if path.startswith(aside)}
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.OTHER_TABLE)
    assert before <= set(desk.world.picture())


def test_the_log_of_joined_files_that_was_set_aside_comes_back():
    desk = joined_desk.a_desk()
    desk.compact()
    put_aside(desk, desk.control.top)
    assert desk.forget().tables[0].problem.code is Code.RECORDS_NEEDED
    assert desk.rollback().code is Exit.DONE


def test_a_run_that_joined_files_while_a_forget_had_lost_the_lock_keeps_its_log():
    desk = joined_desk.a_desk()

    def pause(what):
        if what.startswith("rename_exact") and "/.hivekeeper.removed-" in what:
            desk.world.files.before_step = None
            desk.world.files.expire_locks()
            desk.compact(cluster=desk.world.another_process())

    desk.compact(where="dt = '2'")
    desk.cleanup()
    desk.world.files.before_step = pause
    result = desk.forget()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.UNKNOWN_FILES)
    assert desk.rollback().code is Exit.DONE


def forget_beside_a_killed_run(desk, then):
    """A forget stands still and loses its lock; another run is killed in its gap. `then` comes just before the forget sets all aside."""
    desk.append(a_unit_of(desk), "a", "b")

    def pause(what):
        if what.startswith("rename_exact") and "/.hivekeeper.removed-" in what:
            desk.world.files.expire_locks()
            desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
            then()

    desk.world.files.before_step = pause
    return desk.forget()


def fail_behind(monkeypatch, calls, once):
    """These calls fail that ask for what was set aside, or rename it; each once, or as long as the patch lasts."""
    for name in calls:
        real = getattr(FakeFiles, name)

        def fail(self, paths, *more, real=real, name=name, **options):
            if any("/.hivekeeper.removed-" in path for path in ([paths] if isinstance(paths, str) else paths)):
                if once:
                    monkeypatch.setattr(FakeFiles, name, real)
                raise FilesUnavailable("failover")
            return real(self, paths, *more, **options)

        monkeypatch.setattr(FakeFiles, name, fail)


@pytest.mark.parametrize("fails", ["the rename, done", "the look"])
def test_records_that_are_needed_come_back_where_a_call_fails_behind_their_rename(desk, fails, monkeypatch):
    rows = desk.world.rows_of(desk.table) + Counter("ab")

    def then():
        if fails == "the look":
            fail_behind(monkeypatch, ["look"], once=True)
        else:
            desk.world.fail_call("rename_exact", done=True)

    result = forget_beside_a_killed_run(desk, then)
    assert result.code is Exit.UNUSABLE
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows


def test_where_they_are_is_told_if_they_cannot_be_brought_back(desk, monkeypatch):
    rows = desk.world.rows_of(desk.table) + Counter("ab")
    with monkeypatch.context() as outage:
        result = forget_beside_a_killed_run(desk, lambda: fail_behind(outage, ["look", "stat", "rename_exact"], once=False))
    aside, problem = desk.control.removed(desk.runs[-2]), result.tables[0].problem
    assert (result.code, aside in problem.what) == (Exit.INVESTIGATE, True)
    assert f"hdfs dfs -mv {aside} {desk.control.top}" in problem.next
    desk.world.files.namespace.rename(aside, desk.control.top)
    assert desk.recover().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == rows


def test_records_that_no_call_had_set_aside_stay_where_they_are(desk):
    before = desk.world.picture()
    joined_desk.at(desk, ["rename_exact", "/.hivekeeper.removed-"], lambda: desk.world.fail_call("rename_exact", done=False))
    assert desk.forget().code is Exit.UNUSABLE
    assert {path for path in before if path != desk.control.lock} <= set(desk.world.picture())
    assert desk.forget().code is Exit.DONE


@pytest.mark.parametrize("by", [["dt"], []], ids=["inside", "beside"])
def test_what_lies_beside_the_tables_is_not_kept_of_all_of_them(monkeypatch, by):
    """Whoever may write to a table can put two hundred thousand names there."""
    monkeypatch.setattr("hivekeeper.plan.listings.MOST_BESIDE", 40)
    world, kept, find = World(), [], removal.Removed.of
    for number in range(10):
        table = a_table(by, name=f"t{number}", location=f"hdfs://nn/home{number}/t", create_time=number + 1)
        world.add_table(table, {"dt=1" if by else "": [1000]})
        control = ControlPaths.of(table.location, table.partitioned)
        for nth in range(30):
            world.files.writer.make_directory(control.removed(f"20260101t0203{nth:02}z-0000"))

    def see(removed, control):
        found = find(removed, control)
        assert len(found) == 30
        kept.append(sum(len(paths) for of_directory in removed._known.values() for paths in of_directory.values()))
        return found

    monkeypatch.setattr(removal.Removed, "of", see)
    forget(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert kept == [0 if by else 30] * 10


def test_a_directory_of_many_tables_is_listed_and_gone_through_once(monkeypatch):
    """Also with tables between them that have their control directories inside."""
    world, judged, home = World(), [], "hdfs://nn/warehouse/sales.db"
    for number in range(20):
        by = ["dt"] if number % 2 else []
        world.add_table(a_table(by, name=f"t{number:02}", location=f"{home}/t{number:02}"), {"dt=1" if by else "": [1000]})
    for number in range(100):
        world.files.writer.make_directory(f"{home}/.hivekeeper.removed-20260101t000000z-0000-x{number}")
    of_removed, looked = ControlPaths.of_removed, listen(world.files, "look_hidden_directories")
    monkeypatch.setattr(ControlPaths, "of_removed", lambda path: judged.append(path) or of_removed(path))
    forget(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    assert (looked.count(home), len(judged)) == (1, 100)


@pytest.mark.parametrize("change", [{"owner": "mallory"}, {"mode": 0o777}])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_directory_that_others_have_called_like_records_set_aside_does_not_end_it(desk, change, dry_run):
    """Whoever may write beside a table makes one, or in its root."""
    beside = desk.control.removed("20260101t000000z-0000")
    desk.world.files.writer.make_directory(f"{beside}/rows")
    node = desk.world.files.namespace.directory(beside)
    node.attributes = replace(node.attributes, **change)
    top = desk.control.top
    result = desk.forget(dry_run=dry_run)
    assert (result.code, result.tables[0].forgotten.place) == (Exit.DONE, top)
    again = desk.forget()
    assert again.code is Exit.DONE
    assert (again.tables[0].forgotten is None) is not dry_run
    assert desk.world.files.stat(f"{beside}/rows")


def test_records_that_are_needed_are_told_of_where_they_cannot_go_back(desk, monkeypatch):
    """The look behind the rename has shown them, and the one call that brings them back fails."""
    rows = desk.world.rows_of(desk.table) + Counter("ab")
    rename = FakeFiles.rename_exact

    def fail_once(self, source, target, *more, **options):
        if "/.hivekeeper.removed-" not in source:
            return rename(self, source, target, *more, **options)
        monkeypatch.setattr(FakeFiles, "rename_exact", rename)
        raise FilesUnavailable("failover")

    result = forget_beside_a_killed_run(desk, lambda: monkeypatch.setattr(FakeFiles, "rename_exact", fail_once))
    removed = desk.control.removed(desk.runs[-2])
    assert result.code is Exit.INVESTIGATE
    assert f"hdfs dfs -mv {removed} {desk.control.top}" in result.tables[0].problem.next
    desk.world.files.namespace.rename(removed, desk.control.top)
    assert (desk.recover().code, desk.world.rows_of(desk.table)) == (Exit.DONE, rows)
