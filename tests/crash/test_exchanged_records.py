"""Control directories that somebody exchanges between the check of their owner and the reading of a record, and changes back: nobody
believes the other records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, List

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.world import World

# All that read records; analyze says in a warning that it did not.
COMMANDS = ("recover", "compact", "rollback", "cleanup", "history", "verify", "backup")


@built_once
def build(interrupted: bool) -> Desk:
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world)
    desk.compact()
    desk.append("dt=1", "a", "b", "c")
    if interrupted:
        desk.kill_before(["rename_exact", "ready/", f" {desk.live('dt=1')}"], desk.compact)
    return desk


class Tenant:
    """A user who may write to the table's root, with a copy of the control directory: same names and texts, but their own files."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.space = desk, desk.world.files.namespace
        self.top, self.mine, self.aside = desk.control.top, f"{desk.live()}/.mine", f"{desk.live()}/.aside"
        self.is_exchanged = False
        for path, node in list(self.space.walk(self.top)):
            copy = self.mine + path[len(self.top) :]
            if node.is_dir:
                self.space.make_directory(copy)
            else:
                self.space.create(copy, node.content, node.length)
        for node in [self.space.find(self.mine), *(node for _, node in self.space.walk(self.mine))]:
            assert node is not None
            node.attributes = replace(node.attributes, owner="loader")

    def exchange(self) -> None:
        if not self.is_exchanged:
            self.space.rename(self.top, self.aside)
            self.space.rename(self.mine, self.top)
            self.is_exchanged = True

    def change_back(self) -> None:
        if self.is_exchanged:
            self.space.rename(self.top, self.mine)
            self.space.rename(self.aside, self.top)
            self.is_exchanged = False

    def during(self, methods: List[str]) -> None:
        """Exchange just before each of these calls, and change back after it."""
        files = self.desk.world.files
        for method in methods:
            setattr(files, method, self._exchanged(getattr(files, method)))

    def _exchanged(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def called(asked: Any) -> Any:
            self.exchange()
            try:
                found = call(asked)
                return found if isinstance(found, dict) else list(found)
            finally:
                self.change_back()

        return called


def picture(desk: Desk) -> Any:
    """Every file but the lock, which names its holder."""
    return {path: content for path, content in desk.world.files.contents(desk.live()).items() if names.base(path) != "_lock"}


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"history", "verify"}))
def test_records_in_the_place_of_those_beside_the_lock_are_not_read(command):
    desk = build(interrupted=True)
    Tenant(desk).during(["read_texts", "read_pieces"])
    rows = desk.world.rows_below(desk.live())
    assert getattr(desk, command)().code is Exit.DONE
    assert desk.world.rows_below(desk.live()) == rows


@built_once
def build_without_ids(interrupted: bool) -> Desk:
    """Behind a router or a mount."""
    desk = build(interrupted)
    desk.world.files.finds_by_id = False
    return desk


@pytest.mark.parametrize("command", COMMANDS)
def test_records_that_were_exchanged_between_their_listing_and_their_reading_are_not_believed(command):
    desk = build_without_ids(interrupted=False)
    tenant = Tenant(desk)
    tenant.during(["read_texts", "read_pieces"])
    before = picture(desk)
    result = getattr(desk, command)()
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is Code.RECORDS_OF_ANOTHER
    assert "put in the place of a record" in result.tables[0].problem.what
    assert picture(desk) == before


def test_a_plan_that_is_missing_while_somebody_has_exchanged_the_directory_costs_no_row():
    desk = build_without_ids(interrupted=True)
    Tenant(desk).during(["read_pieces"])
    rows = desk.world.rows_below(desk.live())
    result = desk.recover()
    assert result.tables[0].problem.code is Code.UNKNOWN_FILES
    assert desk.world.rows_below(desk.live()) == rows


@pytest.mark.parametrize("command", COMMANDS)
def test_records_that_were_exchanged_between_the_check_and_their_listing_are_not_believed(command):
    desk = build_without_ids(interrupted=False)
    tenant, files = Tenant(desk), desk.world.files
    look, read_texts = files.look, files.read_texts

    def look_at_theirs(directories, *limits):
        if desk.control.log in directories:
            tenant.exchange()
        return look(directories, *limits)

    def read_theirs(listed):
        found = read_texts(listed)
        tenant.change_back()
        return found

    files.look, files.read_texts = look_at_theirs, read_theirs
    result = getattr(desk, command)()
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is Code.RECORDS_OF_ANOTHER
    assert "belongs to loader" in result.tables[0].problem.what


def test_a_plan_that_was_exchanged_before_its_status_is_asked_is_not_believed():
    desk = build_without_ids(interrupted=True)
    tenant, files = Tenant(desk), desk.world.files
    stat = files.stat

    def stat_theirs(path):
        if names.base(path) != "plan.json":
            return stat(path)
        # The takeover has renamed the run's directory: the tenant does the same with the copy.
        ours, theirs = names.parent(path), tenant.mine + names.parent(path)[len(tenant.top) :]
        tenant.space.rename(theirs.rpartition(".t")[0], theirs)
        assert files.namespace.find(ours) is not None
        tenant.exchange()
        try:
            return stat(path)
        finally:
            tenant.change_back()

    files.stat = stat_theirs
    result = desk.recover()
    assert result.code is Exit.INVESTIGATE
    assert "belongs to loader" in result.tables[0].problem.what


def test_a_plan_that_seems_to_be_missing_costs_no_file_of_its_run():
    desk = build(interrupted=True)
    files, rows = desk.world.files, desk.world.rows_below(desk.live())
    stat = files.stat
    files.stat = lambda path: None if names.base(path) == "plan.json" else stat(path)
    result = desk.recover()
    assert result.tables[0].problem.code is Code.UNKNOWN_FILES
    assert desk.world.rows_below(desk.live()) == rows
    files.stat = stat
    assert desk.recover().code is Exit.DONE


SALARIES = "hdfs://nn/warehouse/sales/salaries"


def rights_below(world: World, top: str) -> List[Any]:
    found = world.files.namespace.find(top)
    assert found is not None
    return [(node.attributes.owner, node.attributes.group, node.mode) for node in (found, *found.children.values())]


EXCHANGED_BEFORE = [("dress", "=1"), ("dress", "/b00000"), ("guard", "/runs"), ("delete_file", "/clock"), ("delete_tree", "")]


@pytest.mark.parametrize(("method", "end"), EXCHANGED_BEFORE)
def test_another_tables_directory_in_an_exchanged_control_directory_is_not_changed(method: str, end: str) -> None:
    """Who may rename it, which takes no right on it, can put it at the path that the run changes next."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": [1000] * 2})
    for node in (world.files.namespace.find(SALARIES), *world.files.namespace.directory(SALARIES).children.values()):
        assert node is not None
        node.attributes = replace(node.attributes, owner="alice", group="hr", mode=0o700, file_mode=0o600)
    desk, rows, done = Desk(world, backup_table=False), set(world.rows_of("sales.salaries")), []  # type: Any, Any, List[str]
    victim, before = world.files.namespace.find(SALARIES), rights_below(world, SALARIES)

    def exchange(step: str) -> None:
        word, _, path = step.partition(" ")
        if word == method and path.endswith(end) and not done:
            done.append(path)
            world.files.writer.rename_into(desk.control.top, f"{desk.live()}/.aside")
            world.files.writer.make_directory(names.parent(path))
            world.files.writer.rename_into(SALARIES, path)

    world.files.before_step = exchange
    desk.compact()
    world.files.before_step = None
    assert done
    assert world.files.namespace.find(done[0]) is victim
    assert rights_below(world, done[0]) == before
    assert rows <= set(world.rows_anywhere())


def test_another_tables_directory_in_an_exchanged_control_directory_does_not_go_to_the_trash() -> None:
    """From there it would be deleted some days later, whatever its owner allows."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": [1000] * 2})
    desk, done = Desk(world, backup_table=False), []  # type: Any, List[str]
    desk.compact()
    victim = world.files.namespace.find(SALARIES)

    def exchange(step: str) -> None:
        word, _, path = step.partition(" ")
        if word == "move_to_trash" and not done:
            done.append(path)
            put_other_table(desk, path)

    world.files.before_step = exchange
    desk.cleanup(how="trash")
    world.files.before_step = None
    assert done
    assert world.files.namespace.find(done[0]) is victim


def put_other_table(desk: Desk, path: str) -> None:
    """Exchange the control directory for one that has another table's directory at this path."""
    writer = desk.world.files.writer
    writer.rename_into(desk.control.top, f"{desk.live()}/.aside")
    writer.make_directory(names.parent(path))
    writer.rename_into(SALARIES, path)


def run_with_exchange(desk: Desk, command: Callable[[], object], state: str) -> str:
    """Run a command; the control directory is exchanged just before it looks at the unit in this state. Returns the unit's path."""
    files, done = desk.world.files, []  # type: Any, List[str]
    look = files.look

    def exchange(places: Any, *most: int) -> Any:
        found = [one for one in places if one.endswith(f"/{state}/u00001") and files.namespace.find(one) is not None]
        if found and not done:
            done.append(found[0])
            put_other_table(desk, found[0])
        return look(places, *most)

    files.look = exchange
    command()
    files.look = look
    return done[0]


@pytest.mark.parametrize("place", ["held", "retired"])
def test_files_of_another_table_in_an_exchanged_control_directory_are_not_taken_for_late_ones(place: str) -> None:
    """They would be moved into the partition of whoever had put them there, who may read and delete them then."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": [1000] * 2})
    for path in list(world.files.contents(SALARIES)):
        world.files.writer.rename_into(path, f"{SALARIES}/of-{names.base(path)}")
    desk = Desk(world, backup_table=False)
    victim = world.files.namespace.find(SALARIES)
    if place == "held":
        desk.compact()
    else:
        # So young that its time alone proves nothing: the old files are looked at where they went.
        world.add_file(f"{desk.live('dt=1')}/late.parquet", ["late"])
    done = run_with_exchange(desk, desk.cleanup if place == "held" else desk.compact, place)
    assert world.files.namespace.find(done) is victim
    assert len(victim.children) == 2


def test_a_staging_directory_of_another_table_in_an_exchanged_control_directory_stays_there() -> None:
    """Impala writes the files of a statement there; they would be in the partition of whoever had put them at that path."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": [1000] * 2})
    world.add_file(f"{SALARIES}/_impala_insert_staging/1_2/x.parquet", ["being written"])
    desk = Desk(world, backup_table=False)
    # So young that its time alone proves nothing: the old files are looked at where they went.
    world.add_file(f"{desk.live('dt=1')}/late.parquet", ["late"])
    victim = world.files.namespace.find(SALARIES)
    run_with_exchange(desk, desk.compact, "retired")
    assert "_impala_insert_staging" in victim.children
