"""Decide how spark-submit is called: the configuration in, a list of words out.

Pure. Nothing is quoted here, because no word is ever split again; nothing is looked up on this machine.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional

from hivekeeper.config import CARRIED, Config, SparkSettings, carry

# Separates what the launcher needs to know from the options of spark-submit.
END = "--"

# Names inside YARN containers.
ENV_ALIAS = "hivekeeper-env"
LOG4J2 = "hivekeeper-log4j2.properties"

FIXED = {
    # A second attempt, or a second copy of a task, would write beside the first one.
    "spark.yarn.maxAppAttempts": "1",
    "spark.speculation": "false",
    # Version 2 shows files of tasks before the job has succeeded.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    # HDFS sleeps 400 ms when a DataNode's report is late: 220 ms per small file instead of 23 ms.
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "spark.ui.showConsoleProgress": "false",
}


def launch_words(config: Config, python: str, log4j2: Path) -> List[str]:
    """All that the launcher has to know: NAME=VALUE words, END, then the options of spark-submit."""
    known = {
        "deploy_mode": config.spark.deploy_mode,
        "submit_command": config.spark.submit_command,
        "spark_home": config.spark.home,
        "java_home": config.spark.java_home,
        "principal": config.kerberos.principal,
        "keytab": config.kerberos.keytab,
    }
    return [*(f"{name}={value}" for name, value in known.items() if value is not None), END, *submit_options(config, python, log4j2)]


def submit_options(config: Config, python: str, log4j2: Path) -> List[str]:
    """The options of spark-submit. `python`: the interpreter for a driver on this machine."""
    spark = config.spark
    yarn, cluster = spark.master == "yarn", spark.deploy_mode == "cluster"
    files = [*spark.extra_files, *([f"{log4j2}#{LOG4J2}"] if cluster else [])]
    archives = [*spark.archives, *([_with_alias(spark.python_env)] if yarn and spark.python_env else [])]
    options: Dict[str, Any] = {
        "--name": "hivekeeper",
        "--master": spark.master,
        "--deploy-mode": spark.deploy_mode if yarn else None,
        "--queue": spark.queue if yarn else None,
        "--num-executors": spark.num_executors if yarn else None,
        "--executor-memory": spark.executor_memory if yarn else None,
        "--executor-cores": spark.executor_cores if yarn else None,
        "--driver-memory": spark.driver_memory,
        "--driver-cores": spark.driver_cores if cluster else None,
        "--principal": config.kerberos.principal,
        "--keytab": config.kerberos.keytab,
        "--files": ",".join(files) or None,
        "--archives": ",".join(archives) or None,
        "--py-files": ",".join(spark.py_files) or None,
    }
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    for name, value in {**FIXED, **_properties(config, python, log4j2), **spark.extra_conf}.items():
        words += ["--conf", f"{name}={value}"]
    return words


def _properties(config: Config, python: str, log4j2: Path) -> Dict[str, str]:
    """The Spark properties that depend on the configuration."""
    spark = config.spark
    if spark.master != "yarn":
        return {"spark.pyspark.driver.python": python, **_log4j2(log4j2.absolute().as_uri())}
    properties = {
        "spark.executor.memoryOverhead": spark.executor_memory_overhead,
        **(_cluster_properties(config) if spark.deploy_mode == "cluster" else _client_properties(spark, python, log4j2)),
    }
    return {name: value for name, value in properties.items() if value is not None}


def _client_properties(spark: SparkSettings, python: str, log4j2: Path) -> Dict[str, Optional[str]]:
    return {
        "spark.pyspark.driver.python": python,
        "spark.pyspark.python": _packed_python(spark),
        **_log4j2(log4j2.absolute().as_uri()),
    }


def _cluster_properties(config: Config) -> Dict[str, Optional[str]]:
    spark = config.spark
    return {
        "spark.driver.memoryOverhead": spark.driver_memory_overhead,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": _packed_python(spark),
        "spark.pyspark.python": _packed_python(spark),
        f"spark.yarn.appMasterEnv.{CARRIED}": carry(config),
        **_log4j2(LOG4J2),
    }


def _log4j2(location: str) -> Dict[str, str]:
    # Not extraJavaOptions: those are the site's (spark-defaults.conf), and setting them here would take them away.
    # Spark adds the options that Java 17 needs by itself.
    return {"spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={location}"}


def _packed_python(spark: SparkSettings) -> Optional[str]:
    if spark.python_env is None:
        return None
    return f"./{_with_alias(spark.python_env).rpartition('#')[2]}/bin/python"


def _with_alias(archive: str) -> str:
    return archive if "#" in PurePosixPath(archive).name else f"{archive}#{ENV_ALIAS}"
