"""The words of a command line on their way to a driver in YARN's cluster mode."""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.cli import main
from hivekeeper.codes import Exit
from hivekeeper.config.sources import DRIVER_OUTPUT, MASK
from hivekeeper.launch import driver_words

# As from the command line: bytes that are no text are surrogates.
WORDS = st.lists(st.binary(max_size=30).map(lambda word: word.replace(b"\0", b"").decode("utf-8", "surrogateescape")), min_size=1)


def to_driver(words):
    carried = driver_words.carry(words)
    return words if carried is None else [driver_words.CARRIED_WORDS, carried]


@given(WORDS)
def test_any_words_come_back_and_none_on_the_way_means_anything_to_a_shell(words):
    sent = to_driver(words)
    assert driver_words.unpack(sent) == words
    assert all(re.fullmatch(r"[A-Za-z0-9_./:@,+=-]+", word) for word in sent)


@pytest.mark.parametrize(
    "words",
    [
        ["compact-swap", "--database", "sales"],
        [
            "rollback",
            "--table",
            "sales.events",
            "--run",
            "20260101t020304z-1f0c",
            "--run-key=0000012-x@undo",
            "--report-file",
            "/a/b-c.json",
        ],
    ],
)
def test_words_that_mean_nothing_to_a_shell_go_as_they_are(words):
    assert driver_words.carry(words) is None


def test_what_looks_carried_is_what_was_typed_if_it_had_to_be():
    words = [driver_words.CARRIED_WORDS, "a b"]
    assert driver_words.unpack(to_driver(words)) == words


@pytest.mark.parametrize("form", [["--set", "{}"], ["--set={}"]])
@pytest.mark.parametrize("name", ["spark.extra_conf.spark.ssl.keyPassword", "spark.extra_conf.spark.hadoop.fs.s3a.secret.key"])
def test_a_secret_is_not_among_them(form, name):
    words = ["analyze", *(part.format(f"{name}=hunter2") for part in form), "--where", "a='b'"]
    carried = driver_words.carry(words)
    assert "hunter2" not in base64.b64decode(carried).decode()
    unpacked = driver_words.unpack([driver_words.CARRIED_WORDS, carried])
    assert unpacked == [word.replace("hunter2", MASK) for word in words]


def test_a_secret_in_a_value_is_not_among_them():
    assignment = "spark.extra_conf.spark.driver.extraJavaOptions=-Da.token=hunter2"
    assert "hunter2" not in base64.b64decode(driver_words.carry(["analyze", "--set", assignment])).decode()


@pytest.mark.parametrize("place", ["hdfs:///out.json", ""])
def test_the_driver_runs_what_was_typed_also_where_somebody_calls_by_hand_what_print_shows(place, monkeypatch, tmp_path):
    from hivekeeper.cluster import driver_output

    sent, ran = [], []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DRIVER_OUTPUT, place)
    monkeypatch.setattr(driver_output, "send", lambda place, _: sent.append(place))
    monkeypatch.setattr(main, "run", lambda near: ran.append(near) or 0)
    words = ["analyze", "--table", "sales.e`x`", "--where", "a <> '}}'"]
    assert main.main(to_driver(words)) == 0
    assert (ran, sent) == ([words], [place] if place else [])


@pytest.mark.parametrize("encoded", [[], ["YQ"], ["analyze"], ["YQ==", "--json"]])
def test_what_cannot_be_decoded_is_wrong_usage(encoded, capsys):
    words = [driver_words.CARRIED_WORDS, *encoded]
    assert driver_words.unpack(words) == words
    assert main.main(words) == Exit.USAGE
    assert driver_words.CARRIED_WORDS in capsys.readouterr().err
