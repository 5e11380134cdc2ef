"""Where things are that were moved: what is remembered is only a hint, and nobody is looked for without end."""

from __future__ import annotations

import pytest

from hivekeeper.ports import FilesUnavailable
from hivekeeper.steps.whereabouts import FEW, MOST_AGE_MS, MOST_MS, Whereabouts
from support.fakes.files import FakeFiles
from support.world import TestClock

TOP = "hdfs://nn/w"
COUNT = 2 * FEW


class Slow(FakeFiles):
    """Each search takes so long; one for `restless` finds that it keeps being moved."""

    takes_ms, restless = 0, 0

    def find_paths(self, near, former):
        self.asked.append(len(former))
        self.clock.sleep_ms(self.takes_ms)
        if self.restless in former:
            raise FilesUnavailable("it keeps being moved")
        return super().find_paths(near, former)


@pytest.fixture
def files():
    files = Slow()
    files.clock, files.asked = TestClock(files), []
    for number in range(COUNT):
        files.writer.add(f"{TOP}/a/{number}", "x")
    return files


@pytest.fixture
def places(files):
    """By id, before all were moved."""
    found = {entry.file_id: entry.path for entry in files.look([f"{TOP}/a"])[f"{TOP}/a"].entries}
    files.writer.rename_into(f"{TOP}/a", f"{TOP}/b")
    return found


def find(files, known, file_id, places):
    return known.find(files, files.clock, TOP, file_id, places[file_id])


def test_many_are_looked_for_at_once(files, places):
    known = Whereabouts(former=places)
    for file_id, former in places.items():
        assert find(files, known, file_id, places) == former.replace("/a/", "/b/")
    assert files.asked == [1] * FEW + [COUNT]


def test_what_was_moved_on_since_is_looked_for_again(files, places):
    known = Whereabouts(former=places)
    first = next(iter(places))
    find(files, known, first, places)
    files.writer.rename_into(f"{TOP}/b", f"{TOP}/c")
    assert find(files, known, first, places) == places[first].replace("/a/", "/c/")


def test_what_is_gone_is_nowhere_although_it_was_seen(files, places):
    known = Whereabouts(former=places)
    first = next(iter(places))
    find(files, known, first, places)
    files.writer.delete(f"{TOP}/b")
    assert find(files, known, first, places) is None


def test_one_that_keeps_being_moved_hides_no_other(files, places):
    known = Whereabouts(former=places)
    *others, files.restless = places
    assert all(find(files, known, file_id, places) for file_id in others)
    files.takes_ms = 7
    with pytest.raises(FilesUnavailable):
        find(files, known, files.restless, places)
    assert known.spent_ms == 7


def test_a_run_looks_for_ten_minutes_and_an_operator_for_as_long_as_it_takes(files, places):
    files.takes_ms = MOST_AGE_MS
    files.writer.delete(f"{TOP}/b")
    known, patient = Whereabouts(former=places), Whereabouts(float("inf"), former=places)
    with pytest.raises(FilesUnavailable, match="10 minutes"):
        for file_id in places:
            find(files, known, file_id, places)
    assert MOST_MS < known.spent_ms <= MOST_MS + 2 * MOST_AGE_MS
    assert [find(files, patient, file_id, places) for file_id in places] == [None] * COUNT
