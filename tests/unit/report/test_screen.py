"""The exact texts that operators read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config import layers
from hivekeeper.config.settings import Settings
from hivekeeper.config.sources import MASK
from hivekeeper.model import Differences, Selection
from hivekeeper.plan.doctor import WARN, Check
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import document, screen
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.report.text import clean_names
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.replay import FileSet
from support.builders import FORM as OTHER_FORM
from support.builders import MIB, a_table
from support.contexts import a_context
from support.world import World

RUN = "20260101t020304z-0000"
QUIET = Settings(min_quiet_ms=0)


def a_world() -> World:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 200, "dt=2": [128 * MIB], "dt=3": []})
    world.add_table(a_table(name="orders"), {"": [128 * MIB]})
    world.add_table(a_table(name="view", kind="VIRTUAL_VIEW", location=""), {})
    return world


def analyze_text(partitions: bool = False, width: int = 120, **selected: object) -> str:
    selected = selected or {"databases": ("sales",)}
    result = analyze(a_context(a_world().cluster, Selection(**selected), RUN))
    return screen.render(result, partitions, width)


def compact_text(dry_run: bool = False, world: World = None, partitions: bool = False) -> str:
    world = world or a_world()
    selection = Selection(tables=("sales.events",))
    result = compact_swap(a_context(world.cluster, selection, RUN, dry_run=dry_run))
    return screen.render(result, partitions, 120)


def mixed_text(dry_run: bool) -> str:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [], "dt=2": [MIB] * 4})
    for number in range(6):
        form = replace(OTHER_FORM, identity=f"writer {number % 3}")
        world.add_file(f"{a_table().location}/dt=1/{number}.parquet", ["x"], form=form)
    world.files.namespace.advance(3_600_000)
    return compact_text(dry_run, world)


def dry_text() -> str:
    return compact_text(dry_run=True)


def a_result(*tables: TableOutcome, command: str = "compact-swap", named: bool = True, dry_run: bool = False) -> CommandResult:
    return CommandResult(command, RUN, 0, 1.0, named, dry_run, tables)


SUMMARY = """\
TABLE         STATUS   UNITS  WORK  FILES  AFTER     SIZE  AVERAGE   MEDIAN  THRESHOLD
------------  -------  -----  ----  -----  -----  -------  -------  -------  ---------
sales.events  compact      3     1    201      3  328 MiB  1.6 MiB    1 MiB   12.8 MiB
sales.orders  fine         1     0      1      1  128 MiB  128 MiB  128 MiB   12.8 MiB

files            202 now, at least 4 after compact-swap
NameNode objects 408 now, 428 after compact-swap (the old files stay as the backup), 19 after cleanup
to be rewritten  200 MiB

sales.events: file sizes
  1 MiB to 16 MiB  200  ██████████
 16 MiB to 64 MiB    0
64 MiB to 128 MiB    0
     from 128 MiB    1  █

left alone:
  sales.view: it is a view [view] — name the table behind it"""


def test_analyze_shows_the_tables_the_gain_the_sizes_and_what_is_left_alone():
    assert analyze_text(width=60) != SUMMARY, "60 columns are too few for the table"
    assert analyze_text(width=86).replace("█" * 36, "█" * 10) == SUMMARY


PARTITIONS = """\
sales.events: 3 units
PARTITION  STATUS   FILES  AFTER     SIZE  AVERAGE   MEDIAN  WHY
---------  -------  -----  -----  -------  -------  -------  ---
dt=1       compact    200      2  200 MiB    1 MiB    1 MiB
dt=2       fine         1      1  128 MiB  128 MiB  128 MiB
dt=3       empty        0      0      0 B      0 B      0 B
"""


def test_analyze_shows_each_partition_where_asked_for():
    assert PARTITIONS in analyze_text(partitions=True, tables=("sales.events",))
    assert PARTITIONS not in analyze_text(tables=("sales.events",))


def test_one_long_name_of_a_partition_does_not_make_every_line_as_long():
    """The metastore takes names of 767 characters, of which each may be shown as ten."""
    world, long = World(), "dt=" + "\U000e0001" * 760
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 20, long: [MIB] * 20})
    told = screen.render(analyze(a_context(world.cluster, Selection(tables=("sales.events",)), RUN)), partitions=True)
    assert "dt=1 " in told
    assert max(map(len, told.splitlines())) < 500


def test_a_unit_of_a_whole_table_is_called_so():
    assert "(whole table)  fine" in analyze_text(partitions=True, tables=("sales.orders",))


def test_analyze_of_a_named_table_that_is_refused_is_an_error_in_three_lines():
    assert analyze_text(tables=("sales.view",)) == (
        "nothing to show\n\nhivekeeper: sales.view: it is a view [view]\n  state: nothing was changed\n  next:  name the table behind it"
    )


BAR = "█" + "░" * 59


@pytest.mark.parametrize("dry_run", [True, False])
def test_more_files_than_sizes_ask_for_are_explained(dry_run):
    lines = mixed_text(dry_run).splitlines()
    assert "2 units: 10 → 4 files" in lines[0]
    assert "  files of different writers, schemas or codecs stay apart in 1 unit: up to 3 forms in one" in lines


def test_compact_swap_says_what_was_done():
    assert compact_text() == (
        "sales.events: compacted 1 unit: 200 → 2 files, 200 MiB → 200 MiB, 0 ms\n"
        f"  {BAR} 100x fewer files\n"
        f"  200 rows proved by digest, longest gap 0.0 ms, run {RUN}\n"
        "  old rows in SQL: sales.__bkp_events_20260101_020304"
    )


def test_a_dry_run_says_what_would_be_done():
    assert dry_text() == f"sales.events: would compact 1 unit: 200 → 2 files, 200 MiB\n  {BAR} 100x fewer files"


def test_compact_swap_says_why_units_were_left_and_what_to_do():
    world = a_world()
    world.add_file(
        f"{world.catalog.tables['sales.events'].location}/dt=1/other.parquet",
        ["x"],
        MIB,
        form=replace(OTHER_FORM, undecodable=("pages encoded with ZSTD3",)),
    )
    world.files.namespace.advance(3_600_000)
    assert compact_text(world=world) == (
        "  sales.events/dt=1: refused: this cluster's Parquet library cannot read pages encoded with ZSTD3 [not-faithful] "
        "— leave the unit out with --where"
    )


def test_nothing_to_do_is_said():
    world = a_world()
    compact_text(world=world)
    assert compact_text(world=world) == "sales.events: nothing to do"
    assert screen.render(a_result()) == "no table is selected"


def test_late_files_and_recovered_runs_are_told():
    unit = UnitOutcome("", Outcome.SWAPPED, 3, 3000, 1, 2900, 30, 4.26, ("late.parquet",))
    table = TableOutcome("d.t", RUN, (unit,), recovered=(("R0", {Outcome.SWAPPED: 2, Outcome.PUT_BACK: 1}), ("R1", {})), seconds=75)
    assert screen.render(a_result(table), width=80).splitlines() == [
        "d.t: recovered run R0: 2 swapped, 1 put back",
        "d.t: recovered run R1: it had changed nothing",
        "d.t: compacted 1 unit: 3 → 1 file, 2.9 KiB → 2.8 KiB, 1 min 15 s",
        "  " + "█" * 13 + "░" * 27 + " 3.0x fewer files",
        f"  30 rows proved by digest, longest gap 4.3 ms, run {RUN}",
        "  1 file arrived during the run, carried over",
    ]


def test_a_long_list_of_units_is_cut_unless_partitions_are_asked_for():
    units = tuple(
        UnitOutcome(f"dt={number}", Outcome.FAILED, 3, 3000, why=Reason(Code.JOB_FAILED, f"boom {number}")) for number in range(25)
    )
    table = TableOutcome("d.t", RUN, units)
    short, full = (screen.render(a_result(table), partitions).splitlines() for partitions in (False, True))
    assert (len(short), short[0], short[-1]) == (21, "  d.t/dt=0: failed: boom 0 [job-failed]", "  … and 5 more (all of them with --json)")
    assert len(full) == 25


def test_units_that_are_left_for_one_reason_are_told_in_one_line_unless_partitions_are_asked_for():
    units = tuple(
        UnitOutcome(f"dt={number}", Outcome.LEFT, 3, 3000, why=Reason(Code.NOT_ENOUGH_SPACE, "no room", "make some"))
        for number in range(25)
    )
    table = TableOutcome("d.t", RUN, (*units, UnitOutcome("dt=x", Outcome.FAILED, 3, 3000, why=Reason(Code.JOB_FAILED, "boom"))))
    assert (
        screen.render(a_result(table))
        == "  d.t: 25 units left: no room [not-enough-space] — make some\n  d.t/dt=x: failed: boom [job-failed]"
    )
    assert len(screen.render(a_result(table), partitions=True).splitlines()) == 26


def test_two_tables_are_apart_by_one_blank_line_and_so_are_their_problems():
    problem = Reason(Code.TABLE_LOCKED, "d.u: another run holds the table", "wait for it", "untouched by this run")
    tables = (TableOutcome("d.s"), TableOutcome("d.t"), TableOutcome("d.u", problem=problem))
    assert screen.render(a_result(*tables)) == (
        "d.s: nothing to do\n\nd.t: nothing to do\n\n"
        "hivekeeper: d.u: another run holds the table [table-locked]\n  state: untouched by this run\n  next:  wait for it"
    )
    assert screen.render(a_result(*tables, named=False)).endswith(
        "\n\nleft alone:\n  d.u: another run holds the table [table-locked] — wait for it"
    )


def test_recover_says_what_it_settled_or_that_there_was_nothing():
    settled = TableOutcome("d.t", recovered=((RUN, {Outcome.SWAPPED: 2}),))
    assert screen.render(a_result(settled, command="recover")) == f"d.t: recovered run {RUN}: 2 swapped"
    assert screen.render(a_result(TableOutcome("d.t"), command="recover")) == "nothing to recover"


def test_a_control_character_in_a_partition_name_does_not_reach_the_terminal():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=\x1b[2J": [MIB] * 20})
    result = analyze(a_context(world.cluster, Selection(tables=("sales.events",)), RUN))
    assert "\x1b" not in screen.render(result, partitions=True)
    outcome = UnitOutcome("dt=\x1b[2J", Outcome.FAILED, 3, 3000, why=Reason(Code.JOB_FAILED, "\x1b[31mboom"))
    assert "\x1b" not in screen.render(a_result(TableOutcome("d.t", RUN, (outcome,))))
    assert "\x1b" not in screen.render_problem(Reason(Code.BUG, "\x1b[2J", "n", "s"))


FORGED = "dt=1\nsales.events: compacted 9 units\r\x1b[2K\u2028x"


def forging_results():
    """The results of every command, with a name that tries to forge a line."""
    why = Reason(Code.JOB_FAILED, f"gone: {FORGED}", FORGED, FORGED)
    unit = UnitOutcome(FORGED, Outcome.FAILED, 3, 3000, why=why, late_files=(FORGED,), of_run=FORGED)
    done = replace(unit, outcome=Outcome.SWAPPED, files_after=1, bytes_after=1, why=None)
    verified = replace(unit, outcome=Outcome.VERIFIED, differences=Differences(1, 0, (FORGED,), ({FORGED: FORGED},), ()))
    table = TableOutcome(f"sales.{FORGED}", RUN, (unit, done, verified), recovered=((FORGED, {Outcome.SWAPPED: 1}),), backup_table=FORGED)
    files = FileSet({FORGED: 1}, {FORGED: (2, FORGED)})
    failed = TableOutcome(f"sales.{FORGED}", problem=why)
    for command in ("compact-swap", "backup", "verify", "rollback", "cleanup", "recover", "pin"):
        yield command, a_result(table, failed, command=command)
        yield command, a_result(table, *[failed] * 20, command=command, named=False)
    yield "history", a_result(replace(table, files=files), command="history")
    yield "doctor", replace(a_result(command="doctor"), checks=(Check("units", WARN, FORGED, FORGED, table=FORGED),))


@pytest.mark.parametrize(("command", "result"), forging_results())
def test_a_name_with_a_line_end_makes_no_line_of_its_own(command, result):
    for text in (screen.render(result, partitions=True), screen.render(result)):
        assert "compacted 9 units" in text or command in ("cleanup", "pin")
        assert not [line for line in text.split("\n") if not line.isprintable() or line.startswith("sales.events: compacted 9")]
    planned = screen.render_planned_rollback(result.tables[0]) if result.tables else ""
    assert not [line for line in planned.split("\n") if not line.isprintable() or line.startswith("sales.events: compacted 9")]


def test_an_error_has_three_lines_whatever_it_names():
    lines = screen.render_problem(Reason(Code.BUG, FORGED, FORGED, FORGED)).split("\n")
    assert [line[:9] for line in lines] == ["hivekeepe", "  state: ", "  next:  "]


def test_a_clean_result_is_not_copied():
    result = a_result(TableOutcome("d.t", RUN, (UnitOutcome("dt=1", Outcome.SWAPPED, 3, 3000),)))
    assert clean_names(result) is result


def test_secrets_of_spark_are_masked_in_text_and_in_the_document():
    sets = [
        f"spark.extra_conf.{name}"
        for name in (
            "spark.ssl.keyPassword=hunter2",
            "spark.x.accessKey=hunter3",
            "spark.driver.extraJavaOptions=-Dp.token=hunter4",
            "spark.y=seen",
        )
    ]
    config = layers.load([], {}, {"kerberos.keytab": "/etc/secret.keytab", "kerberos.principal": "etl"}, sets)
    text, values = screen.render_config(config, None), document.build_config(config, None)["values"]
    assert "hunter" not in text + document.to_json(values)
    assert text.count(MASK) == 3
    assert (values["spark.extra_conf.spark.ssl.keyPassword"]["value"], values["spark.extra_conf.spark.y"]["value"]) == (MASK, "seen")
    assert "/etc/secret.keytab" in text
    assert config.spark.extra_conf["spark.ssl.keyPassword"] == "hunter2"


def test_rows_that_readers_may_miss_are_the_first_line_of_what_was_not_done():
    elsewhere = Reason(Code.MOVED, "the metastore has it elsewhere")
    left = [UnitOutcome(f"dt={number}", Outcome.GIVEN_UP, 3, 3, why=Reason(Code.DIRECTORY_GONE, f"gone {number}")) for number in range(30)]
    units = (*left, UnitOutcome("dt=99", Outcome.MISPLACED, 3, 3, why=elsewhere))
    result = CommandResult("compact-swap", RUN, 0, 1.0, True, tables=(TableOutcome("sales.events", RUN, units),))
    assert screen.render(result).splitlines()[0].startswith("  sales.events/dt=99: misplaced")


def test_no_unit_of_an_answer_is_compared_with_the_others(monkeypatch):
    """Fifty thousand partitions that were done, and 1,900,000 that were refused, took six hours to be printed."""
    why = Reason(Code.SUBDIRECTORY, "it has a sub-directory (x)", "leave it out")
    done = tuple(UnitOutcome(f"dt={number}", Outcome.SWAPPED, 2, 2, 1, 1, rows=1, gap_ms=1.0, forms=1) for number in range(3))
    left = tuple(UnitOutcome(f"dt=x{number}", Outcome.REFUSED, 2, 2, why=why) for number in range(3))
    result = CommandResult("compact-swap", RUN, 0, 1.0, True, tables=(TableOutcome("sales.events", RUN, (*done, *left)),))

    def compare(one, other):
        raise AssertionError(f"{one.name} is compared with {other.name}")

    monkeypatch.setattr(UnitOutcome, "__eq__", compare)
    for partitions in (True, False):
        screen.render(result, partitions=partitions)


def test_what_was_recovered_is_told_of_a_table_that_was_then_left_alone():
    refused = Reason(Code.WRITER_AT_WORK, "sales.events: a writer is at work", "run again")
    table = TableOutcome("sales.events", problem=refused, recovered=((RUN, {Outcome.DROPPED_MEANWHILE: 1}),))
    for tables in ((table,), (table,) * 20):
        said = screen.render(CommandResult("compact-swap", RUN, 0, 1.0, False, tables=tables))
        assert f"sales.events: recovered run {RUN}: 1 dropped meanwhile" in said
        assert "nothing to do" not in said
