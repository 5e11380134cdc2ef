import pytest

from hivekeeper.schemas import OrcType, SchemaTextError, needs_legacy_decimals, parse_orc, parse_parquet, timestamp_encoding

PARQUET = """message schema {
  optional int32 id = 7;
  optional binary a name; with (odd) signs (STRING) = 8;
  optional group st {
    optional fixed_len_byte_array(5) d (DECIMAL(10,2));
    optional int96 t;
  }
  repeated group l (LIST) {
    optional int64 m (TIMESTAMP(MILLIS,true));
  }
}"""


def test_a_parquet_schema_is_read_back():
    first, second, third, fourth = parse_parquet(PARQUET)
    assert (first.name, first.physical, first.annotation, first.field_id) == ("id", "int32", "", 7)
    assert (second.name, second.annotation, second.field_id) == ("a name; with (odd) signs", "STRING", 8)
    assert [(leaf.name, leaf.physical, leaf.annotation) for leaf in third.leaves] == [
        ("d", "fixed_len_byte_array(5)", "DECIMAL(10,2)"),
        ("t", "int96", ""),
    ]
    assert (fourth.repetition, fourth.annotation) == ("repeated", "LIST")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message schema {",
        "message schema {\n  optional int32 id;",
        "message schema {\n  optional int32 id\n}",
        "message schema {\n  optional int128 id;\n}",
        "message schema {\n  optional group g;\n}",
        "message schema {\n  optional int32 g {\n  }\n}",
        "message schema {\n  optional int32 two\nlines;\n}",
        "message schema {\n}\n}",
    ],
)
def test_a_parquet_text_that_is_not_understood_is_an_error(text):
    with pytest.raises(SchemaTextError):
        parse_parquet(text)


def test_an_orc_schema_is_read_back():
    parsed = parse_orc("struct<a:int,`b ``c`:array<decimal(10,2)>,m:map<string,struct<x:timestamp with local time zone>>,v:varchar(3)>")
    assert parsed.names == ("a", "b `c", "m", "v")
    assert parsed.children[1] == OrcType("array", (OrcType("decimal(10,2)"),))
    assert parsed.children[2].children[1].children[0].kind == "timestamp with local time zone"
    assert parsed.children[3].kind == "varchar(3)"


@pytest.mark.parametrize("text", ["", "struct<a:int", "struct<a>", "struct<a:int>>", "struct<a:int,b>", "struct<a;int>", "array<"])
def test_an_orc_text_that_is_not_understood_is_an_error(text):
    with pytest.raises(SchemaTextError):
        parse_orc(text)


@pytest.mark.parametrize(
    ("field", "encoding"),
    [
        ("int96 t", "INT96"),
        ("int64 t (TIMESTAMP(MICROS,true))", "MICROS"),
        ("int64 t (TIMESTAMP(MILLIS,true))", "MILLIS"),
        ("int64 t (TIMESTAMP(MICROS,false))", ""),
        ("int64 t", ""),
    ],
)
def test_the_encoding_of_a_timestamp(field, encoding):
    (leaf,) = parse_parquet(f"message schema {{\n  optional {field};\n}}")
    assert timestamp_encoding(leaf) == encoding


@pytest.mark.parametrize(
    ("field", "legacy"),
    [
        ("fixed_len_byte_array(5) d (DECIMAL(10,2))", True),
        ("fixed_len_byte_array(16) d (DECIMAL(38,2))", False),
        ("int64 d (DECIMAL(10,2))", False),
        ("fixed_len_byte_array(5) d", False),
    ],
)
def test_small_decimals_in_bytes_need_the_legacy_format(field, legacy):
    fields = parse_parquet(f"message schema {{\n  optional {field};\n}}")
    assert needs_legacy_decimals(fields) is legacy
