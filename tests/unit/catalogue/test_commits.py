"""The text of a commit: what is written is read again, and nothing else is believed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.catalogue import commits
from hivekeeper.catalogue.commits import OPERATIONS, Commit, DataFile
from hivekeeper.runlog.strict import NewerRecord, UnreadableRecord

IDS = st.uuids().map(str)
NUMBERS = st.integers(0, 2**63 - 1)
PARTS = st.sampled_from([f"{number:02d}" for number in range(16)] + ["2026-01-31"])


@st.composite
def some_commits(draw):
    places = draw(st.lists(IDS, unique=True, max_size=6))
    parts = draw(st.lists(PARTS, unique=True, min_size=len(places), max_size=len(places)))
    cut = draw(st.integers(0, len(places)))
    files = tuple(
        DataFile(part, f"data/{place}", draw(NUMBERS), draw(NUMBERS), draw(NUMBERS)) for part, place in list(zip(parts, places))[:cut]
    )
    removed = {f"data/{place}": draw(NUMBERS) for place in places[cut:]}
    return Commit(draw(IDS), draw(st.sampled_from(OPERATIONS)), draw(st.text(max_size=30)), draw(NUMBERS), files, removed)


def read(text):
    return commits.from_lines(text.split("\n"), "a commit", "bucket")


def text_of(commit):
    return commits.to_text(commit, "tables", "bucket", "etl", "edge1")


@given(some_commits())
def test_what_is_written_is_read_again(commit):
    assert read(text_of(commit)) == commit


A_COMMIT = Commit(
    "6d0f1d2e-0000-4000-8000-000000000000",
    "overwrite",
    "20260101t020304z-1f0c",
    5,
    (
        DataFile("01", "data/6d0f1d2e-0000-4000-8000-000000000001", 10, 2, 3),
        DataFile("02", "data/6d0f1d2e-0000-4000-8000-000000000002", 10, 2, 3),
    ),
    {"data/6d0f1d2e-0000-4000-8000-000000000003": 4},
)
LINES = [json.loads(line) for line in text_of(A_COMMIT).splitlines()]
NASTY = st.sampled_from(["", "..", "data/..", "/", "x" * 5000, "01", "99", -1, 2**64, 1.5, True, None, [], {}, "data/a/b", "{}", "\ud800"])


@given(st.data())
def test_a_damaged_commit_is_refused_or_names_only_rows(data):
    lines = json.loads(json.dumps(LINES))
    line = data.draw(st.sampled_from(lines))
    kind = next(iter(line))
    if data.draw(st.booleans()):
        line[kind][data.draw(st.sampled_from(sorted(line[kind])))] = data.draw(NASTY)
    else:
        del line[kind][data.draw(st.sampled_from(sorted(line[kind])))]
    try:
        found = read("\n".join(json.dumps(one) for one in lines))
    except UnreadableRecord:
        return
    assert all(commits.PLACE.fullmatch(file.place) and commits.PART.fullmatch(file.part) for file in found.files)
    assert all(commits.PLACE.fullmatch(place) for place in found.removed)


def without(index):
    return "\n".join(json.dumps(line) for at, line in enumerate(LINES) if at != index)


def with_more(*more):
    return "\n".join(json.dumps(line) for line in [*LINES, *more])


ADD, REMOVE = LINES[3], LINES[-1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        without(2),
        with_more(ADD),
        with_more({"remove": {**REMOVE["remove"], "path": "data/6d0f1d2e-0000-4000-8000-000000000001"}}),
        with_more({"add": {**ADD["add"], "path": "data/6d0f1d2e-0000-4000-8000-000000000009/other.parquet"}}),
        text_of(A_COMMIT).replace("data/6d0f1d2e", "data/6D0F1D2E"),
        text_of(A_COMMIT).replace('"size":10', '"size":10,"size":11'),
        text_of(A_COMMIT)[:-20],
    ],
)
def test_what_we_do_not_write_is_refused(text):
    with pytest.raises(UnreadableRecord):
        read(text)


def test_unknown_actions_are_ignored_and_a_newer_version_is_not():
    assert read(with_more({"note": {"text": "a later version's"}})) == A_COMMIT
    with pytest.raises(NewerRecord):
        read(text_of(A_COMMIT).replace('"minReaderVersion":1', '"minReaderVersion":2'))


def test_a_commit_with_too_many_files_is_refused(monkeypatch):
    monkeypatch.setattr(commits, "MOST_FILES", 2)
    with pytest.raises(UnreadableRecord, match="more than 2 files"):
        read(text_of(A_COMMIT))
