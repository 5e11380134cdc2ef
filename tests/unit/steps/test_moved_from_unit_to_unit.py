"""One large directory, or one tree, that somebody renames from unit to unit: a rename each, after which all of it was listed again."""

from __future__ import annotations

from collections import Counter

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.steps import arrivals, exchange, run_directory, swap
from hivekeeper.steps.directory_exchange import DirectoryExchange
from hivekeeper.steps.run_directory import Run
from support import joined_desk
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.fakes.rows import DataFile
from support.late_directories import nest
from support.world import World

BIG = "hdfs://nn/mine/big"


def a_desk(units, **settings):
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_000), {f"dt={n:03d}": [1000] * 3 for n in range(units)})
    world.files.namespace.advance(3_600_000)
    return Desk(world, backup_table=False, **settings)


def add_files(desk, directory, number, letter="y"):
    for nth in range(number):
        desk.world.files.namespace.create(f"{directory}/{letter}{nth}", DataFile((f"y{nth}",)), 10)


def count_listed(desk, monkeypatch, ms_each=0):
    """What is listed of live directories, how many entries and directories; each entry takes its time."""
    counts, look = Counter(), FakeFiles.look

    def count(self, directories, *most):
        found = look(self, directories, *most)
        entries = sum(len(one.entries) for path, one in found.items() if "/dt=" in path)
        counts.update(entries=entries, directories=len(directories))
        desk.world.clock.elapsed_ms += entries * ms_each
        return found

    monkeypatch.setattr(FakeFiles, "look", count)
    return counts


class Mover:
    """Puts one directory in the place of a unit's, and that back when it takes the directory to another one."""

    def __init__(self, desk):
        self.files, self.at = desk.world.files.namespace, None

    def move_to(self, live):
        if self.at:
            self.files.rename(self.at, BIG)
            self.files.rename("hdfs://nn/mine/kept", self.at)
        self.files.rename(live, "hdfs://nn/mine/kept")
        self.files.rename(BIG, live)
        self.at = live


def before_each_exchange(act, monkeypatch):
    carry_out = exchange.carry_out

    def act_then_carry_out(one):
        act(one.unit)
        return carry_out(one)

    monkeypatch.setattr(swap.exchange, "carry_out", act_then_carry_out)


@pytest.mark.parametrize("moves", [False, True])
def test_rights_of_many_units_are_not_asked_again_for_each_unit_because_the_answer_took_long(moves, monkeypatch):
    desk = a_desk(60)
    add_files(desk, BIG, 500)
    counts, mover = count_listed(desk, monkeypatch, ms_each=25), Mover(desk)

    def move_ahead(unit):
        number = int(unit.name[3:])
        if moves and number % 40 == 0 and number + 39 < 60:
            mover.move_to(desk.live(f"dt={number + 39:03d}"))

    before_each_exchange(move_ahead, monkeypatch)
    assert Counter(outcomes(desk.compact()).values()) == Counter({"swapped": 60 - moves, "given-up": moves})
    assert counts["entries"] <= 2000 + 4 * 500 * moves


def test_a_unit_to_which_many_files_came_keeps_none_from_its_exchange(monkeypatch):
    """No attacker needed: too many for all units that are looked at together, but not for one."""
    monkeypatch.setattr(run_directory, "MOST_LATE", 0)
    desk = a_desk(20)
    before = desk.world.rows_of(desk.table)
    joined_desk.at(desk, ["stage", "/ready/u00002"], lambda: add_files(desk, desk.live("dt=010"), 200))
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert desk.world.rows_of(desk.table) == before + Counter(f"y{nth}" for nth in range(200))


def test_what_is_listed_again_while_late_files_are_carried_over_is_not_counted(monkeypatch):
    """No attacker needed: before each file that is moved to live all that were moved there are listed once more."""
    monkeypatch.setattr(run_directory, "MOST_LATE", 10)
    monkeypatch.setattr(run_directory, "MOST_BEYOND", 1500)
    desk = a_desk(4, max_files=180)
    before = desk.world.rows_of(desk.table)
    joined_desk.at(desk, ["stage", "/ready/u00002"], lambda: add_files(desk, desk.live("dt=001"), 100))
    assert set(outcomes(desk.compact()).values()) == {"swapped"}
    assert desk.world.rows_of(desk.table) == before + Counter(f"y{nth}" for nth in range(100))


@pytest.mark.parametrize("moves", [False, True])
def test_a_directory_that_comes_to_each_unit_just_before_its_check_is_listed_a_few_times(moves, monkeypatch):
    monkeypatch.setattr(run_directory, "MOST_LATE", 5)
    monkeypatch.setattr(run_directory, "MOST_BEYOND", 100)
    desk = a_desk(30, max_files=90)
    add_files(desk, BIG, 300)
    counts, mover = count_listed(desk, monkeypatch), Mover(desk)

    def move(unit):
        if moves or not mover.at:
            mover.move_to(desk.live(unit.name))

    before_each_exchange(move, monkeypatch)
    found = Counter(outcomes(desk.compact()).values())
    assert found == Counter({"given-up": 2, "left": 28} if moves else {"given-up": 1, "swapped": 29})
    assert counts["entries"] <= 2 * 180 * (4 + 2)


@pytest.mark.parametrize("a_desk", [lambda: a_desk(5), lambda: joined_desk.a_desk(files=20)], ids=["exchanged", "joined"])
def test_nothing_that_the_plan_knows_is_counted(a_desk, monkeypatch):
    """No attacker needed: before each set of its files that is joined all of a directory is listed."""
    monkeypatch.setattr(run_directory, "MOST_LATE", 0)
    runs, count = [], Run.count_listed

    def count_and_note(self, *args):
        runs.append(self)
        count(self, *args)

    monkeypatch.setattr(Run, "count_listed", count_and_note)
    desk = a_desk()
    for command in (desk.compact, desk.rollback):
        assert {*outcomes(command()).values()} <= {"swapped", "joined", "rolled-back"}
    assert len(runs) > 4 and {run.listed.beyond for run in runs} == {0}


def enough_is_listed(monkeypatch):
    monkeypatch.setattr(Run, "has_listed_enough", property(lambda _run: True))


def test_nothing_more_is_copied_once_enough_was_listed(monkeypatch):
    desk = a_desk(3)
    enough_is_listed(monkeypatch)
    monkeypatch.setattr(desk.world.rows, "write_stage", None)
    assert outcomes(desk.compact()) == dict.fromkeys(["dt=000", "dt=001", "dt=002"], "left")


@pytest.mark.parametrize("words", [["/retired/u00001"], ["/ready/u00001 "], ["/ready/u00002 "], ["entry.json"]])
def test_what_was_begun_is_settled_although_enough_was_listed(words, monkeypatch):
    desk = a_desk(3)
    before = desk.world.rows_of(desk.table)
    desk.kill_before(["rename_exact", *words] if words[0] != "entry.json" else words, desk.compact)
    desk.append("dt=001", "late1", "late2")
    enough_is_listed(monkeypatch)
    (table,) = desk.recover().tables
    assert table.recovered != () and table.problem is None
    assert desk.world.rows_of(desk.table) == before + Counter(["late1", "late2"])


def lose_blocks(desk, directory):
    for _, node in desk.world.files.namespace.walk(desk.world.files.qualify(directory)):
        node.lost = (0, 0) if node.is_dir else (0, node.length)


@pytest.mark.parametrize(("files", "is_enough"), [(0, True), (3000, True), (3000, False)])
def test_a_proved_copy_of_old_files_that_lost_blocks_is_kept_whatever_was_listed(files, is_enough, monkeypatch):
    """No attacker needed for lost blocks. A listing of thousands of files more ends before it shows them."""
    desk = a_desk(3, max_files=90)
    rows = desk.world.rows_below(desk.live("dt=001"))
    desk.kill_before(["rename_exact", "/retired/u00001"], desk.compact)
    lose_blocks(desk, desk.live("dt=001"))
    add_files(desk, desk.live("dt=001"), files, "a")
    if is_enough:
        enough_is_listed(monkeypatch)
    assert desk.recover().code is Exit.INVESTIGATE
    (directory,) = desk.run_directories()
    assert desk.world.rows_below(names.join(desk.control.runs, directory, "kept", "u00002")) == rows
    told = {unit.partition: (unit.outcome.code, unit.reason_code) for unit in desk.log().runs[-1].units}
    assert told.pop("dt=001") == ("misplaced", "live-lost-blocks")
    assert {outcome for outcome, _ in told.values()} == {"not-swapped"}


def test_a_copy_that_is_kept_is_told_again_although_enough_was_listed(monkeypatch):
    """The recovery that kept it was killed before its log entry."""
    desk = a_desk(2)
    desk.kill_before(["rename_exact", "/retired/u00001"], desk.compact)
    lose_blocks(desk, desk.live("dt=001"))
    desk.kill_before(["entry.json"], desk.recover)
    enough_is_listed(monkeypatch)
    assert desk.recover().code is Exit.INVESTIGATE
    assert {unit.partition: unit.reason_code for unit in desk.log().runs[-1].units}["dt=001"] == "live-lost-blocks"


@pytest.mark.parametrize(("files", "what"), [(0, "dt=000/attempt is a copy"), (3000, "dt=000 was not looked through")])
def test_a_directory_of_a_late_committer_is_told_although_enough_was_listed(files, what, monkeypatch):
    desk = a_desk(2)
    desk.kill_before(["rename_exact", "/retired/u00001"], desk.compact)
    add_files(desk, desk.live("dt=000"), files)
    nest(desk, "dt=000")
    enough_is_listed(monkeypatch)
    desk.recover()
    unit = desk.log().runs[-1].units[0]
    assert (unit.outcome.code, what in unit.reason) == ("misplaced", True)


@pytest.mark.parametrize("moves", [False, True])
def test_a_tree_that_comes_to_each_unit_after_its_exchange_is_not_looked_through(moves, monkeypatch):
    desk = a_desk(60)
    files, tree = desk.world.files.namespace, ["hdfs://nn/mine/tree"]
    for nth in range(300):
        files.make_directory(f"{tree[0]}/d{nth}")
    counts, settle_live = count_listed(desk, monkeypatch), DirectoryExchange.settle_live

    def nest_then_settle(self, *args):
        if moves:
            tree.append(f"{self.unit.live}/attempt")
            files.rename(tree[-2], tree[-1])
        return settle_live(self, *args)

    monkeypatch.setattr(DirectoryExchange, "settle_live", nest_then_settle)
    assert Counter(outcomes(desk.compact()).values()) == Counter({"swapped": 60 - moves, "misplaced": moves})
    assert counts["directories"] <= 700


def test_what_is_looked_at_in_such_a_tree_counts_for_the_run(monkeypatch):
    monkeypatch.setattr(arrivals, "MOST_LIFTED", 1000)
    desk = a_desk(30)
    files, tree = desk.world.files.namespace, ["hdfs://nn/mine/tree"]
    for nth in range(300):
        files.make_directory(f"{tree[0]}/d{nth}")
    counts, settle_live = count_listed(desk, monkeypatch), DirectoryExchange.settle_live

    def nest_then_settle(self, *args):
        tree.append(f"{self.unit.live}/attempt")
        files.rename(tree[-2], tree[-1])
        return settle_live(self, *args)

    monkeypatch.setattr(DirectoryExchange, "settle_live", nest_then_settle)
    desk.compact()
    assert counts["entries"] <= 700 + 1300


def test_a_directory_that_comes_to_each_unit_in_its_gap_is_not_listed_for_each(monkeypatch):
    """It has more files than are merged, so it stays aside, and the tenant takes it from there."""
    monkeypatch.setattr(arrivals, "MOST_LIFTED", 100)
    desk = a_desk(20)
    add_files(desk, BIG, 300)
    listed, look, at = [], FakeFiles.look, [BIG]

    def count(self, directories, *most):
        found = look(self, directories, *most)
        listed.append(sum(len(one.entries) for path, one in found.items() if path.endswith(".0") and "/recreated/" in path))
        return found

    def come(what):
        live = what.rpartition(" ")[2]
        if what.startswith("rename_exact") and "/ready/" in what and "/dt=" in live and live not in at:
            at.append(live)
            desk.world.files.namespace.rename(at[-2], live)
        if what.startswith("rename_exact") and "/recreated/" in what and what.split()[1] == at[-1]:
            at.append(what.rpartition(" ")[2])

    monkeypatch.setattr(FakeFiles, "look", count)
    desk.world.files.before_step = come
    found = Counter(outcomes(desk.compact()).values())
    assert found["misplaced"] + found["swapped"] == 20
    assert 0 < sum(listed) <= 101 + 20
