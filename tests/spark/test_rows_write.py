"""A rewrite keeps rows, types and settings: Arrow, whose readers differ from Spark's, reads the output."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from hivekeeper.cluster.hash_partitioning import murmur3
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.cluster.sql_rows import Place
from hivekeeper.config import codecs
from hivekeeper.model import StageUnit
from hivekeeper.plan.fidelity import unfaithful
from hivekeeper.ports import RowsError
from support.data_files import arrow_rows, arrow_table, batch_of, form_of, listed, outputs, stage_directory, write_arrow
from support.fakes.rows import FORM

FORMATS = ["parquet", "orc"]

WIDE = """
  id, CAST(id % 128 AS TINYINT) t, CAST(id AS SMALLINT) s, CAST(id AS INT) i, id % 2 = 0 b,
  CASE id % 5 WHEN 0 THEN CAST('NaN' AS FLOAT) WHEN 1 THEN CAST('-0.0' AS FLOAT) WHEN 2 THEN NULL ELSE CAST(id AS FLOAT) END f,
  CASE id % 5 WHEN 0 THEN CAST('NaN' AS DOUBLE) WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D ELSE id / 3 END d,
  CAST(id AS DECIMAL(9,2)) d9, CAST(-id AS DECIMAL(18,3)) d18, CAST(id AS DECIMAL(38,10)) d38,
  IF(id % 7 = 0, '', CONCAT('é', id)) str, IF(id % 3 = 0, NULL, CAST(CONCAT('x', id) AS BINARY)) bin,
  DATE_ADD(DATE'2020-02-29', CAST(id AS INT)) dt, TIMESTAMP_MICROS(1600000000000000 + id * 1000003) ts,
  IF(id % 4 = 0, NULL, ARRAY(id, NULL)) a, ARRAY() e, MAP(CAST(id AS STRING), ARRAY(ARRAY(id))) m,
  IF(id % 6 = 0, NULL, NAMED_STRUCT('x', IF(id % 2 = 0, NULL, id), 'y', ARRAY(NAMED_STRUCT('z', CAST(id AS STRING))))) st
"""


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def write(spark, sql, directory, format="parquet", files=3, count=60, **options):
    frame = spark.range(0, count, 1, files).selectExpr("*").selectExpr(*_split(sql))
    frame.write.options(**{"compression": "gzip" if format == "parquet" else "zlib", **options}).format(format).save(f"file:{directory}")


def _split(sql):
    """Top-level commas separate the items of a select list."""
    depth, start, out = 0, 0, []
    for at, char in enumerate(sql):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            out.append(sql[start:at])
            start = at + 1
    return [*out, sql[start:]]


@pytest.mark.parametrize("units", [1, 2])
def test_what_somebody_has_put_in_the_place_of_a_stage_is_not_deleted_by_sparks_committer(gateway, tmp_path, units):
    """Whoever may write to the table's root can have another table's directory where Spark has its attempts, by an exchange of the control
    directory.
    """
    places, named, held = [tmp_path / f"u{number}" for number in range(units)], tmp_path / "named", tmp_path / "held"
    for place in places:
        write_arrow(place / "0.parquet", {"a": [1, 2]})
    theirs = [where / "_temporary" / "0" / "theirs" for where in (named, named / "__hivekeeper_unit=1")]
    for one in theirs:
        one.parent.mkdir(parents=True)
        one.write_text("rows")
    held.mkdir()
    rows = SparkRows(gateway, lambda path: path.replace(str(named), str(held)))
    rows.write_stage(batch_of(rows, "parquet", named, places, sort_columns=("a",)))
    assert [one.exists() for one in theirs] == [True, True]
    assert sorted(path.name for path in held.iterdir() if path.is_dir()) == [f"__hivekeeper_unit={number + 1}" for number in range(units)]


def test_a_stage_is_read_back_where_it_was_written_whatever_lies_at_its_path_by_then(gateway, tmp_path, monkeypatch):
    """With `sort_columns` Spark reads files by their paths, where somebody can have another table's closed one while the job runs. Only
    that what was written is read back shows it: not what they have at the stage's path by then, a copy of the right rows.
    """
    place, named, held, theirs = tmp_path / "u", tmp_path / "named" / "b1", tmp_path / "held" / "b1", tmp_path / "theirs.parquet"
    own, aside = place / "0.parquet", tmp_path / "aside.parquet"
    write_arrow(own, {"a": [1, 2]})
    write_arrow(theirs, {"a": [7, 8]})
    held.mkdir(parents=True)
    rows, by_path = SparkRows(gateway, lambda path: path.replace(str(named.parent), str(held.parent))), SparkRows(gateway)
    batch = batch_of(rows, "parquet", named, [place], sort_columns=("a",))
    by_path.write_stage(batch)
    write_sorted = rows.sql.write

    def write_while_another_file_is_there(*asked):
        own.rename(aside)
        theirs.rename(own)
        write_sorted(*asked)
        own.rename(theirs)
        aside.rename(own)

    monkeypatch.setattr(rows.sql, "write", write_while_another_file_is_there)
    read = rows.write_stage(batch)[1]
    at_path, written = (next(where.glob("__hivekeeper_unit=1/*.parquet")) for where in (named, held))
    # As it is called where it was written.
    at_path.rename(at_path.with_name(written.name))
    assert at_path.with_name(written.name).stat().st_size == written.stat().st_size
    assert [pq.read_table(path)["a"].to_pylist() for path in held.glob("*/*.parquet")] == [[7, 8]]
    assert rows.read_stage(batch)[1].digest != read.digest


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("units", [1, 2])
def test_every_type_keeps_its_rows_its_schema_and_its_statistics(spark, rows, tmp_path, format, units):
    places = [tmp_path / f"u{number}" for number in range(units)]
    for place in places:
        write(spark, WIDE.replace("ARRAY() e", "CAST(ARRAY() AS ARRAY<INT>) e"), place, format)
    batch = batch_of(rows, format, tmp_path / "stage", places, outputs=2)
    assert unfaithful(batch.first.form, format, spark.version, "UTC") is None
    assert rows.write_stage(batch) == rows.read_stage(batch)
    for number, place in enumerate(places, start=1):
        written = outputs(batch, number)
        assert len(written) == 2
        sources = [place / file.name for file in listed(place)]
        assert Counter(arrow_rows(format, written)) == Counter(arrow_rows(format, sources))
        before = rows.footers(format, {"x": listed(place)})["x"].groups[0]
        after = rows.footers(format, {"x": listed(stage_directory(batch, number))})["x"].groups[0]
        assert after.form == before.form
        assert after.columns == before.columns


def test_many_units_keep_the_order_of_files_and_rows(rows, tmp_path):
    places = [tmp_path / name for name in ("a", "b")]
    for place in places:
        for index in range(4):
            texts = [f"{place.name}{index}{row}" for row in range(500 if index == 2 else 3)]
            write_arrow(place / f"part-{index}", {"n": texts}, row_group_size=100)
    batch = batch_of(rows, "parquet", tmp_path / "stage", places)
    rows.write_stage(batch)
    for number, place in enumerate(places, start=1):
        assert arrow_rows("parquet", outputs(batch, number)) == arrow_rows("parquet", [place / f"part-{index}" for index in range(4)])


HOSTILE = ["a.b", "a`b", "a b", "v", "V", "dt", "é", "a,b", "a;b", "x(y)", "k=v", "`", "__hivekeeper", "file", "value", "k", "p"]
HOSTILE += ["x = 5", "b {", "c (DATE)", 'd"', " e ", "\U0001f41d"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("units", [1, 2])
def test_hostile_column_names_and_paths_are_kept(rows, tmp_path, format, units):
    names = [name for name in HOSTILE if format == "parquet" or name not in ("`", "a`b")]
    places = [tmp_path / name for name in ("dt=[a] %41 ' é", "dt={b,c}*")[:units]]
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    session = rows.sql._session(format, FORM)
    for number, place in enumerate(places):
        frame = session.range(0, 20, 1, 2).selectExpr(*[f"id * {index + 1 + number} AS {name}" for index, name in enumerate(quoted)])
        frame.write.format(format).save(f"file:{place}")
    batch = batch_of(rows, format, tmp_path / "sta ge%20[x]", places)
    assert rows.write_stage(batch) == rows.read_stage(batch)
    for number, place in enumerate(places, start=1):
        (written,) = outputs(batch, number)
        assert arrow_table(format, [written]).column_names == names
        assert Counter(arrow_rows(format, [written])) == Counter(arrow_rows(format, [place / file.name for file in listed(place)]))


@pytest.mark.parametrize("format", FORMATS)
def test_a_directory_that_a_glob_would_match_is_not_read(spark, rows, tmp_path, format):
    write(spark, "id", tmp_path / "dt=[a]", format)
    write(spark, "-id id", tmp_path / "dt=a", format)
    batch = batch_of(rows, format, tmp_path / "stage", [tmp_path / "dt=[a]"])
    rows.write_stage(batch)
    assert min(arrow_table(format, outputs(batch, 1)).column("id").to_pylist()) == 0


def test_a_stage_inside_a_hidden_control_directory_is_read_back(spark, rows, tmp_path):
    write(spark, "id", tmp_path / "u", "parquet")
    batch = batch_of(rows, "parquet", tmp_path / ".hivekeeper" / "runs" / "stage" / "b00001", [tmp_path / "u"])
    rows.write_stage(batch)
    assert rows.read_stage(batch)[1].digest.rows == 60


CODECS = [(format, codec) for format in codecs.SINCE for codec in codecs.list_writable(format, pyspark.__version__)]


@pytest.mark.parametrize(("format", "codec"), CODECS)
def test_the_codec_of_the_source_is_written(spark, rows, tmp_path, format, codec):
    write(spark, "id", tmp_path / "u", format, compression=codec)
    batch = batch_of(rows, format, tmp_path / "stage", [tmp_path / "u"])
    assert batch.first.codec == codec
    rows.write_stage(batch)
    assert form_of(rows, format, stage_directory(batch, 1)).codec == codec


@pytest.mark.parametrize("unit", ["us", "ms"])
def test_int64_timestamps_keep_their_unit(rows, tmp_path, unit):
    stamps = pa.array([1, 1600000000000, None], pa.timestamp(unit, "UTC"))
    write_arrow(tmp_path / "u" / "a", {"ts": stamps})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    rows.write_stage(batch)
    assert form_of(rows, "parquet", stage_directory(batch, 1)).schema == batch.first.form.schema
    assert arrow_rows("parquet", outputs(batch, 1)) == arrow_rows("parquet", [tmp_path / "u" / "a"])


def test_timestamps_without_zone_stay_so(spark, rows, tmp_path):
    if spark.version.startswith("3.3."):
        pytest.skip("refused there: Spark 3.3 reads them as timestamps with zone")
    write_arrow(tmp_path / "u" / "a", {"ts": pa.array([1, 1600000000000000, None], pa.timestamp("us"))})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    assert "TIMESTAMP(MICROS,false)" in batch.first.form.schema
    rows.write_stage(batch)
    assert form_of(rows, "parquet", stage_directory(batch, 1)).schema == batch.first.form.schema


def test_small_decimals_in_bytes_stay_bytes(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"d": pa.array([1, None, -250], pa.decimal128(10, 2))}, store_decimal_as_integer=False)
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    assert "fixed_len_byte_array(5)" in batch.first.form.schema
    rows.write_stage(batch)
    assert form_of(rows, "parquet", stage_directory(batch, 1)).schema == batch.first.form.schema


def test_field_ids_are_kept_in_structs_too(rows, tmp_path):
    inner = pa.field("x", pa.int32(), metadata={"PARQUET:field_id": "12"})
    outer = pa.field("st", pa.struct([inner]), metadata={"PARQUET:field_id": "8"})
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "7"}), outer])
    write_arrow(tmp_path / "u" / "a", {"id": [1], "st": [{"x": 2}]}, schema=schema)
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    assert [text in batch.first.form.schema for text in ("id = 7", "st = 8", "x = 12")] == [True] * 3
    rows.write_stage(batch)
    assert form_of(rows, "parquet", stage_directory(batch, 1)).schema == batch.first.form.schema


BLOOMS = [("parquet", {"parquet.bloom.filter.enabled#id": "true"}), ("orc", {"orc.bloom.filter.columns": "id"})]


@pytest.mark.parametrize(("format", "option"), BLOOMS)
def test_bloom_filters_are_written_again(spark, rows, tmp_path, format, option):
    write(spark, "CONCAT('k', id) id, id other", tmp_path / "u", format, **option)
    batch = batch_of(rows, format, tmp_path / "stage", [tmp_path / "u"])
    assert batch.first.form.blooms == ("id",)
    rows.write_stage(batch)
    assert form_of(rows, format, stage_directory(batch, 1)).blooms == ("id",)


def test_a_form_of_another_column_set_is_another_group(rows, tmp_path):
    """One schema for both would drop the column that only one of them has."""
    write_arrow(tmp_path / "u" / "a", {"id": [1]})
    write_arrow(tmp_path / "u" / "b", {"id": [2], "amount": [99.5]})
    groups = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    assert [sorted(group.rows.values()) for group in groups] == [[1], [1]]
    assert "amount" in groups[1].form.schema


def test_the_settings_of_one_batch_do_not_reach_the_session(spark, rows, tmp_path):
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    write_arrow(tmp_path / "u" / "a", {"ts": pa.array([1], pa.timestamp("ms", "UTC"))})
    rows.write_stage(batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"]))
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before


def test_only_data_files_lie_in_the_stage(spark, rows, tmp_path):
    write(spark, "id", tmp_path / "u", "parquet")
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u", tmp_path / "u"])
    batch = replace(batch, units=batch.units[:1])
    rows.write_stage(batch)
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["__hivekeeper_unit=1"]
    assert len(outputs(batch, 1)) == 1


def test_a_damaged_page_fails_the_job(rows, tmp_path):
    """Row counts from footers would not notice."""
    write_arrow(tmp_path / "u" / "a", {"s": [f"value {index}" for index in range(20000)]}, compression="gzip", use_dictionary=False)
    path = tmp_path / "u" / "a"
    content = bytearray(path.read_bytes())
    content[2000:4000] = bytes(2000)
    path.write_bytes(bytes(content))
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    with pytest.raises(RowsError) as caught:
        rows.write_stage(batch)
    assert "\n" not in str(caught.value)


def test_a_session_that_hides_damaged_files_does_not_hide_them_from_us(spark, rows, tmp_path):
    for name in "ab":
        write_arrow(tmp_path / "u" / name, {"s": ["x"]})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    (tmp_path / "u" / "b").write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(RowsError):
            rows.write_stage(batch)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_row_of_a_file_that_we_do_not_know_stops_the_job(rows, tmp_path, monkeypatch):
    """An inner join would drop it."""
    for name in "ab":
        write_arrow(tmp_path / "u" / name, {"id": [1]})
    files = listed(tmp_path / "u")
    form = form_of(rows, "parquet", tmp_path / "u")
    session = rows.sql._session("parquet", form)
    schema = rows.sql._schema(session, "parquet", form, files[0])
    read = rows.sql._load(session, "parquet", [Place(file.path, file.length) for file in files], schema, 2)
    # One place less stands for anything that Spark spells differently from us.
    monkeypatch.setattr(rows.sql, "_load", lambda *_: read)
    data = rows.sql._read_placed(session, "parquet", schema, [Place(files[0].path, files[0].length)], 2)
    with pytest.raises(Exception, match="rows of an unknown file"):
        data.collect()


def test_the_murmur_hash_is_that_of_spark(spark):
    values = [0, 1, -1, 42, 2**31 - 1, -(2**31), 933211791]
    found = spark.sql("SELECT " + ", ".join(f"hash(CAST({value} AS INT))" for value in values)).first()
    assert [murmur3(value) for value in values] == list(found)


@pytest.mark.parametrize("units", [1, 2])
def test_the_number_of_gateway_calls_does_not_grow_with_the_files(gateway, rows, tmp_path, units):
    def calls(count):
        places = [tmp_path / f"{count}-{number}" for number in range(units)]
        for place in places:
            for index in range(count // units):
                write_arrow(place / f"part-{index:05d}", {"id": [index]})
        before = gateway.calls
        batch = batch_of(rows, "parquet", tmp_path / f"stage{count}", places)
        rows.write_stage(batch)
        rows.read_stage(batch)
        footers = rows.footers("parquet", {str(number): listed(place) for number, place in enumerate(places)})
        rows.digests("parquet", {number: listed(place) for number, place in enumerate(places)})
        rows.hazards("parquet", {unit: found.groups[0] for unit, found in footers.items()})
        return gateway.calls - before

    calls(10)
    assert calls(300) <= calls(12) + 2


def test_a_unit_of_more_outputs_than_one_plan_holds_is_written_in_parts(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("hivekeeper.cluster.sql_rows._READS_PER_JOB", 2)
    for index in range(5):
        write_arrow(tmp_path / "u" / f"part-{index}", {"id": [index]})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"], outputs=5)
    read = rows.write_stage(batch)
    assert len(outputs(batch, 1)) == 5
    assert rows.read_stage(batch) == read
    assert read[1].digest.rows == 5


def test_a_column_with_our_own_name_is_refused(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"__hivekeeper_unit": [1]})
    with pytest.raises(RowsError, match="Hivekeeper itself uses"):
        rows.write_stage(batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"]))


def test_files_are_not_parted_among_tasks(rows, tmp_path):
    """Parts of files would be sorted by size, and the end of one file would come after parts of the next."""
    for start, name in ((0, "a"), (50_000, "b")):
        write_arrow(tmp_path / "u" / name, {"n": list(range(start, start + 50_000))}, row_group_size=5_000, use_dictionary=False)
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    rows.gateway.spark.conf.set("spark.sql.files.maxPartitionBytes", "90000")
    try:
        rows.write_stage(batch)
    finally:
        rows.gateway.spark.conf.unset("spark.sql.files.maxPartitionBytes")
    (written,) = outputs(batch, 1)
    assert pq.ParquetFile(written).read().column("n").to_pylist() == list(range(100_000))


def test_spark_keeps_what_it_says_of_columns_in_its_row_metadata(spark, rows, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812

    spark.range(3).select(F.col("id").alias("id", metadata={"comment": "c", "unit": "m"})).write.parquet(f"file:{tmp_path}/u")
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    rows.write_stage(batch)
    kept = json.loads(pq.ParquetFile(outputs(batch, 1)[0]).metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert kept["fields"][0]["metadata"] == {"comment": "c", "unit": "m"}
    assert form_of(rows, "parquet", stage_directory(batch, 1)).keys == batch.first.form.keys != ()


def test_each_output_has_the_files_that_were_planned_for_it(rows, tmp_path):
    for index in range(4):
        write_arrow(tmp_path / "u" / f"part-{index}", {"id": [index]})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    (whole,) = batch.units[0].outputs
    outputs_planned = (replace(whole, files=whole.files[:3]), replace(whole, files=whole.files[3:]))
    batch = replace(batch, units=(StageUnit(1, outputs_planned),))
    rows.write_stage(batch)
    found = sorted(pq.ParquetFile(path).read().column("id").to_pylist() for path in outputs(batch, 1))
    assert found == [[0, 1, 2], [3]]


def test_rows_are_sorted_by_a_column_whatever_the_case_of_its_name(rows, tmp_path):
    for index in range(2):
        write_arrow(tmp_path / "u" / f"part-{index}", {"Id": [index, 5 - index, 2]})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"], sort_columns=("iD",))
    rows.write_stage(batch)
    assert arrow_table("parquet", outputs(batch, 1)).column("Id").to_pylist() == [0, 1, 2, 2, 4, 5]


def test_a_sort_column_that_the_files_do_not_have_fails_the_job(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"id": [1], "ID": [2]})
    for wanted in ("Id", "other"):
        with pytest.raises(RowsError, match=f"columns {wanted} to sort by"):
            rows.write_stage(batch_of(rows, "parquet", tmp_path / f"stage {wanted}", [tmp_path / "u"], sort_columns=(wanted,)))
