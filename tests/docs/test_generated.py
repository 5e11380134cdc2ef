"""Generated files match what the program's definitions generate."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = runpy.run_path(str(ROOT / "packaging" / "make_generated.py"))["generate"]()


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_up_to_date(path):
    assert (ROOT / path).read_text("utf-8") == GENERATED[path], "run: make generated"
