import time
from dataclasses import replace

import pytest

from hivekeeper.model import Form
from hivekeeper.plan.fidelity import decimal_bytes, refuse_copy, unfaithful

LIST = "optional group l (LIST) {{\n    repeated group {level} {{\n      optional int32 {element};\n    }}\n  }}"
ENTRY = "      optional binary key (STRING);\n      optional int32 value;\n"
MAP = "optional group m ({kind}) {{\n    repeated group {level} {{\n" + ENTRY + "    }}\n  }}"


def parquet(*fields, **more):
    text = "\n".join(f"  {field}" if field.endswith("}") else f"  optional {field};" for field in fields)
    return Form(f"message schema {{\n{text}\n}}", **{"codec": "snappy", "writer": "spark", **more})


def orc(text, **more):
    return Form(text, **{"codec": "zlib", "writer": "hive", **more})


def parquet_reason(form, spark="3.5.9"):
    return unfaithful(form, "parquet", spark, "UTC")


def orc_reason(form, spark="3.5.9", zone="UTC"):
    return unfaithful(form, "orc", spark, zone)


@pytest.mark.parametrize(
    "field",
    [
        "boolean x",
        "int32 x",
        "int32 x (INTEGER(8,true))",
        "int32 x (INTEGER(16,true))",
        "int32 x (DATE)",
        "int64 x",
        "int64 x (TIMESTAMP(MICROS,true))",
        "int64 x (TIMESTAMP(MILLIS,true))",
        "int64 x (TIMESTAMP(MICROS,false))",
        "int96 x",
        "float x",
        "double x",
        "binary x",
        "binary x (STRING)",
        "int32 x (DECIMAL(9,2))",
        "int64 x (DECIMAL(18,2))",
        "fixed_len_byte_array(9) x (DECIMAL(20,2))",
        "fixed_len_byte_array(5) x (DECIMAL(10,2))",
        "int32 x = 3",
        'int32 "a name with blanks.and.dots"',
        LIST.format(level="list", element="element"),
        MAP.format(kind="MAP", level="key_value"),
        "optional group st {\n    optional int32 x;\n  }",
    ],
)
def test_what_spark_writes_back_as_it_was_is_kept(field):
    assert parquet_reason(parquet(field, calendar="corrected")) is None


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("int32 x (INTEGER(8,false))", "INTEGER(8,false)"),
        ("int32 x (INTEGER(32,true))", "INTEGER(32,true)"),
        ("int64 x (INTEGER(64,false))", "INTEGER(64,false)"),
        ("int32 x (TIME(MILLIS,true))", "TIME(MILLIS,true)"),
        ("int64 x (TIMESTAMP(NANOS,true))", "TIMESTAMP(NANOS,true)"),
        ("int64 x (TIMESTAMP(MILLIS,false))", "TIMESTAMP(MILLIS,false)"),
        ("fixed_len_byte_array(16) x (UUID)", "UUID"),
        ("fixed_len_byte_array(2) x (FLOAT16)", "FLOAT16"),
        ("fixed_len_byte_array(12) x (INTERVAL)", "INTERVAL"),
        ("fixed_len_byte_array(16) x", "fixed_len_byte_array(16)"),
        ("binary x (ENUM)", "ENUM"),
        ("binary x (JSON)", "JSON"),
        ("binary x (BSON)", "BSON"),
        ("binary x (DECIMAL(10,2))", "stored as binary"),
        ("int64 x (DECIMAL(9,2))", "stored as int64"),
        ("fixed_len_byte_array(16) x (DECIMAL(10,2))", "stored as fixed_len_byte_array(16)"),
        (LIST.format(level="bag", element="array_element"), "three-level"),
        (LIST.format(level="list", element="item"), "three-level"),
        ("optional group l (LIST) {\n    repeated int32 array;\n  }", "three-level"),
        ("optional group l (LIST) {\n    repeated group l_tuple {\n      optional int32 x;\n    }\n  }", "three-level"),
        ("optional group l (LIST) {\n    repeated group element {\n      optional int32 x;\n    }\n  }", "three-level"),
        ("repeated group l {\n    optional int32 x;\n  }", "without the LIST annotation"),
        ("optional group l (LIST) {\n    repeated group list {\n      optional int32 element = 4;\n    }\n  }", "field ids"),
        (MAP.format(kind="MAP_KEY_VALUE", level="key_value"), "MAP_KEY_VALUE"),
        (MAP.format(kind="MAP", level="map"), "map m"),
        ("optional group m (MAP) {\n    repeated group key_value {\n      optional int32 key;\n    }\n  }", "map m"),
        ("optional group v (VARIANT) {\n    optional binary value;\n  }", "VARIANT"),
        ("optional group st {\n    optional binary x (ENUM);\n  }", "ENUM"),
        ("int32 __hivekeeper_unit", "Hivekeeper itself uses"),
        ("int32 __HIVEKEEPER_UNIT_file", "Hivekeeper itself uses"),
        ('int32 "tab\\there"', "control character"),
        ('int32 "two\\nlines"', "control character"),
        ("int32 two\nlines", "not understood"),
        ("int128 x", "not understood"),
    ],
)
def test_what_spark_would_change_is_refused(field, says):
    assert says in parquet_reason(parquet(field))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (("int96 a", "int64 b (TIMESTAMP(MICROS,true))"), "several encodings (INT96, MICROS)"),
        (("int64 a (TIMESTAMP(MILLIS,true))", "int64 b (TIMESTAMP(MICROS,true))"), "several encodings"),
        (("int32 a (DECIMAL(9,2))", "fixed_len_byte_array(5) b (DECIMAL(10,2))"), "in two ways"),
        ((LIST.format(level="list", element="element"), "fixed_len_byte_array(5) b (DECIMAL(10,2))"), "lists or maps and decimals"),
        ((MAP.format(kind="MAP", level="key_value"), "fixed_len_byte_array(5) b (DECIMAL(10,2))"), "lists or maps and decimals"),
        (("int32 a", "int32 a"), "same name"),
        ((), "no columns"),
    ],
)
def test_columns_that_need_opposite_settings_are_refused(fields, says):
    assert says in parquet_reason(parquet(*fields) if fields else Form("message schema {\n}", "snappy", "spark"))


def test_names_that_differ_in_case_only_are_kept():
    assert parquet_reason(parquet("int32 v", "int32 V")) is None


def test_a_timestamp_without_zone_needs_spark_3_4():
    form = parquet("int64 x (TIMESTAMP(MICROS,false))")
    assert "without time zone" in parquet_reason(form, spark="3.3.4")
    assert parquet_reason(form, spark="4.0.1") is None


@pytest.mark.parametrize(
    ("writer", "kept"), [("spark", True), ("parquet-mr", True), ("impala", False), ("arrow", False), ("unknown", False)]
)
def test_int96_of_a_writer_that_hive_reads_in_another_way_is_refused(writer, kept):
    assert (parquet_reason(parquet("int96 x", writer=writer)) is None) is kept
    assert parquet_reason(parquet("int64 x", writer=writer)) is None


@pytest.mark.parametrize(
    ("calendar", "kept"), [("none", True), ("unknown", True), ("corrected", True), ("legacy", False), ("mayan", False)]
)
def test_the_old_calendar_is_refused(calendar, kept):
    assert (parquet_reason(parquet("int32 x (DATE)", calendar=calendar)) is None) is kept


@pytest.mark.parametrize(
    ("key", "field", "kept"),
    [
        ("writer.model.name", "int96 x", True),
        ("writer.time.zone", "int96 x", False),
        ("writer.time.zone", "int32 x (DATE)", False),
        ("writer.time.zone", "int32 x", True),
        ("pandas", "int32 x", False),
        ("ARROW:schema", "int32 x", False),
        ("a key of tomorrow", "int32 x", False),
        ("org.apache.spark.sql.parquet.row.metadata#0a1b2c", "int32 x", True),
        ("org.apache.spark.sql.parquet.row.metadata#udt#0a1b2c", "int32 x", False),
        ("org.apache.spark.sql.parquet.row.metadata#sql#0a1b2c", "int32 x", False),
        ("org.apache.spark.sql.parquet.row.metadata#variable#0a1b2c", "int32 x", False),
        ("org.apache.spark.sql.parquet.row.metadata#columns#0a1b2c", "int32 x", False),
    ],
)
def test_footer_keys_that_spark_would_drop_are_refused(key, field, kept):
    assert (parquet_reason(parquet(field, keys=(key,))) is None) is kept


@pytest.mark.parametrize(
    ("codec", "spark", "kept"),
    [
        ("none", "3.3.4", True),
        ("zstd", "3.3.4", True),
        ("gzip+snappy", "3.5.9", False),
        ("lzo", "3.5.9", False),
        ("brotli", "3.5.9", False),
        ("lz4_raw", "3.3.4", False),
        ("lz4_raw", "3.5.9", True),
        ("lz4_raw", "4.0.1", True),
    ],
)
def test_codecs_that_spark_cannot_write_are_refused(codec, spark, kept):
    assert (parquet_reason(parquet("int32 x", codec=codec), spark) is None) is kept


@pytest.mark.parametrize("digits", [39, 100_000, 2**31 - 1])
def test_a_decimal_of_more_digits_than_spark_knows_is_refused_before_its_size_is_computed(digits):
    assert f"has {digits} digits" in parquet_reason(parquet(f"binary x (DECIMAL({digits},2))"))


def test_bloom_filters_of_very_many_columns_take_no_time():
    found = parquet(*(f"int32 c{number}" for number in range(50_000)), blooms=tuple(f"c{number}" for number in range(50_000)))
    started = time.monotonic()
    assert parquet_reason(found) is None
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(("digits", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)])
def test_bytes_of_a_decimal(digits, size):
    assert decimal_bytes(digits) == size


@pytest.mark.parametrize(
    "kind",
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"),
        *("decimal(10,2)", "array<int>", "map<string,bigint>", "struct<y:int>"),
    ],
)
def test_orc_types_that_spark_writes_back_are_kept(kind):
    assert orc_reason(orc(f"struct<x:{kind}>")) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("struct<x:char(5)>", "char(5)"),
        ("struct<x:varchar(5)>", "varchar(5)"),
        ("struct<x:uniontype<int,string>>", "uniontype"),
        ("struct<x:struct<>>", "no columns"),
        ("struct<>", "no columns"),
        ("struct<x:array<char(5)>>", "char(5)"),
        ("struct<x:timestamp with local time zone>", "timestamp with local time zone"),
        ("struct<operation:int,originalTransaction:int,bucket:int,rowId:int,currentTransaction:int,row:int>", "ACID"),
        ("int", "not a struct"),
        ("struct<x:int> /1.iceberg.id=4", "attributes"),
        ("struct<__hivekeeper_unit:int>", "Hivekeeper itself uses"),
        ("struct<x:int", "not understood"),
    ],
)
def test_orc_types_that_spark_would_change_are_refused(text, says):
    assert says in orc_reason(orc(text))


@pytest.mark.parametrize(
    ("written", "ours", "kept"),
    [
        ("UTC", "UTC", True),
        ("UTC", "Etc/UTC", True),
        ("Europe/Paris", "Europe/Paris", True),
        ("Europe/Paris", "UTC", False),
        ("", "Asia/Tokyo", True),
    ],
)
def test_orc_timestamps_of_another_zone_are_refused(written, ours, kept):
    form = orc("struct<x:timestamp>", zone=written)
    assert (orc_reason(form, zone=ours) is None) is kept
    assert orc_reason(replace(form, schema="struct<x:bigint>"), zone=ours) is None


def test_orc_metadata_that_spark_would_drop_is_refused():
    assert "hive.acid.stats" in orc_reason(orc("struct<x:int>", keys=("hive.acid.stats",)))


@pytest.mark.parametrize(("codec", "kept"), [("none", True), ("zlib", True), ("zstd", True), ("lzo", False), ("brotli", False)])
def test_orc_codecs(codec, kept):
    assert (orc_reason(orc("struct<x:int>", codec=codec)) is None) is kept


def test_another_format_is_refused():
    assert unfaithful(orc("struct<x:int>"), "avro", "3.5.9", "UTC") == "its format is avro"


def test_a_bloom_filter_that_no_option_can_name_is_refused():
    assert "no option" in parquet_reason(parquet('int32 "a.b"', blooms=("a.b",)))
    assert parquet_reason(parquet('int32 "a.b"', "int32 c", blooms=("c",))) is None
    assert "no option" in orc_reason(orc("struct<`a,b`:int>", blooms=("a,b",)))
    assert orc_reason(orc("struct<`a,b`:int,c:int>", blooms=("c",))) is None


def test_plain_bytes_of_others_than_spark_are_not_rewritten_as_rows():
    """Readers by path take them for text where spark.sql.parquet.binaryAsString is on; Spark's row metadata would say binary."""
    assert parquet_reason(parquet("binary x")) is None
    assert "whether it is text" in parquet_reason(parquet("binary x", writer="impala"))
    assert parquet_reason(parquet("binary x (STRING)", writer="impala")) is None


def test_times_without_zone_of_others_than_spark_are_not_rewritten_as_rows():
    """Readers by path take them for timestamps where spark.sql.parquet.inferTimestampNTZ.enabled is off; row metadata would say more."""
    assert parquet_reason(parquet("int64 x (TIMESTAMP(MICROS,false))")) is None
    assert "without zone" in parquet_reason(parquet("int64 x (TIMESTAMP(MICROS,false))", writer="arrow"))
    assert parquet_reason(parquet("int64 x (TIMESTAMP(MICROS,true))", writer="arrow")) is None


# ---- copies


@pytest.mark.parametrize(
    "form",
    [
        parquet("int96 x", writer="impala"),
        parquet("int32 x (INTEGER(32,false))"),
        parquet("int64 x (TIME(NANOS,true))"),
        parquet("int32 x (DATE)", calendar="legacy"),
        parquet("int64 x (TIMESTAMP(MICROS,true))", keys=("writer.time.zone",)),
        parquet("binary x", codec="gzip+snappy"),
        parquet("int32 A", "int32 a"),
        parquet(LIST.format(level="bag", element="array_element")),
    ],
    ids=lambda form: form.schema.split("\n")[1].strip(),
)
def test_a_copy_takes_what_spark_would_change(form):
    assert refuse_copy(form, "parquet", "snappy", "3.5.9") is None


LONG = "x" * 4_000_000


@pytest.mark.parametrize(
    ("format", "schema"),
    [
        ("parquet", f"message schema {{\n  optional int32 {LONG} = -1;\n}}"),
        ("parquet", LONG),
        ("orc", f"struct<a:varchar(-5),{LONG}:int>"),
        ("orc", f"struct<a:int>{LONG}"),
    ],
    ids=["negative id", "no message", "negative length", "more than a struct"],
)
def test_a_schema_that_is_not_understood_is_quoted_in_short(format, schema):
    """A footer of a few kilobytes may have it, in each of a hundred thousand partitions."""
    why = refuse_copy(Form(schema, "none", "x"), format, "snappy", "3.5.9")
    assert "not understood" in why
    assert len(why) < 200


@pytest.mark.parametrize(
    ("form", "codec", "says"),
    [
        (parquet("int32 x", undecodable=("the codec LZ4 of Hadoop",)), "snappy", "cannot read the codec LZ4 of Hadoop"),
        (parquet("int32 x", codec="brotli"), "brotli", "cannot write the codec brotli"),
        (parquet("int32 x", "int64 x"), "snappy", "same name"),
        (parquet("optional group st {\n    optional int32 x;\n    optional int32 x;\n  }"), "snappy", "same name"),
        (Form("message schema {\n}", "snappy", "x"), "snappy", "no columns"),
        (Form("no schema", "snappy", "x"), "snappy", "not understood"),
    ],
)
def test_a_copy_refuses_what_cannot_be_read_or_written(form, codec, says):
    assert says in refuse_copy(form, "parquet", codec, "3.5.9")


@pytest.mark.parametrize(
    "kind",
    [
        "char(5)",
        "uniontype<int,string>",
        "timestamp with local time zone",
        "map<int,array<timestamp>>",
        "struct<`a.b`:int,`__hivekeeper_x`:int>",
    ],
)
def test_every_orc_type_zone_and_key_is_copied(kind):
    form = orc(f"struct<x:{kind}> /1.note=k", zone="Asia/Tokyo", keys=("owner",), blooms=("a,b",), writer="orc-cpp")
    assert refuse_copy(form, "orc", "zlib", "3.3.4") is None


@pytest.mark.parametrize(
    ("form", "codec", "says"),
    [
        (orc("struct<x:int>", undecodable=("encrypted columns",)), "zlib", "ORC library cannot read encrypted columns"),
        (orc("struct<x:int>"), "gzip", "cannot write the codec gzip"),
        (orc("array<int>"), "zlib", "not a struct"),
        (orc("struct<>"), "zlib", "no columns"),
        (orc("struct<a:int,s:struct<x:int,x:int>>"), "zlib", "same name"),
        (
            orc("struct<operation:int,originalTransaction:int,bucket:int,rowId:int,currentTransaction:int,row:struct<a:int>>"),
            "zlib",
            "ACID",
        ),
        (orc("struct<x:int>", keys=("hive.acid.key.index",)), "zlib", "ACID"),
        (orc("struct<x"), "zlib", "not understood"),
    ],
)
def test_orc_files_that_cannot_be_copied_are_refused(form, codec, says):
    assert says in refuse_copy(form, "orc", codec, "3.5.9")


@pytest.mark.parametrize("what", ["encryption", "columns in another file", "field 12 of the footer"])
def test_rows_are_not_made_of_what_this_library_cannot_read_either(what):
    assert f"Parquet library cannot read {what}" in parquet_reason(parquet("int32 x", undecodable=(what,), calendar="corrected"))
    assert f"ORC library cannot read {what}" in orc_reason(orc("struct<x:int>", undecodable=(what,)))
