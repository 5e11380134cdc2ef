"""No command trusts records that others may have written, or touches anything because of them."""

from __future__ import annotations

import fnmatch
import shlex
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import compact_swap
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk, outcomes
from support.fakes.files import FakeFiles
from support.world import World


def discarding_all(desk):
    return replace(desk.settings, min_age_ms=0)


COMMANDS = {
    "compact-swap": lambda desk: desk.compact(),
    "compact-swap --dry-run": lambda desk: desk.compact(dry_run=True),
    "rollback": lambda desk: desk.rollback(),
    "rollback --dry-run": lambda desk: desk.rollback(dry_run=True),
    "cleanup": lambda desk: desk.cleanup(discarding_all(desk)),
    "cleanup --dry-run": lambda desk: desk.cleanup(discarding_all(desk), dry_run=True),
    "recover": lambda desk: desk.recover(),
    "history": lambda desk: desk.history(),
    "verify": lambda desk: desk.verify(),
    "analyze": lambda desk: desk.analyze(),
    "backup": lambda desk: desk.backup(),
    "pin": lambda desk: desk.pin(desk.runs[0]),
}
READERS = {name for name in COMMANDS if "dry" in name or name in ("history", "verify", "analyze")}
OF_RUN = ["runs/RUN", "runs/RUN/plan.json", "runs/RUN/certificates-1.jsonl", "runs/RUN/retired"]
RECORDS = ["", "log", "runs", "log/ENTRY", *OF_RUN, "_lock", names.SEAL]
FILES = [record for record in RECORDS if "." in record or record in ("log/ENTRY", names.SEAL)]


@pytest.fixture
def desk():
    """A table with a backup from one run, and with new small files."""
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    desk = Desk(world)
    assert desk.compact().code is Exit.DONE
    desk.append("dt=1", "a", "b", "c")
    return desk


def node_of(desk, record):
    place = record.replace("ENTRY", names.log_entry(0)).replace("RUN", desk.runs[0])
    path = names.join(desk.control.top, place) if place else desk.control.top
    node = desk.world.files.namespace.find(path)
    assert node is not None, path
    return node


def give(node, **attributes):
    node.attributes = replace(node.attributes, **attributes)


def picture(desk):
    """Every file except the lock, which names its holder, and the rights of everything."""
    nodes = desk.world.files.namespace.walk(names.parent(desk.live()))
    return {path: (node.attributes, node.content) for path, node in nodes if path != desk.control.lock}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_belongs_to_another_user_is_believed_by_no_command(desk, command, record):
    give(node_of(desk, record), owner="loader")
    before = picture(desk)
    result = COMMANDS[command](desk)
    (outcome,) = result.tables
    assert result.code is Exit.INVESTIGATE
    assert outcome.problem.code is Code.RECORDS_OF_ANOTHER
    assert "loader" in outcome.problem.what
    assert picture(desk) == before


@pytest.mark.parametrize("record", FILES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_record_that_the_group_may_write_to_is_believed_by_no_command(desk, command, record):
    give(node_of(desk, record), file_mode=0o664)
    before = picture(desk)
    result = COMMANDS[command](desk)
    assert result.code is Exit.INVESTIGATE
    assert result.tables[0].problem.code is Code.RECORDS_WRITABLE
    assert picture(desk) == before


def test_the_command_that_is_told_takes_the_right_to_write_from_all_of_them(desk):
    """After `hdfs dfs -chmod -R g+w` of the table's directory, for example."""
    files, top = desk.world.files.namespace, desk.control.top
    desk.world.files.write_new(desk.control.mark, "{}")
    for _, node in [(top, files.find(top)), *files.walk(top)]:
        give(node, mode=node.mode | 0o020, file_mode=0o660)
    problem = desk.compact().tables[0].problem
    assert problem.code is Code.RECORDS_WRITABLE
    *_, wanted, pattern = shlex.split(problem.next.partition("owner: ")[2])
    assert wanted == top
    above, _, parts = pattern.rstrip("}").partition("/{")
    assert above == top
    found = {path for path, _ in files.walk(top) for part in parts.split(",") if matches(path, f"{top}/{part}")}
    for node in (files.find(path) for path in [top, *found]):
        give(node, mode=node.mode & ~0o022, file_mode=0o640)
    assert desk.compact().tables[0].problem is None


def matches(path, pattern):
    """As Hadoop's patterns do, of which none matches a slash."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


@pytest.mark.parametrize("record", [record for record in RECORDS if record not in FILES])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_of_ours_is_tightened_by_those_that_write_and_passed_by_those_that_read(desk, command, record):
    node = node_of(desk, record)
    give(node, mode=0o775, file_mode=0o664)
    assert COMMANDS[command](desk).code is Exit.DONE
    assert bool(node.mode & 0o022) is (command in READERS)


@pytest.mark.parametrize("command", COMMANDS)
def test_records_of_a_trusted_owner_are_believed(desk, command):
    for record in RECORDS:
        give(node_of(desk, record), owner="hive-before")
    trusting = Desk(desk.world, trusted_owners=("hive-before",))
    trusting.runs = desk.runs
    result = COMMANDS[command](trusting)
    # A run cannot change the rights of another user's file; the files that it creates beside it are its own.
    assert result.tables[0].problem is None, result.tables[0].problem


def test_a_control_directory_that_somebody_made_beforehand_gets_no_lock_and_no_other_table_waits(desk):
    world = desk.world
    world.add_table(a_table(name="orders"), {"": [1000] * 3})
    top = Desk(world, "sales.orders").control.top
    world.files.make_directory(f"{top}/runs/20260101t000000z-0000/retired")
    for _, node in [("", world.files.namespace.find(top)), *world.files.namespace.walk(top)]:
        give(node, owner="loader", mode=0o777)
    selected = Selection(tables=("sales.orders", desk.table))
    result = compact_swap.compact_swap(a_context(world.cluster, selected, "20260103t000000z-0000"))
    refused, done = result.tables
    assert refused.problem.code is Code.RECORDS_OF_ANOTHER
    assert world.files.stat(f"{top}/_lock") is None
    assert done.problem is None
    assert {unit.outcome.code for unit in done.units if unit.name == "dt=1"} == {"swapped"}


def test_a_control_directory_that_is_replaced_while_the_lock_is_taken_is_not_believed(desk):
    world, top = desk.world, desk.control.top

    def replace_it(step):
        if step.startswith("hold ") and world.files.stat(top + ".ours") is None:
            world.files.writer.rename_into(top, top + ".ours")
            world.files.writer.make_directory(f"{top}/log")
            give(world.files.namespace.find(top), owner="loader", mode=0o777)

    world.files.before_step = replace_it
    result = desk.compact()
    assert result.tables[0].problem.code is Code.UNKNOWN_FILES
    assert world.files.stat(f"{top}/runs") is None


@pytest.mark.parametrize(("finds_by_id", "expected"), [(True, Exit.DONE), (False, Exit.LOCKED)])
def test_a_control_directory_that_is_put_in_place_after_the_look_at_its_owner_is_not_followed(desk, finds_by_id, expected):
    """A tenant keeps one ready, with an interrupted run, and renames it there at the right moment: our lock is not in it."""
    world, away = desk.world, "hdfs://nn/warehouse/sales/away"
    world.files.finds_by_id = finds_by_id
    desk.kill_before(["rename_exact", "retired", f" {desk.live('dt=1')}"], desk.rollback)
    forged = f"{away}/forged"
    world.files.writer.make_directory(away)
    world.files.writer.rename_into(desk.control.top, forged)
    world.files.hold(desk.control.lock, "us").release()
    before = [path for path in world.picture() if path.startswith(desk.live("dt="))]
    exposed = world.files.exposed

    def then_swap(top, levels):
        found = exposed(top, levels)
        if levels:
            world.files.exposed = exposed
            world.files.writer.rename_into(desk.control.top, f"{away}/honest")
            world.files.writer.rename_into(forged, desk.control.top)
        return found

    world.files.exposed = then_swap
    assert desk.recover().code is expected
    assert [path for path in world.picture() if path.startswith(desk.live("dt="))] == before


def test_without_the_control_directory_there_is_no_history_and_the_table_is_compacted_as_a_new_one(desk):
    before = desk.world.rows_of(desk.table)
    desk.world.files.writer.rename_into(desk.control.top, names.join(desk.live(), "taken"))
    desk.world.files.writer.rename_into(names.join(desk.live(), "taken"), names.join(names.parent(desk.live()), "taken"))
    assert outcomes(desk.compact())["dt=1"] == "swapped"
    assert desk.world.rows_of(desk.table) == before
    assert [entry.run for entry in desk.log().runs] == desk.runs[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_of_somebody_else_is_not_searched(desk, command, monkeypatch):
    """It may hold millions of files, and for each of them the file system may be asked for an ACL."""
    node = node_of(desk, "")
    node.attributes = replace(node.attributes, owner="mallory")
    searched, exposed = [], FakeFiles.exposed

    def search(self, top, levels):
        searched.append(levels)
        return exposed(self, top, levels)

    monkeypatch.setattr(FakeFiles, "exposed", search)
    assert COMMANDS[command](desk).code is Exit.INVESTIGATE
    assert set(searched) == {0}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_somebody_has_filled_a_control_directory_with_is_not_listed(desk, command, monkeypatch):
    """A million files would take the memory of the driver."""
    node = node_of(desk, "")
    node.attributes = replace(node.attributes, owner="mallory")
    for nth in range(50):
        desk.world.add_file(names.join(desk.control.top, f"junk{nth}"), [], 0)
    listed, look = [], FakeFiles.look

    def tell(self, directories, *most):
        seen = look(self, directories, *most)
        listed.extend(len(one.entries) for one in seen.values() if list(directories) == [desk.control.top])
        return seen

    monkeypatch.setattr(FakeFiles, "look", tell)
    assert COMMANDS[command](desk).code is Exit.INVESTIGATE
    assert not any(listed)


@pytest.mark.parametrize("moment", ["make_directory", "guard"])
def test_a_record_that_others_may_write_to_is_not_made_trusted_by_a_run_under_which_it_is_put(moment):
    """Where `owner` is try or ignore, live has files of our user that others may append to, and control directories can be made of."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    desk = Desk(world, backup_table=False)
    desk.compact(where="dt = '1'")
    top, fake, aside, space = desk.control.top, f"{desk.live()}/.fake", f"{desk.live()}/.aside", world.files.namespace
    entry = names.log_entry(0)
    text = space.file(f"{desk.control.log}/{entry}").content.replace('"userName": "etl"', '"userName": "mallory"')
    assert "mallory" in text
    for directory in ("runs", "log"):
        space.make_directory(f"{fake}/{directory}")
    space.create(f"{fake}/log/{entry}", text, len(text))
    space.create(f"{fake}/_lock", "", 0)
    for _, node in [("", space.find(fake)), *space.walk(fake)]:
        node.attributes = replace(node.attributes, owner="hive", mode=0o775, file_mode=0o664)
    done = []

    def exchange(what):
        if what.startswith(f"{moment} ") and not done:
            done.append(what)
            for path in [path for path, node in space.walk(f"{top}/runs") if node.is_dir]:
                space.make_directory(fake + path[len(top) :])
            space.rename(top, aside)
            space.rename(fake, top)

    world.files.before_step = exchange
    desk.compact()
    world.files.before_step = None
    assert done
    world.files.expire_locks()
    assert space.find(f"{top}/log/{entry}").mode == 0o664
    assert desk.history().code is Exit.INVESTIGATE
