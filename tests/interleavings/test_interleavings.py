"""The safe order, explored: no interleaving breaks a promise, and removing a line of the order is noticed."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from hivekeeper.names import base, log_version
from interleavings import runners
from interleavings.configurations import CONFIGURATIONS, begin
from interleavings.mutations import MUTATIONS, explore_mutated
from interleavings.promises import LOG

PAGE = (Path(__file__).parents[2] / "docs" / "swap.md").read_text("utf-8")
WHEN = re.compile(" (in the gap|in an outage|after the swap)$")
# The others, and all with more kills, take minutes: `make interleavings`.
QUICK = [
    "alone",
    "append",
    "append as Hive",
    "overwrite directory",
    "drop",
    "drop, purge",
    "full",
    "full, overwrite directory",
    "pause, recover",
    "rollback",
    "rollback, append slowly",
    "rollback, overwrite directory",
    "rollback, full",
    "rollback, rollback",
    "checkpoints",
    "checkpoints, expiry",
    "cleanup, open stream",
    "cleanup, errors",
    "joined: alone",
    "joined: replace a file",
    "joined: overwrite directory",
    "joined: move",
    "joined: drop, purge",
    "joined: readers",
    "joined: rollback",
    "joined: rollback, overwrite directory",
    "joined: cleanup",
    "joined: cleanup, errors",
]


@pytest.fixture(autouse=True)
def nothing_logged():
    """A schedule tells more than the thousands of lines that pytest would keep."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", QUICK)
def test_no_promise_is_broken_in_any_interleaving(name):
    explorer, first = begin(CONFIGURATIONS[name].limited(1))
    found = explorer.explore(first)
    broken = found.failures
    assert found.ends > 1
    assert found.complete
    assert not broken, "\n".join([*broken, *next(iter(broken.values()))])
    for window in {window for _, windows in found.broken for window in windows}:
        assert f"`{WHEN.sub('', window)}" in PAGE, "a window stays open of which docs/swap.md does not tell"


@pytest.mark.parametrize("name", ["committer beside", "rollback, committer beside"])
def test_a_committers_directory_beside_is_moved_up_or_told_if_any_command_meets_it(name):
    explorer, first = begin(CONFIGURATIONS[name].limited(1))
    found = explorer.explore(first)
    assert found.complete
    assert not found.failures


def test_commands_that_were_dropped_are_run_again_and_do_the_same(monkeypatch):
    found = []
    for most in (runners.MOST_STOPPED, 3):
        monkeypatch.setattr(runners, "MOST_STOPPED", most)
        explorer, first = begin(CONFIGURATIONS["append"].limited(0))
        found.append(explorer.explore(first))
    assert found[0] == found[1]


def test_a_schedule_that_is_told_leads_from_the_first_state_to_what_was_found():
    explorer, first = begin(CONFIGURATIONS["append"].limited(0))
    told = dict(explorer.explore(first).broken)
    _, schedule = told["readers see late rows without the snapshot's", frozenset()]
    assert schedule[0] == "compact#1 begins"
    assert schedule[-1].startswith("append#0 create live/a1.parquet")
    assert [line for line in schedule if "rename_exact" in line][-1].startswith("compact#1 rename_exact live ")


def test_an_exploration_that_may_not_go_on_says_that_it_is_incomplete(monkeypatch):
    monkeypatch.setattr("interleavings.explorer.PATIENCE", 10)
    explorer, first = begin(CONFIGURATIONS["append"].limited(0))
    found = explorer.explore(first, may_go_on=lambda: False)
    assert not found.complete
    assert found.states >= 10


def test_entries_expire_in_the_configuration_that_is_about_it():
    explorer, first = begin(CONFIGURATIONS["checkpoints, expiry"].limited(1))
    judge, oldest = explorer.judge_end, set()

    def look(world):
        oldest.add(min(version for path, _ in world.files_below(LOG) for version in [log_version(base(path))] if version is not None))
        return judge(world)

    explorer.judge_end = look
    explorer.explore(first)
    # Two runs that end leave none of the three old entries. A kill leaves all of them, or some if it comes while they are removed.
    assert oldest == {0, 1, 2, 3}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_line_of_the_order_that_is_taken_away_is_missed(name, tmp_path: Path):
    ended = explore_mutated(MUTATIONS[name], tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "BROKEN" in ended.stdout
