"""docs/doctor.md against the checks that run: on this machine, with and without Python, and on the cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

from hivekeeper.plan import doctor, edge_node

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "doctor.md").read_text("utf-8")
BASH = (ROOT / "bin" / "lib" / "doctor.bash").read_text("utf-8")


def explained_under(title: str) -> List[str]:
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)


def test_every_check_of_the_machine_is_explained_in_the_order_in_which_it_is_made():
    assert explained_under("On this machine") == [*edge_node.MACHINE_CHECKS, "cluster"]


def test_bash_makes_its_checks_and_names_all_others_where_python_is_missing():
    called = re.search(r"^check_without_python\(\) {\n(.*?)^}", BASH, re.MULTILINE | re.DOTALL)[1].split()
    assert called == [f"check_{name.replace('-', '_')}" for name in edge_node.BASH_CHECKS]
    assert set(re.findall(r"\breport (?:ok|fix) ([a-z-]+) ", BASH)) == set(edge_node.BASH_CHECKS)
    assert re.search(r"for name in (.*); do", BASH)[1].split() == list(edge_node.NEEDS)


def test_every_check_of_the_cluster_is_explained_in_the_order_in_which_it_is_made():
    assert explained_under("On the cluster") == list(doctor.CLUSTER_CHECKS)


def test_every_check_of_a_table_is_explained_in_the_order_in_which_it_is_made():
    assert explained_under("Below a table") == list(doctor.TABLE_CHECKS)
