"""Large tables are listed in calls whose answers fit into memory."""

from __future__ import annotations

import pytest

from hivekeeper.steps import observe
from support.builders import a_file, a_snapshot


@pytest.mark.parametrize(
    ("entries", "asked"),
    [
        ([3] * 12, [2, 4, 4, 2]),
        ([60] * 5, [2, 1, 1, 1, 1, 1]),
        ([0] * 20, [2, 7, 7, 4]),
        ([1, 1, 7, 60, 1, 1, 1], [2, 5, 2, 1, 4, 2, 1, 1, 1, 1]),
        ([], []),
    ],
)
def test_directories_are_listed_in_calls_of_about_as_many_entries(monkeypatch, entries, asked):
    monkeypatch.setattr(observe, "LOOK_AT_FIRST", 2)
    monkeypatch.setattr(observe, "LOOK_AT_ONCE", 7)
    monkeypatch.setattr(observe, "ENTRIES_AT_ONCE", 12)
    snapshots = {f"{number:02d}": a_snapshot(*(a_file(str(nth)) for nth in range(most))) for number, most in enumerate(entries)}
    calls = []

    def look(places, most):
        calls.append(len(places))
        left, found = most, {}
        for place in places:
            found[place] = a_snapshot(*snapshots[place].entries[:left])
            left -= len(found[place].entries)
        # Only of one directory alone is an answer larger.
        assert len(places) == 1 or most == 24
        return found

    assert observe.look_at(look, list(snapshots)) == snapshots
    assert calls == asked
