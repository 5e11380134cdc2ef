"""Finds the files that the configuration ships with a job, and those of this machine that a driver in cluster mode needs beside it."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple
from urllib.parse import unquote

from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch import driver_output, output_files
from hivekeeper.launch.spark_submit import name_shipped
from hivekeeper.launch.trusted_files import require_trusted

HIVE_SITE = "hive-site.xml"

# The Spark properties that name files to be shipped.
FILE_PROPERTIES = (
    "spark.jars",
    "spark.files",
    "spark.archives",
    "spark.submit.pyFiles",
    "spark.yarn.dist.jars",
    "spark.yarn.dist.files",
    "spark.yarn.dist.archives",
    # By which Spark itself comes to the containers.
    "spark.yarn.archive",
    "spark.yarn.jars",
)
# The classes of Hive. Without a scheme Spark looks for them on the cluster, not on this machine.
METASTORE_JARS = "spark.sql.hive.metastore.jars.path"

# `local:` is Spark's name for what is on each machine.
HERE = ("file:", "local:")


def require_trusted_shipped(config: Config, environ: Mapping[str, str]) -> None:
    """Raise UsageError if somebody else could change a local file that is shipped: it is, or decides, what runs."""
    for path, is_here in _list_shipped(config):
        if is_here:
            for found in _expand(_local_path(path)):
                require_trusted(found, environ)


def list_on_cluster(config: Config) -> Tuple[str, ...]:
    """The shipped files that are on the cluster."""
    return tuple(path for path, is_here in _list_shipped(config) if not is_here)


def _list_shipped(config: Config) -> Iterator[Tuple[str, bool]]:
    """Each with whether it is on this machine. As Spark reads them: separated by commas, with an alias after a #."""
    spark = config.spark
    listed = [*spark.archives, *spark.extra_files, *spark.py_files, spark.python_env or ""]
    listed += [spark.extra_conf.get(name, "") for name in FILE_PROPERTIES]
    for path in [*_split(listed), spark.archive or ""]:
        if path:
            yield path.rpartition("#")[0] if "#" in path else path, _is_here(path)
    for path in _split([spark.extra_conf.get(METASTORE_JARS, "")]):
        if path:
            yield path, path.lower().startswith(HERE)


def _split(listed: Sequence[str]) -> List[str]:
    return [path.strip() for paths in listed for path in paths.split(",")]


def _is_here(path: str) -> bool:
    """Whether a path is local."""
    return path.lower().startswith(HERE) or not output_files.is_remote(path)


def _local_path(path: str) -> str:
    scheme, _, rest = path.partition(":")
    return "/" + unquote(rest).lstrip("/") if scheme.lower() in ("file", "local") else path


def _expand(pattern: str) -> List[str]:
    """A pattern also stands for itself: the directories above it decide what it matches."""
    return [pattern, *(glob.glob(pattern) if glob.has_magic(pattern) else [])]


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
