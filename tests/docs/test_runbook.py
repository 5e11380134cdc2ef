"""docs/runbook.md: every exit code, every command line, and only messages that the program really prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import List

import pytest

from hivekeeper.cli import command_line, parser
from hivekeeper.codes import Exit
from hivekeeper.plan.recover import STATES
from hivekeeper.reasons import Code
from hivekeeper.runlog.outcomes import Outcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "runbook.md").read_text("utf-8")
SOURCES = [*(ROOT / "job" / "hivekeeper").rglob("*.py"), *(ROOT / "bin" / "lib").glob("*.bash")]
# What the program can say.
SAID = "\n".join([*(path.read_text("utf-8") for path in SOURCES), *(outcome.text for outcome in Outcome)])
ENDS = ("|", ">", ">>", "&&", "||", ";")


def section(title: str) -> str:
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def command_lines() -> List[str]:
    """Everything to type: lines of code blocks, and back-quoted commands."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    prose = re.sub(r"^```\w*\n.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    return lines + re.findall(r"`([^`\n]*bin/hivekeeper [^`\n]*)`", prose)


def read_command(line: str) -> List[str]:
    """The words of a line after the program's name, without the shell's redirections."""
    words = shlex.split(line.partition("bin/hivekeeper ")[2])
    return words[: next((at for at, word in enumerate(words) if word in ENDS), len(words))]


@pytest.mark.parametrize("line", command_lines())
def test_every_line_to_be_typed_is_a_command_that_the_program_takes(line):
    assert "bin/hivekeeper " in line
    parsed = parser.build_parser().parse_args(read_command(line))
    if parsed.command != "config":
        assert command_line.read_selection(parsed).tables or parsed.database


def test_every_subcommand_has_a_place_in_the_runbook():
    used = {parser.build_parser().parse_args(read_command(line)).command for line in command_lines()}
    assert used == {"analyze", "backup", "compact-swap", "verify", "rollback", "cleanup", "history", "pin", "unpin", "recover", "config"}


def test_a_line_of_cron_holds_no_percent_sign_which_cron_takes_for_a_new_line():
    lines = [line for line in command_lines() if re.match(r"[\d*]+ [\d*]+ ", line)]
    assert len(lines) == 2
    assert not any("%" in line for line in lines)


def test_every_exit_code_of_the_help_has_a_row():
    rows = re.findall(r"^\| (\S+) \|", section("Exit codes"), re.MULTILINE)
    helped = re.findall(r"^  (\S+)  ", parser.EXIT_CODES, re.MULTILINE)
    assert rows[2:] == helped


def test_every_exit_code_follows_from_a_reason_or_an_outcome():
    assert {code.exit for code in Code} | {outcome.exit for outcome in Outcome} == {None, *Exit}


def quoted_in_lists() -> List[str]:
    """Messages that start an item of the recipes."""
    return [message for line in re.findall(r"^- (.+?):", PAGE, re.MULTILINE) for message in re.findall(r"`([^`]+)`", line)]


@pytest.mark.parametrize("message", quoted_in_lists())
def test_every_message_that_a_recipe_explains_is_one_of_the_programs(message):
    assert all(fragment.strip() in SAID for fragment in message.split("…"))


def test_a_person_is_told_what_every_directory_of_a_unit_holds():
    told = set(re.findall(r"^\| `runs/RUN/(\w+)/u", section("Stop and investigate"), re.MULTILINE))
    states = {state for of_operation in STATES.values() for state in of_operation}
    assert told == states - {"stage", "backup_table"}


def test_the_ages_that_it_names_are_the_defaults():
    defaults = (ROOT / "conf" / "defaults.yaml").read_text("utf-8")
    days = re.search(r"^min_age: (\d+)d$", defaults, re.MULTILINE)[1]
    assert f"`min_age` ({days} days)" in PAGE
