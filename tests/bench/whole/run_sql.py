"""Run the statements of a JSON file, {"hive": BOOL, "statements": [...]}, in a Spark session; prints when the session was there.

Started by spark-submit, in a process of its own: it imports nothing of ours.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text())
    builder = SparkSession.builder.appName("bench")
    spark = (builder.enableHiveSupport() if asked["hive"] else builder).getOrCreate()
    spark.sql("SHOW DATABASES").collect()
    print(f"session {time.time_ns() // 1_000_000}", flush=True)
    for statement in asked["statements"]:
        for row in spark.sql(statement).collect():
            print(row)
    spark.stop()


if __name__ == "__main__":
    main()
