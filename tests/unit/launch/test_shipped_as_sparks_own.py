"""Archives and jars by which Spark itself is brought to YARN's containers decide what runs there, as other shipped files do."""

from __future__ import annotations

import pytest

from hivekeeper.config import layers
from hivekeeper.launch.shipped_files import list_on_cluster


@pytest.mark.parametrize("name", ["spark.yarn.archive", "spark.yarn.jars", "spark.sql.hive.metastore.jars.path"])
def test_sparks_own_archive_and_jars_on_the_cluster_are_judged(name):
    config = layers.load([], {}, {}, [f"spark.extra_conf.{name}=hdfs:///user/mallory/spark.zip"])
    assert list_on_cluster(config) == ("hdfs:///user/mallory/spark.zip",)
