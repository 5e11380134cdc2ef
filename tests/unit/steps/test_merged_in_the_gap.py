"""What writers put at a unit's place in its gap, or in an outage, and is merged afterwards: how much, and beside what."""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.steps import arrivals
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import DataFile
from support.joined_desk import at
from support.late_directories import act_before_live_is_settled
from support.world import World

MOST = 6


def a_desk(*units):
    world = World()
    world.add_table(a_table(["dt"]), {name: [1000] * 3 for name in units})
    return Desk(world)


def prepare(desk, place, files):
    for nth in range(files):
        desk.world.add_file(f"{place}/x{nth}.parquet", [f"{place} {nth}"])


def count_renames(monkeypatch, words):
    """The renames of what has this in its path, whether they succeed or not."""
    calls, rename = [], FakeFiles.rename_exact

    def rename_and_count(self, source, target):
        if words in source:
            calls.append(source)
        return rename(self, source, target)

    monkeypatch.setattr(FakeFiles, "rename_exact", rename_and_count)
    return calls


def come_whenever_live_is_away(desk, places):
    """Somebody who renames directories to units' places as soon as these are away; `places` are taken in turn, by unit."""

    def act(what):
        for unit, waiting in places.items():
            if f" {desk.live(unit)}" in what and "/ready/" in what and waiting and desk.world.files.namespace.find(desk.live(unit)) is None:
                desk.world.files.writer.rename_into(waiting.pop(0), desk.live(unit))

    desk.world.files.before_step = act


def test_what_comes_to_many_units_in_their_gaps_is_merged_only_as_far_as_in_one(monkeypatch):
    """Whoever fills the gap of one unit up to the limit can fill those of a thousand: a call each, and nothing stops the command."""
    monkeypatch.setattr(arrivals, "MOST_LIFTED", MOST)
    units = [f"dt={number}" for number in (1, 2, 3)]
    desk = a_desk(*units)
    places = {}
    for unit in units:
        places[unit] = [f"{desk.live()}/.flood-{unit}"]
        prepare(desk, places[unit][0], 4)
    desk.world.files.namespace.advance(8 * 86_400_000)
    calls = count_renames(monkeypatch, "/recreated/")
    come_whenever_live_is_away(desk, places)
    desk.compact()
    assert not any(places.values()), "each came in its gap"
    assert len(calls) <= MOST


def test_what_comes_to_one_unit_again_and_again_in_its_gap_is_merged_only_as_far_as_once(monkeypatch):
    """As often as MOST_ASIDES, each time up to the limit; and each time with the same names, so that the nth costs n calls a file."""
    monkeypatch.setattr(arrivals, "MOST_LIFTED", MOST)
    desk = a_desk("dt=1")
    places = {"dt=1": [f"{desk.live()}/.flood{nth}" for nth in range(20)]}
    for place in places["dt=1"]:
        prepare(desk, place, 5)
    desk.world.files.namespace.advance(8 * 86_400_000)
    calls = count_renames(monkeypatch, "/recreated/")
    come_whenever_live_is_away(desk, places)
    desk.compact()
    assert not places["dt=1"], "all of them came in the gap"
    assert len(calls) <= 2 * MOST


@pytest.mark.parametrize("merged", [0, 1, 3])
def test_what_came_in_an_outage_is_not_merged_beside_the_files_of_an_overwriter_that_came_after_it(merged):
    """No attacker needed. A run is killed in its gap, and a writer adds files for hours, in the directory that it makes again. The recovery
    brings the new files in, and while it merges the others an INSERT OVERWRITE, which begins after live is there again, replaces all that
    it lists. Late files stay aside from then on (move_late); these were there before it, too.
    """
    desk = a_desk("dt=1")
    live = desk.live("dt=1")
    desk.kill_before([f"/ready/u00001 {live}"], desk.compact)
    for nth in range(5):
        desk.append("dt=1", f"came-in-the-outage-{nth}")
    seen = []

    def act(what):
        if what.startswith("rename_exact") and "/recreated/u00001.0/" in what.split()[1]:
            seen.append(what)
            if len(seen) == merged + 1:
                desk.world.overwrite(live, "other.parquet", ["other"], whole=False)

    desk.world.files.before_step = act
    result = desk.recover()
    desk.world.files.before_step = None
    rows = desk.world.rows_of(desk.table)
    assert len(seen) > merged
    assert "other" in rows
    # One file may slip in between a look and its rename, as a late one may.
    stale = [row for row in rows if row.startswith("came-in-the-outage")]
    assert len(stale) <= 1, (result.code, result.tables[0].recovered, stale)


def test_the_same_late_files_are_not_carried_over_once_in_each_unit(monkeypatch):
    """Somebody keeps many files, and renames them into each unit in turn just before it is exchanged: each unit is late by as many, and a
    run of a thousand units carries over a thousand times what there is.
    """
    late, units = 20, [f"dt={number}" for number in (1, 2, 3, 4)]
    desk = a_desk(*units)
    flood = [f"{desk.live()}/.flood"]
    prepare(desk, flood[0], late)
    desk.world.files.namespace.advance(8 * 86_400_000)
    writer, space, waiting = desk.world.files.writer, desk.world.files.namespace, list(units)

    def give_flood(what):
        if not waiting or not (
            what.startswith(("exchange", "rename_exact")) and "/retired/" in what and f"{desk.live(waiting[0])} " in what
        ):
            return
        live = desk.live(waiting.pop(0))
        for name in list(space.directory(flood[0]).children):
            writer.rename_into(f"{flood[0]}/{name}", live)
        writer.delete(flood[0])
        flood[0] = live

    def take_flood_back(what):
        """Between two units, the tenant takes back all that was carried over."""
        if (
            waiting
            and len(waiting) < len(units)
            and flood[0].startswith(desk.live("dt="))
            and "/ready/" not in what
            and "/retired/" in what
            and f"{desk.live(waiting[0])} " in what
        ):
            former = flood[0]
            writer.make_directory(f"{desk.live()}/.flood")
            for name in [one for one in list(space.directory(former).children) if one.startswith("x")]:
                writer.rename_into(f"{former}/{name}", f"{desk.live()}/.flood")
            flood[0] = f"{desk.live()}/.flood"

    def act(what):
        take_flood_back(what)
        give_flood(what)

    monkeypatch.setattr(arrivals, "MOST_LIFTED", late)
    carried = count_renames(monkeypatch, "/retired/u")
    desk.world.files.before_step = act
    result = desk.compact()
    assert not waiting and list(outcomes(result).values()) == ["swapped", "swapped", "misplaced", "swapped"]
    assert len(carried) <= 2 * late


def test_files_of_one_name_are_not_moved_up_by_as_many_calls_as_there_are_of_that_name(monkeypatch):
    """The limit counts files, each of which "costs two calls or one"; but the nth of one name is tried under n names."""
    desk = a_desk("dt=1")

    def come(desk):
        for nth in range(50):
            prepare(desk, f"{desk.live('dt=1')}/job{nth:02d}", 4)

    act_before_live_is_settled(desk, come, monkeypatch)
    entries = 50 + 50 * 4
    monkeypatch.setattr(arrivals, "MOST_LIFTED", entries)
    calls = count_renames(monkeypatch, "/job")
    desk.compact()
    assert 0 < len(calls) <= 3 * entries


def test_a_hidden_file_that_is_merged_stays_hidden_where_its_name_is_taken():
    """No attacker needed. A scheduler writes a marker `.done` into each partition, and a load in the gap writes another one: `-late1.done`
    is no hidden name, and readers take it for a data file (Hive and Spark: "not a Parquet file"), or show what its writer keeps hidden.
    """
    desk = a_desk("dt=1")
    live, writer = desk.live("dt=1"), desk.world.files.writer
    writer.add(f"{live}/.done", "", 0)
    desk.world.files.namespace.advance(8 * 86_400_000)
    before = {name for name in desk.world.files.namespace.find(live).children if not names.is_hidden(name)}

    def load():
        writer.add(f"{live}/loaded.parquet", DataFile(("loaded",)), 1000)
        writer.add(f"{live}/.done", "by job 17", 9)

    at(desk, [f"/ready/u00001 {live}"], load)
    desk.compact()
    children = desk.world.files.namespace.find(live).children
    assert before, "there were data files"
    assert "loaded.parquet" in children
    assert not [name for name in children if "done" in name and not names.is_hidden(name)]
