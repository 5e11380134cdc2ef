"""Tables to break, and a session's kill matrix, written to docs/evidence/kill-matrix.md if HKTEST_MATRIX is `once` or `all`."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any, Callable, Iterator, List

import pytest

from faults.matrix import Matrix, write_page
from faults.scenarios import SHAPES
from hivekeeper.plan import untidy
from hivekeeper.steps import checks, concat_exchange
from support.desk import Desk
from support.real_world import RealWorld
from support.storage import TEST_FS

MATRIX = pytest.StashKey[Matrix]()
# The names of the tests that failed, in the process that writes the page.
FAILED: List[str] = []


@pytest.fixture(autouse=True)
def any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need more than 100 ms for a check, or 50 for a rename, and the unit would be left for another run (tests/crash/
    has the first, tests/unit/steps/test_concat_exchange.py the second).
    """
    monkeypatch.setattr(checks, "MOST_MS_BETWEEN_CHECK_AND_RENAME", 60_000)
    monkeypatch.setattr(concat_exchange, "MOST_MS_BESIDE", 60_000)


@pytest.fixture(autouse=True)
def any_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids of the tests' runs are of January 2026, on the fakes the times of their directories, too; here these are of today."""
    monkeypatch.setattr(untidy, "MOST_SKEW_MS", -(2**45))


@pytest.fixture
def make_desk(spark: Any, storage: Any) -> Iterator[Callable[..., Desk]]:
    """Creates a table of a given shape with files, and the commands on it."""
    made: List[str] = []

    def make(shape: str, format: str = "parquet") -> Desk:
        made.append(f"m{len(made)}_{abs(hash(storage.root)) % 10**8}")
        return Desk(RealWorld.make(spark, made[-1], storage, SHAPES[shape], format), f"{made[-1]}.events")

    yield make
    for database in made:
        spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.fixture(scope="session")
def matrix(spark: Any, request: pytest.FixtureRequest) -> Matrix:
    found = request.config.stash[MATRIX]
    hadoop = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    found.where = f"{'on HDFS' if TEST_FS else 'on local files'}, Spark {spark.version}, Hadoop client {hadoop}"
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MATRIX] = Matrix()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A pytest-xdist process has ended; a crashed one reports nothing."""
    node.config.stash[MATRIX].include(getattr(node, "workeroutput", {}).get("matrix", "{}"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        FAILED.append(report.nodeid.rpartition("::")[2])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What failed stands on the page beside what did not."""
    found = session.config.stash[MATRIX]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["matrix"] = found.to_json()
    elif os.environ.get("HKTEST_MATRIX") and found.rows:
        write_page(found.as_text(f"{datetime.now(timezone.utc):%Y-%m-%d}", FAILED))
