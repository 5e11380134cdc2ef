"""docs/doctor.md against the checks that are made: by bash on the edge node, by the job on the cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

from hivekeeper.plan import doctor

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "doctor.md").read_text("utf-8")
BASH = "\n".join((ROOT / "bin" / name).read_text("utf-8") for name in ("lib/doctor.bash", "hivekeeper-doctor"))


def explained_under(title: str) -> List[str]:
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    return re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)


def test_every_check_of_the_machine_is_explained_and_no_other():
    made = set(re.findall(r"\breport (?:ok|warn|fix|skip) ([a-z-]+) ", BASH)) | set(re.findall(r"\bskip_without ([a-z-]+) ", BASH))
    assert {"java", "cluster", "ticket"} <= made
    assert set(explained_under("On this machine")) == made


def test_every_check_of_the_cluster_is_explained_in_the_order_in_which_it_is_made():
    assert explained_under("On the cluster") == list(doctor.CLUSTER_CHECKS)


def test_every_check_of_a_table_is_explained_in_the_order_in_which_it_is_made():
    assert explained_under("Below a table") == list(doctor.TABLE_CHECKS)


def test_the_files_that_a_run_needs_are_checked_by_functions_of_their_names():
    functions = {name.replace("_", "-") for name in re.findall(r"^check_(\w+)\(\)", BASH, re.MULTILINE)} - {"machine", "own-ticket"}
    assert functions | {"cluster"} == set(explained_under("On this machine"))
