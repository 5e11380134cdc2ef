"""The safe order, explored: no interleaving breaks a promise, and removing a line of the order is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interleavings.configurations import CONFIGURATIONS, begin
from interleavings.mutations import MUTATIONS, explore_mutated
from interleavings.promises import ACCEPTED

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
    "pause, recover",
    "rollback",
    "rollback, append slowly",
    "rollback, overwrite directory",
    "rollback, rollback",
    "cleanup, open stream",
    "cleanup, errors",
]


@pytest.mark.parametrize("name", QUICK)
def test_no_promise_is_broken_in_any_interleaving(name):
    explorer, first = begin(CONFIGURATIONS[name].limited(1))
    found = explorer.explore(first)
    broken = {kind: schedule for (kind, windows), (_, schedule) in found.broken.items() if not windows and kind not in ACCEPTED}
    assert found.ends > 1
    assert not broken, "\n".join([*broken, *next(iter(broken.values()))])
    for window in {window for _, windows in found.broken for window in windows}:
        assert f"`{WHEN.sub('', window)}" in PAGE, "a window stays open of which docs/swap.md does not tell"


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_line_of_the_order_that_is_taken_away_is_missed(name, tmp_path: Path):
    ended = explore_mutated(MUTATIONS[name], tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "BROKEN" in ended.stdout
