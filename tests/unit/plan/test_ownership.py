"""Whose records are trusted, and which rights a control directory gets."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from hivekeeper.model import Attributes, Exposed, Guard
from hivekeeper.names import ControlPaths
from hivekeeper.plan import ownership
from hivekeeper.reasons import Code

CONTROL = ControlPaths("hdfs://nn/w/events/.hivekeeper")
RUN = CONTROL.run("20260101t020304z-0000")
ENTRY = f"{CONTROL.log}/{0:020d}.json"
DIRECTORIES = [CONTROL.top, CONTROL.log, CONTROL.runs, RUN.top, RUN.state("retired")]
FILES = [ENTRY, RUN.plan, RUN.certificates(1)]


def exposed(path, mode=0o755, owner="etl", acl=()):
    return Exposed(path, path in DIRECTORIES, owner, "data", mode, owner == "etl", tuple(acl))


def judge(*found, trusted=()):
    return ownership.judge(CONTROL, found, trusted)


@pytest.mark.parametrize("path", [*DIRECTORIES, *FILES, CONTROL.lock], ids=lambda path: path.rpartition("/")[2])
def test_what_belongs_to_another_user_is_not_believed_unless_that_user_is_trusted(path):
    found = judge(exposed(path, owner="loader"))
    assert found.why_not.code is Code.RECORDS_OF_ANOTHER
    assert f"{path} (mode 0755) belongs to loader" in found.why_not.what
    assert "trusted_owners" in found.why_not.next
    assert judge(exposed(path, owner="loader"), trusted=["loader"]) == ownership.Judgement(None, {})


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o620, 0o602], ids=oct)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.rpartition("/")[2])
def test_a_record_that_others_may_write_to_is_not_believed_whosever_it_is(path, mode):
    for owner in ("etl", "hive"):
        found = judge(exposed(path, mode, owner), trusted=["hive"])
        assert found.why_not.code is Code.RECORDS_WRITABLE
        assert "chmod go-w" in found.why_not.next


def test_the_command_that_takes_the_right_to_write_is_safe_to_copy_whatever_the_table_is_called():
    control = ControlPaths("hdfs://nn/w/it's $(reboot);`reboot`/.hivekeeper")
    found = ownership.judge(control, [Exposed(f"{control.log}/{0:020d}.json", False, "etl", "data", 0o666, True)], ())
    _, _, command = found.why_not.next.partition("owner: ")
    assert shlex.split(command)[:5] == ["hdfs", "dfs", "-chmod", "go-w", control.top]
    assert shlex.split(command)[5].startswith(f"{control.top}/{{_*,log,")


@pytest.mark.parametrize(("mode", "tight"), [(0o775, 0o755), (0o777, 0o755), (0o757, 0o755), (0o1777, 0o1755), (0o770, 0o750)])
@pytest.mark.parametrize("path", [*DIRECTORIES, CONTROL.lock], ids=lambda path: path.rpartition("/")[2])
def test_a_directory_of_ours_or_the_lock_that_others_may_write_to_is_tightened(path, mode, tight):
    assert judge(exposed(path, mode)) == ownership.Judgement(None, {path: Guard(tight)})


def test_a_record_that_an_acl_lets_a_trusted_user_write_is_not_believed_but_the_lock_is():
    acl = ("user:hive:rw-", "group::r--", "mask::rw-")
    record = exposed(RUN.plan, 0o660, acl=acl)
    assert judge(record, trusted=["hive"]).why_not.code is Code.RECORDS_WRITABLE
    assert judge(exposed(CONTROL.lock, 0o660, acl=acl), trusted=["hive"]) == ownership.Judgement(None, {})


def test_a_wide_directory_of_a_trusted_user_is_not_believed_because_only_its_owner_can_tighten_it():
    assert judge(exposed(RUN.top, 0o775, "hive"), trusted=["hive"]).why_not.code is Code.RECORDS_WRITABLE


@pytest.mark.parametrize(
    "below", [".hivekeeper.doctor-1/write/file", "notes.txt", "log/README", "log/.snap/x", "runs/README", "runs/mine/plan.json"]
)
def test_what_nothing_is_believed_of_may_be_anybodys(below):
    assert judge(exposed(f"{CONTROL.top}/{below}", 0o666, "loader")) == ownership.Judgement(None, {})


ACL = ("group::r-x", "mask::rwx", "other::---", "user::rwx")


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ("user:loader:rwx", ["the user loader"]),
        ("group:data:-w-", ["the group data"]),
        ("user:hive:rwx", []),
        ("user:etl:rwx", []),
        ("user:loader:r-x", []),
        ("default:user:loader:rwx", []),
        ("mask::rwx", []),
    ],
)
def test_an_acl_is_judged_by_its_entries(entry, named):
    one = exposed(CONTROL.top, 0o770, acl=(*ACL, entry))
    assert ownership.writers(one, ["hive"]) == named
    assert bool(judge(one, trusted=["hive"]).tighten) is bool(named)


def test_the_owning_groups_entry_counts_as_the_group():
    acl = ("group::rwx", "mask::rwx", "other::---", "user::rwx", "user:bob:r-x")
    assert ownership.writers(exposed(ENTRY, 0o670, acl=acl), []) == ["the group data"]


def test_a_tightened_directory_keeps_what_others_may_read():
    acl = (*ACL, "user:bob:rwx", "group:analysts:r-x", "user:hive:rwx", "default:user:bob:rwx")
    (guard,) = judge(exposed(CONTROL.top, 0o770, acl=acl), trusted=[]).tighten.values()
    assert guard.acl == ("group::r-x", "group:analysts:r-x", "mask::r-x", "other::---", "user::rwx", "user:bob:r-x", "user:hive:r-x")
    assert guard.mode == 0o750
    (guard,) = judge(exposed(CONTROL.top, 0o770, acl=acl), trusted=["hive"]).tighten.values()
    assert "user:hive:rwx" in guard.acl
    assert "user:bob:r-x" in guard.acl
    assert guard.mode == 0o770


def test_entries_that_only_the_mask_kept_from_writing_get_no_right_by_tightening():
    acl = ("group::rwx", "mask::-w-", "other::---", "user::rwx", "user:bob:rwx")
    (guard,) = judge(exposed(CONTROL.top, 0o720, acl=acl)).tighten.values()
    assert "mask::---" in guard.acl
    assert guard.mode == 0o700


def attributes(mode, file_mode=0o644, acl=(), file_acl=()):
    return Attributes("loader", "data", mode, file_mode, tuple(acl), tuple(file_acl))


@pytest.mark.parametrize(
    ("mode", "file_mode", "directories", "records"),
    [
        (0o755, 0o644, 0o755, 0o640),
        (0o775, 0o664, 0o755, 0o640),
        (0o777, 0o666, 0o755, 0o640),
        (0o750, 0o640, 0o750, 0o640),
        (0o750, 0o600, 0o750, 0o600),
        (0o700, 0o600, 0o700, 0o600),
        (0o711, 0o644, 0o711, 0o600),
        (0o570, 0o640, 0o750, 0o640),
        (0o3770, 0o660, 0o750, 0o640),
        (0o705, 0o644, 0o705, 0o600),
    ],
    ids=lambda value: f"{value:o}",
)
def test_a_control_directory_has_the_tables_rights_without_anybody_elses_write(mode, file_mode, directories, records):
    assert ownership.share(attributes(mode, file_mode), True, ()) == Guard(directories, records, "data")
    assert ownership.share(attributes(mode, file_mode), False, ()) == Guard(directories, 0o600, "data")


def test_a_tables_acl_is_kept_without_write_and_without_default_entries():
    acl = ("user::r-x", "user:bob:rwx", "group::rwx", "mask::rwx", "other::---", "default:user:bob:rwx", "default:other::rwx")
    guard = ownership.share(attributes(0o570, 0o660, acl), True, ())
    assert guard.acl == ("group::r-x", "mask::r-x", "other::---", "user::rwx", "user:bob:r-x")
    assert guard.mode == 0o750


def test_a_group_whose_own_entry_is_narrower_than_the_mask_may_not_read_records():
    acl = ("user::rwx", "user:bob:r-x", "group::---", "mask::r-x", "other::---")
    assert ownership.share(attributes(0o750, 0o640, acl), True, ()).file_mode == 0o600
    file_acl = ("user::rw-", "user:bob:r--", "group::---", "mask::r--", "other::---")
    assert ownership.share(attributes(0o750, 0o640, (), file_acl), True, ()).file_mode == 0o600


@pytest.mark.parametrize(("mode", "without"), [(0o750, 0o700), (0o755, 0o755), (0o751, 0o711)])
def test_a_group_that_cannot_be_the_tables_gets_what_everybody_has(mode, without):
    assert ownership.without_group(Guard(mode, 0o640, "data", ("user:bob:r-x",))) == Guard(without, 0o600)


@pytest.mark.parametrize(
    ("mode", "acl"), [(0o705, ()), (0o755, ("user:bob:---",)), (0o755, ("group:hr:---",)), (0o755, ("group::---", "user:bob:r-x"))]
)
def test_whom_the_table_keeps_out_is_not_let_in_as_one_of_the_others(mode, acl):
    assert ownership.without_group(Guard(mode, 0o640, "data", acl)) == Guard(0o700, 0o600)


def test_the_log_is_closed_together_with_its_entries():
    assert ownership.of_log(Guard(0o750, 0o640, "data")) == Guard(0o750, 0o640, "data")
    closed = ownership.of_log(Guard(0o755, 0o600, "data", ("user:bob:r-x",)))
    assert closed == Guard(0o700, 0o600, "data")
    assert ownership.is_closed(closed.mode)


def narrow(mode, root_mode, group="data", acl=(), root_acl=()):
    one, root = attributes(mode, 0o640, acl), attributes(root_mode, 0o640, root_acl)
    return ownership.is_narrower(replace(one, group=group), root)


@pytest.mark.parametrize("mode, root_mode", [(0o755, 0o755), (0o775, 0o755), (0o750, 0o750), (0o755, 0o750), (0o700, 0o700)])
def test_a_directory_that_lets_as_many_pass_as_the_root_is_not_narrower(mode, root_mode):
    assert not narrow(mode, root_mode)


@pytest.mark.parametrize("mode, root_mode", [(0o700, 0o755), (0o750, 0o755), (0o700, 0o750), (0o710, 0o750), (0o754, 0o755)])
def test_a_directory_that_lets_fewer_pass_than_the_root_is_narrower(mode, root_mode):
    assert narrow(mode, root_mode)


def test_a_directory_of_another_group_is_narrower_unless_all_may_pass():
    assert narrow(0o750, 0o750, group="hr")
    assert not narrow(0o755, 0o750, group="hr")
    assert not narrow(0o700, 0o700, group="hr")


def test_a_directory_with_another_acl_is_narrower_unless_all_may_pass():
    acl = ("group::r-x", "mask::r-x", "other::---", "user:bob:r-x", "user::rwx")
    assert not narrow(0o750, 0o750, acl=acl, root_acl=acl)
    assert not narrow(0o750, 0o750, acl=(*acl, "default:user:amy:rwx"), root_acl=acl)
    assert narrow(0o750, 0o750, root_acl=acl)
    assert not narrow(0o755, 0o750, root_acl=acl)
    closed = ("group::r-x", "mask::r-x", "other::r-x", "user:bob:---", "user::rwx")
    assert narrow(0o755, 0o755, acl=closed)


# ---- what is above a catalogue

ROOT, DATA, BASE = (f"hdfs://nn/{name}" for name in ("", "data", "data/cat"))


def why(*found, trusted=()):
    return ownership.why_exchangeable(found, "etl", trusted)


def test_only_who_owns_the_root_the_user_of_the_runs_and_trusted_ones_may_own_what_is_on_the_way():
    root = exposed(ROOT, owner="hdfs")
    assert why(root, exposed(DATA, owner="hdfs"), exposed(BASE)) is None
    assert why(root, exposed(DATA, owner="loader"), exposed(BASE), trusted=["loader"]) is None
    found = why(root, exposed(DATA, owner="loader"), exposed(BASE))
    assert found.code is Code.RECORDS_OF_ANOTHER
    assert f"{DATA} (mode 0755) belongs to loader" in found.what
    assert why(exposed(ROOT), exposed(DATA, owner="hdfs"), exposed(BASE)).code is Code.RECORDS_OF_ANOTHER


@pytest.mark.parametrize("owner", ["etl", "hdfs"])
def test_what_others_may_write_to_on_the_way_must_be_sticky(owner):
    root = exposed(ROOT, owner="hdfs")
    for mode, whom in ((0o775, "the group data"), (0o757, "everybody"), (0o777, "everybody, the group data")):
        found = why(root, exposed(DATA, mode, owner), exposed(BASE))
        assert found.code is Code.RECORDS_WRITABLE
        assert f"may be written by {whom}, who" in found.what
        assert why(root, exposed(DATA, mode | 0o1000, owner), exposed(BASE)) is None


def test_an_acl_may_name_who_may_own_it_anyway():
    acl = ["user::rwx", "group::r-x", "mask::rwx", "other::r-x"]
    way = [exposed(ROOT, owner="hdfs"), exposed(DATA, 0o775, "hdfs", ["user:etl:rwx", "user:hdfs:rwx", "user:loader:r-x", *acl])]
    assert why(*way) is None
    assert "the user loader" in why(way[0], replace(way[1], acl=(*acl, "user:loader:-wx"))).what
    assert "the group staff" in why(way[0], replace(way[1], acl=(*acl, "group:staff:-wx"))).what


def test_a_local_directory_may_be_open_to_the_group_that_is_called_like_its_owner():
    local = Exposed("file:/home/etl", True, "etl", "etl", 0o775, True)
    assert why(local) is None
    for other in (replace(local, mode=0o777), replace(local, group="users"), replace(local, path="hdfs://nn/user/etl")):
        assert why(other).code is Code.RECORDS_WRITABLE


def test_the_command_that_closes_a_directory_on_the_way_is_safe_to_copy_whatever_it_is_called():
    found = why(exposed("hdfs://nn/it's $(reboot)*", 0o777))
    command = found.next.partition("away: ")[2].partition("; or let")[0]
    assert shlex.split(command) == ["hdfs", "dfs", "-chmod", "go-w", "hdfs://nn/it's $(reboot)\\*"]
