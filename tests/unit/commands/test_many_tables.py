"""A night over 200 tables, some refused, locked, broken or killed earlier: the others are done, and every table is reported."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import per_table
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.plan.analysis import Status
from hivekeeper.ports import Cluster, MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, overview, properties, screen
from hivekeeper.report.results import SEVERITY, CommandResult, TableOutcome
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.contexts import a_context
from support.counting import ASK_NO_SERVER
from support.desk import Desk, outcomes
from support.fakes.metastore import FakeMetastore
from support.fakes.rows import FakeRows
from support.listings import listen
from support.world import World

TABLES = 200
DAY_MS = 86_400_000
QUIET = Settings(min_quiet_ms=0)

# What is wrong with some of them; the others are eligible.
ACID, VIEWS = range(10), range(10, 20)
OVERLAPPING = (20, 21)
LOCKED = range(30, 40)
KILLED = range(50, 55)
FINE = range(60, 80)
BREAKS, FORBIDDEN, UNREADABLE, FAILS, ASKS = 90, 91, 92, 93, 94


def name_of(number: int) -> str:
    return f"t{number:03d}"


def full(number: int) -> str:
    return f"sales.{name_of(number)}"


class BrokenMetastore(FakeMetastore):
    """Does not answer for the partitions of one table."""

    def partitions(self, table):
        if table.full_name == full(BREAKS):
            raise MetastoreUnavailable("the metastore does not answer (TTransportException)")
        return super().partitions(table)


class BrokenRows(FakeRows):
    """One table's job fails; units are identified by where they are written."""

    def write_stage(self, batch):
        self.fail = lambda one: "no executors" if f"{name_of(FAILS)}/" in one.target else None
        return super().write_stage(batch)


def build() -> World:
    world = World()
    for number in range(TABLES):
        more: Dict[str, Any] = {"parameters": {"transactional": "true"}} if number in ACID else {}
        more = {"kind": "VIRTUAL_VIEW", "location": ""} if number in VIEWS else more
        more = {"location": f"{world.table(full(OVERLAPPING[0])).location}/inside"} if number == OVERLAPPING[1] else more
        table = a_table(["dt"] if number in (BREAKS, FAILS) else (), name=name_of(number), **more)
        lengths = [1000] if number in FINE else [1000] * 3
        world.add_table(table, {} if number in VIEWS else {"dt=1" if table.partitioned else "": lengths})
    spoil(world)
    return world


def spoil(world: World) -> None:
    for number in KILLED:
        desk = Desk(world, full(number), **vars(QUIET))
        desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    for number in LOCKED:
        world.files.another_client().hold(control_of(world, number).lock, "run X of bob on edge2")
    world.files.namespace.unreadable.add(world.files.qualify(world.table(full(FORBIDDEN)).location))
    world.files.writer.add(f"{world.table(full(UNREADABLE)).location}/broken.parquet", "not a data file")
    world.files.writer.add(f"{control_of(world, ASKS).log}/{names.log_entry(0)}", "no JSON")
    world.files.namespace.advance(3_600_000)


def control_of(world: World, number: int) -> ControlPaths:
    table = world.table(full(number))
    return ControlPaths.of(table.location, table.partitioned)


def compact(world: World, cluster: Any = None, run: int = 1, dry_run: bool = False, settings: Settings = QUIET, **selected: Any):
    selection = Selection(**(selected or {"databases": ("sales",)}))
    run_id = f"20260201t0203{run:02d}z-0000"
    return compact_swap(a_context(cluster or world.cluster, selection, run_id, settings, dry_run=dry_run))


EXPECTED: Dict[int, Exit] = {
    **dict.fromkeys([*ACID, *VIEWS, *OVERLAPPING, FORBIDDEN, UNREADABLE], Exit.REFUSED),
    **dict.fromkeys(LOCKED, Exit.LOCKED),
    BREAKS: Exit.UNUSABLE,
    FAILS: Exit.PARTIAL,
    ASKS: Exit.INVESTIGATE,
}


@pytest.fixture(scope="module")
def night():
    """The world after the night, what its readers saw before, and the result."""
    world = build()
    rows = {number: world.rows_of(full(number)) for number in range(TABLES)}
    broken = world.cluster_of(world.files, BrokenMetastore(world.files, world.catalog), BrokenRows(world.files))
    return world, rows, compact(world, broken)


def test_each_table_has_its_own_code_and_the_gravest_is_the_commands(night):
    _, _, result = night
    codes = {table.table: table.code for table in result.tables}
    assert codes == {full(number): EXPECTED.get(number, Exit.DONE) for number in range(TABLES)}
    assert result.code is Exit.INVESTIGATE


def test_every_table_that_is_fit_was_done_and_no_row_of_any_is_lost_or_doubled(night):
    world, rows, result = night
    done = {table.table for table in result.tables if any(unit.outcome.code == "swapped" for unit in table.units)}
    recovered = {full(number) for number in KILLED}
    expected = {full(number) for number in range(TABLES) if number not in EXPECTED and number not in FINE}
    assert done | recovered == expected
    # A run killed in the gap is finished, so there is nothing left to compact.
    assert {table.table for table in result.tables if table.recovered} == recovered
    for number in set(range(TABLES)) - set(KILLED):
        assert world.rows_of(full(number)) == rows[number], full(number)
    for number in KILLED:
        assert world.rows_of(full(number)) == Counter(f"{name_of(number)}//{nth}" for nth in range(3))


class MetastoreOfBugs(FakeMetastore):
    """Raises an unforeseen exception for the partitions of some tables."""

    def __init__(self, *args: Any, bugs: Dict[str, BaseException]) -> None:
        super().__init__(*args)
        self.bugs = bugs
        self.asked: List[str] = []

    def partitions(self, table):
        self.asked.append(table.name)
        if table.name in self.bugs:
            raise self.bugs[table.name]
        return super().partitions(table)


BUGS = {"a": KeyError("cols"), "b": RecursionError("maximum recursion depth exceeded"), "c": MemoryError(), "d": OSError("no such device")}


def three_files_each(names_of_tables, bugs=None, **more):
    world = World()
    for name in names_of_tables:
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3})
    metastore = MetastoreOfBugs(world.files, world.catalog, bugs=bugs or {})
    return replace(world.cluster_of(world.files, metastore, FakeRows(world.files)), **more), metastore


def test_an_error_that_nobody_foresaw_is_that_of_its_table_and_the_others_are_done(caplog):
    cluster, _ = three_files_each("abcde", BUGS)
    with caplog.at_level("ERROR", logger="hivekeeper"):
        result = compact_swap(a_context(cluster, Selection(databases=("sales",)), "20260201t020301z-0000", QUIET))
    assert [table.code for table in result.tables] == [Exit.BUG] * 4 + [Exit.DONE]
    assert result.tables[4].count(Outcome.SWAPPED) == 1
    assert result.code is Exit.BUG
    assert [table.problem.code for table in result.tables[:4]] == [Code.BUG] * 4
    assert result.tables[0].problem.what == "sales.a: unexpected error: KeyError: 'cols'"
    stacks = [record for record in caplog.records if record.exc_info]
    assert [record.exc_info[0] for record in stacks] == [KeyError, RecursionError, MemoryError, OSError]
    assert [record.args for record in stacks] == [(f"sales.{name}",) for name in "abcd"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_end_that_somebody_wants_is_no_error_of_a_table(error):
    cluster, _ = three_files_each("ab", {"a": error()})
    with pytest.raises(error):
        compact_swap(a_context(cluster, Selection(databases=("sales",)), "20260201t020301z-0000", QUIET))


def test_where_spark_has_ended_no_further_table_is_tried():
    ended = []
    cluster, metastore = three_files_each("abcd", {"b": ConnectionRefusedError(111, "refused")}, lost=lambda: ended[0] if ended else "")
    first = metastore.partitions
    metastore.partitions = lambda table: (ended.append("Spark's Java process ended") if table.name == "b" else None, first(table))[1]
    result = compact_swap(a_context(cluster, Selection(databases=("sales",)), "20260201t020301z-0000", QUIET))
    assert [table.code for table in result.tables] == [Exit.DONE, Exit.UNUSABLE, Exit.UNUSABLE, Exit.UNUSABLE]
    assert {table.problem.code for table in result.tables[1:]} == {Code.SPARK_ENDED}
    assert not {"c", "d"} & set(metastore.asked)
    assert result.code is Exit.PARTIAL


def test_every_table_that_was_not_done_says_why_and_what_to_do(night):
    _, _, result = night
    for table in document.build(result)["tables"]:
        if table["exit_code"]:
            said = [table["error"]] if table["error"] else [{"what": unit["reason"], "next": unit["next"]} for unit in table["units"]]
            assert said
            assert all(one["what"] and one["next"] for one in said), table["table"]


def test_the_document_counts_the_tables_by_their_codes(night):
    _, _, result = night
    counts = Counter(EXPECTED.get(number, Exit.DONE) for number in range(TABLES))
    totals = document.build(result)["totals"]
    assert totals["exit_codes"] == {str(int(code)): count for code, count in sorted(counts.items())}
    assert sum(totals["exit_codes"].values()) == totals["tables"] == TABLES


def test_the_text_has_a_line_for_each_table_done_and_ends_with_what_needs_a_hand(night):
    _, _, result = night
    lines = screen.render(result).splitlines()
    done = [line for line in lines if ": compacted 1 unit: 3 → 1 file" in line]
    assert len(done) == len({line.partition(":")[0] for line in done}) == TABLES - len(EXPECTED) - len(FINE) - len(KILLED)
    heads = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    held = "held by another run or by a writer"
    assert heads == ["refused", "not all done, run again", held, "the cluster could not be used", "stop and investigate"]
    assert f"{name_of(ASKS)}/log/{0:020d}.json cannot be read" in " ".join(lines[-5:])
    assert lines[-1].startswith("200 tables: ")
    assert lines[-1].endswith("; exit code 7")
    assert len(lines) < TABLES + 60


def test_all_of_it_is_told_where_partitions_are_asked_for(night):
    _, _, result = night
    assert f"{full(UNREADABLE)}: refused: a file cannot be read" in screen.render(result, partitions=True)
    assert len(screen.render(result, partitions=True).splitlines()) > 2 * TABLES


def test_the_properties_stay_small_and_name_the_gravest_trouble(night):
    _, _, result = night
    text = properties.render(result)
    assert len(text.encode()) < properties.LIMIT
    assert f"hivekeeper.tables={TABLES}" in text
    assert f"/log/{names.log_entry(0)} cannot be read" in text


@pytest.mark.repeating
def test_the_next_night_does_what_could_not_be_done_and_nothing_twice():
    world = build()
    compact(world)
    world.files.expire_locks()
    world.files.namespace.unreadable.clear()
    second = compact(world, run=2)
    done = {table.table for table in second.tables if any(unit.outcome.code == "swapped" for unit in table.units)}
    assert done == {full(number) for number in [*LOCKED, FORBIDDEN]}


@pytest.mark.repeating
def test_a_dry_run_over_all_of_them_changes_nothing():
    world = build()
    before = world.picture()
    result = compact(world, dry_run=True)
    assert world.picture() == before
    assert screen.render(result).splitlines()[-1].startswith("200 tables: ")


def test_many_named_tables_that_are_refused_are_a_line_each_and_no_more_than_twenty():
    world = build()
    result = compact(world, tables=tuple(full(number) for number in [*ACID, *VIEWS, *OVERLAPPING, 100]))
    lines = screen.render(result).splitlines()
    assert len([line for line in lines if line.startswith("  sales.t0")]) == 20
    assert "  … and 2 more (all of them with --json)" in lines
    assert result.code is Exit.PARTIAL


def test_every_code_has_a_place_in_the_order_and_a_head():
    assert sorted(SEVERITY) == sorted(Exit)
    assert set(overview.HEADS) == set(Exit)


def test_the_order_of_the_codes_is_that_of_the_docs():
    page = (Path(__file__).parents[3] / "docs" / "many-tables.md").read_text("utf-8")
    assert ", ".join(str(int(code)) for code in SEVERITY) + "." in page


# -- what it costs ------------------------------------------------------------------------------------------


class Counted:
    """A port that counts its calls."""

    def __init__(self, port: Any, calls: Counter) -> None:
        self._port, self._calls = port, calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found) or name in ASK_NO_SERVER:
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._calls[name] += 1
            return found(*arguments, **more)

        return call


def count_calls(tables: int, partitions: int = 1, runs: int = 1) -> Counter:
    """Of the last of several runs."""
    world = World()
    for number in range(tables):
        world.add_table(a_table(["dt"], name=name_of(number)), {f"dt={nth}": [1000] * 3 for nth in range(partitions)})
    for run in range(1, runs):
        compact(world, run=run)
    calls, counted = counted_cluster(world)
    assert compact(world, counted, run=runs).code is Exit.DONE
    return calls


def counted_cluster(world: World) -> Tuple[Counter, Cluster]:
    calls: Counter = Counter()
    ports: List[Any] = [Counted(port, calls) for port in (world.files, world.metastore, world.rows)]
    return calls, world.cluster_of(*ports)


@pytest.mark.repeating
def test_calls_grow_with_the_tables_and_not_with_their_square():
    few, many = count_calls(10), count_calls(100)
    for name in many:
        assert many[name] <= 10 * few[name], name
    assert sum(many.values()) < 109 * 100


def test_a_table_with_nothing_to_do_costs_few_calls():
    calls = count_calls(10, runs=2)
    # It queries Hadoop once for all locations on a file system.
    del calls["qualify"]
    assert sum(calls.values()) < 10 * 29, calls


def test_all_partitions_are_read_once_by_a_command_that_finds_nothing_to_do_and_cleans_up():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [200 * 2**20]})
    desk = Desk(world, cleanup_after=True)
    calls, world.cluster = counted_cluster(world)
    assert desk.compact().code is Exit.DONE
    assert calls["partitions"] == 1


def test_what_lies_beside_the_tables_of_a_database_is_listed_once_and_no_file_is_looked_at():
    """The first one may have blocks of a byte by the million, and whoever asks which files are open is told of them all."""
    world = World()
    for number in range(50):
        world.add_table(a_table(kind="MANAGED_TABLE", name=name_of(number)), {"": [1000] * 3})
    listed, looked_at = listen(world.files, "look_hidden_directories"), listen(world.files, "look", "look_hidden")
    assert compact(world).code is Exit.DONE
    beside = names.parent(a_table().location)
    assert (listed.count(beside), looked_at.count(beside)) == (1, 0)


# The calls that a command makes for each partition, besides `qualify`, which asks no server.
FOR_EACH: Dict[str, Set[str]] = {
    "compact": {"look", "look_hidden", "rename_exact", "partitions_named", "exchange"},
    "backup": set(),
    "verify": set(),
    "rollback": {"look", "look_hidden", "rename_exact", "partitions_named", "exchange"},
    "recover": set(),
    "cleanup": {"look", "rename_exact", "delete_tree"},
    "history": set(),
}


@pytest.mark.parametrize("command", FOR_EACH)
def test_calls_that_only_look_do_not_grow_with_the_partitions(command):
    one, many = count_calls_of(command, 5), count_calls_of(command, 45)
    # These two ask no server.
    assert {name for name in many if many[name] > one[name]} - {"qualify", "user_at"} == FOR_EACH[command]


def count_calls_of(command: str, partitions: int) -> Counter:
    """On one table that was compacted before, where the command needs that."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={nth}": [1000] * 3 for nth in range(partitions)})
    desk = Desk(world)
    if command not in ("compact", "backup"):
        desk.compact()
    calls, world.cluster = counted_cluster(world)
    world.files.namespace.advance(40 * DAY_MS)
    assert getattr(desk, command)().code is Exit.DONE
    return calls


# -- units that fail night after night ----------------------------------------------------------------------


FAILURE = "its compaction failed 3 nights in a row since 2026-01-"


@pytest.fixture
def desk() -> Desk:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world)
    world.rows.fail = lambda batch: "disk is full" if any("/dt=2/" in file.path for unit in batch.units for file in unit.files) else None
    return desk


def pass_night(desk: Desk) -> CommandResult:
    result = desk.compact()
    desk.world.files.namespace.advance(DAY_MS)
    return result


def test_a_unit_that_failed_three_nights_is_left_alone_and_that_is_no_error(desk):
    assert [pass_night(desk).code for _ in range(3)] == [Exit.PARTIAL] * 3
    fourth = pass_night(desk)
    assert (fourth.code, outcomes(fourth)) == (Exit.DONE, {"dt=2": "quarantined"})
    (unit,) = fourth.tables[0].units
    assert unit.reason.startswith(FAILURE)
    assert unit.reason.endswith("last: failed: disk is full")
    assert unit.reason in screen.render(fourth)
    assert "hivekeeper.units_quarantined=1" in properties.render(fourth)
    assert document.build(fourth)["totals"]["outcomes"] == {"quarantined": 1}
    assert desk.log().next_version == 3


def test_a_dry_run_analyze_and_history_show_it(desk):
    # It is not a file of the unit, so it does not count as a change since the failures.
    desk.world.files.writer.make_directory(f"{desk.live('dt=2')}/_impala_insert_staging")
    for _ in range(3):
        pass_night(desk)
    assert outcomes(desk.compact(dry_run=True)) == {"dt=2": "quarantined"}
    (table,) = desk.analyze().tables
    assert table.observed.statuses == {Status.FINE: 1, Status.QUARANTINED: 1}
    assert FAILURE in screen.render(desk.analyze())
    (shown,) = document.build(desk.history())["tables"][0]["quarantined"]
    assert (shown["partition"], shown["nights"], shown["reason"]) == ("dt=2", 3, "disk is full")
    assert shown["until_ms"] - shown["since_ms"] > 9 * DAY_MS - 3_600_000
    assert f"sales.events/dt=2: in quarantine: {FAILURE}" in screen.render(desk.history())


def test_a_new_file_brings_it_back_at_once_and_a_success_ends_it(desk):
    for _ in range(3):
        pass_night(desk)
    desk.append("dt=2", "new")
    assert desk.history().tables[0].quarantined == ()
    assert outcomes(desk.compact()) == {"dt=2": "failed"}
    desk.world.rows.fail = None
    assert outcomes(desk.compact()) == {"dt=2": "swapped"}


def test_it_is_tried_again_when_its_time_is_over_and_left_alone_again_when_it_fails(desk):
    for _ in range(3):
        pass_night(desk)
    desk.world.files.namespace.advance(6 * DAY_MS)
    assert outcomes(pass_night(desk)) == {"dt=2": "failed"}
    assert outcomes(pass_night(desk)) == {"dt=2": "quarantined"}


def test_zero_tries_it_at_once(desk):
    for _ in range(3):
        pass_night(desk)
    desk.world.rows.fail = None
    desk.settings = replace(desk.settings, quarantine_after=0)
    assert outcomes(desk.compact()) == {"dt=2": "swapped"}


def test_analyze_shows_the_files_of_a_table_whose_log_cannot_be_read(desk):
    desk.compact()
    desk.world.files.writer.delete(f"{desk.control.log}/{names.log_entry(0)}")
    desk.world.files.writer.add(f"{desk.control.log}/{names.log_entry(0)}", "no JSON")
    (table,) = desk.analyze().tables
    assert (table.code, table.observed.statuses) == (Exit.DONE, {Status.FINE: 1, Status.COMPACT: 1})


# -- no room ------------------------------------------------------------------------------------------------


@pytest.fixture
def three() -> Desk:
    """Three units; dt=3 gains most, then dt=2."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * (2 + day) for day in (1, 2, 3)})
    return Desk(world)


def limit_backups(desk: Desk, **limits: int) -> None:
    desk.settings = replace(desk.settings, **limits)


def reasons(result: CommandResult) -> List[str]:
    return [unit.reason for unit in result.tables[0].units if unit.outcome.code == "left"]


def test_units_are_compacted_until_the_backups_hold_what_they_may(three):
    limit_backups(three, max_backup_bytes=9000)
    before = three.world.rows_of(three.table)
    result = three.compact()
    assert (result.code, outcomes(result)) == (Exit.PARTIAL, {"dt=3": "swapped", "dt=2": "swapped", "dt=1": "left"})
    assert reasons(result) == ["its backups hold 0 of 9,000 bytes (max_backup_bytes), 12,000 more are needed"]
    assert three.world.rows_of(three.table) == before
    again = three.compact()
    assert (again.code, outcomes(again)) == (Exit.PARTIAL, {"dt=1": "left"})
    assert reasons(again) == ["its backups hold 9,000 of 9,000 bytes (max_backup_bytes), 3,000 more are needed"]
    assert reasons(again)[0] in screen.render(again)


def test_a_cleanup_makes_room_again_and_a_dry_run_tells_the_same_as_the_run(three):
    limit_backups(three, max_backup_bytes=9000)
    assert outcomes(three.compact(dry_run=True)) == {"dt=3": "planned", "dt=2": "planned", "dt=1": "left"}
    three.compact()
    three.cleanup()
    assert (outcomes(three.compact()), three.compact().code) == ({"dt=1": "swapped"}, Exit.DONE)


def test_pinned_backups_count_and_are_named(three):
    limit_backups(three, max_backup_bytes=9000)
    three.pin(three.compact().run)
    (reason,) = reasons(three.compact())
    assert "9,000 of them are pinned" in reason


def test_backups_may_be_limited_by_objects(three):
    # dt=3: five files of one block each, and a directory; dt=2: nine.
    limit_backups(three, max_backup_objects=20)
    assert outcomes(three.compact()) == {"dt=3": "swapped", "dt=2": "swapped", "dt=1": "left"}


def test_an_unfit_unit_takes_no_room_from_the_others(three):
    three.world.files.writer.add(f"{three.live('dt=3')}/broken.parquet", "not a data file", 1000)
    three.world.files.namespace.advance(DAY_MS)
    limit_backups(three, max_backup_bytes=7000)
    assert outcomes(three.compact()) == {"dt=3": "refused", "dt=2": "swapped", "dt=1": "swapped"}


def test_what_fits_into_a_quota_of_names_is_done_and_the_rest_is_left(three):
    world = three.world
    root, top = three.live(), names.parent(three.live())
    three.backup()
    used = 1 + len([path for path, _ in world.files.namespace.walk(root)])
    # The control directory exists already: it takes thirteen names, and each unit takes three.
    world.files.namespace.quotas[root] = (used + 18, None)
    world.files.namespace.quotas[top] = (10**6, 10**12)
    result = three.compact()
    assert (result.code, outcomes(result)) == (Exit.PARTIAL, {"dt=3": "swapped", "dt=2": "left", "dt=1": "left"})
    assert reasons(result)[0] == f"not enough names: 22 are needed, 18 are left in the quota of {root}"


@pytest.mark.parametrize("quota", [(3, None), (None, 1000)], ids=["names", "space"])
def test_a_table_for_which_nothing_fits_is_untouched_and_says_the_numbers(three, quota):
    three.world.files.namespace.quotas[names.parent(three.live())] = quota
    before = three.world.picture()
    for dry_run in (True, False):
        result = three.compact(dry_run=dry_run)
        assert result.code is Exit.UNUSABLE
        assert "are left in the quota of hdfs://nn/warehouse/sales" in result.tables[0].problem.what
    assert three.world.picture() == before


def test_a_quota_further_up_is_known_where_the_site_names_its_directory(three):
    three.world.files.namespace.quotas["hdfs://nn/warehouse"] = (2, None)
    assert outcomes(three.compact(dry_run=True)) == {f"dt={day}": "planned" for day in (1, 2, 3)}
    limit_backups(three, quota_directories=("/warehouse", "/elsewhere"))
    assert three.compact().code is Exit.UNUSABLE


def test_a_table_with_nothing_to_do_asks_for_no_room():
    world = World()
    world.add_table(a_table(), {"": [1000]})
    world.files.namespace.quotas["hdfs://nn/warehouse/sales"] = (0, 0)
    assert Desk(world).compact().code is Exit.DONE


def test_for_each_gives_one_outcome_per_table_in_their_order():
    world = World()
    tables = [a_table(name=name_of(number)) for number in range(3)]
    found = per_table.for_each(
        a_context(world.cluster, Selection(), "20260101t020304z-0000"), tables, lambda _confined, table: TableOutcome(table.full_name)
    )
    assert [outcome.table for outcome in found] == [table.full_name for table in tables]


def run_over(desk, *databases):
    return compact_swap(a_context(desk.world.cluster, Selection(databases=databases), desk._new_run(), desk.settings))


def test_a_database_that_its_owner_has_dropped_costs_no_other_database_its_night():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    result = run_over(Desk(world), "dropped", "sales")
    assert {table.table: table.code for table in result.tables} == {"dropped": Exit.REFUSED, "sales.events": Exit.DONE}
    assert result.tables[0].problem.code is Code.NO_SUCH_DATABASE
    # An operator may have misspelled it.
    assert result.code is Exit.PARTIAL
    assert "the database dropped does not exist" in screen.render(result)
    document.build(result)
    assert run_over(Desk(world), "dropped").code is Exit.REFUSED


@pytest.mark.parametrize("call", ["table_names", "tables"])
def test_a_database_that_the_metastore_refuses_costs_no_other_database_its_night(call, monkeypatch):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.catalog.databases.add("closed")
    ask = getattr(world.metastore, call)

    def refuse(database, *names):
        if database == "closed":
            raise MetastoreRefused("Permission denied: user=etl on database closed")
        return ask(database, *names)

    monkeypatch.setattr(world.metastore, call, refuse)
    result = run_over(Desk(world), "closed", "sales")
    assert {table.table: table.code for table in result.tables} == {"closed": Exit.UNUSABLE, "sales.events": Exit.DONE}
    assert result.code is Exit.PARTIAL


@pytest.mark.parametrize("work", [analyze, compact_swap])
def test_the_files_of_a_table_are_not_kept_until_all_tables_are_done(work):
    """A command over a database told nothing of single files at its end, and held half a kilobyte for each of all its tables."""
    world = World()
    for table in ("few", "many"):
        world.add_table(a_table(["dt"], name=table), {"dt=1": [1000 + number for number in range(100 if table == "few" else 3100)]})
    result = work(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000", QUIET))
    few, many = (len(pickle.dumps(outcome)) for outcome in sorted(result.tables, key=lambda one: one.table))
    assert [unit.sizes.files for outcome in result.tables for unit in outcome.observed.units] == [100, 3100]
    assert (many - few) / 3000 < 20
    assert [sum(files for _, files in unit.lengths) for outcome in result.tables for unit in outcome.observed.units] == [100, 3100]
