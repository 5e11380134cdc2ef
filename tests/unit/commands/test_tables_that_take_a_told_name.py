"""(no attacker needed) A table that shows a backup gets the name of one whose place was told before, while the places of all are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.builders import a_table
from unit.commands.test_renamed_while_all_are_read import act_before_each, desk, is_refused, rename_table, show  # noqa: F401


def dropped(desk):  # noqa: F811
    """As of a job that writes a table beside, and puts it in the place of the one before."""
    desk.world.catalog.drop_table("aaa.other")
    rename_table(desk, "fin.rescue", "aaa.other")


def set_aside(desk):  # noqa: F811
    rename_table(desk, "aaa.other", "aaa.former")
    rename_table(desk, "fin.rescue", "aaa.other")


def exchanged(desk):  # noqa: F811
    rename_table(desk, "aaa.other", "fin.between")
    rename_table(desk, "fin.rescue", "aaa.other")
    rename_table(desk, "fin.between", "fin.rescue")


@pytest.mark.parametrize("act", [dropped, set_aside, exchanged], ids=lambda act: act.__name__)
@pytest.mark.parametrize("nth", range(2, 17))
def test_a_backup_stays_that_is_shown_by_a_table_with_the_name_of_another(desk, nth, act):  # noqa: F811
    place, held = show(desk)
    other = a_table(name="other", location="hdfs://nn/elsewhere/other", create_time=89)
    desk.world.catalog.add_table(replace(other, database="aaa"), [])
    act_before_each(desk, "locations_below", lambda number: number == nth and act(desk))
    result = desk.cleanup()
    assert desk.world.catalog.tables["aaa.other"].location == place
    assert desk.world.rows_below(place) == held != {}, f"exit {result.code}, and the table shows nothing any more"
    assert is_refused(result)
