"""Somebody has another table's directory, which they may rename but not write to, at a partition's place: nothing in it changes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.steps import arrivals
from hivekeeper.steps.directory_exchange import DirectoryExchange
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.joined_desk import at, files_of
from support.late_directories import act_before_live_is_settled
from support.world import World

THEIRS = "hdfs://nn/warehouse/fin/payments"
LIKE_OURS = {f"part-0000{number}.parquet": 1000 for number in range(3)}


def a_desk():
    world = World()
    world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
    return Desk(world, backup_table=False)


def make_theirs(desk, files):
    """The directory of the other table, an hour old; returns its files."""
    for name, length in files.items():
        desk.world.files.writer.add(f"{THEIRS}/{name}", DataFile((f"payment {name}",)), length)
    desk.world.wait(3_600_000)
    return sorted(desk.world.files.contents(THEIRS))


def give_rights(desk, place, **rights):
    node = desk.world.files.namespace.find(place)
    node.attributes = replace(node.attributes, **rights)


def put_there(desk, theirs=THEIRS):
    desk.world.files.namespace.rename(desk.live("dt=1"), desk.live(".aside"))
    desk.world.files.namespace.rename(theirs, desk.live("dt=1"))


def put_back(desk, theirs=THEIRS):
    desk.world.files.namespace.rename(desk.live("dt=1"), theirs)
    desk.world.files.namespace.rename(desk.live(".aside"), desk.live("dt=1"))


def carry_over_into_theirs(desk, monkeypatch):
    """Their directory is at the partition's place just while late files are carried over."""
    carry_over = DirectoryExchange.carry_over

    def carry_over_there(self, expected):
        put_there(desk)
        try:
            return carry_over(self, expected)
        finally:
            put_back(desk)

    monkeypatch.setattr(DirectoryExchange, "carry_over", carry_over_there)


def revive(desk):
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()


def act_in_turn(desk, *acts):
    """Each before the first step with all its words after the one before."""
    waiting = list(acts)

    def watch(what):
        if waiting and all(word in what for word in waiting[0][0]):
            waiting.pop(0)[1]()

    desk.world.files.before_step = watch
    return waiting


def test_a_late_file_is_not_moved_into_one_with_the_names_and_lengths_that_a_rollback_has_brought_back():
    desk = a_desk()
    before = make_theirs(desk, LIKE_OURS)
    desk.compact()
    desk.rollback()
    (run,) = [each for each in desk.run_directories() if desk.world.files.contents(f"{desk.control.runs}/{each}/retired")]
    desk.world.add_file(f"{desk.control.runs}/{run}/retired/u00001/mine.parquet", ["mine"])
    put_there(desk)
    desk.cleanup()
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_no_file_of_a_directory_at_the_place_of_a_backup_is_taken_for_a_late_one():
    desk = a_desk()
    make_theirs(desk, {"payment.parquet": 1000})
    desk.compact()
    place = desk.control.run(desk.runs[0]).unit("retired", 1)
    desk.world.files.namespace.rename(place, desk.live(".aside"))
    desk.world.files.namespace.rename(THEIRS, place)
    live = desk.world.files.contents(desk.live("dt=1"))
    assert desk.cleanup().code is Exit.PARTIAL
    assert desk.world.files.contents(desk.live("dt=1")) == live
    assert list(desk.world.files.contents(place)) == [f"{place}/payment.parquet"]


def test_a_late_file_is_not_moved_into_that_of_a_table_that_the_same_command_has_joined():
    """The joined file has the same name in both, and the same length if one has copied the other's files."""
    world = World()
    for number, name in enumerate(("events", "orders")):
        world.add_table(a_table(["dt"], name=name, create_time=5 + number), {"dt=1": [1000] * 3})
    joining = {"exchange": "files", "fewest_joined": 2, "backup_table": False}
    mine, theirs = (Desk(world, f"sales.{name}", backup_table=False) for name in ("events", "orders"))
    joins = [Desk(world, f"sales.{name}", **joining) for name in ("events", "orders")]
    for desk, join in zip((mine, theirs), joins):
        desk.compact()
        desk.append("dt=1", "a", "b", "c")
        join.runs = desk.runs
    for join in joins:
        join.compact()
    assert mine.runs == theirs.runs
    joined = [{name: length for name, (length, _) in files_of(join).items() if name.startswith("b-")} for join in joins]
    assert joined[0] == joined[1] != {}
    place = theirs.live("dt=1")
    before = sorted(world.files.contents(place))
    world.add_file(f"{mine.control.runs}/{mine.runs[0]}/retired/u00001/mine.parquet", ["mine"])
    put_there(mine, place)
    joins[0].cleanup()
    put_back(mine, place)
    assert sorted(world.files.contents(place)) == before
    joins[0].cleanup()
    assert f"{mine.live('dt=1')}/mine.parquet" in world.files.contents(mine.live("dt=1"))


def test_a_file_that_came_late_to_a_rollback_is_not_moved_into_one_with_its_names_and_lengths(monkeypatch):
    desk = a_desk()
    before = make_theirs(desk, LIKE_OURS)
    desk.compact()
    live, late = desk.live("dt=1"), []

    def add_late(what):
        if not late and what.startswith(("exchange", "rename_exact")) and f"{live} " in what:
            late.append(desk.world.add_file(f"{live}/mine.parquet", ["mine"]))

    desk.world.files.before_step = add_late
    carry_over_into_theirs(desk, monkeypatch)
    result = desk.rollback()
    assert len(late) == 1
    assert sorted(desk.world.files.contents(THEIRS)) == before
    assert outcomes(result) == {"dt=1": Outcome.MISPLACED.code}


def test_what_lies_in_a_directory_of_its_own_there_is_not_moved_up(monkeypatch):
    desk = a_desk()
    before = make_theirs(desk, {"part-00000.parquet": 1000, "old/part-1.parquet": 1000})
    for place in (THEIRS, f"{THEIRS}/old"):
        give_rights(desk, place, owner="fin", group="fin", mode=0o750)
    act_before_live_is_settled(desk, put_there, monkeypatch)
    desk.compact()
    put_back(desk)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_impalas_staging_directory_is_not_moved_into_it():
    """There it would be a writer at work."""
    desk = a_desk()
    make_theirs(desk, {"part-00000.parquet": 1000})
    desk.world.files.writer.make_directory(f"{desk.live('dt=1')}/_impala_insert_staging")
    desk.world.wait(3_600_000)
    at(desk, ["rename_exact", "/retired/u00001/_impala_insert_staging"], lambda: put_there(desk))
    desk.compact()
    put_back(desk)
    assert [entry.name for entry in desk.world.files.look([THEIRS])[THEIRS].entries] == ["part-00000.parquet"]


@pytest.mark.parametrize(
    ("rights", "is_merged"),
    [
        ({"owner": "fin", "mode": 0o755}, False),
        ({"mode": 0o755}, False),
        ({"mode": 0o1775}, False),
        ({"mode": 0o775}, True),
    ],
    ids=["of another owner", "to which fewer may write", "in which only owners delete", "alike"],
)
def test_an_older_directory_that_comes_in_the_gap_is_merged_only_if_nobody_gets_more_rights(rights, is_merged):
    """Who may rename another table's directory may not delete its files; in a directory of their own they could."""
    desk = a_desk()
    make_theirs(desk, {"part-00000.parquet": 1001})
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o775)
    give_rights(desk, THEIRS, **rights)
    at(desk, [f"/ready/u00001 {live}"], lambda: desk.world.files.namespace.rename(THEIRS, live))
    result = desk.compact()
    assert (f"{live}/part-00000.parquet" in desk.world.files.contents(live)) is is_merged
    assert outcomes(result) == {"dt=1": "swapped" if is_merged else Outcome.MISPLACED.code}


@pytest.mark.parametrize("is_around", [False, True], ids=["it", "one around it"])
def test_an_older_directory_that_is_renamed_into_live_is_not_moved_up_if_fewer_may_write_to_it(monkeypatch, is_around):
    desk = a_desk()
    before = make_theirs(desk, {"payment.parquet": 1000})
    live, namespace = desk.live("dt=1"), desk.world.files.namespace
    give_rights(desk, live, mode=0o777)

    def come_in_the_gap():
        desk.world.files.writer.make_directory(f"{desk.live()}/.new")
        namespace.rename(THEIRS, f"{desk.live()}/.new/x")
        namespace.rename(f"{desk.live()}/.new", live)

    if is_around:
        at(desk, [f"/ready/u00001 {live}"], come_in_the_gap)
    else:
        act_before_live_is_settled(desk, lambda _: namespace.rename(THEIRS, f"{live}/x"), monkeypatch)
    result = desk.compact()
    assert outcomes(result) == {"dt=1": Outcome.MISPLACED.code}
    namespace.rename(f"{live}/x", THEIRS)
    assert sorted(desk.world.files.contents(THEIRS)) == before


def test_one_inside_a_new_one_that_comes_in_the_gap_is_not_merged_with_one_of_its_name_to_which_more_may_write():
    desk = a_desk()
    make_theirs(desk, {"payment.parquet": 1000})
    theirs, live, files = desk.world.files.namespace.find(THEIRS), desk.live("dt=1"), desk.world.files

    def come():
        files.writer.make_directory(f"{desk.live()}/.new")
        files.namespace.rename(THEIRS, f"{desk.live()}/.new/x")
        files.namespace.rename(f"{desk.live()}/.new", live)

    def make_its_name():
        files.writer.make_directory(f"{live}/x")
        give_rights(desk, f"{live}/x", mode=0o777)

    waiting = act_in_turn(desk, ([f"/ready/u00001 {live}"], come), (["rename_exact", "/recreated/u00001.0/x "], make_its_name))
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert not waiting
    assert list(theirs.children) == ["payment.parquet"]


def test_a_directory_that_was_made_before_the_copies_is_older():
    desk = a_desk()
    live, files = desk.live("dt=1"), desk.world.files

    def make():
        make_theirs(desk, {"payment.parquet": 1000})
        give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755)

    waiting = act_in_turn(desk, (["/stage/"], make), ([f"/ready/u00001 {live}"], lambda: files.namespace.rename(THEIRS, live)))
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert not waiting
    assert f"{live}/payment.parquet" not in files.contents(live)


@pytest.mark.parametrize("is_put_back", [False, True])
def test_an_older_directory_that_the_run_may_not_look_at_stays_aside_and_the_unit_does_not(monkeypatch, is_put_back):
    desk = a_desk()
    make_theirs(desk, {"payment.parquet": 1000})
    give_rights(desk, THEIRS, owner="bob", group="bob", mode=0o700)
    live, files = desk.live("dt=1"), desk.world.files

    def refuse(call):
        def checked(paths, *more, **named):
            if any("/recreated/u" in path for path in paths):
                raise NoPermission(THEIRS)
            return call(paths, *more, **named)

        return checked

    for method in ("attributes", "look"):
        monkeypatch.setattr(files, method, refuse(getattr(files, method)))
    disturb = ([f"{live} ", "/retired/"], lambda: files.writer.open(f"{live}/open.parquet"))
    come = ([f"/{'retired' if is_put_back else 'ready'}/u00001 {live}"], lambda: files.namespace.rename(THEIRS, live))
    waiting = act_in_turn(desk, *[disturb] * is_put_back, come)
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert not waiting
    assert desk.recover().tables[0].problem is None
    assert files.contents(live)


@pytest.mark.parametrize("is_merged", [False, True], ids=["to be moved up", "to be merged"])
def test_the_rights_that_count_are_those_of_the_directory_that_the_files_would_go_to(monkeypatch, is_merged):
    """Another one with other rights is at its place while rights are asked for."""
    desk = a_desk()
    make_theirs(desk, {"payment.parquet": 1000})
    live, files, namespace = desk.live("dt=1"), desk.world.files, desk.world.files.namespace
    theirs, target, decoy, met = namespace.find(THEIRS), f"{live}/x" if is_merged else live, desk.live(".decoy"), []
    files.writer.make_directory(decoy)
    attributes = files.attributes

    def ask_of_the_decoy(paths, ids):
        if target not in paths or met:
            return attributes(paths, ids)
        met.append(target)
        namespace.rename(target, desk.live(".aside"))
        namespace.rename(decoy, target)
        found = attributes(paths, ids)
        namespace.rename(target, decoy)
        namespace.rename(desk.live(".aside"), target)
        return found

    def come_in_the_gap():
        files.writer.make_directory(f"{desk.live()}/.new")
        namespace.rename(THEIRS, f"{desk.live()}/.new/x")
        namespace.rename(f"{desk.live()}/.new", live)
        monkeypatch.setattr(files, "attributes", ask_of_the_decoy)

    def make_its_name():
        files.writer.make_directory(target)
        give_rights(desk, target, mode=0o777)

    def come_into_live(_):
        give_rights(desk, live, mode=0o777)
        namespace.rename(THEIRS, f"{live}/x")
        monkeypatch.setattr(files, "attributes", ask_of_the_decoy)

    if is_merged:
        act_in_turn(desk, ([f"/ready/u00001 {live}"], come_in_the_gap), (["rename_exact", "/recreated/u00001.0/x "], make_its_name))
    else:
        act_before_live_is_settled(desk, come_into_live, monkeypatch)
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert met
    assert list(theirs.children) == ["payment.parquet"]


def test_older_counts_from_the_runs_own_directory_with_the_new_files_on(monkeypatch):
    """Not from one that somebody has put in its place, with the new files in it, which may be as old as they like."""
    desk = a_desk()
    live, files, namespace = desk.live("dt=1"), desk.world.files, desk.world.files.namespace
    files.writer.make_directory(desk.live(".mine"))
    desk.world.wait(3_600_000)

    def come_into_mine(_):
        give_rights(desk, desk.live(".mine"), mode=0o777)
        for path in list(files.contents(live)):
            namespace.rename(path, f"{desk.live('.mine')}{path[len(live) :]}")
        namespace.rename(live, desk.live(".aside"))
        namespace.rename(desk.live(".mine"), live)
        namespace.rename(THEIRS, f"{live}/x")

    act_in_turn(desk, (["/stage/"], lambda: make_theirs(desk, {"payment.parquet": 1000})))
    act_before_live_is_settled(desk, come_into_mine, monkeypatch)
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert f"{live}/payment.parquet" not in files.contents(live)


def test_older_directories_cost_two_calls_and_count(monkeypatch, caplog):
    desk = a_desk()
    make_theirs(desk, {f"x{number}/payment.parquet": 1000 for number in range(50)})
    live, files, calls, counted = desk.live("dt=1"), desk.world.files, [], []
    attributes, lift_nested = files.attributes, arrivals.lift_nested

    def come(_):
        give_rights(desk, live, mode=0o777)
        for number in range(50):
            files.namespace.rename(f"{THEIRS}/x{number}", f"{live}/x{number}")
        monkeypatch.setattr(files, "attributes", lambda *asked: calls.append(asked) or attributes(*asked))

    def lift(run, *given):
        found = lift_nested(run, *given)
        counted.append((run.moved_up.number, len(calls)))
        return found

    monkeypatch.setattr(arrivals, "lift_nested", lift)
    act_before_live_is_settled(desk, come, monkeypatch)
    assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert counted == [(50, 2)]
    assert caplog.text.count("step=lift-nested left=50") == arrivals.MOST_TOLD


def test_what_a_run_has_left_aside_as_older_is_not_merged_by_its_recovery():
    desk = a_desk()
    live, files = desk.live("dt=1"), desk.world.files
    give_rights(desk, live, mode=0o777)
    waiting = act_in_turn(
        desk,
        (["/stage/"], lambda: make_theirs(desk, {"payment.parquet": 1000})),
        (["rename_exact", f"/ready/u00001 {live}"], lambda: files.namespace.rename(THEIRS, live)),
        (["remove_empty", "/recreated/u00001.0"], lambda: files.die_after(0)),
    )
    with pytest.raises(Killed):
        desk.compact()
    assert not waiting
    revive(desk)
    desk.recover()
    assert f"{live}/payment.parquet" not in files.contents(live)


def test_what_is_older_counts_in_a_recovery_from_no_directory_that_somebody_has_put_in_place_of_the_new_one():
    """One made since the run began, with the new files in it, and before the directory of the other table."""
    desk = a_desk()
    live, mine, files, namespace = desk.live("dt=1"), desk.live(".mine"), desk.world.files, desk.world.files.namespace
    give_rights(desk, live, mode=0o777)

    def make():
        files.writer.make_directory(mine)
        give_rights(desk, mine, mode=0o777)
        make_theirs(desk, {"payment.parquet": 1000})

    waiting = act_in_turn(
        desk,
        (["/stage/"], make),
        (["rename_exact", f"/ready/u00001 {live}"], lambda: namespace.rename(THEIRS, live)),
        (["remove_empty", "/recreated/u00001.0"], lambda: files.die_after(0)),
    )
    with pytest.raises(Killed):
        desk.compact()
    assert not waiting
    revive(desk)
    for path in list(files.contents(live)):
        namespace.rename(path, f"{mine}{path[len(live) :]}")
    namespace.rename(live, desk.live(".aside"))
    namespace.rename(mine, live)
    desk.recover()
    assert f"{live}/payment.parquet" not in files.contents(live)


def test_nor_from_what_is_at_its_place_after_the_new_files_were_given_up():
    """An old directory at the place of a table without partitions has them given up; the run is killed before its entry."""
    world = World()
    world.add_table(a_table([], create_time=5), {"": [1000] * 3})
    desk = Desk(world, backup_table=False)
    live, files, namespace, theirs = desk.live(), world.files, world.files.namespace, []
    give_rights(desk, live, mode=0o777)
    files.writer.add(f"{live}_old/x.parquet", DataFile(("x",)), 1000)

    def make():
        make_theirs(desk, {"payment.parquet": 1000})
        theirs.append(namespace.find(THEIRS))

    waiting = act_in_turn(
        desk,
        (["/stage/"], make),
        (["rename_exact", f"/ready/u00001 {live}"], lambda: namespace.rename(f"{live}_old", live)),
        (["write_new", "entry.json"], lambda: files.die_after(0)),
    )
    with pytest.raises(Killed):
        desk.compact()
    assert not waiting
    revive(desk)
    namespace.rename(live, f"{live}_old")
    namespace.rename(THEIRS, live)
    desk.recover()
    assert list(theirs[0].children) == ["payment.parquet"]


@pytest.mark.parametrize("is_killed", [True, False], ids=["a recovery", "a call that fails"])
def test_nothing_is_merged_into_an_empty_one_that_leaves_in_place_of_the_units(is_killed):
    """Such as a new partition. It looks as if its own had been emptied by who overwrites it."""
    desk = a_desk()
    live, files, namespace = desk.live("dt=1"), desk.world.files, desk.world.files.namespace
    files.writer.make_directory(THEIRS)
    give_rights(desk, THEIRS, owner="fin", group="fin", mode=0o755)
    theirs = namespace.find(THEIRS)
    desk.world.wait(3_600_000)

    def interrupt():
        files.writer.add(f"{live}/mine.parquet", DataFile(("mine",)), 100)
        if is_killed:
            files.die_after(0)
        else:
            desk.world.fail_call("rename_exact", done=False)

    waiting = act_in_turn(
        desk, (["rename_exact", f"{live} ", "/retired/"], lambda: put_there(desk)), (["rename_exact", f"/retired/u00001 {live}"], interrupt)
    )
    with pytest.raises(Killed) if is_killed else nullcontext():
        assert outcomes(desk.compact()) == {"dt=1": Outcome.MISPLACED.code}
    assert not waiting
    revive(desk)
    desk.recover()
    assert not theirs.children
