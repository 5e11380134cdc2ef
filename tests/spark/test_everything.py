"""The random life of a table in tests/crash/test_everything.py, on local Spark or a cluster, a real metastore and real files."""

from __future__ import annotations

import random

import pytest

from crash.test_everything import UNITS, Life, live_on
from support.desk import Desk, outcomes
from support.real_world import RealWorld
from support.storage import TEST_FS

# Each life takes a minute: local files and HDFS get different ones, and the rest run nightly.
LIVES = (0, 1) if TEST_FS else (2,)


@pytest.mark.parametrize("seed", [*LIVES, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(6) if seed not in LIVES)])
def test_no_row_is_lost_or_doubled_whatever_commands_writers_and_kills_come(spark, storage, seed):
    database, chance = f"life{seed}_{abs(hash(storage.root)) % 10**8}", random.Random(seed)
    life = Life(Desk(RealWorld.make(spark, database, storage, UNITS), f"{database}.events"))
    try:
        assert set(outcomes(life.desk.compact()).values()) == {"swapped"}
        live_on(life, chance, moves=12)
    finally:
        spark.sql(f"DROP DATABASE {database} CASCADE")
