"""A NameNode is started from an older image: all on it is as it was then, the records too, and it gives ids again that files had which are
gone. The metastore knows what came later.
"""

from __future__ import annotations

import copy

import pytest

from hivekeeper.codes import Exit
from support.desk import desk_by
from support.joined_desk import a_desk

BEGIN = {"directories": lambda: desk_by(["dt"]), "no partitions": lambda: desk_by([]), "joined": a_desk}
# All of them take minutes.
EACH = 4


def unit_of(desk):
    return "dt=1" if desk.world.table(desk.table).partitioned else ""


def rows(desk):
    return desk.world.rows_of(desk.table)


def count_steps(begin):
    desk, steps = begin(), []
    desk.world.files.before_step = steps.append
    go_on(desk)
    return len(steps)


def go_on(desk):
    """The image that is taken meanwhile knows of the first steps only."""
    desk.compact()
    desk.append(unit_of(desk), "x", "y")
    desk.compact()
    desk.cleanup()


def restore_as_of(desk, step):
    """What came after this step, but for the metastore's part in it, has never been."""
    space, steps, image = desk.world.files.namespace, [], []

    def note(what):
        steps.append(what)
        if len(steps) == step + 1:
            image.append((copy.deepcopy(space.root), space._last_id))

    desk.world.files.before_step = note
    go_on(desk)
    desk.world.files.before_step = None
    ((space.root, space._last_id),) = image
    space.leases.clear()
    for _, node in space.walk("hdfs://nn"):
        node.is_open = False
    desk.world.forget()
    desk.world.files.revive()
    space.advance(3_600_000)


@pytest.mark.parametrize(("begin", "step"), [(begin, step) for begin in BEGIN for step in range(0, count_steps(BEGIN[begin]), EACH)])
def test_commands_find_what_is_there_by_then(begin, step):
    desk = BEGIN[begin]()
    restore_as_of(desk, step)
    space = desk.world.files.namespace
    before = desk.world.rows_anywhere().keys()
    assert desk.recover().code is Exit.DONE
    assert rows(desk).keys() == before
    assert max(rows(desk).values()) == 1
    # With an id that another file had.
    desk.append(unit_of(desk), "new")
    assert space.find(f"{desk.live(unit_of(desk))}/new.parquet") is not None
    expected = rows(desk)
    for command in (desk.verify, desk.rollback, desk.compact, desk.verify, desk.rollback, desk.cleanup, desk.recover):
        # A cleanup may have discarded the backup of one unit, and not yet that of the other.
        assert command().code in (Exit.DONE, Exit.REFUSED, Exit.PARTIAL), command
        assert rows(desk) == expected
