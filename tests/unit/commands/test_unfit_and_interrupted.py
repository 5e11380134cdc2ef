"""A killed run has left a partition in its gap, so that no reader finds its rows, and then the table became one that is refused: the run is
settled all the same, or the command does not end with 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import backup, compact_swap
from hivekeeper.model import Selection
from hivekeeper.ports import FilesUnavailable, NoPermission
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, desk_by
from support.late_directories import act_before_live_is_settled, nest
from support.world import World

MIB = 2**20
COMMANDS = {"compact-swap": compact_swap.compact_swap, "backup": backup.back_up}


def a_world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [MIB] * 3, "dt=2": [MIB] * 3})
    world.add_table(a_table(name="flat", location="hdfs://nn/warehouse/sales.db/flat"), {"": [MIB] * 3})
    world.add_table(a_table(["dt"], name="healthy", location="hdfs://nn/warehouse/sales.db/healthy"), {"dt=1": [200 * MIB]})
    return world


def killed(table="sales.events"):
    desk = Desk(a_world(), table)
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    assert missing(desk)
    return desk


@pytest.fixture
def desk():
    return killed()


def missing(desk):
    name, seen = desk.table.partition(".")[2], desk.world.rows_of(desk.table)
    return [row for row in desk.world.rows_anywhere() if row.startswith(f"{name}/") and row not in seen]


def change(desk, **changed):
    table = desk.world.catalog.tables[desk.table]
    changed = {"parameters": {**table.parameters, **changed.pop("parameters", {})}, **changed}
    desk.world.catalog.tables[desk.table] = replace(table, **changed)


def run_on_database(desk, command="compact-swap", where=None, **more):
    selected = Selection(databases=("sales",), where=where)
    return COMMANDS[command](a_context(desk.world.cluster, selected, desk._new_run(), desk.settings, **more))


def outcome_of(result, desk):
    (table,) = [one for one in result.tables if one.table == desk.table]
    return table


UNFIT = {
    "skip": ({"parameters": {"hivekeeper.skip": "true"}}, Code.SKIP_PROPERTY),
    "bucketed": ({"buckets": 4, "bucket_columns": ("id",)}, Code.BUCKETED),
    "sorted": ({"sort_columns": ("id",)}, Code.SORTED),
    "skipped": ({"parameters": {"skip.header.line.count": "1"}}, Code.SKIPPED_ROWS),
    "acid": ({"parameters": {"transactional": "true"}}, Code.TRANSACTIONAL),
    "iceberg": ({"parameters": {"table_type": "ICEBERG"}}, Code.OTHER_ENGINE),
}


@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.parametrize("how", sorted(UNFIT))
def test_the_run_is_settled_and_the_table_is_refused(desk, how, command):
    changed, code = UNFIT[how]
    change(desk, **changed)
    result = run_on_database(desk, command)
    table = outcome_of(result, desk)
    assert not missing(desk)
    assert (table.problem.code, [run for run, _ in table.recovered], result.code) == (code, [desk.runs[0]], Exit.DONE)


def test_it_is_settled_where_only_partitions_are_selected():
    desk = killed("sales.flat")
    table = outcome_of(run_on_database(desk, where="dt = '1'"), desk)
    assert (table.problem.code, len(table.recovered)) == (Code.NO_PARTITIONS, 1)
    assert not missing(desk)


def test_it_is_settled_where_the_configured_codec_cannot_be_written(desk):
    desk.settings = replace(desk.settings, compression="lzo")
    table = outcome_of(run_on_database(desk), desk)
    assert (table.problem.code, len(table.recovered)) == (Code.CODEC_NOT_WRITABLE, 1)
    assert not missing(desk)


def test_a_dry_run_changes_nothing(desk):
    change(desk, parameters={"hivekeeper.skip": "true"})
    before = desk.world.picture()
    run_on_database(desk, dry_run=True)
    assert desk.world.picture() == before


def refuse_lock(*_args):
    raise NoPermission("no")


@pytest.mark.parametrize("closed", ["unit", "lock"])
@pytest.mark.parametrize("skip", [False, True])
def test_a_run_that_a_missing_right_keeps_from_being_settled_is_not_passed_over(desk, monkeypatch, skip, closed):
    if skip:
        change(desk, parameters={"hivekeeper.skip": "true"})
    if closed == "unit":
        desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    else:
        monkeypatch.setattr(desk.world.files, "hold", refuse_lock)
    result = run_on_database(desk)
    assert (result.code, outcome_of(result, desk).problem.code) == (Exit.INVESTIGATE, Code.UNSETTLED)


@pytest.mark.parametrize("error, code", [(NoPermission, Code.OTHER_ENGINE), (FilesUnavailable, Code.FILE_SYSTEM_UNUSABLE)])
def test_a_table_that_may_not_be_looked_at_is_refused_as_it_is_but_not_if_its_server_does_not_answer(error, code, monkeypatch):
    desk = Desk(a_world())
    change(desk, parameters={"table_type": "ICEBERG"})
    look = desk.world.files.look

    def fail(places, *more):
        if any(place.startswith(desk.live()) for place in places):
            raise error("connection reset")
        return look(places, *more)

    monkeypatch.setattr(desk.world.files, "look", fail)
    assert outcome_of(run_on_database(desk), desk).problem.code is code


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_nor_is_one_refused_if_its_server_does_not_say_whether_a_unit_is_away(desk, command, monkeypatch):
    change(desk, parameters={"hivekeeper.skip": "true"})
    desk.world.files.namespace.unreadable.add(desk.live("dt=2"))
    look = desk.world.files.look

    def fail(places, *more):
        # The last question, after the run could not be settled.
        if all(place.endswith(("/retired", "/recreated")) for place in places) and more == (1 + len(places),):
            raise FilesUnavailable("connection reset")
        return look(places, *more)

    monkeypatch.setattr(desk.world.files, "look", fail)
    assert outcome_of(run_on_database(desk, command), desk).problem.code is Code.FILE_SYSTEM_UNUSABLE


def test_a_table_on_a_server_that_must_not_be_called_is_refused_as_it_is():
    desk = Desk(a_world())
    change(desk, parameters={"hivekeeper.skip": "true"}, location="hdfs://elsewhere.example.com/sales/events")
    assert outcome_of(run_on_database(desk), desk).problem.code is Code.SKIP_PROPERTY


def test_the_lock_is_not_taken_where_nothing_was_interrupted():
    desk = Desk(a_world())
    desk.compact()
    change(desk, parameters={"hivekeeper.skip": "true"})
    before, steps = desk.world.picture(), Counter()
    desk.world.files.before_step = lambda what: steps.update([what.partition(" ")[0]])
    assert outcome_of(run_on_database(desk, where="dt = '3'"), desk).problem.code is Code.SKIP_PROPERTY
    assert (desk.world.picture(), steps) == (before, Counter())


def test_a_table_that_its_owner_compacts_as_another_user_and_has_others_skip_is_passed_over():
    """All runs are finished; only the records belong to the owner's own user."""
    desk = Desk(a_world())
    desk.compact()
    for path in (desk.control.top, desk.control.log, desk.control.runs):
        node = desk.world.files.namespace.find(path)
        node.attributes = replace(node.attributes, owner="team")
    change(desk, parameters={"hivekeeper.skip": "true"})
    result = run_on_database(desk)
    table = outcome_of(result, desk)
    assert (table.problem.code, result.code) == (Code.SKIP_PROPERTY, Exit.DONE)


@pytest.mark.parametrize("words", [["/plan.json"], ["put ", "/stage/"]])
def test_a_run_that_died_before_it_touched_live_is_no_reason_for_7_each_night_where_a_right_is_missing(monkeypatch, words):
    """No unit left its place: the run's directory has no plan, or `retired` is empty. Then somebody took this user's right to
    write away.
    """
    desk = Desk(a_world())
    before = desk.world.rows_of(desk.table)
    desk.kill_before(words, desk.compact)
    assert desk.world.rows_of(desk.table) == before

    def refuse(*_args):
        raise NoPermission("no")

    monkeypatch.setattr(desk.world.files, "hold", refuse)
    result = run_on_database(desk)
    table = outcome_of(result, desk)
    assert (table.problem.code, result.code) == (Code.NO_PERMISSION, Exit.DONE)


@pytest.mark.parametrize("is_skipped", [False, True])
def test_its_recovery_moves_nothing_up_in_a_table_that_became_unfit(is_skipped, monkeypatch):
    """What lies in directories of another engine's table is no late committer's."""
    desk = desk_by(["dt"])
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    if is_skipped:
        desk.world.set_property(desk.table, **{"hivekeeper.skip": "true"})
    act_before_live_is_settled(desk, nest, monkeypatch)
    desk.recover()
    found = [path for path in desk.world.files.contents(desk.live("dt=1")) if path.endswith("/late.parquet")]
    assert found == [desk.live("dt=1/attempt/late.parquet" if is_skipped else "dt=1/late.parquet")]
