"""Make the tables of a shape: stored files once, on this machine; then any number of copies in HDFS and in the metastore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple

from bench.whole.processes import Run, run
from bench.whole.shapes import Seeds, Shape
from cluster.edge import Edge
from cluster.servers.artifacts import find_program
from cluster.servers.hadoop import OPENS, class_path
from cluster.servers.layout import CHECKOUT

HERE = Path(__file__).resolve().parent
SEEDS = CHECKOUT / ".cluster" / "bench-seeds"
TOP = "/user/etl/bench"
COLUMNS = {
    "id": "BIGINT",
    "user_id": "BIGINT",
    "kind": "STRING",
    "amount": "DOUBLE",
    "ts": "TIMESTAMP",
    "payload": "STRING",
}
VALUES = """id, id % 5000 user_id, element_at(array('view', 'click', 'buy'), CAST(id % 3 + 1 AS INT)) kind, rand(7) * 100 amount,
 timestamp_micros(1700000000000000 + id * 1000003) ts, sha2(CAST(id AS STRING), 512) payload"""
PARTITIONS_A_STATEMENT = 500
DRIVER_MEMORY = "2g"


class BenchTable(NamedTuple):
    shape: Shape
    database: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def root(self) -> str:
        return f"{TOP}/{self.database}/{self.name}"


class Tables:
    """Makes, fills and removes tables, as the user etl."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge

    def make_seeds(self, seeds: Seeds) -> List[Path]:
        """The stored files; written by Spark the first time."""
        place = SEEDS / f"{seeds.format}-{seeds.count}x{seeds.rows}"
        if not (place / "_SUCCESS").exists():
            # One task, and so one file, for each part of the range.
            rows = f"SELECT {VALUES} FROM range(0, {seeds.count * seeds.rows}, 1, {seeds.count})"
            self.run_sql([f"INSERT OVERWRITE DIRECTORY 'file:{place}' USING {seeds.format} {rows}"])
        return sorted(path for path in place.iterdir() if path.name.startswith("part-"))

    def define(self, database: str, tables: Iterable[BenchTable]) -> None:
        """In the metastore, without files, and instead of what an earlier run left."""
        self.run_files("delete", f"{TOP}/{database}")
        statements = [f"DROP DATABASE IF EXISTS {database} CASCADE", f"CREATE DATABASE {database} LOCATION '{TOP}/{database}'"]
        for table in tables:
            columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
            by = "" if table.shape.flat else "PARTITIONED BY (dt STRING)"
            form = table.shape.seeds.format.upper()
            statements.append(f"CREATE EXTERNAL TABLE {table.full_name} ({columns}) {by} STORED AS {form} LOCATION '{table.root}'")
            values = [] if table.shape.flat else table.shape.partitions()
            for begin in range(0, len(values), PARTITIONS_A_STATEMENT):
                some = " ".join(f"PARTITION (dt='{value}')" for value in values[begin : begin + PARTITIONS_A_STATEMENT])
                statements.append(f"ALTER TABLE {table.full_name} ADD {some}")
        self.run_sql(statements, hive=True)

    def fill(self, table: BenchTable) -> None:
        stored = {seeds: self.make_seeds(seeds) for seeds in filter(None, [table.shape.seeds, table.shape.large])}
        plan = self.edge.home / "plan"
        plan.write_text("".join(f"{stored[seeds][number]}\t{table.root}/{path}\n" for seeds, number, path in table.shape.copies()))
        self.run_files("put", str(plan))

    def empty(self, table: BenchTable) -> None:
        """The files and what lies beside them; the database's directory holds one table's files at a time."""
        self.run_files("delete", f"{TOP}/{table.database}")

    def drop(self, database: str) -> None:
        self.run_sql([f"DROP DATABASE IF EXISTS {database} CASCADE"], hive=True)
        self.run_files("delete", f"{TOP}/{database}")

    def count(self, place: str, since_ms: int = 0) -> Dict[str, int]:
        """{"files": …, "bytes": …} of the files below a directory that were written since then, without hidden names."""
        lines = self.run_files("count", place, str(since_ms)).output.splitlines()
        return {name: int(number) for name, number in map(str.split, lines) if name != "session"}

    def run_files(self, *words: str) -> Run:
        options = ["-Xmx1g", "-XX:+UseSerialGC", *OPENS]
        return run(
            [find_program("java"), *options, "-cp", class_path(self.edge.layout), str(HERE / "HdfsFiles.java"), *words],
            self.edge.environ,
            self.edge.home,
        )

    def run_sql(self, statements: List[str], hive: bool = False, options: Iterable[str] = ()) -> Run:
        return run([*spark_submit(self.edge, options), *sql_words(self.edge, statements, hive)], self.edge.environ, self.edge.home)


def spark_submit(edge: Edge, options: Iterable[str] = ()) -> List[str]:
    return [
        f"{edge.environ['SPARK_HOME']}/bin/spark-submit",
        *("--master", "local[2]", "--driver-memory", DRIVER_MEMORY),
        *("--conf", "spark.ui.showConsoleProgress=false"),
        # As quiet as ours: each task would write a dozen lines.
        *("--conf", "spark.log.level=WARN"),
        *options,
    ]


def sql_words(edge: Edge, statements: List[str], hive: bool = False) -> List[str]:
    """What spark-submit runs."""
    asked = edge.home / "statements.json"
    asked.write_text(json.dumps({"hive": hive, "statements": statements}))
    return [str(HERE / "run_sql.py"), str(asked)]
