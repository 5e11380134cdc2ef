"""What an exploration keeps of its states, and how its results are kept; both without exploring."""

from __future__ import annotations

from dataclasses import replace

from interleavings.configurations import CONFIGURATIONS
from interleavings.met import SMALLEST, Met, key_of
from interleavings.page import PAGE, Result, read_rows, with_results

RESULT = Result("append", CONFIGURATIONS["append"], 1234567, 8, True, 9.6, 70, "2026-01-31")


def test_a_key_is_met_once_and_the_way_to_it_is_kept_while_the_table_grows():
    met, last = Met(), 2 * SMALLEST
    keys = [key_of((number, "x")) for number in range(last)]
    assert met.add(keys[0], keys[0])
    assert all(met.add(key, keys[number // 2]) for number, key in enumerate(keys) if number)
    assert not any(met.add(key, 1) for key in keys)
    assert len(met) == last
    assert met.way_to(keys[12]) == [keys[number] for number in (0, 1, 3, 6, 12)]


def test_keys_that_belong_into_one_slot_are_all_kept():
    met, alike = Met(), [1 + turn * SMALLEST for turn in range(5)]
    assert [met.add(key, alike[0]) for key in alike] == [True] * len(alike)
    assert [met.add(key, alike[0]) for key in alike] == [False] * len(alike)


def test_no_key_is_that_of_an_empty_slot():
    assert key_of(0) == 1
    assert key_of(-1) > 0


def test_the_rows_of_a_configuration_are_replaced_and_those_of_others_stay():
    page = with_results("", [RESULT, replace(RESULT, name="drop", broken=("live is missing",))])
    assert "| append | 3 | 0 | 0 | 3 | 1,234,567 | 8 | 10 | 70 | 2026-01-31 | nothing broken |\n" in page
    stopped = replace(RESULT, complete=False, open=("drop in the gap",))
    page = with_results(page, [stopped, RESULT])
    assert [row.split(" | ")[-1] for row in read_rows(page)["append"]] == [
        "*stopped*; nothing broken; open: drop in the gap |",
        "nothing broken |",
    ]
    assert "**broken**: live is missing" in read_rows(page)["drop"][0]
    assert "not explored" in read_rows(page)["pause"][0]


def test_the_page_has_a_row_for_each_configuration():
    assert list(read_rows(PAGE.read_text("utf-8"))) == list(CONFIGURATIONS)
