"""The last kill matrix in docs/swap.md, which `make test-matrix` writes, against the changes that the commands make today."""

from __future__ import annotations

import re
from typing import List, Set, Tuple

from faults.matrix import BEGIN, END, PAGE
from faults.scenarios import all_points


def told_rows() -> List[List[str]]:
    section = re.search(f"{BEGIN}(.*){END}", PAGE.read_text("utf-8"), re.DOTALL)
    assert section, "the marks of the section are gone"
    return [line.strip("| ").split(" | ") for line in section[1].splitlines() if line.startswith("| ")][2:]


def test_it_lists_exactly_the_changes_that_are_made_today():
    told: Set[Tuple[str, str]] = {(row[0], row[1].strip("`")) for row in told_rows()}
    assert told == {(point.scenario.subcommand, point.name) for point in all_points()}, "run: make test-matrix"
