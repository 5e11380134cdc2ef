"""Which exchange the units of whole runs get, and that nothing is written for a unit that gets none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hivekeeper.catalogue import rows
from hivekeeper.codes import Exit
from hivekeeper.commands import candidates
from hivekeeper.commands.candidates import Reader
from hivekeeper.model import Block, Ties
from hivekeeper.plan import compaction
from hivekeeper.plan.capacity import RoomForValues
from hivekeeper.plan.engine import Engine
from hivekeeper.ports import NotPossible
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from hivekeeper.steps.observe import observe_table
from support.builders import FORM, MIB, a_table
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import FakeRows
from support.world import World

LARGE, SMALL, BLOCK = 128 * MIB, MIB, 128 * MIB
# Well-sized files make up most of the first; the second has only small ones.
UNITS = {"dt=1": [*[LARGE] * 3, *[SMALL] * 20], "dt=2": [SMALL] * 20}


@pytest.fixture
def world():
    return a_world(UNITS)


def a_world(units, table=None, **more):
    world = World()
    form = replace(FORM, schema="struct<id:int>", codec="zlib") if more else None
    world.add_table(table or a_table(["dt"], **more), units, form)
    return world


def a_desk(world, exchange, **settings):
    return Desk(world, exchange=exchange, backup_table=False, **settings)


def exchanges(result):
    """By unit: its exchange, if it was planned, and the code of why; else its outcome and the code of why."""
    return {
        unit.name: (unit.exchange, unit.exchange_why.code) if unit.exchange_why else (unit.outcome.code, unit.why and unit.why.code)
        for unit in result.tables[0].units
    }


def sizes(world, unit):
    return Counter(entry.length for entry in world.files.look([live(unit)])[live(unit)].entries)


def live(unit):
    return f"hdfs://nn/warehouse/sales/events/{unit}" if unit else "hdfs://nn/warehouse/sales/events"


# ---- what each setting gives


@pytest.mark.parametrize("name", ["_metadata", "_common_metadata"])
def test_files_beside_a_summary_of_them_are_not_joined(name):
    """The check of a join took it for a writer's, each night again, after all had been copied."""
    world = a_world({"dt=2": [SMALL] * 20})
    world.files.writer.add(f"{live('dt=2')}/{name}", "a summary", 100)
    world.files.namespace.advance(3_600_000)
    refused = a_desk(world, "files").compact()
    assert (refused.code, exchanges(refused)) == (Exit.REFUSED, {"dt=2": ("refused", Code.NOT_JOINABLE)})
    assert a_desk(world, "auto").compact().code is Exit.DONE
    assert [entry.name for entry in world.files.look([live("dt=2")])[live("dt=2")].entries if entry.name == name] == []


def test_without_a_setting_directories_are_exchanged_and_nobody_says_why(world):
    desk = Desk(world, backup_table=False)
    planned = desk.compact(dry_run=True).tables[0].units
    assert {(unit.name, unit.exchange, unit.exchange_why) for unit in planned} == {(name, "directory", None) for name in UNITS}
    assert outcomes(desk.compact()) == {"dt=1": "swapped", "dt=2": "swapped"}


@pytest.mark.parametrize("dry_run", [True, False])
def test_auto_joins_small_files_among_well_sized_ones_and_exchanges_the_directory_of_others(world, dry_run):
    before = world.rows_of("sales.events")
    found = exchanges(a_desk(world, "auto").compact(dry_run=dry_run))
    assert found == {"dt=1": ("files", Code.MOSTLY_WELL_SIZED), "dt=2": ("directory", Code.MOSTLY_SMALL)}
    assert world.rows_of("sales.events") == before
    if not dry_run:
        assert sizes(world, "dt=1")[LARGE] == 3
        assert len(+sizes(world, "dt=1")) == 2


def test_files_joins_in_every_unit(world):
    found = exchanges(a_desk(world, "files").compact())
    assert found == dict.fromkeys(UNITS, ("files", Code.EXCHANGE_SET))


def test_small_files_of_a_million_blocks_keep_their_unit_from_being_joined_and_no_other(world):
    for number in (3, 4):
        node = world.files.namespace.find(f"{live('dt=1')}/part-0000{number}.parquet")
        node.joined = (Block(7, 7, 1),) * 600_000
    found = exchanges(a_desk(world, "files").compact())
    assert found == {"dt=1": ("refused", Code.NOT_JOINABLE), "dt=2": ("files", Code.EXCHANGE_SET)}


def test_blocks_of_small_files_are_counted_for_all_units_of_a_table(world):
    for unit, number in (("dt=1", 3), ("dt=2", 0)):
        node = world.files.namespace.find(f"{live(unit)}/part-0000{number}.parquet")
        node.joined = (Block(7, 7, 1),) * 600_000
    found = exchanges(a_desk(world, "files").compact(dry_run=True))
    assert sorted(found.values()) == [("files", Code.EXCHANGE_SET), ("refused", Code.NOT_JOINABLE)]


@pytest.mark.parametrize("exchange", ["files", "auto"])
def test_few_small_files_among_many_well_sized_ones_are_work_only_for_a_join(exchange):
    units = {"dt=1": [*[LARGE] * 30, *[SMALL] * 12]}
    assert a_desk(a_world(units), "directory").compact().tables[0].units == ()
    world = a_world(units)
    assert outcomes(a_desk(world, exchange).compact()) == {"dt=1": "swapped"}
    assert sizes(world, "dt=1")[LARGE] == 30
    assert sum(sizes(world, "dt=1").values()) == 31


def test_large_files_are_not_even_read(world):
    world.files.namespace.find(f"{live('dt=1')}/part-00000.parquet").content = "not a Parquet file"
    assert exchanges(a_desk(world, "auto").compact(where="dt = '1'")) == {"dt=1": ("files", Code.MOSTLY_WELL_SIZED)}


# ---- what cannot be joined

FORBIDDEN = {
    "sorted": Code.NOT_JOINABLE,
    "trash": Code.NOT_JOINABLE,
    "zone": Code.NOT_JOINABLE,
    "erasure coding": Code.NOT_JOINABLE,
    "snapshots of the unit": Code.NOT_JOINABLE,
    "snapshots of the table": Code.NOT_JOINABLE,
    "snapshots above": Code.NOT_JOINABLE,
    "snapshots that may not be listed": Code.NOT_JOINABLE,
    "no blocks": Code.NOT_JOINABLE,
    "no blocks behind a mount": Code.NOT_JOINABLE,
    "a router": Code.NOT_JOINABLE,
    "llap": Code.NOT_JOINABLE,
    "few of one form": Code.FEW_TO_JOIN,
}


class WithoutBlocks(FakeFiles):
    """Another file system than HDFS; with `at`, only there."""

    at = ""

    def blocks(self, path, *more):
        if self.at in (path, ""):
            raise NotPossible(f"{path}: it is not on HDFS")
        return super().blocks(path, *more)


def forbid(why, units=UNITS):
    """A desk's world and settings where joins are impossible in dt=1 at least."""
    world = a_world(units)
    space, settings = (
        world.files.namespace,
        {"sorted": {"sort_columns": ("id",)}, "trash": {"discard": "trash"}, "llap": {"read_by_llap": True}}.get(why, {}),
    )
    if why == "zone":
        for place in ("", *units):
            space.ties[live(place)] = Ties(zone="/warehouse")
    if why == "erasure coding":
        node = space.find(live("dt=1"))
        node.attributes = replace(node.attributes, ec_policy="RS-6-3-1024k")
    if why.startswith("snapshots"):
        place = {"unit": live("dt=1"), "table": live("")}.get(why.rpartition(" ")[2], "hdfs://nn/warehouse")
        space.snapshots[place] = ["s20260101"]
        space.ties[live("dt=1")] = Ties(snapshots=why == "snapshots of the unit")
    if why == "snapshots that may not be listed":
        space.unreadable.add("hdfs://nn/warehouse/.snapshot")
    if why.startswith("no blocks"):
        world.files = WithoutBlocks(namespace=space)
        world.files.at = live("dt=1") if "mount" in why else ""
        world.cluster = world.cluster_of(world.files, world.metastore, FakeRows(world.files))
    if why == "a router":
        world.files.asks_another_for_ids = True
    if why == "few of one form":
        give_forms(world, 3)
    return world, settings


def give_forms(world, number):
    """The files of dt=1 have so many forms by turns."""
    forms = [replace(FORM, identity=f"form {each}", codec="snappy") for each in range(number)]
    for nth, (_, node) in enumerate(world.files.namespace.walk(live("dt=1"))):
        node.content = replace(node.content, form=forms[nth % number])


@pytest.mark.parametrize("why", FORBIDDEN)
def test_files_that_cannot_be_joined_are_refused_before_anything_is_written(why):
    world, settings = forbid(why)
    before = world.files.contents(live("dt=1"))
    found = a_desk(world, "files", **settings).compact(where="dt = '1'")
    outcome = "fewest" if FORBIDDEN[why] is Code.FEW_TO_JOIN else "refused"
    assert exchanges(found) == {"dt=1": (outcome, FORBIDDEN[why])}
    assert found.code is (Exit.DONE if outcome == "fewest" else Exit.REFUSED)
    assert world.files.contents(live("dt=1")) == before
    assert not any("/runs/" in path for path in world.picture())
    # A lock is only written where listings and directories leave a join open.
    assert any(path.endswith("/_lock") for path in world.picture()) is (why in ("few of one form", "no blocks behind a mount"))


@pytest.mark.parametrize("why", FORBIDDEN)
def test_auto_exchanges_the_directory_where_files_cannot_be_joined(why):
    world, settings = forbid(why)
    before = set(world.files.contents(live("dt=1")))
    found = exchanges(a_desk(world, "auto", **settings).compact(where="dt = '1'"))
    if why == "snapshots of the unit":
        # Nor may that directory be moved.
        assert found == {"dt=1": ("refused", Code.SNAPSHOTTABLE)}
    else:
        assert found == {"dt=1": ("directory", FORBIDDEN[why])}
        assert before.isdisjoint(world.files.contents(live("dt=1")))


@pytest.mark.parametrize("why", FORBIDDEN)
def test_auto_never_rewrites_a_unit_that_only_a_join_would_take_for_work(why):
    units = {"dt=1": [*[LARGE] * 30, *[SMALL] * 12]}
    world, settings = forbid(why, units)
    before = world.files.contents(live("dt=1"))
    found = a_desk(world, "auto", **settings).compact()
    assert found.code is Exit.DONE
    assert world.files.contents(live("dt=1")) == before
    assert all(unit.outcome.code == "fewest" and unit.why.code is FORBIDDEN[why] for unit in found.tables[0].units)


@pytest.mark.parametrize(("exchange", "expected"), [("files", ("refused", Code.NOT_JOINABLE)), ("auto", ("directory", Code.NOT_JOINABLE))])
def test_files_between_which_no_name_lies_are_not_joined(exchange, expected):
    world = a_world({"dt=1": [LARGE]})
    for nth in range(20):
        world.add_file(f"{live('dt=1')}/x{'-' * nth}", [f"x{nth}"], SMALL)
    world.files.namespace.advance(3_600_000)
    assert exchanges(a_desk(world, exchange).compact()) == {"dt=1": expected}


@pytest.mark.parametrize("exchange", ["files", "auto"])
def test_nine_small_files_are_nothing_to_refuse(exchange):
    world = a_world({"dt=1": [*[LARGE] * 30, *[SMALL] * 9]})
    found = a_desk(world, exchange).compact()
    assert (found.code, found.tables[0].units) == (Exit.DONE, ())


def test_a_unit_of_nine_small_files_is_left_by_files_and_swapped_by_auto():
    units = {"dt=1": [*[SMALL] * 9]}
    assert a_desk(a_world(units), "files").compact().tables[0].units == ()
    assert exchanges(a_desk(a_world(units), "auto").compact()) == {"dt=1": ("directory", Code.MOSTLY_SMALL)}


def test_one_unit_that_cannot_be_joined_does_not_stop_the_others(world):
    node = world.files.namespace.find(live("dt=1"))
    node.attributes = replace(node.attributes, ec_policy="RS-6-3-1024k")
    found = a_desk(world, "files").compact()
    assert exchanges(found) == {"dt=1": ("refused", Code.NOT_JOINABLE), "dt=2": ("files", Code.EXCHANGE_SET)}
    assert found.code is Exit.PARTIAL


def test_an_unreadable_small_file_is_the_reason_not_that_there_are_few(world):
    world.files.namespace.find(f"{live('dt=1')}/part-00010.parquet").content = "not a Parquet file"
    for exchange in ("files", "auto"):
        found = exchanges(a_desk(world, exchange).compact(where="dt = '1'", dry_run=True))
        assert found == {"dt=1": ("refused", Code.UNREADABLE_FILE)}


# ---- directories that are tied to their places

TIED = [
    (Ties(denied="parent has the sticky bit"), Code.NOT_RENAMABLE),
    (Ties(snapshots=True), Code.SNAPSHOTTABLE),
    (Ties(quota=True), Code.OWN_QUOTA),
]


@pytest.mark.parametrize(("ties", "code"), TIED)
@pytest.mark.parametrize("exchange", ["files", "auto"])
def test_files_of_a_directory_that_must_not_be_renamed_are_joined(world, exchange, ties, code):
    for unit in UNITS:
        world.files.namespace.ties[live(unit)] = ties
    before = world.rows_of("sales.events")
    found = exchanges(a_desk(world, exchange).compact())
    assert found == dict.fromkeys(UNITS, ("files", code if exchange == "auto" else Code.EXCHANGE_SET))
    assert world.rows_of("sales.events") == before
    assert sizes(world, "dt=1")[LARGE] == 3
    assert sum(sizes(world, "dt=2").values()) == 1


@pytest.mark.parametrize(("ties", "code"), TIED)
def test_a_tied_directory_with_few_files_is_refused_by_auto_with_both_reasons(ties, code):
    world = a_world({"dt=1": [SMALL] * 9})
    world.files.namespace.ties[live("dt=1")] = ties
    before = world.picture()
    found = a_desk(world, "auto").compact()
    assert exchanges(found) == {"dt=1": ("refused", code)}
    assert "fewer than 10" in found.tables[0].units[0].reason
    assert world.picture() == before


def test_snapshots_that_could_be_made_but_are_not_are_no_obstacle(world):
    world.files.namespace.ties[live("dt=1")] = Ties(snapshots=True)
    world.files.namespace.snapshots.update({live("dt=1"): [], live(""): []})
    assert exchanges(a_desk(world, "files").compact(where="dt = '1'")) == {"dt=1": ("files", Code.EXCHANGE_SET)}


def test_where_not_even_a_control_directory_can_be_made_the_table_is_refused(world):
    world.files.namespace.denied.add(live(""))
    before = world.picture()
    found = a_desk(world, "files").compact()
    assert (found.code, found.tables[0].problem.code) == (Exit.REFUSED, Code.NO_PERMISSION)
    assert world.picture() == before


def test_a_control_directory_in_an_encryption_zone_of_its_own_refuses_the_join(world):
    world.files.namespace.ties[live("")] = Ties(zone="/records")
    before = world.picture()
    found = a_desk(world, "files").compact()
    assert exchanges(found) == dict.fromkeys(UNITS, ("refused", Code.NOT_JOINABLE))
    assert world.picture() == before


def test_an_unpartitioned_table_is_joined(world):
    world = a_world({"": UNITS["dt=1"]}, a_table())
    assert exchanges(a_desk(world, "auto").compact()) == {"": ("files", Code.MOSTLY_WELL_SIZED)}


def test_a_directory_that_is_gone_is_told_as_such(world):
    desk = a_desk(world, "files")
    observed = observe_table(world.cluster, world.table("sales.events"), desk.settings)
    world.files.writer.delete(live("dt=1"))
    candidates, back = a_reader(world, desk.settings, observed).read(observed.units)
    assert back == []
    assert {one.analysis.name: one.unfit and one.unfit.code for one in candidates} == {"dt=1": Code.DIRECTORY_GONE, "dt=2": None}


# ---- room, and files that must stay


def test_a_join_needs_room_for_its_small_files_only(world):
    world.files.namespace.space_bytes = world.files.namespace.used_bytes() + BLOCK + 60 * MIB
    assert exchanges(a_desk(world, "directory").compact(where="dt = '1'", dry_run=True)) == {}
    found = exchanges(a_desk(world, "auto").compact(where="dt = '1'"))
    assert found == {"dt=1": ("files", Code.MOSTLY_WELL_SIZED)}


def test_max_bytes_counts_what_a_join_rewrites(world):
    assert a_desk(world, "directory", max_bytes=30 * MIB).compact(where="dt = '1'", dry_run=True).tables[0].units == ()
    desk = a_desk(world, "auto", max_bytes=30 * MIB)
    assert exchanges(desk.compact(where="dt = '1'", dry_run=True)) == {"dt=1": ("files", Code.MOSTLY_WELL_SIZED)}


@pytest.mark.parametrize("why", ["few of one form", "erasure coding", "no blocks behind a mount"])
def test_a_unit_that_is_to_be_swapped_after_all_must_fit_as_a_whole(why):
    world, settings = forbid(why)
    found = exchanges(a_desk(world, "auto", max_bytes=30 * MIB, **settings).compact(where="dt = '1'", dry_run=True))
    assert found == {}


def test_max_units_counts_units_not_their_sets_of_files():
    # By rank: one that proves unfit, one of four sets, one more.
    world = a_world({"dt=1": [SMALL] * 20, "dt=2": [12 * MIB] * 40, "dt=3": [12 * MIB + 1] * 10})
    give_forms(world, 3)
    found = a_desk(world, "files", max_units=2).compact(dry_run=True).tables[0].units
    assert Counter(unit.name for unit in found if unit.outcome.code == "planned") == {"dt=2": 4, "dt=3": 1}


def test_a_set_that_is_longer_than_a_block_by_half_a_file_becomes_one_file():
    world = a_world({"dt=1": [12 * MIB] * 21})
    before = world.rows_of("sales.events")
    units = a_desk(world, "files").compact().tables[0].units
    assert [(unit.outcome.code, unit.files_before, unit.files_after) for unit in units] == [("swapped", 11, 1), ("swapped", 10, 1)]
    assert world.rows_of("sales.events") == before


class ChangingRows(FakeRows):
    """Somebody replaces a file of the first set by one of another form between the two times that footers are read."""

    def footers(self, format, sets, *more, **asked):
        found = super().footers(format, sets, *more, **asked)
        path = f"{live('dt=1')}/part-00002.parquet"
        if any(file.path == path for files in sets.values() for file in files):
            node = self.files.namespace.find(path)
            node.content, node.mtime_ms = replace(node.content, form=replace(FORM, identity="another")), node.mtime_ms + 1
        return found


def test_a_file_that_gets_another_form_while_it_is_read_costs_its_own_set_only():
    world = a_world({"dt=1": [12 * MIB] * 40})
    give_forms(world, 2)
    before = world.rows_of("sales.events")
    world.cluster = replace(world.cluster, rows=ChangingRows(world.files))
    units = a_desk(world, "files").compact().tables[0].units
    assert Counter(unit.outcome.code for unit in units) == {"swapped": 3, "failed": 1}
    assert world.rows_of("sales.events") == before


def a_reader(world, settings, observed, leave_out=None):
    table = world.table("sales.events")
    rewrite = compaction.Rewrite.of(table, settings, Engine("3.5.9", "UTC"))
    return Reader(world.cluster, observed, rewrite, settings, "20260101t020000z-0000", leave_out or {}, RoomForValues())


def test_a_file_that_still_holds_old_rows_is_not_joined_again(world):
    desk = a_desk(world, "files")
    observed = observe_table(world.cluster, world.table("sales.events"), desk.settings)
    kept = {"part-00005.parquet", "part-00019.parquet"}
    candidates, _ = a_reader(world, desk.settings, observed, {"dt=2": kept}).read(observed.units)
    chosen = {one.analysis.name: {file.name for file in one.analysis.files} for one in candidates}
    assert len(chosen["dt=1"]) == 20
    assert chosen["dt=2"] == {f"part-{nth:05d}.parquet" for nth in range(20)} - kept
    few = {f"part-{nth:05d}.parquet" for nth in range(11)}
    candidates, _ = a_reader(world, desk.settings, observed, {"dt=2": few}).read(observed.units)
    assert {one.analysis.name: one.unjoined and one.unjoined.code for one in candidates} == {"dt=1": None, "dt=2": Code.FEW_TO_JOIN}


class CountingRows(FakeRows):
    """Counts how often the footer of each file is read."""

    def __init__(self, files):
        super().__init__(files)
        self.read = Counter()

    def footers(self, format, sets, *more, **asked):
        self.read.update(file.path for files in sets.values() for file in files)
        return super().footers(format, sets, *more, **asked)


@pytest.mark.parametrize(("forms", "times"), [(1, 1), (2, 2)])
def test_footers_are_read_once_for_the_choice_of_sets_if_all_have_one_form(forms, times):
    world = a_world({"dt=1": [12 * MIB] * 40})
    give_forms(world, forms)
    counting = CountingRows(world.files)
    world.cluster = replace(world.cluster, rows=counting)
    planned = a_desk(world, "files").compact(dry_run=True).tables[0].units
    assert [unit.files_before for unit in planned] == [10] * 4
    assert set(counting.read.values()) == {times}
    assert len(counting.read) == 40


class CountingFiles(FakeFiles):
    """Counts how often each directory is listed; and how many are joined."""

    def __init__(self, **namespace):
        super().__init__(**namespace)
        self.listed, self.joined = Counter(), 0

    def look(self, directories, *more):
        self.listed.update(directories)
        return super().look(directories, *more)

    def concat(self, path, sources):
        self.joined += path.startswith(f"{live('dt=1')}/")
        return super().concat(path, sources)


def test_a_directory_is_listed_once_for_each_set():
    """It may hold thousands of files, and another set was joined in it a moment ago."""
    world = a_world({"dt=1": [12 * MIB] * 40})
    counting = world.files = CountingFiles(namespace=world.files.namespace)
    world.cluster = world.cluster_of(counting, world.metastore, FakeRows(counting))
    assert outcomes(a_desk(world, "files").compact()) == {"dt=1": "swapped"}
    assert counting.joined == 4
    # Before and after all sets: the analysis, the rights, and the sizes for the metastore.
    assert counting.listed[live("dt=1")] == 4 + 3


def test_many_sets_of_a_large_directory_are_left_for_later_runs(monkeypatch):
    """Whoever may write there gives each ten files a form of their own: listing all for each set would take hours."""
    monkeypatch.setattr(candidates, "MOST_LISTED", 1000)
    world = a_world({"dt=1": [MIB] * 200, "dt=2": [MIB] * 20})
    give_forms(world, 15)
    before, joined = world.rows_of("sales.events"), []
    desk = a_desk(world, "files")
    for _ in range(3):
        desk.compact()
        joined.append(sum(effect.partition == "dt=1" for effect in desk.log().effects))
        world.files.namespace.advance(3_600_000)
    # Each unit has one at least.
    assert {effect.partition for effect in desk.log().runs[0].effects} == {"dt=1", "dt=2"}
    assert joined[0] <= 5 < joined[1] < joined[2] == 15
    assert world.rows_of("sales.events") == before


# ---- what operators read


def test_a_dry_run_says_which_exchange_each_unit_gets_and_why(world):
    text = screen.render(a_desk(world, "auto").compact(dry_run=True))
    assert "  by files, well-sized files make up most of its bytes: dt=1" in text.splitlines()
    assert "  by directory, well-sized files make up no more than half of its bytes: dt=2" in text.splitlines()
    assert "  by " not in screen.render(a_desk(world, "directory").compact(dry_run=True))


def test_analyze_says_in_one_line_which_exchange_units_would_get_by_metadata():
    units = {**UNITS, "dt=3": [SMALL] * 20, "dt=4": [SMALL] * 5, "dt=5": [LARGE]}
    world = a_world(units)
    steps = world.files.steps
    lines = {exchange: screen.render(a_desk(world, exchange).analyze()).splitlines() for exchange in ("directory", "files", "auto")}
    assert not [line for line in lines["directory"] if line.startswith("exchange")]
    assert [line for line in lines["auto"] if line.startswith("exchange")] == [
        "exchange         sales.events: 3 units by directory (well-sized files make up no more than half of its bytes), "
        "at most 1 unit by files (well-sized files make up most of its bytes)"
    ]
    assert [line for line in lines["files"] if line.startswith("exchange")] == [
        "exchange         sales.events: at most 3 units by files (the setting exchange says so), "
        "1 unit not at all (it has fewer than 10 small files of one form, too few to be joined)"
    ]
    assert world.files.steps == steps


def test_analyze_counts_what_a_join_rewrites_and_says_so_in_json(world):
    (table,) = document.build(a_desk(world, "auto").analyze())["tables"]
    found = table["analysis"]
    assert found["exchange"] == "auto"
    assert [(one["exchange"], one["units"], one["code"]) for one in found["exchanges"]] == [
        ("files", 1, "mostly-well-sized"),
        ("directory", 1, "mostly-small"),
    ]
    assert found["bytes_rewritten"] == 40 * MIB
    assert (found["files"], found["files_after"]) == (43, 5)
    # Two new files of two objects each, and those of the run. Twenty names are gone at once; their blocks, and all else, after cleanup.
    assert (found["objects"], found["objects_after"], found["objects_after_cleanup"]) == (47 + 41, 88 + 4 + 1 - 20 + 16, 4 * 2 + 1 + 3 + 7)
    assert {one["partition"]: one["exchange"] for one in found["partitions"]} == {"dt=1": "files", "dt=2": "directory"}


def test_analyze_refuses_what_cannot_be_joined_by_its_settings(world):
    desk = a_desk(world, "files", sort_columns=("id",))
    units = {unit.name: unit for unit in desk.analyze().tables[0].observed.units}
    assert {name: (unit.status.code, unit.reason.code) for name, unit in units.items()} == dict.fromkeys(
        UNITS, ("refused", Code.NOT_JOINABLE)
    )


def test_a_unit_of_several_new_files_counts_as_one_for_operators():
    world = a_world({"dt=1": [*[LARGE] * 30, *[12 * MIB] * 40]})
    assert screen.render(a_desk(world, "files").compact()).startswith("sales.events: compacted 1 unit: 40 → 4 files, 480 MiB")


def test_the_catalogue_learns_the_files_of_a_joined_unit_from_the_next_look(world):
    seen = {unit.judged.name: unit for unit in rows.seen_units(a_desk(world, "auto").compact().tables[0])}
    assert {name: (unit.files, unit.status.code) for name, unit in seen.items()} == {"dt=1": (23, "compact"), "dt=2": (1, "fine")}


@pytest.mark.repeating
@pytest.mark.parametrize(("exchange", "says"), [("auto", "compacted 1 unit: 5,000 → 4 files, 488 MiB"), ("directory", "nothing to do")])
def test_of_two_terabytes_only_the_small_files_are_rewritten(exchange, says):
    """A swap would rewrite all of it, so it is none for a table whose files are mostly large."""
    world = a_world({"": [200 * MIB] * 10_000 + [100 << 10] * 5_000}, a_table([]))
    assert says in screen.render(a_desk(world, exchange).compact())
    assert sizes(world, "")[200 * MIB] == 10_000


def test_a_unit_of_json_says_its_exchange_and_the_size_of_its_copy(world):
    (table,) = document.build(a_desk(world, "auto").compact())["tables"]
    told = {unit["partition"]: (unit["exchange"], unit["exchange_code"]) for unit in table["units"]}
    assert told == {"dt=1": ("files", "mostly-well-sized"), "dt=2": ("directory", "mostly-small")}
    # Without the old files inside; a copy of these files is as large as they are.
    assert {unit["bytes_after"] - unit["bytes_before"] for unit in table["units"]} == {0}


class Strange(FakeFiles):
    """A directory of others comes to the place of the first file of which it is asked whether it has blocks."""

    told = None

    def blocks(self, path, *more, **named):
        if self.told is None:
            self.told = ()
            self.namespace.rename(path, "hdfs://nn/warehouse/sales/away")
            for number in range(100):
                self.writer.add(f"{path}/x{number}", "x", 1)
            self.told = super().blocks(path, *more, **named)
            return self.told
        return super().blocks(path, *more, **named)


def test_no_blocks_are_told_of_a_directory_that_comes_to_the_place_of_the_first_file(world):
    """It may have a million files, each of ten thousand blocks."""
    world.files = Strange(namespace=world.files.namespace)
    world.cluster = world.cluster_of(world.files, world.metastore, FakeRows(world.files))
    a_desk(world, "files").compact()
    assert world.files.told == {}
