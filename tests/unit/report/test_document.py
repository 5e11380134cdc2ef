"""The result document against docs/json.md: every key that is written is described, and every key that is described is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Dict, List, Set

from builders import MIB, a_table
from hivekeeper import __version__, config
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.compact_swap import Request, compact_swap
from hivekeeper.errors import Exit
from hivekeeper.model import Selection
from hivekeeper.plan.settings import Settings
from hivekeeper.report import document
from hivekeeper.report.results import CommandResult, Problem, TableOutcome, UnitOutcome
from world import World

DOCS = Path(__file__).parents[3] / "docs"
RUN = "20260101t020304z-0000"
QUIET = Settings(min_quiet_ms=0)
PROBLEM = Problem("what", "state", "next", Exit.LOCKED)


def tables_of(text: str) -> List[Dict[str, str]]:
    """Each Markdown table as key → description; a cell of several keys gives each of them."""
    found: List[Dict[str, str]] = []
    for line in text.splitlines():
        if line.startswith("| key "):
            found.append({})
        elif line.startswith("| `"):
            keys, holds = line.strip("| ").split(" | ", 1)
            found[-1].update(dict.fromkeys(re.findall(r"`([^`]+)`", keys), holds))
    return found


HEAD, TABLE, ANALYSIS, UNIT = tables_of((DOCS / "json.md").read_text("utf-8"))


def named_in(text: str) -> Set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def a_document() -> Dict[str, object]:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3})
    request = Request(Selection(tables=("sales.events",)), lambda _table: QUIET, "__bkp_", RUN)
    return document.build(compact_swap(world.cluster, request))


def test_the_top_has_the_keys_of_the_docs():
    built = a_document()
    assert set(built) == set(HEAD)
    assert set(built["totals"]) == named_in(HEAD["totals"])


def test_a_table_has_the_keys_of_the_docs():
    assert set(a_document()["tables"][0]) == set(TABLE)


def test_an_analysis_has_the_keys_of_the_docs_and_so_have_its_partitions():
    analysis = a_document()["tables"][0]["analysis"]
    assert set(analysis) == set(ANALYSIS)
    assert set(analysis["partitions"][0]) == named_in(ANALYSIS["partitions"])


def test_a_unit_has_the_keys_of_the_docs():
    assert set(a_document()["tables"][0]["units"][0]) == set(UNIT)


def test_an_error_and_a_recovered_run_have_the_keys_of_the_docs():
    table = TableOutcome("d.t", problem=PROBLEM, recovered=((RUN, {"swapped": 2}),))
    built = document.build(CommandResult("recover", RUN, 0, 1.0, True, tables=(table,)))["tables"][0]
    assert built["error"] == {"what": "what", "state": "state", "next": "next", "exit_code": 4}
    assert set(built["error"]) == named_in(HEAD["error"])
    assert built["recovered"] == [{"run": RUN, "outcomes": {"swapped": 2}}]
    assert set(built["recovered"][0]) == named_in(TABLE["recovered"])


def test_every_status_and_outcome_of_the_program_is_in_the_docs():
    source = DOCS.parent / "job" / "hivekeeper"
    outcomes = re.search(r"`outcome`: ([^.]+)\.", (source / "report" / "results.py").read_text("utf-8"))[1].split(", ")
    assert set(outcomes) | {"planned"} == set(re.findall(r"`([a-z ]+)`", UNIT["outcome"]))
    statuses = re.search(r"`status` is one of ([^.]+)\.", (source / "plan" / "analysis.py").read_text("utf-8"))[1].split(", ")
    assert set(statuses) == set(re.findall(r"`([a-z]+)`", ANALYSIS["status"]))


def test_the_totals_count_what_was_swapped_only():
    units = (
        UnitOutcome("a", "swapped", 3, 300, 1, 290, 30, 4.25),
        UnitOutcome("b", "put back", 5, 500, gap_ms=7.5),
        UnitOutcome("c", "recent", 7, 700),
    )
    built = document.build(CommandResult("compact-swap", RUN, 0, 1.0, True, tables=(TableOutcome("d.t", RUN, units),)))
    assert built["totals"] == {
        "tables": 1,
        "outcomes": {"swapped": 1, "put back": 1, "recent": 1},
        "files_before": 3,
        "files_after": 1,
        "bytes_before": 300,
        "bytes_after": 290,
        "longest_gap_ms": 7.5,
    }
    assert built["exit_code"] == 6


def test_a_refused_table_has_no_analysis():
    world = World()
    world.add_table(a_table(name="view", kind="VIRTUAL_VIEW", location=""), {})
    result = analyze(world.cluster, Selection(tables=("sales.view",)), lambda _table: QUIET, "__bkp_", RUN)
    table = document.build(result)["tables"][0]
    assert (table["analysis"], table["exit_code"], table["error"]["what"]) == (None, 3, "sales.view: it is a view")


def test_a_command_that_could_not_run_is_a_document_with_an_error():
    built = document.build_error(PROBLEM)
    assert (built["schema"], built["hivekeeper"], built["exit_code"], built["tables"]) == (1, __version__, 4, [])
    assert set(built) <= set(HEAD)


def test_the_configuration_is_a_document_with_the_origin_of_each_value():
    values = document.build_config(config.load([], {}, {"block_size_mb": "64"}, []))["values"]
    assert values["block_size_mb"]["value"] == 64
    assert all(set(entry) == {"value", "origin"} for entry in values.values())


def test_the_text_is_json_and_keeps_letters_beyond_ascii():
    text = document.to_json({"partition": "région=é"})
    assert "région=é" in text
    assert json.loads(text) == {"partition": "région=é"}
