"""(no attacker needed) A table that shows a backup gets the name of one whose place was told before, while the places of all are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import a_table
from support.fakes import metastore
from unit.commands.test_renamed_while_all_are_read import act_before_each, desk, is_refused, rename_table, show  # noqa: F401


def dropped(desk, other):  # noqa: F811
    """As of a job that writes a table beside, and puts it in the place of the one before."""
    desk.world.catalog.drop_table(other)
    rename_table(desk, "fin.rescue", other)


def set_aside(desk, other):  # noqa: F811
    rename_table(desk, other, f"{other}_former")
    rename_table(desk, "fin.rescue", other)


def exchanged(desk, other):  # noqa: F811
    rename_table(desk, other, "fin.between")
    rename_table(desk, "fin.rescue", other)
    rename_table(desk, "fin.between", "fin.rescue")


@pytest.mark.parametrize(
    ("act", "other"),
    [(dropped, "fin.other"), *((act, other) for act in (set_aside, exchanged) for other in ("fin.other", "aaa.other"))],
    ids=lambda one: getattr(one, "__name__", one),
)
@pytest.mark.parametrize("nth", range(2, 17))
def test_a_backup_stays_that_is_shown_by_a_table_with_the_name_of_another(desk, nth, act, other, monkeypatch):  # noqa: F811
    monkeypatch.setattr(metastore, "TABLES_AT_ONCE", 1)
    place, held = show(desk)
    database, _, name = other.partition(".")
    table = a_table(name=name, location="hdfs://nn/elsewhere/other", create_time=89)
    desk.world.catalog.add_table(replace(table, database=database), [])
    done = []
    act_before_each(desk, "locations_below", lambda number: number == nth and done.append(act(desk, other)))
    result = desk.cleanup()
    assert done
    assert desk.world.catalog.tables[other].location == place
    assert desk.world.rows_below(place) == held != {}, f"exit {result.code}, and the table shows nothing any more"
    assert is_refused(result)
