"""(no attacker needed) The metastore's database fails at one request, for a single table: where that lies is not known, and any directory
of another table may be its own.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from hivekeeper.cluster.metastore import HiveMetastore

PLACE = "hdfs://nn/warehouse/events/.hivekeeper/runs/x/retired/u00001"


class Reader:
    """MetastoreReader, of a database with one table. `failures`: how often it cannot be read."""

    def __init__(self, failures):
        self.failures = failures
        self.asked = 0

    def databases(self):
        return json.dumps(["fin"])

    def namesLeft(self, _database, _most):  # noqa: N802
        return json.dumps(["rescue"])

    def locations(self, *_):
        self.asked += 1
        fails = self.asked <= self.failures
        unreadable = {"rescue": "deadlock found"} if fails else {}
        return json.dumps(
            {"locations": {} if fails else {"rescue": PLACE}, "paths": {}, "owners": {}, "others": [], "unreadable": unreadable}
        )

    def databaseLocations(self, _names):  # noqa: N802
        return json.dumps({"locations": {}, "unreadable": {}})

    def qualified(self, locations):
        return locations


def metastore_of(reader):
    known = {"MetastoreReader": reader, "MetastoreConnection": SimpleNamespace(connect=lambda: None)}
    conf = {"hive.metastore.uris": "thrift://nn"}
    return HiveMetastore(SimpleNamespace(hadoop_conf=conf, helper=lambda name, *_: known.get(name)))


def test_a_table_that_cannot_be_read_once_is_known():
    assert metastore_of(Reader(1)).locations_below([PLACE])[PLACE] == ("fin.rescue",)


@pytest.mark.parametrize("failures", [0, 2, 9])
def test_one_that_can_never_be_read_is_asked_for_no_third_time(failures):
    reader = Reader(failures)
    assert bool(metastore_of(reader).locations_below([PLACE])[PLACE]) is (failures == 0)
    assert reader.asked == (2 if failures else 1)
