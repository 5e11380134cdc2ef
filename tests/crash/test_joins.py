"""Joins killed at every step, and the table changed by DDL before the next command."""

from __future__ import annotations

from contextlib import suppress

import pytest

from support.built_once import built_once
from support.fakes.files import Killed
from support.joined_desk import (
    ALL,
    SMALL,
    a_desk,
    at,
    create_again,
    drop_partition,
    joined_path,
    manage,
    move_partition,
    rename_partition,
    replace_one,
    rows,
    rows_anywhere,
    rows_by_file,
    survive,
)

WHERE = {create_again: "dt=1", rename_partition: "dt=9", move_partition: "moved", drop_partition: "dt=1"}


@built_once
def prepared(command, change):
    desk = a_desk()
    if change is rename_partition:
        manage(desk)
    if command != "compact":
        desk.compact()
        desk.world.files.namespace.advance(3_600_000)
    return desk


def killed_after(desk, command, steps):
    """Whether the command needed more steps than these; it is over then, and its lock has expired."""
    desk.world.files.die_after(steps)
    killed = True
    with suppress(Killed):
        getattr(desk, command)(**({} if command == "cleanup" else {"where": "dt = '1'"}))
        killed = False
    survive(desk)
    return killed


@pytest.mark.parametrize("change", list(WHERE))
@pytest.mark.parametrize("command", ["compact", "rollback", "cleanup"])
def test_all_rows_are_seen_once_and_nothing_hidden_stays(command, change):
    steps, killed = 0, True
    while killed:
        desk = prepared(command, change)
        killed = killed_after(desk, command, steps)
        change(desk)
        desk.recover()
        unit = WHERE[change]
        assert rows(desk, unit) == ALL, steps
        assert all(of_file for of_file in rows_by_file(desk, unit).values()), steps
        assert not [name for name in rows_by_file(desk, unit) if name.startswith(".")], steps
        steps += 1
    assert steps > 10


@pytest.mark.parametrize("change", list(WHERE))
@pytest.mark.parametrize("command", ["compact", "rollback"])
def test_what_replaced_a_source_is_somewhere_whatever_is_cleaned_up(command, change):
    steps, killed = 0, True
    kept = {"new", "large"} if command == "rollback" else {SMALL[0], "new", SMALL[2], "large"}
    while killed:
        desk = prepared(command, change)
        name = joined_path(desk).rpartition("/")[2] if command == "rollback" else "part-00001.parquet"
        replaced = []

        def replace_it(desk=desk, name=name, replaced=replaced):
            replaced.append(name)
            replace_one(desk, name)

        at(desk, ["concat ", "/dt=1/part"], replace_it)
        killed = killed_after(desk, command, steps)
        change(desk)
        desk.recover()
        desk.cleanup()
        if replaced:
            assert kept <= set(rows_anywhere(desk)), steps
            seen = rows(desk, WHERE[change])
            assert len(seen) == len(set(seen)), steps
        steps += 1
    assert steps > 10
