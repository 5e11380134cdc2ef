"""What the digest distinguishes: each pair is equal under a plain xxhash64 over the columns, or nearly the same in meaning."""

from __future__ import annotations

import json

import pytest

from hivekeeper.cluster import digest

EMPTY = "CAST(ARRAY() AS ARRAY<INT>)"

# Each pair: two rows of the same type that a digest with a blind spot would take for equal.
PAIRS = {
    "a NULL that moved to the next column": ("CAST(NULL AS INT) a, 1 b", "1 a, CAST(NULL AS INT) b"),
    "a NULL list and an empty one": ("CAST(NULL AS ARRAY<INT>) a", f"{EMPTY} a"),
    "a NULL that moved in a list": ("ARRAY(NULL, 1) a", "ARRAY(1, NULL) a"),
    "lists of lists with another shape": (f"ARRAY({EMPTY}, ARRAY(1)) a", f"ARRAY(ARRAY(1), {EMPTY}) a"),
    "an element that moved to the next list": ("ARRAY(1) a, ARRAY(2, 3) b", "ARRAY(1, 2) a, ARRAY(3) b"),
    "a NULL struct and one of NULLs": ("CAST(NULL AS STRUCT<x: INT>) a", "NAMED_STRUCT('x', CAST(NULL AS INT)) a"),
    "the sign of zero": ("0.0D a", "-0.0D a"),
    "the sign of zero in a list": ("ARRAY(0.0D) a", "ARRAY(-0.0D) a"),
    "the sign of zero of a float": ("CAST(0 AS FLOAT) a", "CAST('-0.0' AS FLOAT) a"),
    "the value of a map's key": ("MAP('x', 1) a", "MAP('y', 1) a"),
    "a NULL value in a map": ("MAP('x', CAST(NULL AS INT)) a", "CAST(MAP() AS MAP<STRING, INT>) a"),
    "an empty text and NULL": ("'' a", "CAST(NULL AS STRING) a"),
    "NaN and NULL": ("CAST('NaN' AS DOUBLE) a", "CAST(NULL AS DOUBLE) a"),
    "the order of a map's entries": ("MAP('x', 1, 'y', 2) a", "MAP('y', 2, 'x', 1) a"),
    "the last digit of a large decimal": ("1234567890123456789012345678.01BD a", "1234567890123456789012345678.02BD a"),
    "a microsecond": ("TIMESTAMP'2020-01-01 00:00:00.000001' a", "TIMESTAMP'2020-01-01 00:00:00' a"),
}


def sums_of(spark, *selects):
    frame = spark.sql(" UNION ALL ".join(f"SELECT {select}" for select in selects))
    hashed = frame.selectExpr(f"{digest.row_hash(json.loads(frame.schema.json()))} AS h")
    return tuple(hashed.selectExpr(*[f"{text} AS {name}" for name, text in digest.sums("h").items()]).first())


@pytest.mark.parametrize("pair", list(PAIRS))
def test_the_digest_tells_apart(spark, pair):
    left, right = PAIRS[pair]
    assert sums_of(spark, left) != sums_of(spark, right)


def test_a_null_in_the_sixty_first_column_counts(spark):
    columns = [f"1 c{index}" for index in range(59)]
    null = "CAST(NULL AS INT)"
    left, right = [*columns, f"{null} c59", "1 c60", "1 c61"], [*columns, "1 c59", f"{null} c60", "1 c61"]
    assert sums_of(spark, ", ".join(left)) != sums_of(spark, ", ".join(right))


def test_the_order_of_rows_does_not_matter_and_their_number_does(spark):
    assert sums_of(spark, "1 a", "2 a", "2 a") == sums_of(spark, "2 a", "1 a", "2 a")
    assert sums_of(spark, "1 a", "2 a", "2 a") != sums_of(spark, "1 a", "1 a", "2 a")
    assert sums_of(spark, "1 a") != sums_of(spark, "1 a", "1 a")


def test_equal_rows_have_equal_digests_whatever_nan_they_hold(spark):
    assert sums_of(spark, "CAST('NaN' AS DOUBLE) a") == sums_of(spark, "CAST('NaN' AS DOUBLE) a")


def test_the_digest_is_the_same_number_in_every_spark_version(spark):
    """A certificate may be verified years later."""
    select = "1L a, 'x' b, 2.5D c, ARRAY(1, NULL) d, MAP('k', 1.5BD) e, NAMED_STRUCT('f', DATE'2020-01-01') f, CAST(NULL AS BINARY) g"
    assert sums_of(spark, select) == (1, 3141868812, 2038767071)
