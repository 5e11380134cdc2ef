"""What goes to the driver in cluster mode and what comes back, as values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.errors import HivekeeperError
from hivekeeper.launch import driver_output

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.builds(driver_output.DriverOutput, st.integers(0, 255), TEXT, TEXT, st.dictionaries(TEXT, TEXT)))
def test_an_output_comes_back_as_it_was_sent(sent):
    assert driver_output.read(driver_output.write(sent)) == sent


def test_local_outputs_lie_beside_the_driver_and_are_known_by_the_names_that_were_asked_for():
    words = ["analyze", "--report-file", "/home/etl/r.json", "--properties-out=p.properties", "--table", "a.b"]
    near, outputs = driver_output.bring_near(words)
    assert outputs == {"/home/etl/r.json": "hivekeeper-output-0", "p.properties": "hivekeeper-output-1"}
    assert near == [
        *("analyze", "--report-file", "hivekeeper-output-0", "--properties-out=hivekeeper-output-1"),
        *("--table", "a.b"),
    ]


@pytest.mark.parametrize("place", ["hdfs:///r.json", "hdfs:/r.json", "s3a://b/r.json", "-"])
def test_an_output_on_the_cluster_or_on_stdout_stays_where_it_is(place):
    words = ["analyze", "--report-file", place]
    assert driver_output.bring_near(words) == (words, {})


def test_two_outputs_of_one_name_are_one_file():
    near, outputs = driver_output.bring_near(["--report-file", "x", "--properties-out", "x"])
    assert near[1] == near[3] == outputs["x"]


def test_the_file_of_tables_is_the_one_that_was_shipped():
    for words in (["--tables-file", "/a/b.txt"], ["--tables-file=/a/b.txt"]):
        near, outputs = driver_output.bring_near(words)
        assert near[-1].rpartition("=")[2] == driver_output.TABLES
        assert outputs == {}


@given(st.lists(st.sampled_from(["--table", "a.b", "--where", "d='x=y'", "--json", "--set", "a=b", "--report-filename", ""])))
def test_all_other_words_arrive_as_they_were(words):
    assert driver_output.bring_near(words) == (words, {})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "3", '{"version": 1}', '{"version": 1, "code": 0, "text": "half', '{"version": 1, "x": 2}']
)
def test_what_is_no_whole_document_is_one_clear_error(text):
    with pytest.raises(HivekeeperError, match="output cannot be read"):
        driver_output.read(text)


def test_an_output_of_another_version_is_refused_by_its_version():
    newer = {**json.loads(driver_output.write(driver_output.DriverOutput(0, "", "", {}))), "version": 2}
    with pytest.raises(HivekeeperError, match="version 2"):
        driver_output.read(json.dumps(newer))


def test_a_log_that_is_too_long_comes_back_from_the_beginning_of_a_line():
    log = "".join(f"line {number}\n" for number in range(40_000))
    cut = driver_output.cut_log(log)
    assert len(cut) <= driver_output.LOG_LIMIT + 100
    first, second = cut.splitlines()[:2]
    assert first == "(the beginning is left out)"
    assert second.startswith("line ")
    assert log.endswith(cut.partition("\n")[2])


def test_a_short_log_comes_back_whole():
    assert driver_output.cut_log("a\nb\n") == "a\nb\n"
