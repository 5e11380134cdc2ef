"""What a footer says of columns is a stranger's: what Spark would evaluate in it, variables, and columns that are not in the file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import StructType

from hivekeeper.cluster.sql_rows import _with_field_ids
from hivekeeper.model import Form
from hivekeeper.plan.fidelity import refuse_as_rows, refuse_copy, unfaithful
from hivekeeper.ports import RowsError
from hivekeeper.schemas import parse_parquet

PHYSICAL = "message schema {\n  optional int64 id;\n  optional group s {\n    optional int64 x;\n  }\n}"


@pytest.mark.parametrize("mark", ["udt", "sql", "variable", "columns"])
def test_row_metadata_of_which_spark_must_make_no_rows(mark):
    """The text of EXISTS_DEFAULT is parsed and evaluated for each file that is read with such a schema, whether the column is there or not
    (ResolveDefaultColumns.getExistenceDefaultValues, Spark 3.4 and later).
    """
    form = Form(PHYSICAL, codec="snappy", writer="spark", keys=(f"org.apache.spark.sql.parquet.row.metadata#{mark}#0a1b2c",))
    assert refuse_as_rows(form) is not None
    assert unfaithful(form, "parquet", "3.5.9", "UTC") is not None
    assert refuse_copy(form, "parquet", "snappy", "3.5.9") is None


def test_no_rows_of_columns_of_which_orc_gives_another_name():
    form = Form("struct<a:bigint>", codec="snappy", writer="orc-cpp", keys=("orc.column.name#back-quote#",))
    assert "back-quote" in refuse_as_rows(form).what
    assert unfaithful(form, "orc", "3.5.9", "UTC") == refuse_as_rows(form).what
    assert refuse_copy(form, "orc", "snappy", "3.5.9") is None


def said(*fields):
    return StructType.fromJson(
        {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]}
    )


@pytest.mark.parametrize(
    ("format", "schema"),
    [
        ("parquet", 'message schema {\n  optional int64 "${user.home}";\n}'),
        ("parquet", 'message schema {\n  optional group s {\n    optional int64 "a${env.X-b";\n  }\n}'),
        ("orc", "struct<`${user.home}`:bigint>"),
        ("orc", "struct<s:struct<`a${env.X-b`:bigint>>"),
        ("orc", "struct<id:bigint> /1.spark.sql.catalyst.type=struct<a:int COMMENT '${user.home}'>"),
    ],
)
def test_no_rows_of_columns_in_whose_names_a_variable_would_be_replaced(format, schema):
    """With a bloom filter, too, its name is in what Spark hands on (orc.bloom.filter.columns). A copy hands on no names."""
    form = Form(schema, codec="snappy", writer="spark")
    assert "${" in refuse_as_rows(form).what
    assert unfaithful(form, format, "3.5.9", "UTC") == refuse_as_rows(form).what
    assert refuse_copy(form, format, "snappy", "3.5.9") is None


@pytest.mark.parametrize("name", ["a$", "$", "{a}", "$a{b}", "$ {a}"])
def test_a_dollar_and_a_brace_that_are_no_variable_are_refused_nowhere(name):
    form = Form(f'message schema {{\n  optional group "{name}" {{\n    optional int64 "{name}";\n  }}\n}}', codec="snappy", writer="spark")
    assert unfaithful(form, "parquet", "3.5.9", "UTC") is None
    assert unfaithful(replace(form, schema=f"struct<`{name}`:bigint>"), "orc", "3.5.9", "UTC") is None


INNER = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
OTHER_INNER = {"type": "struct", "fields": [{"name": "y", "type": "long", "nullable": True, "metadata": {}}]}


@pytest.mark.parametrize(
    "fields",
    [
        [("other", "long"), ("s", INNER)],
        [("id", "long")],
        [("id", "long"), ("s", INNER), ("more", "long")],
        [("id", "long"), ("id", "long"), ("s", INNER)],
        [("id", "long"), ("s", OTHER_INNER)],
        [("id", INNER), ("s", INNER)],
    ],
)
def test_row_metadata_that_names_other_columns_than_the_file_has_costs_its_unit_only(fields):
    """Any other error would end the table, and with it the command over its database, as a bug (1)."""
    with pytest.raises(RowsError, match="other columns"):
        _with_field_ids(said(*fields), parse_parquet(PHYSICAL))


def test_row_metadata_may_name_the_columns_in_another_order():
    assert _with_field_ids(said(("s", INNER), ("id", "long")), parse_parquet(PHYSICAL)).names == ["s", "id"]
