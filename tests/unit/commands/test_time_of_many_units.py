"""What a command does once for each unit of a table takes a time that grows with their number, not with its square: others wait."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.model import StageUnit
from hivekeeper.plan import capacity, compaction, fidelity, sizing
from hivekeeper.ports import MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import finish, places
from hivekeeper.steps.table_lock import AT_ONCE_S, HIVE_LOCK_WAIT_S
from hivekeeper.steps.whereabouts import MOST_AGE_MS
from support.builders import FORM, a_partition, a_table
from support.desk import Desk, outcomes
from support.fakes import rows
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.fakes.rows import FakeRows
from support.world import World

UNITS = 60


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_forms_of_all_units_are_not_counted_for_each_of_them(monkeypatch, dry_run):
    """A hundred thousand partitions took more than an hour between the last exchange and the log entry, with the table locked; where
    units have many forms, or Bloom filters of many columns, a few thousand did.
    """
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={number}": [1000] * 2 for number in range(UNITS)})
    calls, forms = [], StageUnit.forms.fget

    def count(unit):
        calls.append(unit.number)
        return forms(unit)

    monkeypatch.setattr(StageUnit, "forms", property(count))
    result = Desk(world).compact(dry_run=dry_run)
    assert result.code is Exit.DONE
    assert len(calls) <= 3 * UNITS, f"{len(calls)} times for {UNITS} units"


@pytest.mark.parametrize("many", [20, 80])
def test_units_for_which_there_is_no_room_are_not_looked_at_again_for_each_one_that_is_unfit(monkeypatch, many):
    """With max_units, footers are read until so many units are fit. A hundred thousand partitions that are too large for what is left of
    max_backup_objects, before as many with files that cannot be read, were compared ten thousand million times.
    """
    world = World()
    world.add_table(a_table(["dt"]), {f"dt=large{number}": [1000] * 9 for number in range(many)})
    desk = Desk(world, max_units=1, max_backup_objects=8)
    for number in range(many):
        world.make_partition(desk.table, f"dt=unfit{number}")
        for file in "ab":
            world.add_file(f"{desk.live(f'dt=unfit{number}')}/{file}.parquet", ["x"], form=replace(FORM, undecodable=("codec lzo",)))
    world.files.namespace.advance(3_600_000)
    calls, directory_objects = [], sizing.directory_objects

    def count(lengths, block_bytes):
        calls.append(block_bytes)
        return directory_objects(lengths, block_bytes)

    monkeypatch.setattr(capacity.sizing, "directory_objects", count)
    (table,) = desk.compact().tables
    assert len([unit for unit in table.units if unit.outcome is Outcome.REFUSED]) == many
    assert len(calls) <= 20 * many, f"{len(calls)} times for {2 * many} units"


def make_many(parameters=None, units=UNITS, **settings):
    world = World()
    names = [f"dt={number:03d}" for number in range(units)]
    world.add_table(a_table(["dt"], create_time=5, parameters=parameters or {}), {name: [1000] * 3 for name in names})
    world.files.namespace.advance(3_600_000)
    return Desk(world, backup_table=False, **settings), names


def set_attributes(desk, place, **changed):
    node = desk.world.files.namespace.directory(place)
    node.attributes = replace(node.attributes, **changed)


def count_jobs(monkeypatch):
    jobs, write = [], FakeRows.write_stage

    def count(self, batch):
        jobs.append(len(batch.units))
        return write(self, batch)

    monkeypatch.setattr(FakeRows, "write_stage", count)
    return jobs


@pytest.mark.parametrize("own", ["nothing", "xattrs", "acl", "mode", "group"])
def test_partitions_that_have_a_mark_each_of_their_own_are_written_by_one_job(monkeypatch, own):
    """Each had a job, and a wait for Hive's lock: a hundred thousand took six days."""
    desk, names = make_many()
    for n, name in enumerate(names):
        marks = {"xattrs": (("user.n", str(n)),), "acl": (f"user:u{n}:r-x",), "mode": 0o700 + n, "group": f"g{n}"}
        set_attributes(desk, desk.live(name), **{key: value for key, value in marks.items() if key == own})
    before = {name: desk.world.files.attributes([desk.live(name)])[desk.live(name)] for name in names}
    jobs = count_jobs(monkeypatch)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert jobs == [UNITS]
    assert {name: desk.world.files.attributes([desk.live(name)])[desk.live(name)] for name in names} == before


def test_copies_are_for_the_runs_user_alone_until_they_have_the_rights_of_their_own_files(monkeypatch):
    """Those of one batch may have several rights: the directory that they are written in has none of them."""
    desk, names = make_many()
    for name in names:
        set_attributes(desk, desk.live(name), mode=0o777, acl=("default:user:eve:rwx",), storage_policy="COLD")
    write, seen = FakeRows.write_stage, []

    def look(self, batch):
        target = desk.world.files.exact(batch.target)
        seen.append(desk.world.files.attributes([target])[target])
        return write(self, batch)

    monkeypatch.setattr(FakeRows, "write_stage", look)
    desk.compact()
    assert [(one.mode, one.acl, one.storage_policy) for one in seen] == [(0o700, (), "COLD")]


def test_partitions_of_forms_of_their_own_are_left_for_later_runs_and_told_of(monkeypatch):
    """With `sort_columns` each form takes a job of its own."""
    monkeypatch.setattr(compaction, "MOST_PART_BATCHES", 4)
    desk, _ = make_many(units=0, sort_columns=("id",))
    for number in range(6):
        form = replace(FORM, schema=f"message schema {{\n  optional int64 id;\n  optional int64 c{number};\n}}")
        desk.world.make_partition(desk.table, f"dt={number}")
        for file in "ab":
            desk.world.add_file(f"{desk.live(f'dt={number}')}/{file}.parquet", ["x"], form=form)
    desk.world.files.namespace.advance(3_600_000)
    jobs = count_jobs(monkeypatch)
    first = desk.compact()
    assert (sorted(outcomes(first).values()), first.code) == (["left"] * 2 + ["swapped"] * 4, Exit.PARTIAL)
    assert {unit.why.code for unit in first.tables[0].units if unit.outcome is Outcome.LEFT} == {Code.BEYOND_ONE_RUN}
    desk.world.files.namespace.advance(3_600_000)
    second = desk.compact()
    assert (sorted(outcomes(second).values()), second.code) == (["swapped"] * 2, Exit.DONE)
    assert jobs == [1] * 6


@pytest.mark.parametrize("is_alike", [True, False])
def test_partitions_beyond_the_length_of_rights_that_a_plan_holds_are_left_for_later_runs(monkeypatch, is_alike):
    monkeypatch.setattr(compaction, "MOST_HELD", 5000)
    monkeypatch.setattr("hivekeeper.plan.analysis.UNITS_AT_ONCE", 10)
    desk, names = make_many(units=30)
    for number, name in enumerate(names):
        set_attributes(desk, desk.live(name), xattrs=(("user.n", f"{0 if is_alike else number:0400d}"),))
    found = sorted(outcomes(desk.compact()).values())
    assert found == (["swapped"] * 30 if is_alike else ["left"] * 10 + ["swapped"] * 20)
    desk.world.files.namespace.advance(3_600_000)
    assert sorted(outcomes(desk.compact()).values()) == ([] if is_alike else ["swapped"] * 10)


def test_partitions_that_need_nothing_and_have_such_long_rights_do_not_make_an_error_of_the_others(monkeypatch):
    monkeypatch.setattr(compaction, "MOST_HELD", 2000)
    monkeypatch.setattr("hivekeeper.plan.analysis.UNITS_AT_ONCE", 10)
    desk, _ = make_many(units=0)
    for number in range(30):
        desk.world.make_partition(desk.table, f"dt={number:02d}")
        for file in "abcd" if number < 10 else "ab":
            desk.world.add_file(f"{desk.live(f'dt={number:02d}')}/{file}.parquet", ["x"] if number >= 10 else [])
        set_attributes(desk, desk.live(f"dt={number:02d}"), xattrs=(("user.n", f"{number:0400d}"),))
    desk.world.files.namespace.advance(3_600_000)
    result = desk.compact()
    assert (sorted(outcomes(result).values()), result.code) == (["empty"] * 10 + ["left"] * 10 + ["swapped"] * 10, Exit.PARTIAL)


def test_partitions_beyond_the_columns_that_a_plan_holds_are_left_for_later_runs(monkeypatch):
    """Whatever a footer says of a column was kept for each unit, fit or not, until all were planned: some ten megabytes of files made a
    driver so large that YARN killed it.
    """
    monkeypatch.setattr(compaction, "MOST_HELD", len(rows.FORM.schema) + 8 * 15)
    monkeypatch.setattr("hivekeeper.plan.analysis.UNITS_AT_ONCE", 10)
    desk, _ = make_many(units=30)
    for number in range(30):
        desk.world.make_partition(desk.table, f"dt=unfit{number}")
        for file in "abcd":
            desk.world.add_file(f"{desk.live(f'dt=unfit{number}')}/{file}.parquet", ["x"], form=replace(FORM, undecodable=("codec lzo",)))
    desk.world.files.namespace.advance(3_600_000)
    found = Counter(outcomes(desk.compact()).values())
    assert found == {"refused": 30, "left": 10, "swapped": 20}
    desk.world.files.namespace.advance(3_600_000)
    assert Counter(outcomes(desk.compact()).values()) == {"refused": 30, "swapped": 10}


@pytest.mark.parametrize("exchange", ["at-once", "files"])
def test_footers_are_told_for_as_many_partitions_as_there_is_room_for_and_later_for_the_others(monkeypatch, exchange):
    """One that takes all the room by itself is refused."""
    monkeypatch.setattr(compaction, "MOST_READ", 4000)
    desk, names = make_many(units=9, exchange=exchange)
    for number, name in enumerate(names):
        form = replace(FORM, schema=f"message schema {{\n  optional int64 {'c' * (5000 if number == 4 else 1000)}{number};\n}}")
        desk.world.make_partition(desk.table, f"{name}x")
        for file in range(12):
            desk.world.add_file(f"{desk.live(f'{name}x')}/{file:02d}.parquet", ["x"], form=form)
    desk.world.files.namespace.advance(3_600_000)
    result = desk.compact()
    assert {name: code for name, code in outcomes(result).items() if code != "swapped"} == {f"{names[4]}x": "refused"}
    assert [unit.why.code for unit in result.tables[0].units if unit.outcome is Outcome.REFUSED] == [Code.MIXED_FORMS]


def test_a_schema_that_many_partitions_have_is_judged_once(monkeypatch):
    """The longest ones that count took up to three seconds, for each partition and at each of five to eight stages of its planning."""
    judged, refuse_copy = [], fidelity.refuse_copy

    def count(form, *more):
        judged.append(form)
        return refuse_copy(form, *more)

    monkeypatch.setattr(fidelity, "refuse_copy", count)
    desk, _ = make_many(units=20)
    desk.world.make_partition(desk.table, "dt=unfit")
    for file in "abcd":
        desk.world.add_file(f"{desk.live('dt=unfit')}/{file}.parquet", ["x"], form=replace(FORM, undecodable=("codec lzo",)))
    desk.world.files.namespace.advance(3_600_000)
    assert Counter(outcomes(desk.compact(dry_run=True)).values()) == {"planned": 20, "refused": 1}
    assert len(judged) == 2


@pytest.mark.parametrize("is_held_by_another", [True, False])
def test_hives_lock_is_waited_for_once_in_a_run_if_that_is_in_vain(monkeypatch, is_held_by_another):
    """Whoever may read the table can keep a lock on it; each batch waited."""
    desk, _ = make_many(batch_units=10)
    waits = []

    @contextmanager
    def hold(_self, _table, timeout_s):
        waits.append(timeout_s)
        yield "another holds Hive's lock on it" if is_held_by_another else ""

    monkeypatch.setattr(FakeMetastore, "hold", hold)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert waits == [HIVE_LOCK_WAIT_S] + [AT_ONCE_S if is_held_by_another else HIVE_LOCK_WAIT_S] * 5


def drop_in_each_batch(monkeypatch, desk, ms_each=0, ms_of_reading=0):
    """Before sizes are recorded, as discovery or whoever may alter the table can. Counts partitions that are read, or looked for."""
    seen = {"read": 0, "looked for": 0}
    partitions, look, finish_units = FakeMetastore.partitions, FakeFiles.look, finish.finish_units

    def count_partitions(self, table):
        found = partitions(self, table)
        seen["read"] += len(found)
        desk.world.clock.elapsed_ms += ms_of_reading
        return found

    def count_look(self, directories, *most):
        seen["looked for"] += sum("dt=x" in one for one in directories)
        return look(self, directories, *most)

    def drop_then(run, units, *args, **more):
        desk.world.catalog.drop_partition(desk.table, units[0].planned.name)
        desk.world.clock.elapsed_ms += ms_each
        return finish_units(run, units, *args, **more)

    monkeypatch.setattr(FakeMetastore, "partitions", count_partitions)
    monkeypatch.setattr(FakeFiles, "look", count_look)
    monkeypatch.setattr(finish, "finish_units", drop_then)
    return seen


@pytest.mark.parametrize("drops", [True, False])
def test_a_partition_dropped_in_each_batch_does_not_have_all_partitions_read_each_time(monkeypatch, drops):
    """All came back in the end."""
    desk, names = make_many({"discover.partitions": "true"}, batch_units=5)
    for number in range(400):
        desk.world.catalog.add_partition(desk.table, a_partition(f"dt=x{number}"))
        desk.world.files.writer.make_directory(desk.live(f"dt=x{number}"))
    seen = {"read": 0, "looked for": 0}
    if drops:
        seen = drop_in_each_batch(monkeypatch, desk, ms_of_reading=MOST_AGE_MS * 0.6)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert seen["read"] <= 460 * 4 and seen["looked for"] <= 400 * 4
    assert set(names) <= {one.name for one in desk.world.metastore.partitions(desk.world.metastore.tables("sales", ["events"])["events"])}


def test_partitions_that_wait_to_be_put_back_come_back_before_the_run_ends_with_the_sizes_of_their_new_files(monkeypatch):
    """As soon as all partitions may be read again: readers miss their rows until then."""
    desk, names = make_many({"discover.partitions": "true"}, batch_units=10)
    monkeypatch.setattr(places, "MOST_AGE_MS", -1)
    drop_in_each_batch(monkeypatch, desk, ms_each=MOST_AGE_MS / 2.5)
    missing, update = [], FakeMetastore.update_sizes

    def note(self, table, sizes, *more):
        missing.append((len(self.partitions(table)), len(sizes)))
        return update(self, table, sizes, *more)

    monkeypatch.setattr(FakeMetastore, "update_sizes", note)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert missing == [(60, 10), (59, 10), (58, 10), (60, 12), (59, 10), (58, 10)]


def test_a_partition_that_is_dropped_soon_after_another_one_is_put_back_with_its_batch(monkeypatch):
    """The next batch may take hours; readers miss its rows, and a run that is killed leaves it to an operator whether it is put back."""
    desk, names = make_many({"discover.partitions": "true", "external.table.purge": "true"}, batch_units=20)
    drop_in_each_batch(monkeypatch, desk, ms_of_reading=1000)
    write, missing = FakeRows.write_stage, []

    def look(self, batch):
        missing.append(set(names) - set(desk.world.catalog.partitions[desk.table]))
        return write(self, batch)

    monkeypatch.setattr(FakeRows, "write_stage", look)
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert missing == [set()] * 3


def test_partitions_that_cannot_be_looked_for_among_all_do_not_keep_others_from_getting_their_sizes(monkeypatch):
    """They wait for the next batch, and again for the one after it."""
    desk, names = make_many({"discover.partitions": "true"}, batch_units=20)
    jobs = count_jobs(monkeypatch)
    drop_in_each_batch(monkeypatch, desk)
    sizes, update, partitions = [], FakeMetastore.update_sizes, FakeMetastore.partitions

    def refuse(self, table):
        if jobs:
            raise MetastoreUnavailable("too many")
        return partitions(self, table)

    def note(self, table, some, *more):
        sizes.extend(some)
        return update(self, table, some, *more)

    monkeypatch.setattr(FakeMetastore, "partitions", refuse)
    monkeypatch.setattr(FakeMetastore, "update_sizes", note)
    with suppress(MetastoreUnavailable):
        desk.compact()
    assert sorted(sizes) == names
