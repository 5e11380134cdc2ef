import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.schemas import OrcType, SchemaTextError, needs_legacy_decimals, parse_orc, parse_parquet, timestamp_encoding

PARQUET = """message schema {
  optional int32 id = 7;
  optional binary "a name; with (odd) \\"signs\\" (STRING) = 9" (STRING) = 8;
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
    assert (second.name, second.annotation, second.field_id) == ('a name; with (odd) "signs" (STRING) = 9', "STRING", 8)
    assert [(leaf.name, leaf.physical, leaf.annotation) for leaf in third.leaves] == [
        ("d", "fixed_len_byte_array(5)", "DECIMAL(10,2)"),
        ("t", "int96", ""),
    ]
    assert (fourth.repetition, fourth.annotation) == ("repeated", "LIST")


def test_an_annotation_that_the_parquet_library_does_not_know_is_read_back():
    text = "message schema {\n  optional int32 a (UNKNOWN_99);\n  optional int32 b (UNKNOWN_CONVERTED_22);\n}"
    assert [field.annotation for field in parse_parquet(text)] == ["UNKNOWN_99", "UNKNOWN_CONVERTED_22"]


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
        "message another {\n  optional int32 id;\n}",
        "message schema {\n  optional int32 x = 5 = 6;\n}",
        "message schema {\n  optional int32 a name;\n}",
        'message schema {\n  optional int32 "open;\n}',
        'message schema {\n  optional int32 "\\q";\n}',
    ],
)
def test_a_parquet_text_that_is_not_understood_is_an_error(text):
    with pytest.raises(SchemaTextError):
        parse_parquet(text)


HOSTILE = ["x = 5", "a;", "b {", "c (DATE)", "d\n}", 'e";\n  optional int96 "f', "g\u2028h", "i\\", " j ", "\U0001f41d", "k /0.a=b", ""]


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text()), min_size=1, max_size=4), st.sampled_from(["", " (DATE)"]))
def test_no_parquet_name_passes_for_a_part_of_the_schema(found, annotation):
    lines = [f"  optional int32 {json.dumps(name, ensure_ascii=False)}{annotation} = {at};" for at, name in enumerate(found)]
    fields = parse_parquet("\n".join(["message schema {", *lines, "}"]))
    assert [(field.name, field.physical, field.field_id) for field in fields] == [(name, "int32", at) for at, name in enumerate(found)]
    assert {field.annotation for field in fields} == {annotation.strip(" ()")}


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text()), min_size=1, max_size=4))
def test_no_orc_name_passes_for_a_part_of_the_schema(found):
    fields = ",".join("`" + name.replace("`", "``") + "`:int" for name in found)
    parsed, attributes = parse_orc(f"struct<{fields}> /1.spark.sql.catalyst.type=x /2.y=z")
    assert (parsed.names, {child.kind for child in parsed.children}) == (tuple(found), {"int"})
    assert attributes == ("1.spark.sql.catalyst.type=x", "2.y=z")


def test_an_orc_schema_is_read_back():
    parsed, _ = parse_orc("struct<a:int,`b ``c`:array<decimal(10,2)>,m:map<string,struct<x:timestamp with local time zone>>,v:varchar(3)>")
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
