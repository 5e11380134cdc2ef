"""The programs that are compared: what each runs, step by step. A step is one process."""

from __future__ import annotations

from typing import Callable, Dict, FrozenSet, List, NamedTuple, Sequence

from bench.whole.bench_table import COLUMNS, DRIVER_MEMORY, HERE, BenchTable, Tables, spark_submit
from bench.whole.peers import fetch_lakekeeper, fetch_library
from bench.whole.processes import Run, run
from cluster.edge import Edge
from cluster.servers.layout import CHECKOUT

HIVEKEEPER = CHECKOUT / "bin" / "hivekeeper"


class Step(NamedTuple):
    """`act` runs the process. `is_main`: what the programs are compared by."""

    name: str
    act: Callable[[], Run]
    is_main: bool = False


class Program(NamedTuple):
    """`fetch` raises Missing. `result`: the directory in which the compacted files are. `in_metastore`: it needs a Hive table.
    `leaves_large`: it is compared only where there are well-sized files to be left.
    """

    about: str
    steps: Callable[[Tables, BenchTable], List[Step]]
    result: Callable[[BenchTable], str]
    fetch: Callable[[], object] = lambda: None
    formats: FrozenSet[str] = frozenset({"parquet", "orc"})
    in_metastore: bool = False
    leaves_large: bool = False


def hivekeeper(tables: Tables, table: BenchTable) -> List[Step]:
    return _steps(tables, table, [])


def joins(tables: Tables, table: BenchTable) -> List[Step]:
    return _steps(tables, table, ["exchange=files", "read_by_llap=false"])


def _steps(tables: Tables, table: BenchTable, settings: List[str]) -> List[Step]:
    edge = tables.edge
    edge.configure(None, {"driver_memory": DRIVER_MEMORY})

    def step(command: str, is_main: bool = False) -> Step:
        return Step(command, lambda: run_hivekeeper(edge, table, command, settings), is_main)

    return [step("compact-swap", is_main=True), step("verify"), step("rollback")]


def run_hivekeeper(edge: Edge, table: BenchTable, command: str, settings: Sequence[str] = ()) -> Run:
    words = [command, "--table", table.full_name, "--json", *(["--yes"] if command == "rollback" else [])]
    for setting in (f"block_size={table.shape.block_bytes >> 20}m", *settings):
        words += ["--set", setting]
    return run([str(HIVEKEEPER), *words], edge.environ, edge.home)


def lakekeeper(tables: Tables, table: BenchTable) -> List[Step]:
    """Its `compact` analyzes and backs up first, in the same process."""
    edge, python = tables.edge, fetch_lakekeeper()
    command = [*spark_submit(edge, ["--conf", f"spark.pyspark.driver.python={python}"]), str(HERE / "run_lakekeeper.py")]

    def act(name: str) -> Callable[[], Run]:
        return lambda: run([*command, name, "--table", table.full_name], edge.environ, edge.home)

    return [Step("compact", act("compact"), True), Step("rollback", act("rollback"))]


def iceberg(tables: Tables, table: BenchTable) -> List[Step]:
    """Adds the files to a table of its own, in a catalog without a metastore, and rewrites that."""
    options = ["--jars", fetch_library("iceberg")]
    for name, value in {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": iceberg_place(table),
    }.items():
        options += ["--conf", f"{name}={value}"]
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    by, days = ("", "") if table.shape.flat else (", dt STRING", "PARTITIONED BY (dt)")
    source = f"`{table.shape.seeds.format}`.`{tables.edge.layout.namenode}{table.root}`"
    add = [
        f"CREATE TABLE ice.db.t ({columns}{by}) USING iceberg {days} TBLPROPERTIES ('write.format.default'='{table.shape.seeds.format}')",
        f"CALL ice.system.add_files(table => 'db.t', source_table => '{source}')",
    ]
    rewrite = f"CALL ice.system.rewrite_data_files(table => 'db.t', options => map('target-file-size-bytes', '{table.shape.block_bytes}'))"
    return [sql_step(tables, "add_files", add, options), sql_step(tables, "rewrite_data_files", [rewrite], options, is_main=True)]


def iceberg_place(table: BenchTable) -> str:
    return f"{table.root}_iceberg"


def delta(tables: Tables, table: BenchTable) -> List[Step]:
    """Converts the directory where it is."""
    options = ["--jars", fetch_library("delta")]
    for name, value in {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        **_delta_sizes(table),
    }.items():
        options += ["--conf", f"{name}={value}"]
    place, by = f"`{tables.edge.layout.namenode}{table.root}`", "" if table.shape.flat else " PARTITIONED BY (dt STRING)"
    return [
        sql_step(tables, "convert", [f"CONVERT TO DELTA parquet.{place}{by}"], options),
        sql_step(tables, "optimize", [f"OPTIMIZE delta.{place}"], options, is_main=True),
    ]


def _delta_sizes(table: BenchTable) -> Dict[str, str]:
    """What it leaves, and how large new files become; without them it takes a GiB for both."""
    if not table.shape.large:
        return {}
    sizes = {"minFileSize": table.shape.block_bytes * 3 // 4, "maxFileSize": table.shape.block_bytes}
    return {f"spark.databricks.delta.optimize.{name}": str(size) for name, size in sizes.items()}


def sql_step(tables: Tables, name: str, statements: List[str], options: List[str], is_main: bool = False) -> Step:
    return Step(name, lambda: tables.run_sql(statements, options=options), is_main)


def floor(tables: Tables, table: BenchTable) -> List[Step]:
    return [Step("read", lambda: tables.run_files("read", table.root), is_main=True)]


def at_root(table: BenchTable) -> str:
    return table.root


PROGRAMS: Dict[str, Program] = {
    "hivekeeper": Program("this", hivekeeper, at_root, in_metastore=True),
    "joins": Program("this, with `exchange: files`", joins, at_root, in_metastore=True, leaves_large=True),
    "lakekeeper": Program("Lakekeeper 0.0.6, analyze + backup + compact", lakekeeper, at_root, fetch_lakekeeper, in_metastore=True),
    "iceberg": Program(
        "Iceberg 1.10.0, rewrite_data_files", iceberg, lambda table: f"{iceberg_place(table)}/db/t/data", lambda: fetch_library("iceberg")
    ),
    "delta": Program("Delta 3.3.2, OPTIMIZE", delta, at_root, lambda: fetch_library("delta"), frozenset({"parquet"})),
    "floor": Program("every file opened and read once, in 8 threads of a plain JVM, and nothing else", floor, at_root),
}
