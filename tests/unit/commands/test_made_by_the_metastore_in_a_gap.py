"""The metastore makes the directory of each table and partition that it is given as new, as the user of HiveServer2 where that does all as
one user: also at a unit's place in its gap, where it finds none. If the request fails, it deletes what is there by then.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from support.desk import outcomes
from unit.commands.test_table_changes import GAP, make_desk

COLUMNS = pytest.mark.parametrize("columns", [(), ("dt",)], ids=["flat", "partitioned"])


def make_in_the_gap(desk, live, mode, then=None):
    """`then` comes as soon as the new files are there."""
    space, made = desk.world.files.namespace, []

    def act(what):
        if not made and all(word in what for word in GAP):
            made.append(space.make_directory(live))
            node = space.find(live)
            node.attributes = replace(node.attributes, mode=mode, owner="hive")
        elif made and then and any(not one.is_dir for _, one in space.walk(live)):
            desk.world.files.before_step = None
            then()

    desk.world.files.before_step = act


@COLUMNS
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_an_empty_directory_that_came_there_goes(columns, mode):
    desk = make_desk(columns=columns)
    before = desk.world.rows_of(desk.table)
    make_in_the_gap(desk, desk.live("dt=1" if columns else ""), mode)
    result = desk.compact()
    assert (result.code, set(outcomes(result).values())) == (Exit.DONE, {"swapped"})
    assert desk.world.rows_of(desk.table) == before


@COLUMNS
def test_what_the_metastore_deletes_there_is_in_the_backup(columns):
    """And stays there until somebody decides: what a run no longer finds in live is told."""
    desk = make_desk(columns=columns)
    unit = "dt=1" if columns else ""
    live = desk.live(unit)
    rows = desk.world.rows_below(live)
    make_in_the_gap(desk, live, 0o755, lambda: desk.world.files.writer.delete(live))
    assert outcomes(desk.compact())[unit] == "misplaced"
    desk.cleanup()
    place = next(effect.place for effect in desk.log().standing if effect.partition == unit)
    assert desk.world.rows_below(names.join(desk.control.top, place)) == rows
