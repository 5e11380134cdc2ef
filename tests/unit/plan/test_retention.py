"""Which backups the policy lets go, and why the others stay. Logs are drawn: a line for each unit, a column for each run."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.config.settings import Settings
from hivekeeper.errors import UsageError
from hivekeeper.names import ControlPaths
from hivekeeper.plan import retention, rollback
from hivekeeper.plan.retention import Window
from hivekeeper.reasons import Code
from hivekeeper.runlog.history import Effect, History, LoggedRun, LoggedUnit
from hivekeeper.runlog.manifests import Extent, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_file

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NOW_MS = 1_000 * DAY_MS
TABLE = "sales.events@0"
NO_FLOOR = Settings(min_age_ms=0)


def a_run_id(version):
    return f"20260101t0203{version:02d}z-0000"


def an_effect(version, partition="dt=1", operation="compact-swap", undoes=None, number=1, files=1):
    run = a_run_id(version)
    before = tuple(ManifestFile.of(a_file(f"{version}-{index}.parquet")) for index in range(files))
    place = f"runs/{run}/retired/u{number:05d}"
    return Effect(run, number, version, operation, 5, TABLE, partition, partition, place, before, (), undoes)


def a_logged_run(version, *effects, operation="compact-swap", age_ms=30 * DAY_MS, **more):
    run, ended_ms = a_run_id(version), None if age_ms is None else NOW_MS - age_ms
    known = {"units": (), "effects": tuple(effects), **more}
    return LoggedRun(version, run, run, operation, ended_ms, "etl", "edge1", "app-1", None, True, "", TABLE, {}, **known)


def judge(history, policy):
    return retention.judge_backups(history, lambda _: policy, NOW_MS)


def draw(history, policy):
    """By unit, the runs whose old files stay and go, as `K` and `-`, in the order of the runs; `.` where a run left none."""
    found: Dict[Tuple[str, int], str] = {}
    for verdict in judge(history, policy):
        found.update({(effect.partition, verdict.backup.version): "K" for effect, _ in verdict.staying})
        found.update({(effect.partition, verdict.backup.version): "-" for effect in verdict.going})
    partitions = sorted({effect.partition for effect in history.effects})
    return {name: " ".join(found.get((name, run.version), ".") for run in history.runs) for name in partitions}


def from_drawing(text):
    """The log of a drawing, and the drawing as `draw` gives it. The first line has the age of each run in hours; `x` was discarded."""
    ages, *lines = [line.split() for line in text.strip().splitlines()]
    units = {line[0]: line[1:] for line in lines}
    discarded = []
    runs: List[LoggedRun] = []
    for version, age in enumerate(ages):
        touched = [name for name, marks in units.items() if marks[version] != "."]
        effects = [an_effect(version, name, number=number) for number, name in enumerate(touched, start=1)]
        discarded += [effect.place for effect in effects if units[effect.partition][version] == "x"]
        runs.append(a_logged_run(version, *effects, age_ms=int(age) * HOUR_MS))
    runs.append(a_logged_run(len(runs), operation="cleanup", discarded=tuple(discarded)))
    return History(tuple(runs)), {name: " ".join([*marks, "."]).replace("x", ".") for name, marks in units.items()}


DRAWN = {
    "a look back over two runs takes three": (
        # Hudi: commits every half hour, four file groups, KEEP_LATEST_COMMITS 2 keeps three.
        {"keep_latest_runs": 2},
        """
             4 3 2 1 0
        fg=1 - - K K K
        fg=2 - . K . K
        fg=3 . - . K .
        fg=4 - - . . .
        """,
    ),
    "one version keeps the newest of each": (
        # Hudi: the same file groups, KEEP_LATEST_FILE_VERSIONS 1 keeps the newest of each.
        {"keep_latest_versions": 1},
        """
             4 3 2 1 0
        fg=1 - - - - K
        fg=2 - . - . K
        fg=3 . - . K .
        fg=4 - K . . .
        """,
    ),
    "versions that were discarded do not count": (
        {"keep_latest_versions": 2},
        """
             4 3 2 1 0
        dt=1 - K x x K
        dt=2 K x x x x
        """,
    ),
    "by age": (
        {"keep_for_ms": 30 * HOUR_MS},
        """
             100 31 30 29 2
        dt=1 -   -  -  K  K
        dt=2 -   .  .  .  .
        """,
    ),
    "the floor holds under every other rule": (
        {"min_age_ms": 30 * HOUR_MS, "keep_latest_versions": 1},
        """
             100 31 30 29 2
        dt=1 -   -  -  K  K
        dt=2 -   K  .  .  .
        """,
    ),
    "a backup goes only where every rule lets it go": (
        {"keep_latest_runs": 1, "keep_latest_versions": 2, "keep_for_ms": 50 * HOUR_MS},
        """
             100 90 80 40 2
        dt=1 -   .  .  K  K
        dt=2 K   K  .  .  .
        dt=3 -   -  K  K  .
        """,
    ),
    "no rule keeps nothing": ({}, "9 8\ndt=1 - -"),
    "fewer runs than the look back": ({"keep_latest_runs": 5}, "9 8\ndt=1 K K"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_goes_is_as_drawn(name):
    rules, text = DRAWN[name]
    history, expected = from_drawing(text)
    assert draw(history, Settings(**{"min_age_ms": 0, **rules})) == expected


def test_without_a_policy_of_its_own_a_backup_stays_a_week():
    def verdict(age_ms):
        ((found,)) = judge(History((a_logged_run(0, an_effect(0), age_ms=age_ms),)), Settings())
        return found.keep, found.reason.code

    assert verdict(7 * DAY_MS - 1) == (True, Code.TOO_YOUNG)
    assert verdict(7 * DAY_MS) == (False, Code.NOT_KEPT)


def test_what_goes_has_a_reason_and_each_that_stays_has_its_own():
    history, _ = from_drawing("4 3\ndt=1 - K\ndt=2 K .")
    (first, second) = judge(history, Settings(min_age_ms=0, keep_latest_versions=1))
    assert (first.reason.what, first.keep, first.goes_in_part) == ("it is not the newest of its unit", False, True)
    assert [(effect.partition, why.code) for effect, why in first.staying] == [("dt=2", Code.AMONG_NEWEST)]
    assert (second.reason.what, second.keep) == ("it is the newest of its unit", True)


ANY_POLICY = [NO_FLOOR, Settings(), Settings(min_age_ms=0, keep_for_ms=1, keep_latest_runs=1, keep_latest_versions=1)]


@pytest.mark.parametrize("policy", ANY_POLICY)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, Code.PINNED),
        ({"age_ms": None}, Code.DATE_UNKNOWN),
        ({"age_ms": -1}, Code.DATE_IN_FUTURE),
    ],
    ids=["pinned", "undated", "future"],
)
def test_no_policy_lets_go_what_is_pinned_or_cannot_be_dated(policy, changes, reason):
    own = (a_logged_run(0, an_effect(0), **changes),)
    pin = (a_logged_run(1, operation="pin", pin=(a_run_id(0), True)),) if reason is Code.PINNED else ()
    # Newer runs, so that no rule by number keeps it.
    newer = tuple(a_logged_run(len(own + pin) + n, an_effect(len(own + pin) + n, "dt=2")) for n in range(3))
    verdicts = judge(History(own + pin + newer), policy)
    assert (verdicts[0].keep, verdicts[0].reason.code) == (True, reason)


def failed(partition, nights):
    """Runs in which the compaction of a unit failed, night after night, with the same files."""
    unit = LoggedUnit(partition, Outcome.FAILED, "boom", None, (), partition, Extent(3, 3000, 7))
    return [replace(a_logged_run(0, age_ms=(nights - night) * DAY_MS), units=(unit,)) for night in range(nights)]


def numbered(runs):
    return History(tuple(replace(run, version=version) for version, run in enumerate(runs)))


def test_the_old_files_of_a_unit_in_quarantine_stay():
    old = a_logged_run(0, an_effect(0, "dt=1", number=1), an_effect(0, "dt=2", number=2))
    (verdict,) = judge(numbered([old, *failed("dt=2", 3)]), NO_FLOOR)
    assert ([effect.partition for effect in verdict.going], [why.code for _, why in verdict.staying]) == (
        ["dt=1"],
        [Code.UNIT_IN_QUARANTINE],
    )
    assert judge(numbered([old, *failed("dt=2", 2)]), NO_FLOOR)[0].keep is False


def verified(version, *effects):
    units = tuple(LoggedUnit(one.partition, Outcome.VERIFIED, "", None, (), one.partition, about=one.key) for one in effects)
    return replace(a_logged_run(version, operation="verify"), units=units)


def test_the_newest_old_files_of_a_unit_stay_until_they_were_verified():
    history, _ = from_drawing("4 3 2\ndt=1 ? ? ?\ndt=2 ? ? .")
    policy = Settings(min_age_ms=0, cleanup_requires="verified")
    assert draw(history, policy) == {"dt=1": "- - K .", "dt=2": "- K . ."}
    (_, of_second, of_third) = (verdict.backup.effects for verdict in judge(history, policy))
    known = History((*history.runs, verified(len(history.runs), *of_third)))
    assert draw(known, policy) == {"dt=1": "- - - . .", "dt=2": "- K . . ."}
    # What was verified of an older run says nothing about the newest.
    older = History((*history.runs, verified(len(history.runs), *of_second)))
    assert draw(older, policy) == {"dt=1": "- - K . .", "dt=2": "- - . . ."}
    reasons = {why.code for verdict in judge(history, policy) for _, why in verdict.staying}
    assert reasons == {Code.NOT_VERIFIED}


@pytest.mark.parametrize("rules", [{"keep_latest_versions": 1}, {"cleanup_requires": "verified"}])
def test_the_newest_old_files_of_a_former_table_stay_beside_those_of_the_one_that_was_created_again(rules):
    """They may be the only copy of its rows."""
    former, other = (a_logged_run(n, an_effect(n), age_ms=DAY_MS) for n in range(2))
    effects = tuple(replace(effect, table_id="sales.events@60") for effect in other.effects)
    again = replace(other, table_id="sales.events@60", effects=effects)
    history = History((former, again, replace(verified(2, *effects), table_id="sales.events@60")))
    stays = {"keep_latest_versions": "K K .", "cleanup_requires": "K - ."}[next(iter(rules))]
    assert draw(history, Settings(min_age_ms=0, **rules)) == {"dt=1": stays}


@pytest.mark.parametrize("rule", [{"keep_latest_versions": 1}, {"cleanup_requires": "verified"}])
def test_what_a_rollback_took_out_of_live_takes_no_place_of_the_runs_in_force(rule):
    first, second, third = (an_effect(n) for n in range(3))
    undo = an_effect(3, operation="rollback", undoes=third.key)
    history = History(tuple(a_logged_run(one.version, one) for one in (first, second, third, undo)))
    assert draw(history, Settings(**{"min_age_ms": 0, **rule})) == {"dt=1": "- K . K"}


def test_what_no_rollback_brings_back_any_more_takes_no_place_either():
    first, second = an_effect(0), an_effect(1)
    undo = an_effect(2, operation="rollback", undoes=second.key)
    again = an_effect(3)
    history = History(tuple(a_logged_run(one.version, one) for one in (first, second, undo, again)))
    assert draw(history, Settings(min_age_ms=0, keep_latest_versions=2)) == {"dt=1": "K . K K"}


def test_a_backup_that_stays_keeps_the_newer_ones_that_a_rollback_to_it_undoes_first():
    first, second, third = (a_logged_run(n, an_effect(n), age_ms=DAY_MS) for n in range(3))
    pin = a_logged_run(3, operation="pin", pin=(first.run, True))
    history = History((first, second, third, pin))
    found = judge(history, NO_FLOOR)
    assert [verdict.reason.code for verdict in found] == [Code.PINNED, Code.NEEDED_BY_ROLLBACK, Code.NEEDED_BY_ROLLBACK]
    assert f"a rollback of run {first.run}" in found[1].reason.what


def test_what_cannot_be_rolled_back_any_more_keeps_no_newer_backup():
    first, second, third = (a_logged_run(n, an_effect(n), age_ms=DAY_MS) for n in range(3))
    pin = a_logged_run(3, operation="pin", pin=(first.run, True))
    gap = a_logged_run(4, operation="cleanup", discarded=(second.effects[0].place,))
    found = judge(History((first, second, third, pin, gap)), NO_FLOOR)
    assert [verdict.reason.code for verdict in found] == [Code.PINNED, Code.NOT_KEPT]


def test_a_rollback_that_can_be_undone_keeps_the_newer_ones_that_would_be_undone_first():
    first, second = an_effect(0), an_effect(1)
    undo_second, undo_first = (an_effect(2 + n, operation="rollback", undoes=undone.key) for n, undone in enumerate((second, first)))
    runs = [a_logged_run(effect.version, effect, age_ms=DAY_MS) for effect in (first, second, undo_second, undo_first)]
    pin = a_logged_run(4, operation="pin", pin=(undo_second.run, True))
    found = judge(History((*runs, pin)), NO_FLOOR)
    assert [(verdict.backup.version, verdict.reason.code) for verdict in found] == [(2, Code.PINNED), (3, Code.NEEDED_BY_ROLLBACK)]


def test_records_do_not_take_the_places_of_backups_with_files():
    record = {"operation": "backup"}
    history = History((a_logged_run(0, an_effect(0)), a_logged_run(1, **record), a_logged_run(2, **record), a_logged_run(3, an_effect(3))))
    kept = {verdict.backup.version: verdict.keep for verdict in judge(history, Settings(min_age_ms=0, keep_latest_versions=1))}
    assert kept == {0: False, 1: False, 2: True, 3: True}
    window = Settings(min_age_ms=0, keep_latest_runs=1)
    assert [verdict.keep for verdict in judge(history, window)] == [True, True, True, True]


@pytest.mark.parametrize(("keep_for_ms", "is_refused"), [(DAY_MS, True), (7 * DAY_MS, False), (8 * DAY_MS, False), (None, False)])
def test_an_age_below_the_floor_contradicts_it(keep_for_ms, is_refused):
    policy = Settings(keep_for_ms=keep_for_ms)
    if not is_refused:
        retention.refuse_contradiction(policy, "sales.events")
        return
    with pytest.raises(UsageError) as raised:
        retention.refuse_contradiction(policy, "sales.events")
    assert raised.value.reason.what == "sales.events: keep_for is 1d, and min_age keeps every backup younger than 7d"
    assert "--min-age 1d" in raised.value.reason.next


@pytest.mark.parametrize(
    ("rules", "window"),
    [
        ({"keep_latest_runs": 1}, Window(2, 30 * HOUR_MS)),
        ({"keep_latest_versions": 1}, Window(1, 2 * HOUR_MS)),
        ({"keep_for_ms": 90 * HOUR_MS}, Window(3, 80 * HOUR_MS)),
        ({"min_age_ms": 200 * HOUR_MS}, Window(4, 100 * HOUR_MS)),
        ({}, None),
    ],
)
def test_the_window_is_how_far_back_everything_is_kept(rules, window):
    drawn, _ = from_drawing("100 80 30 2\ndt=1 ? ? ? ?\ndt=2 ? ? . .")
    history = History((*drawn.runs, a_logged_run(len(drawn.runs), operation="backup", age_ms=HOUR_MS)))
    assert retention.find_window(history, TABLE, judge(history, Settings(**{"min_age_ms": 0, **rules})), NOW_MS) == window


@pytest.mark.parametrize(
    ("drawing", "window"),
    [
        ("100 80 30 2\ndt=1 ? ? ? ?\ndt=2 ? x . .", Window(2, 30 * HOUR_MS)),
        ("100 80 30 2\ndt=1 ? x ? ?\ndt=2 ? . . .", Window(2, 30 * HOUR_MS)),
        ("100 80 30 2\ndt=1 ? ? ? x", None),
    ],
    ids=["in part", "whole", "newest"],
)
def test_the_window_ends_at_a_run_of_which_something_was_discarded(drawing, window):
    history, _ = from_drawing(drawing)
    assert retention.find_window(history, TABLE, judge(history, Settings(min_age_ms=200 * HOUR_MS)), NOW_MS) == window


def test_the_window_ends_where_the_table_was_created_again_and_passes_over_what_a_rollback_put_back():
    former, first, second = an_effect(0), an_effect(1), an_effect(2)
    undo = an_effect(3, operation="rollback", undoes=second.key)
    runs = [a_logged_run(one.version, one, age_ms=HOUR_MS * (9 - one.version)) for one in (first, second, undo)]
    of_former = replace(a_logged_run(0, replace(former, table_id="sales.events@1"), age_ms=9 * HOUR_MS), table_id="sales.events@1")
    history = History((of_former, *runs))
    assert retention.find_window(history, TABLE, judge(history, Settings()), NOW_MS) == Window(2, 8 * HOUR_MS)


# ---- what holds for every log and every policy

PARTITIONS = ("dt=1", "dt=2", "dt=3")


@st.composite
def logs(draw):
    """Runs that compact some partitions, roll back the newest of one, pin, or discard, as real ones do."""
    runs: List[LoggedRun] = []
    standing: Dict[str, List[Effect]] = {name: [] for name in PARTITIONS}
    for version in range(draw(st.integers(1, 9))):
        age_ms = draw(st.one_of(st.none(), st.integers(-2, 40).map(lambda days: days * DAY_MS)))
        act = draw(st.sampled_from(["compact", "compact", "compact", "rollback", "pin", "discard", "backup"]))
        chosen = draw(st.sampled_from(PARTITIONS))
        top = standing[chosen][-1:] if act in ("rollback", "discard") else []
        if act == "compact":
            names = draw(st.sets(st.sampled_from(PARTITIONS), min_size=1))
            effects = [an_effect(version, name, number=number) for number, name in enumerate(sorted(names), start=1)]
            runs.append(a_logged_run(version, *effects, age_ms=age_ms))
        elif act == "rollback" and top:
            effects = [an_effect(version, chosen, "rollback", undoes=top[0].key)]
            standing[chosen].pop()
            runs.append(a_logged_run(version, *effects, operation="rollback", age_ms=age_ms))
        elif act == "discard" and top:
            effects = []
            gone = draw(st.sampled_from(standing[chosen]))
            standing[chosen].remove(gone)
            runs.append(a_logged_run(version, operation="cleanup", discarded=(gone.place,)))
        elif act == "pin" and runs:
            effects = []
            runs.append(a_logged_run(version, operation="pin", pin=(draw(st.sampled_from(runs)).run, draw(st.booleans()))))
        else:
            effects = []
            runs.append(a_logged_run(version, operation="backup", age_ms=age_ms))
        for effect in effects:
            standing[effect.partition].append(effect)
    return History(tuple(runs))


RULES = ("min_age_ms", "keep_for_ms", "keep_latest_runs", "keep_latest_versions")
DAYS = st.integers(1, 40).map(lambda days: days * DAY_MS)
POLICIES = st.fixed_dictionaries(
    {
        "min_age_ms": st.one_of(st.just(0), DAYS),
        "keep_for_ms": st.one_of(st.none(), DAYS),
        "keep_latest_runs": st.one_of(st.none(), st.integers(1, 9)),
        "keep_latest_versions": st.one_of(st.none(), st.integers(1, 5)),
    }
)


def kept(history: History, rules: Dict[str, Optional[int]]) -> FrozenSet[Any]:
    verdicts = judge(history, Settings(**rules))
    records = {verdict.backup.run for verdict in verdicts if verdict.backup.is_record and not verdict.record_goes}
    return frozenset({effect.key for verdict in verdicts for effect, _ in verdict.staying} | records)


def is_at_least(rules, other):
    return all((rules[name] or 0) >= (other[name] or 0) for name in RULES)


@given(logs(), POLICIES, POLICIES)
def test_a_policy_that_asks_for_less_never_keeps_more(history, one, other):
    least = {name: min(one[name] or 0, other[name] or 0) or (0 if name == "min_age_ms" else None) for name in RULES}
    assert is_at_least(one, least)
    assert kept(history, least) <= kept(history, one)


@given(logs(), POLICIES)
def test_together_rules_keep_what_each_of_them_keeps_so_their_order_does_not_matter(history, rules):
    none = {"min_age_ms": 0, "keep_for_ms": None, "keep_latest_runs": None, "keep_latest_versions": None}
    alone = [kept(history, {**none, name: rules[name]}) for name in RULES]
    assert kept(history, rules) == frozenset().union(*alone)


@given(logs(), POLICIES)
def test_what_is_pinned_never_goes_and_each_backup_has_one_verdict(history, rules):
    verdicts = judge(history, Settings(**rules))
    assert [verdict.backup for verdict in verdicts] == list(retention.list_backups(history))
    for verdict in verdicts:
        judged = [*verdict.going, *(effect for effect, _ in verdict.staying)]
        assert sorted(effect.key for effect in judged) == sorted(effect.key for effect in verdict.backup.effects)
        assert verdict.keep or not verdict.backup.pinned


@given(logs(), POLICIES)
def test_what_a_rollback_to_a_backup_that_stays_needs_is_there_as_long_as_it_was(history, rules):
    """Nothing that goes takes away a rollback to what stays."""
    stays = kept(history, rules)
    there = {effect.key for effect in history.standing}
    for stack in rollback.read_stacks(history, TABLE).values():
        for effects in (stack.done, stack.undone):
            for index, effect in enumerate(effects):
                newer = {one.key for one in effects[index:]}
                assert effect.key not in stays or not newer <= there or newer <= stays


@given(logs(), st.integers(0, 4))
def test_what_is_left_for_the_next_cleanup_keeps_its_rollbacks(history, most):
    left = [most]

    def takes(effects):
        left[0] -= len(effects)
        return left[0] >= 0

    verdicts = judge(history, NO_FLOOR)
    limited = retention.keep_beyond(history, verdicts, takes)
    goes, may_go = ({effect.key for verdict in some for effect in verdict.going} for some in (limited, verdicts))
    assert goes <= may_go
    assert len(goes) <= most
    there = {effect.key for effect in history.standing}
    for stack in rollback.read_all_stacks(history).values():
        for effects in (stack.done, stack.undone):
            for index, effect in enumerate(effects):
                newer = {one.key for one in effects[index:]}
                assert effect.key in goes or not newer <= there or not newer & goes


# ---- what the log says there is


def test_the_backups_of_a_log_are_those_that_were_neither_discarded_nor_restored():
    first, second = an_effect(0, "dt=1", number=1), an_effect(0, "dt=2", number=2)
    undoing = an_effect(1, "dt=1", "rollback", undoes=first.key, files=2)
    cleanup = a_logged_run(2, operation="cleanup", discarded=(second.place,))
    history = History((a_logged_run(0, first, second), a_logged_run(1, undoing, operation="rollback"), cleanup))
    (backup,) = retention.list_backups(history)
    assert (backup.run, backup.operation, backup.files, backup.total_bytes) == (a_run_id(1), "rollback", 2, 2000)


CONTROL = ControlPaths("/w/events/.hivekeeper")
PLACE = f"{CONTROL.runs}/{a_run_id(1)}/retired/u00001"


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (PLACE, True),
        (f"{PLACE}/inside", True),
        (f"{CONTROL.runs}/{a_run_id(1)}", True),
        (CONTROL.top, True),
        (f"{PLACE}0", False),
        ("/w/events/dt=2", False),
        ("/w/events", False),
    ],
)
def test_a_backup_that_a_partition_lies_in_or_around_is_kept(location, shown):
    history = History((a_logged_run(0, an_effect(0)), a_logged_run(1, an_effect(1))))
    found = retention.keep_shown(history, judge(history, NO_FLOOR), CONTROL, [("dt=1", "/w/events/dt=1"), ("dt=2", location)])
    is_around_both = location == CONTROL.top
    assert [verdict.keep for verdict in found] == [is_around_both, shown]
    assert not shown or found[1].reason.code is Code.BACKUP_SHOWN


def test_a_backup_of_which_a_part_was_discarded_holds_the_rest():
    first, second = an_effect(0, "dt=1", number=1), an_effect(0, "dt=2", number=2)
    history = History((a_logged_run(0, first, second), a_logged_run(1, operation="cleanup", discarded=(first.place,))))
    assert [backup.effects for backup in retention.list_backups(history)] == [(second,)]


def test_a_record_is_a_backup_until_it_is_discarded():
    record = a_logged_run(0, operation="backup")
    gone = a_logged_run(1, operation="cleanup", discarded=(f"runs/{record.run}",))
    assert [backup.is_record for backup in retention.list_backups(History((record,)))] == [True]
    assert retention.list_backups(History((record, gone))) == ()


def test_runs_that_changed_nothing_left_no_backup():
    history = History((a_logged_run(0), a_logged_run(1, operation="pin", pin=(a_run_id(0), True))))
    assert retention.list_backups(history) == ()


def test_the_last_word_on_a_pin_counts():
    run = a_logged_run(0, an_effect(0))
    pin, unpin = (replace(a_logged_run(n, operation="pin"), pin=(run.run, pinned)) for n, pinned in ((1, True), (2, False)))
    assert [backup.pinned for backup in retention.list_backups(History((run, pin)))] == [True]
    assert [backup.pinned for backup in retention.list_backups(History((run, pin, unpin)))] == [False]


def test_what_one_run_did_to_a_unit_in_two_steps_stays_or_goes_together():
    """A rollback over two runs exchanges the unit twice, and is undone as a whole: one of the two backups alone restores nothing."""
    runs = [a_logged_run(version, an_effect(version)) for version in (0, 1)]
    steps = [an_effect(2, operation="rollback", undoes=(a_run_id(done), 1), number=number) for number, done in ((1, 1), (2, 0))]
    history = History((*runs, a_logged_run(2, *steps, operation="rollback")))
    (verdict,) = judge(history, replace(NO_FLOOR, keep_latest_versions=1))
    assert (verdict.going, [effect.number for effect, _ in verdict.staying]) == ((), [1, 2])


def test_above_a_backup_that_is_shown_the_newer_ones_stay():
    history = History((a_logged_run(0, an_effect(0)), a_logged_run(1, an_effect(1))))
    shown = [("dt=1", "/w/events/dt=1"), ("dt=2", f"{CONTROL.top}/{an_effect(0).place}")]
    found = retention.keep_shown(history, judge(history, NO_FLOOR), CONTROL, shown)
    assert [verdict.reason.code for verdict in found] == [Code.BACKUP_SHOWN, Code.NEEDED_BY_ROLLBACK]


@pytest.mark.parametrize(
    ("live", "is_shown"),
    [
        ("/w/events/.hivekeeper/r*/x/retired/u00001", True),
        ("/w/events/*/runs/x/retired/u00001", True),
        ("/w/[e]vents/.hivekeeper/runs", True),
        ("/w/events/dt=1/*", False),
        ("/w/other/*", False),
    ],
)
def test_a_pattern_shows_what_it_may_find(live, is_shown):
    """Hive reads a partition at a pattern; the location is not compared as a text alone."""
    shown = retention.find_shown(ControlPaths("/w/events/.hivekeeper"), ["runs/x/retired/u00001"], [("dt=1", live)])
    assert bool(shown) == is_shown


def test_deep_locations_of_partitions_take_no_memory():
    lives = [(f"dt={number}", (f"{CONTROL.top}/{number}" + "/a" * 2000)[:4000]) for number in range(100)]
    tracemalloc.start()
    try:
        assert retention.find_shown(CONTROL, [PLACE], lives) == {}
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 * 2**20, f"{most / 2**20:.0f} MiB"
