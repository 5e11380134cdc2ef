"""Hadoop's configuration replaces `${…}` in what it is asked for: by its own values, the JVM's properties, the environment, or by what
stands there for a variable that is not set (`${env.NONE-x}`). Spark hands its tasks the schema that they read or write, with all that a
footer says of the columns, in such a configuration. Where `sort_columns` is set for a table, Spark rewrites it.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.connect import assemble
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Differences, Selection
from hivekeeper.plan.fidelity import unfaithful
from hivekeeper.ports import RowsError
from support.contexts import a_context
from support.data_files import batch_of, form_of, listed, outputs, write_arrow
from support.storage import local_only

ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
# As with `spark.hadoop.fs.s3a.….secret.key` in the `spark.extra_conf` of site.yaml, which only the user of the runs can read.
KEY, SECRET = "fs.s3a.bucket.backups.secret.key", "not-for-tenants"


@pytest.fixture
def secret(spark):
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(KEY, SECRET)
    yield
    conf.unset(KEY)


def write_file(path, column, metadata, numbers=(1, 2)):
    """A file of one column, whose footer says this of it."""
    said = {"type": "struct", "fields": [{"name": column, "type": "long", "nullable": True, "metadata": metadata}]}
    data = pa.table({column: pa.array(numbers, pa.int64())})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(str(path), data.schema, store_schema=False) as writer:
        writer.write_table(data)
        writer.add_key_value_metadata({ROW_METADATA: json.dumps(said)})


@local_only
@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(("column", "metadata"), [("id", {"comment": f"${{{KEY}}}"}), (f"${{{KEY}}}", {})], ids=["comment", "name"])
def test_neither_a_new_file_nor_a_reason_has_a_value_of_our_configuration(spark, driver, storage, column, metadata):
    database = f"v{abs(hash(storage.root)) % 10**8}"
    place = storage.copy(storage.root) / "t"
    for number in range(6):
        write_file(place / f"part-{number}.parquet", column, metadata)
    spark.sql(f"CREATE DATABASE {database} LOCATION '{storage.root}/{database}.db'")
    try:
        spark.sql(f"CREATE EXTERNAL TABLE {database}.t (`{column}` BIGINT) STORED AS PARQUET LOCATION '{storage.root}/t'")
        settings = Settings(min_quiet_ms=0, sort_columns=(column,))
        context = a_context(assemble(driver), Selection(databases=(database,)), "20260101t020301z-0000", settings)
        result = compact_swap(context)
    finally:
        spark.sql(f"DROP DATABASE {database} CASCADE")
    assert result.code in (Exit.DONE, Exit.DIFFERENT, Exit.REFUSED, Exit.PARTIAL)
    assert SECRET not in repr(result)
    assert [path.name for path in place.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []


def test_an_expression_whose_key_a_variable_completes_is_not_evaluated(gateway, tmp_path):
    """The key is not EXISTS_DEFAULT before the configuration has replaced the variable, so no look at the footer's own text finds it."""
    rows, file = SparkRows(gateway), tmp_path / "u" / "a.parquet"
    write_file(file, "id", {"EXISTS_${env.NO_SUCH_VARIABLE:-DEFAULT}": "CAST(element_at(array(1), 0) AS BIGINT)"})
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    said = unfaithful(form_of(rows, "parquet", file.parent), "parquet", "3.5.9", "UTC")
    with pytest.raises(RowsError) as error:
        rows.differences("parquet", [group], [group], 10)
    # What element_at says when it is evaluated.
    assert "index 0 is invalid" not in str(error.value)
    assert said is not None


def test_a_user_defined_type_that_variables_put_together_is_refused(spark, gateway, tmp_path):
    """A variable reaches from `${` to the next brace, quotes and all: what is a comment in the footer is a column's type to Spark's tasks,
    which make an object of the class (before Spark 3.5.9 of any class). The names have no meaning but their order in a hash table.
    """
    kind = {"pyClass": "p", "ty${env.VIPU-}pe": "udt", "sqlType": "integer", "class": "java.util.Timer"}
    metadata = {
        "lhu": {"jof": ":-", "ty${env.GXOY-}pe": kind},
        "nu${env.VARC-}llable": True,
        "me${env.CXBG-}tadata": {"c": "${env.NN:-x"},
    }
    rows, file, column = SparkRows(gateway), tmp_path / "u" / "a.parquet", "a${env.NN"
    write_file(file, column, metadata)
    # What a task gets to see.
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(False)
    conf.set("schema", spark.read.parquet(f"file:{file}")._jdf.schema().json())
    (field,) = json.loads(conf.get("schema"))["fields"]
    assert field["type"] == {"type": "udt", "class": "java.util.Timer", "pyClass": "p", "sqlType": "integer"}
    assert unfaithful(form_of(rows, "parquet", file.parent), "parquet", "3.5.9", "UTC") is not None


def test_row_metadata_of_many_megabytes_does_not_come_to_python(gateway, tmp_path):
    """As objects of Python, such as a list of a million numbers, it takes ten times as much of the driver's memory and more."""
    rows, file = SparkRows(gateway), tmp_path / "u" / "a.parquet"
    write_file(file, "id", {"x": [0] * (1 << 23)})
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    with pytest.raises(RowsError, match="characters; more than 16777216 are not read as rows"):
        rows.differences("parquet", [group], [group], 10)


def test_of_files_without_rows_nothing_is_read_whatever_their_footers_say(gateway, tmp_path):
    rows, place = SparkRows(gateway), tmp_path / "u"
    write_arrow(place / "a.parquet", {"id": pa.array([1, 2], pa.int64())})
    write_file(place / "b.parquet", "id", {"comment": "${env.HOME}"}, numbers=())
    groups = rows.footers("parquet", {"u": listed(place)})["u"].groups
    assert sorted(group.row_count for group in groups) == [0, 2]
    assert rows.differences("parquet", groups, groups, 10) == Differences(0, 0)
    empty = [group for group in groups if not group.row_count]
    assert rows.differences("parquet", empty, empty, 10) == Differences(0, 0)
    assert rows.hazards("parquet", {"u": empty[0]}) == {}


def write_orc(path, column):
    path.parent.mkdir(parents=True)
    po.write_table(pa.table({column: pa.array([2, 1], pa.int64())}), path, compression="snappy")


def write_described_orc(gateway, path, said):
    """A file without rows of one column, for which its footer gives Spark another type."""
    orc = gateway.jvm.org.apache.orc
    kind = orc.TypeDescription.fromString("struct<a:bigint>")
    kind.getChildren().get(0).setAttribute("spark.sql.catalyst.type", said)
    path.parent.mkdir(parents=True)
    options = orc.OrcFile.writerOptions(gateway.hadoop_conf).setSchema(kind)
    orc.OrcFile.createWriter(gateway.jvm.org.apache.hadoop.fs.Path(str(path)), options).close()


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_names_of_columns_in_which_a_variable_would_be_replaced_reach_no_reader(gateway, tmp_path, format):
    """The footer that is used is looked at too, whatever the form says: another file may be there since."""
    rows, column = SparkRows(gateway), f"${{{KEY}}}"
    file = tmp_path / "u" / f"a.{format}"
    if format == "parquet":
        write_arrow(file, {column: pa.array([2, 1], pa.int64())})
    else:
        write_orc(file, column)
    (group,) = rows.footers(format, {"u": listed(file.parent)})["u"].groups
    other = replace(group, form=replace(group.form, schema=group.form.schema.replace("${", "x"), keys=()))
    for one in (group, other):
        with pytest.raises(RowsError) as error:
            rows.differences(format, [one], [one], 10)
        assert "${" in str(error.value) and SECRET not in str(error.value)
    batch = batch_of(rows, format, tmp_path / "stage", [file.parent], sort_columns=(column,))
    with pytest.raises(RowsError, match="Hadoop's configuration"):
        rows.write_stage(batch)


@pytest.mark.usefixtures("secret")
def test_columns_whose_nanoseconds_are_looked_for_have_no_variables(gateway, tmp_path):
    rows, file = SparkRows(gateway), tmp_path / "u" / "a.parquet"
    times = pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ns"))
    write_arrow(file, {f"${{{KEY}}}": times}, use_deprecated_int96_timestamps=True)
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    assert "Hadoop's configuration" in rows.hazards("parquet", {"u": group})["u"]


@pytest.mark.parametrize("said", [f"struct<a:bigint COMMENT '${{{KEY}}}'>", f"struct<a:bigint COMMENT '\\u0024{{{KEY}}}'>"])
def test_a_type_for_spark_in_an_orc_footer_has_no_variables(gateway, tmp_path, said):
    """It is SQL with escapes of its own, so the schema that Spark makes of it is looked at, too."""
    file = tmp_path / "u" / "a.orc"
    write_described_orc(gateway, file, said)
    rows = SparkRows(gateway)
    form = form_of(rows, "orc", file.parent)
    assert unfaithful(form, "orc", "3.5.9", "UTC") is not None
    with pytest.raises(RowsError, match="Hadoop's configuration"):
        rows.sql._read_schema(gateway.spark, "orc", listed(file.parent)[0])


def test_a_dollar_in_front_of_a_brace_of_the_json_is_no_variable(spark, gateway, tmp_path):
    """Between two texts of JSON there is a quote at least, so no variable is put together by what Spark writes."""
    rows, file = SparkRows(gateway), tmp_path / "u" / "a.parquet"
    write_file(file, "a$", {"$": {"b$": {"{c}": "$"}}, "{": ["$"], "comment": "\\u0024{user.home}", "d$ {": "$"})
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(False)
    schema = spark.read.parquet(f"file:{file}")._jdf.schema().json()
    conf.set("schema", schema)
    assert conf.get("schema") == schema
    batch = batch_of(rows, "parquet", tmp_path / "stage", [file.parent], sort_columns=("a$",))
    rows.write_stage(batch)
    (output,) = outputs(batch, 1)
    assert json.loads(pq.read_metadata(output).metadata[ROW_METADATA.encode()]) == json.loads(
        pq.read_metadata(file).metadata[ROW_METADATA.encode()]
    )


@pytest.mark.parametrize("sort", [(), ("id",)], ids=["copied", "sorted"])
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_stage_is_where_it_should_be_though_its_path_has_variables(gateway, tmp_path, format, sort):
    """Spark puts the path into Hadoop's configuration, too. Its committer is told it directly, because the guards name that one; it would
    ask the configuration where each format makes its own, as Spark does of ORC.
    """
    rows, root = SparkRows(gateway), tmp_path / "table" / "${env.NONE-.}${env.NONE-.}" / "other"
    file = root / "u" / f"a.{format}"
    if format == "parquet":
        write_file(file, "id", {})
    else:
        write_orc(file, "id")
    batch = batch_of(rows, format, root / "stage", [root / "u"], sort_columns=sort, is_copied=not sort)
    (root / "stage").mkdir()
    rows.write_stage(batch)
    assert len(outputs(batch, 1)) == 1
    assert not (tmp_path / "other").exists()
