"""What a footer's row metadata says of a column, Spark takes for SQL: the text of EXISTS_DEFAULT is parsed, analyzed and evaluated for each
file that is read with such a schema, whether the column is there or not (VectorizedParquetRecordReader.initBatch,
ResolveDefaultColumns.getExistenceDefaultValues, Spark 3.4 and later).
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from hivekeeper.cluster.sql_rows import _with_field_ids
from hivekeeper.model import Form
from hivekeeper.plan.fidelity import unfaithful
from hivekeeper.ports import RowsError
from hivekeeper.schemas import parse_parquet

# Constant, so it is folded: as many steps as there are values in nested sequences, and each further level multiplies them.
LONG = "CAST(aggregate(sequence(1, 100000), 0L, (a, x) -> a + aggregate(sequence(1, 100000), 0L, (b, y) -> b + y)) AS BIGINT)"
PHYSICAL = "message schema {\n  optional int64 id;\n}"
SAID = {"fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {"EXISTS_DEFAULT": LONG}}], "type": "struct"}


def test_no_expression_of_a_footer_is_given_to_spark():
    # As ParquetFooters.meaningfulKeys tells it: the content of the metadata is a hash there.
    form = Form(PHYSICAL, codec="snappy", writer="spark", keys=("org.apache.spark.sql.parquet.row.metadata#0a1b2c3d4e5f",))
    # As SqlRows._schema does with what RowSchema.requireBuiltIn has let through, which looks for user-defined types only.
    schema = _with_field_ids(StructType.fromJson(SAID), parse_parquet(form.schema))
    is_given = any("EXISTS_DEFAULT" in field.metadata for field in schema.fields)
    assert unfaithful(form, "parquet", "3.5.9", "UTC") is not None or not is_given


def test_row_metadata_that_names_other_columns_than_the_file_has_costs_its_unit_only():
    """A KeyError is no RowsError: no batch is halved for it, and the table, and with it the command over its database, ends as a bug (1)."""
    other = {"type": "struct", "fields": [{"name": "other", "type": "long", "nullable": True, "metadata": {}}]}
    try:
        _with_field_ids(StructType.fromJson(other), parse_parquet(PHYSICAL))
    except RowsError:
        pass
