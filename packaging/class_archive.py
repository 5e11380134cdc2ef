"""Write a class-data archive of what most tests start: Spark with an embedded metastore, Parquet and ORC.

A JVM that is given the archive takes these classes from it, instead of reading and checking each of them in hundreds of jars: a start takes
two thirds of the processor's time. A JVM that finds other jars, or is another build, starts without it.
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import SparkSession


def main(archive: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        java = f"-XX:ArchiveClassesAtExit={archive} -XX:+UseSerialGC -Dderby.system.durability=test -Dderby.system.home={home}"
        options = {
            "spark.master": "local[1]",
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": java,
            "spark.sql.warehouse.dir": f"{home}/warehouse",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
        }
        builder = SparkSession.builder.enableHiveSupport()
        for name, value in options.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        for format_ in ("parquet", "orc"):
            spark.sql(f"CREATE TABLE {format_}_rows (id INT, name STRING) PARTITIONED BY (day STRING) STORED AS {format_}")
            spark.sql(f"INSERT INTO {format_}_rows VALUES (1, 'one', 'mon')")
            spark.sql(f"SELECT name, count(*) FROM {format_}_rows GROUP BY name").collect()
        java_process = spark.sparkContext._gateway.proc
        spark.stop()
        java_process.stdin.close()
        java_process.wait()


if __name__ == "__main__":
    main(sys.argv[1])
