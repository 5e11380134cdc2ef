"""A cleanup runs beside the copying of a later table (cleanup_beside): two tables are locked at a time. Whether the directories of one are
found by their ids must not depend on the other one, nor on how long its name is.
"""

from __future__ import annotations

import pytest

from hivekeeper.cluster.files import HadoopFiles

DB = "hdfs://router/warehouse/sales"
# Partitioned, and a mount point of a router: nothing in it is found by its id.
MOUNTED = f"{DB}/events/.hivekeeper"
NAMES = ["t", "a_table_without_partitions_of_a_longer_name"]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_router_has_elsewhere_is_not_looked_for_by_its_id(name):
    """By it the router has another directory, of whatever table, in its default nameservice."""
    files = HadoopFiles.__new__(HadoopFiles)
    files._held = {MOUNTED: 0, f"{DB}/.hivekeeper-{name}": 16_400}
    assert not files._is_found_by_id(f"{DB}/events/dt=1")


def test_the_lock_of_another_table_may_be_taken_while_a_path_is_looked_for():
    files = HadoopFiles.__new__(HadoopFiles)

    class Held(str):
        def rstrip(self, chars):
            files._held[f"{DB}/.hivekeeper-{len(files._held)}"] = 16_401
            return str(self).rstrip(chars)

    files._held = {Held(f"{DB}/.hivekeeper-t"): 16_400}
    assert files._is_found_by_id(f"{DB}/t")
