"""Facts on pages that could go stale unnoticed: the list of pages, the map of the program, its output, the tests named as proof."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Set

import pytest

from hivekeeper.plan.analysis import Status
from hivekeeper.plan.recover import STATES
from hivekeeper.reasons import Code
from hivekeeper.report import history_text, screen
from hivekeeper.steps.timing import Step
from unit.test_layout import ALLOWED, MODULES, SHARED, part_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
ARCHITECTURE = (DOCS / "architecture.md").read_text("utf-8")
OUTPUT = (DOCS / "output.md").read_text("utf-8")
WHAT_IF = (DOCS / "what-if.md").read_text("utf-8")
SOURCES = {path: path.read_text("utf-8") for path in (ROOT / "job" / "hivekeeper").rglob("*.py")}


def section(page: str, title: str) -> str:
    return re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)[1]


def rows(text: str, header: str) -> List[List[str]]:
    """The cells of the table with this header."""
    table = re.search(rf"^\| {re.escape(header)} .*\n\|[- |]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in table.splitlines()]


# -- the list of pages ------------------------------------------------------------------------------------------


def test_every_page_is_in_the_list_by_role():
    listed = set(re.findall(r"\]\(([\w/-]+\.md)(?:#[\w-]+)?\)", (DOCS / "README.md").read_text("utf-8")))
    assert listed == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_of_the_project_that_a_page_names_exists(page):
    named = re.findall(r"`((?:tests|packaging|bin|conf|docs)/[\w./-]+?)`", page.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_names_exists(page):
    named = re.findall(r"`((?:cli|config|launch|commands|plan|steps|runlog|report|cluster)/\w+\.py)`", page.read_text("utf-8"))
    assert [name for name in named if not (ROOT / "job" / "hivekeeper" / name).exists()] == []


# -- architecture.md --------------------------------------------------------------------------------------------


def rooms() -> Dict[str, List[str]]:
    """Room → the cells of its row."""
    return {re.sub(r"[`/]|\.py", "", cells[0]): cells for cells in rows(ARCHITECTURE, "room")}


def test_every_room_is_on_the_map_and_no_other():
    assert set(rooms()) == {part_of(path) for path in MODULES}


@pytest.mark.parametrize("room", ALLOWED)
def test_the_map_says_who_may_import_whom_as_it_is_enforced(room):
    words = rooms()[room][-1].replace("–", "").split(", ")
    told: Set[str] = {re.sub(r"[`/]|\.py", "", word) for word in words} - {""}
    assert (told - {"shared"}) | (SHARED if "shared" in told else set()) == ALLOWED[room]


def test_the_map_names_every_module_that_decides_or_changes_something():
    named = set(re.findall(r"`((?:plan|steps|runlog)/\w+\.py)`", ARCHITECTURE))
    there = {path.relative_to(ROOT / "job" / "hivekeeper").as_posix() for path in MODULES if path.read_text("utf-8").strip()}
    assert named == {name for name in there if name.startswith(("plan/", "steps/", "runlog/"))}


def test_every_directory_that_holds_files_of_a_unit_is_in_the_glossary():
    told = {cells[0] for cells in rows(ARCHITECTURE, "word")}
    assert {state for of_operation in STATES.values() for state in of_operation} - {"backup_table"} <= told


# -- output.md --------------------------------------------------------------------------------------------------


def steps_of_the_log() -> Set[str]:
    """What the program writes after `step=`, including the verbs of backup tables and the steps that are measured."""
    text = "\n".join(SOURCES.values())
    verbs = re.findall(r'_attempt\([\w.]+, "(\w+)"', text)
    return set(re.findall(r"step=([\w-]+)", text)) | {f"{verb}-backup-table" for verb in verbs} | {step.value for step in Step}


def test_every_step_of_the_log_is_explained_and_no_other():
    told = {step for cells in rows(OUTPUT, "`step=`") for step in re.findall(r"`([\w-]+)`", cells[0])}
    assert told == steps_of_the_log()


def test_the_columns_of_analyze_are_explained_in_their_order():
    told = [name for cells in rows(section(OUTPUT, "analyze"), "column") for name in re.findall(r"`(\w+)`", cells[0])]
    assert told == screen._ANALYSIS_HEADERS


def test_every_status_that_analyze_shows_is_explained_and_no_other():
    (told,) = (cells[1] for cells in rows(section(OUTPUT, "analyze"), "column") if cells[0] == "`STATUS`")
    assert re.findall(r"`([a-z]+)`:", told) == [status.text for status in Status]


def test_the_columns_of_history_are_explained_in_their_order():
    told = [name for cells in rows(section(OUTPUT, "history"), "column") for name in re.findall(r"`(\w+)`", cells[0])]
    headers = re.search(r'headers = (\["VERSION".*?\])', SOURCES[Path(history_text.__file__)])[1]
    assert told == re.findall(r"\w+", headers)


# -- CONTRIBUTING.md --------------------------------------------------------------------------------------------


def test_every_target_of_make_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    command = re.compile(r"(?:^|`)make ([a-z-]+)(?: [A-Z]+=\S+)*(?:`|$)", re.MULTILINE)
    named = {name for page in PAGES for name in command.findall(page.read_text("utf-8"))}
    assert {"demo", "test", "release"} <= named
    assert named <= targets


def test_every_code_of_an_error_that_a_page_shows_is_in_the_catalogue():
    shown = {code for page in PAGES for code in re.findall(r"^hivekeeper: .* \[([a-z-]+)\]$", page.read_text("utf-8"), re.MULTILINE)}
    assert shown
    assert shown <= {code.code for code in Code}


def test_every_message_that_an_answer_quotes_is_one_of_the_programs():
    text = "\n".join(SOURCES.values())
    for message in ("readers may find it absent", "another run took over"):
        assert message in WHAT_IF
        assert message in text


# -- what-if.md -------------------------------------------------------------------------------------------------


def questions() -> Dict[str, str]:
    parts = re.split(r"^### … (.+)$", WHAT_IF, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("question", questions())
def test_every_answer_names_its_proof(question):
    proof = re.search(r"^Proof: (.+)$", questions()[question], re.MULTILINE)
    assert proof
    assert re.search(r"`tests/|\]\(", proof[1])


def test_the_questions_that_somebody_on_call_has_are_answered():
    asked = " ".join(questions())
    for word in ("killed", "NameNode", "appends", "overwrites", "full", "ticket", "two runs", "drops the partition", "old rows", "cleanup"):
        assert word in asked
