"""The catalogue as others see it: real commands fill it, and Spark SQL answers the queries of docs/catalogue.md."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper.catalogue.columns import COMPONENTS, VIEWS_OF_NOW
from hivekeeper.cluster.connect import assemble
from hivekeeper.commands import catalogue
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.cleanup import clean_up
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import CatalogueSettings, Settings
from hivekeeper.model import Selection
from support.contexts import a_context

PAGE = Path(__file__).parents[2] / "docs" / "catalogue.md"
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
DAY_MS = 86_400_000
FIRST_NIGHT_MS = 1_767_225_600_000 + 2 * 3_600_000
RULES = Settings(min_quiet_ms=0, min_age_ms=0)


class Filled:
    """A database with three tables and a view, the catalogue of five nights with a command each, and Spark SQL over that."""

    def __init__(self, driver, spark, storage):
        root = storage.root
        self.cluster, self.spark, self.root = assemble(driver), spark, root
        self.database = f"c{abs(hash(root)) % 10**8}"
        self.settings = CatalogueSettings(base_path=f"{root}/catalogue", database=f"{self.database}_seen", level="row_group")
        spark.sql(f"CREATE DATABASE {self.database} LOCATION '{root}/{self.database}.db'")
        place = f"{root}/events"
        spark.sql(
            f"CREATE EXTERNAL TABLE {self.database}.events (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET LOCATION '{place}'"
        )
        for day in ("2026-01-01", "2026-01-02"):
            spark.sql(f"ALTER TABLE {self.database}.events ADD PARTITION (dt='{day}')")
            spark.range(20).repartition(5).write.mode("append").parquet(f"{place}/dt={day}")
        spark.sql(f"CREATE TABLE {self.database}.text (id BIGINT) STORED AS TEXTFILE")
        spark.sql(f"CREATE VIEW {self.database}.totals AS SELECT count(*) AS n FROM {self.database}.events")
        # All of its files but one are no Parquet files; that one has a row group for each row.
        spark.sql(f"CREATE EXTERNAL TABLE {self.database}.damaged (id BIGINT) STORED AS PARQUET LOCATION '{root}/damaged'")
        for _ in range(2):
            spark.sql("SELECT 'x' AS x").write.mode("append").text(f"{root}/damaged")
        choppy = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": range(7)}), choppy, row_group_size=1)
        storage.write(f"{root}/damaged/choppy.parquet", choppy.getvalue().to_pybytes())
        for night, command in enumerate((analyze, compact_swap, clean_up, compact_swap, analyze)):
            if night == 3:
                spark.range(20, 40).repartition(4).write.mode("append").parquet(f"{place}/dt=2026-01-02")
            self.run_at_night(night, command)

    def run_at_night(self, night, command):
        """Run and record a command; the first night is the one of 1 January 2026."""
        context = a_context(self.cluster, Selection(databases=(self.database,)), f"2026010{night + 1}t020304z-1f0c", RULES)
        most, keeps_files = catalogue.most_row_groups(self.settings), catalogue.keeps_files(self.settings)
        context = replace(context, most_row_groups=most, keeps_files=keeps_files)
        result = replace(command(context), started_ms=FIRST_NIGHT_MS + night * DAY_MS)
        catalogue.record(self.cluster, self.settings, (), result)

    def ask(self, query):
        return [row.asDict() for row in self.spark.sql(query.replace("hivekeeper.", f"{self.settings.database}.")).collect()]

    def close(self):
        for database in (self.settings.database, self.database):
            self.spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.fixture(scope="module")
def filled(driver, spark, tmp_path_factory):
    from support.storage import open_storage

    storage = open_storage(spark, tmp_path_factory.mktemp("catalogue"))
    made = Filled(driver, spark, storage)
    yield made
    made.close()
    storage.close()


def test_the_page_has_eleven_queries():
    assert len(QUERIES) == 11


# Of each query the rows, without what depends on the version of Spark, the machine or the names of files: these only have a value.
ANSWERS = [
    [
        {"table_name": "damaged", "files": 3, "files_saved": 2},
        {"table_name": "events", "files": 2, "files_saved": 0},
        {"table_name": "text", "files": None, "files_saved": None, "total_bytes": None},
    ],
    [
        {"table_name": "damaged", "partition_name": "", "small_files": 3},
        # Compacted files of a few rows are small still.
        {"table_name": "events", "partition_name": "dt=2026-01-01", "small_files": 1},
        {"table_name": "events", "partition_name": "dt=2026-01-02", "small_files": 1},
    ],
    [{"small": 5, "partitions_hit": 3}],
    [{"table_name": "damaged", "partition_name": "", "file_name": "choppy.parquet", "row_groups": 7, "number_of_rows": 7}],
    [{"table_name": "events", "files_before": 5, "files_after": 1, "files_saved": 4}],
    [
        {"day": "2026-01-02", "saved": 8, "discarded": 0, "bytes_given_back": 0},
        {"day": "2026-01-03", "saved": None, "discarded": 10},
        {"day": "2026-01-04", "saved": 4, "discarded": 0, "bytes_given_back": 0},
    ],
    [
        {"table_name": "damaged", "week": 2922, "fewest": 3, "most": 3},
        {"table_name": "events", "week": 2922, "fewest": 2, "most": 10},
    ],
    [{"reason_code": "other-format", "tables_left": 1, "for_example": "text"}],
    [
        {
            "day": f"2026-01-{night}",
            "run": f"202601{night}t020304z-1f0c",
            "table_name": "damaged",
            "partition_name": "",
            "outcome": "refused",
        }
        for night in ("04", "02")
    ],
    [{"day": "2026-01-02", "swaps": 2}, {"day": "2026-01-04", "swaps": 1}],
    [{}],
]


@pytest.mark.parametrize("number", range(11))
def test_each_query_of_the_page_answers(filled, number):
    rows, answer = filled.ask(QUERIES[number]), ANSWERS[number]
    for row in rows:
        assert row.pop("database_name", filled.database) == filled.database
    # Partitions with the same number of files have no order.
    rows = sorted(rows, key=lambda row: row["partition_name"]) if number == 1 else rows
    assert [{key: value for key, value in row.items() if key in told} for row, told in zip(rows, answer)] == answer
    assert len(rows) == len(answer)
    assert all(value is not None for row, told in zip(rows, answer) for key, value in row.items() if key not in told)


def test_what_backups_cost_is_what_their_files_cost(filled):
    (row,) = filled.ask(QUERIES[10])
    # Five files were merged into one, and their backup is a directory in directories.
    assert row["in_backups"] > 5
    assert row["live_objects"] >= 4


def test_row_groups_of_compacted_files_are_there_after_a_later_look(filled):
    found = filled.ask(
        "SELECT partition_name, row_group_index, row_count FROM hivekeeper.metadata_tables "
        "WHERE metadata_kind = 'ROW_GROUP' AND table_name = 'events' ORDER BY partition_name"
    )
    assert [tuple(row.values()) for row in found] == [("dt=2026-01-01", 0, 20), ("dt=2026-01-02", 0, 40)]


def test_spark_reads_the_newest_state(filled):
    worst = filled.ask("SELECT * FROM hivekeeper.tables_now ORDER BY files DESC")
    assert {row["table_name"]: (row["verdict"], row["files"]) for row in worst} == {
        "events": ("fine", 2),
        "damaged": ("compact", 3),
        "text": ("refused", None),
    }
    assert filled.ask("SELECT reason_code FROM hivekeeper.tables_now WHERE table_name = 'text'") == [{"reason_code": "other-format"}]
    saved = filled.ask("SELECT operation, files_saved, discarded_files FROM hivekeeper.savings_by_run")
    assert {(row["operation"], row["files_saved"], row["discarded_files"]) for row in saved} == {
        ("compact-swap", 8, 0),
        ("cleanup", None, 10),
        ("compact-swap", 4, 0),
    }
    text = filled.ask("SELECT view_text FROM hivekeeper.metadata_views WHERE table_name = 'totals'")
    assert "count" in text[0]["view_text"]


def test_the_views_have_the_columns_and_types_that_the_metastore_is_told(filled):
    for view in VIEWS_OF_NOW:
        shown = filled.spark.table(f"{filled.settings.database}.{view.name}").dtypes
        assert dict(shown) == dict(view.types)


def test_spark_and_the_command_read_the_same_rows(filled):
    for component in COMPONENTS:
        by_spark = filled.ask(f"SELECT * FROM hivekeeper.{component.table}")
        request = catalogue.Request("show", component.name, columns=tuple(component.columns))
        context = a_context(filled.cluster, Selection(), "20260109t020304z-1f0c")
        kinds = {row["metadata_kind"] for row in by_spark}
        shown = []
        for kind in kinds:
            answer = catalogue.run_catalogue(context, filled.settings, (), replace(request, kind=kind))
            shown += [dict(zip(component.columns, row)) for row in answer.catalogue.rows]
        assert len(shown) == len(by_spark) > 0
        assert {tuple(sorted(row.items(), key=str)) for row in shown} == {
            tuple(sorted(((key, cell) for key, cell in row.items() if key != component.part), key=str)) for row in by_spark
        }
