"""A user who could not read the rows can never read anything about them below a control directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support import joined_desk
from support.builders import a_table
from support.desk import Desk, outcomes
from support.fakes.namespace import ROOT, parts
from support.fakes.rows import DataFile
from support.world import World

# The users and their groups: one is in the table's group, one is in none.
USERS = {"analyst": {"data"}, "stranger": set()}
TABLES = {
    "files for the owner alone, in directories for all": ({"": (0o755, 0o600)}, 0o755),
    "partitions for the group and for nobody, in a root for all": ({"dt=1": (0o750, 0o640), "dt=2": (0o755, 0o600)}, 0o755),
    "partitions that cannot be entered, in a root for all": ({"dt=1": (0o700, 0o644), "dt=2": (0o755, 0o644)}, 0o775),
    "a table for the group": ({"": (0o770, 0o660)}, 0o770),
    "partitions for the group": ({"dt=1": (0o750, 0o640), "dt=2": (0o770, 0o660)}, 0o770),
    "a partition of another group, in a table for the group": ({"dt=1": (0o750, 0o640, "hr"), "dt=2": (0o750, 0o640)}, 0o770),
    "a table for all": ({"dt=1": (0o775, 0o644), "dt=2": (0o777, 0o666)}, 0o775),
}
CLOSED = [name for name in TABLES if name != "a table for all"]


def a_desk(units, root_mode):
    world = World()
    partitioned = "" not in units
    world.add_table(a_table(["dt"] if partitioned else []), {name: [1000] * 3 for name in units})
    desk = Desk(world)
    dress(world, desk.live(), root_mode, 0o644)
    for name, rights in units.items():
        dress(world, desk.live(name), *rights)
    return desk


def dress(world, directory, mode, file_mode, group="data"):
    top = world.files.namespace.find(directory)
    for node in (top, *(child for child in top.children.values() if not child.is_dir)):
        node.attributes = replace(node.attributes, group=group, mode=mode, file_mode=file_mode)


def may(node, user, bit):
    shift = 3 if node.attributes.group in USERS[user] else 0
    return bool(node.mode >> shift & bit)


def readable_below(world, top, user):
    """Files that a user can open, with execute on all directories above and read on the file."""
    found = []
    for path, node in world.files.namespace.walk(top):
        way = [world.files.namespace.find(names.join(ROOT, *parts(path)[:depth])) for depth in range(1, len(parts(path)))]
        if not node.is_dir and may(node, user, 4) and all(may(directory, user, 1) for directory in way):
            found.append((path, node.content))
    return found


def unit_of(row):
    """Rows are named after table, unit and file."""
    return row.partition("/")[2].rpartition("/")[0]


class Watched:
    """Looks as every user at everything below the control directory, before each step of a command and at its end."""

    def __init__(self, desk):
        self.desk, self.seen = desk, set()
        live = {user: readable_below(desk.world, desk.live(), user) for user in USERS}
        self.rows = {user: {row for _, content in found for row in content.rows} for user, found in live.items()}
        self.all_rows = set(desk.world.rows_of(desk.table))

    def __call__(self, step=""):
        for user in USERS:
            for path, content in readable_below(self.desk.world, self.desk.control.top, user):
                rows = set(content.rows) if isinstance(content, DataFile) else self.all_rows
                assert rows <= self.rows[user], f"{user} reads {path} before {step or 'the end'}"
                self.seen.add((user, path))

    def act(self, command):
        self.desk.world.files.before_step = self
        result = command()
        self.desk.world.files.before_step = None
        self()
        return result


@pytest.mark.repeating
@pytest.mark.parametrize("name", TABLES)
def test_no_step_of_any_command_shows_more_than_the_table_does(name):
    desk = a_desk(*TABLES[name])
    watched = Watched(desk)
    for command in (desk.backup, desk.compact, desk.rollback, desk.compact, lambda: desk.pin(desk.runs[-1]), desk.cleanup, desk.history):
        assert watched.act(command).code is Exit.DONE


@pytest.mark.parametrize("name", TABLES)
def test_no_step_of_a_killed_compaction_and_its_recovery_shows_more_than_the_table_does(name):
    for words in (["write_new.close", "certificates"], ["rename_exact", "/ready/", "/events"], ["write_new", "entry.json"]):
        desk = a_desk(*TABLES[name])
        watched = Watched(desk)
        desk.kill_before(words, desk.compact)
        watched()
        assert watched.act(desk.recover).code is Exit.DONE


@pytest.mark.parametrize("name", TABLES)
def test_old_files_can_be_read_in_the_backup_by_those_who_could_read_the_table_and_records_by_the_group(name):
    desk = a_desk(*TABLES[name])
    watched = Watched(desk)
    desk.compact()
    watched()
    in_backup = {
        user: {row for path, content in readable_below(desk.world, desk.control.top, user) if "/retired/" in path for row in content.rows}
        for user in USERS
    }
    assert in_backup == watched.rows
    # A backup table's readers also list its own directory, which is empty.
    run = desk.control.run(desk.runs[0])
    assert desk.world.files.stat(run.state("backup_table")).mode == desk.world.files.stat(run.state("retired")).mode
    sees_all = watched.rows["analyst"] == watched.all_rows
    records = {names.base(path) for user, path in watched.seen if user == "analyst"} & {"plan.json", "_lock", names.log_entry(0)}
    assert records == ({"plan.json", "_lock", names.log_entry(0)} if sees_all else set())
    assert not any(path.endswith((".json", ".jsonl", "lock")) for user, path in watched.seen if user == "stranger")


# The rights of a partition, and whether the group `data`, which may read the table, may read all of it.
OF_ANOTHER_GROUP = {
    "one that files of another group leave open": ({"mode": 0o750, "file_mode": 0o644, "of_files": "users"}, True),
    "one of which only the files are the group's": ({"mode": 0o750, "file_mode": 0o640, "group": "hr"}, False),
    "one whose ACL keeps the group out": (
        {"mode": 0o755, "file_mode": 0o644, "group": "hr", "of_files": "hr", "acl": "---"},
        False,
    ),
    "one whose ACL lets the group in": ({"mode": 0o750, "file_mode": 0o644, "group": "hr", "of_files": "hr", "acl": "r-x"}, True),
}


@pytest.mark.parametrize("name", OF_ANOTHER_GROUP)
@pytest.mark.parametrize("command", [Desk.backup, Desk.compact])
def test_records_are_open_to_the_group_of_the_table_if_it_may_read_every_partition(command, name):
    (rights, is_open), desk = OF_ANOTHER_GROUP[name], a_desk({"dt=1": (0o750, 0o640), "dt=2": (0o750, 0o640)}, 0o750)
    top, bits = desk.world.files.namespace.find(desk.live("dt=1")), rights.get("acl")
    others = "r-x" if rights["mode"] & 0o5 else "---"
    acl = ("group::r-x", f"group:data:{bits}", "mask::r-x", f"other::{others}", "user::rwx") if bits else ()
    own(top, group=rights.get("group", "data"), mode=rights["mode"], acl=acl)
    for node in top.children.values():
        own(node, group=rights.get("of_files", "data"), mode=rights["file_mode"], file_mode=rights["file_mode"])
    command(desk)
    (entry,) = desk.world.files.look([desk.control.log])[desk.control.log].entries
    assert entry.mode == (0o640 if is_open else 0o600)


def test_a_log_that_was_closed_to_the_group_stays_closed():
    desk = a_desk({"dt=1": (0o750, 0o640), "dt=2": (0o750, 0o600)}, 0o750)
    desk.compact()
    desk.append("dt=1", "events/dt=1/8", "events/dt=1/9")
    dress(desk.world, desk.live("dt=1"), 0o750, 0o640)
    desk.compact(where="dt = '1'")
    modes = {entry.name: entry.mode for entry in desk.world.files.look([desk.control.log])[desk.control.log].entries}
    assert set(modes.values()) == {0o600}
    assert desk.world.files.stat(desk.control.log).mode == 0o700


@pytest.mark.parametrize("name", TABLES)
def test_what_is_live_after_a_compaction_has_the_rights_that_it_had(name):
    units, root_mode = TABLES[name]
    desk = a_desk(units, root_mode)
    desk.compact()
    for unit, (mode, file_mode, *_group) in units.items():
        seen = desk.world.files.look([desk.live(unit)])[desk.live(unit)]
        assert seen.mode == mode
        assert {entry.mode for entry in seen.entries if not entry.is_dir} == {file_mode}


def own(node, **attributes):
    node.attributes = replace(node.attributes, **attributes)


def an_inbox(**of_files):
    """A directory into which several users put files."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    desk = Desk(world)
    top = world.files.namespace.find(desk.live("dt=1"))
    own(top, owner="inbox", group="data", mode=0o777)
    for node in top.children.values():
        own(node, owner="alice", group="hr", file_mode=0o600)
        own(node, **of_files)
    world.files.namespace.advance(3_600_000)
    return world, desk


def rows_read_by(world, desk, user, group):
    rows = set()
    for node in world.files.namespace.find(desk.live("dt=1")).children.values():
        known = node.attributes
        shift = 6 if known.owner == user else 3 if known.group == group else 0
        if known.file_mode >> shift & 4:
            rows.update(node.content.rows)
    return rows


def test_a_file_that_somebody_adds_first_for_all_does_not_open_the_rows_of_the_others():
    world, desk = an_inbox()
    path = f"{desk.live('dt=1')}/00000.parquet"
    world.add_file(path, ["bait"])
    own(world.files.namespace.find(path), owner="mallory", group="data", file_mode=0o666)
    world.files.namespace.advance(3_600_000)
    result = desk.compact()
    assert (result.code, result.tables[0].units[0].why.code) == (Exit.REFUSED, Code.MIXED_RIGHTS)
    assert rows_read_by(world, desk, "mallory", "data") == {"bait"}


@pytest.mark.parametrize("of_files", [{"file_mode": 0o600}, {"file_mode": 0o640}, {"group": "data", "file_mode": 0o640}])
def test_a_copy_is_read_by_those_who_read_its_files(of_files):
    """Not by the owner and the group of the directory, if these are others."""
    world, desk = an_inbox(**of_files)
    readers = [("alice", "hr"), ("inbox", ""), ("member", "data"), ("member", "hr"), ("stranger", "")]
    before = [rows_read_by(world, desk, *reader) for reader in readers]
    assert desk.compact().code is Exit.DONE
    assert len(world.files.namespace.find(desk.live("dt=1")).children) == 1
    assert [rows_read_by(world, desk, *reader) for reader in readers] == before


def a_desk_with_a_closed_directory(backup_table=True):
    """Two levels of partitions; `chmod 700` on one directory of the upper level closes what is below it, whatever the modes there are."""
    world = World()
    world.add_table(a_table(["region", "dt"]), {"region=eu/dt=1": [1000] * 3, "region=us/dt=1": [1000] * 3})
    desk = Desk(world, backup_table=backup_table)
    closed, other = desk.live("region=eu/dt=1"), desk.live("region=us/dt=1")
    for directory in (closed, other, names.parent(other), desk.live()):
        dress(world, directory, 0o755, 0o644)
    dress(world, names.parent(closed), 0o700, 0o644)
    return desk


@pytest.mark.parametrize("backup_table", [True, False])
def test_old_files_of_a_partition_below_a_closed_directory_stay_closed(backup_table):
    desk = a_desk_with_a_closed_directory(backup_table)
    watched = Watched(desk)
    assert not any("region=eu" in row for rows in watched.rows.values() for row in rows)
    for command in (desk.backup, desk.compact, desk.rollback, desk.compact, desk.history):
        assert watched.act(command).code is Exit.DONE


@pytest.mark.parametrize("word", ["put ", "/ready/u00001 "], ids=["while they are copied", "while others are swapped"])
def test_old_files_of_a_partition_below_a_directory_that_is_closed_during_the_run_stay_there(word):
    """In the backup they would be below one that everybody may pass."""
    desk = a_desk_with_a_closed_directory()
    region = desk.world.files.namespace.find(desk.live("region=us"))

    def close(step):
        if word in step:
            desk.world.files.before_step = None
            region.attributes = replace(region.attributes, mode=0o700)

    dress(desk.world, desk.live("region=eu"), 0o755, 0o644)
    desk.world.files.before_step = close
    (table,) = desk.compact().tables
    assert {unit.name: unit.outcome.code for unit in table.units} == {"region=eu/dt=1": "swapped", "region=us/dt=1": "given-up"}
    assert table.units[1].why.code is Code.CHANGED_MEANWHILE
    assert not any("region=us" in row for _, content in readable_below(desk.world, desk.live(), "stranger") for row in content.rows)
    assert desk.compact().code is Exit.DONE
    found = [row for _, content in readable_below(desk.world, desk.control.top, "stranger") for row in getattr(content, "rows", ())]
    assert found and not any("region=us" in row for row in found)


def exchanged_while(files, method, one, other, asked=""):
    """Have two files, or directories, stand at one another's places whenever this is asked of the file system; if given, of `asked`."""
    ask, rename = getattr(files, method), files.namespace.rename

    def swap():
        rename(one, f"{one}.aside")
        rename(other, one)
        rename(f"{one}.aside", other)

    def ask_meanwhile(places, *more):
        if asked and asked not in places:
            return ask(places, *more)
        swap()
        try:
            return ask(places, *more)
        finally:
            swap()

    setattr(files, method, ask_meanwhile)


def test_old_files_stay_below_a_closed_directory_that_another_one_stood_in_for_when_the_run_began():
    """One of the same mode, but of a group that more users are in."""
    desk = a_desk_with_a_closed_directory()
    for name, group in (("region=eu", "hr"), ("_decoy", "data"), ("", "data")):
        place = names.join(desk.live(), name) if name else desk.live()
        if name == "_decoy":
            desk.world.files.writer.make_directory(place)
        node = desk.world.files.namespace.find(place)
        node.attributes = replace(node.attributes, group=group, mode=0o750)
    before = desk.world.rows_of(desk.table)
    exchanged_while(desk.world.files, "attributes", desk.live("region=eu"), names.join(desk.live(), "_decoy"), asked=desk.live("region=eu"))
    assert outcomes(desk.compact(where="region = 'eu'")) == {"region=eu/dt=1": "given-up"}
    assert desk.world.rows_of(desk.table) == before


def test_old_files_of_partitions_beside_a_closed_directory_stay_open():
    desk = a_desk_with_a_closed_directory()
    assert desk.compact(where="region = 'us'").code is Exit.DONE
    found = [content for path, content in readable_below(desk.world, desk.control.top, "stranger") if "/retired/" in path]
    assert len(found) == 3


def give_to(world, group, directory):
    top = world.files.namespace.find(directory)
    for node in (top, *top.children.values()):
        node.attributes = replace(node.attributes, group=group)


def test_the_log_of_a_dropped_table_is_not_opened_to_the_group_of_one_that_is_created_at_its_place():
    """By `CREATE EXTERNAL TABLE … LOCATION` or `ALTER TABLE … SET LOCATION`, its control directory becomes that table's."""
    world = World()
    world.add_table(a_table((), name="salaries", create_time=5), {"": [1000] * 3})
    victim = Desk(world, "sales.salaries", backup_table=False)
    dress(world, victim.live(), 0o750, 0o640)
    give_to(world, "hr", victim.live())
    victim.compact()
    place, log_place = victim.live(), victim.control.log
    world.drop_table("sales.salaries")
    world.add_table(a_table((), name="mine", location=place, create_time=6), {"": [1000] * 3})
    dress(world, place, 0o755, 0o644)
    world.files.namespace.advance(3_600_001)
    mine = Desk(world, "sales.mine", backup_table=False, checkpoint_interval=1)
    mine.runs = list(victim.runs)
    assert mine.compact().code is Exit.DONE
    log = world.files.namespace.find(log_place)
    first = log.children[names.log_entry(0)]
    assert (first.attributes.group, first.mode, log.mode) == ("hr", 0o640, 0o700)
    later = [node.mode for name, node in log.children.items() if name != names.log_entry(0)]
    assert len(later) > 1 and set(later) == {0o600}


CHANGES = {
    "mode": {"mode": 0o700, "file_mode": 0o600},
    "owner": {"owner": "hr"},
    "group": {"group": "hr"},
    "ACL": {"acl": ("user:etl:r-x",)},
}


@pytest.mark.parametrize("word", ["put ", "/ready/u00002 "], ids=["while it is copied", "while others are swapped"])
# A listing shows only the mask of a file's ACL.
@pytest.mark.parametrize(
    ("change", "of"), [*((what, "directory") for what in CHANGES), ("mode", "files"), ("owner", "files"), ("group", "files")]
)
def test_a_partition_that_somebody_closes_while_it_is_compacted_stays_closed(change, of, word):
    """A run may take hours. The new files would have the rights that the old ones had when it began."""
    desk = a_desk({f"dt={day}": (0o755, 0o644) for day in range(1, 4)}, 0o755)
    live = desk.world.files.namespace.find(desk.live("dt=3"))

    def close(step):
        if word in step:
            desk.world.files.before_step = None
            desk.world.clock.elapsed_ms += 60_000
            for node in [live] if of == "directory" else live.children.values():
                node.attributes = replace(node.attributes, **CHANGES[change])

    desk.world.files.before_step = close
    before = desk.world.rows_of(desk.table)
    (table,) = desk.compact().tables
    assert {unit.name: unit.outcome.code for unit in table.units} == {"dt=1": "swapped", "dt=2": "swapped", "dt=3": "given-up"}
    assert table.units[2].why.code is Code.CHANGED_MEANWHILE
    assert desk.world.files.namespace.find(desk.live("dt=3")) is live
    assert desk.world.rows_of(desk.table) == before
    assert desk.compact().code is Exit.DONE
    assert len(desk.world.files.namespace.find(desk.live("dt=3")).children) == 1


def test_a_partition_that_somebody_closes_to_the_user_of_the_run_costs_no_other_one():
    """Their rights are asked for in one call, which is refused as a whole."""
    desk = a_desk({f"dt={day}": (0o755, 0o644) for day in range(1, 5)}, 0o755)
    before = desk.world.rows_of(desk.table)

    def close(step):
        if "put " in step:
            desk.world.files.before_step = None
            desk.world.files.namespace.unreadable.add(desk.live("dt=3"))

    desk.world.files.before_step = close
    (table,) = desk.compact().tables
    assert {unit.name: unit.outcome.code for unit in table.units} == {
        "dt=1": "swapped",
        "dt=2": "swapped",
        "dt=3": "given-up",
        "dt=4": "swapped",
    }
    assert table.units[2].why.code is Code.NO_PERMISSION
    desk.world.files.namespace.unreadable.clear()
    assert desk.world.rows_of(desk.table) == before


def test_the_rights_of_many_partitions_are_read_again_in_few_calls():
    desk = a_desk({f"dt={day:03d}": (0o755, 0o644) for day in range(120)}, 0o755)
    asked, attributes = [], desk.world.files.attributes

    def count(places, *ids):
        asked.append(len(places))
        return attributes(places, *ids)

    desk.world.files.attributes = count
    assert desk.compact().code is Exit.DONE
    assert asked[-3:] == [50, 50, 20]


def test_a_closed_file_of_another_table_that_takes_a_files_place_while_that_is_copied_stays_closed():
    """Whoever may rename it, but not read it, puts both back before the swap, so that nothing has changed there."""
    world = World()
    world.add_table(a_table((), name="salaries", create_time=5), {"": [1000]})
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 3})
    victim, desk, rename = Desk(world, "sales.salaries"), Desk(world), world.files.namespace.rename
    dress(world, victim.live(), 0o755, 0o600)
    own, closed = (next(iter(world.files.contents(place))) for place in (desk.live("dt=1"), victim.live()))
    before, secret = world.rows_of(desk.table), world.rows_of(victim.table)
    done = []

    def exchange(step):
        if "/stage/b00001" in step and not done:
            rename(own, f"{own}.aside")
            rename(closed, own)
            done.append("there")
        elif "put " in step and done == ["there"]:
            rename(own, closed)
            rename(f"{own}.aside", own)
            done.append("and back")

    world.files.before_step = exchange
    assert outcomes(desk.compact()) == {"dt=1": "failed", "dt=2": "swapped"}
    assert done == ["there", "and back"]
    assert world.rows_of(desk.table) == before
    assert world.rows_of(victim.table) == secret


def test_a_closed_file_is_not_copied_with_the_rights_of_one_that_lay_there_only_while_rights_were_read():
    """Another table's, which somebody may rename, but not read."""
    desk = a_desk({"dt=1": (0o755, 0o644)}, 0o755)
    node = next(iter(desk.world.files.namespace.find(desk.live("dt=1")).children.values()))
    desk.world.files.writer.add(names.join(desk.live(), "_decoy"), DataFile(("decoy",)))
    node.attributes = replace(node.attributes, owner="hr", group="hr", file_mode=0o600)
    path = next(path for path, each in desk.world.files.namespace.walk(desk.live("dt=1")) if each is node)
    exchanged_while(desk.world.files, "file_rights", path, names.join(desk.live(), "_decoy"))
    assert outcomes(desk.compact()) == {"dt=1": "refused"}
    assert all(node.content.rows[0] not in content.rows for _, content in readable_below(desk.world, desk.live(), "stranger"))


def test_files_of_a_closed_directory_are_not_copied_with_the_rights_of_one_that_lay_there_only_while_rights_were_read():
    desk = a_desk({"dt=1": (0o700, 0o644)}, 0o755)
    node, decoy = desk.world.files.namespace.find(desk.live("dt=1")), names.join(desk.live(), "_decoy")
    node.attributes = replace(node.attributes, owner="hr", group="hr")
    desk.world.files.writer.make_directory(decoy)
    exchanged_while(desk.world.files, "attributes", desk.live("dt=1"), decoy)
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    live = desk.world.files.namespace.find(desk.live("dt=1"))
    assert (live.attributes.owner, live.attributes.group, live.mode) == ("hr", "hr", 0o700)


def test_files_are_not_copied_with_the_acl_of_those_that_lay_there_only_while_rights_were_read():
    """In another directory, with files of the same owner, group and mode: of an ACL only the mask shows in a listing."""
    desk = a_desk({"dt=1": (0o755, 0o640)}, 0o755)
    decoy = names.join(desk.live(), "_decoy")
    desk.world.files.writer.add(names.join(decoy, "x.parquet"), DataFile(("decoy",)))
    dress(desk.world, decoy, 0o755, 0o640)
    for place, user in ((desk.live("dt=1"), "alice"), (decoy, "mallory")):
        for node in desk.world.files.namespace.find(place).children.values():
            node.attributes = replace(node.attributes, file_acl=with_user(user))
    exchanged_while(desk.world.files, "file_rights", desk.live("dt=1"), decoy)
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    (copy,) = desk.world.files.namespace.find(desk.live("dt=1")).children.values()
    assert copy.attributes.file_acl == with_user("alice")


def with_user(user):
    return ("group::r--", "mask::r--", "other::---", f"user:{user}:r--", "user::rw-")


@pytest.mark.parametrize("methods", [["attributes"], ["file_rights"], ["attributes", "file_rights"]], ids=" and ".join)
def test_a_restored_file_has_not_the_rights_of_those_that_lay_there_only_while_rights_were_read(methods):
    desk = joined_desk.a_desk()
    assert desk.compact().code is Exit.DONE
    decoy = names.join(desk.live(), "_decoy")
    desk.world.files.writer.add(names.join(decoy, "x.parquet"), DataFile(("decoy",)))
    other = desk.world.files.namespace.find(decoy)
    for node in (other, *other.children.values()):
        node.attributes = replace(node.attributes, owner="mallory", file_acl=with_user("mallory"))
    for method in methods:
        exchanged_while(desk.world.files, method, desk.live("dt=1"), decoy, asked=desk.live("dt=1"))
    assert outcomes(desk.rollback())["dt=1"] == "rolled-back"
    assert joined_desk.rows(desk) == joined_desk.ALL
    rights = [node.attributes for node in desk.world.files.namespace.find(desk.live("dt=1")).children.values()]
    assert all(of.owner != "mallory" and of.file_acl == () for of in rights)


def test_files_that_somebody_closes_while_they_are_joined_stay_closed():
    desk = joined_desk.a_desk()
    files = desk.world.files.namespace.find(desk.live("dt=1")).children
    small = [node for name, node in files.items() if name != "large.parquet"]

    def close():
        for node in small:
            node.attributes = replace(node.attributes, file_mode=0o600)

    joined_desk.at(desk, ["put "], close)
    assert outcomes(desk.compact()) == {"dt=1": "given-up", "dt=2": "swapped"}
    assert [node.mode for node in files.values() if node in small] == [0o600] * 3
