"""Owners, modes, ACLs, policies, quotas and room: on the fake and on Hadoop."""

from __future__ import annotations

import dataclasses
import time

import pytest

from hivekeeper import names
from hivekeeper.model import FileRights, Guard, Ties
from hivekeeper.ports import (
    NotPossible,
    SourceMissing,
)
from support.file_worlds import configured, mode_of
from support.listings import tree
from support.storage import local_only


def test_attributes_can_be_read_and_given_to_another_directory_and_its_files(files_world):
    files_world.writer.add(files_world.path("old", "f"), "x")
    files_world.writer.add(files_world.path("new", "g"), "x")
    files_world.files.make_directory(files_world.path("new", "sub"))
    sub_before = files_world.files.stat(files_world.path("new", "sub")).mode
    old, new = files_world.path("old"), files_world.path("new")
    wanted = dataclasses.replace(files_world.files.attributes([old])[old], mode=0o1770, file_mode=0o640)
    files_world.files.dress({old: wanted, new: wanted})
    found = files_world.files.attributes([old, new])
    assert found == {old: wanted, new: wanted}
    assert [found[place].directory_id for place in (old, new)] == [files_world.files.stat(place).file_id for place in (old, new)]
    assert files_world.files.stat(files_world.path("new")).mode == 0o1770
    assert files_world.files.stat(files_world.path("new", "g")).mode == 0o640
    assert files_world.files.stat(files_world.path("new", "sub")).mode == sub_before


def test_a_missing_directory_has_no_attributes_and_cannot_be_dressed(files_world):
    files_world.files.make_directory(files_world.path("d"))
    wanted = files_world.files.attributes([files_world.path("d"), files_world.path("missing")])
    assert list(wanted) == [files_world.path("d")]
    with pytest.raises(SourceMissing):
        files_world.files.dress({files_world.path("missing"): wanted[files_world.path("d")]})


def test_an_empty_directorys_files_would_get_its_own_mode_without_execution(files_world):
    directory = files_world.path("d")
    files_world.files.make_directory(directory)
    files_world.files.dress({directory: dataclasses.replace(files_world.files.attributes([directory])[directory], mode=0o750)})
    assert files_world.files.attributes([directory])[directory].file_mode == 0o640


@pytest.mark.parametrize(("value", "is_told"), [("0s" + "A" * 4000, True), ("0s" + "A" * 4096, False)])
def test_extended_attributes_are_told_up_to_four_kilobytes(files_world, value, is_told):
    files_world.skip_on("local", "local files have none of them in Hadoop")
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    wanted = (("user.source", value),)
    files_world.files.dress({top: dataclasses.replace(known, xattrs=wanted)})
    expected = dataclasses.replace(known, xattrs=wanted if is_told else (), has_more_xattrs=not is_told)
    assert files_world.files.attributes([top]) == {top: expected}


def rights_in(files_world, *directories, most=10):
    found = files_world.files.file_rights(dict.fromkeys(directories, 0), most)
    return {directory: {rights: list(ids) for rights, ids in some.items()} for directory, some in found.items()}


def test_the_rights_of_data_files_are_told_once_each_and_no_more_than_asked_for(files_world):
    top = files_world.path("d")
    for name in ("a", "b", "c", ".hidden", "_hidden"):
        files_world.writer.add(f"{top}/{name}", "x")
    files_world.writer.add(f"{top}/below/e", "x")
    known = files_world.files.attributes([top])[top]
    files_world.files.dress({top: dataclasses.replace(known, file_mode=0o640)})
    owner, group = files_world.files.stat(f"{top}/a").owner, files_world.files.stat(f"{top}/a").group
    of_all = FileRights(owner, group, 0o640)
    ids = [files_world.files.stat(f"{top}/{name}").file_id for name in ("a", "b", "c")]
    assert rights_in(files_world, top, files_world.path("missing")) == {top: {of_all: ids}}
    files_world.files.guard({f"{top}/b": Guard(0o600), f"{top}/c": Guard(0o644)})
    expected = {of_all: ids[:1], of_all._replace(mode=0o600): ids[1:2], of_all._replace(mode=0o644): ids[2:]}
    assert rights_in(files_world, top) == {top: expected}
    assert [*rights_in(files_world, top, most=1)[top]] == [*expected][:2]


def test_the_acls_of_data_files_are_told(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    acl = ("group::r--", "group:etl:rw-", "mask::rw-", "other::---", "user::rw-")
    files_world.files.dress({top: dataclasses.replace(known, file_mode=0o660, file_acl=acl)})
    assert [*rights_in(files_world, top)[top]] == [FileRights(known.owner, known.group, 0o660, acl)]


def test_files_may_get_another_owner_and_group_than_their_directory_or_keep_theirs(files_world):
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    wanted = dataclasses.replace(known, owner="", group="", file_owner=known.owner, file_group=known.group)
    for given in (wanted, dataclasses.replace(known, file_owner="", file_group="")):
        files_world.files.dress({top: given})
        assert files_world.files.attributes([top]) == {top: known}
        file = files_world.files.stat(f"{top}/f")
        assert (file.owner, file.group) == (known.owner, known.group)


def test_acls_extended_attributes_and_policies_are_carried_over(files_world):
    files_world.skip_on("local", "local files have none of them in Hadoop")
    old, new = files_world.path("old"), files_world.path("new")
    files_world.writer.add(old + "/f", "x")
    files_world.writer.add(new + "/g", "x")
    acl = ("default:group::r-x", "default:group:etl:rwx", "default:mask::rwx", "default:other::---", "default:user::rwx")
    access = ("group::r-x", "group:etl:rwx", "mask::rwx", "other::---", "user::rwx")
    file_acl = ("group::r--", "group:etl:rw-", "mask::rw-", "other::---", "user::rw-")
    wanted = dataclasses.replace(
        files_world.files.attributes([old])[old],
        mode=0o770,
        file_mode=0o660,
        acl=tuple(sorted(acl + access)),
        file_acl=tuple(sorted(file_acl)),
        xattrs=(("user.source", "0sYWJj"),),
        storage_policy="COLD",
        own_storage_policy=True,
    )
    files_world.files.dress({new: wanted})
    assert files_world.files.attributes([new]) == {new: wanted}
    bare = dataclasses.replace(wanted, acl=(), file_acl=(), storage_policy="HOT", own_storage_policy=False)
    files_world.files.dress({new: bare})
    assert files_world.files.attributes([new]) == {new: bare}


def test_what_is_made_is_its_makers_alone(files_world):
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.write_new(files_world.path("a", "private"), "x")
    files_world.files.write_new(files_world.path("a", "for the group"), "x", 0o640)
    files_world.files.hold(files_world.path("c", "lock"), "run one").release()
    assert [mode_of(files_world, *place) for place in (["a"], ["a", "b"], ["c"])] == [0o700] * 3
    assert [mode_of(files_world, *place) for place in (["a", "private"], ["a", "for the group"], ["c", "lock"])] == [0o600, 0o640, 0o600]


def test_a_directory_that_is_there_keeps_its_mode_when_it_is_made_again(files_world):
    files_world.files.make_directory(files_world.path("a"))
    files_world.files.guard({files_world.path("a"): Guard(0o755)})
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.make_directory(files_world.path("a"))
    assert [mode_of(files_world, "a"), mode_of(files_world, "a", "b")] == [0o755, 0o700]


def test_what_others_may_write_to_is_told_down_to_a_level(files_world):
    wide = [["c"], ["c", "runs"], ["c", "runs", "r", "plan"], ["c", "runs", "r", "d", "deeper"]]
    files_world.files.make_directory(files_world.path("c", "runs", "r", "d"))
    files_world.files.write_new(files_world.path("c", "runs", "r", "plan"), "x")
    files_world.files.write_new(files_world.path("c", "runs", "r", "d", "deeper"), "x")
    top = files_world.path("c")
    assert files_world.files.exposed(top, 9) == ()
    files_world.files.guard({files_world.path(*place): Guard(0o775 if len(place) < 3 else 0o664) for place in wide})
    found = {one.path: one for one in files_world.files.exposed(top, 3)}
    assert sorted(found) == [files_world.path(*place) for place in wide[:3]]
    assert {(one.is_dir, one.mode) for one in found.values()} == {(True, 0o775), (False, 0o664)}
    assert all(one.is_ours and one.owner == files_world.files.stat(one.path).owner for one in found.values())
    assert [one.path for one in files_world.files.exposed(top, 0)] == [top]
    assert len(files_world.files.exposed(top, 4)) == 4
    assert files_world.files.exposed(files_world.path("missing"), 3) == ()


def test_a_directory_and_all_above_it_are_told_from_the_root_down(files_world):
    base = files_world.path("open", "base")
    files_world.files.make_directory(base)
    files_world.files.guard({files_world.path("open"): Guard(0o777)})
    found = files_world.files.way_to(base)
    assert [one.path.rstrip("/") for one in found] == list(reversed([path.rstrip("/") for path in names.with_above(base)]))
    assert [(one.mode, one.is_ours, one.is_dir) for one in found[-2:]] == [(0o777, True, True), (0o700, True, True)]
    assert [one.owner for one in found[-2:]] == [files_world.files.user_at(base)] * 2
    assert files_world.files.way_to(f"{base}/not/there") == found


@local_only
def test_the_way_to_a_directory_behind_a_mount_is_that_to_the_real_one(gateway, tmp_path):
    (tmp_path / "data" / "base").mkdir(parents=True)
    (tmp_path / "data").chmod(0o777)
    files = configured(gateway, **{"fs.viewfs.mounttable.ours.link./mounted": f"file:{tmp_path}/data"})
    for below in ("base", "base/missing"):
        found = files.way_to(f"viewfs://ours/mounted/{below}")
        assert [one.path for one in found[-2:]] == [f"file:{tmp_path}/data", f"file:{tmp_path}/data/base"]
        assert (found[0].path, found[-2].mode) == ("file:/", 0o777)


def test_the_way_to_a_directory_tells_whom_acls_let_write(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    base = files_world.path("base")
    files_world.files.make_directory(base)
    acl = ("group::r-x", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx")
    known = files_world.files.attributes([base])[base]
    files_world.files.dress({base: dataclasses.replace(known, mode=0o770, acl=acl)})
    assert set(acl) <= set(files_world.files.way_to(base)[-1].acl)


def test_what_others_may_write_to_is_not_looked_for_among_millions_of_files(files_world):
    """Whoever may write to the directory around a control directory can put another one at its place, after its owner was looked at."""
    files_world.skip_on("fake", "it has all in memory")
    files = files_world.files
    for name in "abcd":
        files_world.writer.add(files_world.path("c", "log", name), "x")
    files._rights.setMostListed(5)
    files.exposed(files_world.path("c"), 3)
    files._rights.setMostListed(4)
    with pytest.raises(NotPossible, match="too many entries"):
        files.exposed(files_world.path("c"), 3)


def test_rights_are_given_to_a_directory_and_the_files_in_it_and_to_nothing_else(files_world):
    files_world.files.make_directory(files_world.path("c", "sub"))
    files_world.files.write_new(files_world.path("c", "f"), "x")
    files_world.files.guard({files_world.path("c"): Guard(0o750, 0o640)})
    assert [mode_of(files_world, *place) for place in (["c"], ["c", "f"], ["c", "sub"])] == [0o750, 0o640, 0o700]
    files_world.files.guard({files_world.path("c"): Guard(0o711), files_world.path("c", "f"): Guard(0o604)})
    assert [mode_of(files_world, *place) for place in (["c"], ["c", "f"])] == [0o711, 0o604]
    with pytest.raises(SourceMissing):
        files_world.files.guard({files_world.path("missing"): Guard(0o700)})


def test_an_acl_is_taken_off_with_its_default_entries_and_given_without_any(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    directory, sample = files_world.path("d"), files_world.path("sample")
    files_world.writer.add(directory + "/f", "x")
    files_world.writer.add(sample + "/f", "x")
    acl = ("default:group::rwx", "default:mask::rwx", "default:other::---", "default:user::rwx", "default:user:bob:rwx")
    access = ("group::rwx", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx")
    file_acl = ("group::rw-", "mask::rw-", "other::---", "user::rw-", "user:bob:rw-")
    known = files_world.files.attributes([sample])[sample]
    wide = dataclasses.replace(known, mode=0o770, file_mode=0o660, acl=tuple(sorted(acl + access)), file_acl=file_acl)
    files_world.files.dress({directory: wide})
    shown = {one.path: one.acl for one in files_world.files.exposed(directory, 1)}
    assert set(access) <= set(shown[directory])
    assert shown[directory + "/f"] == file_acl
    read_only = ("group::r-x", "mask::r-x", "other::---", "user::rwx", "user:bob:r-x")
    files_world.files.guard({directory: Guard(0o750, 0o640, acl=read_only)})
    found = files_world.files.attributes([directory])[directory]
    assert (found.mode, found.file_mode, found.acl, found.file_acl) == (0o750, 0o640, read_only, ())
    files_world.files.guard({directory: Guard(0o700, 0o600)})
    assert files_world.files.attributes([directory])[directory].acl == ()
    assert files_world.files.exposed(directory, 1) == ()


@pytest.mark.parametrize("access", [("user:bob:r-x", "mask::r-x"), ()], ids=["beside others", "alone"])
def test_default_entries_are_given_where_the_wanted_acl_has_them(access, files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    directory = files_world.path("d")
    files_world.writer.add(directory + "/f", "x")
    before = files_world.files.attributes([directory])[directory]
    default = ("default:group::r-x", "default:group:etl:r-x", "default:mask::r-x", "default:other::---", "default:user::rwx")
    acl = tuple(sorted((*default, *access, "group::r-x", "other::---", "user::rwx")))
    files_world.files.guard({directory: Guard(0o750, acl=acl)})
    after = files_world.files.attributes([directory])[directory]
    assert (after.mode, after.acl, after.file_mode) == (0o750, acl, before.file_mode)


def test_a_default_acl_gives_nobody_anything_in_what_is_made(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    files_world.skip_on("fake", "nothing is inherited there")
    top = files_world.path("top")
    files_world.files.make_directory(top)
    acl = ("default:group::rwx", "default:mask::rwx", "default:other::rwx", "default:user::rwx", "default:user:bob:rwx")
    access = ("group::r-x", "other::r-x", "user::rwx")
    known = files_world.files.attributes([top])[top]
    files_world.files.dress({top: dataclasses.replace(known, mode=0o755, acl=tuple(sorted(acl + access)))})
    files_world.files.make_directory(top + "/a/b")
    files_world.files.hold(top + "/a/_lock", "run one").release()
    files_world.files.write_new(top + "/a/plan", "x")
    assert {entry.path[len(top) :]: entry.mode for entry in tree(files_world.files, top)} == {
        "/a": 0o700,
        "/a/b": 0o700,
        "/a/_lock": 0o600,
        "/a/plan": 0o600,
    }


def test_a_policy_of_its_own_stays_when_a_directory_leaves_a_parent_that_has_the_same(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    batch, unit, live = (files_world.path(*below) for below in (["batch"], ["batch", "unit"], ["live"]))
    files_world.files.make_directory(unit)
    wanted = dataclasses.replace(files_world.files.attributes([unit])[unit], storage_policy="WARM", own_storage_policy=True)
    files_world.files.dress({batch: wanted})
    files_world.files.dress({unit: wanted})
    files_world.files.rename_exact(unit, live)
    assert files_world.files.attributes([live])[live].storage_policy == "WARM"


def test_nothing_ties_an_ordinary_directory_and_a_missing_one_is_left_out(files_world):
    directory = files_world.path("d")
    files_world.files.make_directory(directory)
    assert files_world.files.ties([directory, files_world.path("missing")]) == {directory: Ties()}
    assert files_world.files.ties([]) == {}


def test_room_is_told_for_a_place_that_does_not_exist_yet(files_world):
    room = files_world.files.room(files_world.path("not", "yet"), [])
    assert room.copies >= 1
    assert room.block_bytes > 0
    assert room.free_bytes is None if files_world.kind == "fake" else room.free_bytes > 0


def test_directories_without_a_quota_and_missing_ones_are_left_out_however_often_they_are_asked_about(files_world):
    for _ in range(2):
        assert files_world.files.room(files_world.root, [files_world.root, files_world.path("missing")]).quotas == ()


def test_what_is_looked_at_side_by_side_leaves_no_thread_behind(files_world, request):
    files_world.skip_on("fake", "it has none")
    threads = request.getfixturevalue("gateway").jvm.java.lang.Thread
    client, paths = files_world.another_client(), [files_world.path(str(number)) for number in range(20)]

    def count() -> int:
        return sum(1 for thread in threads.getAllStackTraces().keySet() if thread.getName() == "hivekeeper-worker")

    # On a busy machine they may be gone before they were counted.
    assert any(client.look(paths) and count() for _ in range(20))
    until = time.monotonic() + 600
    while count():
        assert time.monotonic() < until
        time.sleep(0.5)
