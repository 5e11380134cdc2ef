from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.report import text

KIB, MIB, GIB = 1024, 1024**2, 1024**3


@pytest.mark.parametrize(
    "size, shown",
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1025, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (99.9 * KIB, "99.9 KiB"),
        (100 * KIB, "100 KiB"),
        (99.96 * KIB, "100 KiB"),
        (1023.4 * KIB, "1023 KiB"),
        (1023.6 * KIB, "1.0 MiB"),
        (128 * MIB, "128 MiB"),
        (int(1.2 * GIB), "1.2 GiB"),
        (2 * 1024**4, "2 TiB"),
        (5000 * 1024**6, "5000 EiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_sizes_are_shown_in_powers_of_1024(size, shown):
    assert text.bytes_text(size) == shown


@given(st.integers(min_value=1, max_value=2**63))
def test_a_shown_size_is_within_five_percent_of_the_size(size):
    number, unit = text.bytes_text(size).split()
    assert float(number) * 1024 ** text.SIZE_UNITS.index(unit) == pytest.approx(size, rel=0.05)


def test_counts_have_thousands_separators():
    assert [text.count_text(count) for count in (0, 999, 1000, 1234567)] == ["0", "999", "1,000", "1,234,567"]


@pytest.mark.parametrize(
    "seconds, shown",
    [
        (0, "0 ms"),
        (0.0034, "3 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (4.23, "4.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (86399, "1 d 00 h"),
        (273_600, "3 d 04 h"),
    ],
)
def test_durations_show_two_units_at_most(seconds, shown):
    assert text.duration_text(seconds) == shown


@pytest.mark.parametrize("before, after, shown", [(500, 1, "500x"), (100, 9, "11x"), (3, 2, "1.5x"), (2, 2, "1.0x"), (5, 0, "-")])
def test_a_factor_says_how_many_times_fewer(before, after, shown):
    assert text.factor_text(before, after) == shown


def test_a_table_aligns_its_columns_under_a_rule():
    shown = text.table([["sales.events", 500], ["sales.a", 3]], ["table", "files"], "<>")
    assert shown.split("\n") == [
        "table         files",
        "------------  -----",
        "sales.events    500",
        "sales.a           3",
    ]


def test_a_table_without_rows_shows_its_headers():
    assert text.table([], ["table", "files"], "<>") == "table  files\n-----  -----"


def test_a_table_that_is_too_wide_shortens_its_names_and_never_its_numbers():
    shown = text.table([["sales.events/dt=2026-01-01/ref=FR", 1234567]], ["unit", "files"], "<>", width=30)
    assert shown.split("\n") == [
        "unit                     files",
        "---------------------  -------",
        "sales.even…-01/ref=FR  1234567",
    ]


def test_what_people_type_again_is_never_shortened():
    run = "20260101t020304z-1f0c"
    lines = text.table([[run, "a reason of many words"]], ["RUN", "WHY"], "=<", width=10).splitlines()
    assert lines[2].startswith(f"{run}  ")
    assert "…" in lines[2]
    assert lines[0].startswith("RUN" + " " * len(run[3:]))


def test_a_table_keeps_a_readable_rest_of_a_name_even_if_the_line_is_too_long():
    shown = text.table([["abcdefghijkl", "1"]], ["name", "n"], width=5, blocks=text.ASCII)
    assert shown.split("\n")[2] == "abcd~jkl  1"


def test_wide_and_combining_characters_are_aligned_as_a_terminal_shows_them():
    shown = text.table([["日本", 1], ["e\u0301", 2], ["abcd", 3]], ["a", "n"])
    assert shown.split("\n")[2:] == ["日本  1", "e\u0301     2", "abcd  3"]


def test_a_name_cannot_steer_the_terminal():
    assert text.clean_text("dt=\x1b[2J\nx\u202e é日") == "dt=\\x1b[2J\\nx\\u202e é日"
    assert "\x1b" not in text.table([["\x1b[31mred"]], ["name"])


@pytest.mark.parametrize("width, shown", [(10, "abcdefghij"), (9, "abcd…ghij"), (8, "abcd…hij"), (2, "a…"), (1, "…"), (0, "")])
def test_a_long_name_loses_its_middle(width, shown):
    assert text.shorten_text("abcdefghij", width) == shown


def test_a_wide_character_is_never_cut_in_half():
    assert text.shorten_text("日本日本日本", 8) == "日本…本"


@pytest.mark.parametrize(
    "before, after, shown",
    [(100, 25, "██░░░░░░"), (100, 100, "████████"), (100, 0, "░░░░░░░░"), (1000, 1, "█░░░░░░░"), (10, 20, "████████"), (0, 0, "░░░░░░░░")],
)
def test_a_bar_shows_what_is_left(before, after, shown):
    assert text.bar(before, after, 8) == shown


def test_a_bar_can_be_plain_ascii():
    assert text.bar(4, 1, 8, text.ASCII) == "##......"


def test_a_histogram_counts_files_by_size():
    sizes = [0, 10, KIB - 1, KIB, 2 * MIB, *[5 * KIB] * 20]
    assert text.histogram(Counter(sizes).items(), [KIB, MIB], 10).split("\n") == [
        "   below 1 KiB   3  █",
        "1 KiB to 1 MiB  21  ██████████",
        "    from 1 MiB   1  █",
    ]


def test_a_histogram_keeps_inner_empty_ranges_and_leaves_out_the_outer_ones():
    bounds = [KIB, 4 * KIB, 16 * KIB, MIB]
    assert text.histogram([(2 * KIB, 2), (20 * KIB, 1)], bounds, 4, text.ASCII).split("\n") == [
        " 1 KiB to 4 KiB  2  ####",
        "4 KiB to 16 KiB  0",
        "16 KiB to 1 MiB  1  ##",
    ]


def test_a_histogram_of_nothing_says_so():
    assert text.histogram([], [KIB], 10) == "no files"
