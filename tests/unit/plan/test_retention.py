"""Which backups the policy lets go, and why the others stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.names import ControlPaths
from hivekeeper.plan import retention
from hivekeeper.plan.retention import Backup
from hivekeeper.reasons import Code
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.manifests import ManifestFile
from support.builders import a_file

DAY_MS = 86_400_000
NOW_MS = 1_000 * DAY_MS


def a_run_id(version):
    return f"20260101t0203{version:02d}z-0000"


def a_backup(version=0, age_ms=30 * DAY_MS, operation="compact-swap", pinned=False):
    run = a_run_id(version)
    return Backup(run, version, operation, run, None if age_ms is None else NOW_MS - age_ms, (), pinned)


def an_effect(version, partition="dt=1", operation="compact-swap", undoes=None, number=1, files=1):
    run = a_run_id(version)
    before = tuple(ManifestFile.of(a_file(f"{version}-{index}.parquet")) for index in range(files))
    place = f"runs/{run}/retired/u{number:05d}"
    return Effect(run, number, version, operation, 5, "sales.events@0", partition, partition, place, before, (), undoes)


def a_logged_run(version, *effects, operation="compact-swap", **more):
    run = a_run_id(version)
    return LoggedRun(
        version, run, run, operation, 5, "etl", "edge1", "app-1", None, True, "", "sales.events@0", {}, (), tuple(effects), **more
    )


def reasons(backups, policy):
    return [(verdict.keep, verdict.reason.code) for verdict in retention.judge_backups(backups, policy, NOW_MS)]


def kept(backups, policy):
    return [verdict.backup.version for verdict in retention.judge_backups(backups, policy, NOW_MS) if verdict.keep]


def test_without_a_policy_of_its_own_a_backup_stays_a_week():
    assert reasons([a_backup(age_ms=7 * DAY_MS - 1)], Settings()) == [(True, Code.TOO_YOUNG)]
    assert reasons([a_backup(age_ms=7 * DAY_MS)], Settings()) == [(False, Code.NOT_KEPT)]


@pytest.mark.parametrize(("age_ms", "keep"), [(30 * DAY_MS - 1, True), (30 * DAY_MS, False)])
def test_older_than_keeps_what_is_younger(age_ms, keep):
    ((kept, reason),) = reasons([a_backup(age_ms=age_ms)], Settings(older_than_ms=30 * DAY_MS))
    assert (kept, reason) == (keep, Code.TOO_YOUNG if keep else Code.NOT_KEPT)


def test_older_than_does_not_weaken_min_age():
    assert reasons([a_backup(age_ms=3 * DAY_MS)], Settings(older_than_ms=DAY_MS)) == [(True, Code.TOO_YOUNG)]


def test_keep_last_counts_from_the_newest_whatever_the_order_given():
    backups = [a_backup(version) for version in (3, 0, 2, 1)]
    assert kept(backups, Settings(keep_last=2)) == [3, 2]
    assert reasons(backups[:1], Settings(keep_last=1)) == [(True, Code.AMONG_NEWEST)]
    assert reasons(backups, Settings(keep_last=2))[1] == (False, Code.NOT_KEPT)


def test_keep_last_none_of_them_keeps_none():
    assert kept([a_backup(0), a_backup(1)], Settings(keep_last=0)) == []


def test_records_do_not_take_the_places_of_backups_with_files():
    backups = [a_backup(0), a_backup(1, operation="backup"), a_backup(2, operation="backup"), a_backup(3, operation="rollback")]
    assert kept(backups, Settings(keep_last=1)) == [2, 3]


def test_a_backup_goes_only_where_every_rule_lets_it_go():
    policy = Settings(min_age_ms=DAY_MS, older_than_ms=10 * DAY_MS, keep_last=1)
    backups = [a_backup(0, 20 * DAY_MS), a_backup(1, 15 * DAY_MS), a_backup(2, 5 * DAY_MS), a_backup(3, 20 * DAY_MS)]
    assert kept(backups, policy) == [2, 3]


@pytest.mark.parametrize(
    "policy", [Settings(), Settings(min_age_ms=0), Settings(min_age_ms=0, older_than_ms=0, keep_last=0), Settings(keep_last=0)]
)
@pytest.mark.parametrize(
    ("backup", "reason"),
    [
        (a_backup(pinned=True), Code.PINNED),
        (a_backup(age_ms=None), Code.DATE_UNKNOWN),
        (a_backup(age_ms=-1), Code.DATE_IN_FUTURE),
    ],
    ids=["pinned", "undated", "future"],
)
def test_no_policy_lets_go_what_is_pinned_or_cannot_be_dated(policy, backup, reason):
    assert reasons([backup], policy) == [(True, reason)]


def test_without_any_rule_the_reason_says_so():
    assert reasons([a_backup(age_ms=0)], Settings(min_age_ms=0)) == [(False, Code.NOT_KEPT)]


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
    backups = retention.list_backups(History((a_logged_run(0, an_effect(0)), a_logged_run(1, an_effect(1)))))
    verdicts = retention.judge_backups(backups, Settings(min_age_ms=0), NOW_MS)
    found = retention.keep_shown(verdicts, CONTROL, {"dt=1": "/w/events/dt=1", "dt=2": location})
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
