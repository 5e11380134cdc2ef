"""What footers and data reveal about files that Spark would change; Arrow writes them in place of Hive and Impala."""

from __future__ import annotations

import base64
import datetime
import json
import os
import pickle
import time
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from py4j.java_gateway import set_field

from foreign import footers
from hivekeeper import names
from hivekeeper.cluster.rows import SparkRows
from hivekeeper.plan.fidelity import refuse_copy, unfaithful
from hivekeeper.ports import RowsError
from hivekeeper.schemas import parse_parquet
from support import hostile_files
from support.data_files import arrow_rows, batch_of, form_of, listed, outputs, stage_directory, write_arrow


@pytest.fixture
def rows(gateway):
    return SparkRows(gateway)


def stamps(*nanoseconds):
    return pa.array(nanoseconds, pa.timestamp("ns"))


def hazards_of(rows, format, top):
    places = sorted(top.iterdir())
    found = rows.footers(format, {place.name: listed(place) for place in places})
    return rows.hazards(format, {unit: footers.groups[0] for unit, footers in found.items()})


def test_nanoseconds_in_int96_are_found_in_the_unit_that_has_them(rows, tmp_path):
    base = 1_600_000_000_000_000_000
    for unit, values in {"clean": (base, base + 1000, None), "dirty": (base, base + 1), "late": (base + 86_399_999_999_999,)}.items():
        write_arrow(tmp_path / unit / "a", {"id": list(range(len(values))), "ts é": stamps(*values)}, use_deprecated_int96_timestamps=True)
    found = hazards_of(rows, "parquet", tmp_path)
    assert set(found) == {"dirty", "late"}
    assert "ts é" in found["dirty"]
    assert "nanoseconds" in found["dirty"]


def test_nested_int96_of_others_than_spark_is_refused(rows, tmp_path):
    value = pa.array([[1_600_000_000_000_000_000]], pa.list_(pa.timestamp("ns")))
    write_arrow(tmp_path / "u" / "a", {"ts": value}, use_deprecated_int96_timestamps=True)
    assert "inside structs, lists or maps" in hazards_of(rows, "parquet", tmp_path)["u"]


def test_a_column_name_that_looks_like_another_schema_is_still_a_name(rows, tmp_path):
    names = ["x;\n  optional int96 y", "a (TIMESTAMP(MICROS,true)) = 7"]
    write_arrow(tmp_path / "u" / "a", {name: [1] for name in names})
    form = form_of(rows, "parquet", tmp_path / "u")
    assert [(field.name, field.physical, field.annotation, field.field_id) for field in parse_parquet(form.schema)] == [
        (name, "int64", "", None) for name in names
    ]
    assert form.calendar == "none"
    assert hazards_of(rows, "parquet", tmp_path) == {}
    assert "control character" in unfaithful(form, "parquet", "3.5.9", "UTC")


def test_nanoseconds_in_orc_are_found_in_the_unit_that_has_them(rows, tmp_path):
    for unit, values in {"clean": (1_600_000_000_123_456_000, None), "dirty": (1_600_000_000_123_456_789,)}.items():
        (tmp_path / unit).mkdir()
        po.write_table(pa.table({"ts": stamps(*values)}), str(tmp_path / unit / "a"))
    assert set(hazards_of(rows, "orc", tmp_path)) == {"dirty"}


def test_files_of_spark_are_not_scanned_for_nanoseconds(spark, rows, tmp_path):
    spark.sql("SELECT TIMESTAMP'2020-01-01 00:00:00' ts").write.parquet(f"file:{tmp_path}/u")
    found = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups[0]
    for file in listed(tmp_path / "u"):
        (tmp_path / "u" / file.name).unlink()
    assert rows.hazards("parquet", {"u": found}) == {}


def test_ancient_dates_of_an_unknown_calendar_stop_the_job_in_words(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"d": [datetime.date(1000, 1, 1)]})
    assert form_of(rows, "parquet", tmp_path / "u").calendar == "unknown"
    with pytest.raises(RowsError, match="in which calendar"):
        rows.write_stage(batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"]))


def test_recent_dates_of_an_unknown_calendar_are_kept(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"d": [datetime.date(1582, 10, 15), datetime.date(2020, 2, 29)]})
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    rows.write_stage(batch)
    assert arrow_rows("parquet", outputs(batch, 1)) == arrow_rows("parquet", [tmp_path / "u" / "a"])


def test_ancient_dates_of_todays_spark_are_kept(spark, rows, tmp_path):
    select = "SELECT DATE'1000-01-01' d, TIMESTAMP'1000-01-01 00:00:00' t"
    session = spark.newSession()
    for key in ("datetime", "int96"):
        session.conf.set(f"spark.sql.parquet.{key}RebaseModeInWrite", "CORRECTED")
    session.sql(select).write.parquet(f"file:{tmp_path}/u")
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    assert batch.first.form.calendar == "corrected"
    assert rows.write_stage(batch) == rows.read_stage(batch)
    assert form_of(rows, "parquet", stage_directory(batch, 1)).calendar == "corrected"
    assert session.read.parquet(f"file:{stage_directory(batch, 1)}").where("d = DATE'1000-01-01'").count() == 1


@pytest.mark.parametrize(("mode", "key"), [("datetime", "MICROS"), ("int96", "INT96")])
def test_the_old_calendar_of_spark_is_seen_and_refused(spark, rows, tmp_path, mode, key):
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96" if key == "INT96" else "TIMESTAMP_MICROS")
    session.conf.set(f"spark.sql.parquet.{mode}RebaseModeInWrite", "LEGACY")
    session.sql("SELECT TIMESTAMP'2020-01-01 00:00:00' t").write.parquet(f"file:{tmp_path}/u")
    form = form_of(rows, "parquet", tmp_path / "u")
    assert form.calendar == "legacy"
    assert "old (Julian) calendar" in unfaithful(form, "parquet", "3.5.9", "UTC")


def test_mixed_codecs_of_one_file_and_foreign_writers_are_named(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"id": [1], "v": [2]}, compression={"id": "snappy", "v": "gzip"})
    form = form_of(rows, "parquet", tmp_path / "u")
    assert form.codec == "gzip+snappy"
    assert form.writer == "arrow"


def test_required_columns_are_the_same_form_as_optional_ones(rows, tmp_path):
    for name, nullable in (("a", True), ("b", False)):
        schema = pa.schema([pa.field("id", pa.int64(), nullable=nullable), pa.field("required x", pa.string())])
        write_arrow(tmp_path / "u" / name, {"id": [1], "required x": ["y"]}, schema=schema)
    assert 'optional binary "required x"' in form_of(rows, "parquet", tmp_path / "u").schema


def test_footer_keys_are_named_but_not_those_of_spark(spark, rows, tmp_path):
    table = pa.table({"id": [1]}).replace_schema_metadata({"pandas": "{}"})
    (tmp_path / "u").mkdir()
    pq.write_table(table, tmp_path / "u" / "a", store_schema=True)
    assert form_of(rows, "parquet", tmp_path / "u").keys == ("ARROW:schema", "pandas")
    spark.range(1).write.parquet(f"file:{tmp_path}/s")
    assert form_of(rows, "parquet", tmp_path / "s").keys == ()


def test_bounds_are_unknown_as_soon_as_one_file_has_none(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"id": [1, 2, None]})
    write_arrow(tmp_path / "u" / "b", {"id": [9]}, write_statistics=False)
    facts = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups[0].columns["id"]
    assert (facts.values, facts.nulls, facts.low, facts.high) == (4, None, None, None)


def test_a_file_of_nulls_only_does_not_hide_the_bounds_of_others(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"id": pa.array([-5, 7], pa.int64())})
    write_arrow(tmp_path / "u" / "b", {"id": pa.array([None, None], pa.int64())})
    facts = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups[0].columns["id"]
    assert (facts.values, facts.nulls, facts.low, facts.high) == (4, 2, "-5", "7")


def test_bounds_are_merged_by_the_order_of_the_column(rows, tmp_path):
    for name, number, text, zero in (("a", "-100.00", "z", 0.0), ("b", "9.50", "\U0001f600", -0.0), ("c", "20.00", "\uff01", -0.0)):
        write_arrow(tmp_path / "u" / name, {"d": pa.array([Decimal(number)], pa.decimal128(20, 2)), "s": [text], "n": [zero]})
    columns = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups[0].columns
    assert (columns["d"].low, columns["d"].high) == ("-100.00", "20.00")
    assert (columns["s"].low, columns["s"].high) == ("z", "\U0001f600")
    assert (columns["n"].low, columns["n"].high) == ("0.0", "0.0")


def test_orc_footers_say_zone_and_bounds(rows, tmp_path):
    (tmp_path / "u").mkdir()
    po.write_table(pa.table({"ts": stamps(1_600_000_000_000_000_000), "s": ["a"]}), str(tmp_path / "u" / "a"))
    po.write_table(pa.table({"ts": stamps(1_600_000_001_000_000_000), "s": pa.array([None], pa.string())}), str(tmp_path / "u" / "b"))
    (group,) = rows.footers("orc", {"u": listed(tmp_path / "u")})["u"].groups
    assert group.form.zone == "UTC"
    assert group.form.writer == "orc-cpp"
    assert (group.columns["ts"].low, group.columns["ts"].high) == ("1600000000000", "1600000001000")
    assert (group.columns["s"].values, group.columns["s"].nulls, group.columns["s"].low) == (2, 1, "a")


def test_a_file_without_row_groups_takes_the_codec_of_the_others(rows, tmp_path):
    write_arrow(tmp_path / "u" / "a", {"id": pa.array([], pa.int64())}, compression="gzip")
    write_arrow(tmp_path / "u" / "b", {"id": pa.array([1], pa.int64())}, compression="gzip")
    assert form_of(rows, "parquet", tmp_path / "u").codec == "gzip"


DAMAGED = [b"PAR1", b"", b"not parquet at all", b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1", b"ORC" + bytes(50)]


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_damaged_footer_is_reported_in_one_line(rows, tmp_path, format, damage):
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "bad").write_bytes(damage)
    footers = rows.footers(format, {"u": listed(tmp_path / "u")})["u"]
    assert footers.groups == ()
    assert len(footers.unreadable) == (1 if damage else 0)
    assert all(reason and "\n" not in reason for _, reason in footers.unreadable)


@pytest.mark.parametrize("kind", hostile_files.FOOTERS)
def test_a_hostile_footer_costs_its_own_file(rows, tmp_path, kind):
    """It is read in parallel with good ones, which must not be affected."""
    for name in ("bad", "a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(hostile_files.FOOTERS[kind]() if name == "bad" else hostile_files.good())
    footers = rows.footers("parquet", {name: listed(tmp_path / name) for name in ("bad", "a", "b", "c")})
    assert [len(footers[name].unreadable) for name in ("bad", "a", "b", "c")] == [1, 0, 0, 0]
    assert len(footers["bad"].unreadable[0][1]) <= 300
    assert footers["bad"].groups == ()
    assert [list(footers[name].groups[0].rows.values()) for name in "abc"] == [[1], [1], [1]]


def test_a_footer_is_measured_before_it_is_read(rows, tmp_path):
    (tmp_path / "u").mkdir()
    hostile_files.write_long_footer(tmp_path / "u" / "long", 2**31 - 64)
    hostile_files.write_long_footer(tmp_path / "u" / "negative", 2**32 - 64)
    footers = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"]
    assert [reason.partition(": ")[2] for _, reason in footers.unreadable] == [
        f"its footer takes {size} bytes; more than 67108864 are not read" for size in (2**31 - 64, -64)
    ]


def test_a_number_of_very_many_digits_in_row_metadata_is_not_parsed(rows, tmp_path):
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "f").write_bytes(hostile_files.has_a_number_of_many_digits())
    ((_, reason),) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable
    assert reason.endswith("its row metadata has a number of more than 1000 digits")


def test_numbers_just_short_enough_in_row_metadata_take_no_longer_than_other_texts(rows, tmp_path):
    """From each digit on, those behind it were counted: minutes for these 12 MB, of the 64 that each of a thousand footers may have."""
    spent = {}
    for name, character in (("once", b"a"), ("letters", b"a"), ("digits", b"7")):
        (tmp_path / name).mkdir()
        said = b'{"a": "' + (character * 1000 + b",") * 12_000 + b'"}'
        (tmp_path / name / "f").write_bytes(hostile_files.has_row_metadata(said))
        started = time.monotonic()
        assert rows.footers("parquet", {"u": listed(tmp_path / name)})["u"].unreadable == ()
        spent[name] = time.monotonic() - started
    assert spent["digits"] < 3 * spent["letters"] + 1, spent


COUNTED = b'[{"kind": "range", "name": null, "start": 0, "stop": 1, "step": 1}]'
MANY_DIGITS = COUNTED.replace(b"1}", b"1, " + b" " * 5_000_000 + b'"more": ' + b"7" * 5_000_000 + b"}")


@pytest.mark.parametrize("label", [b"[]", COUNTED, MANY_DIGITS], ids=["none", "counted", "of many digits"])
def test_labels_of_pandas_are_found_in_a_time_that_grows_with_their_length(rows, tmp_path, label):
    """Quadratic, it would take hours: six megabytes, of the 64 that a footer may have."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "f").write_bytes(hostile_files.has_labels_that_begin_everywhere(2_000_000, label))
    started = time.monotonic()
    found = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"]
    assert (found.unreadable, [group.row_count for group in found.groups]) == ((), [1])
    assert time.monotonic() - started < 60


def test_columns_whose_names_have_one_hash_are_not_compared_with_one_another(rows, tmp_path):
    """A file of 750 KB, which took minutes; one of 64 MB weeks."""
    for name, columns in (("sound", hostile_files.names_of_one_hash(100)), ("chosen", hostile_files.names_of_one_hash(20_000))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(hostile_files.has_columns(columns))
    started = time.monotonic()
    found = rows.footers("parquet", {name: listed(tmp_path / name) for name in ("sound", "chosen")})
    assert [len(found[name].unreadable) for name in ("sound", "chosen")] == [0, 1]
    assert "have names of one hash" in found["chosen"].unreadable[0][1]
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(("columns", "characters"), [(10_001, 10), (3, 500_000)], ids=["many", "long"])
def test_names_of_columns_do_not_fill_the_memory_for_ever(gateway, rows, tmp_path, columns, characters):
    """Parquet's library keeps those of all files that a JVM ever reads, also when their table is long done."""
    (tmp_path / "u").mkdir()
    for file in range(3):
        names = [(b"%d_%d_" % (file, column)).ljust(characters, b"c") for column in range(columns)]
        (tmp_path / "u" / str(file)).write_bytes(hostile_files.has_columns(names))
    before = kept_paths(gateway)
    assert rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].unreadable == ()
    assert kept_paths(gateway) < before + columns


def kept_paths(gateway):
    library = gateway.jvm.java.lang.Class.forName("org.apache.parquet.hadoop.metadata.ColumnPath")
    paths = library.getDeclaredField("paths")
    paths.setAccessible(True)
    canonicals = paths.get(None).getClass().getSuperclass().getDeclaredField("canonicals")
    canonicals.setAccessible(True)
    return canonicals.get(paths.get(None)).size()


@pytest.mark.parametrize(("size", "known"), [(16, True), (4096, True), (4097, False)])
def test_bounds_that_no_library_writes_count_as_unknown_before_they_become_text(rows, tmp_path, size, known):
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "f").write_bytes(hostile_files.has_long_bounds(size))
    (group,) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    facts = group.columns["id"]
    assert (facts.low is not None, facts.high is not None) == (known, known)


@pytest.mark.parametrize("claim", hostile_files.ORC_TAILS)
def test_a_hostile_orc_tail_costs_its_own_file(rows, tmp_path, claim):
    (tmp_path / "u").mkdir()
    po.write_table(pa.table({"id": [1]}), str(tmp_path / "u" / "a"))
    hostile_files.ORC_TAILS[claim](tmp_path / "u" / "bad")
    footers = rows.footers("orc", {"u": listed(tmp_path / "u")})["u"]
    assert [names.base(path) for path, _ in footers.unreadable] == ["bad"]
    assert [list(group.rows.values()) for group in footers.groups] == [[1]]
    assert ("its footer takes 1500000000 bytes" in footers.unreadable[0][1]) == (claim == "footer-of-most-of-the-file")


def test_full_names_of_orc_columns_are_bounded(rows, tmp_path):
    """A file of 500 KB, which takes a minute; zlib makes one of 50 KB, and other numbers days."""
    for name, characters, columns in (("sound", 100, 1000), ("long", 100_000, 40_000)):
        (tmp_path / name).mkdir()
        hostile_files.write_orc_of_a_long_name(tmp_path / name / "f", characters, columns)
    started = time.monotonic()
    found = rows.footers("orc", {name: listed(tmp_path / name) for name in ("sound", "long")})
    assert [len(found[name].unreadable) for name in ("sound", "long")] == [0, 1]
    assert "names of its columns have more than" in found["long"].unreadable[0][1]
    assert time.monotonic() - started < 30


def test_full_names_of_parquet_columns_are_bounded(rows, tmp_path):
    """A file of 600 KB whose columns have names of two gigabytes together; its row groups would repeat them, but it has none."""
    for name, characters, columns in (("sound", 100, 1000), ("long", 100_000, 20_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(hostile_files.has_long_paths(characters, columns))
    found = rows.footers("parquet", {name: listed(tmp_path / name) for name in ("sound", "long")})
    assert [len(found[name].unreadable) for name in ("sound", "long")] == [0, 1]
    assert "names of its columns have more than" in found["long"].unreadable[0][1]


def test_a_page_that_claims_all_memory_fails_its_unit_and_nothing_else(rows, tmp_path):
    """Its footer is valid, so the job that reads it meets the page, in local mode in the driver's own process."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "a").write_bytes(hostile_files.claims_a_long_page())
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"])
    with pytest.raises(RowsError, match=r"/u/a: "):
        rows.write_stage(batch)
    assert rows.gateway.driver.find_end() == ""
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "a").write_bytes(hostile_files.good())
    assert rows.write_stage(batch_of(rows, "parquet", tmp_path / "other", [tmp_path / "good"]))[1].digest.rows == 1


ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"


class Planted:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def user_type(proof, **more):
    pickled = base64.b64encode(pickle.dumps(Planted(proof))).decode()
    return {"type": "udt", "pyClass": "pyspark.sql.types.NoSuchClass", "serializedClass": pickled, "sqlType": "long", **more}


def write_typed(path, kind):
    """A file whose footer says that its column is of this type of Spark's."""
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    schema = json.dumps({"type": "struct", "fields": [{"name": "id", "type": kind, "nullable": True, "metadata": {}}]})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        # JSON may be spelled with escapes.
        writer.add_key_value_metadata({ROW_METADATA: schema.replace("udt", "u\\u0064t")})


@pytest.mark.parametrize("depth", ["outermost", "in a list"])
def test_a_footer_that_names_code_for_spark_is_not_read_as_rows(rows, tmp_path, depth):
    proof = tmp_path / "proof"
    kind = user_type(proof) if depth == "outermost" else {"type": "array", "elementType": user_type(proof), "containsNull": True}
    write_typed(tmp_path / "u" / "a.parquet", kind)
    (group,) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    assert "user-defined type" in unfaithful(group.form, "parquet", "3.5.9", "UTC")
    with pytest.raises(RowsError, match="user-defined type"):
        rows.differences("parquet", [group], [group], 10)
    # A copy makes no rows, and runs nothing.
    assert refuse_copy(group.form, "parquet", "snappy", "3.5.9") is None
    assert not proof.exists()


@pytest.mark.parametrize("kind", ["python", "java"])
def test_a_file_that_names_code_once_its_footer_was_judged_is_not_read_as_rows(rows, gateway, tmp_path, kind):
    """Before Spark 3.5.9 the JVM makes an object of any class that is named there: a timer, whose threads are numbered."""
    proof, file = tmp_path / "proof", tmp_path / "u" / "a.parquet"
    write_typed(file, "long")
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    before = next_timer(gateway)
    write_typed(file, user_type(proof) if kind == "python" else {"type": "udt", "class": "java.util.Timer", "sqlType": "long"})
    # Its length would show it.
    group = replace(group, files=listed(file.parent))
    with pytest.raises(RowsError, match="names a user-defined type"):
        rows.differences("parquet", [group], [group], 10)
    assert not proof.exists()
    assert next_timer(gateway) == before + 1


def next_timer(gateway):
    timer = gateway.jvm.java.util.Timer()
    threads = gateway.jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    number = max(int(thread.getName()[6:]) for thread in threads if thread.getName().startswith("Timer-"))
    timer.cancel()
    return number


EVALUATED = "raise_error('evaluated')"


def write_rows_said(path, text):
    """A file of one column `id`, whose footer says this of it."""
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ROW_METADATA: text})


def said_of(metadata, name="id", kind='"long"'):
    return f'{{"type":"struct","fields":[{{"name":"{name}","type":{kind},"nullable":true,"metadata":{metadata}}}]}}'


def missing_value(text):
    return said_of(json.dumps({"EXISTS_DEFAULT": text}))


# As Spark 3.5 writes them for ADD COLUMN ... DEFAULT.
PLAIN_VALUES = [
    *("5", "-5", "5L", "5S", "5Y", "1.5D", "1.0E10D", "1.50BD", "true", "NULL", "CAST(NULL AS INT)", "CAST(5 AS BIGINT)"),
    *("CAST(1.50BD AS DECIMAL(5,2))", "CAST('NaN' AS DOUBLE)", "X'1F'", "'abc'", "''", "'a (b) -- c'", "DATE '2020-01-01'"),
    *("TIMESTAMP '2020-01-01 00:00:00.5'", "TIMESTAMP_NTZ '2020-01-01 00:00:00'"),
]
EXPRESSIONS = [
    *(f"CAST({EVALUATED} AS BIGINT)", "CAST(element_at(array(1), 0) AS BIGINT)", EVALUATED, f"5 + {EVALUATED}", f"5 /* */ + {EVALUATED}"),
    *(f"'a' || {EVALUATED} || 'b'", "'a''b'", "'a\\'b'", f"'{'a' * 300}'", "1E9999BD", "ARRAY(1)", "CAST(5 AS ARRAY<INT>)", "5 ", "", "x"),
]


def mark_of(rows, directory):
    (group,) = rows.footers("parquet", {"u": listed(directory)})["u"].groups
    (key,) = group.form.keys
    return key[len(ROW_METADATA) + 1 :].rpartition("#")[0]


# Hadoop's configuration, in which Spark hands the schema on, replaces them.
VARIABLES = {
    said_of('{"comment":"${user.home}"}'): "variable",
    said_of('{"comment":"\\u0024{user.home}"}'): "variable",
    said_of('{"comment":"$\\u007buser.home}"}'): "variable",
    said_of('{"${user.home}":1}'): "variable",
    said_of('{"a":{"b":[1,["${user.home}"]]}}'): "variable",
    said_of('{"a":"x${","b":"}"}'): "variable",
    said_of('{"a":"x${"},"metadata":{}'): "variable",
    said_of("{}", "${user.home}"): "variable",
    said_of("{}", kind='{"type":"array","elementType":"${user.home}","containsNull":true}'): "variable",
    said_of('{"EXISTS_DEFAULT":"\'${user.home}\'"}'): "variable",
    said_of('{"EXISTS_${env.X-DEFAULT}":"5"}'): "variable",
    said_of('{"comment":"$","a$":{"b":"$"},"{a}":"$a{b}","c":"\\\\u0024{x}","$ {":"$"}'): "",
}


def test_what_a_footer_says_of_missing_values_is_plain_or_refused(rows, tmp_path):
    texts = {
        **{missing_value(text): "" for text in PLAIN_VALUES},
        **{missing_value(text): "sql" for text in EXPRESSIONS},
        said_of('{"EXISTS_DEFAULT":5}'): "sql",
        said_of('{"EXISTS_DEFAULT":{"a":"5"}}'): "sql",
        said_of(f'{{"EXISTS\\u005fDEFAULT":"{EVALUATED}"}}'): "sql",
        said_of(f'{{"EXISTS_DEFAULT":"{EVALUATED}","EXISTS_DEFAULT":"5"}}'): "sql",
        said_of(f'{{"EXISTS_DEFAULT":"{EVALUATED}"}},"metadata":{{}}'): "sql",
        said_of(f'{{"a":{{"EXISTS_DEFAULT":"{EVALUATED}"}}}}'): "sql",
    }
    for nth, (text, mark) in enumerate({**texts, **VARIABLES}.items()):
        write_rows_said(tmp_path / str(nth) / "a.parquet", text)
        assert mark_of(rows, tmp_path / str(nth)) == mark, text


@pytest.mark.parametrize("said", [EVALUATED, "CAST(element_at(array(1), 0) AS BIGINT)"])
def test_an_expression_that_a_footer_names_is_not_evaluated(rows, tmp_path, said):
    """The value that a column has where a file lacks it (ALTER TABLE ... ADD COLUMN ... DEFAULT) is SQL, of any built-in functions."""
    file = tmp_path / "u" / "a.parquet"
    write_rows_said(file, missing_value(said))
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    assert "EXISTS_DEFAULT" in unfaithful(group.form, "parquet", "3.5.9", "UTC")
    with pytest.raises(RowsError, match="EXISTS_DEFAULT"):
        rows.differences("parquet", [group], [group], 10)
    # The footer that is used is looked at, whatever the form says.
    with pytest.raises(RowsError, match="Spark would evaluate"):
        rows.differences("parquet", [replace(group, form=replace(group.form, keys=()))], [group], 10)


def test_rows_of_columns_with_a_plain_default_are_compared_and_sorted(rows, tmp_path):
    text = missing_value("CAST(5 AS BIGINT)")
    for unit in "uv":
        write_rows_said(tmp_path / unit / "a.parquet", text)
    (one,), (other,) = (found.groups for found in rows.footers("parquet", {unit: listed(tmp_path / unit) for unit in "uv"}).values())
    found = rows.differences("parquet", [one], [other], 10)
    assert (found.only_in_one, found.only_in_other) == (0, 0)
    batch = batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"], sort_columns=("id",))
    rows.write_stage(batch)
    (output,) = outputs(batch, 1)
    assert json.loads(pq.read_metadata(output).metadata[ROW_METADATA.encode()]) == json.loads(text)


LONG_PAD = '{"__CHAR_VARCHAR_TYPE_STRING":"char(2000000000)"}'


def test_texts_are_not_padded_to_what_a_footer_says(rows, tmp_path):
    """Spark would pad each to two gigabytes, and in local mode that ends the driver."""
    (tmp_path / "u").mkdir()
    table = pa.table({"id": pa.array(["a"])})
    with pq.ParquetWriter(tmp_path / "u" / "a.parquet", table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ROW_METADATA: said_of(LONG_PAD, kind='"string"')})
    (group,) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    found = rows.differences("parquet", [group], [group], 10)
    assert (found.only_in_one, found.only_in_other) == (0, 0)


@pytest.mark.parametrize(
    "text",
    [
        said_of("{}", name="other"),
        said_of("{}", kind='{"type":"struct","fields":[]}'),
        said_of("{}").replace("]", ',{"name":"more","type":"long","nullable":true,"metadata":{}}]'),
        said_of("{}").replace("]", ',{"name":"id","type":"long","nullable":true,"metadata":{}}]'),
        said_of("{}")[: said_of("{}").index("[")] + "[]}",
    ],
    ids=["other", "struct", "more", "twice", "none"],
)
def test_row_metadata_of_other_columns_is_refused(rows, tmp_path, text):
    write_rows_said(tmp_path / "u" / "a.parquet", text)
    assert mark_of(rows, tmp_path / "u") == "columns"


def test_row_metadata_of_other_columns_in_a_file_put_there_since_costs_its_unit_only(rows, tmp_path):
    file = tmp_path / "u" / "a.parquet"
    write_rows_said(file, said_of("{}", name="other"))
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    with pytest.raises(RowsError, match="other columns"):
        rows.differences("parquet", [replace(group, form=replace(group.form, keys=()))], [group], 10)


def kind_of(name):
    return {"type": "struct", "fields": [{"name": name, "type": "long", "nullable": True, "metadata": {}}]}


def list_of(name):
    return {"type": "array", "elementType": kind_of(name), "containsNull": True}


def map_of(key, value):
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


STRUCT = pa.struct([("x", pa.int64())])
# What the row metadata says of a column with a struct inside, whose field it calls so.
NESTED = {
    "list": (pa.list_(STRUCT), [{"x": 5}], list_of),
    "list of lists": (pa.list_(pa.list_(STRUCT)), [[{"x": 5}]], lambda name: {**list_of(name), "elementType": list_of(name)}),
    "list in a struct": (pa.struct([("l", pa.list_(STRUCT))]), {"l": [{"x": 5}]}, lambda name: in_struct(list_of(name))),
    "value": (pa.map_(pa.string(), STRUCT), [("k", {"x": 5})], lambda name: map_of("string", kind_of(name))),
    "key": (pa.map_(STRUCT, pa.string()), [({"x": 5}, "v")], lambda name: map_of(kind_of(name), "string")),
    "list as value": (pa.map_(pa.string(), pa.list_(STRUCT)), [("k", [{"x": 5}])], lambda name: map_of("string", list_of(name))),
}


def in_struct(kind):
    return {"type": "struct", "fields": [{"name": "l", "type": kind, "nullable": True, "metadata": {}}]}


def write_nested(path, kind, value, said):
    table = pa.table({"id": pa.array([value], kind)})
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ROW_METADATA: said_of("{}", kind=json.dumps(said))})


@pytest.mark.parametrize("nested", NESTED)
def test_row_metadata_of_other_fields_in_lists_and_maps_hides_none(rows, tmp_path, nested):
    """Spark reads NULL for each, so rows that differ would be equal for it."""
    kind, value, said = NESTED[nested]
    for unit, name in (("right", "x"), ("other", "y")):
        write_nested(tmp_path / unit / "a.parquet", kind, value, said(name))
    found = rows.footers("parquet", {unit: listed(tmp_path / unit) for unit in ("right", "other")})
    assert found["right"].groups[0].form.keys == ()
    (other,) = found["other"].groups
    assert "other columns" in unfaithful(other.form, "parquet", "3.5.9", "UTC")
    # Another file may be there since it was judged.
    with pytest.raises(RowsError, match="other columns"):
        rows.differences("parquet", [replace(other, form=replace(other.form, keys=()))], [other], 10)


@pytest.mark.parametrize("legacy", ["false", "true"], ids=["standard", "legacy"])
def test_structs_in_lists_and_maps_of_sparks_own_files_are_compared(rows, spark, tmp_path, legacy):
    """In the older forms of lists, which name the levels otherwise."""
    kinds = {
        "l": "array(named_struct('a', id, 'b.c', 1))",
        "m": "map(named_struct('a', id), named_struct('a', array(named_struct('element', id))))",
        "n": "if(id = 1, null, named_struct('a', if(id = 0, null, array(named_struct('z', id)))))",
        "k": "named_struct('a', 1, 'A', array(map(1, named_struct('k', id))))",
        "o": "array(named_struct('array', id))",
        "p": "array(array(if(id = 0, null, named_struct('list', array(named_struct('p_tuple', id))))))",
    }
    before = spark.conf.get("spark.sql.parquet.writeLegacyFormat")
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
    try:
        written = spark.range(3).selectExpr(*(f"{text} {name}" for name, text in kinds.items())).coalesce(1)
        written.write.parquet(f"file:{tmp_path}/u")
    finally:
        spark.conf.set("spark.sql.parquet.writeLegacyFormat", before)
    files = [file for file in listed(tmp_path / "u") if file.path.endswith(".parquet")]
    (group,) = rows.footers("parquet", {"u": files})["u"].groups
    assert group.form.keys == ()


# A field of FileMetaData.
ENCRYPTION = 8


class TheirKms(pe.KmsClient):
    """Wraps nothing."""

    def wrap_key(self, key, _master_key):
        return base64.b64encode(key)

    def unwrap_key(self, wrapped, _master_key):
        return base64.b64decode(wrapped)


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "of columns only"])
@pytest.mark.parametrize("window", [64 << 20, 10], ids=["in memory", "streamed"])
def test_a_digest_asks_no_kms_that_a_file_names(gateway, rows, tmp_path, window, is_told):
    """With a site's `parquet.crypto.factory.class`, whose client gets the run's token and, unless the site names an instance, the address
    that the file says (`FileKeyUnwrapper`). `verify` digests without a look at footers.
    """
    (tmp_path / "u").mkdir()
    wanted = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["v"]}, plaintext_footer=True)
    connection = pe.KmsConnectionConfig(kms_instance_url="http://tenant.example", kms_instance_id="theirs")
    encryption = pe.CryptoFactory(lambda _connection: TheirKms()).file_encryption_properties(connection, wanted)
    table = pa.table({"id": [1, 2], "v": [1, 2]})
    with pq.ParquetWriter(tmp_path / "u" / "a", table.schema, encryption_properties=encryption) as writer:
        writer.write_table(table)
    if not is_told:
        footers.change(tmp_path / "u" / "a", lambda footer: footer.pop(ENCRYPTION))
    tools = "org.apache.parquet.crypto.keytools"
    site = {
        "parquet.crypto.factory.class": f"{tools}.PropertiesDrivenCryptoFactory",
        "parquet.encryption.kms.client.class": f"{tools}.LocalWrapKmsClient",
    }
    conf = gateway.spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in site.items():
        conf.set(key, value)
    rows.physical._jobs.setWindow(window)
    try:
        failed = rows.digests("parquet", {"u": listed(tmp_path / "u")})["u"].failed
    finally:
        for key in site:
            conf.unset(key)
    # Where it is asked, the reason is that the library's own client is abstract: no address is called here.
    assert failed.endswith("it has encryption, which cannot be copied")


def arrays(depth):
    return '{"type":"array","containsNull":true,"elementType":' * depth + '"long"' + "}" * depth


UNREADABLE = {
    "interval": said_of("{}", kind='"interval"'),
    **{f"metadata {depth} deep": said_of('{"a":' * depth + "1" + "}" * depth) for depth in (350, 980, 20_000)},
    **{f"arrays {depth} deep": said_of("{}", kind=arrays(depth)) for depth in (280, 350, 980)},
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_schema_that_python_cannot_read_costs_its_unit_only(rows, tmp_path, text):
    """A type that PySpark does not know, and what is nested deeper than Python reads: both ended the command as a bug of its table."""
    write_rows_said(tmp_path / "u" / "a.parquet", text)
    read = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"]
    if read.unreadable:
        return
    (group,) = read.groups
    with pytest.raises(RowsError):
        rows.differences("parquet", [group], [group], 10)


def test_what_is_nested_as_deep_as_may_be_is_read(rows, tmp_path):
    write_rows_said(tmp_path / "u" / "a.parquet", said_of('{"a":' * 290 + "1" + "}" * 290))
    (group,) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    found = rows.differences("parquet", [group], [group], 10)
    assert (found.only_in_one, found.only_in_other) == (0, 0)


def test_a_long_number_in_a_file_put_there_since_reaches_no_parser_of_sparks(rows, tmp_path):
    """That of Spark 3.3 takes time quadratic in its digits."""
    file = tmp_path / "u" / "a.parquet"
    write_rows_said(file, said_of("{}"))
    (group,) = rows.footers("parquet", {"u": listed(file.parent)})["u"].groups
    write_rows_said(file, said_of(f'{{"a":{"1" * 1001}}}'))
    with pytest.raises(RowsError, match="a number of more than 1000 digits"):
        rows.differences("parquet", [replace(group, files=listed(file.parent))], [group], 10)


@pytest.mark.parametrize("where", ["type", "metadata"])
def test_row_metadata_that_is_nested_too_deeply_for_python_costs_its_unit_only(rows, tmp_path, where):
    """Jackson reads a thousand levels and more, and so does Spark's parser where the stack is large."""
    level, innermost = ('{"type":"array","containsNull":true,"elementType":', '"long"') if where == "type" else ('{"a":', "1")
    deep = level * 950 + innermost + "}" * 950
    write_rows_said(tmp_path / "u" / "a.parquet", said_of("{}", kind=deep) if where == "type" else said_of(deep))
    (group,) = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    with pytest.raises(RowsError):
        rows.differences("parquet", [group], [group], 10)
    with pytest.raises(RowsError):
        rows.write_stage(batch_of(rows, "parquet", tmp_path / "stage", [tmp_path / "u"], sort_columns=("id",)))


@pytest.mark.parametrize("kind", ["interval", "array<" * 200 + "bigint" + ">" * 200], ids=["interval", "arrays"])
def test_a_type_of_orc_that_python_cannot_read_costs_its_unit_only(gateway, rows, tmp_path, kind):
    """Spark takes the type of a column from an attribute of its own in the file."""
    (tmp_path / "u").mkdir()
    write_orc_said(gateway, tmp_path / "u" / "a", kind)
    (group,) = rows.footers("orc", {"u": listed(tmp_path / "u")})["u"].groups
    with pytest.raises(RowsError):
        rows.differences("orc", [group], [group], 10)


def write_orc_said(gateway, path, kind):
    orc = gateway.jvm.org.apache.orc
    schema = orc.TypeDescription.fromString("struct<id:bigint>")
    schema.getChildren().get(0).setAttribute("spark.sql.catalyst.type", kind)
    options = orc.OrcFile.writerOptions(gateway.hadoop_conf).setSchema(schema)
    writer = orc.OrcFile.createWriter(gateway.jvm.org.apache.hadoop.fs.Path(f"file:{path}"), options)
    batch = schema.createRowBatch()
    set_field(batch, "size", 3)
    writer.addRowBatch(batch)
    writer.close()
