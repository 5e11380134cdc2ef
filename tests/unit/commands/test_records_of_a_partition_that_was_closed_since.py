"""A partition that was compacted while the table's group might read it, and that its owner has closed since: what a rollback records of
it is not for that group any more (docs/permissions.md: records are open to it if it may read the table and every unit recorded)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.desk import Desk
from support.fakes.rows import DataFile
from unit.commands.test_who_may_read import a_desk, dress, readable_below


def records(desk, user):
    """The records that a user can open, as text, by path."""
    found = readable_below(desk.world, desk.control.top, user)
    return {path: content for path, content in found if isinstance(content, str) and not isinstance(content, DataFile)}


def test_a_rollback_does_not_tell_the_group_which_files_came_to_it():
    desk = a_desk({"dt=1": (0o750, 0o640), "dt=2": (0o750, 0o640)}, 0o750)
    assert desk.compact().code is Exit.DONE
    desk.append("dt=1", "since")
    dress(desk.world, desk.live("dt=1"), 0o700, 0o600)
    assert desk.rollback().code is Exit.DONE
    assert "since" in " ".join(desk.world.rows_of(desk.table))
    assert [path for path, text in records(desk, "analyst").items() if "since.parquet" in text] == []


OPEN = {"dt=1": (0o750, 0o640), "dt=2": (0o750, 0o640)}
KILLED = {
    "before the exchange": ["rename_exact", "/events/dt=1 "],
    "in the gap": ["rename_exact", "/ready/", "/events/dt=1"],
    "before its entry": ["write_new", "entry.json"],
}
UNDONE = {**KILLED, "in the gap": ["rename_exact", "/restoring/", "/events/dt=1"]}


def killed(words, command):
    desk = a_desk(OPEN, 0o750)
    if command is not Desk.compact:
        assert desk.compact().code is Exit.DONE
    desk.kill_before(words, lambda: command(desk))
    return desk


@pytest.mark.parametrize(
    "command, words",
    [(Desk.compact, words) for words in KILLED.values()] + [(Desk.rollback, words) for words in UNDONE.values()],
    ids=[f"{name}, {command}" for command in ("compact", "rollback") for name in KILLED],
)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
def test_a_recovery_tells_the_group_of_what_it_may_read(command, words, is_closed):
    desk = killed(words, command)
    there = desk.world.files.namespace.find(desk.live("dt=1")) is not None
    if there:
        desk.append("dt=1", "since")
        if is_closed:
            dress(desk.world, desk.live("dt=1"), 0o700, 0o600)
        else:
            dress(desk.world, desk.live("dt=1"), 0o750, 0o640)
    assert desk.recover().code is Exit.DONE
    seen = records(desk, "analyst")
    last = names.join(desk.control.log, names.log_entry(desk.log().next_version - 1))
    assert (last in seen) is not (there and is_closed)
    if there and is_closed:
        assert [path for path, text in seen.items() if "since.parquet" in text] == []
        assert not any("/log/" in path for path in seen)
        # No later run opens it again, by an entry or by a checkpoint.
        later = Desk(desk.world, checkpoint_interval=1)
        later.runs = list(desk.runs)
        later.append("dt=2", "a", "b", "c")
        assert later.compact(where="dt = '2'").code is Exit.DONE
        assert not any("/log/" in path for path, _ in readable_below(desk.world, desk.control.top, "analyst"))


def test_a_recovery_after_the_table_got_another_group_opens_its_entry_to_neither():
    desk = killed(KILLED["before the exchange"], Desk.compact)
    for unit in ("", *OPEN):
        dress(desk.world, desk.live(unit), 0o750, 0o640, "hr")
    assert desk.recover().code is Exit.DONE
    log = desk.world.files.namespace.find(desk.control.log)
    assert (log.mode, {node.mode for node in log.children.values()}) == (0o700, {0o600})


def test_the_entry_of_a_table_that_was_created_again_is_for_nobody_else():
    desk = killed(KILLED["before its entry"], Desk.compact)
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), create_time=99))
    assert desk.recover().code is Exit.INVESTIGATE
    assert (desk.log().next_version, [path for path in records(desk, "analyst") if "/log/" in path]) == (1, [])


@pytest.mark.parametrize("mode", [0o750, 0o700], ids=["open", "closed"])
def test_a_partition_that_was_closed_and_dropped_in_its_gap_closes_the_log(mode):
    desk = killed(KILLED["in the gap"], Desk.compact)
    run = desk.control.run(desk.runs[-1])
    dress(desk.world, run.unit("retired", 1), mode, 0o640)
    desk.world.catalog.drop_partition(desk.table, "dt=1")
    assert desk.recover().code is Exit.INVESTIGATE
    assert any("/log/" in path for path in records(desk, "analyst")) is (mode == 0o750)


def test_a_rollback_and_its_repetition_of_open_partitions_stay_open_to_the_group():
    desk = a_desk(OPEN, 0o750)
    for command in (desk.compact, desk.rollback, desk.compact, desk.backup, desk.rollback):
        assert command().code is Exit.DONE
    assert len([path for path in records(desk, "analyst") if "/log/" in path]) == desk.log().next_version
