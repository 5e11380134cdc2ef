"""cleanup --orphans: control directories that somebody has moved, made or named: nothing in them is believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup_orphans
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.names import ControlPaths
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.hive_statements import Hive
from support.leftovers import HOME, backups_in, build, clean, drop, drop_and_mark, leftovers, records, wait


def test_a_control_directory_of_another_table_that_was_moved_here_is_not_touched(desk):
    """Whoever may write to two tables' roots can move one's records; its table is still there."""
    drop(desk)
    Desk(desk.world, "sales.other").compact()
    home = f"{HOME}/fake/.hivekeeper"
    desk.world.files.writer.make_directory(f"{HOME}/fake")
    desk.world.files.writer.rename_into(f"{HOME}/other/.hivekeeper", home)
    before = {path for path in desk.world.picture() if path.startswith(home)}
    for _ in range(2):
        (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.place == home]
        assert (found.state, "sales.other was created in the same second" in found.why) == (OrphanState.FOUND, True)
        wait(desk, 30)
    assert {path for path in desk.world.picture() if path.startswith(home)} == before


def test_the_rules_are_those_of_the_table_that_the_records_are_about(monkeypatch):
    """Whoever may rename both, but not read them, has them exchanged for a moment: those of a table for which shorter rules are configured
    were looked at first.
    """
    desk = build("flat")
    world = desk.world
    world.add_table(a_table(name="tmp_mine", create_time=7), {"": [1000] * 3})
    mine = Desk(world, "sales.tmp_mine")
    mine.compact()
    tops = desk.control.top, mine.control.top
    held = backups_in(desk, tops[0])
    # As with `backup_table: false`.
    for name in [name for name in world.tables() if "__bkp_" in name or name == "sales.tmp_mine"]:
        world.catalog.drop_table(name)
    drop(desk)
    act = cleanup_orphans._clean_up_database

    def exchange():
        for source, target in ((tops[0], f"{HOME}/aside"), (tops[1], tops[0]), (f"{HOME}/aside", tops[1])):
            if world.files.namespace.find(source) is not None:
                world.files.namespace.rename(source, target)

    def act_exchanged(*arguments):
        exchange()
        found = act(*arguments)
        exchange()
        return found

    def settings_for(name):
        return Settings(min_age_ms=0) if name == "sales.tmp_mine" else Settings()

    monkeypatch.setattr(cleanup_orphans, "_clean_up_database", act_exchanged)
    for number in range(2):
        selected, run = Selection(databases=("sales",)), f"20260901t02030{number}z-0000"
        context = a_context(world.cluster, selected, run)
        cleanup_orphans.clean_up_orphans(replace(context, settings_for=settings_for))
        wait(desk, 1)
    assert held and backups_in(desk, tops[0]) == held


def test_records_of_somebody_else_are_named_and_nothing_in_them_is_believed(desk, top):
    drop(desk)
    node = desk.world.files.namespace.directory(names.join(top, "log"))
    node.attributes = replace(node.attributes, owner="mallory")
    before = desk.world.picture()
    for _ in range(2):
        result = clean(desk, min_age_ms=0)
        assert (result.code, records(result).state) == (Exit.DONE, OrphanState.FOUND)
        wait(desk, 30)
    assert desk.world.picture() == before


@pytest.mark.parametrize("way", ["owner", "mode"])
def test_a_mark_that_others_may_have_written_discards_nothing(desk, top, way):
    drop_and_mark(desk)
    node = desk.world.files.namespace.file(names.join(top, "_orphan.json"))
    node.attributes = replace(node.attributes, **({"owner": "mallory"} if way == "owner" else {"file_mode": 0o666}))
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.FOUND
    assert backups_in(desk, top) == held


def test_a_name_for_removed_records_proves_nothing(desk, top):
    """Whoever may write beside it can give a directory with backups this name."""
    drop(desk)
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    desk.world.files.namespace.rename(top, removed)
    held = len(backups_in(desk, removed))
    (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "it holds more than records" in found.why) == (OrphanState.FOUND, True)
    assert len(backups_in(desk, top)) == held > 0


def test_a_directory_with_that_name_that_holds_nothing_of_ours_stays(desk, top):
    """It belongs to the user of the runs, and nobody else may write to it."""
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    drop(desk)
    desk.world.add_file(f"{removed}/rows.parquet", ["rows"])
    for node in [desk.world.files.namespace.directory(removed), desk.world.files.namespace.file(f"{removed}/rows.parquet")]:
        node.attributes = replace(node.attributes, owner="hive", mode=0o700, file_mode=0o600)
    before = {path for path in desk.world.picture() if path.startswith(removed)}
    result = clean(desk)
    assert result.code is Exit.INVESTIGATE
    assert {path for path in desk.world.picture() if path.startswith(removed)} == before


@pytest.mark.parametrize("change", [{"owner": "mallory"}, {"owner": "hive", "mode": 0o777}], ids=["somebody else's", "open"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_directory_that_others_have_given_that_name_does_not_end_it(desk, top, change, dry_run):
    """Anybody may who may make names there."""
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    drop(desk)
    desk.world.add_file(f"{removed}/log/00000000000000000000.json", ["x"])
    node = desk.world.files.namespace.directory(removed)
    node.attributes = replace(node.attributes, **change)
    before = {path for path in desk.world.picture() if path.startswith(removed)}
    result = clean(desk, dry_run=dry_run)
    assert result.code is Exit.DONE
    (found,) = [one for one in leftovers(result) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "Nothing is discarded: " in found.why) == (OrphanState.FOUND, True)
    assert {path for path in desk.world.picture() if path.startswith(removed)} == before


def test_a_file_with_that_name_is_no_leftover(desk, top):
    removed = ControlPaths(top).removed("20260101t000000z-0000")
    desk.world.add_file(removed, ["x"])
    drop_and_mark(desk)
    assert not [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.REMOVED]
    assert desk.world.files.stat(removed)


def test_the_command_can_change_nothing_but_this_directory(desk, top, monkeypatch):
    seen = []
    original = cleanup_orphans.confine

    def confine(cluster, jail):
        seen.append(jail)
        return original(cluster, jail)

    monkeypatch.setattr(cleanup_orphans, "confine", confine)
    drop_and_mark(desk)
    clean(desk)
    jails = [jail for jail in seen if jail.places]
    assert {jail.table for jail in jails} == {"sales.events"}
    assert all(set(jail.places) <= {top, ControlPaths(top).removed(desk.runs[-1]), *jail.places[1:]} for jail in jails)
    assert all(place == top or "/.hivekeeper.removed-" in place for jail in jails for place in jail.places)


def test_the_records_of_a_table_elsewhere_do_not_go_as_an_interrupted_removal():
    """Whoever may rename them, but not read them, can give them that name beside a table of their own."""
    desk = build("flat")
    desk.world.add_table(a_table(["dt"], name="theirs", create_time=6), {"dt=1": [1000] * 3})
    other, removed = Desk(desk.world, "sales.theirs"), desk.control.removed("20260101t000000z-0000")
    other.compact()
    other.cleanup()
    desk.world.files.namespace.rename(other.control.top, removed)
    held = {path for path in desk.world.picture() if path.startswith(removed)}
    (found,) = [one for one in leftovers(clean(desk, min_age_ms=0)) if one.kind is OrphanKind.REMOVED]
    assert (found.state, "its log is about sales.theirs" in found.why) == (OrphanState.FOUND, True)
    assert held <= set(desk.world.picture())


def test_nor_do_those_of_a_table_that_is_renamed_while_all_tables_are_read(monkeypatch):
    desk = build("flat")
    world = desk.world
    world.add_table(a_table(["dt"], name="theirs", create_time=77), {"dt=1": [1000] * 3})
    other, removed = Desk(world, "sales.theirs"), desk.control.removed("20260101t000000z-0000")
    other.compact()
    other.cleanup()
    world.files.namespace.rename(other.control.top, removed)
    held = {path for path in world.picture() if path.startswith(removed)}
    world.catalog.databases.add("archive")
    names_of, done = world.metastore.table_names, []

    def read_and_rename(database):
        found = names_of(database)
        if database == "archive" and not done:
            done.extend(Hive(world).rename_table("sales.theirs", "archive.theirs"))
        return found

    monkeypatch.setattr(world.metastore, "table_names", read_and_rename)
    clean(desk, min_age_ms=0)
    assert done and held <= set(world.picture())
