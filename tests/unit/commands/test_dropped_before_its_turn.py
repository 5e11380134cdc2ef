"""A table is dropped by mistake, with its files, while a cleanup over its database is at work on another table: what Hivekeeper has kept of
it beside its directory is then the only copy of its rows.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.joined_desk import at
from support.world import World

RULES = Settings(min_age_ms=0, min_quiet_ms=0, read_by_llap=False)
HOUR_MS = 3_600_000


def drop(desk):
    location = desk.world.table(desk.table).location
    desk.world.catalog.drop_table(desk.table)
    desk.world.files.writer.delete(location)


def create_again(desk):
    table = desk.world.table(desk.table)
    drop(desk)
    desk.world.files.writer.make_directory(table.location)
    desk.world.catalog.add_table(replace(table, create_time=99), [])


def move(desk):
    table = desk.world.table(desk.table)
    desk.world.catalog.put_table(replace(table, location=f"{table.location}_elsewhere"))


@pytest.mark.parametrize("hours", [0, 1], ids=["at once", "after hours"])
@pytest.mark.parametrize(("act", "code"), [(drop, Code.NO_SUCH_TABLE), (create_again, Code.OF_FORMER_TABLE), (move, Code.MOVED)])
def test_what_is_kept_of_a_table_that_is_dropped_before_its_turn_stays(act, code, hours):
    world = World()
    for name in ("a_first", "b_second"):
        world.add_table(a_table(kind="MANAGED_TABLE", name=name, create_time=5), {"": [1000] * 3})
    first, second = Desk(world, "sales.a_first"), Desk(world, "sales.b_second")
    assert first.compact().code is second.compact().code is Exit.DONE
    top = second.control.top

    def meanwhile():
        act(second)
        world.clock.sleep_ms(hours * HOUR_MS)

    at(second, [".hivekeeper-a_first", "discarding"], meanwhile)
    result = cleanup.clean_up(a_context(world.cluster, Selection(databases=("sales",)), "20260102t000000z-0000", RULES))
    left = [path for path, node in world.files.namespace.walk(top) if not node.is_dir and "/retired/" in path]
    assert len(left) == 3
    told = {table.table: table for table in result.tables}
    assert told["sales.a_first"].code is Exit.DONE
    if act is create_again:
        # Whether its new definition was known at its turn, or only when something was to be discarded.
        assert (told["sales.b_second"].code, told["sales.b_second"].window) == (Exit.DONE, None)
        assert {backup.why.code for backup in told["sales.b_second"].backups} == {Code.OF_FORMER_TABLE}
    elif act is drop or not hours:
        assert told["sales.b_second"].problem.code is code
        assert told["sales.b_second"].code is Exit.REFUSED
