"""Measure what the catalogue adds to a command, and what `analyze --changed` saves: TABLES=1000 tables of PARTITIONS=100 partitions.

  make bench-catalogue [TABLES=1000] [PARTITIONS=100] [ROW_GROUPS=8] [TURNS=5]

The rows are synthetic, the files real, on local disks: the first commit of all tables, then, TURNS times, the commit of one table (which
writes its part of the catalogue again), the rows of one table as `--changed` reads them, and a query over all tables. Beside them, in turn
and on the same part: pyarrow, which reads it, leaves out the table, and writes it with new rows; and a second catalogue, of the level
row_group, with ROW_GROUPS for each partition, which a commit takes over from the one before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, Iterator, List

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hivekeeper.catalogue import row_groups, rows
from hivekeeper.catalogue.catalogue import Catalogue
from hivekeeper.catalogue.columns import CATALOGUE, GENERAL, TABLES
from hivekeeper.catalogue.commits import OVERWRITE
from hivekeeper.catalogue.store import Part, Store
from hivekeeper.cluster.connect import assemble
from hivekeeper.cluster.driver import Driver
from hivekeeper.config.settings import CatalogueSettings
from hivekeeper.ports import Row

DATABASE = "sales"


def table_name(number: int) -> str:
    return f"table_{number:05d}"


def rows_of(table: str, partitions: int, seen_ms: int, groups: int = 0) -> Iterator[Row]:
    """As analyze would record them, with so many row groups of each partition, in one file."""
    common = {"catalogue_name": CATALOGUE, "database_name": DATABASE, "table_name": table, "run": "20260101t020304z-1f0c"}
    of_table = {**common, "metadata_key": GENERAL, "metadata_identifier": GENERAL, "metadata_kind": "TABLE", "files": partitions * 8}
    yield tuple(of_table.get(column) for column in TABLES.columns)
    for number in range(partitions):
        segment = f"dt={2000 + number // 365}-{number % 365:03d}"
        of_partition = {
            **common,
            "metadata_key": segment,
            "metadata_identifier": f"{segment}/",
            "metadata_kind": "PARTITION",
            "partition_name": segment,
            "place": f"hdfs://nameservice1/warehouse/{DATABASE}.db/{table}/{segment}",
            "seen_ms": seen_ms,
            "modified_ms": seen_ms - 86_400_000 + number,
            "directory_id": 1_000_000 + number,
            "files": 8,
            "total_bytes": 1_000_000_000 + number,
            "median_bytes": 125_000_000.5,
            "small_files": 0,
            "small_bytes": 0,
            "objects": 17,
            "verdict": "fine",
            "judged_by": "134217728/10/source/",
            "lengths": " ".join(f"{120_000_000 + 7 * number + index}:1" for index in range(8)),
        }
        yield tuple(of_partition.get(column) for column in TABLES.columns)
        for index in range(groups):
            file = f"part-00000-{number:08d}-1f0c-4c1e-9e0b-6d2f.c000.snappy.parquet"
            of_group = {
                **common,
                "metadata_key": segment,
                "metadata_identifier": f"{segment}/{file}/{index}",
                "metadata_kind": "ROW_GROUP",
                "operation": "compact-swap",
                "seen_ms": seen_ms,
                "partition_name": segment,
                "file_name": file,
                "modified_ms": seen_ms - 86_400_000 + number,
                "file_bytes": groups * 125_000_000 + number,
                "row_group_index": index,
                "row_group_start": 4 + index * 125_000_000,
                "total_bytes": 125_000_000 + number,
                "row_count": 1_000_000 + number * index,
            }
            yield tuple(of_group.get(column) for column in TABLES.columns)


def rows_of_all(tables: List[str], partitions: int, seen_ms: int, groups: int = 0) -> Iterator[Row]:
    return (row for table in tables for row in rows_of(table, partitions, seen_ms, groups))


def commit(store: Store, tables: List[str], partitions: int, seen_ms: int, groups: int = 0) -> None:
    by_part: Dict[str, List[str]] = {}
    for table in tables:
        by_part.setdefault(rows.bucket_of(DATABASE, table), []).append(table)

    def parts(_before: object) -> Iterator[Part]:
        for part, some in sorted(by_part.items()):
            without = [(CATALOGUE, DATABASE, table) for table in some]
            yield Part(part, without, partial(rows_of_all, some, partitions, seen_ms, groups))

    store.change(OVERWRITE, parts)


def commit_and_take_over(catalogue: Catalogue, table: str, partitions: int, seen_ms: int) -> None:
    """As a command that has read no footer of the table."""
    part = rows.bucket_of(DATABASE, table)
    only = {"database_name": DATABASE, "table_name": table, "metadata_kind": row_groups.KIND}

    def all_rows() -> Iterator[Row]:
        yield from rows_of(table, partitions, seen_ms)
        yield from catalogue.read(TABLES, tuple(TABLES.columns), only)

    catalogue.store(TABLES).change(OVERWRITE, lambda _before: [Part(part, [(CATALOGUE, DATABASE, table)], all_rows)])


def rewrite_by_arrow(store: Store, table: str, partitions: int, target: str) -> None:
    part = rows.bucket_of(DATABASE, table)
    file = next(file for file in (store.newest()[1].files) if file.part == part)  # type: ignore[union-attr]
    old = pq.ParquetFile(f"{store.top.partition(':')[2]}/{file.path}").read()
    kept = old.filter(pc.not_equal(old["table_name"], table))
    cells = list(zip(*rows_of(table, partitions, 1)))
    new = pa.table({name: pa.array(column, kept.schema.field(name).type) for name, column in zip(kept.schema.names, cells)})
    pq.write_table(pa.concat_tables([kept, new]), target, compression="snappy")


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--row-groups", type=int, default=8)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        driver = Driver(
            {
                "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
                "spark.driver.memory": "2g",
                "spark.sql.warehouse.dir": f"file:{home}/warehouse",
            },
            "ERROR",
        )
        settings = CatalogueSettings(base_path=f"file:{home}/catalogue")
        catalogue = Catalogue.open(assemble(driver), settings, "20260101t020304z-1f0c", ())  # type: ignore[arg-type]
        store, now_ms = catalogue.store(TABLES), int(time.time() * 1000)
        names = [table_name(number) for number in range(options.tables)]
        first = timed(lambda: commit(store, names, options.partitions, now_ms))
        total = options.tables * (options.partitions + 1)
        sizes = [file.size for file in store.newest()[1].files]  # type: ignore[union-attr]
        print(f"all {total:,} rows in one commit: {first:.1f} s, {sum(sizes) / 2**20:.1f} MiB in {len(sizes)} files", flush=True)
        deep = Catalogue.open(assemble(driver), replace(settings, relative_path="deep"), catalogue.run, ())  # type: ignore[arg-type]
        first = timed(lambda: commit(deep.store(TABLES), names, options.partitions, now_ms, options.row_groups))
        sizes = [file.size for file in deep.store(TABLES).newest()[1].files]  # type: ignore[union-attr]
        total += options.tables * options.partitions * options.row_groups
        print(f"all {total:,} rows with row groups: {first:.1f} s, {sum(sizes) / 2**20:.1f} MiB in {len(sizes)} files", flush=True)
        steps: Dict[str, Callable[[str], object]] = {
            "commit one table": lambda table: commit(store, [table], options.partitions, now_ms),
            "commit one with row groups": lambda table: commit_and_take_over(deep, table, options.partitions, now_ms),
            "the same rows by pyarrow": lambda table: rewrite_by_arrow(store, table, options.partitions, f"{home}/arrow.parquet"),
            "point the tables of Hive": lambda _table: catalogue.register(TABLES),
            "what is known of one table": lambda table: len(catalogue.known_units(f"{DATABASE}.{table}")),
            "the rows of all tables": lambda _table: sum(1 for _ in catalogue.read(TABLES, ("files",), {"metadata_kind": "TABLE"})),
        }
        seconds: Dict[str, List[float]] = {name: [] for name in steps}
        for turn in range(-1, options.turns):
            for name, step in steps.items():
                spent = timed(partial(step, names[turn * 7 % len(names)]))
                if turn >= 0:
                    seconds[name].append(spent)
        for name, found in seconds.items():
            print(f"{name:28} median {statistics.median(found) * 1000:8.0f} ms, {min(found) * 1000:.0f} to {max(found) * 1000:.0f}")
        ratios = [ours / theirs for ours, theirs in zip(seconds["commit one table"], seconds["the same rows by pyarrow"])]
        print(f"{'commit / pyarrow':28} median {statistics.median(ratios):8.1f}")
        ratios = [deeper / usual for deeper, usual in zip(seconds["commit one with row groups"], seconds["commit one table"])]
        print(f"{'with / without row groups':28} median {statistics.median(ratios):8.1f}")
        driver.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
