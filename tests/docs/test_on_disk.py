"""docs/on-disk.md against what real commands on the fakes write: it names every key, action and place that they use, and no other."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Set

import pytest

from hivekeeper import names
from hivekeeper.plan.recover import KNOWN_FILES, STATES
from support.builders import a_table
from support.desk import EVERYTHING, Desk
from support.records import plan_from_json_lines
from support.world import World

TEXT = (Path(__file__).parents[2] / "docs" / "on-disk.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def words(text: str) -> Set[str]:
    return set(re.findall(r"[\w-]+", text))


def keys_of_table(text: str) -> Set[str]:
    """What is between back-quotes in the first column of a section's tables."""
    return {key for cell in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for key in re.findall(r"`(\w+)`", cell)}


def append(desk: Desk) -> None:
    for nth in range(2):
        desk.world.add_file(f"{desk.live('dt=1')}/more{nth}.parquet", [f"more{nth}"])
    desk.world.files.namespace.advance(3_600_000)


def texts_of(desk: Desk) -> Dict[str, str]:
    """Path below the control directory → text of every existing record."""
    top = desk.control.top
    return {path[len(top) + 1 :]: text for path, text in desk.world.files.contents(top).items() if isinstance(text, str)}


@pytest.fixture(scope="module")
def desk() -> Desk:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    return Desk(world)


@pytest.fixture(scope="module")
def written(desk) -> Dict[str, str]:
    """Every record that existed at the end of one of the commands, or when a cleanup was killed."""
    seen: Dict[str, str] = {}
    desk.backup()
    seen.update(texts_of(desk))
    desk.run_key = "tonight"
    desk.compact()
    desk.run_key = ""
    append(desk)
    for act in (desk.compact, desk.rollback, lambda: desk.pin(desk.runs[1])):
        act()
        seen.update(texts_of(desk))
    desk.settings = replace(desk.settings, cleanup_requires="verified")
    desk.verify()
    seen.update(texts_of(desk))
    desk.world.files.before_step = lambda _what: seen.update(texts_of(desk))
    desk.cleanup(EVERYTHING)
    desk.world.files.before_step = None
    desk.pin(desk.runs[1], pinned=False)
    desk.append("dt=1", "late1", "late2")
    desk.world.rows.fail = lambda _batch: "no executors"
    desk.compact()
    seen.update(texts_of(desk))
    return {**seen, **logged_joins()}


def logged_joins() -> Dict[str, str]:
    """The log of a table whose files were joined and whose old ones were cut off."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.files.namespace.advance(3_600_000)
    desk = Desk(world, exchange="files", fewest_joined=2)
    desk.compact()
    desk.cleanup(EVERYTHING)
    return {f"joined/{path}": text for path, text in texts_of(desk).items() if path.startswith("log/")}


def plans(written: Mapping[str, str]) -> List[Dict[str, Any]]:
    return [plan_from_json_lines(text) for path, text in written.items() if path.endswith("/plan.json")]


def actions(written: Mapping[str, str]) -> List[Dict[str, Any]]:
    entries = [text for path, text in sorted(written.items()) if names.log_version(names.base(path)) is not None]
    return [json.loads(line) for text in entries for line in text.split("\n") if line]


def test_the_sequence_leaves_plans_of_every_operation_that_makes_one(written):
    assert {plan["operation"] for plan in plans(written)} == {"backup", "compact-swap", "rollback", "cleanup"}


def test_the_plan_has_the_keys_of_the_docs_and_no_others(written):
    later = {"directoryId"}
    told = keys_of_table(section("plan.json")) - later
    assert {plan["version"] for plan in plans(written)} == {1, 3}
    for plan in plans(written):
        assert plan["units"]
        # Those of a join are in docs/concat.md.
        more = {"join", "inside"} | later if plan["version"] == 3 else set()
        for unit in plan["units"]:
            assert set(plan) | set(unit) == told | more
            assert all(len(file) == 4 for file in unit["files"] + unit["expected"])


def test_each_key_of_a_table_definition_and_of_a_backups_place_is_described(written):
    told = words(section("plan.json"))
    for plan in plans(written):
        assert set(plan["definition"]) <= told
        assert all(set(unit["backup"]) == {"run", "unit", "place"} for unit in plan["units"] if unit["backup"])
    assert any(unit["backup"] for plan in plans(written) for unit in plan["units"])
    assert {"run", "unit", "place"} <= told


def test_each_key_of_a_certificate_is_described(written):
    told = words(section("certificates-N.jsonl"))
    lines = next(text for path, text in written.items() if path.endswith("certificates-1.jsonl")).splitlines()
    for certificate in map(json.loads, lines):
        assert set(certificate) | set(certificate["digest"]) <= told


def rows_of_log() -> Dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section("The log"), re.MULTILINE))


def test_the_log_holds_the_actions_that_are_described_and_no_others(written):
    assert {name for action in actions(written) for name in action} == set(rows_of_log())


@pytest.mark.parametrize("kind", rows_of_log())
def test_an_action_has_the_keys_that_are_described_and_no_others(written, kind):
    told = set(re.findall(r"`(\w+)`", rows_of_log()[kind]))
    found = set().union(*(keys_of_action(action[kind]) for action in actions(written) if kind in action))
    assert found == told


def keys_of_action(action: Mapping[str, Any]) -> Set[str]:
    keys = set(action)
    for unit in action.get("units", ()):
        keys |= set(unit)
        keys |= set(unit["backup"] or ()) | set(unit["source"] or ()) | set(unit.get("inside") or ())
    if action.get("stats"):
        keys |= set(json.loads(action["stats"]))
    return keys


def test_the_log_holds_the_operations_that_are_described_and_no_others(written):
    told = re.search(r"^Operations are (.+)\.$", section("The log"), re.MULTILINE)[1]
    found = {action["commitInfo"]["operation"] for action in actions(written) if "commitInfo" in action}
    assert found == set(re.findall(r"`([\w-]+)`", told))


def drawn() -> str:
    return re.search(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[1]


def names_of(paths: Iterable[str]) -> Set[str]:
    """Names below a run's directory, as the drawing shows them."""
    parts = [path.split("/") for path in paths if path.startswith("runs/")]
    return {re.sub(r"-\d+\.jsonl$", "-N.jsonl", part[2]) for part in parts if len(part) > 2}


def test_each_place_below_the_control_directory_is_drawn_and_no_other(written):
    places = re.findall(r"^runs/RUN/([\w.-]+)", drawn(), re.MULTILINE)
    states = {state for of_operation in STATES.values() for state in of_operation}
    files = {name for name in KNOWN_FILES if not name.endswith(".part")}
    assert set(places) == states | files | {"certificates-N.jsonl", "away-u0000U", "taken-out-u0000U"}
    unfinished = {name for name in KNOWN_FILES if name.endswith(".part")}
    assert names_of(written) <= set(places) | unfinished
    assert unfinished <= set(re.findall(r"`([\w.]+)`", TEXT))


@pytest.mark.parametrize("state", sorted({state for of_operation in STATES.values() for state in of_operation} - {"backup_table"}))
def test_the_drawing_says_which_operations_make_a_place(state):
    line = re.search(rf"^runs/RUN/{state}/\S*\s+(.+)$", drawn(), re.MULTILINE)[1]
    told = {word.replace("compaction", "compact-swap") for word in re.findall(r"\w+", line.partition(":")[0])}
    assert told == {operation for operation, states in STATES.items() if state in states}


@pytest.mark.usefixtures("written")
def test_a_backup_table_has_the_properties_of_the_docs(desk):
    catalog, told = desk.world.catalog, section("Backup tables")
    left = [table for name, table in catalog.tables.items() if "__bkp_" in name]
    assert left
    for table in left:
        ours = {"hivekeeper.backup-of": "sales.events", "hivekeeper.backup-name": table.full_name}
        ours.update({"external.table.purge": "false", "discover.partitions": "false"})
        assert {key: table.parameters.get(key, "").lower() for key in ours} == ours
        assert all(f"`{key}`" in told for key in ours)
        assert re.fullmatch(r"__bkp_events_\d{8}_\d{6}", table.name)
