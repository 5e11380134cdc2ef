"""Checks this machine for bin/hivekeeper-doctor: prints the findings, and hands them over if the cluster is checked next.

Starts no JVM and contacts no cluster.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence, Tuple

from hivekeeper.cli import configuration, output
from hivekeeper.codes import Exit
from hivekeeper.commands.edge_node import LauncherFacts, check_machine
from hivekeeper.launch.edge_node import ThisMachine
from hivekeeper.plan.doctor import Check, code_of_checks, read_bash_check
from hivekeeper.plan.edge_node import BASH_CHECKS, can_check_cluster, skip_cluster
from hivekeeper.report import document, screen
from hivekeeper.report.results import CommandResult


@dataclass(frozen=True)
class Request:
    """The launcher's request, NAME=VALUE before the `--`. `hand_over`: the file for the findings if the cluster can be checked."""

    launcher: LauncherFacts
    edge_only: bool
    hand_over: str
    words: Tuple[str, ...]

    @property
    def as_json(self) -> bool:
        return "--json" in self.words


def read_request(words: Sequence[str]) -> Request:
    end = words.index("--")
    given = [word.partition("=")[::2] for word in words[1:end]]
    by_name = dict(given)
    found = tuple(read_bash_check(value) for name, value in given if name == "found")
    shipped = tuple(value for name, value in given if name == "shipped")
    launcher = LauncherFacts(found, by_name.get("spark_submit", ""), shipped)
    return Request(launcher, by_name.get("edge_only") == "yes", by_name.get("hand_over", ""), tuple(words[end + 1 :]))


def check_edge_node(words: List[str]) -> Exit:
    """Return 0 if there is nothing to fix on this machine, else 2. Writes the hand-over file only if the cluster can be checked."""
    request = read_request(words)
    started_ms, began = time.time_ns() // 1_000_000, time.monotonic()
    checks = []
    for check in check_machine(
        ThisMachine(os.environ, time.time), request.launcher, lambda: configuration.load_for_launch(request.words)[0]
    ):
        checks.append(check)
        _show(check, request)
    if not request.edge_only and can_check_cluster(checks):
        Path(request.hand_over).write_text(document.build_checks(checks), "utf-8")
        return code_of_checks(checks)
    if not request.edge_only:
        checks.append(skip_cluster())
        _show(checks[-1], request)
    if request.as_json:
        _print_document(checks, started_ms, time.monotonic() - began)
    return code_of_checks(checks)


def _show(check: Check, request: Request) -> None:
    """Print a check, except those the launcher has already printed."""
    if not request.as_json and check.name not in BASH_CHECKS:
        output.print_answer(screen.render_check(check))


def _print_document(checks: List[Check], started_ms: int, seconds: float) -> None:
    from hivekeeper.cli.dispatch import new_run_id

    result = CommandResult("doctor", new_run_id(), started_ms, seconds, named=False, checks=tuple(checks))
    output.print_answer(document.to_json(document.build(result)))
