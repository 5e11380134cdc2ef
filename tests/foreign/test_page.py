"""The page of results is read back as it was written, and a run changes only its own column."""

from __future__ import annotations

from pathlib import Path

from foreign import page
from foreign.cases import PARQUET, Case
from foreign.lives import Life


def a_life(name, outcome, files=1, unavailable=""):
    case = Case(name, PARQUET, "a INT", lambda _directory, _tools: None)
    found = Life(case, Path("."), unavailable, hashes=[{"1": "", "2": "", "3": ""}], outcome=outcome, files=files)
    found.before = {"pyarrow": None}
    return found


def a_column(spark, *lives):
    return page.describe(lives, spark, "2026-01-01, Python 3.9")


OLD = a_column(
    "3.3.4", a_life("w.a", "compacted"), a_life("w.b", "not-faithful"), a_life("w.c", "compacted"), a_life("x.a", "", unavailable="no")
)
NEW = a_column("3.10.1", a_life("w.a", "compacted", files=2), a_life("w.b", "compacted"))


def test_what_is_written_is_read_back():
    assert page.read(page.as_text([OLD])) == [OLD]
    assert OLD.run == ("3.3.4", "2026-01-01, Python 3.9", "2", "1", "1", "pyarrow 2")


def test_cases_with_the_same_outcomes_share_a_line():
    lines = page.as_text([NEW, OLD]).splitlines()
    assert "| w | a | compacted 3 → 1 | compacted 3 → 2 |" in lines
    assert "| w | c | compacted 3 → 1 | not tested |" in lines
    assert "| w | a, c | compacted 3 → 1 |" in page.as_text([OLD]).splitlines()


def test_a_run_replaces_only_its_own_column(tmp_path):
    for column in (NEW, OLD, a_column("3.10.1", a_life("w.a", "compacted"))):
        page.replace_column(column, tmp_path / "page.md")
    found = {column.spark: column.outcomes for column in page.read((tmp_path / "page.md").read_text("utf-8"))}
    assert found["3.3.4"] == OLD.outcomes
    assert found["3.10.1"]["w.a"] == "compacted 3 → 1"
    assert found["3.10.1"]["w.b"] == page.UNTESTED


def test_the_page_is_as_the_code_writes_it():
    text = page.PAGE.read_text("utf-8")
    assert page.as_text(page.read(text)) == text
