"""Archives and jars by which Spark itself is brought to YARN's containers decide what runs there, as other shipped files do."""

from __future__ import annotations

import pytest

from hivekeeper.config import layers
from hivekeeper.launch.shipped_files import list_on_cluster


@pytest.mark.parametrize("name", ["spark.yarn.archive", "spark.yarn.jars", "spark.sql.hive.metastore.jars.path"])
def test_sparks_own_archive_and_jars_on_the_cluster_are_judged(name):
    config = layers.load([], {}, {}, [f"spark.extra_conf.{name}=hdfs:///user/mallory/spark.zip"])
    assert list_on_cluster(config) == ("hdfs:///user/mallory/spark.zip",)


def test_the_jars_of_the_metastore_are_on_the_cluster_unless_they_say_otherwise():
    """Spark finds them by `fs.defaultFS`, where a path of its own properties without a scheme is of this machine."""
    jars = "/apps/hive/*.jar, file:/opt/hive.jar,local:///opt/b.jar,hdfs:///c.jar"
    assert list_on_cluster(layers.load([], {}, {}, [f"spark.extra_conf.spark.sql.hive.metastore.jars.path={jars}"])) == (
        "/apps/hive/*.jar",
        "hdfs:///c.jar",
    )
    assert list_on_cluster(layers.load([], {}, {}, ["spark.extra_conf.spark.yarn.jars=/opt/spark/*.jar"])) == ()
