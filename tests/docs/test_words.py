"""What the docs and the help say, against what the program does."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest
import yaml

from hivekeeper.cli import command_line, parser
from hivekeeper.codes import Exit
from hivekeeper.config import layers
from hivekeeper.config.sources import Source
from hivekeeper.errors import UsageError

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "job" / "hivekeeper").rglob("*.py"))


def subcommands() -> Dict[str, argparse.ArgumentParser]:
    built = parser.build_parser()
    return next(action.choices for action in built._actions if isinstance(action, argparse._SubParsersAction))


# -- help ---------------------------------------------------------------------------------------------------


def test_every_subcommand_has_a_help_text():
    built = parser.build_parser()
    action = next(action for action in built._actions if isinstance(action, argparse._SubParsersAction))
    told = {choice.dest.split(" ")[0]: choice.help for choice in action._choices_actions}
    assert {name for name in subcommands() if name != "compact"} == set(told)
    assert all(told.values())


@pytest.mark.parametrize("name", subcommands())
def test_every_option_has_a_help_text(name):
    silent = [action.option_strings for action in subcommands()[name]._actions if not action.help or not action.help.strip()]
    assert silent == []


@pytest.mark.parametrize("name", subcommands())
def test_help_ends_with_the_exit_codes_and_can_be_shown(name):
    assert parser.EXIT_CODES.splitlines()[-1].strip() in subcommands()[name].format_help()


def test_the_readme_lists_every_subcommand_and_no_other():
    table = re.search(r"\| command \| does \|\n\| --- \| --- \|\n((?:\|.*\n)+)", README)[1]
    told = {name for cell in re.findall(r"^\| (.+?) \|", table, re.MULTILINE) for name in re.findall(r"`([a-z-]+)`", cell)}
    assert told == set(subcommands())


# -- exit codes ---------------------------------------------------------------------------------------------


def test_the_exit_codes_of_the_readme_the_help_and_the_program_agree():
    helped = dict(re.findall(r"^  (\S+)  (.+)$", parser.EXIT_CODES, re.MULTILINE))
    table = re.search(r"\| code \| meaning \|\n\| --- \| --- \|\n((?:\|.*\n)+)", README)[1]
    read = dict(re.findall(r"^\| (\S+) \| (.+) \|$", table, re.MULTILINE))
    assert set(helped) == {*(str(int(code)) for code in Exit), "128+n"}
    assert {code: _words(text) for code, text in read.items()} == {code: _words(text) for code, text in helped.items()}


def _words(text: str) -> List[str]:
    return re.findall(r"\w+", text)


# -- examples -----------------------------------------------------------------------------------------------


def code_blocks(text: str, language: str = "") -> List[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def examples() -> Iterator[Tuple[str, str]]:
    """(page, command line) of every hivekeeper command in a code block or between back-quotes, continued lines joined."""
    for page in PAGES:
        text = page.read_text("utf-8")
        lines = [line for block in re.findall(r"^```(?:\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for line in _joined(block)]
        lines += re.findall(r"`([^`\n]*bin/hivekeeper [^`\n]*)`", text)
        yield from ((page.name, line) for line in lines if re.search(r"bin/hivekeeper |dist/hivekeeper\.py ", line))


def _joined(block: str) -> List[str]:
    return block.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("line", [pytest.param(line, id=f"{page}: {line}") for page, line in examples()])
def test_every_example_is_a_command_line_that_the_program_takes(line):
    command = re.split(r"bin/hivekeeper |dist/hivekeeper\.py ", line)[1]
    words = shlex.split(command, comments=True)
    words = words[: next((at for at, word in enumerate(words) if word in ("|", ">", ">>", "&&", "||", ";", "2>")), len(words))]
    parsed = parser.build_parser().parse_args(words)
    if parsed.command != "config":
        command_line.read_selection(parsed)


def test_the_readme_has_examples():
    assert len([line for page, line in examples() if page == "README.md"]) >= 6


def test_a_wrong_example_would_be_seen():
    with pytest.raises(UsageError):
        parser.build_parser().parse_args(["analyze", "--tabel", "d.t"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_yaml_of_a_page_is_a_configuration(page):
    for number, block in enumerate(code_blocks(page.read_text("utf-8"), "yaml"), 1):
        assert isinstance(yaml.safe_load(block), dict)
        layers.load([Source(f"{page.name}, example {number}", block)], {}, {}, [])


def test_the_readme_has_a_yaml_example():
    assert code_blocks(README, "yaml")


# -- pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    broken = [target for target in targets if not _leads_somewhere(page, target)]
    assert broken == []


def _leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    aim = page.parent / path if path else page
    return aim.exists() and (not anchor or anchor in _anchors(aim))


def _anchors(page: Path) -> List[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def test_the_changelog_has_a_section_for_what_is_not_released():
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_every_source_file_that_a_page_names_exists():
    missing = []
    rooms = "plan|steps|cluster|commands|report|runlog|config|launch|cli"
    for page in PAGES:
        for name in re.findall(rf"`((?:{rooms})/\w+\.py)(?::\w+)?`", page.read_text("utf-8")):
            if not (ROOT / "job" / "hivekeeper" / name).exists():
                missing.append((page.name, name))
    assert missing == []


# -- modules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in MODULES if path.read_text("utf-8").strip()], ids=lambda path: path.name)
def test_every_module_says_what_it_is_for(path):
    text = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert text
    assert len(text.splitlines()) <= 8
