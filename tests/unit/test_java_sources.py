"""What Spark's own Java compiler (Janino) of some version gets wrong, and no other one tells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "job" / "hivekeeper" / "cluster" / "java").glob("*.java"))
# A constant of a wider type from a whole number without its letter.
WITHOUT_LETTER = re.compile(r"static final (?:long|float|double) \w+ = -?\d+\s*;")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_wide_constant_is_written_with_its_letter(source):
    """Janino 3.0.16 (Spark 3.3) writes an int into the class file then: `ClassFormatError: Inconsistent constant value type`."""
    assert WITHOUT_LETTER.findall(source.read_text("utf-8")) == []


def test_the_pattern_finds_what_it_is_for():
    assert WITHOUT_LETTER.search("  static final long IDLE_SECONDS = 5;")
    assert not WITHOUT_LETTER.search("  static final long IDLE_SECONDS = 5L;")
