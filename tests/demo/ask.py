"""Ask Spark SQL one question, print the rows, and write them as JSON.

A separate program, as any engine that knows the metastore could be.
"""

from __future__ import annotations

import argparse
import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("query")
    parser.add_argument("--output", required=True, metavar="FILE", help="where the rows go, a list of objects")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting, where spark-submit is not used")
    options = parser.parse_args()
    builder = SparkSession.builder.appName("hivekeeper-demo-question").enableHiveSupport()
    for setting in options.conf:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = spark.sql(options.query)
    rows = [row.asDict() for row in found.collect()]
    spark.stop()
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(rows, file)
    sys.stdout.write(" ".join(options.query.split()) + "\n\n")
    sys.stdout.write("  ".join(f"{column:>15}" for column in found.columns) + "\n")
    for row in rows:
        sys.stdout.write("  ".join(f"{'-' if row[column] is None else row[column]!s:>15}" for column in found.columns) + "\n")


if __name__ == "__main__":
    main()
