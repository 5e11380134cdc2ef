"""The catalogue as others see it: real commands fill it, and Spark SQL answers the queries of docs/catalogue.md."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

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
RULES = Settings(min_quiet_ms=0, min_age_ms=0)


class Filled:
    """A database with two tables and a view, the catalogue of three commands on it, and Spark SQL over that."""

    def __init__(self, driver, spark, root):
        self.cluster, self.spark, self.root = assemble(driver), spark, root
        self.database = f"c{abs(hash(root)) % 10**8}"
        self.settings = CatalogueSettings(base_path=f"{root}/catalogue", database=f"{self.database}_seen", level="file")
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
        for number, command in enumerate((analyze, compact_swap, clean_up)):
            context = a_context(self.cluster, Selection(databases=(self.database,)), f"2026010{number + 1}t020304z-1f0c", RULES)
            catalogue.record(self.cluster, self.settings, (), command(context))

    def ask(self, query):
        return [row.asDict() for row in self.spark.sql(query.replace("hivekeeper.", f"{self.settings.database}.")).collect()]

    def close(self):
        for database in (self.settings.database, self.database):
            self.spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.fixture(scope="module")
def filled(driver, spark, tmp_path_factory):
    from support.storage import open_storage

    storage = open_storage(spark, tmp_path_factory.mktemp("catalogue"))
    made = Filled(driver, spark, storage.root)
    yield made
    made.close()
    storage.close()


def test_the_page_has_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize("number", range(10))
def test_each_query_of_the_page_answers(filled, number):
    rows = filled.ask(QUERIES[number])
    if number == 1:
        # Compacted files of a few rows are small still.
        assert [row["small_files"] for row in rows] == [1, 1]
    assert rows or "gap_ms" not in QUERIES[number]


def test_spark_reads_the_newest_state(filled):
    worst = filled.ask("SELECT * FROM hivekeeper.tables_now ORDER BY files DESC")
    assert {row["table_name"]: (row["verdict"], row["files"]) for row in worst} == {"events": ("fine", 2), "text": ("refused", None)}
    assert filled.ask("SELECT reason_code FROM hivekeeper.tables_now WHERE table_name = 'text'") == [{"reason_code": "other-format"}]
    saved = filled.ask("SELECT operation, files_saved, discarded_files FROM hivekeeper.savings_by_run")
    assert {row["operation"]: (row["files_saved"], row["discarded_files"]) for row in saved} == {
        "compact-swap": (8, 0),
        "cleanup": (None, 10),
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
