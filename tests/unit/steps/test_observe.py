"""Large tables are listed in calls whose answers fit into memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hivekeeper.model import Snapshot
from hivekeeper.ports import NoPermission
from hivekeeper.steps import observe
from support.builders import a_file, a_snapshot


@pytest.mark.parametrize(
    ("entries", "asked"),
    [
        ([3] * 12, [2, 4, 4, 2]),
        ([60] * 5, [2, 1, 1, 1, 1, 1]),
        ([0] * 20, [2, 7, 7, 4]),
        ([1, 1, 7, 60, 1, 1, 1], [2, 5, 1, 4, 1, 1, 1, 1]),
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


class ManyDirectories:
    """Ten files are in each, a hundred thousand in some."""

    def __init__(self, large=()):
        self.places = [f"dt={number:06}" for number in range(10_000)]
        self.large = {self.places[number] for number in large}
        self.calls, self.asked, self.listed = 0, 0, 0

    def look(self, places, most):
        self.calls += 1
        self.asked += len(places)
        seen = {}
        for place in places:
            seen[place] = Snapshot(True, 1, 0, range(min(most, 100_000 if place in self.large else 10)))
            most -= len(seen[place].entries)
            self.listed += len(seen[place].entries)
        return seen


def test_a_large_directory_that_is_always_moved_ahead_of_a_listing_does_not_make_it_endless():
    directories = ManyDirectories()

    def look(places, most):
        directories.large = set(places[-1:]) if len(places) > 1 else set()
        return directories.look(places, most)

    seen = observe.look_at(look, directories.places, 2_000_000)
    assert [len(snapshot.entries) for snapshot in seen.values()] == [10] * 10_000
    assert directories.listed < 6_000_000


def test_large_directories_among_many_are_listed_a_few_times():
    directories = ManyDirectories(range(37, 10_000, 500))
    seen = observe.look_at(directories.look, directories.places, 3_000_000)
    assert sum(len(snapshot.entries) for snapshot in seen.values()) == 20 * 100_000 + 9_980 * 10
    assert directories.listed < 3.2 * 20 * 100_000
    assert directories.calls < 1_000


def test_stretches_of_larger_directories_do_not_keep_all_later_calls_small():
    sizes = {f"dt={number:06}": 900 if number % 2000 < 120 else 0 for number in range(200_000)}
    calls = 0

    def look(places, most):
        nonlocal calls
        calls += 1
        seen = {}
        for place in places:
            seen[place] = Snapshot(True, 1, 0, range(min(most, sizes[place])))
            most -= len(seen[place].entries)
        return seen

    seen = observe.look_at(look, list(sizes))
    assert [len(snapshot.entries) for snapshot in seen.values()] == list(sizes.values())
    # By 50,000 entries and 2,000 directories at once it were 316.
    assert calls < 1_000


def test_a_closed_directory_does_not_make_all_others_be_listed_again():
    directories = ManyDirectories()
    closed = directories.places[-1]

    def look(places, most):
        seen = directories.look(places, most)
        if closed in places:
            raise NoPermission(closed)
        return seen

    seen, denied = observe.look_where_allowed(SimpleNamespace(look=look), directories.places)
    assert (denied, seen[closed], len(seen)) == ({closed: closed}, Snapshot(exists=True), 10_000)
    assert directories.asked < 10_000 + 2 * observe.LOOK_AT_ONCE
