"""Files of foreign writers through whole commands, judged by pyarrow and DuckDB.

Every case is a partition of a few tables, so that one life of a session serves them all. Where a case's writer is missing, its test is
skipped and says so; `make test-foreign` sets up all of them but other versions of Spark.
"""

from __future__ import annotations

import os

import pyspark
import pytest

from foreign.evidence import HIVE, examples
from foreign.lives import LIVES, Lives
from foreign.writers import CASES
from support.drivers import another_cluster
from support.storage import local_only

pytestmark = [pytest.mark.jvm, local_only]

each_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=[] if case.is_quick else [pytest.mark.foreign]) for case in CASES]
)


@pytest.fixture(scope="session")
def lives(request, spark, tmp_path_factory):
    """The lives of all cases that this session's tests are about."""
    wanted = {item.callspec.params["case"].name for item in request.session.items if "lives" in getattr(item, "fixturenames", ())}
    found = Lives(spark, another_cluster(), tmp_path_factory.mktemp("foreign")).live([case for case in CASES if case.name in wanted])
    request.config.stash[LIVES] = found
    return found


@pytest.fixture
def life(lives, case):
    found = lives[f"c={case.name}"]
    if found.unavailable:
        pytest.skip(f"NOTHING TESTED: {found.unavailable}")
    assert not found.broken, "its writer failed"
    return found


@each_case
def test_its_outcome_is_the_expected_one(life, case):
    assert life.outcome == case.expected_with(pyspark.__version__), life.reason


@each_case
def test_it_reads_the_same_in_fewer_files_and_comes_back_byte_for_byte(life, case):
    written, analyzed, compacted, verified, undone, _ = life.hashes
    assert written == analyzed, "analyze writes nothing"
    assert undone == written
    assert life.undone == ("rolled-back" if life.is_compacted else "")
    if not life.is_compacted:
        assert compacted == written
        return
    assert compacted == verified, "verify writes nothing"
    assert life.files < len(written)
    assert (life.verified, life.verified_again) == ("verified", "")
    assert life.before, "somebody must be able to read it"
    assert HIVE in life.before or case.writer != "hive3" or not os.environ.get("HKTEST_FOREIGN"), "Hive must be able to read its own files"
    assert not life.changed, {reader: examples(life.before[reader], life.after.get(reader)) for reader in life.changed}
