"""Tables with leftovers of writers, with a writer at work, or with a writer's state in file names."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.model import Selection
from hivekeeper.plan import listings
from hivekeeper.ports import ALL
from hivekeeper.reasons import Code
from hivekeeper.report import properties
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, manage, rename_partition, survive
from support.late_directories import act_before_live_is_settled, nest
from support.world import World

WEEK = 7 * 86_400_000
STAGING = "_impala_insert_staging"


def a_desk(*partitions, **settings):
    world = World()
    units = {name: [1000] * 3 for name in partitions or [""]}
    world.add_table(a_table(["dt"] if partitions else []), units)
    return Desk(world, **settings)


def age(desk, days=8):
    desk.world.files.namespace.advance(days * 86_400_000)


def code_of(result):
    table = result.tables[0]
    return table.problem.code if table.problem else next((unit.why.code for unit in table.units if unit.why), None)


def names_in(desk, place):
    return sorted(entry.name for entry in desk.world.files.look([place])[place].entries)


@pytest.mark.parametrize("partitions", [(), ("dt=1",)])
def test_a_table_into_which_impala_once_inserted_is_compacted(partitions):
    desk = a_desk(*partitions)
    before = desk.world.rows_of(desk.table)
    desk.world.files.writer.make_directory(f"{desk.live()}/{STAGING}")
    assert desk.compact().code is Exit.DONE
    assert STAGING in names_in(desk, desk.live())
    assert desk.world.rows_of(desk.table) == before
    assert desk.verify().code is Exit.DONE
    assert desk.rollback().code is Exit.DONE
    assert (STAGING in names_in(desk, desk.live()), desk.world.rows_of(desk.table)) == (True, before)
    assert desk.compact().code is Exit.DONE
    age(desk)
    assert desk.cleanup().code is Exit.DONE
    assert (STAGING in names_in(desk, desk.live()), desk.world.rows_of(desk.table)) == (True, before)
    assert not [path for path in desk.world.picture() if "/retired/" in path]


@pytest.mark.parametrize("partitions", [(), ("dt=1",)])
def test_a_query_of_impala_at_work_is_later(partitions):
    desk = a_desk(*partitions)
    desk.world.files.writer.make_directory(f"{desk.live()}/{STAGING}/1_2")
    result = desk.compact()
    assert (result.code, code_of(result)) == (Exit.LOCKED, Code.WRITER_AT_WORK)
    assert "hivekeeper.retry=later" in properties.render(result)


def before_first(desk, begins, act):
    """Let another program act once, just before the first step for which `begins` is true."""

    def begin(what):
        if begins(what):
            desk.world.files.before_step = None
            act()

    desk.world.files.before_step = begin


def retires(what):
    return what.startswith(("exchange", "rename_exact")) and "/retired/" in what


@pytest.mark.parametrize("partitions", [(), ("dt=1",)])
def test_a_query_that_starts_in_the_passed_staging_directory_is_noticed(partitions):
    """In the root, before the check; in a unit also at the last moment, when the directory itself does not change."""
    desk = a_desk(*partitions)
    writer, query = desk.world.files.writer, f"{desk.live()}/{STAGING}/1_2"
    writer.make_directory(f"{desk.live()}/{STAGING}")
    age(desk)
    begins = (lambda what: "/ready/" in what) if partitions else retires
    before_first(desk, begins, lambda: writer.add(f"{query}/new.parquet", DataFile(("new",)), 10))
    before = desk.world.rows_of(desk.table)
    result = desk.compact()
    assert (result.code, code_of(result)) == (Exit.PARTIAL, Code.WRITER_AT_WORK)
    assert result.tables[0].units[0].outcome.code == ("given-up" if partitions else "put-back")
    writer.rename_into(f"{query}/new.parquet", desk.live(*partitions))
    writer.delete(query)
    before["new"] += 1
    assert desk.world.rows_of(desk.table) == before


@pytest.mark.parametrize("name", ["c.parquet._COPYING_", "c.parquet.1700000000.tmp"])
@pytest.mark.parametrize("when", [lambda what: "/ready/" in what, retires], ids=["before the check", "at the last moment"])
def test_a_writer_that_has_closed_its_file_and_not_renamed_it_yet_finds_it(when, name):
    """hdfs dfs -put and Flume rename what they have closed: with live away they would fail, and leave a file that Hive reads and Spark or
    Impala does not.
    """
    desk = a_desk("dt=1")
    namespace, unfinished = desk.world.files.namespace, f"{desk.live('dt=1')}/{name}"
    before_first(desk, when, lambda: desk.world.files.writer.add(unfinished, DataFile(("new",)), 10))
    before = desk.world.rows_of(desk.table)
    result = desk.compact()
    assert (result.code, code_of(result)) == (Exit.PARTIAL, Code.WRITER_AT_WORK)
    assert result.tables[0].units[0].outcome.code in ("given-up", "put-back")
    namespace.rename(unfinished, f"{desk.live('dt=1')}/c.parquet")
    before["new"] += 1
    assert desk.world.rows_of(desk.table) == before


def test_a_query_that_starts_while_the_check_is_made_again_is_noticed_by_the_times_alone():
    """The check of a large unit takes too long, so ids and times are read once more, also those of accepted leftovers."""
    desk = a_desk("dt=1")
    files, staging = desk.world.files, f"{desk.live()}/{STAGING}"
    files.writer.make_directory(staging)
    age(desk)
    look, looks = files.look, []

    def look_slowly(directories, most=ALL):
        seen = look(directories, most)
        if staging in directories:
            looks.append(staging)
            if len(looks) == 2:
                desk.world.clock.elapsed_ms += 200
                files.writer.add(f"{staging}/1_2/new.parquet", DataFile(("new",)), 10)
        return seen

    files.look = look_slowly
    result = desk.compact()
    assert (result.tables[0].units[0].outcome.code, code_of(result)) == ("given-up", Code.WRITER_AT_WORK)
    assert len(looks) == 3


def test_a_run_that_is_killed_in_the_gap_is_finished_with_the_staging_directory():
    desk = a_desk()
    before = desk.world.rows_of(desk.table)
    desk.world.files.writer.make_directory(f"{desk.live()}/{STAGING}")
    age(desk)
    desk.kill_before(["/ready/", f" {desk.live()}"], desk.compact)
    assert desk.world.files.namespace.find(desk.live()) is None
    ((_, counts),) = desk.recover().tables[0].recovered
    assert {outcome.code for outcome in counts} == {"swapped"}
    assert (STAGING in names_in(desk, desk.live()), desk.world.rows_of(desk.table)) == (True, before)


def test_impala_that_makes_its_directory_again_at_once_leaves_none_in_the_backup():
    desk = a_desk()
    before, staging = desk.world.rows_of(desk.table), f"{desk.live()}/{STAGING}"
    desk.world.files.writer.make_directory(staging)
    age(desk)
    before_first(desk, lambda what: what.endswith(f" {staging}"), lambda: desk.world.files.writer.make_directory(staging))
    assert desk.compact().code is Exit.DONE
    assert desk.rollback().code is Exit.DONE
    assert (STAGING in names_in(desk, desk.live()), desk.world.rows_of(desk.table)) == (True, before)


def test_a_backup_that_kept_the_staging_directory_of_a_replaced_unit_is_cleaned_up():
    desk = a_desk()
    staging = f"{desk.live()}/{STAGING}"
    desk.world.files.writer.make_directory(staging)
    age(desk)
    desk.kill_before([f" {staging}"], desk.compact)
    desk.world.files.writer.overwrite(desk.live(), {"other.parquet": DataFile(("other",))})
    desk.recover()
    age(desk)
    assert desk.cleanup().code is Exit.DONE
    assert not [path for path in desk.world.picture() if "/retired/" in path]


LEFT_BEHIND = [".hive-staging_hive_2026-01-01_00-00-00_000_1-1/-ext-10000", "_temporary/0/_temporary", ".spark-staging-1/dt=1", "-ext-1/x"]


@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_what_was_left_in_the_root_long_ago_is_no_reason_to_wait_and_is_not_touched(left):
    desk = a_desk("dt=1", "dt=2")
    top = left.partition("/")[0]
    desk.world.files.writer.add(f"{desk.live()}/{left}/part-0", "half")
    assert (desk.compact().code, code_of(desk.compact())) == (Exit.LOCKED, Code.WRITER_AT_WORK)
    age(desk, days=6)
    assert desk.compact().code is Exit.LOCKED
    age(desk, days=2)
    assert desk.compact().code is Exit.DONE
    assert desk.rollback().code is Exit.DONE
    assert top in names_in(desk, desk.live())
    assert desk.world.picture()[f"{desk.live()}/{left}/part-0"] == "half"


def test_how_long_ago_is_a_setting():
    desk = a_desk("dt=1", leftover_age_ms=30 * 86_400_000)
    desk.world.files.writer.make_directory(f"{desk.live()}/_temporary/0")
    age(desk)
    assert desk.compact().code is Exit.LOCKED
    age(desk, 30)
    assert desk.compact().code is Exit.DONE


@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_a_writer_that_starts_in_a_passed_leftover_is_noticed_by_the_check(command):
    desk = a_desk("dt=1")
    temporary = f"{desk.live()}/_temporary/0"
    desk.world.files.writer.make_directory(f"{temporary}/_temporary")
    age(desk)
    if command == "rollback":
        desk.compact()
    attempt = f"{temporary}/_temporary/attempt_1/part-0"
    before_first(desk, lambda what: "plan.json" in what, lambda: desk.world.files.writer.add(attempt, "half"))
    result = getattr(desk, command)()
    assert (result.code, code_of(result)) == (Exit.PARTIAL, Code.WRITER_AT_WORK)


def test_in_a_unit_nothing_of_the_others_is_passed_however_old():
    """The swap would take it away from its writer."""
    desk = a_desk("dt=1")
    desk.world.files.writer.make_directory(f"{desk.live('dt=1')}/_temporary")
    age(desk, 400)
    assert code_of(desk.compact()) is Code.WRITER_AT_WORK


def test_a_leftover_that_may_not_be_read_is_a_writers():
    desk = a_desk("dt=1")
    staging = f"{desk.live()}/.hive-staging_1"
    desk.world.files.writer.make_directory(staging)
    age(desk)
    desk.world.files.namespace.unreadable.add(staging)
    assert desk.compact().code is Exit.LOCKED


def test_a_leftover_without_end_is_not_looked_into_for_ever(monkeypatch):
    desk = a_desk("dt=1")
    for nth in range(30):
        desk.world.files.writer.make_directory(f"{desk.live()}/_temporary/0/{nth}")
    age(desk)
    monkeypatch.setattr("hivekeeper.steps.leftovers.MOST_DIRECTORIES", 20)
    assert desk.compact().code is Exit.LOCKED


@pytest.mark.parametrize("busy", ["table", "unit"])
def test_a_writer_in_a_table_is_later_where_it_is_named_and_no_error_in_a_database(busy):
    desk = a_desk("dt=1")
    desk.world.add_table(a_table(["dt"], name="others"), {"dt=1": [1000] * 3})
    place = desk.live() if busy == "table" else desk.live("dt=1")
    desk.world.files.writer.start_committer(place)
    named = desk.compact()
    assert named.code is Exit.LOCKED
    assert "hivekeeper.retry=later" in properties.render(named)
    whole = compact_swap(a_context(desk.world.cluster, Selection(databases=("sales",)), "20260201t000000z-0000"))
    assert {table.table: table.code for table in whole.tables} == {"sales.events": Exit.LOCKED, "sales.others": Exit.DONE}
    assert whole.code is Exit.DONE


def test_files_of_kafka_connect_keep_their_names_until_it_is_allowed():
    desk = a_desk("dt=1", "dt=2")
    desk.world.add_file(f"{desk.live('dt=1')}/events+0+0000000000+0000000099.parquet", ["kafka"])
    age(desk)
    before = desk.world.rows_of(desk.table)
    result = desk.compact()
    assert {unit.name: unit.outcome.code for unit in result.tables[0].units} == {"dt=1": "refused", "dt=2": "swapped"}
    assert next(unit.why.code for unit in result.tables[0].units if unit.why) is Code.OFFSETS_IN_NAMES
    allowed = Desk(desk.world, compact_offset_files=True)
    allowed.runs = desk.runs
    assert allowed.compact().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == before


def test_files_that_kafka_connect_has_not_finished_are_never_lifted_into_the_unit(monkeypatch):
    """In the moment after an exchange, directories that a committer renamed into the unit are looked for."""
    desk = a_desk()
    half = f"{desk.live()}/+tmp/half.parquet"
    act_before_live_is_settled(desk, lambda desk: desk.world.files.writer.add(half, DataFile(("half",)), 10), monkeypatch, "")
    before = desk.world.rows_of(desk.table)
    assert desk.compact().code is Exit.DONE
    assert desk.world.rows_of(desk.table) == before
    assert half in desk.world.picture()


@pytest.mark.parametrize("depth", [3, 990])
def test_directories_that_somebody_nests_as_deeply_as_hdfs_allows_stop_no_command(depth):
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world)
    desk.compact()
    deep = f"{desk.live('dt=1')}{'/x' * depth}/part-0.parquet"
    world.add_file(deep, ["late"])
    assert desk.recover().code is Exit.DONE
    # No committer left it, so it stays.
    assert deep in world.files.contents(desk.live("dt=1"))
    assert code_of(desk.compact()) is Code.SUBDIRECTORY


def add_hidden(desk, number, place=""):
    for nth in range(number):
        desk.world.add_file(f"{desk.live(place)}/_note-{nth:05d}", [], 0)


def record_told(desk):
    """How many entries each listing of the directories above the units tells."""
    told, look_hidden = [], desk.world.files.look_hidden

    def look(places, *most):
        seen = look_hidden(places, *most)
        told.append(sum(len(one.entries) for one in seen.values()))
        return seen

    desk.world.files.look_hidden = look
    return told


@pytest.mark.parametrize("command", [Desk.analyze, Desk.compact], ids=["analyze", "compact-swap"])
def test_a_table_with_too_many_hidden_files_in_its_root_is_refused_when_it_is_observed(monkeypatch, command):
    """Each unit's check would list all of them again."""
    monkeypatch.setattr(listings, "MOST_HIDDEN", 50)
    desk = a_desk("dt=1", "dt=2")
    add_hidden(desk, 50)
    age(desk)
    told = record_told(desk)
    before = desk.world.picture()
    assert desk.analyze().code is Exit.DONE
    add_hidden(desk, 1, "_more")
    age(desk)
    told.clear()
    result = command(desk)
    assert (result.code, code_of(result)) == (Exit.REFUSED, Code.TOO_MANY_HIDDEN)
    assert len(told) == 1
    assert before.items() <= desk.world.picture().items()


def test_the_hidden_files_of_all_directories_above_units_are_limited_too(monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.observe.MOST_HIDDEN_ABOVE", 20)
    monkeypatch.setattr("hivekeeper.steps.observe.LOOK_AT_FIRST", 2)
    desk = a_desk(*(f"dt={nth}/hour=1" for nth in range(9)))
    for nth in range(9):
        add_hidden(desk, 10, f"dt={nth}")
    told = record_told(desk)
    result = desk.compact()
    assert (result.code, code_of(result)) == (Exit.REFUSED, Code.TOO_MANY_HIDDEN)
    assert sum(told) == 21


def test_hidden_files_with_long_paths_count_for_several(monkeypatch):
    """Two hundred thousand of them with paths of 8,000 characters would take gigabytes."""
    monkeypatch.setattr("hivekeeper.steps.observe.MOST_HIDDEN_ABOVE", 20)
    above = f"dt={'d' * 200}/hour={'h' * 200}/minute={'m' * 200}"
    desk = a_desk(f"{above}/second=1")
    add_hidden(desk, 11, above)
    told = record_told(desk)
    result = desk.compact()
    assert (result.code, code_of(result)) == (Exit.REFUSED, Code.TOO_MANY_HIDDEN)
    assert sum(told) == 11


@pytest.mark.parametrize(("command", "left"), [(Desk.compact, 2), (Desk.rollback, 3)], ids=["compact-swap", "rollback"])
def test_where_too_many_hidden_files_come_during_a_run_its_units_are_left_alone(monkeypatch, command, left):
    """They come just before the first unit leaves live, or before its backup is claimed."""
    monkeypatch.setattr(listings, "MOST_HIDDEN", 50)
    desk = a_desk("dt=1", "dt=2", "dt=3")
    if command is Desk.rollback:
        desk.compact()
    before = desk.world.rows_of(desk.table)
    told = record_told(desk)
    before_first(desk, retires, lambda: (add_hidden(desk, 100), told.clear()))
    result = command(desk)
    assert [unit.why and unit.why.code for unit in result.tables[0].units].count(Code.TOO_MANY_HIDDEN) == left
    assert max(told) == 51
    assert desk.world.rows_of(desk.table) == before


def test_a_writers_directory_with_very_many_files_is_not_taken_for_a_leftover(monkeypatch):
    monkeypatch.setattr("hivekeeper.steps.leftovers.MOST_ENTRIES", 20)
    desk = a_desk("dt=1")
    add_hidden(desk, 20, "_temporary/0")
    age(desk)
    told, look = [], desk.world.files.look

    def look_at(places, *most):
        seen = look(places, *most)
        told.append(sum(len(one.entries) for place, one in seen.items() if "_temporary" in place))
        return seen

    desk.world.files.look = look_at
    assert code_of(desk.compact()) is Code.WRITER_AT_WORK
    assert sum(told) == 21
    desk.world.files.writer.delete(f"{desk.live()}/_temporary/0/_note-00000")
    age(desk)
    assert desk.compact().code is Exit.DONE


OTHER_ENGINES = {
    "ACID": ["base_0000001/bucket_00000", "delta_0000002_0000002_0000/bucket_00000", "delete_delta_0000003_0000003_0000/bucket_00000"],
    "Iceberg": ["metadata/v1.metadata.json", "data/00000-0-a.parquet"],
    "Delta": ["_delta_log/00000000000000000000.json", "deletion/part-00000.parquet"],
    "Hudi": [".hoodie_partition_metadata", "archive/part-00000.parquet"],
}


@pytest.mark.parametrize("unit", ["dt=1", ""], ids=["partitioned", "unpartitioned"])
@pytest.mark.parametrize("engine", OTHER_ENGINES)
def test_directories_of_another_engine_are_not_taken_apart(engine, unit, monkeypatch):
    """They look like a late committer's; but they say which rows are there, and in which version."""
    world = World()
    world.add_table(a_table(["dt"] if unit else []), {unit: [1000] * 3})
    desk = Desk(world, backup_table=False)
    theirs = [f"{desk.live(unit)}/{path}" for path in OTHER_ENGINES[engine]]

    def come(desk):
        for path in theirs:
            desk.world.add_file(path, [f"row of {path}"])

    act_before_live_is_settled(desk, come, monkeypatch, unit)
    desk.compact()
    assert set(theirs) <= world.files.contents(desk.live(unit)).keys()


@pytest.mark.parametrize("becomes", [True, False])
@pytest.mark.parametrize("unit", ["dt=1", ""], ids=["partitioned", "unpartitioned"])
def test_a_table_that_became_transactional_in_an_outage_keeps_its_directories(unit, becomes, monkeypatch):
    world = World()
    world.add_table(a_table(["dt"] if unit else [], kind="MANAGED_TABLE"), {unit: [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.kill_before(["rename_exact", f"/ready/u00001 {desk.live(unit)}"], desk.compact)
    if becomes:
        world.set_property(desk.table, transactional="true")
    act_before_live_is_settled(desk, lambda desk: nest(desk, unit, "written"), monkeypatch, unit)
    desk.recover()
    assert (f"{desk.live(unit)}/written/late.parquet" in world.files.contents(desk.live(unit))) is becomes


def settle_with_a_directory(desk, come, monkeypatch):
    """A late committer's, as far as its name tells; returns what live holds before and after."""
    before = []

    def come_and_count(desk):
        come(desk)
        before.extend(desk.world.files.contents(desk.live("dt=1")).keys())

    act_before_live_is_settled(desk, come_and_count, monkeypatch)
    assert desk.compact().code is Exit.INVESTIGATE
    return set(before), desk.world.files.contents(desk.live("dt=1")).keys()


@pytest.mark.parametrize(
    "strange", ["part-0.parquet.crc/x", "_hidden.parquet", ".part-0.parquet.inprogress", "open.parquet", "deeper/part-0.parquet"]
)
def test_a_directory_that_no_committer_would_leave_so_stays_where_it_is(strange, monkeypatch):
    def come(desk):
        place = nest(desk)
        if strange == "open.parquet":
            desk.world.files.writer.open(f"{place}/{strange}")
        else:
            desk.world.add_file(f"{place}/{strange}", ["strange"])

    before, after = settle_with_a_directory(a_desk("dt=1"), come, monkeypatch)
    assert before == after


@pytest.mark.parametrize(
    "other", [{"owner": "mallory"}, {"mode": 0o700}, {"group": "hr", "mode": 0o750}], ids=["owner", "narrower", "group"]
)
def test_a_directory_with_other_rights_than_the_units_is_not_opened_by_moving_its_files_up(other, monkeypatch):
    """Whoever may write to the directory above another table may rename it, but read nothing in it."""

    def come(desk):
        node = desk.world.files.namespace.find(nest(desk))
        node.attributes = replace(node.attributes, **other)

    before, after = settle_with_a_directory(a_desk("dt=1"), come, monkeypatch)
    assert before == after


def exchanged_before_a_look(desk, tail, other):
    """Another directory stands at the path that ends so from the moment on at which the one there is listed by itself."""
    look, rename = desk.world.files.look, desk.world.files.namespace.rename

    def look_later(places, *most):
        if len(places) == 1 and places[0].endswith(tail) and desk.world.files.namespace.find(other):
            rename(places[0], f"{other}.former")
            rename(other, places[0])
        return look(places, *most)

    desk.world.files.look = look_later


def test_files_of_a_closed_directory_that_comes_to_the_place_of_one_that_is_lifted_are_not_moved_up(monkeypatch):
    desk = a_desk("dt=1")
    closed = f"{desk.live()}/.closed"
    desk.world.add_file(f"{closed}/secret.parquet", ["secret"])
    desk.world.files.namespace.find(closed).attributes = replace(desk.world.files.namespace.find(closed).attributes, mode=0o700)
    act_before_live_is_settled(desk, nest, monkeypatch)
    exchanged_before_a_look(desk, "/dt=1/attempt", closed)
    assert desk.compact().code is Exit.INVESTIGATE
    assert f"{desk.live('dt=1')}/attempt/secret.parquet" in desk.world.files.contents(desk.live("dt=1"))


@pytest.mark.parametrize("kind", ["files", "directories"])
@pytest.mark.parametrize("number", [10, 11], ids=["as many", "too many"])
def test_what_somebody_puts_at_a_units_place_in_the_gap_is_merged_only_as_long_as_it_is_little(monkeypatch, caplog, kind, number):
    """Each costs a call, without a pause; what is left stays aside, and the operator is told where."""
    monkeypatch.setattr("hivekeeper.steps.arrivals.MOST_LIFTED", 10)
    desk = a_desk("dt=1")
    flood, live = f"{desk.live()}/.flood", desk.live("dt=1")
    for nth in range(number):
        desk.world.add_file(f"{flood}/x{nth}.parquet" if kind == "files" else f"{flood}/_d{nth}/x.parquet", [f"flood{nth}"])
    age(desk)
    before_first(desk, lambda what: f"/ready/u00001 {live}" in what, lambda: desk.world.files.writer.rename_into(flood, live))
    assert desk.compact().code is (Exit.INVESTIGATE if number == 11 else Exit.DONE)
    aside = desk.control.run(desk.runs[0]).recreated(1, 0)
    left = [path for path in desk.world.picture() if path.startswith(f"{aside}/") and path.endswith(".parquet")]
    assert len(left) == (11 if number == 11 else 0)
    assert (f"step=merge-recreated left path='{aside}'" in caplog.text) is (number == 11)


def come_in_the_gap(desk, directory, files, is_new=False):
    """Somebody renames a directory with one file to the unit's place while its live directory is away. `is_new`: it is made then."""
    place, live = f"{desk.live()}/.moved", desk.live("dt=1")

    def make():
        desk.world.add_file(f"{place}/late.parquet", ["late"])
        for path, attributes in ((place, directory), (f"{place}/late.parquet", files)):
            node = desk.world.files.namespace.find(path)
            node.attributes = replace(node.attributes, **attributes)

    def come():
        if is_new:
            make()
        desk.world.files.writer.rename_into(place, live)

    if not is_new:
        make()
    age(desk)
    before_first(desk, lambda what: f"/ready/u00001 {live}" in what, come)


def test_a_file_that_comes_to_a_units_place_in_the_gap_stays_aside_and_is_told_of(caplog):
    """`hdfs dfs -put` makes it if there is no directory. Nobody knows its name in the unit."""
    desk = a_desk("dt=1")
    live = desk.live("dt=1")
    at(desk, [f"/ready/u00001 {live}"], lambda: desk.world.files.writer.add(live, DataFile(("late",)), 10))
    assert desk.compact().code is Exit.INVESTIGATE
    aside = desk.control.run(desk.runs[0]).recreated(1, 0)
    assert aside in desk.world.picture()
    assert f"step=merge-recreated left path='{aside}'" in caplog.text


def overwrite(desk):
    desk.world.overwrite(desk.live("dt=1"), "other.parquet", ["other"], whole=True)


@pytest.mark.parametrize(
    ("steps", "change"),
    [(2, overwrite), (1, lambda desk: desk.world.catalog.drop_partition(desk.table, "dt=1")), (2, rename_partition)],
    ids=["overwritten", "dropped", "renamed with the new files"],
)
def test_rows_that_came_in_the_gap_are_told_of_if_a_killed_run_cannot_merge_them_any_more(steps, change):
    desk = a_desk("dt=1")
    manage(desk)
    place, live = f"{desk.live()}/.moved", desk.live("dt=1")
    desk.world.add_file(f"{place}/late.parquet", ["late"])
    age(desk)

    def come_then_die():
        desk.world.files.writer.rename_into(place, live)
        at(desk, ["/recreated/u00001.0"], lambda: desk.world.files.die_after(steps))

    at(desk, [f"/ready/u00001 {live}"], come_then_die)
    with suppress(Killed):
        desk.compact()
    survive(desk)
    change(desk)
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert "/recreated/u00001.0" in result.tables[0].problem.what
    assert ("unpin" in result.tables[0].problem.next) is bool(desk.log().pinned)
    assert desk.compact().code is not Exit.INVESTIGATE
    assert desk.cleanup().code is Exit.DONE
    assert "late" in desk.world.rows_anywhere()


@pytest.mark.parametrize("is_rollback", [False, True], ids=["swap", "rollback"])
def test_late_rows_that_a_killed_run_has_not_carried_over_are_told_of_if_the_partition_is_renamed(is_rollback):
    desk = a_desk("dt=1")
    manage(desk)
    live, command = desk.live("dt=1"), desk.rollback if is_rollback else desk.compact
    if is_rollback:
        desk.compact()
    age(desk)

    def arrive_then_die():
        desk.world.add_file(f"{live}/late.parquet", ["late"])
        at(desk, [f"/u00001 {live}"], lambda: desk.world.files.die_after(1))

    at(desk, [f"{live} ", "/retired/u00001"], arrive_then_die)
    with suppress(Killed):
        command()
    survive(desk)
    rename_partition(desk)
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert "late.parquet" in result.tables[0].problem.what
    assert "unpin" not in result.tables[0].problem.next
    desk.cleanup()
    assert "late" in desk.world.rows_anywhere()


CLOSED = [{"mode": 0o700}, {"group": "hr", "mode": 0o750}, {"group": "hr", "mode": 0o705}, {"owner": "mallory", "mode": 0o711}]


@pytest.mark.parametrize("inner", ["", "x"], ids=["at its top", "deeper"])
@pytest.mark.parametrize("directory", CLOSED, ids=["owner", "group", "others", "names"])
def test_a_closed_directory_that_comes_in_the_gap_is_not_opened_by_merging_it(caplog, directory, inner):
    """Whoever may write to the directory above another table may rename it to a unit's place, but read nothing in it."""
    desk = a_desk("dt=1")
    before = desk.world.rows_of(desk.table)
    come_in_the_gap(desk, directory, {"file_mode": 0o644})
    if inner:
        desk.world.files.writer.add(f"{desk.live()}/.moved/{inner}/secret.parquet", DataFile(("secret",)), 10)
    assert desk.compact().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == before
    aside = desk.control.run(desk.runs[0]).recreated(1, 0)
    assert f"{aside}/late.parquet" in desk.world.picture()
    assert not inner or f"{aside}/{inner}/secret.parquet" in desk.world.picture()
    assert f"step=merge-recreated left path='{aside}'" in caplog.text


def test_a_closed_directory_that_comes_to_the_place_of_one_that_is_merged_is_not_opened(caplog):
    """By an exchanged control directory: what it holds is not what was looked at."""
    desk = a_desk("dt=1")
    before = desk.world.rows_of(desk.table)
    come_in_the_gap(desk, {"mode": 0o755}, {"file_mode": 0o644})
    closed = f"{desk.live()}/.closed"
    desk.world.add_file(f"{closed}/secret.parquet", ["secret"])
    desk.world.files.namespace.find(closed).attributes = replace(desk.world.files.namespace.find(closed).attributes, mode=0o700)
    age(desk)
    exchanged_before_a_look(desk, "/recreated/u00001.0", closed)
    assert desk.compact().code is Exit.INVESTIGATE
    assert desk.world.rows_of(desk.table) == before
    aside = desk.control.run(desk.runs[0]).recreated(1, 0)
    assert f"{aside}/secret.parquet" in desk.world.picture()
    assert f"step=merge-recreated left path='{aside}'" in caplog.text


def test_a_closed_directory_that_is_away_only_while_rights_are_compared_is_not_opened_by_merging_it():
    desk = a_desk("dt=1")
    before, files, done = desk.world.rows_of(desk.table), desk.world.files, []
    come_in_the_gap(desk, {"mode": 0o700}, {"file_mode": 0o644})
    open_one, attributes = f"{desk.live()}/.open", files.attributes
    desk.world.add_file(f"{open_one}/x.parquet", ["open"])
    age(desk)

    def read_others(places, *ids):
        aside = [place for place in places if place.endswith("/recreated/u00001.0")]
        for place in aside:
            files.namespace.rename(place, f"{open_one}.closed")
            files.namespace.rename(open_one, place)
        found = attributes(places, *ids)
        for place in aside:
            done.append(place)
            files.namespace.rename(place, open_one)
            files.namespace.rename(f"{open_one}.closed", place)
        return found

    files.attributes = read_others
    assert desk.compact().code is Exit.INVESTIGATE
    assert done
    assert desk.world.rows_of(desk.table) == before


@pytest.mark.parametrize("acl", [(), ("user:mallory:r-x",)], ids=["the same", "more by its ACL"])
def test_what_comes_in_the_gap_is_merged_if_the_unit_is_closed_to_the_same_users(acl):
    """Impala gives a new directory the mode of the one above (insert_inherit_permissions), and its files 644."""
    desk = a_desk("dt=1")
    live = desk.world.files.namespace.find(desk.live("dt=1"))
    live.attributes = replace(live.attributes, mode=0o750, acl=acl)
    before = desk.world.rows_of(desk.table)
    come_in_the_gap(desk, {"owner": live.attributes.owner, "group": live.attributes.group, "mode": 0o750}, {"file_mode": 0o644})
    assert desk.compact().code is (Exit.INVESTIGATE if acl else Exit.DONE)
    before["late"] += 0 if acl else 1
    assert desk.world.rows_of(desk.table) == +before


@pytest.mark.parametrize(
    ("directory", "files", "is_merged"),
    [
        ({"owner": "etl", "mode": 0o700}, {"file_mode": 0o600}, False),
        ({"owner": "etl", "mode": 0o750}, {"file_mode": 0o640}, False),
        ({"owner": "etl", "group": "hr", "mode": 0o755}, {"file_mode": 0o664}, True),
    ],
    ids=["umask 077", "umask 027", "open"],
)
def test_what_a_writer_of_another_user_writes_in_the_gap_is_merged_if_it_is_open_and_else_told_of(directory, files, is_merged):
    """Nobody can tell whether a closed directory is another table's, the files of which whoever may write to this one could delete."""
    desk = a_desk("dt=1")
    before = desk.world.rows_of(desk.table)
    come_in_the_gap(desk, directory, files, is_new=True)
    result = desk.compact()
    before["late"] += is_merged
    assert desk.world.rows_of(desk.table) == +before
    assert result.code is (Exit.DONE if is_merged else Exit.INVESTIGATE)
    assert is_merged or "/recreated/u00001.0" in result.tables[0].units[0].why.what
    assert "late" in desk.world.rows_anywhere()


@pytest.mark.parametrize(("markers", "outcome"), [(100, "swapped"), (101, "refused")])
def test_a_unit_with_too_many_markers_is_refused_because_each_costs_calls(markers, outcome):
    """A swap makes each of them again, and a scheduler waits for one or two."""
    desk = a_desk("dt=1", "dt=2")
    for nth in range(markers):
        desk.world.files.writer.add(f"{desk.live('dt=1')}/_mark{nth}", "")
    age(desk)
    made = []
    desk.world.files.before_step = lambda what: made.append(what) if what.startswith("write_new") and "/_mark" in what else None
    result = desk.compact()
    assert {unit.name: unit.outcome.code for unit in result.tables[0].units} == {"dt=1": outcome, "dt=2": "swapped"}
    assert len({what.split()[1] for what in made}) == (markers if outcome == "swapped" else 0)
    assert code_of(result) is (Code.TOO_MANY_HIDDEN if outcome == "refused" else None)
