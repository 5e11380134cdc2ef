"""What a client of the cluster needs, as on an edge node: environment variables and Spark's own configuration."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Dict

from cluster.servers.layout import Layout

SPARK_DEFAULTS = """\
# Spark lies at the same place on every node: nothing to upload.
spark.yarn.jars local:{jars}/*
spark.driver.memory 1g
spark.executor.memory 512m
spark.executor.memoryOverhead 256m
spark.yarn.am.memory 256m
spark.executor.instances 1
spark.ui.enabled false
spark.yarn.report.interval 500
"""


def client_environment(layout: Layout) -> Dict[str, str]:
    """HADOOP_CONF_DIR holds hive-site.xml too. JDK_JAVA_OPTIONS stands in for a site's /etc/krb5.conf."""
    environment = {"HADOOP_CONF_DIR": str(layout.conf), "SPARK_CONF_DIR": str(layout.run / "spark-conf"), "SPARK_LOCAL_IP": "127.0.0.1"}
    if layout.secure:
        environment["KRB5_CONFIG"] = str(layout.krb5_conf)
        environment["JDK_JAVA_OPTIONS"] = f"-Djava.security.krb5.conf={layout.krb5_conf}"
        # So that nobody's own ticket is used by accident.
        environment["KRB5CCNAME"] = f"FILE:{layout.run / 'tmp' / 'no-ticket'}"
    return environment


def environment_of_tests(layout: Layout) -> Dict[str, str]:
    """What Spark and contract tests need to run on the cluster instead of local files."""
    keytab = {"HKTEST_KEYTAB": str(layout.keytab("etl"))} if layout.secure else {"HADOOP_USER_NAME": "etl"}
    return {"HKTEST_FS": f"{layout.namenode}/user/etl/tests", "HKTEST_CLUSTER_DIR": str(layout.run), **keytab}


def find_spark_home() -> Path:
    """The Spark for these tests: SPARK_HOME, else this Python's."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def write_clients(layout: Layout) -> None:
    """Write Spark's configuration directory, and env.sh for a shell."""
    spark = layout.run / "spark-conf"
    spark.mkdir(exist_ok=True)
    (spark / "spark-defaults.conf").write_text(SPARK_DEFAULTS.format(jars=find_spark_home() / "jars"))
    lines = [
        f"export {name}={shlex.quote(value)}\n" for name, value in {**client_environment(layout), **environment_of_tests(layout)}.items()
    ]
    (layout.run / "env.sh").write_text("".join(lines))
