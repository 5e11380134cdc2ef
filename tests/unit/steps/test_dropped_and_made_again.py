"""A partition that was dropped while a killed run had it away, and whose directory a writer has made again."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from unit.steps.test_other_directory_at_live import a_desk


@pytest.mark.parametrize("is_made_again", [False, True])
def test_it_is_for_an_operator(is_made_again):
    desk = a_desk()
    desk.kill_before([f"/ready/u00001 {desk.live('dt=1')}"], desk.compact)
    desk.world.drop_partition(desk.table, "dt=1", purge=False)
    if is_made_again:
        desk.world.add_file(f"{desk.live('dt=1')}/stream.parquet", ["s"])
    assert desk.recover().code is Exit.INVESTIGATE
