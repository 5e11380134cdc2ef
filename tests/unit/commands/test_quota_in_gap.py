"""A quota of a directory between the table's and a unit's has room for the files that leave live, and not for those that come in."""

from __future__ import annotations

from collections import Counter

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.rows import DataFile
from support.quotas import limit, make_copies_longer
from support.world import World

UNIT, BESIDE = "region=eu/dt=1", "region=eu/dt=2"


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(("region", "dt"), create_time=5), {UNIT: [1000] * 3})
    return Desk(world, backup_table=False)


def in_gap(desk, act, incoming):
    """Once, when live has left and the new files are about to come in."""
    acts = [act]

    def before(what):
        if what.startswith("rename_exact") and f"/{incoming}/u00001 " in what and acts:
            acts.pop()()

    desk.world.files.before_step = before


def add(desk, unit, row, length):
    namespace = desk.world.files.namespace
    namespace.create(f"{desk.live(unit)}/{row}.parquet", DataFile((row,)), 0).length = length


def of_table(desk):
    return desk.world.rows_of("sales.events")


def test_where_the_new_files_have_no_room_the_old_ones_go_back_and_the_next_run_tries_again(desk):
    before = desk.world.picture()
    make_copies_longer(desk, 2)
    limit(desk, 2999)
    result = desk.compact()
    assert (result.code, outcomes(result)) == (Exit.PARTIAL, {UNIT: "put-back"})
    why = result.tables[0].units[0].why
    assert (why.code, why.what) == (Code.CALL_FAILED, f"the quota of {desk.live('region=eu')} is exceeded")
    assert {path: content for path, content in desk.world.picture().items() if path in before} == before
    limit(desk, 3000)
    assert outcomes(desk.compact()) == {UNIT: "swapped"}


def test_nor_does_a_recovery_keep_them_away(desk):
    rows = of_table(desk)
    make_copies_longer(desk, 2)
    desk.kill_before(["rename_exact", "/ready/u00001 "], desk.compact)
    limit(desk, 5999)
    assert not of_table(desk)
    result = desk.recover()
    assert (result.code, of_table(desk)) == (Exit.DONE, rows)
    assert desk.recover().code is Exit.DONE


def test_a_rollback_whose_old_files_have_no_room_keeps_its_backup(desk):
    rows = of_table(desk)
    make_copies_longer(desk, 1 / 2)
    desk.compact()
    compacted = desk.world.files.contents(desk.live(UNIT))
    limit(desk)
    assert outcomes(desk.rollback()) == {UNIT: "put-back"}
    assert desk.world.files.contents(desk.live(UNIT)) == compacted
    limit(desk, 1500)
    assert outcomes(desk.rollback()) == {UNIT: "rolled-back"}
    assert of_table(desk) == rows


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_what_a_writer_puts_in_lives_place_meanwhile_comes_with_the_old_files(desk, command, killed):
    rows = of_table(desk)
    make_copies_longer(desk, 2 if command == "compact" else 1 / 2)
    if command == "rollback":
        desk.compact()
    limit(desk, 10)
    incoming = "ready" if command == "compact" else "restoring"
    if killed:
        desk.kill_before(["rename_exact", f"/{incoming}/u00001 hdfs://nn/warehouse/sales/events/region"], getattr(desk, command))
        add(desk, UNIT, "new", 10)
        assert desk.recover().code is Exit.DONE
    else:
        in_gap(desk, lambda: add(desk, UNIT, "new", 10), incoming)
        assert outcomes(getattr(desk, command)()) == {UNIT: "put-back"}
    assert of_table(desk) == rows + Counter(["new"])


def test_where_another_writer_has_used_the_room_the_unit_is_away_until_there_is_some(desk):
    rows = of_table(desk)
    make_copies_longer(desk, 2)
    limit(desk)
    in_gap(desk, lambda: add(desk, BESIDE, "beside", 1), "ready")
    result = desk.compact()
    assert (result.code, result.tables[0].problem.code) == (Exit.INVESTIGATE, Code.RENAME_KEEPS_FAILING)
    desk.world.files.namespace.delete(desk.live(BESIDE))
    assert desk.recover().code is Exit.DONE
    assert of_table(desk) == rows
