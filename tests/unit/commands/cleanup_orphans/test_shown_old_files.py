"""cleanup --orphans: old files that a table or a partition shows, or may show, stay."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.plan.orphans import OrphanKind, OrphanState
from hivekeeper.reasons import Code
from support.builders import a_partition, a_table, of_spark
from support.fakes.files import FakeFiles
from support.hive_statements import Hive
from support.leftovers import HOME, backups_in, before_first, build, clean, drop_and_mark, leftovers, records, without_mark

INSIDE = ("backup", "beside", "in the root")


@pytest.mark.parametrize(("of_whom", "place"), [("", "around"), *product(("", "of spark"), INSIDE)])
def test_a_table_that_came_into_the_directory_since_keeps_all_of_it(desk, top, of_whom, place):
    backup = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    # The cached locations of tables do not have it yet.
    clean(desk, dry_run=True)
    location = {"backup": backup, "beside": names.join(top, "x"), "in the root": f"{HOME}/events/x", "around": HOME}[place]
    rescue = a_table(name="rescue", location=location, create_time=88)
    desk.world.catalog.add_table(of_spark(rescue, location) if of_whom else rescue, [])
    desk.world.clock.elapsed_ms += 61_000
    held = backups_in(desk, top)
    found = [one for one in leftovers(clean(desk)) if one.kind is OrphanKind.RECORDS]
    assert all(one.state is OrphanState.FOUND and "sales.rescue lies at" in one.why for one in found)
    assert backups_in(desk, top) == held


def test_old_files_that_a_partition_of_any_table_shows_stay(desk, top):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", names.join(top, effect.place))])
    result = clean(desk)
    kept = [name for one in result.tables[1].backups for name in one.kept_units or ()]
    assert any(why.code is Code.BACKUP_SHOWN and "fin.rescue/dt=1" in why.what for _, why in kept) or any(
        one.why.code is Code.BACKUP_SHOWN for one in result.tables[1].backups
    )
    assert [path for path in backups_in(desk, top) if effect.place in path]
    assert records(result).state in (OrphanState.KEPT, OrphanState.DISCARDED)


def test_a_partition_that_is_called_like_another_one_does_not_hide_what_that_one_shows(desk, top):
    """Hive 4 allows blanks, `=`, `/`, `*`, `.` and others in the names of tables (`MetaStoreUtils.SPECIAL_CHARACTERS_IN_TABLE_NAMES`)."""
    place = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    rescue = a_table(["dt", "hour"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1/hour=2", place)])
    evil = a_table(["hour"], name="rescue/dt=1", location="hdfs://nn/home/mallory/t", create_time=99)
    desk.world.catalog.add_table(replace(evil, database="fin"), [a_partition("hour=2", names.join(top, "log/x"))])
    clean(desk)
    assert [path for path in backups_in(desk, top) if path.startswith(place)]


@pytest.mark.parametrize("by", [[], ["dt"]], ids=["a table", "a partition"])
def test_what_a_table_shows_that_is_renamed_while_all_are_read_stays(desk, top, monkeypatch, by):
    """It was there long before, and is there after: only one reading of all tables, or of all partitions, has met neither name."""
    place = names.join(top, desk.log().standing[0].place)
    drop_and_mark(desk)
    world, done = desk.world, []
    rescue = a_table(by, name="rescue", location="hdfs://nn/elsewhere/rescue" if by else place, create_time=88)
    world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)] if by else [])
    names_of, partitions_of = world.metastore.table_names, world.metastore.partitions

    def rename(new):
        if not done:
            done.extend(Hive(world).rename_table("fin.rescue", new))

    def read_names(database):
        found = names_of(database)
        if database == "default" and not by:
            rename("default.rescued")
        return found

    def read_partitions(table):
        if table.full_name == "fin.rescue":
            rename("fin.rescued")
        return partitions_of(table)

    monkeypatch.setattr(world.metastore, "table_names", read_names)
    monkeypatch.setattr(world.metastore, "partitions", read_partitions)
    clean(desk)
    assert done and [path for path in backups_in(desk, top) if path.startswith(place)]


def test_old_files_in_which_partitions_on_many_servers_may_lie_by_their_paths_stay(desk, top):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    path = names.join(top, effect.place)[len(names.server_of(top)) :]
    partitions = [a_partition(f"dt={number}", f"hdfs://n{number}.mallory:8020{path}") for number in range(100)]
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), partitions)
    clean(desk)
    assert [file for file in backups_in(desk, top) if effect.place in file]


@pytest.mark.parametrize("server", ["hdfs://name-of-nn-that-is-not-found:8020", "webhdfs://gateway:14000"])
@pytest.mark.parametrize("who", ["a partition", "a table", "a table of spark"])
def test_old_files_that_somebody_shows_by_a_name_of_the_server_that_is_not_found_stay(desk, top, server, who):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    place = server + names.join(top, effect.place)[len(names.server_of(top)) :]
    rescue = a_table(["dt"] if who == "a partition" else [], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    rescue = {"a partition": rescue, "a table": replace(rescue, location=place), "a table of spark": of_spark(rescue, place)}[who]
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)] if rescue.partitioned else [])
    result = clean(desk)
    assert [path for path in backups_in(desk, top) if effect.place in path]
    assert records(result).state in (OrphanState.KEPT, OrphanState.DISCARDED)


def test_old_files_go_though_somebody_shows_others_of_that_path_on_a_server_that_is_known(desk, top, monkeypatch):
    effect = desk.log().standing[0]
    drop_and_mark(desk)
    is_foreign = FakeFiles.is_foreign
    monkeypatch.setattr(FakeFiles, "is_foreign", lambda self, place: not place.startswith("hdfs://away/") and is_foreign(self, place))
    place = "hdfs://away" + names.join(top, effect.place)[len(names.server_of(top)) :]
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    desk.world.catalog.add_table(replace(rescue, database="fin"), [a_partition("dt=1", place)])
    clean(desk)
    assert not [path for path in backups_in(desk, top) if effect.place in path]


@pytest.mark.parametrize("place", ["{top}/ru*/*/retired/*", "{top}*/runs/*/retired/*", "{beside}/*/runs/*/retired/*"])
def test_old_files_that_a_partition_at_a_pattern_may_show_stay(desk, top, place):
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/sales/rescue", create_time=88)
    desk.world.catalog.add_table(rescue, [a_partition("dt=1", place.format(top=top, beside=names.parent(top)))])
    held = backups_in(desk, top)
    assert records(clean(desk)).state is OrphanState.KEPT
    assert backups_in(desk, top) == held


def test_a_partition_of_another_database_at_a_pattern_around_all_keeps_nobodys_old_files(desk, top):
    drop_and_mark(desk)
    evil = replace(a_table(["dt"], name="evil", location="hdfs://nn/warehouse/fin/evil", create_time=88), database="fin")
    desk.world.catalog.add_table(evil, [a_partition("dt=1", "hdfs://nn/warehouse/*/*")])
    clean(desk)
    assert not backups_in(desk, top)


@pytest.mark.parametrize("how", ["a table", "a table of spark", "a table that spark has in another place there", "a partition"])
def test_old_files_that_somebody_makes_a_table_of_while_others_go_stay(desk, top, how):
    drop_and_mark(desk)
    rescued = backups_in(desk, top)[-1].rpartition("/")[0]

    def rescue(what):
        if what.startswith("delete_tree") and "/discarding/" in what:
            desk.world.files.before_step = None
            place = rescued if how == "a table" else "hdfs://nn/elsewhere/rescue"
            table = a_table(["dt"] if how == "a partition" else [], name="rescue", location=place, create_time=88)
            table = of_spark(table, rescued) if how == "a table of spark" else table
            if how == "a table that spark has in another place there":
                table = replace(of_spark(table, names.join(top, "rescued")), location=rescued)
            desk.world.catalog.add_table(table, [a_partition("dt=1", rescued)] if table.partitioned else [])
            # All partitions are read once an hour.
            desk.world.clock.elapsed_ms += 3_660_000 if how == "a partition" else 61_000

    desk.world.files.before_step = rescue
    result = clean(desk)
    assert (result.code, records(result).state) == (Exit.PARTIAL, OrphanState.DISCARDED)
    left = {path.rpartition("/")[0] for path in backups_in(desk, top)}
    # Where a table lies nothing goes any more, as before the first one.
    assert rescued in left and (how != "a partition" or left == {rescued})


def test_what_came_between_the_first_look_and_the_lock_is_seen(desk, top):
    drop_and_mark(desk)
    rescue = a_table(name="rescue", location=names.join(top, "x"), create_time=88)
    before_first(desk, ["hold ", top], lambda: desk.world.catalog.add_table(rescue, []))
    held = backups_in(desk, top)
    assert "sales.rescue lies at" in records(clean(desk)).why
    assert backups_in(desk, top) == held
    assert not desk.world.files.stat(names.join(top, "_orphan.json"))


def test_a_table_that_comes_while_backups_go_keeps_the_directory(desk, top):
    drop_and_mark(desk)
    rescue = a_table(name="rescue", location=names.join(top, "x"), create_time=88)
    before_first(desk, ["delete_tree", "/discarding/"], lambda: desk.world.catalog.add_table(rescue, []))
    result = clean(desk)
    assert records(result).state is OrphanState.DISCARDED
    whys = {why.what for one in result.tables[1].backups for _, why in one.kept_units}
    assert whys == {f"sales.events: sales.rescue lies at {rescue.location}"}
    assert desk.world.files.stat(names.join(top, "log")) and backups_in(desk, top)


def test_a_dry_run_does_not_promise_what_a_partition_shows(desk, top):
    effects = desk.log().standing
    drop_and_mark(desk)
    rescue = a_table(["dt"], name="rescue", location="hdfs://nn/warehouse/fin/rescue", create_time=88)
    shown = [a_partition(f"dt={number}", names.join(top, effect.place)) for number, effect in enumerate(effects)]
    desk.world.catalog.add_table(replace(rescue, database="fin"), shown)
    result = clean(desk, dry_run=True)
    assert (records(result).state, {one.state.code for one in result.tables[1].backups}) == (OrphanState.KEPT, {"kept"})


def test_a_database_inside_the_directory_keeps_it():
    desk = build("partitioned")
    drop_and_mark(desk)
    desk.world.catalog.databases.add("fin")
    desk.world.catalog.homes["fin"] = f"{HOME}/events/fin"
    before = desk.world.picture()
    assert "the directory of the database fin" in records(clean(desk)).why
    assert desk.world.picture() == without_mark(before)
