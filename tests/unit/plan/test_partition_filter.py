from __future__ import annotations

import operator
import re
import time
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.errors import Refused, UsageError
from hivekeeper.model import Column
from hivekeeper.plan.partition_filter import parse
from hivekeeper.quoting import HIVE_NULL

COLUMNS = (Column("dt", "date"), Column("region", "string"), Column("hour", "int"))


def selects(text, *values, columns=COLUMNS):
    return parse(text, columns).matches(values)


def selects_one(text, value, hive_type, name="c"):
    return parse(text, [Column(name, hive_type)]).matches([value])


def usage_error(text, columns=COLUMNS):
    with pytest.raises(UsageError) as caught:
        parse(text, columns)
    return str(caught.value)


def test_the_example_of_the_help_selects_by_date_and_region():
    text = "dt >= '2026-01-01' and region in ('eu','us')"
    assert selects(text, "2026-01-01", "eu", "7")
    assert not selects(text, "2025-12-31", "eu", "7")
    assert not selects(text, "2026-01-02", "jp", "7")


@pytest.mark.parametrize("hive_type", ["tinyint", "smallint", "int", "bigint", "decimal(5,2)", "float", "double"])
def test_numbers_are_compared_by_value_not_as_text(hive_type):
    assert selects_one("c < 10", "9", hive_type)
    assert selects_one("c = 1", "01", hive_type)
    assert selects_one("c = '01'", "1", hive_type)
    assert selects_one("c > 1.5", "2", hive_type)
    assert selects_one("c >= -3", "-3", hive_type)
    assert not selects_one("c in (1, 2)", "3", hive_type)


def test_decimals_are_exact():
    assert selects_one("c = 1.50", "1.5", "decimal(10,2)")
    assert not selects_one("c = 0.1", "0.10000000000000000000000000000000000001", "decimal(38,38)")


def test_nan_equals_itself_and_is_above_infinity():
    assert selects_one("c = 'NaN'", "NaN", "double")
    assert selects_one("c > 'Infinity'", "NaN", "double")
    assert selects_one("c < 0", "-Infinity", "double")


def test_strings_are_compared_as_text():
    assert selects("region < 'b'", "2026-01-01", "a10", "0")
    assert selects("region > '10'", "2026-01-01", "9", "0")
    assert not selects("region = '1'", "2026-01-01", "01", "0")
    assert not selects("region = 'EU'", "2026-01-01", "eu", "0")


def test_a_char_column_is_compared_without_its_padding():
    assert selects_one("c = 'ab'", "ab   ", "char(5)")
    assert not selects_one("c = 'ab'", "ab   ", "varchar(5)")


def test_dates_and_times_are_compared_by_value():
    assert selects_one("c = date '2026-01-05'", "2026-1-5", "date")
    assert selects_one("c = '2026-01-05 10:00:00'", "2026-01-05 10:00:00.0", "timestamp")
    assert selects_one("c > '2026-01-05 10:00:00.000000001'", "2026-01-05 10:00:00.000000002", "timestamp")
    assert selects_one("c >= date '2026-01-05'", "2026-01-05 00:00:00", "timestamp")
    assert selects_one("c < timestamp '2026-01-05T00:00:01'", "2026-01-05", "timestamp")


def test_booleans_are_true_or_false_in_any_case():
    assert selects_one("c = true", "TRUE", "boolean")
    assert selects_one("c <> 'true'", "false", "boolean")
    assert selects_one("c < true", "false", "boolean")


@pytest.mark.parametrize(
    "sign, expected",
    [("=", "b"), ("==", "b"), ("!=", "ac"), ("<>", "ac"), ("<", "a"), ("<=", "ab"), (">", "c"), (">=", "bc")],
)
def test_each_operator_compares(sign, expected):
    assert "".join(value for value in "abc" if selects_one(f"c {sign} 'b'", value, "string")) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("c between 'b' and 'c'", "bc"),
        ("c not between 'b' and 'c'", "ad"),
        ("c in ('a', 'd')", "ad"),
        ("c not in ('a', 'd')", "bc"),
        ("c like '%'", "abcd"),
        ("c not like 'a%'", "bcd"),
        ("c is null", "0"),
        ("c is not null", "abcd"),
    ],
)
def test_sets_ranges_and_null_select(text, expected):
    values = {**{letter: letter for letter in "abcd"}, "0": HIVE_NULL}
    assert {shown for shown, value in values.items() if selects_one(text, value, "string")} == set(expected)


@pytest.mark.parametrize(
    "pattern, value, expected",
    [
        ("2026-__", "2026-01", True),
        ("2026-__", "2026-011", False),
        ("%b%", "abc", True),
        ("a.c", "abc", False),
        ("a%", "a\nb", True),
        (r"50\%", "50%", True),
        (r"50\%", "50x", False),
        (r"a\_b", "axb", False),
        (r"a\\\\b", r"a\b", True),
        ("[a]", "[a]", True),
    ],
)
def test_like_knows_percent_and_underscore_only(pattern, value, expected):
    assert selects_one(f"c like '{pattern}'", value, "string") is expected


@pytest.mark.parametrize(
    "literal, value",
    [
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\\'", "a\\"),
        ('"a b"', "a b"),
        ('"say ""x"" it\'s"', 'say "x" it\'s'),
        ("'a=b/c%2F'", "a=b/c%2F"),
        ("'é ü 日'", "é ü 日"),
        ("'and or ('", "and or ("),
    ],
)
def test_string_literals_hold_any_text(literal, value):
    assert selects_one(f"c = {literal}", value, "string")


def test_columns_are_found_in_any_case_and_in_back_quotes():
    assert selects("DT = '2026-01-01' AND Region = 'eu'", "2026-01-01", "eu", "0")
    assert selects_one("`a ``b-c` = 1", "1", "int", name="a `b-c")
    assert selects_one("`or` = 1 or `or` = 2", "2", "int", name="or")


@pytest.mark.parametrize("name", ["date", "timestamp"])
def test_a_column_may_be_called_like_a_literal(name):
    assert selects_one(f"{name} >= {name} '2026-01-01' and {name} < '2027-01-01'", "2026-05-05", name, name=name)


def test_and_binds_closer_than_or_and_not_closest():
    assert selects("region = 'a' or region = 'b' and hour = 1", "2026-01-01", "a", "0")
    assert not selects("(region = 'a' or region = 'b') and hour = 1", "2026-01-01", "a", "0")
    assert not selects("not region = 'a' and hour = 1", "2026-01-01", "b", "0")
    assert selects("not not hour = 1", "2026-01-01", "b", "1")


@pytest.mark.parametrize("value", [HIVE_NULL, ""])
@pytest.mark.parametrize(
    "text",
    [
        "hour = 1",
        "hour <> 1",
        "not hour = 1",
        "hour in (1)",
        "hour not in (1)",
        "hour not between 1 and 2",
        "not (hour = 1 and region = 'eu')",
    ],
)
def test_a_condition_on_null_is_unknown_and_so_no_match(text, value):
    assert not selects(text, "2026-01-01", "eu", value)


def test_unknown_gives_way_to_what_settles_the_answer():
    assert selects("hour = 1 or region = 'eu'", "2026-01-01", "eu", HIVE_NULL)
    assert selects("not (hour = 1 and region = 'us')", "2026-01-01", "eu", HIVE_NULL)


@pytest.mark.parametrize(
    "value, hive_type, literal",
    [("abc", "date", "'2026-01-01'"), ("2026-02-30", "date", "'2026-01-01'"), ("x", "int", "1"), ("1.0", "int", "1")],
)
def test_a_value_that_cannot_be_read_as_its_type_is_refused_not_skipped(value, hive_type, literal):
    for text in (f"c = {literal}", f"c <> {literal}", f"not c in ({literal})", f"c between {literal} and {literal}"):
        with pytest.raises(Refused, match=f"c={re.escape(value)}"):
            selects_one(text, value, hive_type)


@pytest.mark.parametrize(
    "value, hive_type",
    [("128", "tinyint"), ("40000", "smallint"), ("2147483648", "int"), ("9223372036854775808", "bigint")],
)
def test_a_value_beyond_its_integer_type_is_refused(value, hive_type):
    with pytest.raises(Refused):
        selects_one("c > 0", value, hive_type)


@pytest.mark.parametrize("text", ["dt = '2026-01-01' and region = 'us'", "region = 'us' and dt = '2026-01-01'"])
def test_an_unreadable_value_is_no_matter_where_another_condition_rules_the_partition_out(text):
    assert not selects(text, "abc", "eu", "0")
    with pytest.raises(Refused):
        selects(text, "abc", "us", "0")


def test_an_unreadable_value_is_not_null():
    assert selects("dt is not null", "abc", "eu", "0")


def test_an_unknown_column_is_named_with_its_position_and_the_known_ones():
    with pytest.raises(UsageError) as caught:
        parse("dt = '2026-01-01' and regoin = 'eu'", COLUMNS)
    assert str(caught.value) == "--where, position 23: expected a partition column, found regoin"
    assert caught.value.reason.next == "correct --where; the partition columns are: dt (date), region (string), hour (int)"


def test_an_unpartitioned_table_has_no_column_to_select_by():
    with pytest.raises(UsageError) as caught:
        parse("dt = '2026-01-01'", [])
    assert caught.value.reason.next.endswith("none, the table is not partitioned")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "position 1: expected a partition column, found the end"),
        ("dt", "position 3: expected an operator (= != <> < <= > >=), in, between, like or is, found the end"),
        ("dt = ", "position 6: expected a value like '2026-01-31', because dt is date, found the end"),
        ("dt = 20260101", "position 6: expected a value like '2026-01-31', because dt is date, found 20260101"),
        ("dt = '2026-13-01'", "position 6: expected a value like '2026-01-31', because dt is date, found '2026-13-01'"),
        ("hour = 'x'", "position 8: expected a value like 2026, because hour is int, found 'x'"),
        ("region = 1", "position 10: expected a value like 'eu', because region is string, found 1"),
        ("region = hour", "position 10: expected a value like 'eu', because region is string, found hour"),
        ("'eu' = region", "position 1: expected a partition column, found 'eu'"),
        ("hour = 10L", "position 8: expected a column, a value in single quotes, a number or an operator, found 10L"),
        ("region = 'eu", "position 10: expected a closing quote, found 'eu"),
        ("(hour = 1", "position 10: expected and, or, or ), found the end"),
        ("hour = 1)", "position 9: expected and, or, or the end, found )"),
        ("hour = 1 hour = 2", "position 10: expected and, or, or the end, found hour"),
        ("hour in 1", "position 9: expected ( with the list of values, found 1"),
        ("hour in ()", "position 10: expected a value like 2026, because hour is int, found )"),
        ("hour in (1 2)", "position 12: expected , or ), found 2"),
        ("hour between 1 or 2", "position 16: expected and, with the upper bound of between, found or"),
        ("hour is 1", "position 9: expected null, found 1"),
        ("hour = null", "position 8: expected a value (write: hour is null), found null"),
        ("dt = date 1", "position 11: expected a string after date, found 1"),
        ("dt like '2026%'", "position 9: expected no like here, because dt is date (use between), found '2026%'"),
        ("region like 1", "position 13: expected a pattern in single quotes, found 1"),
        (r"region = 'a\n'", r"position 10: expected each back-slash doubled, found 'a\n'"),
        (r"region like 'a\\b'", r"position 13: expected only \%, \_ or \\\\ after a back-slash in a pattern, found 'a\\b'"),
        ("hour = 1; drop", "position 9: expected a column, a value in single quotes, a number or an operator, found ; drop"),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_what_was_expected(text, message):
    assert usage_error(text) == f"--where, {message}"


@pytest.mark.parametrize("text", [f"region = '{HIVE_NULL}'", "region = ''", "region in ('')"])
def test_the_name_of_the_null_partition_is_not_a_value(text):
    assert "region is null" in usage_error(text)


@pytest.mark.parametrize("hive_type", ["binary", "timestamp with local time zone", "interval_day_time"])
def test_a_type_that_cannot_be_compared_is_a_usage_error_only_where_it_is_used(hive_type):
    columns = [Column("odd", hive_type), Column("hour", "int")]
    assert selects("hour = 1", "?", "1", columns=columns)
    assert hive_type in usage_error("odd = '1'", columns)


def test_absurd_nesting_is_a_usage_error_but_long_chains_are_fine():
    assert "nesting" in usage_error("(" * 2000 + "hour = 1" + ")" * 2000)
    assert "nesting" in usage_error("not " * 2000 + "hour = 1")
    assert selects(" or ".join(["hour = 1"] * 5000 + ["hour = 2"]), "2026-01-01", "eu", "2")


def test_a_number_beyond_all_bounds_is_a_usage_error():
    assert "hour" in usage_error("hour = 1e99999999999999999999")


DAYS = [str(date(2025, 12, 30) + timedelta(days=shift)) for shift in range(5)]
REGIONS = ["eu", "us", "it's", 'a"b', "F R", "back\\slash", "50%", "a/b=c"]
HOURS = ["0", "1", "2", "10"]
SIGNS = {"=": operator.eq, "!=": operator.ne, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def known(place, read, judge):
    """A condition in Python: None for NULL, else the predicate on the value."""
    return lambda row: None if row[place] == HIVE_NULL else judge(read(row[place]))


@st.composite
def conditions(draw):
    """A condition as (text, Python function of the row)."""
    name, place, read, pool, spell = draw(
        st.sampled_from([("dt", 0, date.fromisoformat, DAYS, quote), ("Region", 1, str, REGIONS, quote), ("`hour`", 2, int, HOURS, str)])
    )
    form = draw(st.sampled_from(["compare", "in", "between", "null"]))
    low, high = (draw(st.sampled_from(pool)) for _ in range(2))
    negated = draw(st.booleans())
    word = " not" if negated else ""
    if form == "compare":
        sign = draw(st.sampled_from(sorted(SIGNS)))
        return f"{name}{sign}{spell(low)}", known(place, read, lambda value: SIGNS[sign](value, read(low)))
    if form == "in":
        text = f"{name}{word} in ({spell(low)},{spell(high)})"
        return text, known(place, read, lambda value: (value in (read(low), read(high))) is not negated)
    if form == "between":
        text = f"{name}{word} between {spell(low)} and {spell(high)}"
        return text, known(place, read, lambda value: (read(low) <= value <= read(high)) is not negated)
    return f"{name} is{word} null", lambda row: (row[place] == HIVE_NULL) is not negated


def join_conditions(children):
    def both(parts):
        (left_text, left), (right_text, right), word = parts
        settled = word == "or"

        def judge(row):
            truths = (left(row), right(row))
            return settled if settled in truths else None if None in truths else not settled

        return f"({left_text}) {word} ({right_text})", judge

    def negate(part):
        text, truth = part
        return f"not ({text})", lambda row: None if truth(row) is None else not truth(row)

    return st.one_of(st.tuples(children, children, st.sampled_from(["and", "or"])).map(both), children.map(negate))


PREDICATES = st.recursive(conditions(), join_conditions, max_leaves=6)
ROWS = st.tuples(*(st.sampled_from([*pool, HIVE_NULL]) for pool in (DAYS, REGIONS, HOURS)))


@given(predicate=PREDICATES, row=ROWS)
def test_random_predicates_select_as_python_does(predicate, row):
    text, truth = predicate
    assert parse(text, COLUMNS).matches(row) is (truth(row) is True)


@given(text=st.text(alphabet=" ()'\"`\\,=<>!andorintlikebw%_-0123456789.é\n", max_size=30))
def test_any_text_is_either_understood_or_a_usage_error(text):
    try:
        parse(text, COLUMNS)
    except UsageError as error:
        assert "position" in str(error)


@given(value=st.text(min_size=1).filter(lambda text: text != HIVE_NULL))
def test_every_string_can_be_written_as_a_literal(value):
    assert selects_one(f"c = {quote(value)} and c in ({quote(value)})", value, "string")


@given(text=st.text(alphabet="ab%_", max_size=8), value=st.text(alphabet="ab", max_size=8))
def test_like_finds_what_trying_all_places_finds(text, value):
    plain = re.compile("".join({"%": ".*", "_": "."}.get(char, char) for char in text))
    assert parse(f"c like '{text}'", [Column("c", "string")]).matches([value or HIVE_NULL]) is bool(value and plain.fullmatch(value))


def test_like_takes_no_time_for_values_chosen_against_it():
    wanted = parse("c like '%a%b%c%d%e%f%'", [Column("c", "string")])
    started = time.monotonic()
    assert not wanted.matches(["".join(letter * 40 for letter in "abcde")])
    assert time.monotonic() - started < 1
