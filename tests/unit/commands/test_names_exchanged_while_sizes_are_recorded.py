"""A loader has built a table anew, and exchanges the names of the two, while a run records the sizes of the former one: the metastore's
client replaces a whole definition, by its name, and knows no condition.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.reasons import Code
from support.desk import outcomes
from support.fakes.metastore import FakeMetastore
from unit.commands.test_table_changes import TABLE, make_desk, unit_of

BUILT_ANEW = "hdfs://nn/warehouse/sales/events_built_anew"


def moved(one):
    name = one.location.rpartition("/events")[2]
    return replace(one, location=f"{BUILT_ANEW}{name}")


def exchange(desk, is_too_late):
    """Another table gets the name, and, if it does so between the read and the change, the definition that was read."""
    catalog, of_former = desk.world.catalog, desk.world.catalog.tables[TABLE]
    partitions = list(catalog.partitions[TABLE].values())
    catalog.drop_table(TABLE)
    catalog.add_table(replace(of_former, name="events_old"), partitions)
    location = of_former.location if is_too_late else BUILT_ANEW
    catalog.add_table(replace(of_former, create_time=99, location=location), partitions if is_too_late else map(moved, partitions))


@pytest.mark.parametrize("is_too_late", [False, True])
@pytest.mark.parametrize("columns", [(), ("dt",)], ids=["flat", "partitioned"])
def test_the_run_tells_that_another_table_has_the_name(columns, is_too_late, monkeypatch):
    desk = make_desk(columns=columns)
    update, had = FakeMetastore.update_sizes, []

    def act(self, table, *sizes):
        exchange(desk, is_too_late)
        had.append(desk.world.catalog.tables[TABLE])
        update(self, table, *sizes)

    monkeypatch.setattr(FakeMetastore, "update_sizes", act)
    result = desk.compact()
    assert had
    assert result.code is Exit.INVESTIGATE
    assert set(outcomes(result).values()) == {"misplaced"}
    assert unit_of(result, "dt=1" if columns else "").why.code is Code.TABLE_CREATED_AGAIN
    assert desk.world.catalog.tables[TABLE] == had[0] or is_too_late
