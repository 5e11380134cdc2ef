"""Renders docs/cli.md from the program's own parsers: every command, its options, and the exit codes."""

from __future__ import annotations

import argparse
import re
from typing import Iterator

HEAD = """\
# Command line

Every command and its options, made from the program's own `--help`. `bin/hivekeeper` runs a command through spark-submit;
[spark-submit.md](spark-submit.md) says how to do that by hand. Options that are also keys of the
[configuration](configuration.md) are listed there with their default.

## Exit codes

"""

# How a bar is written in a table cell.
BAR = "\\|"


def render_page() -> str:
    from hivekeeper.cli import parser

    built = parser.build_parser()
    commands = next(action for action in built._actions if isinstance(action, argparse._SubParsersAction))
    named = {choice.dest.partition(" ")[0] for choice in commands._choices_actions}
    parts = [HEAD + "\n".join(_exit_codes(parser.EXIT_CODES)) + "\n"]
    parts += [_render_command(name, command) for name, command in commands.choices.items() if name in named]
    return "\n".join(parts)


def _exit_codes(text: str) -> Iterator[str]:
    yield from ("| code | meaning |", "| --- | --- |")
    yield from (f"| {code} | {meaning} |" for code, meaning in re.findall(r"^  (\S+)  (.+)$", text, re.MULTILINE))


def _render_command(name: str, command: argparse.ArgumentParser) -> str:
    shown = [action for group in command._action_groups for action in group._group_actions if _is_shown(action)]
    rows = ["| option | meaning |", "| --- | --- |", *map(_row, shown)]
    return "\n".join([f"## {name}", "", command.description or "", "", *rows]) + "\n"


def _is_shown(action: argparse.Action) -> bool:
    return action.help != argparse.SUPPRESS and "--help" not in action.option_strings


def _row(action: argparse.Action) -> str:
    takes = str(action.metavar or "|".join(action.choices or ()))
    words = [f"{option} {takes}".strip() for option in action.option_strings] or [takes]
    required = "; required" if action.required and action.option_strings else ""
    cells = [", ".join(f"`{word}`" for word in words), f"{action.help}{required}"]
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"
