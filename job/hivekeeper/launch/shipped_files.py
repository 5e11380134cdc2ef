"""Finds the local files that a driver in cluster mode needs beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, Mapping, Optional

from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch import driver_output
from hivekeeper.launch.spark_submit import name_shipped

HIVE_SITE = "hive-site.xml"


def find_shipped(tables_file: Optional[str], config: Config, environ: Mapping[str, str]) -> List[str]:
    """Words for --files: the file of --tables-file, and the hive-site.xml of Spark's own configuration."""
    return [*([_ship_tables_file(tables_file, config)] if tables_file else []), *_find_hive_site(config, environ)]


def _ship_tables_file(path: str, config: Config) -> str:
    if config.spark.deploy_mode == "cluster" and "," in os.path.abspath(path):
        raise UsageError(f"Spark cannot ship a file with a comma in its path: {path}", next="rename it")
    return name_shipped(Path(path), driver_output.TABLES)


def _find_hive_site(config: Config, environ: Mapping[str, str]) -> List[str]:
    """Spark ships the files in HADOOP_CONF_DIR and YARN_CONF_DIR, but not the hive-site.xml of its own configuration."""
    spark_home = config.spark.home or environ.get("SPARK_HOME")
    own = environ.get("SPARK_CONF_DIR") or (spark_home and os.path.join(spark_home, "conf"))
    by_spark = [environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    given = any(path.partition("#")[0].endswith(HIVE_SITE) for path in config.spark.extra_files)
    if not own or given or any(path and Path(path, HIVE_SITE).exists() for path in by_spark):
        return []
    found = Path(own, HIVE_SITE)
    return [name_shipped(found, HIVE_SITE)] if found.exists() else []
