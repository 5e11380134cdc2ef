"""A rollback: who may reach what came since, and what a backup looks like that did not come back."""

from __future__ import annotations

import pytest

from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code
from support.desk import outcomes
from support.joined_desk import at
from support.late_directories import leaves
from unit.steps.test_other_directory_at_live import a_desk, give_rights
from unit.steps.test_others_in_what_leaves_live import make_sticky, put_sticky_there
from unit.steps.test_rollback_of_closed_units import compacted, place_of, rights_at


def run_as_superuser(desk, monkeypatch):
    files = desk.world.files
    monkeypatch.setattr(files, "_guard", lambda path, wanted: files._give(files.namespace.find(path), wanted, wanted.mode, wanted.acl))


@pytest.mark.parametrize(("before", "since"), [(0o755, 0o700), (0o700, 0o700), (0o750, 0o750)])
def test_rows_of_a_new_owner_do_not_come_into_a_directory_of_the_former_one(before, since, monkeypatch):
    desk = compacted(mode=before, owner="alice", group="data")
    run_as_superuser(desk, monkeypatch)
    give_rights(desk, desk.live("dt=1"), mode=since, owner="bob", group="data")
    desk.append("dt=1", "secret")
    desk.rollback()
    assert desk.world.files.namespace.find(place_of(desk, "secret")).attributes.owner == "bob"


def test_a_backup_that_did_not_come_back_has_its_own_rights():
    desk = compacted(mode=0o755, group="data")
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o750, group="hr")
    desk.world.files.writer.make_directory(f"{live}/_temporary")
    assert outcomes(desk.rollback()) == {"dt=1": "given-up"}
    backup = next(path for path in desk.world.files.contents(desk.control.top) if "/retired/u00001/" in path).rpartition("/")[0]
    assert rights_at(desk, backup) == ("data", 0o755, ())


def test_a_backup_that_was_changed_since_the_rollback_was_planned_has_its_own_rights():
    desk = compacted(mode=0o755, group="data")
    give_rights(desk, desk.live("dt=1"), mode=0o750, group="hr")
    at(desk, ["rename_exact", "/restoring/u00001"], lambda: desk.world.files.writer.delete(backup_files(desk)[0]))
    assert outcomes(desk.rollback()) == {"dt=1": "given-up"}
    assert rights_at(desk, backup_files(desk)[0].rpartition("/")[0]) == ("data", 0o755, ())


def backup_files(desk):
    return sorted(path for path in desk.world.files.contents(desk.control.top) if "/retired/u00001/" in path)


def test_files_in_a_sticky_directory_that_comes_before_a_rollback_is_planned_stay_there():
    desk = a_desk()
    desk.compact()
    theirs = make_sticky(desk)
    put_sticky_there(desk)
    desk.rollback()
    assert "payment.parquet" in theirs.children


def test_rows_that_stay_there_are_not_opened_by_a_later_cleanup(monkeypatch):
    desk = compacted(mode=0o755, owner="alice", group="data")
    run_as_superuser(desk, monkeypatch)
    give_rights(desk, desk.live("dt=1"), mode=0o700, owner="bob", group="data")
    desk.append("dt=1", "secret")
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
    desk.world.wait(365 * 24 * 3_600_000)
    desk.cleanup()
    assert desk.world.files.namespace.find(place_of(desk, "secret")).attributes.owner == "bob"


def test_rows_in_a_partition_that_all_may_read_come_along_whoever_owns_it_by_then():
    desk = compacted(mode=0o755, owner="alice", group="data")
    give_rights(desk, desk.live("dt=1"), owner="bob")
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert place_of(desk, "new") == desk.live("dt=1")


def test_what_comes_to_a_sticky_directory_of_the_unit_comes_along():
    desk = compacted(mode=0o1777, owner="alice")
    give_rights(desk, desk.live("dt=1"), mode=0o1777, owner="alice")
    desk.append("dt=1", "new")
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert place_of(desk, "new") == desk.live("dt=1")


def test_late_files_of_a_sticky_directory_that_a_compaction_was_planned_for_come_into_one_like_it():
    desk = a_desk()
    theirs = make_sticky(desk)
    put_sticky_there(desk)
    live = desk.live("dt=1")
    at(desk, leaves(desk), lambda: desk.world.add_file(f"{live}/late.parquet", ["late"]))
    assert outcomes(desk.compact()) == {"dt=1": "swapped"}
    copy = desk.world.files.namespace.find(live)
    assert "late.parquet" in copy.children
    assert copy is not theirs
    assert (copy.attributes.owner, copy.mode) == ("fin", 0o1777)


def test_only_the_directory_that_was_looked_at_is_closed(monkeypatch):
    desk = compacted(mode=0o755)
    give_rights(desk, desk.live("dt=1"), mode=0o700)
    guard, ids = desk.world.files.guard, []

    def note(wanted):
        ids.extend(one.file_id for path, one in wanted.items() if "/restoring/" in path)
        guard(wanted)

    monkeypatch.setattr(desk.world.files, "guard", note)
    desk.rollback()
    assert ids == [desk.world.files.stat(desk.live("dt=1")).file_id]


def deny(desk, monkeypatch, is_asked):
    attributes = desk.world.files.attributes

    def deny_some(directories, *ids):
        if is_asked(directories):
            raise NoPermission("an ACL that is too long")
        return attributes(directories, *ids)

    monkeypatch.setattr(desk.world.files, "attributes", deny_some)


def test_what_came_since_stays_in_the_backup_where_the_rights_may_not_be_told(monkeypatch):
    desk = compacted(mode=0o755)
    desk.append("dt=1", "new")
    deny(desk, monkeypatch, lambda directories: "/retired/" in directories[0] and desk.live("dt=1") in directories)
    assert outcomes(desk.rollback()) == {"dt=1": "misplaced"}
    assert place_of(desk, "new") != desk.live("dt=1")


@pytest.mark.parametrize("place", ["/dt=1", "/retired/u00001"])
def test_a_unit_stays_where_the_rights_may_not_be_told_before_its_exchange(place, monkeypatch):
    """Whoever may write to the backup, or rename the partition to where the user of the runs may not go, can see to that for a moment."""
    desk = compacted(mode=0o755)
    live = desk.live("dt=1")
    give_rights(desk, live, mode=0o700)
    before = sorted(desk.world.files.contents(live))
    deny(desk, monkeypatch, lambda directories: any(directory.endswith(place) for directory in directories))
    result = desk.rollback()
    assert outcomes(result) == {"dt=1": "given-up"}
    assert result.tables[0].units[0].why.code is Code.NO_PERMISSION
    assert (sorted(desk.world.files.contents(live)), rights_at(desk, live)[1]) == (before, 0o700)
    monkeypatch.undo()
    assert outcomes(desk.rollback()) == {"dt=1": "rolled-back"}
    assert rights_at(desk, live)[1] == 0o700
