"""The result document against docs/json.md: every key written is described, and every key described is written."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Dict, Set

import pytest

from hivekeeper import __version__
from hivekeeper.cli import parser
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.analyze_image import analyze_image
from hivekeeper.config import layers
from hivekeeper.config.settings import Settings
from hivekeeper.model import Differences, Selection
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import document
from hivekeeper.report.results import MOST_ORPHANS, CommandResult, TableOutcome, UnitOutcome
from hivekeeper.report.text import escape_for_json
from hivekeeper.runlog.outcomes import Outcome
from support.builders import MIB, a_table
from support.contexts import a_context
from support.desk import EVERYTHING, Desk
from support.fakes.rows import DataFile
from support.images import image
from support.world import World

DOCS = Path(__file__).parents[3] / "docs"
SOURCE = DOCS.parent / "job" / "hivekeeper"
RUN = "20260101t020304z-0000"
QUIET = Settings(min_quiet_ms=0)
PROBLEM = Reason(Code.TABLE_LOCKED, "what", "next", "state")


def tables_of(text: str) -> Dict[str, Dict[str, str]]:
    """Title → key → description for each Markdown table of keys; a cell with several keys gives one entry each."""
    found: Dict[str, Dict[str, str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("#"):
            title = line.strip("# ")
        elif line.startswith("| `"):
            keys, holds = line.strip("| ").split(" | ", 1)
            found.setdefault(title, {}).update(dict.fromkeys(re.findall(r"`([^`]+)`", keys), holds))
    return found


PAGE = (DOCS / "json.md").read_text("utf-8")
TABLES = tables_of(re.sub(r"^\| (?:outcome|status|code) \|.*\n(?:\|.*\n)+", "", PAGE, flags=re.MULTILINE))
HEAD, TABLE, ANALYSIS = TABLES["The result document"], TABLES["One table"], TABLES["`analysis`"]
IMAGE = TABLES["`image`"]
UNIT, BACKUP, LOG = TABLES["One unit"], TABLES["One backup"], TABLES["One entry of the log"]


def named_in(text: str) -> Set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def a_document() -> Dict[str, object]:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3})
    return document.build(Desk(world).compact())


@pytest.fixture(scope="module")
def built() -> Dict[str, Dict[str, Any]]:
    """The table in the document of each command, for a table that was compacted, damaged, rolled back and cleaned up."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [MIB] * 3 for day in (1, 2, 3)})
    desk = Desk(world)
    results = {"backup": desk.backup(), "compact-swap": desk.compact()}
    results["at"], results["files"] = desk.history(at=1), desk.history(desk.runs[1])
    world.files.writer.overwrite(desk.live("dt=2"), {"new.parquet": DataFile(("new",))})
    world.catalog.drop_partition(desk.table, "dt=3")
    results["verify"] = desk.verify(level="rows")
    results["rollback planned"], results["rollback"] = desk.rollback(dry_run=True), desk.rollback()
    results["rollback again"] = desk.rollback(desk.runs[1])
    results["partitions"] = desk.history(partitions=True)
    results["pin"] = desk.pin(desk.runs[1])
    results["cleanup planned"], results["cleanup"] = desk.cleanup(EVERYTHING, dry_run=True), desk.cleanup(EVERYTHING)
    results["history"], results["cleanups"] = desk.history(), desk.history(cleanups=True)
    return {name: document.build(result)["tables"][0] for name, result in results.items()}


def test_the_top_has_the_keys_of_the_docs():
    built = a_document()
    assert set(built) == set(HEAD)
    assert set(built["totals"]) == named_in(HEAD["totals"])


def test_the_commands_of_the_docs_are_those_of_the_program():
    action = next(action for action in parser.build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(re.findall(r"`([a-z-]+)`", HEAD["command"])) == set(action.choices) - {"config", "compact"}


def test_the_table_of_every_command_has_the_keys_of_the_docs(built):
    for name, table in built.items():
        assert set(table) == set(TABLE), name


def test_an_analysis_has_the_keys_of_the_docs_and_so_have_its_partitions():
    analysis = a_document()["tables"][0]["analysis"]
    assert set(analysis) == set(ANALYSIS)
    assert set(analysis["partitions"][0]) == named_in(ANALYSIS["partitions"])


def test_an_image_has_the_keys_of_the_docs(tmp_path):
    world, path = World(), tmp_path / "image.tsv"
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 9})
    path.write_bytes(image([("/warehouse/dropped/a", 5)]))
    context = a_context(world.cluster, Selection(tables=("sales.events",)), RUN)
    found = document.build(analyze_image(context, str(path), is_remote=False))["image"]
    assert set(found) == set(IMAGE)
    assert set(found["orphaned"]) == named_in(IMAGE["orphaned"])
    assert set(found["orphans"][0]) == named_in(IMAGE["orphans"])
    assert f"the {MOST_ORPHANS} largest" in IMAGE["orphans"]


def test_a_unit_of_every_command_has_the_keys_of_the_docs(built):
    units = [unit for table in built.values() for unit in table["units"]]
    assert {unit["outcome"] for unit in units} >= {
        "recorded",
        "swapped",
        "differs",
        "dropped",
        "planned",
        "rolled-back",
        "refused",
        "undone",
    }
    assert all(set(unit) == set(UNIT) for unit in units)


def test_a_command_gives_the_outcomes_that_say_so(built):
    for name in ("backup", "compact-swap", "verify", "rollback"):
        for code in {unit["outcome"] for unit in built[name]["units"]}:
            assert name in Outcome.of_code(code).commands, f"{code} of {name}"


def test_differences_have_the_keys_of_the_docs(built):
    found = [unit["differences"] for unit in built["verify"]["units"] if unit["differences"]]
    assert [set(one) for one in found] == [named_in(UNIT["differences"])]
    told = re.search(r"MOST_EXAMPLES = (\d+)", (SOURCE / "steps" / "verify.py").read_text("utf-8"))[1]
    assert f"up to {told} rows" in UNIT["differences"]


def test_the_sides_of_differences_are_the_backup_and_live():
    found = Differences(1, 2, ("a",), ({"a": "old"},), ({"a": None}, {"a": "new"}))
    unit = UnitOutcome("dt=1", Outcome.DIFFERS, 1, 1, differences=found)
    result = CommandResult("verify", RUN, 0, 1.0, True, tables=(TableOutcome("d.t", units=(unit,)),))
    assert document.build(result)["tables"][0]["units"][0]["differences"] == {
        "only_in_backup": 1,
        "only_in_live": 2,
        "columns": ["a"],
        "examples_in_backup": [{"a": "old"}],
        "examples_in_live": [{"a": None}, {"a": "new"}],
    }


def test_old_files_and_cleanups_have_the_keys_of_the_docs(built):
    assert {frozenset(one) for one in built["partitions"]["old_files"]} == {frozenset({*named_in(TABLE["old_files"])})}
    assert {frozenset(one) for one in built["cleanups"]["cleanups"]} == {frozenset(named_in(TABLE["cleanups"]))}


def test_a_backup_has_the_keys_of_the_docs(built):
    backups = [backup for table in built.values() for backup in table["backups"]]
    assert {backup["outcome"] for backup in backups} == {"kept", "discarded", "planned", "there"}
    assert all(set(backup) == set(BACKUP) for backup in backups)


def test_a_unit_that_cleanup_kept_has_the_keys_of_the_docs():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3})
    desk = Desk(world)
    desk.compact()
    place = f"{desk.control.top}/runs/{desk.runs[0]}/retired/u00001"
    world.files.writer.add(f"{place}/_strange", DataFile(("x",)), 10)
    (backup,) = document.build(desk.cleanup(EVERYTHING))["tables"][0]["backups"]
    assert backup["outcome"] == "partly"
    assert [set(kept) for kept in backup["kept_units"]] == [named_in(BACKUP["kept_units"])]


def test_an_entry_of_the_log_has_the_keys_of_the_docs(built):
    entries = built["history"]["log"]
    assert {entry["operation"] for entry in entries} == {"backup", "compact-swap", "rollback", "pin", "cleanup"}
    for entry in entries:
        assert set(entry) == set(LOG)
        assert all(set(unit) == named_in(LOG["units"]) - {"discarded", "kept"} for unit in entry["units"])
    assert [set(entry["pin"]) for entry in entries if entry["pin"]] == [named_in(LOG["pin"])]


def test_the_changes_of_a_run_have_the_keys_of_the_docs(built):
    changes = built["files"]["changes"]
    assert len(changes) == 3
    for change in changes:
        files = change["removed"] + change["added"]
        # Of joined files only: tests/unit/commands/test_history.py.
        assert set(change) | {key for file in files for key in file} | {"file", "begin"} == named_in(TABLE["changes"])


def test_the_files_at_a_version_have_the_keys_of_the_docs(built):
    found = built["at"]["files"]
    keys = {key for file in found["files"] + found["tombstones"] for key in file}
    assert set(found) | keys == named_in(TABLE["files"])
    assert built["history"]["files"] is None


def test_an_error_and_a_recovered_run_have_the_keys_of_the_docs():
    table = TableOutcome("d.t", problem=PROBLEM, recovered=((RUN, {Outcome.SWAPPED: 2}),))
    built = document.build(CommandResult("recover", RUN, 0, 1.0, True, tables=(table,)))["tables"][0]
    assert built["error"] == {"code": "table-locked", "what": "what", "state": "state", "next": "next", "exit_code": 4}
    assert set(built["error"]) == named_in(HEAD["error"])
    assert built["recovered"] == [{"run": RUN, "outcomes": {"swapped": 2}}]
    assert set(built["recovered"][0]) == named_in(TABLE["recovered"])


def test_the_totals_count_what_was_swapped_only():
    units = (
        UnitOutcome("a", Outcome.SWAPPED, 3, 300, 1, 290, 30, 4.25),
        UnitOutcome("b", Outcome.PUT_BACK, 5, 500, gap_ms=7.5),
        UnitOutcome("c", Outcome.RECENT, 7, 700),
    )
    built = document.build(CommandResult("compact-swap", RUN, 0, 1.0, True, tables=(TableOutcome("d.t", RUN, units),)))
    assert built["totals"] == {
        "tables": 1,
        "exit_codes": {"6": 1},
        "outcomes": {"swapped": 1, "put-back": 1, "recent": 1},
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
    result = analyze(a_context(world.cluster, Selection(tables=("sales.view",)), RUN))
    table = document.build(result)["tables"][0]
    assert (table["analysis"], table["exit_code"], table["error"]["what"]) == (None, 3, "sales.view: it is a view")


def test_a_command_that_could_not_run_is_a_document_with_an_error():
    built = document.build_error(PROBLEM, 4)
    assert (built["schema"], built["hivekeeper"], built["exit_code"], built["tables"]) == (1, __version__, 4, [])
    assert set(built) <= set(HEAD)


def test_the_configuration_is_a_document_with_the_origin_of_each_value():
    built = document.build_config(layers.load([], {}, {"block_size": "64m"}, []), Path("/etc/hivekeeper/site.yaml"))
    assert built["site_file"] == "/etc/hivekeeper/site.yaml"
    values = built["values"]
    assert values["block_size"]["value"] == "64m"
    assert all(set(entry) == {"value", "origin"} for entry in values.values())


def test_the_text_is_json_and_keeps_letters_beyond_ascii():
    text = document.to_json({"partition": "région=é"})
    assert "région=é" in text
    assert json.loads(text) == {"partition": "région=é"}


def test_names_cannot_control_the_terminal_that_shows_the_document():
    names = "line\u2028end \x9b31m \x7f \u202egnp.exe \u200b \U000e0001"
    text = document.to_json({"partition": names})
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == {"partition": names}


@pytest.mark.parametrize(
    "name", ["dt=2026-01-01", "dt=\u6f22\u5b57" + "\u5b57" * 80, "dt=" + "\u200b" * 80], ids=["usual", "letters", "invisible"]
)
def test_a_text_is_made_in_little_more_memory_than_it_takes(name, monkeypatch):
    """All tables of a command may have two million units. Each word and sign of the text, and each letter beyond ASCII, was an object of
    its own until all of it was done: six kilobytes of a unit, and ninety bytes of a letter, so that the answer about all tables was lost.
    """
    unit = {"partition": name, "location": f"hdfs://nn/elsewhere/{name}", "files": 3, "bytes": 3000, "code": "", "next": ""}
    units = {"units": [unit] * 1000}
    monkeypatch.setattr(document, "WORDS_AT_ONCE", 500)
    tracemalloc.start()
    try:
        text = document.to_json(units)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert json.loads(text) == units
    assert text == "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in plain(units))
    assert peak < 3 * sys.getsizeof(text)


def plain(units):
    return json.dumps(units, ensure_ascii=False, indent=2)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "UTF-8"])
def test_what_an_encoding_lacks_is_an_escape(encoding):
    names = {"a": "r\u00e9gion\u00e9\u6f22\u5b57\u200b\U0001f40b\udc80"}
    shown = escape_for_json(plain(names), encoding)
    assert json.loads(shown) == names
    assert shown.encode(encoding).decode(encoding) == shown
    assert ("\u00e9" in shown, "\u6f22" in shown) == (encoding != "ascii", encoding == "UTF-8")
