"""The properties for a scheduler: small in every case, and readable by the rules of java.util.Properties."""

from __future__ import annotations

import re
from typing import Dict, List
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import properties
from hivekeeper.report.results import CommandResult, TableOutcome, UnitOutcome
from hivekeeper.report.text import clean_text
from hivekeeper.runlog.outcomes import Kind, Outcome
from support.builders import MIB, a_table
from support.desk import Desk
from support.world import World

RUN = "20260101t020304z-1f0c"
CAPTURED_BY_OOZIE = 2048


def read_properties(text: str) -> Dict[str, str]:
    """What java.util.Properties.load makes of a text without comments or continued lines."""
    found: Dict[str, str] = {}
    for line in re.split(r"\r\n|\r|\n", text):
        at = next((at for at, char in enumerate(line) if char in "=: \t\f" and (at == 0 or line[at - 1] != "\\")), len(line))
        rest = line[at:].lstrip(" \t\f")
        rest = rest[1:].lstrip(" \t\f") if rest[:1] in ("=", ":") else rest
        assert line[:at] not in found, line
        found[_unescape(line[:at])] = _unescape(rest)
    return found


def _unescape(text: str) -> str:
    plain = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
    units: List[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            units.append(text[at])
            at += 1
        elif text[at + 1] == "u":
            units.append(chr(int(text[at + 2 : at + 6], 16)))
            at += 6
        else:
            units.append(plain.get(text[at + 1], text[at + 1]))
            at += 2
    return "".join(units).encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def assert_small(text: str) -> None:
    assert len((text + "\n").encode("ascii")) < CAPTURED_BY_OOZIE
    assert not set(text) & set("&<>$"), "Oozie puts it into XML"


def as_shown(text: str) -> str:
    return clean_text(text).translate(str.maketrans("&<>$", "＆＜＞＄"))


def a_result(*tables: TableOutcome, command: str = "compact-swap", named: bool = True) -> CommandResult:
    return CommandResult(command, RUN, 0, 1.0, named, tables=tables)


def a_problem(what: str, code: Exit = Exit.LOCKED, advice: str = "wait") -> Reason:
    return Reason(next(one for one in Code if one.exit is code), what, advice, "untouched")


def a_unit(outcome: Outcome, reason: str = "") -> UnitOutcome:
    return UnitOutcome("dt=1", outcome, 12, 1000, 1, 900, why=Reason(Code.JOB_FAILED, reason) if reason else None)


NAMES = st.text(max_size=500)
OUTCOMES = [
    Outcome.SWAPPED,
    Outcome.RECENT,
    Outcome.REFUSED,
    Outcome.FAILED,
    Outcome.DIFFERS,
    Outcome.PUT_BACK,
    Outcome.VERIFIED,
]
UNITS = st.builds(
    UnitOutcome,
    name=NAMES,
    outcome=st.sampled_from(OUTCOMES),
    files_before=st.integers(0, 10**12),
    bytes_before=st.integers(0, 2**63),
    files_after=st.integers(0, 10**12),
    bytes_after=st.integers(0, 2**63),
    why=st.builds(Reason, st.sampled_from(Code), NAMES, NAMES),
)
PROBLEMS = st.builds(Reason, st.sampled_from(Code), what=NAMES, state=NAMES, next=NAMES)
TABLES = st.builds(
    TableOutcome,
    table=NAMES,
    units=st.lists(UNITS, max_size=4).map(tuple),
    problem=st.none() | PROBLEMS,
    recovered=st.lists(st.tuples(NAMES, st.just({})), max_size=8).map(tuple),
)
RESULTS = st.builds(
    CommandResult,
    command=NAMES,
    run=NAMES,
    started_ms=st.just(0),
    seconds=st.just(0.0),
    named=st.booleans(),
    dry_run=st.booleans(),
    tables=st.lists(TABLES, max_size=4).map(tuple),
)


@settings(max_examples=200, deadline=None)
@given(RESULTS)
def test_the_properties_of_any_result_are_small_and_can_be_read_back(result):
    text = properties.render(result)
    assert_small(text)
    read = read_properties(text)
    assert read["hivekeeper.exit_code"] == str(int(result.code))
    assert read["hivekeeper.tables"] == str(len(result.tables))
    swapped = [unit for table in result.tables for unit in table.units if unit.outcome is Outcome.SWAPPED]
    assert read["hivekeeper.bytes_before"] == str(sum(unit.bytes_before for unit in swapped))


@settings(max_examples=200, deadline=None)
@given(PROBLEMS, NAMES)
def test_the_properties_of_any_error_are_small_and_can_be_read_back(problem, command):
    text = properties.render_error(problem, command, problem.exit)
    assert_small(text)
    read = read_properties(text)
    assert read["hivekeeper.exit_code"] == str(int(problem.exit))
    line = as_shown(problem.what.partition("\n")[0])
    told = read["hivekeeper.error"]
    assert told == line or (told.endswith("...") and line.startswith(told[:-3]))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="\n"), max_size=40))
def test_a_short_text_comes_back_as_screens_show_it(text):
    assert read_properties(properties.render_error(a_problem(text), "analyze", Exit.LOCKED))["hivekeeper.error"] == as_shown(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, text) for text in (" two blanks ", "a=b:c#d!e", "C:\\new", "Ünï 漢字 😀", "", "#", "  ")),
        ("tab\there", r"tab\there"),
        ("line\rfeed", r"line\rfeed"),
        ("\udc80", r"\udc80"),
    ],
)
def test_a_nasty_text_comes_back_as_screens_show_it(text, shown):
    assert read_properties(properties.render_error(a_problem(text), "analyze", Exit.LOCKED))["hivekeeper.error"] == shown


@settings(max_examples=200, deadline=None)
@given(PROBLEMS)
def test_oozie_can_put_any_property_into_a_workflow(problem):
    """Else the action that tells of an error, such as a mail, fails for a character in a name: HDFS allows all but a few."""
    for text in (
        properties.render_error(problem, "recover", problem.exit),
        properties.render(a_result(TableOutcome("d.t\x01\ufffe\udc80", problem=problem))),
    ):
        for value in read_properties(text).values():
            ElementTree.fromstring(f"<body>{value}</body>".encode())


def test_only_the_first_line_of_an_error_is_told():
    read = read_properties(properties.render_error(a_problem("no ticket\n\tat java.lang.Thread"), "analyze", Exit.LOCKED))
    assert read["hivekeeper.error"] == "no ticket"


def test_ten_thousand_tables_with_long_names_of_another_script_are_small():
    tables = [TableOutcome("漢" * 500 + str(number), problem=a_problem("漢😀" * 500, advice="字" * 500)) for number in range(10_000)]
    text = properties.render(a_result(*tables))
    assert_small(text)
    read = read_properties(text)
    assert (read["hivekeeper.tables"], read["hivekeeper.tables_done"], read["hivekeeper.exit_code"]) == ("10000", "0", "4")
    assert re.fullmatch(r"[漢😀]{20,}\.\.\.", read["hivekeeper.error"])


@settings(max_examples=300, deadline=None)
@given(PROBLEMS, st.text(max_size=1000))
def test_what_to_do_is_told_whole_or_not_at_all(problem, advice):
    """It may be a command to copy: a part of one with names in quotes is another one."""
    told = read_properties(properties.render_error(Reason(problem.code, problem.what, advice), "recover", problem.exit))
    assert told["hivekeeper.next"] in (advice, properties.UNTOLD)
    assert set(told["hivekeeper.next"]).isdisjoint("&<>$")


def test_a_name_can_neither_begin_an_element_of_a_workflow_nor_be_evaluated_in_one():
    """`<body>${wf:actionData('compact')['hivekeeper.error']}</body>` is parsed when the property is in it, and evaluated again by some."""
    name = "d.t</body><attachment>/secret</attachment><body>${wf:conf('key')}&amp;"
    problem = a_problem(f"{name}: left", advice=f"hdfs dfs -mv '{name}' /there")
    for text in (
        properties.render_error(problem, "recover", Exit.LOCKED),
        properties.render(a_result(TableOutcome(name, problem=problem))),
    ):
        assert_small(text)
        read = read_properties(text)
        assert read["hivekeeper.error"] == f"{as_shown(name)}: left"
        assert read["hivekeeper.next"] == properties.UNTOLD


@pytest.mark.parametrize("error", ["left", "x" * 1000, "漢" * 1000])
def test_a_command_with_two_ordinary_paths_is_told(error):
    command = "hdfs dfs -mv " + " ".join(f"hdfs://nameservice1/warehouse/tablespace/managed/hive/sales.db/{name}" for name in "xy")
    text = properties.render_error(a_problem(error, advice=command), "compact-swap", Exit.LOCKED)
    assert read_properties(text)["hivekeeper.next"] == command
    text = properties.render(a_result(TableOutcome("d.t", problem=a_problem(error, advice=command)), command="compact-swap"))
    assert_small(text)
    assert read_properties(text)["hivekeeper.next"] == command


def test_a_cut_never_falls_into_an_escape():
    for longest in range(3, 40):
        escaped = properties._escape_value("aé😀\\b" * 10, longest)
        assert len(escaped) <= longest
        assert _unescape(escaped[:-3]) == ("aé😀\\b" * 10)[: len(_unescape(escaped[:-3]))]


def test_the_properties_of_a_compaction_say_what_was_done():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [MIB] * 3 for day in (1, 2)})
    result = Desk(world).compact()
    read = read_properties(properties.render(result))
    assert read == {
        "hivekeeper.exit_code": "0",
        "hivekeeper.meaning": "done",
        "hivekeeper.retry": "none",
        "hivekeeper.command": "compact-swap",
        "hivekeeper.run": result.run,
        "hivekeeper.dry_run": "false",
        "hivekeeper.tables": "1",
        "hivekeeper.tables_done": "1",
        "hivekeeper.units_done": "2",
        "hivekeeper.units_skipped": "0",
        "hivekeeper.units_refused": "0",
        "hivekeeper.units_quarantined": "0",
        "hivekeeper.units_left": "0",
        "hivekeeper.units_failed": "0",
        "hivekeeper.files_before": "6",
        "hivekeeper.files_after": "2",
        "hivekeeper.bytes_before": str(6 * MIB),
        "hivekeeper.bytes_after": str(sum(unit.bytes_after for unit in result.tables[0].units)),
        "hivekeeper.recovered": "0",
        "hivekeeper.recovered_runs": "",
        "hivekeeper.error": "",
        "hivekeeper.next": "",
    }


def test_each_outcome_is_counted_once():
    read = read_properties(properties.render(a_result(TableOutcome("d.t", units=tuple(map(a_unit, Outcome))))))
    counts = {kind.code: int(read[f"hivekeeper.units_{kind.code}"]) for kind in Kind}
    assert counts == {"done": 7, "skipped": 6, "refused": 1, "quarantined": 1, "left": 1, "failed": 9}
    assert sum(counts.values()) == len(Outcome)


def test_the_error_told_is_one_of_those_that_the_exit_code_stands_for():
    refused, asks = a_problem("d.t: a view", Exit.REFUSED), a_problem("d.u: not understood", Exit.INVESTIGATE, "look")
    read = read_properties(properties.render(a_result(TableOutcome("d.t", problem=refused), TableOutcome("d.u", problem=asks))))
    assert (read["hivekeeper.exit_code"], read["hivekeeper.retry"]) == ("7", "manual")
    assert (read["hivekeeper.error"], read["hivekeeper.next"]) == ("d.u: not understood", "look")


def test_without_an_error_the_first_unit_that_failed_is_told():
    read = read_properties(
        properties.render(a_result(TableOutcome("d.t", units=(a_unit(Outcome.SWAPPED), a_unit(Outcome.FAILED, "no space")))))
    )
    assert read["hivekeeper.error"] == "d.t/dt=1: failed: no space"
    assert (read["hivekeeper.meaning"], read["hivekeeper.retry"]) == ("partial", "later")


def test_rows_that_readers_may_miss_are_told_before_a_unit_that_failed():
    units = (a_unit(Outcome.FAILED, "no space"), a_unit(Outcome.MISPLACED, "the metastore has it elsewhere"))
    read = read_properties(properties.render(a_result(TableOutcome("d.t", units=units))))
    assert (read["hivekeeper.error"], read["hivekeeper.exit_code"]) == ("d.t/dt=1: misplaced: the metastore has it elsewhere", "7")


def test_rows_that_readers_may_miss_are_told_before_a_table_that_is_refused():
    refused, misplaced = a_problem("d.s: its owner wants it so", Exit.REFUSED), a_unit(Outcome.MISPLACED, "the metastore has it elsewhere")
    read = read_properties(properties.render(a_result(TableOutcome("d.s", problem=refused), TableOutcome("d.t", units=(misplaced,)))))
    assert (read["hivekeeper.error"], read["hivekeeper.exit_code"]) == ("d.t/dt=1: misplaced: the metastore has it elsewhere", "7")


def test_a_partition_that_an_interrupted_run_has_lost_is_told():
    refused, recovered = a_problem("d.s: a view", Exit.REFUSED), ((RUN, {Outcome.SWAPPED: 2, Outcome.DROPPED_MEANWHILE: 1}),)
    tables = TableOutcome("d.s", problem=refused), TableOutcome("d.t", recovered=recovered)
    read = read_properties(properties.render(a_result(*tables)))
    assert (read["hivekeeper.error"], read["hivekeeper.exit_code"]) == (f"d.t: recovered run {RUN}: 1 dropped meanwhile", "6")
    assert read["hivekeeper.next"] == "hivekeeper history --table d.t"


def test_the_runs_that_were_finished_first_are_named():
    recovered = tuple((f"{RUN}.t{number}", {}) for number in range(7))
    read = read_properties(properties.render(a_result(TableOutcome("d.t", recovered=recovered))))
    assert read["hivekeeper.recovered"] == "7"
    assert read["hivekeeper.recovered_runs"] == ",".join(f"{RUN}.t{number}" for number in range(5))


def test_every_exit_code_has_a_retry_rule():
    assert set(properties.RETRIES) == set(Exit)
