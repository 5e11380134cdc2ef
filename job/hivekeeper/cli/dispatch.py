"""From parsed words and the configuration to a command's request, and its result.

Decides nothing else; loaded only when a command really runs.
"""

from __future__ import annotations

import argparse
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Callable, ContextManager, Mapping

from hivekeeper import names
from hivekeeper.commands import analyze, backup, cleanup, compact_swap, doctor, history, pin, recover, rollback, verify
from hivekeeper.config.layers import Config
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.plan.doctor import read_edge_check
from hivekeeper.ports import Clock, Cluster
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.stop_conditions import HEEDFUL, Watch


@dataclass(frozen=True)
class Call:
    """One command line about to run. `confirm` is shown what a rollback plans."""

    parsed: argparse.Namespace
    config: Config
    cluster: Cluster
    selected: Selection
    confirm: Callable[[TableOutcome], bool]
    run: str

    @property
    def prefix(self) -> str:
        return self.config.backup_prefix

    @property
    def settings_for(self) -> Callable[[str], Settings]:
        return self.config.for_table


def run_command(
    parsed: argparse.Namespace, config: Config, cluster: Cluster, selected: Selection, confirm: Callable[[TableOutcome], bool]
) -> CommandResult:
    run = names.run_id(datetime.now(timezone.utc), secrets.token_hex(2))
    if parsed.command in HEEDFUL:
        cluster = replace(cluster, stopping=Watch(cluster, config))
    return COMMANDS[parsed.command](Call(parsed, config, cluster, selected, confirm, run))


def _analyze(call: Call) -> CommandResult:
    return analyze.analyze(call.cluster, call.selected, call.settings_for, call.prefix, call.run)


def _backup(call: Call) -> CommandResult:
    return backup.back_up(call.cluster, backup.Request(call.selected, call.settings_for, call.prefix, call.run))


def _compact(call: Call) -> CommandResult:
    request = compact_swap.Request(call.selected, call.settings_for, call.prefix, call.run, call.config.dry_run)
    return compact_swap.compact_swap(call.cluster, request)


def _verify(call: Call) -> CommandResult:
    return verify.verify(call.cluster, verify.Request(call.selected, call.prefix, call.run, call.parsed.of_run, call.parsed.level))


def _rollback(call: Call) -> CommandResult:
    request = rollback.Request(
        call.selected, call.settings_for, call.prefix, call.run, call.confirm, call.parsed.of_run, call.config.dry_run
    )
    return rollback.rollback(call.cluster, request)


def _cleanup(call: Call) -> CommandResult:
    request = cleanup.Request(call.selected, call.settings_for, call.prefix, call.run, call.config.dry_run)
    return cleanup.clean_up(call.cluster, request)


def _history(call: Call) -> CommandResult:
    request = history.Request(call.selected, call.prefix, call.run, call.settings_for, call.parsed.of_run, call.parsed.at)
    return history.show_history(call.cluster, request)


def _pin(call: Call) -> CommandResult:
    return pin.pin(call.cluster, pin.Request(call.selected, call.prefix, call.run, call.parsed.of_run, call.parsed.command == "pin"))


def _recover(call: Call) -> CommandResult:
    return recover.recover(call.cluster, call.selected, call.prefix, call.run)


def check_up(
    parsed: argparse.Namespace, config: Config, selected: Selection, clock: Clock, open_probes: Callable[[], ContextManager[doctor.Probes]]
) -> CommandResult:
    """doctor: the one command that also runs where there is no cluster to be had."""
    spark = config.spark
    shipped = [*spark.archives, *spark.extra_files, *spark.py_files, spark.python_env or "", spark.archive or ""]
    request = doctor.Request(
        selected,
        config.backup_prefix,
        names.run_id(datetime.now(timezone.utc), secrets.token_hex(2)),
        lambda table: config.for_table(table).owner,
        spark.queue,
        tuple(path.partition("#")[0] for path in shipped if "://" in path and not path.startswith("file:")),
        tuple(read_edge_check(text) for text in parsed.edge_check),
        parsed.edge_only,
    )
    return doctor.check_up(open_probes, clock, request)


COMMANDS: Mapping[str, Callable[[Call], CommandResult]] = {
    "analyze": _analyze,
    "backup": _backup,
    "compact-swap": _compact,
    "compact": _compact,
    "verify": _verify,
    "rollback": _rollback,
    "cleanup": _cleanup,
    "history": _history,
    "pin": _pin,
    "unpin": _pin,
    "recover": _recover,
}
