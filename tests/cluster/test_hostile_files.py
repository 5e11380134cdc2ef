"""Files that make decoders ask for more memory than an executor has: on YARN they cost their own partitions, and no executor."""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping

from cluster.edge import Edge
from cluster.test_submit import YARN
from support import decoder_bombs, orc_bombs

# Three lengths of strings, each 600 MB: only the library knows which of them it reads at a time, so nothing refuses it before.
LENGTHS = b"\x00\x00\x80\x8c\x8d\x9e\x02"


def write_table(spark: Any, name: str, columns: str, format: str, partitions: Mapping[str, Mapping[str, Callable[[], bytes]]]) -> None:
    root = f"/user/etl/{name.replace('.', '/')}"
    spark.sql(f"CREATE EXTERNAL TABLE {name} ({columns}) PARTITIONED BY (dt STRING) STORED AS {format} LOCATION '{root}'")
    spark.sql(f"ALTER TABLE {name} ADD " + " ".join(f"PARTITION (dt='{day}')" for day in partitions))
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for day, files in partitions.items():
        for number, make in enumerate(files.values()):
            path = spark._jvm.org.apache.hadoop.fs.Path(f"{root}/dt={day}/{number}")
            out = path.getFileSystem(conf).create(path)
            out.write(bytearray(make()))
            out.close()


def test_a_file_that_asks_for_gigabytes_costs_its_partition_and_no_executor(edge: Edge, spark: Any, database: str):
    sound = decoder_bombs.SOUND["plain"]
    kinds = ("run of a dictionary's places", "block of deltas")
    bombs = {f"bomb{number}": {"sound": sound, "bomb": decoder_bombs.BOMBS[kind]} for number, kind in enumerate(kinds)}
    write_table(spark, f"{database}.numbers", "id INT", "PARQUET", {**bombs, "good": {"one": sound, "other": sound}})
    strings = orc_bombs.SOUND["strings"]
    starving = {"sound": strings, "bomb": lambda: orc_bombs.file_of(orc_bombs.STRING, {orc_bombs.DATA: b"abc", orc_bombs.LENGTH: LENGTHS})}
    write_table(spark, f"{database}.words", "id STRING", "ORC", {"bomb": starving, "good": {"one": strings, "other": strings}})
    edge.configure(spark=YARN)
    done = edge.run("compact-swap", "--json", "--table", f"{database}.numbers", "--table", f"{database}.words")
    numbers, words = ({unit["partition"]: unit for unit in table["units"]} for table in json.loads(done.stdout)["tables"])
    assert {name: unit["outcome"] for name, unit in numbers.items()} == {"dt=bomb0": "failed", "dt=bomb1": "failed", "dt=good": "swapped"}
    assert {name: unit["outcome"] for name, unit in words.items()} == {"dt=bomb": "failed", "dt=good": "swapped"}
    assert " claims " in numbers["dt=bomb0"]["reason"]
    assert " takes 8589951530 bytes of memory" in numbers["dt=bomb1"]["reason"]
    assert "OutOfMemoryError" in words["dt=bomb"]["reason"]
    assert "Lost executor" not in done.stderr
