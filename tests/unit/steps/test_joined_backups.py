"""Backups that lie inside a file of live: rolled back, undone, cut off, verified; killed at each step."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import rollback
from hivekeeper.errors import HivekeeperError
from hivekeeper.model import Block, UnitFooters
from hivekeeper.plan.orphans import OrphanState
from hivekeeper.plan.rollback import plan_undoing
from hivekeeper.ports import NoPermission, NotPossible, SourceMissing
from hivekeeper.reasons import Code
from hivekeeper.report import command_text, history_text
from hivekeeper.runlog import store
from support import leftovers
from support.builders import a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile, FakeRows
from support.joined_desk import ALL, SMALL, a_desk, at, create_again, drop_partition, files_of, joined_name, joined_path, replace_one, rows
from support.world import World


@pytest.fixture
def desk():
    desk = a_desk()
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    desk.world.files.namespace.advance(3_600_000)
    return desk


def test_old_files_inside_a_file_come_back_as_one_and_the_others_stay(desk):
    before = files_of(desk)
    result = desk.rollback()
    assert result.code is Exit.DONE
    assert outcomes(result) == {"dt=1": "rolled-back", "dt=2": "rolled-back"}
    assert rows(desk) == ALL
    (came,) = files_of(desk).keys() - before.keys()
    assert files_of(desk)[came][1] == tuple(SMALL)
    assert files_of(desk)["large.parquet"] == before["large.parquet"]
    assert desk.run_directories() == []


def test_a_rollback_of_joined_files_can_itself_be_undone(desk):
    compacted = files_of(desk)
    desk.rollback()
    assert set(outcomes(desk.rollback(desk.runs[-1])).values()) == {"rolled-back"}
    assert rows(desk) == ALL
    assert len(files_of(desk)) == len(compacted)
    assert outcomes(desk.rollback(desk.runs[-1]))["dt=1"] == "rolled-back"
    assert rows(desk) == ALL


def test_a_cleanup_cuts_the_old_files_off(desk):
    (joined,) = (name for name in files_of(desk) if name != "large.parquet")
    copy_bytes = next(effect.inside.copy_bytes for effect in desk.log().effects if effect.partition == "dt=1")
    assert desk.cleanup().code is Exit.DONE
    assert files_of(desk)[joined] == (copy_bytes, tuple(SMALL))
    assert desk.log().standing == ()
    assert desk.run_directories() == []
    assert [unit.outcome.code for unit in desk.rollback(desk.runs[0]).tables[0].units] == ["refused", "refused"]
    assert rows(desk) == ALL


def test_a_file_that_was_cut_can_be_joined_again(desk):
    desk.cleanup()
    desk.append("dt=1", "a", "b")
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    assert rows(desk) == sorted([*ALL, "a", "b"])
    assert len(files_of(desk)) == 2
    desk.rollback()
    assert rows(desk) == sorted([*ALL, "a", "b"])


def test_a_file_that_somebody_has_written_to_is_not_cut_and_not_rolled_back(desk):
    path = joined_path(desk)
    node = desk.world.files.writer.open(path)
    node.length += 7
    desk.world.files.writer.close(node)
    length = desk.world.files.stat(path).length
    assert outcomes(desk.rollback(where="dt = '1'"))["dt=1"] == "refused"
    assert [backup.state.code for backup in desk.cleanup().tables[0].backups] == ["partly"]
    assert desk.world.files.stat(path).length == length


def test_a_file_of_the_same_length_with_other_blocks_is_not_cut(desk):
    """As one that was cut and appended to: only its blocks tell."""
    path = joined_path(desk)
    node = desk.world.files.namespace.file(path)
    node.joined = tuple(block._replace(stamp=block.stamp + 1) for block in node.joined)
    length = node.length
    assert outcomes(desk.rollback(where="dt = '1'"))["dt=1"] == "refused"
    desk.cleanup()
    assert desk.world.files.stat(path).length == length


def test_a_backup_goes_with_its_file_when_that_is_overwritten(desk):
    desk.world.files.writer.delete(joined_path(desk))
    desk.append("dt=1", "overwriter")
    assert outcomes(desk.rollback(where="dt = '1'"))["dt=1"] == "refused"
    assert desk.cleanup().code is Exit.DONE
    assert desk.log().standing == ()
    assert rows(desk) == ["large", "overwriter"]


def test_another_file_under_the_name_of_a_joined_one_is_not_cut_and_the_backup_has_gone_with_that(desk):
    path = joined_path(desk)
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, DataFile(("over",)), 777)
    assert desk.cleanup().code is Exit.DONE
    assert desk.log().standing == ()
    assert (desk.world.files.stat(path).length, rows(desk)) == (777, ["large", "over"])


def test_nothing_is_cut_without_the_lock(desk):
    path = joined_path(desk)
    length = desk.world.files.stat(path).length

    def take(what):
        if what.startswith("cut ") and "/dt=2/" in what:
            desk.world.files.expire_locks()

    desk.world.files.before_step = take
    with suppress(HivekeeperError):
        desk.cleanup()
    assert desk.world.files.stat(path).length == length


def test_a_file_that_somebody_writes_to_between_the_look_and_the_cut_is_not_cut(desk):
    node = desk.world.files.namespace.file(joined_path(desk))

    def write():
        node.joined = tuple(block._replace(stamp=block.stamp + 1) for block in node.joined)

    at(desk, ["cut ", "/dt=1/"], write)
    (backup,) = desk.cleanup().tables[0].backups
    assert [why.code.code for _, why in backup.kept_units] == ["backup-changed"]
    assert len(node.blocks) > 4


@pytest.mark.parametrize("killed", [False, True])
def test_a_file_of_a_table_that_was_created_again_is_not_cut(desk, killed):
    units = ("dt=1", "dt=2")
    before = [files_of(desk, unit) for unit in units]
    if killed:
        desk.kill_before(["cut "], desk.cleanup)
    create_again(desk)
    desk.world.files.namespace.advance(3_600_000)
    desk.recover()
    desk.cleanup(former=True)
    assert [files_of(desk, unit) for unit in units] == before
    assert desk.log().standing == ()


def test_nor_is_one_of_a_table_that_is_gone(desk):
    live = f"{leftovers.HOME}/events/dt="
    before = {path: one for path, one in desk.world.files.contents(leftovers.HOME).items() if path.startswith(live)}
    desk.kill_before(["cut "], desk.cleanup)
    desk.world.catalog.homes["sales"] = leftovers.HOME
    desk.world.catalog.add_table(a_table(name="other", location=f"{leftovers.HOME}/other", create_time=88))
    leftovers.drop(desk)
    for _ in range(2):
        result = leftovers.clean(desk)
        leftovers.wait(desk, 8)
    assert leftovers.records(result).state is OrphanState.REMOVED
    assert desk.world.files.contents(leftovers.HOME) == before


def test_a_backup_stays_with_old_files_of_a_former_table_inside_a_file_of_it(desk):
    create_again(desk)
    desk.settings = replace(desk.settings, exchange="directory")
    desk.append("dt=1", *[f"more{nth}" for nth in range(4)])
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact(where="dt = '1'")) == {"dt=1": "swapped"}
    held = desk.world.rows_below(desk.control.runs)
    result = desk.cleanup()
    assert {why.why.code for why in result.tables[0].backups} == {Code.OF_FORMER_TABLE, Code.IN_OTHER_BACKUP}
    assert desk.world.rows_below(desk.control.runs) == held


def test_old_files_stay_with_the_backup_that_a_killed_cleanup_held_with_the_file_that_has_them_inside(desk):
    desk.settings = replace(desk.settings, exchange="directory")
    desk.append("dt=1", *[f"more{nth}" for nth in range(4)])
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact(where="dt = '1'")) == {"dt=1": "swapped"}
    desk.kill_before(["/discarding/u"], desk.cleanup)
    rows = desk.world.rows_of(desk.table)
    desk.recover()
    assert {effect.run for effect in desk.log().standing if effect.partition == "dt=1"} == set(desk.runs[:2])
    for run in (desk.runs[1], desk.runs[0]):
        assert outcomes(desk.rollback(run, where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert desk.world.rows_of(desk.table) == rows


def test_a_part_of_a_file_cannot_go_to_the_trash(desk):
    before = files_of(desk)
    (backup,) = desk.cleanup(how="trash").tables[0].backups
    assert (backup.state.code, {why.code.code for _, why in backup.kept_units}) == ("partly", {"not-to-trash"})
    assert files_of(desk) == before
    assert len(desk.log().standing) == 2


def test_a_directory_swap_on_top_is_rolled_back_first(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    assert rows(desk) == sorted([*ALL, "a", "b", "c"])
    refused = desk.rollback(desk.runs[0], where="dt = '1'")
    assert outcomes(refused) == {"dt=1": "refused"}
    assert desk.runs[1] in refused.tables[0].units[0].why.next
    assert outcomes(desk.rollback(desk.runs[1]))["dt=1"] == "rolled-back"
    assert outcomes(desk.rollback(desk.runs[0], where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert rows(desk) == sorted([*ALL, "a", "b", "c"])


def test_old_files_stay_inside_a_file_that_another_backup_has(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    # The swap's backup is too young, the join's would go.
    later = desk.log().runs[-1].timestamp_ms
    desk.world.files.namespace.advance(10_000)
    # Other units' first, which takes a little time.
    young = replace(EVERYTHING, min_age_ms=desk.world.clock.now_ms() - later + 1000)
    (swap, join) = reversed(desk.cleanup(young, dry_run=True).tables[0].backups)
    assert (join.state.code, swap.state.code) == ("planned", "kept")
    assert [(name, why.code.code) for name, why in join.kept_units] == [("dt=1", "in-other-backup")]
    desk.cleanup(young)
    assert {effect.run for effect in desk.log().standing if effect.partition == "dt=1"} == {desk.runs[0], desk.runs[1]}


@pytest.mark.repeating
@pytest.mark.parametrize("command", ["rollback", "cleanup"])
def test_a_command_that_is_killed_anywhere_is_settled_by_the_next(command):
    survived = 0
    while True:
        desk = a_desk()
        desk.compact()
        desk.world.files.namespace.advance(3_600_000)
        desk.world.files.die_after(survived)
        killed = True
        with suppress(Killed):
            getattr(desk, command)()
            killed = False
        desk.world.files.revive()
        desk.world.files.expire_locks()
        assert rows(desk) == ALL, survived
        assert desk.recover().code is Exit.DONE, survived
        assert rows(desk) == ALL, survived
        assert not [name for name in files_of(desk) if name.startswith(".")], survived
        assert all(of_file for _, of_file in files_of(desk).values()), survived
        assert desk.run_directories() == [], survived
        for effect in desk.log().standing if command == "cleanup" else ():
            # Else a backup that is cut off already would stand for ever.
            assert desk.world.files.stat(f"{desk.live(effect.partition)}/{effect.inside.file}").length == effect.inside.length, survived
        # The log agrees with the files: what stands can be rolled back.
        if desk.log().standing:
            assert set(outcomes(desk.rollback(desk.log().standing[-1].run)).values()) <= {"rolled-back", "refused", "undone"}
            assert rows(desk) == ALL, survived
        if not killed:
            break
        survived += 1
    assert survived > 10


def test_rows_of_a_replaced_file_are_not_lost_by_a_rollback(desk):
    """Somebody replaces the joined file while it is rolled back: what concat takes is given back."""
    path, armed = joined_path(desk), [True]

    def replace_it(what):
        if armed and "concat" in what and "/dt=1/part" in what:
            armed.clear()
            desk.world.files.writer.delete(path)
            desk.world.files.writer.add(path, DataFile(("new",)), 777)

    desk.world.files.before_step = replace_it
    assert outcomes(desk.rollback(where="dt = '1'")) == {"dt=1": "put-back"}
    assert rows(desk) == ["large", "new"]


# ---- verify


@pytest.mark.parametrize("level", ["count", "digest", "rows"])
def test_old_files_inside_a_file_are_compared_with_its_rows(desk, level):
    for against in (None, desk.runs[0]):
        result = desk.verify(against, level)
        assert outcomes(result) == {"dt=1": "verified", "dt=2": "verified"}
        unit = result.tables[0].units[0]
        assert (unit.files_before, unit.files_after, unit.rows, unit.late_files) == (3, 1, 3, ())


def test_old_files_that_hold_other_rows_differ(desk):
    node = desk.world.files.namespace.file(joined_path(desk))
    first, *others = node.content.before
    strange = replace(node.content.before[2], rows=("strange",))
    node.content = replace(node.content, before=(first, others[0], strange, *others[2:]))
    assert outcomes(desk.verify())["dt=1"] == "differs"


def test_a_joined_file_that_was_overwritten_differs(desk):
    desk.world.files.writer.delete(joined_path(desk))
    desk.append("dt=1", "overwriter")
    assert outcomes(desk.verify())["dt=1"] == "differs"


def test_after_a_cleanup_the_certificate_is_compared(desk):
    desk.cleanup()
    assert outcomes(desk.verify()) == {"dt=1": "verified", "dt=2": "verified"}
    desk.world.files.writer.delete(joined_path(desk))
    desk.append("dt=1", "overwriter")
    assert outcomes(desk.verify())["dt=1"] == "differs"
    desk.append("dt=1", "another", "and another")
    assert outcomes(desk.verify())["dt=1"] == "differs"
    overwrite(desk)
    assert outcomes(desk.verify())["dt=1"] == "replaced"


def overwrite(desk):
    desk.world.files.writer.overwrite(desk.live("dt=1"), {"all.parquet": DataFile(("more", "rows", "than", "before"))})


@pytest.mark.parametrize("level", ["count", "digest"])
@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("others", [1, 5])
def test_rows_that_went_with_their_joined_file_are_missed_whatever_rows_others_have(is_cut, level, others):
    """All of live may have as many rows as were joined, or more."""
    desk = a_desk()
    for nth in range(others):
        desk.world.add_file(desk.live(f"dt=1/row{nth}.parquet"), [f"row{nth}"], 100 << 20)
    desk.world.files.namespace.advance(3_600_000)
    desk.compact(where="dt = '1'")
    desk.world.files.namespace.advance(3_600_000)
    if is_cut:
        desk.cleanup()
    desk.world.files.writer.delete(desk.live(f"dt=1/{joined_name(desk)}"))
    desk.append("dt=1", "new")
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)) == (Exit.DIFFERENT, {"dt=1": "differs"})


@pytest.mark.parametrize("is_cut", [False, True])
def test_one_of_the_joined_files_of_a_run_that_is_gone_is_missed(is_cut):
    desk = sets_of()
    if is_cut:
        desk.cleanup()
    desk.world.files.writer.delete(desk.live(f"dt=1/{min(files_of(desk))}"))
    desk.append("dt=1", *(f"row{nth}" for nth in range(60)))
    assert outcomes(desk.verify()) == {"dt=1": "differs"}


def test_a_joined_file_is_missed_beside_one_that_was_cut_after_it_was_made(desk):
    """The cut gave that one a new time."""
    desk.append("dt=1", "a", "b")
    desk.compact(where="dt = '1'")
    second = desk.log().standing[-1].inside.file
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup()
    for name in (second, "large.parquet"):
        desk.world.files.writer.delete(desk.live(f"dt=1/{name}"))
    desk.append("dt=1", "new")
    assert outcomes(desk.verify())["dt=1"] == "differs"


@pytest.mark.parametrize("level", ["count", "digest"])
@pytest.mark.parametrize("is_copied", [False, True])
def test_a_joined_unit_that_was_overwritten_as_a_whole_has_nothing_to_compare(desk, is_copied, level):
    """In a copied cluster ids are counted from the beginning, while the log has the former ones."""
    overwrite(desk)
    if is_copied:
        desk.world.files.namespace.file(desk.live("dt=1/all.parquet")).id = 1
    result = desk.verify(level=level)
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DONE, "replaced")
    (why,) = (unit.why for unit in result.tables[0].units if unit.name == "dt=1")
    assert why.code is Code.NOTHING_LEFT_TO_COMPARE
    assert why.what.startswith("its backup is gone with the file of live that had it inside, and somebody replaced its files")


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_joined_unit_that_was_restored_from_a_snapshot_is_verified_by_its_certificate(desk, is_cut):
    if is_cut:
        desk.cleanup()
    restored = files_of(desk)
    for path, content in desk.world.files.contents(desk.live("dt=1")).items():
        desk.world.files.writer.delete(path)
        desk.world.files.writer.add(path, DataFile(content.rows), restored[names.base(path)][0])
    result = desk.verify()
    assert (result.code, outcomes(result)["dt=1"]) == (Exit.DONE, "verified")
    said = "its backup was discarded" if is_cut else "its backup is gone with the file of live that had it inside"
    assert result.tables[0].units[0].reason == f"{said}: compared with the run's certificate"


@pytest.mark.parametrize("below", ["files", "directory"])
def test_a_unit_is_verified_after_a_rollback_of_its_last_join_whose_backup_is_cut_off(below):
    """With the list of what the rollback took."""
    desk = a_desk(exchange=below)
    desk.compact(where="dt = '1'")
    desk.settings = replace(desk.settings, exchange="files")
    desk.append("dt=1", "a", "b", "c")
    desk.compact(where="dt = '1'")
    desk.rollback()
    desk.world.files.namespace.advance(3_600_000)
    desk.cleanup()
    for level in ("count", "digest", "rows"):
        (unit,) = desk.verify(level=level, where="dt = '1'").tables[0].units
        assert (unit.outcome.code, unit.of_run) == ("verified", desk.runs[0]), unit.reason


def test_old_files_inside_a_backup_that_somebody_removed_are_told_as_gone(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    (place,) = (effect.place for effect in desk.log().standing if effect.run == desk.runs[-1])
    desk.world.files.delete_tree(names.join(desk.control.top, place))
    for against in (None, desk.runs[0]):
        result = desk.verify(against, where="dt = '1'")
        assert (result.code, result.tables[0].units[0].why.code) == (Exit.DIFFERENT, Code.BACKUP_GONE)
    desk.cleanup()
    for against in (None, desk.runs[0]):
        assert outcomes(desk.verify(against, where="dt = '1'")) == {"dt=1": "verified"}


def test_joins_and_swaps_on_top_of_one_another_are_compared_link_by_link(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    assert outcomes(desk.verify(desk.runs[0])) == {"dt=1": "verified", "dt=2": "verified"}
    desk.settings = replace(desk.settings, exchange="files")
    desk.append("dt=1", "d", "e")
    desk.compact(where="dt = '1'")
    assert outcomes(desk.verify(desk.runs[0]))["dt=1"] == "verified"
    assert outcomes(desk.verify())["dt=1"] == "verified"
    desk.rollback(where="dt = '1'")
    assert outcomes(desk.verify(desk.runs[0]))["dt=1"] == "verified"


def test_files_that_were_there_before_two_joins_are_not_called_late(desk):
    desk.append("dt=1", "a", "b")
    desk.compact(where="dt = '1'")
    (unit, _) = desk.verify(desk.runs[0]).tables[0].units
    assert (unit.outcome.code, unit.late_files) == ("verified", ("a.parquet", "b.parquet"))


def test_a_record_of_a_backup_is_compared_across_joins():
    desk = a_desk()
    desk.backup()
    desk.compact()
    result = desk.verify(desk.runs[0])
    assert outcomes(result) == {"dt=1": "verified", "dt=2": "verified"}
    desk.append("dt=1", "late")
    assert [unit.late_files for unit in desk.verify(desk.runs[0]).tables[0].units] == [("late.parquet",), ()]


def test_a_set_of_files_for_each_block_is_joined_rolled_back_and_cut():
    """Several joins of one partition in one run."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=2": [1000] * 60})
    world.files.namespace.advance(3_600_000)
    desk = Desk(world, exchange="files", fewest_joined=2, backup_table=False, block_bytes=25_000)
    desk.compact()
    assert len(files_of(desk, "dt=2")) == 3
    assert [unit.outcome.code for unit in desk.verify().tables[0].units] == ["verified"]
    assert desk.verify().tables[0].units[0].files_before == 60
    assert {unit.outcome.code for unit in desk.rollback().tables[0].units} == {"rolled-back"}
    assert len(files_of(desk, "dt=2")) == 3
    assert {unit.outcome.code for unit in desk.rollback(desk.runs[-1]).tables[0].units} == {"rolled-back"}
    desk.cleanup()
    assert len(rows(desk, "dt=2")) == len(set(rows(desk, "dt=2"))) == 60
    assert desk.log().standing == ()


# ---- what such files count for


def test_old_files_inside_a_file_do_not_count_in_the_metastore(desk):
    lengths = {name: length for name, (length, _) in files_of(desk).items()}
    inside = next(effect.inside for effect in desk.log().effects if effect.partition == "dt=1")
    (partition,) = (one for one in desk.world.metastore.partitions(desk.world.table(desk.table)) if one.name == "dt=1")
    assert partition.parameters["totalSize"] == str(lengths["large.parquet"] + inside.copy_bytes)
    desk.append("dt=1", "a", "b")
    desk.compact()
    desk.rollback()
    (partition,) = (one for one in desk.world.metastore.partitions(desk.world.table(desk.table)) if one.name == "dt=1")
    sizes = sum(length for length, _ in files_of(desk).values())
    assert int(partition.parameters["totalSize"]) < sizes - inside.length + inside.copy_bytes


def test_old_files_inside_a_file_do_not_count_for_the_decision(desk):
    (unit,) = (unit for unit in desk.analyze().tables[0].observed.units if unit.name == "dt=2")
    inside = next(effect.inside for effect in desk.log().effects if effect.partition == "dt=2")
    assert (unit.sizes.total_bytes, dict(unit.lengths)) == (inside.copy_bytes, {inside.copy_bytes: 1})


def test_a_unit_that_was_written_to_a_moment_ago_is_left_though_its_joined_file_is_large_with_the_old_ones_inside():
    """Its writer may be about to delete what it has listed, and finds other files then."""
    desk = a_desk(min_quiet_ms=900_000, exchange="auto", read_by_llap=False)
    for name in "xyz":
        desk.world.add_file(f"{desk.live('dt=2')}/{name}.parquet", [name], 6 << 20)
    desk.world.add_file(f"{desk.live('dt=2')}/large.parquet", ["large"], 100 << 20)
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact())["dt=2"] == "swapped"
    desk.world.files.writer.delete(f"{desk.live('dt=2')}/large.parquet")
    desk.world.add_file(f"{desk.live('dt=2')}/new.parquet", ["new"])
    assert outcomes(desk.compact()).get("dt=2") == "recent"
    desk.world.files.namespace.advance(3_600_000)
    assert outcomes(desk.compact())["dt=2"] == "swapped"


@pytest.mark.parametrize("survived", range(8))
def test_an_overwriter_in_a_rollback_and_a_kill_leave_no_file_without_rows(desk, survived):
    armed = [True]

    def overwrite(what):
        if armed and "concat" in what and "/dt=1/part" in what:
            armed.clear()
            for path in list(desk.world.files.contents(desk.live("dt=1"))):
                # It listed when only the hidden file was there.
                if desk.runs[-1] not in path or "/.hivekeeper.tail" in path:
                    desk.world.files.writer.delete(path)
            desk.world.files.writer.add(f"{desk.live('dt=1')}/over.parquet", DataFile(("over",)), 777)
            desk.world.files.die_after(survived)

    desk.world.files.before_step = overwrite
    with suppress(Killed):
        desk.rollback(where="dt = '1'")
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()
    desk.recover()
    assert not armed
    assert {name: of_file for name, (_, of_file) in files_of(desk).items()} == {"over.parquet": ("over",)}


def test_a_join_has_no_gap(desk):
    assert {unit.gap_ms for unit in desk.log().runs[0].units} == {None}
    result = desk.rollback()
    assert {unit.gap_ms for unit in result.tables[0].units} == {None}
    assert f"rolled back 2 steps, run {desk.runs[-1]}" in "\n".join(command_text.render_rollback(result.tables[0], 80))


def test_history_says_which_file_has_the_old_ones_inside(desk):
    (table,) = desk.history(files_of=desk.runs[0]).tables
    said = "\n".join(history_text.render_history(table, 80))
    assert f"dt=1: old files inside {joined_path(desk).rpartition('/')[2]}" in said


def test_old_files_that_hold_other_rows_are_not_rolled_back(desk):
    before = files_of(desk)
    node = desk.world.files.namespace.file(joined_path(desk))
    strange = replace(node.content.before[2], rows=("strange",))
    node.content = replace(node.content, before=(*node.content.before[:2], strange, *node.content.before[3:]))
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "given-up", "dt=2": "rolled-back"}
    assert "do not hold the rows" in next(unit for unit in result.tables[0].units if unit.name == "dt=1").why.what
    assert files_of(desk) == before
    assert desk.run_directories() == []


class HeavyFooter(FakeRows):
    """The footer over all old files of dt=1 is too large for the memory of the driver."""

    def footers(self, format, sets, *more, **asked):
        found = super().footers(format, sets, *more, **asked)
        heavy = {key for key, files in sets.items() for file in files if file.path.endswith("unit=1/restored.parquet")}
        return {key: UnitFooters((), (("restored", "too large"),)) if key in heavy else one for key, one in found.items()}


def test_a_copy_of_old_files_whose_footer_cannot_be_read_costs_only_its_own_unit(desk):
    before = files_of(desk)
    desk.world.cluster = replace(desk.world.cluster, rows=HeavyFooter(desk.world.files))
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "given-up", "dt=2": "rolled-back"}
    assert next(unit for unit in result.tables[0].units if unit.name == "dt=1").why.what == "too large"
    assert files_of(desk) == before
    assert desk.run_directories() == []


@pytest.mark.parametrize("when", ["write_restored", "write_ends"])
def test_a_rollback_of_a_file_that_is_replaced_before_its_copy_is_ready_changes_nothing(desk, when):
    path, armed = joined_path(desk), [True]

    def replace_it(what):
        if armed and what.startswith(when) and "unit=1" in what:
            armed.clear()
            desk.world.files.writer.delete(path)
            desk.world.files.writer.add(path, DataFile(("new",)), 777)

    desk.world.files.before_step = replace_it
    assert outcomes(desk.rollback(where="dt = '1'"))["dt=1"] == "given-up"
    assert not armed
    assert rows(desk) == ["large", "new"]
    desk.world.files.before_step = None
    assert desk.recover().code is Exit.DONE
    assert desk.run_directories() == []


@pytest.mark.parametrize("when", ["write_restored", "write_ends", "rename_exact stage"])
def test_a_rollback_of_a_file_that_is_closed_meanwhile_shows_its_rows_to_nobody_else(desk, when):
    path, armed = joined_path(desk), [True]

    def close_it(what):
        if armed and what.startswith(when.split()[0]) and "unit=1" in what:
            armed.clear()
            node = desk.world.files.namespace.find(path)
            node.attributes = replace(node.attributes, file_mode=0o600)

    desk.world.files.before_step = close_it
    result = desk.rollback()
    assert not armed
    assert outcomes(result) == {"dt=1": "given-up", "dt=2": "rolled-back"}
    assert next(unit for unit in result.tables[0].units if unit.name == "dt=1").why.code is Code.CHANGED_MEANWHILE
    assert {name for name in files_of(desk) if desk.world.files.stat(f"{desk.live('dt=1')}/{name}").mode != 0o600} == {"large.parquet"}
    desk.world.files.before_step = None
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert rows(desk) == ALL


def of_etl(desk, acl=()):
    """Files that only etl, or who is in the ACL, may read, in a directory of somebody else's."""
    directory = desk.world.files.namespace.find(desk.live("dt=1"))
    directory.attributes = replace(directory.attributes, owner="mallory", mode=0o777)
    for node in directory.children.values():
        node.attributes = replace(node.attributes, owner="etl", file_mode=0o640 if acl else 0o600, file_acl=acl)


def fill(desk):
    """With files of so many rights that those of a joined one are not told."""
    for nth in range(120):
        desk.append("dt=1", f"a{nth}")
        node = desk.world.files.namespace.find(f"{desk.live('dt=1')}/a{nth}.parquet")
        node.attributes = replace(node.attributes, owner="mallory", file_mode=nth)


def who_may_read_old_rows(desk):
    (came,) = (name for name, (_, of_file) in files_of(desk).items() if of_file == tuple(SMALL))
    attributes = desk.world.files.namespace.find(f"{desk.live('dt=1')}/{came}").attributes
    return attributes.owner, attributes.file_mode, attributes.file_acl


def test_old_rows_do_not_come_back_for_the_owner_of_the_directory_who_could_not_read_them():
    desk = a_desk()
    of_etl(desk)
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    fill(desk)
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert who_may_read_old_rows(desk) == ("etl", 0o600, ())


def test_old_rows_do_not_come_back_for_a_group_that_only_another_file_is_open_to():
    desk, acl = a_desk(), ("user::rw-", "user:bob:r--", "group::---", "mask::r--", "other::---")
    of_etl(desk, acl)
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    desk.append("dt=1", "Another")
    node = desk.world.files.namespace.find(f"{desk.live('dt=1')}/Another.parquet")
    node.attributes = replace(node.attributes, owner="etl", file_mode=0o640)
    fill(desk)
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert who_may_read_old_rows(desk) == ("etl", 0o600, ())


def test_neither_a_joined_file_nor_old_rows_that_come_back_are_opened_to_another_group(caplog):
    desk = a_desk(owner="ignore")
    directory = desk.world.files.namespace.find(desk.live("dt=1"))
    for node in (directory, *directory.children.values()):
        node.attributes = replace(node.attributes, group="analyst", mode=0o750, file_mode=0o640)
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    joined = desk.world.files.namespace.find(joined_path(desk))
    assert (joined.attributes.group, joined.attributes.file_mode) == ("hive", 0o600)
    # An operator gives it the group that it could not get.
    joined.attributes = replace(joined.attributes, group="analyst", file_mode=0o640)
    caplog.clear()
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert who_may_read_old_rows(desk) == ("hive", 0o600, ())
    assert "unit=sales.events/dt=1 step=dress group=not-kept reason='the group analyst cannot be kept" in caplog.text


@pytest.mark.parametrize("is_same_file", [False, True])
def test_blocks_of_what_came_to_the_place_of_a_joined_file_are_not_kept(desk, is_same_file, monkeypatch):
    """Whoever may write there can make files of a million blocks, and the plan of a rollback is about all partitions."""
    path = joined_path(desk)
    if is_same_file:
        node = desk.world.files.namespace.find(path)
        node.joined = tuple(Block(9000 + nth, 1, 1) for nth in range(node.length - 1))
    else:
        replace_one(desk, path.rpartition("/")[2])
    around = []
    monkeypatch.setattr(rollback, "plan_undoing", lambda *given: around.append(given[-1]) or plan_undoing(*given))
    assert outcomes(desk.rollback())["dt=1"] == "refused"
    assert [place for place in around[0].blocks if "dt=1/" in place] == []
    assert len(around[0].blocks) == 1


@pytest.mark.parametrize("drop", [False, True])
def test_a_backup_goes_with_its_directory(desk, drop):
    desk.world.files.writer.delete(desk.live("dt=1"))
    if drop:
        drop_partition(desk)
    assert desk.cleanup().code is Exit.DONE
    assert desk.log().standing == ()
    assert desk.run_directories() == []


def test_a_join_and_a_swap_on_top_of_it_go_together(desk):
    """Either alone would keep the other for ever."""
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    assert desk.cleanup().code is Exit.DONE
    assert desk.log().standing == ()
    assert rows(desk) == sorted([*ALL, "a", "b", "c"])
    assert desk.run_directories() == []


def test_a_join_stays_with_a_swap_on_top_that_cannot_be_discarded(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    (swap,) = (effect for effect in desk.log().standing if effect.inside is None)
    late = desk.world.files.writer.open(f"{desk.control.top}/{swap.place}/late.parquet")
    assert desk.cleanup().code is Exit.PARTIAL
    assert {effect.run for effect in desk.log().standing if effect.partition == "dt=1"} == {desk.runs[0], desk.runs[1]}
    desk.world.files.writer.close(late)
    desk.world.files.writer.delete(f"{desk.control.top}/{swap.place}/late.parquet")
    assert outcomes(desk.rollback(desk.runs[1])) == {"dt=1": "rolled-back"}
    assert outcomes(desk.rollback(desk.runs[0], where="dt = '1'")) == {"dt=1": "rolled-back"}


def test_a_swap_can_be_redone_and_verified_after_a_file_that_it_took_was_cut(desk):
    desk.append("dt=1", "a", "b", "c")
    desk.backup(where="dt = '1'")
    desk.settings = replace(desk.settings, exchange="directory")
    desk.compact(where="dt = '1'")
    desk.rollback(desk.runs[-1])
    desk.pin(desk.runs[1])
    desk.pin(desk.runs[3])
    desk.cleanup()
    assert [effect.operation for effect in desk.log().standing if effect.partition == "dt=1"] == ["rollback"]
    assert outcomes(desk.verify(desk.runs[1])) == {"dt=1": "verified"}
    assert outcomes(desk.rollback(desk.runs[3], where="dt = '1'")) == {"dt=1": "rolled-back"}
    assert outcomes(desk.verify(desk.runs[1])) == {"dt=1": "verified"}
    assert rows(desk) == sorted([*ALL, "a", "b", "c"])


def test_a_file_that_was_replaced_before_a_join_differs_from_a_record_after_the_cut_too():
    desk = a_desk()
    desk.backup()
    desk.pin(desk.runs[0])
    replace_one(desk)
    desk.world.files.namespace.advance(3_600_000)
    node = desk.world.files.namespace.file(f"{desk.live('dt=1')}/part-00001.parquet")
    node.length = 1000
    desk.compact()
    assert outcomes(desk.verify(desk.runs[0]))["dt=1"] == "differs"
    desk.cleanup()
    assert outcomes(desk.verify(desk.runs[0]))["dt=1"] in ("differs", "replaced")


def test_a_rollback_of_joined_files_leaves_no_tombstones_of_theirs(desk):
    old = {f"dt=1/part-0000{nth}.parquet" for nth in range(3)}

    def tombstones():
        return store.read_files_at(desk.world.cluster, desk.control, desk.log().next_version - 1).tombstones.keys()

    assert old <= tombstones()
    desk.rollback()
    assert old.isdisjoint(tombstones())


def sets_of(world_files=60):
    """A partition in which a run joins three sets of files."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * world_files})
    world.files.namespace.advance(3_600_000)
    desk = Desk(world, exchange="files", fewest_joined=2, backup_table=False, block_bytes=25_000)
    desk.compact()
    world.files.namespace.advance(3_600_000)
    assert len(desk.log().standing) == 3
    return desk


def test_the_sets_of_one_run_are_one_version_of_a_unit():
    desk = sets_of()
    desk.append("dt=1", *(f"more{nth}" for nth in range(60)))
    desk.compact()
    assert len(desk.log().standing) == 6
    desk.cleanup(replace(EVERYTHING, keep_latest_versions=2))
    assert len(desk.log().standing) == 6
    desk.cleanup(replace(EVERYTHING, keep_latest_versions=1))
    assert {effect.run for effect in desk.log().standing} == {desk.runs[1]}


def test_what_is_left_of_the_sets_of_a_run_is_verified_with_the_rest_of_its_certificate():
    desk = sets_of()
    last = desk.log().standing[-1].inside.file
    at(desk, ["cut ", last], lambda: desk.world.files.fail_next("cut", NoPermission("denied")))
    desk.cleanup()
    assert len(desk.log().standing) == 1
    for against in (None, desk.runs[0]):
        (unit,) = desk.verify(against).tables[0].units
        assert (unit.outcome.code, unit.rows, unit.files_after) == ("verified", 60, 3)


@pytest.mark.parametrize(
    ("error", "kept"),
    [(NotPossible("open"), "backup-changed"), (NoPermission("denied"), "no-permission"), (SourceMissing("gone"), "call-failed")],
)
def test_a_file_that_cannot_be_cut_keeps_its_backup(desk, error, kept):
    desk.world.files.fail_next("cut", error)
    result = desk.cleanup()
    assert result.code is Exit.PARTIAL
    assert [why.code.code for backup in result.tables[0].backups for _, why in backup.kept_units] == [kept]
    assert rows(desk) == ALL


def test_a_joined_file_whose_owner_may_not_be_kept_costs_only_its_unit(desk, monkeypatch):
    node = desk.world.files.namespace.find(joined_path(desk))
    node.attributes = replace(node.attributes, owner="bob", file_mode=0o600)
    dress = desk.world.files.dress

    def refuse(wanted):
        if any("bob" in (one.owner, one.file_owner) for one in wanted.values()):
            raise NoPermission("not the superuser")
        dress(wanted)

    monkeypatch.setattr(desk.world.files, "dress", refuse)
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "given-up", "dt=2": "rolled-back"}
    assert next(unit for unit in result.tables[0].units if unit.name == "dt=1").why.code is Code.NO_PERMISSION


@pytest.mark.parametrize("since", [{"owner": "bob"}, {"group": "hr"}])
def test_a_joined_file_that_is_given_away_while_copies_are_made_is_left_as_it_is(desk, since):
    """To one who has the mode that it had."""
    path, armed = joined_path(desk), [True]

    def give_away(what):
        if armed and what.startswith("write_restored") and "unit=1" in what:
            armed.clear()
            node = desk.world.files.namespace.find(path)
            node.attributes = replace(node.attributes, **since)

    desk.world.files.before_step = give_away
    assert outcomes(desk.rollback()) == {"dt=1": "given-up", "dt=2": "rolled-back"}
