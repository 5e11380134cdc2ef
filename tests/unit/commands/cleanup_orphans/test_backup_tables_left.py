"""cleanup --orphans: a backup table of a table that is gone goes only if it is exactly as we make them, and shows nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from support.builders import a_partition, a_table, of_spark
from support.fakes.files import FakeFiles
from support.leftovers import HOME, before_first, clean, drop_and_mark, leftovers


def a_backup_table(**more):
    location = more.pop("location", f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/backup_table")
    made_as = more.pop("made_as", "__bkp_gone_20260101_020304")
    marks = names.backup_marks(f"sales.{made_as}", "sales.gone")
    parameters = {**marks, "external.table.purge": "false", **more.pop("parameters", {})}
    known = {"name": made_as, "kind": "EXTERNAL_TABLE", **more}
    return a_table(["dt"], location=location, parameters=parameters, create_time=50, **known)


def backup_table_of(desk, table, partitions=()):
    desk.world.catalog.add_table(table, partitions)
    (found,) = [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.BACKUP_TABLE]
    return found


def test_a_backup_table_that_shows_nothing_any_more_goes(desk):
    table = a_backup_table()
    partition = a_partition("dt=1", f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/retired/u00001")
    assert backup_table_of(desk, table, [partition]).state is OrphanState.REMOVED
    assert table.full_name not in desk.world.catalog.tables


def test_a_backup_table_with_partitions_on_many_servers_stays_and_they_are_not_looked_for(desk, monkeypatch):
    asked, qualify = [], FakeFiles.qualify
    monkeypatch.setattr(FakeFiles, "qualify", lambda self, path: asked.append(path) or qualify(self, path))
    partitions = [a_partition(f"dt={number}", f"hdfs://n{number}.mallory:8020/x") for number in range(100)]
    found = backup_table_of(desk, a_backup_table(), partitions)
    assert (found.state, "100 servers" in found.why) == (OrphanState.FOUND, True)
    assert not [path for path in asked if "mallory" in path]


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "MANAGED_TABLE"},
        {"parameters": {"external.table.purge": "true"}},
        {"parameters": {"TRANSLATED_TO_EXTERNAL": "TRUE"}},
        {"made_as": "mine"},
        {"made_as": "__bkp_gone_20260101_020305"},
        {"made_as": "mine", "name": "__bkp_gone_20260101_020304"},
        {"location": f"{HOME}/mine"},
        {"location": f"{HOME}/gone/.hivekeeper.doctor-x/runs/20260101t020304z-0000/backup_table"},
        {"location": f"{HOME}/gone/.hivekeeper/runs/20260101t020304z-0000/other"},
    ],
    ids=str,
)
def test_a_backup_table_that_is_not_exactly_as_we_make_them_stays(desk, more):
    table = a_backup_table(**more)
    assert backup_table_of(desk, table).state is OrphanState.FOUND
    assert table.full_name in desk.world.catalog.tables


@pytest.mark.parametrize("shows", ["itself", "a partition", "a partition at a pattern", "to spark"])
def test_a_backup_table_that_still_shows_something_stays(desk, shows):
    table = a_backup_table()
    place = table.location if shows == "itself" else f"{HOME}/rows/dt=1"
    desk.world.files.writer.make_directory(place)
    place = place.replace("1", "*") if shows == "a partition at a pattern" else place
    if shows == "to spark":
        table = replace(of_spark(table, place), location=table.location)
    found = backup_table_of(desk, table, [] if shows == "to spark" else [a_partition("dt=1", place)])
    assert (found.state, f"it still shows {place}" in found.why) == (OrphanState.FOUND, True)


@pytest.mark.parametrize("change", ["its table is back", "it is another table's"])
def test_a_backup_table_that_changes_after_the_first_look_stays(desk, top, change):
    drop_and_mark(desk)
    table = a_backup_table()
    desk.world.catalog.add_table(table)

    def act():
        if change == "its table is back":
            desk.world.catalog.add_table(a_table(["dt"], name="gone", location=f"{HOME}/gone", create_time=51))
        else:
            desk.world.catalog.put_table(replace(table, parameters={**table.parameters, names.BACKUP_OF: "sales.other"}))

    before_first(desk, ["hold ", top], act)
    (found,) = [one for one in leftovers(clean(desk)) if one.place == table.full_name]
    assert found.state is OrphanState.FOUND
    assert table.full_name in desk.world.catalog.tables


def test_a_backup_table_that_shows_a_directory_on_an_unknown_server_stays_and_that_is_not_called(desk):
    found = backup_table_of(desk, a_backup_table(), [a_partition("dt=1", "hdfs://elsewhere/dt=1")])
    assert (found.state, "it still shows hdfs://elsewhere/dt=1" in found.why) == (OrphanState.FOUND, True)
