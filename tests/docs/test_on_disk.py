"""docs/on-disk.md against what a real run on the twins writes: every key has its name there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Set

import pytest

from builders import a_table
from hivekeeper import names
from hivekeeper.commands.compact_swap import Request, compact_swap
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.plan.settings import Settings
from world import World

TEXT = (Path(__file__).parents[2] / "docs" / "on-disk.md").read_text("utf-8")
RUN = "20260101t020304z-0000"


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def words(text: str) -> Set[str]:
    return set(re.findall(r"\w+", text))


@pytest.fixture(scope="module")
def written() -> Dict[str, str]:
    """Base name → text of every record of one run."""
    world = World()
    table = a_table(["dt"])
    world.add_table(table, {"dt=1": [1000] * 3})
    compact_swap(world.cluster, Request(Selection(tables=("sales.events",)), lambda _table: Settings(), "__bkp_", RUN))
    control = ControlPaths.of(table.location, table.partitioned)
    records = world.files.contents(control.top)
    return {names.base(path): content for path, content in records.items() if "/retired/" not in path}


def actions(written: Mapping[str, str]) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in written[names.log_entry(0)].splitlines()]


def test_each_key_of_a_plan_is_described(written):
    plan = json.loads(written["plan.json"])
    told = words(section("plan.json"))
    assert set(plan) <= told
    assert set(plan["units"][0]) <= told
    assert [len(file) for file in plan["units"][0]["files"]] == [4, 4, 4]


def test_each_key_of_a_certificate_is_described(written):
    certificate = json.loads(written["certificates-1.jsonl"])
    told = words(section("certificates-N.jsonl"))
    assert set(certificate) <= told
    assert set(certificate["digest"]) <= told


def rows_of_log() -> Dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section("The log"), re.MULTILINE))


def test_the_log_holds_the_actions_that_are_described_and_no_others(written):
    assert {name for action in actions(written) for name in action} == set(rows_of_log())


@pytest.mark.parametrize("kind", rows_of_log())
def test_each_key_of_an_action_is_described(written, kind):
    told = words(rows_of_log()[kind])
    for action in actions(written):
        assert undescribed(action.get(kind, {}), told) == set()


def undescribed(action: Mapping[str, Any], told: Iterable[str]) -> Set[str]:
    keys = set(action)
    for unit in action.get("units", ()):
        keys |= set(unit)
    if "stats" in action:
        keys |= set(json.loads(action["stats"]))
    return keys - set(told)


def test_each_place_below_the_control_directory_is_drawn(written):
    drawn = re.search(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[1]
    for name in written:
        pattern = re.sub(r"-\d+\.jsonl$", "-N.jsonl", name)
        assert pattern in drawn or names.log_version(name) is not None, f"{name} is not drawn"
