"""What one cleanup leaves for the next because no more fits into its plan: never a part of what only goes together; all in the end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.config.settings import Settings
from hivekeeper.plan import retention
from hivekeeper.reasons import Code
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile

NOW_MS, TABLE = 10**12, "sales.events@0"
PLAIN, JOINED = "plain", "joined"


def run_of(version):
    return f"20260101t02{version // 60:02d}{version % 60:02d}z-0000"


def a_history(runs):
    """By run, what it did to each partition: exchanged its directory, with which joined files leave live, or joined files."""
    joined, logged = {}, []
    for version, done in enumerate(runs):
        effects = []
        for number, (partition, how) in enumerate(sorted(done.items()), start=1):
            place = f"runs/{run_of(version)}/retired/u{number:05d}"
            file = ManifestFile(f"a-{run_of(version)}-{number}.parquet", 100, 1, 1000 * version + number)
            before = (ManifestFile(f"{version}.parquet", 10, 1, 7), *(joined.pop(partition, []) if how == PLAIN else ()))
            inside = Inside(file.name, file.length, file.file_id, 40, 60, "0" * 64) if how == JOINED else None
            after = (file,) if how == JOINED else ()
            if how == JOINED:
                joined.setdefault(partition, []).append(file)
            known = run_of(version), number, version, "compact-swap", 5, TABLE, partition, partition, place
            effects.append(Effect(*known, before, after, inside=inside))
        logged.append(a_run(version, effects=tuple(effects)))
    return History(tuple(logged))


def a_run(version, operation="compact-swap", **more):
    known = {"units": (), "effects": (), **more}
    return LoggedRun(version, run_of(version), run_of(version), operation, 5, "etl", "edge1", "app-1", None, True, "", TABLE, {}, **known)


def after(history, verdicts):
    """The log after a cleanup by these verdicts."""
    gone = tuple(effect.place for verdict in verdicts for effect in verdict.going)
    return History((*history.runs, a_run(len(history.runs), operation="cleanup", discarded=gone)))


def judge(history, most):
    """The verdicts of a cleanup whose plan holds so many units."""
    left = [most]

    def takes(effects):
        fits = len(effects) <= left[0]
        left[0] -= len(effects) if fits else 0
        return fits

    return retention.keep_beyond(history, retention.judge_backups(history, lambda _: Settings(min_age_ms=0), NOW_MS), takes)


def going(verdicts):
    return [(effect.version, effect.partition) for verdict in verdicts for effect in verdict.going]


OF_A_RUN = st.dictionaries(st.sampled_from(["dt=1", "dt=2", "dt=3"]), st.sampled_from([PLAIN, JOINED]), min_size=1)
RUNS = st.lists(OF_A_RUN, min_size=1, max_size=7)


@given(RUNS, st.integers(7, 12))
def test_cleanups_take_all_in_the_end_the_oldest_of_a_unit_first_and_what_stays_is_for_the_next(runs, most):
    history = a_history(runs)
    while history.standing:
        verdicts = judge(history, most)
        taken = {effect.key for verdict in verdicts for effect in verdict.going}
        assert 0 < len(taken) <= most
        assert {why.code for verdict in verdicts for _, why in verdict.staying} <= {Code.BEYOND_ONE_CLEANUP}
        for key, holder in retention.find_holders(history).items():
            assert (key in taken) == (holder.key in taken)
        stays = {effect.partition: effect.version for effect in reversed(history.standing) if effect.key not in taken}
        assert all(effect.version < stays.get(effect.partition, 10**6) for effect in history.standing if effect.key in taken)
        history = after(history, verdicts)


@given(RUNS)
def test_where_there_is_room_nothing_changes(runs):
    history = a_history(runs)
    verdicts = retention.judge_backups(history, lambda _: Settings(min_age_ms=0), NOW_MS)
    assert judge(history, 10**6) == verdicts


def test_the_oldest_runs_go_first():
    every = {f"dt={number}": PLAIN for number in range(3)}
    assert going(judge(a_history([every, every, every]), 4)) == [*((0, name) for name in every), (1, "dt=0")]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_joined_file_that_left_live_goes_with_what_is_inside_and_all_between(is_renamed):
    every = {f"dt={number}": JOINED for number in range(3)}
    history = a_history([every, every, dict.fromkeys(every, PLAIN)])
    if is_renamed:
        # With a name that two other partitions had, or will have.
        runs = list(history.runs)
        names = {"dt=0": "dt=1", "dt=1": "dt=2", "dt=2": "dt=0"}
        runs[2] = replace(runs[2], effects=tuple(replace(one, partition=names[one.partition]) for one in runs[2].effects))
        history = History(tuple(runs))
        assert going(judge(history, 8)) == []
        assert len(going(judge(history, 9))) == 9
        return
    assert going(judge(history, 4)) == [(0, "dt=0"), (1, "dt=0"), (2, "dt=0")]


def test_a_set_for_which_there_is_no_room_does_not_keep_those_of_other_units():
    history = a_history([{"dt=1": JOINED}, {"dt=1": JOINED}, {"dt=1": JOINED}, {"dt=1": PLAIN, "dt=2": PLAIN}, {"dt=1": PLAIN}])
    assert going(judge(history, 3)) == [(3, "dt=2")]
    assert going(judge(history, 4)) == [(0, "dt=1"), (1, "dt=1"), (2, "dt=1"), (3, "dt=1")]


class Counted(str):
    """A name that counts how often it is looked up."""

    lookups = 0

    def __hash__(self):
        Counted.lookups += 1
        return super().__hash__()


@pytest.mark.parametrize("moved", [False, True])
def test_partitions_whose_joined_files_were_moved_to_the_next_one_each_are_not_gone_through_for_each(moved, monkeypatch):
    partitions = [Counted(f"dt={nth:04d}") for nth in range(1001)]
    first, second = a_history([dict.fromkeys(partitions[:-1], JOINED), dict.fromkeys(partitions[:-1], PLAIN)]).runs
    there = dict(zip(partitions, partitions[moved:]))
    second = replace(second, effects=tuple(replace(one, partition=there[one.partition]) for one in second.effects))
    history = History((first, second))
    verdicts = retention.judge_backups(history, lambda _: Settings(min_age_ms=0), NOW_MS)
    monkeypatch.setattr(Counted, "lookups", 0)
    found = retention.keep_beyond(history, verdicts, lambda _effects: True)
    assert sum(len(verdict.going) for verdict in found) == 2000
    assert Counted.lookups < 100 * len(partitions)
