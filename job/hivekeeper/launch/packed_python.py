"""Checks that a driver in a YARN container runs on the Python that was packed for it."""

from __future__ import annotations

import os

from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch import spark_submit
from hivekeeper.reasons import Code


def require_packed_python(config: Config, directory: str, prefix: str) -> None:
    """Raise UsageError if the driver in `directory` should run on the packed Python and `prefix` is another one."""
    home = spark_submit.find_packed_home(config)
    if home is None or os.path.realpath(os.path.join(directory, home)) == os.path.realpath(prefix):
        return
    raise UsageError(
        f"spark.python_env is {config.spark.python_env}, but the driver runs on the Python in {prefix}, not on the one in ./{home}",
        code=Code.WRONG_PYTHON,
        next="look for a Spark property (spark.extra_conf, spark-defaults.conf) that names another Python; docs/python-env.md",
    )
