"""Decide how spark-submit is called: the configuration in, a list of words out.

Pure. Nothing is quoted, because no word is ever split again; nothing is read from this machine.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Optional, Sequence

from hivekeeper.config.layers import Config, carry
from hivekeeper.config.settings import SparkSettings
from hivekeeper.config.sources import CARRIED, SECRET
from hivekeeper.launch import driver_words

# Separates the launcher's values from the options of spark-submit.
END = "--"

# Names inside YARN containers.
ENV_ALIAS = "hivekeeper-env"
LOG4J2 = "hivekeeper-log4j2.properties"

# HotSpot's second compiler does not pay for itself in a command that ends within a minute or two (docs/architecture.md has figures).
# A driver on YARN only lists, renames and reads footers.
NO_SECOND_COMPILER = "-XX:TieredStopAtLevel=1"
# In local mode it also copies, perhaps for hours: HotSpot's own thresholds (Java 8 to 21) times 40, which hot code reaches in seconds.
LATE_SECOND_COMPILER = (
    "-XX:Tier4InvocationThreshold=200000 -XX:Tier4MinInvocationThreshold=24000 -XX:Tier4CompileThreshold=600000 "
    "-XX:Tier4BackEdgeThreshold=1600000"
)

FIXED = {
    # A second attempt, or a second copy of a task, would write alongside the first one.
    "spark.yarn.maxAppAttempts": "1",
    "spark.speculation": "false",
    # Version 2 exposes task files before the job has succeeded.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
    # By default HDFS sleeps 400 ms when a DataNode's report is late: 220 ms per small file instead of 23 ms. Each sleep doubles, so a
    # shorter first sleep needs more retries to wait as long as the default (12 s) before closing the file fails.
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.retries": "12",
    "spark.ui.showConsoleProgress": "false",
    # Anyone who reaches the UI's port could see plans, with values, and stop jobs.
    "spark.ui.enabled": "false",
}


def launch_words(
    config: Config, python: str, log4j2: Path, run: str, shipped: Sequence[str] = (), own_ticket: bool = False, words: Sequence[str] = ()
) -> List[str]:
    """Everything the launcher needs: NAME=VALUE words, END, then the options of spark-submit.

    `own_ticket`: the user must have a ticket. `run` names the output of a driver in cluster mode; `shipped` are the local files that such a
    driver needs, and `words` what the operator has typed, for it.
    """
    spark, kerberos = config.spark, config.kerberos
    known = {
        "master": spark.master,
        "deploy_mode": spark.deploy_mode,
        "archive": spark.archive,
        "driver_output": f"{spark.driver_output_dir.rstrip('/')}/{run}.json" if spark.deploy_mode == "cluster" else None,
        "carried_words": driver_words.carry(words) if spark.deploy_mode == "cluster" else None,
        "submit_command": spark.submit_command,
        "spark_home": spark.home,
        "java_home": spark.java_home,
        "principal": kerberos.principal,
        "keytab": kerberos.keytab,
        "proxy_user": kerberos.proxy_user,
        "own_ticket": "yes" if own_ticket else None,
        "log_dir": config.log_dir,
        "log_keep": config.log_keep,
    }
    values = [f"{name}={value}" for name, value in known.items() if value is not None]
    return [*values, END, *submit_options(config, python, log4j2, shipped)]


def submit_options(config: Config, python: str, log4j2: Path, shipped: Sequence[str] = ()) -> List[str]:
    """The options of spark-submit. `python`: the interpreter for a driver on this machine."""
    spark, kerberos = config.spark, config.kerberos
    yarn, cluster = spark.master == "yarn", spark.deploy_mode == "cluster"
    files = [*spark.extra_files, *([name_shipped(log4j2, LOG4J2), *shipped] if cluster else [])]
    archives = [*spark.archives, *([_with_alias(spark.python_env)] if yarn and spark.python_env else [])]
    # spark-submit takes a keytab or a proxy user, not both: a proxy user runs on the ticket that the launcher got from the keytab.
    logs_in = kerberos.proxy_user is None
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
        "--principal": kerberos.principal if logs_in else None,
        "--keytab": kerberos.keytab if logs_in else None,
        "--proxy-user": kerberos.proxy_user,
        "--files": ",".join(files) or None,
        "--archives": ",".join(archives) or None,
        "--py-files": ",".join(spark.py_files) or None,
    }
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    hidden = hide_secrets(config)
    for name, value in {**FIXED, **_properties(config, python, log4j2), **spark.extra_conf}.items():
        words += ["--conf", f"{name}={value}"] if name not in hidden else []
    return words


def hide_secrets(config: Config) -> Dict[str, str]:
    """The Spark properties that the driver sets by itself: all users of a machine can read the command lines on it.

    Not what Java must be started with. None in cluster mode, where Spark's own client has to get them.
    """
    if config.spark.deploy_mode == "cluster":
        return {}
    return {name: value for name, value in config.spark.extra_conf.items() if _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    if name.startswith("spark.driver."):
        return False
    return bool(SECRET.search(name) or (name.startswith("spark.hadoop.") and SECRET.search(value)))


def _properties(config: Config, python: str, log4j2: Path) -> Dict[str, str]:
    """The Spark properties that depend on the configuration."""
    spark = config.spark
    if spark.master != "yarn":
        # In local mode Spark creates the secret itself. On YARN the site decides, because the NodeManagers' shuffle service must know it
        # too.
        java = _driver_java(log4j2.absolute().as_uri(), LATE_SECOND_COMPILER)
        return {"spark.pyspark.driver.python": python, "spark.authenticate": "true", **java}
    properties = {
        "spark.executor.memoryOverhead": spark.executor_memory_overhead,
        **(_cluster_properties(config) if spark.deploy_mode == "cluster" else _client_properties(spark, python, log4j2)),
    }
    return {name: value for name, value in properties.items() if value is not None}


def _client_properties(spark: SparkSettings, python: str, log4j2: Path) -> Dict[str, Optional[str]]:
    return {
        "spark.pyspark.driver.python": python,
        "spark.pyspark.python": _packed_python(spark),
        **_driver_java(log4j2.absolute().as_uri(), NO_SECOND_COMPILER),
    }


def _cluster_properties(config: Config) -> Dict[str, Optional[str]]:
    spark = config.spark
    return {
        # The launcher needs the driver's output, so submission must wait whatever the site's spark-defaults.conf says.
        "spark.yarn.submit.waitAppCompletion": "true",
        "spark.driver.memoryOverhead": spark.driver_memory_overhead,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": _packed_python(spark),
        "spark.pyspark.python": _packed_python(spark),
        # Otherwise one in the site's spark-defaults.conf would override ours.
        "spark.pyspark.driver.python": _packed_python(spark),
        f"spark.yarn.appMasterEnv.{CARRIED}": carry(config),
        **_driver_java(LOG4J2, NO_SECOND_COMPILER),
    }


def name_shipped(path: Path, alias: str) -> str:
    """A local file for --files, renamed in the containers. A URI, because in a plain path with a blank Spark misses the #."""
    return f"{path.absolute().as_uri()}#{alias}"


def _driver_java(log4j2: str, compiler: str) -> Dict[str, str]:
    # Not extraJavaOptions: setting them here would override the site's own (spark-defaults.conf).
    # Spark itself adds the options that Java 17 needs.
    return {"spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={log4j2} {compiler}"}


def find_packed_home(config: Config) -> Optional[str]:
    """Where the driver's Python must be, relative to its working directory; None for a driver outside YARN containers."""
    spark = config.spark
    return _packed_home(spark.python_env) if spark.deploy_mode == "cluster" and spark.python_env else None


def _packed_python(spark: SparkSettings) -> Optional[str]:
    return f"./{_packed_home(spark.python_env)}/bin/python" if spark.python_env else None


def _packed_home(python_env: str) -> str:
    return _with_alias(python_env).rpartition("#")[2]


def _with_alias(archive: str) -> str:
    return archive if "#" in PurePosixPath(archive).name else f"{archive}#{ENV_ALIAS}"
