"""Mistakes that sites make: each gives one clear error and exit code 2 or 8, and changes nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cluster.tables import SmallTable

SMALL = {"driver_memory": "1g"}
ON_YARN = {"master": "yarn", "num_executors": 1, **SMALL}


def one_error(answer):
    """The three lines of the only error, without Java's own noise."""
    found = re.findall(r"^hivekeeper: (?!the log of)(.*)\n  state: (.*)\n  next:  (.*)$", answer.stderr, re.MULTILINE)
    assert len(found) == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    return found[0][0]


@pytest.fixture
def work(spark: Any, database: str) -> str:
    """A table with small files: only then an application is needed."""
    return SmallTable(spark, database).name


def problem_of_the_table(answer):
    """What is said about the only table."""
    assert "Traceback" not in answer.stderr
    return answer.stdout


def test_without_a_ticket(edge):
    if not edge.layout.secure:
        pytest.skip("NOTHING TESTED: this cluster has no Kerberos")
    edge.configure(user=None, spark=SMALL)
    answer = edge.run("analyze", "--database", "default")
    assert "ticket" in one_error(answer)
    assert answer.returncode == 8


def test_a_keytab_of_somebody_else(edge):
    if not edge.layout.secure:
        pytest.skip("NOTHING TESTED: this cluster has no Kerberos")
    edge.configure(spark=ON_YARN, kerberos={"keytab": str(edge.layout.keytab("analyst"))})
    answer = edge.run("analyze", "--database", "default")
    assert one_error(answer).startswith("no ticket for etl@")
    assert "kinit: " in answer.stderr
    assert answer.returncode in (2, 8)


def test_a_queue_that_is_not_there(edge, work):
    edge.configure(spark={**ON_YARN, "queue": "nope"})
    answer = edge.run("compact-swap", "--table", work)
    assert "no YARN queue nope" in problem_of_the_table(answer)
    assert (answer.returncode, answer.stdout)[0] == 2


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_a_wrong_hadoop_conf_dir_is_found_before_spark_starts(edge, place):
    (edge.home / "empty").mkdir()
    edge.configure(spark=ON_YARN)
    answer = edge.run("analyze", "--database", "default", HADOOP_CONF_DIR=str(edge.home / place))
    assert "HADOOP_CONF_DIR" in one_error(answer)
    assert "Picked up JDK_JAVA_OPTIONS" not in answer.stderr
    assert answer.returncode == 2


def test_a_missing_archive_of_this_machine(edge):
    edge.configure(spark={**ON_YARN, "python_env": str(edge.home / "env.tar.gz")})
    answer = edge.run("analyze", "--database", "default")
    assert str(edge.home / "env.tar.gz") in one_error(answer)
    assert answer.returncode == 2


def test_a_missing_archive_on_the_cluster(edge, work):
    edge.configure(spark={**ON_YARN, "archives": ["hdfs:///user/etl/none.tar.gz#env"]})
    answer = edge.run("compact-swap", "--table", work)
    assert "/user/etl/none.tar.gz" in problem_of_the_table(answer)
    assert (answer.returncode, answer.stdout)[0] == 2


def test_in_safe_mode(edge, work):
    edge.configure(spark=ON_YARN)
    edge.admin("dfsadmin", "-safemode", "enter")
    try:
        answer = edge.run("compact-swap", "--table", work)
    finally:
        edge.admin("dfsadmin", "-safemode", "leave")
    assert "safe mode" in problem_of_the_table(answer)
    assert (answer.returncode, answer.stdout)[0] == 8
