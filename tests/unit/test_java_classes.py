import re
from pathlib import Path

import pytest

import hivekeeper.cluster
from hivekeeper import model
from hivekeeper.cluster.java_classes import JavaSource, merge

LIST = JavaSource("A.java", "package p;\n\nimport java.util.List;\n\nclass A {\n  List<B> all;\n}")


def test_sources_become_one_unit_with_each_import_once():
    other = JavaSource("B.java", "package p;\n\nimport java.util.List;\nimport java.util.Map;\n\nclass B {}")
    lines = [line for line in merge("p", [LIST, other]).text.splitlines() if line]
    assert lines == ["package p;", "import java.util.List;", "import java.util.Map;", "class A {", "  List<B> all;", "}", "class B {}"]


def test_one_name_imported_from_two_packages_is_refused():
    other = JavaSource("B.java", "package p;\n\nimport java.awt.List;\n\nclass B {}")
    with pytest.raises(ValueError, match="B.java: import java.awt.List; but import java.util.List; elsewhere"):
        merge("p", [LIST, other])


def test_a_compilers_message_names_the_source_and_its_own_line():
    merged = merge("p", [JavaSource("First.java", "package p;\n\nclass First {}"), LIST])
    line = 1 + merged.text.splitlines().index("  List<B> all;")
    assert merged.locate(f"Line {line}, Column 8: Cannot find B") == "A.java, line 6, Column 8: Cannot find B"


def test_driver_and_executors_count_values_by_the_same_numbers():
    """Else a plan takes units whose copies the executors then refuse, every night."""
    text = (Path(hivekeeper.cluster.__file__).parent / "java" / "WorkLimit.java").read_text()
    free = re.search(r" FREE = 1L << (\d+);", text)
    per_byte = re.search(r" VALUES_PER_BYTE = (\d+)L;", text)
    assert (1 << int(free[1]), int(per_byte[1])) == (model.MOST_VALUES_OF_FILE, model.VALUES_PER_BYTE)
