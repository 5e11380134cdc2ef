"""Which Python the driver must run on, and that any other is refused before anything is opened."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import pytest

from hivekeeper.cli import main
from hivekeeper.codes import Exit
from hivekeeper.config import layers as configuration
from hivekeeper.config.sources import CARRIED
from hivekeeper.errors import UsageError
from hivekeeper.launch import packed_python, spark_submit

LOG4J2 = Path("/opt/log4j2.properties")


def merged(master: str = "yarn", mode: str = "cluster", env: Any = "/envs/e.tar.gz") -> configuration.Config:
    return configuration.load([], {}, {"spark.master": master, "spark.deploy_mode": mode, "spark.python_env": env})


def property_of(config: configuration.Config, name: str) -> str:
    words = spark_submit.submit_options(config, "/opt/py/bin/python", LOG4J2)
    (found,) = [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
    return found


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """A working directory as YARN creates it: the archive is unpacked elsewhere, and its alias is a link."""
    cache = tmp_path / "filecache" / "10" / "e.tar.gz"
    (cache / "bin").mkdir(parents=True)
    directory = tmp_path / "container_01"
    directory.mkdir()
    (directory / "hivekeeper-env").symlink_to(cache)
    return directory


def test_a_packed_python_is_only_expected_in_the_container_of_a_driver():
    assert spark_submit.find_packed_home(merged()) == "hivekeeper-env"
    assert spark_submit.find_packed_home(merged(env="hdfs:///e.tar.gz#mine")) == "mine"
    assert spark_submit.find_packed_home(merged(env=None)) is None
    assert spark_submit.find_packed_home(merged(mode="client")) is None
    assert spark_submit.find_packed_home(merged(master="local[2]", mode="client")) is None


def test_the_python_expected_is_the_one_that_spark_is_told_to_run():
    for env in ("/envs/e.tar.gz", "hdfs://ns1/apps/e.tar.gz#mine"):
        config = merged(env=env)
        for name in ("spark.pyspark.python", "spark.pyspark.driver.python", "spark.yarn.appMasterEnv.PYSPARK_PYTHON"):
            assert property_of(config, name) == f"./{spark_submit.find_packed_home(config)}/bin/python"


@pytest.mark.parametrize("env", ["hdfs:///apps/e.tar.gz#mine", "hdfs://ns1/apps/a%20b/e.tar.gz#mine", "/envs/e.tgz#mine"])
def test_an_archive_with_a_name_of_its_own_is_handed_on_unchanged(env):
    words = spark_submit.submit_options(merged(env=env), "/opt/py/bin/python", LOG4J2)
    assert words[words.index("--archives") + 1] == env


def test_the_packed_python_is_known_by_its_place_whether_links_lead_there_or_not(container):
    for prefix in (container / "hivekeeper-env", container / "." / "hivekeeper-env", (container / "hivekeeper-env").resolve()):
        packed_python.require_packed_python(merged(), str(container), str(prefix))


@pytest.mark.parametrize("prefix", ["/usr", "/absent"])
def test_another_python_is_refused_and_both_are_named(container, prefix):
    with pytest.raises(UsageError) as caught:
        packed_python.require_packed_python(merged(), str(container), prefix)
    assert caught.value.reason.exit is Exit.USAGE
    assert f"the Python in {prefix}, not on the one in ./hivekeeper-env" in caught.value.reason.what


def test_an_archive_that_was_not_unpacked_is_refused(container):
    os.unlink(container / "hivekeeper-env")
    with pytest.raises(UsageError):
        packed_python.require_packed_python(merged(), str(container), "/usr")


def test_a_driver_outside_of_a_container_runs_on_any_python(container):
    for config in (merged(env=None), merged(mode="client"), merged(master="local[2]", mode="client")):
        packed_python.require_packed_python(config, str(container), "/usr")


def test_the_refusal_comes_before_the_cluster_is_opened(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CARRIED, configuration.carry(merged()))
    assert main.main(["analyze", "--table", "sales.events"]) == Exit.USAGE
    assert "spark.python_env is /envs/e.tar.gz" in capfd.readouterr().err


RUNS_ON_EXECUTORS = {
    "rdd",
    "parallelize",
    "udf",
    "pandas_udf",
    "udtf",
    "mapInPandas",
    "mapInArrow",
    "applyInPandas",
    "applyInArrow",
    "foreach",
    "foreachPartition",
}


def test_nothing_of_ours_runs_in_a_python_on_executors():
    for path in (Path(main.__file__).parents[1] / "cluster").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not used & RUNS_ON_EXECUTORS, path
