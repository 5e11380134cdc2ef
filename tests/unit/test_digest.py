"""The digest's SQL text; tests/spark/test_rows_digest.py tests with rows what it distinguishes."""

from __future__ import annotations

import pytest

from hivekeeper.cluster import digest


def schema(**fields):
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]}


def test_a_scalar_column_is_hashed_as_it_is_with_its_null_bit():
    assert digest.row_hash(schema(id="long")) == "xxhash64(`id`, IF(isnull(`id`), 1L, 0L))"


def test_a_floating_column_adds_the_sign_of_zero():
    assert "CASE WHEN `x` = 0 THEN CAST(`x` AS STRING) END" in digest.row_hash(schema(x="double"))


def test_names_are_quoted():
    assert "`a.b``c`" in digest.row_hash(schema(**{"a.b`c": "string"}))


def test_more_columns_than_a_bigint_has_bits_get_several_bitmaps():
    text = digest.row_hash(schema(**{f"c{index}": "integer" for index in range(61)}))
    assert text.count("IF(isnull(`c59`), 576460752303423488L, 0L)") == 1
    assert text.endswith("IF(isnull(`c60`), 1L, 0L))")


def test_lambda_variables_of_nested_lists_differ():
    inner = {"type": "array", "elementType": "integer", "containsNull": True}
    text = digest.row_hash(schema(a={"type": "array", "elementType": inner, "containsNull": True}))
    assert "x0 ->" in text
    assert "x1 ->" in text


@pytest.mark.parametrize("kind", ["void", "variant", "calendarinterval", {"type": "udt", "class": "x"}])
def test_a_type_without_a_digest_is_refused_never_left_out(kind):
    with pytest.raises(digest.NoDigestError, match="has no digest"):
        digest.row_hash(schema(x=kind))


def test_a_type_without_a_digest_is_refused_inside_a_struct_too():
    with pytest.raises(digest.NoDigestError):
        digest.row_hash(schema(x=schema(y="variant")))
