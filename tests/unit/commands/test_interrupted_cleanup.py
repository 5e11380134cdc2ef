"""A cleanup that was killed: what comes next ends only the deletions that were begun. The next cleanup judges the rest by what is in force
then.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.plan.retention import list_backups
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.desk import outcomes
from support.joined_desk import a_desk, at, create_again, files_of, move_partition, survive
from support.leftovers import HOME, clean, drop, records, wait

FILES_ALONE, DIRECTORY_ALONE = (pytest.mark.parametrize("exchange", [one]) for one in ("files", "directory"))
DAY_MS = 86_400_000


@pytest.fixture(params=["directory", "files"])
def exchange(request):
    return request.param


@pytest.fixture
def desk(exchange):
    """Has compacted both partitions; each has a backup, aside or inside a file."""
    desk = a_desk(exchange=exchange)
    desk.world.catalog.homes["sales"] = HOME
    desk.world.catalog.add_table(a_table(name="other", location=f"{HOME}/other"))
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    return desk


def kill_at_once(desk):
    """Kill a cleanup that has written its plan and its first entry, before it touches a backup. Returns the run that has left those."""
    desk.kill_before(["/discarding/u00001"] if desk.settings.exchange == "files" else ["/held/u00001"], desk.cleanup)
    return desk.runs[0]


def standing(desk):
    return {(effect.run, effect.partition) for effect in desk.log().standing}


def recovered(result):
    ((_, counts),) = result.tables[0].recovered
    return dict(counts)


def test_a_pin_does_not_itself_discard_the_backup_that_it_is_to_protect(desk):
    run = kill_at_once(desk)
    assert desk.pin(run).code is Exit.DONE
    assert [(backup.run, backup.pinned) for backup in list_backups(desk.log())] == [(run, True)]
    desk.cleanup()
    assert outcomes(desk.rollback(run)) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}


def test_a_rollback_does_not_itself_discard_the_backup_that_it_is_to_bring_back(desk):
    assert outcomes(desk.rollback(kill_at_once(desk))) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}


@DIRECTORY_ALONE
def test_a_pin_protects_the_record_of_a_backup_command_too(desk):
    desk.backup()
    record = desk.runs[-1]
    kill_at_once(desk)
    assert desk.pin(record).code is Exit.DONE
    assert record in [backup.run for backup in list_backups(desk.log())]


def test_what_the_rules_keep_by_now_stays(desk):
    run = kill_at_once(desk)
    desk.settings = replace(desk.settings, min_age_ms=30 * DAY_MS)
    result = desk.compact()
    assert (result.code, recovered(result)) == (Exit.DONE, {Outcome.LEFT: 2})
    assert standing(desk) == {(run, "dt=1"), (run, "dt=2")}


def test_what_a_table_has_left_that_was_created_again_stays_until_somebody_asks_for_it(desk):
    run = kill_at_once(desk)
    create_again(desk)
    assert recovered(desk.recover()) == {Outcome.LEFT: 2}
    desk.cleanup()
    assert standing(desk) == {(run, "dt=1"), (run, "dt=2")}
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup(former=True)
    assert standing(desk) == set()


@pytest.mark.parametrize("files_stay", [True, False])
def test_what_a_dropped_table_has_left_is_judged_anew_too(desk, files_stay, exchange):
    kill_at_once(desk)
    control = desk.control
    if not files_stay:
        for unit in ("dt=1", "dt=2"):
            desk.world.files.writer.delete(desk.live(unit))
    drop(desk)
    clean(desk)
    wait(desk, 8)
    # Inside a file that is gone is nothing to keep.
    is_kept = exchange == "directory" or files_stay
    assert records(clean(desk, keep_latest_runs=5)).state is (OrphanState.KEPT if is_kept else OrphanState.REMOVED)
    assert len(store.read_history(desk.world.cluster, control).standing) == (2 if is_kept else 0)


@pytest.mark.parametrize("how", ["delete", "trash"])
def test_what_had_gone_is_discarded_and_the_rest_stays_for_the_next_one(desk, exchange, how):
    if exchange == "files":
        desk.kill_before(["/discarding/u00002"], desk.cleanup)
    else:
        desk.kill_before(["/held/u00002"], lambda: desk.cleanup(how=how))
    assert recovered(desk.recover()) == {Outcome.DISCARDED: 1, Outcome.LEFT: 1}
    assert standing(desk) == {(desk.runs[0], "dt=1")}
    assert desk.cleanup().code is Exit.DONE
    assert (standing(desk), desk.run_directories()) == (set(), [])
    assert set(outcomes(desk.verify()).values()) == {"verified"}


def test_a_recovery_that_is_killed_too_loses_nothing(desk, exchange):
    if exchange == "directory":
        desk.kill_before(["/discarding/u00001"], desk.cleanup)
        desk.kill_before(["rename_exact", "/held/u00001"], desk.recover)
    else:
        kill_at_once(desk)
    desk.kill_before(["entry.json"], desk.recover)
    assert recovered(desk.recover()) == {Outcome.LEFT: 2}
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}


DOOMED = ["delete_tree", "/discarding/u00001"]


@DIRECTORY_ALONE
def test_a_backup_of_which_nothing_is_deleted_yet_can_still_be_pinned_and_rolled_back(desk):
    desk.kill_before(DOOMED, desk.cleanup)
    run = desk.runs[0]
    result = desk.pin(run)
    assert (result.code, recovered(result)) == (Exit.DONE, {Outcome.LEFT: 2})
    desk.cleanup()
    assert outcomes(desk.rollback(run)) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}


@DIRECTORY_ALONE
@pytest.mark.parametrize("instead", [None, "of another length"])
def test_what_is_left_of_a_backup_that_was_deleted_in_part_goes(desk, instead):
    """Local files are deleted one by one."""
    desk.kill_before(DOOMED, desk.cleanup)
    (doomed,) = [path for path in desk.world.picture() if path.endswith("/discarding/u00001/part-00000.parquet")]
    desk.world.files.writer.delete(doomed)
    if instead:
        desk.world.add_file(doomed, [instead])
    assert recovered(desk.recover()) == {Outcome.DISCARDED: 1, Outcome.LEFT: 1}
    assert standing(desk) == {(desk.runs[0], "dt=1")}
    assert not [path for path in desk.world.picture() if "/discarding/" in path]


@DIRECTORY_ALONE
@pytest.mark.parametrize("words", [DOOMED, ["rename_exact", "/discarding/u00001"]])
def test_a_cleanup_that_stalls_deletes_nothing_later_of_which_a_recovery_said_that_it_stands(desk, words):
    at(desk, words, lambda: go_on_elsewhere(desk))
    assert desk.cleanup().tables[0].problem.code is Code.RUN_TAKEN_OVER
    survive(desk)
    assert outcomes(desk.rollback(desk.runs[0])) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}


@FILES_ALONE
@pytest.mark.parametrize("at_step", ["write_new", "write_new.close", "cut"])
def test_a_cleanup_that_stalls_cuts_no_file_later_of_which_a_recovery_said_that_it_stands(desk, at_step):
    """From anything else the recovery's rename of the run's directory keeps it."""
    words = ["cut ", "/dt=2/"] if at_step == "cut" else [f"{at_step} ", "/discarding/u00001"]
    at(desk, words, lambda: go_on_elsewhere(desk))
    assert desk.cleanup().tables[0].problem.code is Code.RUN_TAKEN_OVER
    survive(desk)
    (stands,) = (effect.after[0].length for effect in desk.log().effects if effect.partition == "dt=2")
    (length,) = (length for length, _ in files_of(desk, "dt=2").values())
    assert length == stands
    assert set(outcomes(desk.verify()).values()) == {"verified"}


@FILES_ALONE
def test_a_cut_that_was_begun_is_ended(desk):
    desk.kill_before(["cut ", "/dt=1/"], desk.cleanup)
    assert recovered(desk.recover()) == {Outcome.DISCARDED: 2}
    assert set(outcomes(desk.verify()).values()) == {"verified"}


def go_on_elsewhere(desk):
    """The lock goes to a recovery in another process."""
    desk.world.files.expire_locks()
    desk.recover(cluster=desk.world.another_process())


def test_a_directory_that_another_partition_got_since_keeps_no_recovery_waiting(desk):
    move_partition(desk)
    desk.append("dt=2", "more1", "more2")
    desk.append("moved", "more3", "more4")
    desk.compact()
    desk.world.files.namespace.advance(3_600_000)
    desk.kill_before(["/entry.json"], desk.cleanup)
    former = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.rename_into(desk.live("moved"), desk.live("again"))
    desk.world.catalog.put_partition(desk.table, replace(former, location=desk.live("again")))
    desk.world.catalog.add_partition(desk.table, replace(former, name="dt=7", values=("7",)))
    desk.world.files.writer.make_directory(desk.live("moved"))
    assert set(recovered(desk.recover())) == {Outcome.LEFT}


@DIRECTORY_ALONE
@pytest.mark.parametrize("step", ["rename_exact", "delete_tree"])
def test_a_backup_goes_back_though_somebody_has_removed_the_empty_directory_around_its_place(desk, step):
    desk.kill_before([step, "/discarding/u00002"], desk.cleanup)
    desk.world.files.writer.delete(names.join(desk.control.run(desk.runs[0]).top, "retired"))
    assert recovered(desk.recover()) == {Outcome.DISCARDED: 1, Outcome.LEFT: 1}
    assert desk.cleanup().code is Exit.DONE
    assert (standing(desk), desk.run_directories()) == (set(), [])


def test_what_a_former_table_left_inside_files_stays_if_the_cleanup_of_it_was_killed(desk):
    create_again(desk)
    desk.world.files.namespace.advance(3_600_000)
    before = standing(desk)
    desk.kill_before(["/entry.json"], lambda: desk.cleanup(former=True))
    assert recovered(desk.recover()) == {Outcome.LEFT: 2}
    assert standing(desk) == before


def test_a_second_attempt_with_the_same_run_key_does_what_the_first_had_not(desk):
    desk.run_key = "tonight"
    kill_at_once(desk)
    result = desk.cleanup()
    assert (result.code, result.tables[0].answered_by) == (Exit.DONE, None)
    assert standing(desk) == set()
    assert desk.cleanup().tables[0].answered_by.run == desk.runs[-2]
