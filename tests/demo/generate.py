"""Create a database of Hive tables with the small files that frequent appends leave behind.

A separate program: run it with spark-submit on a cluster, or with python if pyspark is installed. It only adds (an existing
table or directory stops it), or with --drop removes the database that it created.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import List, Optional, Sequence, Tuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

Values = Tuple[Optional[str], ...]

LATE_TABLE = "events_by_date"
LATE_ROWS = 500
# Those before the first that Impala cannot write.
PLAIN_COLUMNS = 5


@dataclass(frozen=True)
class Plan:
    """One table: `partitions` holds the values of each partition, `files` and `rows` count for one partition.

    `mixed`: its files are of Spark's, Impala's and Hive's kinds in turn, with the columns that all of them write.
    """

    name: str
    format: str
    files: int
    rows: int
    keys: Tuple[Tuple[str, str], ...] = ()
    partitions: Tuple[Values, ...] = ((),)
    buckets: int = 0
    mixed: bool = False


def plan_tables(dates: Sequence[str], refs: Sequence[str]) -> List[Plan]:
    day, ref, channel = ("dt", "date"), ("ref", "string"), ("channel", "string")
    days = tuple((value,) for value in dates)
    odd_values = (("point of sale",), ("R&D/50% off: a=b",), (None,))
    return [
        Plan("events_flat", "parquet", files=300, rows=150_000),
        Plan("events_by_date", "orc", files=100, rows=50_000, keys=(day,), partitions=days),
        Plan(
            "events_by_date_ref",
            "parquet",
            files=60,
            rows=25_000,
            keys=(("dt", "string"), ref),
            partitions=tuple((value, name) for value in dates for name in refs),
        ),
        Plan("events_by_channel", "parquet", files=20, rows=4_000, keys=(channel,), partitions=odd_values),
        Plan("events_mixed", "parquet", files=24, rows=6_000, keys=(day,), partitions=days[:2], mixed=True),
        Plan("well_sized", "parquet", files=1, rows=50_000, keys=(day,), partitions=days[:2]),
        Plan("bucketed", "parquet", files=16, rows=8_000, buckets=4),
    ]


def make_rows(spark: SparkSession, plan: Plan, first_day: str) -> DataFrame:
    """Rows in the order of their ids, each partition a range of ids, so that a task writes into one partition."""
    slices = math.gcd(plan.files, 4) * len(plan.partitions)
    rows = spark.range(0, plan.rows * len(plan.partitions), 1, slices)
    place = F.floor(F.col("id") / plan.rows).cast("int") + 1
    for index, (name, _) in enumerate(plan.keys):
        rows = rows.withColumn(name, F.element_at(F.array(*[F.lit(values[index]) for values in plan.partitions]), place))
    day = F.col("dt") if "dt" in rows.columns else F.lit(first_day)
    columns = make_columns(day, plan.rows)
    return rows.select(*(columns[:PLAIN_COLUMNS] if plan.mixed else columns), *[name for name, _ in plan.keys])


def make_columns(day: Column, rows_a_day: int) -> List[Column]:
    """Columns of the kinds found in real event tables, including NULLs and nested ones; the same id always has the same row."""
    number = F.col("id")
    second = F.floor(number % rows_a_day * 86400 / rows_a_day)
    degrees = pick_number("lat", 18_000) / 100 - 90
    kinds = F.array(*[F.lit(kind) for kind in ("view", "cart", "order", "refund")])
    return [
        number,
        F.concat(F.lit("customer-"), F.lpad((number * 7919 % 50_000).cast("string"), 5, "0")).alias("customer"),
        F.element_at(kinds, pick_number("kind", 4) + 1).alias("kind"),
        F.when(number % 17 != 0, (pick_number("amount", 100_000) / 100).cast("decimal(12,2)")).alias("amount"),
        (F.unix_timestamp(day, "yyyy-MM-dd") + second).cast("timestamp").alias("happened_at"),
        F.date_add(F.to_date(day), 3).alias("due_on"),
        F.when(number % 5 != 0, F.array(F.lit("web"), F.concat(F.lit("tag-"), (number % 100).cast("string")))).alias("tags"),
        F.create_map(F.lit("source"), F.lit("app"), F.lit("version"), (number % 9).cast("string")).alias("properties"),
        F.when(number % 11 != 0, F.struct(degrees.alias("lat"), (degrees * 2).alias("lon"))).alias("place"),
        F.when(number % 3 == 0, F.lit("seen by the night shift, 100% sure; \"quoted\" and 'quoted'")).alias("note"),
    ]


def pick_number(salt: str, bound: int) -> Column:
    """A whole number below the bound, the same for the same id."""
    return F.abs(F.hash(F.col("id"), F.lit(salt)) % bound)


def write_files(rows: DataFrame, plan: Plan, location: str) -> None:
    """One task writes many files, one after the other: ten times as fast as one task per file."""
    writer = rows.write.format(plan.format).mode("error").option("maxRecordsPerFile", math.ceil(plan.rows / plan.files))
    if plan.keys:
        writer = writer.partitionBy(*[name for name, _ in plan.keys])
    writer.save(location)


def write_late_file(spark: SparkSession, plan: Plan, options: argparse.Namespace) -> None:
    """One more small file for the first partition, with the same form but its own rows, outside the table."""
    (key, _), day = plan.keys[0], options.dates[0]
    first = plan.rows * len(plan.partitions)
    rows = spark.range(first, first + LATE_ROWS, 1, 1).select(*make_columns(F.lit(day), plan.rows))
    writer = rows.write.format(plan.format).mode("error").option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    writer.save(f"{options.late.rstrip('/')}/{plan.name}/{key}={day}")


def create_table(spark: SparkSession, plan: Plan, rows: DataFrame, database: str, location: str) -> None:
    """With Hive's DDL: `CREATE TABLE … USING` would create a Spark data source table."""
    keys = dict(plan.keys)
    columns = ", ".join(f"{quote_name(field.name)} {field.dataType.simpleString()}" for field in rows.schema if field.name not in keys)
    partitioned = "PARTITIONED BY (" + ", ".join(f"{quote_name(name)} {kind}" for name, kind in plan.keys) + ")" if keys else ""
    clustered = f"CLUSTERED BY (id) INTO {plan.buckets} BUCKETS" if plan.buckets else ""
    name = f"{quote_name(database)}.{quote_name(plan.name)}"
    spark.sql(f"CREATE EXTERNAL TABLE {name} ({columns}) {partitioned} {clustered} STORED AS {plan.format} LOCATION {quote_text(location)}")
    if keys:
        spark.sql(f"MSCK REPAIR TABLE {name}")


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def make_table(spark: SparkSession, plan: Plan, options: argparse.Namespace) -> None:
    location = f"{options.location.rstrip('/')}/{plan.name}"
    started = time.monotonic()
    rows = make_rows(spark, plan, options.dates[0])
    write_files(rows, plan, location)
    if plan.mixed:
        from mixed_writers import share_out

        share_out(spark, location)
    create_table(spark, plan, rows, options.database, location)
    units, seconds = len(plan.partitions), time.monotonic() - started
    of_what = f"{units} partitions by {', '.join(name for name, _ in plan.keys)}" if plan.keys else "unpartitioned"
    size = f"{plan.rows * units:>9,} rows {plan.files * units:>5} files"
    sys.stdout.write(f"{options.database + '.' + plan.name:<26} {plan.format:<8} {size}  {seconds:>4.1f} s  {of_what}\n")
    sys.stdout.flush()


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    days = ",".join(str(date(2026, 1, 1) + timedelta(days=shift)) for shift in range(3))
    parser.add_argument("--database", default="demo", help="made if it does not exist (default: %(default)s)")
    parser.add_argument("--location", required=True, metavar="PATH", help="directory to put the tables' directories in")
    parser.add_argument("--home", metavar="PATH", help="directory of the database itself (default: in the warehouse)")
    parser.add_argument("--drop", action="store_true", help="drop the database, if it lies in --home, and make nothing; files stay")
    parser.add_argument(
        "--seen", action="store_true", help="the same for the database that Hivekeeper's catalogue is to use, DATABASE_seen"
    )
    parser.add_argument("--refs", type=split_list, default="FR,DE,US", metavar="A,B", help="values of ref (default: %(default)s)")
    parser.add_argument("--dates", type=split_list, default=days, metavar="D,E", help="values of dt (default: %(default)s)")
    parser.add_argument("--tables", type=split_list, metavar="A,B", help="only these tables")
    parser.add_argument("--files", type=int, metavar="N", help="files of each partition, or unpartitioned table, instead of its own number")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of each partition, or unpartitioned table, instead of its own number")
    parser.add_argument("--format", choices=["parquet", "orc"], help="one format for all tables but events_mixed")
    parser.add_argument("--late", metavar="PATH", help=f"also put one file with more rows for {LATE_TABLE} there, to be brought in later")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting, where spark-submit is not used")
    return parser.parse_args(arguments)


def split_list(text: str) -> List[str]:
    return [part for part in text.split(",") if part]


def find_databases(options: argparse.Namespace) -> List[Tuple[str, str]]:
    """Each with its directory, "" for one in the warehouse."""
    home = (options.home or "").rstrip("/")
    return [(options.database + suffix, home and home + suffix) for suffix in (("", "_seen") if options.seen else ("",))]


def make_databases(spark: SparkSession, options: argparse.Namespace) -> None:
    for name, home in find_databases(options):
        place = f" LOCATION {quote_text(home)}" if home else ""
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {quote_name(name)}{place}")


def drop_databases(spark: SparkSession, options: argparse.Namespace) -> None:
    """Never drops somebody else's, whatever its name."""
    known = {database.name: database.locationUri for database in spark.catalog.listDatabases()}
    for name, home in find_databases(options):
        if name in known and (not home or not known[name].endswith(home)):
            raise SystemExit(f"generate.py: the database {name} lies in {known[name]}: it is not the demo's")
        if name in known:
            spark.sql(f"DROP DATABASE {quote_name(name)} CASCADE")


def choose_tables(options: argparse.Namespace) -> List[Plan]:
    plans = plan_tables(options.dates, options.refs)
    unknown = set(options.tables or ()) - {plan.name for plan in plans}
    if unknown:
        raise SystemExit(f"generate.py: no such table: {', '.join(sorted(unknown))}; there are {', '.join(plan.name for plan in plans)}")
    given = {name: value for name, value in vars(options).items() if name in ("files", "rows", "format") and value is not None}
    of_mixed = {**given, "format": "parquet"}
    return [replace(plan, **(of_mixed if plan.mixed else given)) for plan in plans if not options.tables or plan.name in options.tables]


def main() -> None:
    options = read_options(sys.argv[1:])
    plans = choose_tables(options)
    builder = SparkSession.builder.appName("hivekeeper-demo-data").enableHiveSupport()
    for setting in options.conf:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if options.drop:
        drop_databases(spark, options)
        return
    make_databases(spark, options)
    for plan in plans:
        make_table(spark, plan, options)
        if options.late and plan.name == LATE_TABLE:
            write_late_file(spark, plan, options)
    spark.stop()


if __name__ == "__main__":
    main()
