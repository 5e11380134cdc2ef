"""What a joined file took, by its blocks; the rules of the exchange by concat, each with what happens without it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.config.settings import RunSettings
from hivekeeper.model import Block
from hivekeeper.ports import NeverStops
from hivekeeper.steps.concat_exchange import find_edges
from hivekeeper.stop_conditions import LOOK_EVERY_MS, Watch
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

HEAD, TAIL = (Block(1, 1, 10), Block(2, 1, 5)), (Block(9, 1, 3),)
ONE, TWO, THREE = (Block(11, 1, 100),), (Block(21, 1, 100), Block(22, 1, 50)), (Block(31, 1, 70),)
STRANGE, STRANGER = Block(41, 1, 7), Block(42, 1, 8)


def edges(*middle):
    return find_edges((*HEAD, *middle, *TAIL), HEAD, [ONE, TWO, THREE], TAIL)


def test_the_edges_of_planned_files_are_sure():
    assert edges(*ONE, *TWO, *THREE) == {15: True, 115: True, 265: True, 335: True}


@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        ((STRANGE, *TWO, *THREE), {15: True, 22: True, 172: True, 242: True}),
        ((*ONE, STRANGE, *THREE), {15: True, 115: True, 122: True, 192: True}),
        ((*ONE, *TWO, STRANGE), {15: True, 115: True, 265: True, 272: True}),
        ((STRANGE, STRANGER, *THREE), {15: True, 22: False, 30: True, 100: True}),
        ((STRANGE, STRANGER), {15: True, 22: False, 30: True}),
        # Written to again: the whole file is another one.
        ((*ONE, TWO[0], Block(22, 2, 60), *THREE), {15: True, 115: True, 215: False, 275: True, 345: True}),
        # Not in its place.
        ((*THREE, *TWO, *ONE), {15: True, 85: True, 185: False, 235: False, 335: True}),
    ],
)
def test_where_another_file_lies_only_its_outer_edges_are_sure(middle, expected):
    assert edges(*middle) == expected


# ---- whole runs


@pytest.fixture
def desk():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 4})
    world.add_file("hdfs://nn/warehouse/sales/events/dt=1/large.parquet", ["large"], 100 << 20)
    world.files.namespace.advance(3_600_000)
    return Desk(world, exchange="files", fewest_joined=2, backup_table=False)


def rows_of(desk, unit):
    """Rows by file of live."""
    contents = desk.world.files.contents(desk.live(unit))
    return {names.base(path): content.rows for path, content in contents.items()}


def rows(desk, unit="dt=1"):
    return sorted(row for of_file in rows_of(desk, unit).values() for row in of_file)


ALL = ["events/dt=1/0", "events/dt=1/1", "events/dt=1/2", "large"]


def test_small_files_become_one_and_the_others_stay(desk):
    large = desk.world.files.stat(f"{desk.live('dt=1')}/large.parquet")
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "swapped"}
    (joined,) = rows_of(desk, "dt=1").keys() - {"large.parquet"}
    assert rows_of(desk, "dt=1")[joined] == tuple(ALL[:3])
    assert names.is_joined_name(joined, [f"part-0000{n}.parquet" for n in range(3)], desk.runs[0], 2)
    assert desk.world.files.stat(f"{desk.live('dt=1')}/large.parquet") == large
    assert len(rows_of(desk, "dt=2")) == 1
    assert desk.run_directories() == []


def test_a_run_that_stalls_after_the_new_file_has_appeared_takes_it_away(desk):
    desk.world.clock.slowness_ms = 60
    assert set(outcomes(desk.compact()).values()) == {"put-back"}
    assert {name: found for name, found in rows_of(desk, "dt=1").items() if not found} == {}
    assert rows(desk) == ALL
    assert desk.run_directories() == []


def at(desk, words, act):
    """Act once, just before the first step of a run with all these words."""
    waiting = [act]

    def watch(what):
        if waiting and all(word in what for word in words):
            waiting.pop()()

    desk.world.files.before_step = watch


def replace_one(desk, number=1):
    path = f"{desk.live('dt=1')}/part-0000{number}.parquet"
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, DataFile(("new",)), 777)


@pytest.mark.parametrize("numbers", [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_files_that_replaced_joined_ones_since_the_check_get_their_own_back(desk, numbers):
    at(desk, ["concat", "/dt=1/part"], lambda: [replace_one(desk, number) for number in numbers])
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert rows_of(desk, "dt=1") == {
        "large.parquet": ("large",),
        **{f"part-0000{n}.parquet": ("new",) if n in numbers else (ALL[n],) for n in range(3)},
    }
    assert desk.run_directories() == []
    # With the rights of the others, not those of a copy that nobody may see yet.
    entries = desk.world.files.look([desk.live("dt=1")])[desk.live("dt=1")].entries
    assert len({(entry.mode, entry.owner, entry.group) for entry in entries}) == 1


def test_a_name_that_is_taken_again_by_then_is_left(desk):
    def replace_and_add():
        replace_one(desk)
        at(desk, ["rename_exact", "/copy1", "/dt=1/part-00001"], lambda: desk.append("dt=1", "part-00001"))

    at(desk, ["concat", "/dt=1/part"], replace_and_add)
    assert outcomes(desk.compact())["dt=1"] == "put-back"
    assert rows_of(desk, "dt=1")["part-00001.parquet"] == ("part-00001",)
    assert rows_of(desk, "dt=1")["part-00001-late1.parquet"] == ("new",)


def test_a_file_that_is_gone_ends_the_join_with_live_as_it_was(desk):
    at(desk, ["concat", "/dt=1/part"], lambda: desk.world.files.writer.delete(f"{desk.live('dt=1')}/part-00001.parquet"))
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == [row for row in ALL if row != "events/dt=1/1"]


def test_a_tail_that_somebody_deleted_ends_the_join(desk):
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"
    at(desk, ["concat", "/dt=1/part"], lambda: desk.world.files.writer.delete(tail))
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == ALL
    assert all(found for found in rows_of(desk, "dt=1").values())


def test_a_strange_file_under_the_name_of_a_joined_one_is_left(desk):
    joined = f"{desk.live('dt=1')}/part-00001-20260101t020000z-0000-2.parquet"
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"

    def put_another():
        length = desk.world.files.stat(joined).length
        desk.world.files.writer.delete(joined)
        desk.world.files.writer.delete(tail)
        desk.world.files.writer.add(joined, DataFile(("strange",)), length)

    at(desk, ["concat", "/dt=1/part"], put_another)
    assert outcomes(desk.compact())["dt=1"] == "not-swapped"
    assert rows(desk) == sorted([*ALL, "strange"])


def test_a_tail_that_somebody_deleted_in_an_outage_was_not_joined(desk):
    tail = f"{desk.live('dt=1')}/{names.join_tail('20260101t020000z-0000', 2)}"
    desk.kill_before(["rename_exact", "/ready/u00002/part"], desk.compact)
    desk.world.files.writer.delete(tail)
    assert desk.recover().code is Exit.DONE
    assert [effect.partition for effect in desk.log().effects] == ["dt=2"]
    assert rows(desk) == ALL
    assert desk.run_directories() == []


def test_a_strange_file_that_comes_to_the_name_during_a_put_back_is_left(desk):
    joined = f"{desk.live('dt=1')}/part-00001-20260101t020000z-0000-2.parquet"

    def die_in_the_middle():
        replace_one(desk)
        at(desk, ["rename_exact", "/copy1"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], die_in_the_middle)
    with suppress(Killed):
        desk.compact()
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()
    desk.world.files.writer.add(joined, DataFile(("strange",)), 5)
    assert desk.recover().code is Exit.DONE
    assert rows(desk) == sorted([ALL[0], "new", ALL[2], "large", "strange"])


def test_a_joined_file_that_somebody_writes_to_is_left_and_known_as_overwritten(desk):
    joined = f"{desk.live('dt=1')}/part-00001-20260101t020000z-0000-2.parquet"

    def write():
        node = desk.world.files.writer.open(joined)
        node.length += 7
        desk.world.files.writer.close(node)

    desk.kill_before(["entry.json"], desk.compact)
    write()
    desk.recover()
    assert {unit.partition: unit.outcome.code for unit in desk.log().runs[-1].units} == {"dt=1": "overwritten", "dt=2": "swapped"}
    assert rows(desk) == ALL


def test_what_an_overwriter_deletes_during_a_put_back_stays_deleted(desk):
    def overwrite():
        for path in desk.world.files.contents(desk.live("dt=1")):
            desk.world.files.writer.delete(path)
        desk.append("dt=1", "overwriter")

    def replace_then_overwrite():
        replace_one(desk)
        at(desk, ["rename_exact", "/taken/u00002.file"], overwrite)

    at(desk, ["concat", "/dt=1/part"], replace_then_overwrite)
    desk.compact()
    assert rows(desk) == ["overwriter"]


def test_a_directory_that_is_gone_during_a_put_back_stays_gone(desk):
    def replace_then_drop():
        replace_one(desk)
        at(desk, ["rename_exact", "/copy1"], lambda: desk.world.files.writer.delete(desk.live("dt=1")))

    at(desk, ["concat", "/dt=1/part"], replace_then_drop)
    desk.compact()
    desk.world.files.before_step = None
    assert desk.recover().code is Exit.DONE
    assert desk.world.files.stat(desk.live("dt=1")) is None
    assert desk.run_directories() == []


def test_more_copies_on_disk_are_not_lost(desk, monkeypatch):
    from support.fakes import files

    def info(path, node, given=files.info):
        return given(path, node)._replace(replication=5 if path.endswith("part-00000.parquet") and "stage" not in path else 3)

    monkeypatch.setattr(files, "info", info)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": "failed", "dt=2": "failed"}
    assert "5 copies" in result.tables[0].units[0].why.what
    assert rows(desk) == ALL


@pytest.mark.parametrize(("spoilt", "outcome"), [("rows in the new file", "failed"), ("other rows in its tail", "put-back")])
def test_ends_that_are_not_as_planned_are_not_used(desk, spoilt, outcome, monkeypatch):
    def write_ends(self, _format, file, without_rows, own, _alone):
        content = self._read(file)
        first, last = (content, content) if "new file" in spoilt else (DataFile((), content.form), DataFile(("x",), content.form))
        self._put(without_rows, first, 10)
        self._put(own, last, 20)

    monkeypatch.setattr(type(desk.world.rows), "write_ends", write_ends)
    assert set(outcomes(desk.compact()).values()) == {outcome}
    assert rows(desk) == ALL
    assert len(rows_of(desk, "dt=1")) == 4


def steps_of(desk):
    before = desk.world.files.steps
    desk.compact()
    return desk.world.files.steps - before


def fresh():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 4})
    return Desk(world, exchange="files", fewest_joined=2, backup_table=False)


STEPS = steps_of(fresh())
STOP = "hdfs://nn/ops/stop"


@pytest.mark.parametrize("more", range(14))
def test_a_run_that_leaves_its_units_and_is_killed_then_is_known_to_have_joined_none(more):
    desk = fresh()
    world = desk.world
    world.cluster = replace(world.cluster, stopping=Watch(world.cluster, RunSettings(stop_file=STOP)))

    def stop():
        world.files.writer.add(STOP, "")
        world.clock.elapsed_ms += LOOK_EVERY_MS
        world.files.die_after(more)

    at(desk, ["rename_exact", "certificates-1.jsonl"], stop)
    with suppress(Killed):
        desk.compact()
    world.files.before_step = None
    world.files.revive()
    world.files.expire_locks()
    world.files.writer.delete(STOP)
    world.cluster = replace(world.cluster, stopping=NeverStops())
    assert desk.recover().code is Exit.DONE
    recorded = desk.log().runs
    assert {unit.outcome.code for run in recorded for unit in run.units} <= {"left", "not-swapped"}
    assert [effect for run in recorded for effect in run.effects] == []
    assert rows(desk) == ALL[:3]
    assert desk.run_directories() == []


@pytest.mark.parametrize("interrupted", [False, True], ids=["undisturbed", "with a file replaced"])
@pytest.mark.parametrize("step", range(STEPS))
def test_a_run_that_is_killed_anywhere_is_settled_by_the_next(step, interrupted):
    desk = fresh()
    if interrupted:
        at(desk, ["concat", "/dt=1/part"], lambda: replace_one(desk))
    desk.world.files.die_after(step)
    with suppress(Killed):
        desk.compact()
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()
    assert desk.recover().code is Exit.DONE
    expected = ALL[:3] if "new" not in rows(desk) else [ALL[0], ALL[2], "new"]
    assert rows(desk) == sorted(expected)
    assert rows(desk, "dt=2") == [f"events/dt=2/{n}" for n in range(4)]
    assert all(found for unit in ("dt=1", "dt=2") for found in rows_of(desk, unit).values())
    assert desk.run_directories() == []
    joined = [unit for unit in ("dt=1", "dt=2") if len(rows_of(desk, unit)) == 1]
    assert sorted(effect.partition for effect in desk.log().effects) == joined
    assert {unit.outcome.code for run in desk.log().runs for unit in run.units} <= {"swapped", "not-swapped", "put-back", "given-up"}
    desk.recover()
    assert desk.compact().code is Exit.DONE
    assert rows(desk) == sorted(expected)
