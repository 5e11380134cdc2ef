"""One status for each unit and table, from metadata alone, and what compacting would save."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.model import Snapshot
from hivekeeper.names import ControlPaths
from hivekeeper.plan import analysis
from hivekeeper.plan.analysis import ObservedTable, Status
from hivekeeper.reasons import Code, Reason
from support.builders import a_directory, a_file, a_snapshot, a_table, a_unit

MIB = 2**20
BLOCK = 128 * MIB
SETTINGS = Settings(min_quiet_ms=60_000)
NOW = 10_000_000


def judge(*lengths, name="dt=1", refusal=None, now=NOW, extra=()):
    files = [a_file(f"f{index:03d}", length) for index, length in enumerate(lengths)]
    return analysis.analyze_unit(a_unit(name), a_snapshot(*files, *extra), refusal, SETTINGS, now)


@pytest.mark.parametrize(
    ("lengths", "status", "target"),
    [
        ([MIB] * 200, Status.COMPACT, 2),
        ([MIB] * 2, Status.COMPACT, 1),
        ([MIB], Status.FINE, 1),
        ([BLOCK] * 3, Status.FINE, 3),
        ([], Status.EMPTY, 0),
        ([0, 0], Status.EMPTY, 0),
        ([BLOCK * 9, *[MIB] * 50], Status.COMPACT, 10),
    ],
)
def test_a_unit_has_one_word_and_its_files_afterwards(lengths, status, target):
    judged = judge(*lengths)
    assert (judged.status, judged.target_files) == (status, target)


def test_a_missing_directory_is_missing():
    judged = analysis.analyze_unit(a_unit(), Snapshot(exists=False), None, SETTINGS, NOW)
    assert (judged.status, judged.files_removed) == (Status.MISSING, 0)


def test_a_refusal_by_definition_wins_over_what_the_directory_holds():
    reason = Reason(Code.NOT_FAITHFUL, "because", "do")
    assert (judge(MIB, MIB, refusal=reason).status, judge(MIB, MIB, refusal=reason).reason) == (Status.REFUSED, reason)


def test_a_recent_unit_keeps_its_files_in_the_prediction():
    recent = judge(MIB, MIB, now=1000 + SETTINGS.min_quiet_ms - 1)
    assert (recent.status, recent.target_files) == (Status.RECENT, 2)
    predicted = analysis.predict(a_table_of(recent))
    assert (predicted.files_now, predicted.files_after, predicted.bytes_rewritten) == (2, 2, 0)


def test_a_refused_unit_keeps_its_files_in_the_prediction():
    judged = judge(MIB, MIB, extra=[a_directory("sub")])
    assert (judged.status, judged.target_files, judged.files_removed) == (Status.REFUSED, 2, 0)


@pytest.mark.parametrize(
    ("now", "status", "says"),
    [
        (1000 + 59_999, Status.RECENT, "written to 59 s ago"),
        (1000 + 60_000, Status.COMPACT, ""),
        (500, Status.RECENT, "written to 0 s ago"),
    ],
    ids=["too soon", "just quiet", "a clock behind"],
)
def test_a_unit_must_have_been_quiet_long_enough(now, status, says):
    judged = judge(MIB, MIB, now=now)
    assert (judged.status, judged.reason.what if judged.reason else "") == (status, says)


def test_only_work_waits_for_quiet():
    assert judge(BLOCK, now=1000).status == Status.FINE


def test_the_best_units_are_chosen_and_no_more_than_allowed():
    units = [judge(*[MIB] * count, name=f"dt={count}") for count in (2, 30, 5)] + [judge(BLOCK, name="dt=fine")]
    assert [unit.name for unit in analysis.choose(units)] == ["dt=30", "dt=5", "dt=2"]


def a_table_of(*units, **more):
    return ObservedTable(a_table(["dt"]), ControlPaths("c"), SETTINGS, tuple(units), **more)


@pytest.mark.parametrize(
    ("units", "word"),
    [
        ([], Status.EMPTY),
        ([judge(BLOCK), judge(MIB, MIB)], Status.COMPACT),
        ([judge(BLOCK), judge(BLOCK), judge()], Status.FINE),
        ([judge(), judge(BLOCK)], Status.EMPTY),
    ],
)
def test_a_table_has_the_word_of_its_work_or_of_most_units(units, word):
    assert a_table_of(*units).status == word


def test_a_refused_table_is_refused():
    assert a_table_of(reason=Reason(Code.NOT_FAITHFUL, "because", "do")).status == Status.REFUSED


def test_a_prediction_counts_files_bytes_and_objects():
    predicted = analysis.predict(a_table_of(judge(*[MIB] * 200), judge(BLOCK)))
    assert (predicted.files_now, predicted.files_after, predicted.files_removed) == (201, 3, 198)
    assert predicted.bytes_rewritten == 200 * MIB
    assert predicted.objects_now == (200 * 2 + 1) + (2 + 1)
    assert predicted.objects_after > predicted.objects_now > predicted.objects_after_cleanup


def test_nothing_to_do_saves_and_costs_nothing():
    predicted = analysis.predict(a_table_of(judge(BLOCK)))
    assert predicted.objects_now == predicted.objects_after == predicted.objects_after_cleanup
    assert (predicted.files_removed, predicted.bytes_rewritten) == (0, 0)


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [([], 0), ([1], 1), ([1] * 500, 1), ([1] * 501, 2), ([8 * 1024 * MIB, 1], 2)],
)
def test_batches_are_counted_by_units_and_by_bytes(sizes, batches):
    assert analysis.count_batches(sizes, replace(SETTINGS, batch_units=500)) == batches


def test_so_many_units_are_asked_about_at_a_time_that_the_answer_fits_into_memory(monkeypatch):
    monkeypatch.setattr(analysis, "FILES_AT_ONCE", 5)
    monkeypatch.setattr(analysis, "UNITS_AT_ONCE", 3)
    units = [judge(*[MIB] * files, name=f"dt={number}") for number, files in enumerate([2, 3, 1, 9, 1, 1, 1, 1])]
    found = [[unit.sizes.files for unit in some] for some in analysis.portions(units)]
    assert found == [[2, 3], [1], [9], [1, 1, 1], [1]]
    assert list(analysis.portions([])) == []
