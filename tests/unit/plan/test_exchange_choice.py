"""Which exchange a unit gets: every row of the tables in docs/concat.md."""

from __future__ import annotations

import pytest

from hivekeeper import names
from hivekeeper.config.settings import AT_ONCE, AUTO, JOINED, Settings
from hivekeeper.model import Attributes, Ties
from hivekeeper.plan import exchange_choice
from hivekeeper.plan.exchange_choice import MOSTLY_SMALL, MOSTLY_WELL_SIZED, Choice, Facts, Mix
from hivekeeper.plan.unchanged import judged_by
from hivekeeper.reasons import Code, Reason
from support.builders import MIB, ROOT

OPEN = Settings(read_by_llap=False)
CANNOT, FEW = exchange_choice.impossible("it is a test"), exchange_choice.few_to_join(Settings())
TIE = Reason(Code.OWN_QUOTA, "it has a quota", "leave it out")
LARGE, SMALL = True, False
SWAP, NO_SWAP = True, False


@pytest.mark.parametrize(
    ("wish", "mostly", "pays", "obstacle", "tie", "gets", "code", "is_refused"),
    [
        (AT_ONCE, LARGE, SWAP, None, None, AT_ONCE, Code.EXCHANGE_SET, False),
        (AT_ONCE, LARGE, SWAP, None, TIE, None, Code.OWN_QUOTA, True),
        (AT_ONCE, SMALL, SWAP, CANNOT, None, AT_ONCE, Code.EXCHANGE_SET, False),
        (JOINED, SMALL, SWAP, None, None, JOINED, Code.EXCHANGE_SET, False),
        (JOINED, LARGE, NO_SWAP, None, None, JOINED, Code.EXCHANGE_SET, False),
        (JOINED, SMALL, SWAP, None, TIE, JOINED, Code.EXCHANGE_SET, False),
        (JOINED, LARGE, SWAP, CANNOT, None, None, Code.NOT_JOINABLE, True),
        (JOINED, LARGE, SWAP, CANNOT, TIE, None, Code.NOT_JOINABLE, True),
        (JOINED, LARGE, SWAP, FEW, None, None, Code.FEW_TO_JOIN, False),
        (AUTO, LARGE, SWAP, None, None, JOINED, Code.MOSTLY_WELL_SIZED, False),
        (AUTO, LARGE, NO_SWAP, None, None, JOINED, Code.MOSTLY_WELL_SIZED, False),
        (AUTO, LARGE, SWAP, None, TIE, JOINED, Code.OWN_QUOTA, False),
        (AUTO, SMALL, SWAP, None, TIE, JOINED, Code.OWN_QUOTA, False),
        (AUTO, SMALL, SWAP, None, None, AT_ONCE, Code.MOSTLY_SMALL, False),
        (AUTO, LARGE, SWAP, CANNOT, None, AT_ONCE, Code.NOT_JOINABLE, False),
        (AUTO, LARGE, SWAP, FEW, None, AT_ONCE, Code.FEW_TO_JOIN, False),
        (AUTO, SMALL, SWAP, CANNOT, None, AT_ONCE, Code.MOSTLY_SMALL, False),
        (AUTO, SMALL, SWAP, CANNOT, TIE, None, Code.OWN_QUOTA, True),
        (AUTO, LARGE, SWAP, FEW, TIE, None, Code.OWN_QUOTA, True),
        (AUTO, LARGE, NO_SWAP, CANNOT, None, None, Code.NOT_JOINABLE, False),
        (AUTO, LARGE, NO_SWAP, FEW, TIE, None, Code.FEW_TO_JOIN, False),
        (AUTO, SMALL, NO_SWAP, None, None, None, Code.MOSTLY_SMALL, False),
    ],
)
def test_each_wish_with_each_state_of_a_unit_has_one_answer(wish, mostly, pays, obstacle, tie, gets, code, is_refused):
    choice = exchange_choice.choose(wish, Facts(mostly, pays, obstacle, tie))
    assert (choice.exchange, choice.why.code, choice.is_refused) == (gets, code, is_refused)


def test_a_unit_that_can_be_exchanged_in_neither_way_says_why_in_both():
    what = exchange_choice.choose(AUTO, Facts(LARGE, SWAP, CANNOT, TIE)).why.what
    assert TIE.what in what
    assert CANNOT.what in what


@pytest.mark.parametrize(
    ("format", "more", "words"),
    [
        (None, {}, "not Parquet or ORC"),
        ("parquet", {"sort_columns": ("id",)}, "sort_columns"),
        ("parquet", {"discard": "trash"}, "discard is trash"),
        ("parquet", {}, "LLAP"),
    ],
)
def test_formats_and_settings_that_forbid_a_join(format, more, words):
    reason = exchange_choice.find_obstacle(format, Mix(10, MIB, MIB), Settings(**more))
    assert reason.code is Code.NOT_JOINABLE
    assert words in reason.what


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_ten_small_files_can_be_joined_and_nine_are_too_few(format):
    assert exchange_choice.find_obstacle(format, Mix(10, MIB, MIB), OPEN) is None
    reason = exchange_choice.find_obstacle(format, Mix(9, MIB, MIB), OPEN)
    assert reason.code is Code.FEW_TO_JOIN
    assert "fewer than 10" in reason.what


PLAIN, FREE = Attributes("", "", 0, 0), Ties()


def at(live=f"{ROOT}/dt=1", control=f"{ROOT}/.hivekeeper", ties=FREE, zone="", attributes=PLAIN):
    return exchange_choice.find_obstacle_at(live, control, ties, zone, attributes)


@pytest.mark.parametrize("ties", [Ties(), Ties(quota=True), Ties(denied="sticky"), Ties(snapshots=True)])
def test_what_keeps_a_directory_in_its_place_is_no_obstacle_to_a_join_in_it(ties):
    assert at(ties=ties) is None


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"ties": Ties(zone="/secret")}, "encryption zone (/secret)"),
        ({"zone": "/records"}, "encryption zone (/records)"),
        ({"attributes": Attributes("", "", 0, 0, ec_policy="RS-6-3-1024k")}, "erasure-coded (RS-6-3-1024k)"),
        ({"control": "hdfs://other/warehouse/.hivekeeper"}, "not on the file system"),
    ],
)
def test_places_where_nothing_is_joined(place, words):
    reason = at(**place)
    assert reason.code is Code.NOT_JOINABLE
    assert words in reason.what


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ({MIB: 10, 10 * MIB + 1: 1}, True),
        ({MIB: 10, 20 * MIB: 1}, True),
        # Half is not most.
        ({2 * MIB: 10, 20 * MIB: 1}, False),
        ({2 * MIB: 10}, False),
        ({}, False),
    ],
)
def test_well_sized_files_make_up_most_with_more_than_half_of_the_bytes(lengths, expected):
    assert Mix.of(lengths.items(), Settings(block_bytes=100 * MIB)).is_mostly_well_sized is expected


def test_a_file_at_the_threshold_is_well_sized():
    assert Mix.of([(10 * MIB, 2), (10 * MIB - 1, 3)], Settings(block_bytes=100 * MIB)).small_files == 3


def test_snapshots_are_looked_for_in_the_table_and_all_above():
    assert names.with_above("hdfs://nn:8020/a b/c") == ["hdfs://nn:8020/a b/c", "hdfs://nn:8020/a b", "hdfs://nn:8020"]
    assert exchange_choice.snapshots_of("hdfs://nn:8020") == "hdfs://nn:8020/.snapshot"
    assert names.with_above("file:/a/b") == ["file:/a/b", "file:/a", "file:"]


def test_metadata_choose_with_the_same_rules():
    settings = Settings(exchange=AUTO, read_by_llap=False)
    assert exchange_choice.judge("parquet", Mix(10, MIB, 3 * MIB), settings, SWAP) == Choice(JOINED, MOSTLY_WELL_SIZED)
    assert exchange_choice.judge("parquet", Mix(10, 2 * MIB, 3 * MIB), settings, SWAP) == Choice(AT_ONCE, MOSTLY_SMALL)


def test_what_the_catalogue_knows_of_units_with_nothing_to_do_holds_only_for_the_same_exchange():
    told = [Settings(), Settings(exchange=JOINED), Settings(exchange=AUTO), Settings(exchange=AUTO, discard="trash")]
    told.append(Settings(exchange=AUTO, read_by_llap=False))
    assert len({judged_by(settings) for settings in told}) == len(told)
    assert judged_by(Settings(discard="trash")) == judged_by(Settings())
