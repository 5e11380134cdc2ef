"""Builds a command's context from the parsed options and the configuration, and runs the command.

Decides nothing else; loaded only when a command actually runs.
"""

from __future__ import annotations

import argparse
import secrets
from dataclasses import replace
from datetime import datetime, timezone
from typing import Callable, ContextManager, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.commands import (
    analyze,
    analyze_image,
    backup,
    catalogue,
    cleanup,
    cleanup_orphans,
    compact_swap,
    doctor,
    forget,
    history,
    orphans,
    pin,
    recover,
    rollback,
    shipped_files,
    verify,
)
from hivekeeper.commands.context import Context
from hivekeeper.config.layers import Config
from hivekeeper.launch import output_files
from hivekeeper.launch.shipped_files import list_on_cluster
from hivekeeper.model import Selection
from hivekeeper.ports import Clock, Cluster
from hivekeeper.report import document
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.stop_conditions import HEEDFUL, Watch


def run_command(
    parsed: argparse.Namespace, config: Config, cluster: Cluster, selected: Selection, confirm: Callable[[TableOutcome], bool]
) -> CommandResult:
    shipped_files.require_trusted(cluster.files, list_on_cluster(config), config.trusted_owners)
    cluster = replace(cluster, catalogue_at=catalogue.place_of(config.catalogue))
    if parsed.command in HEEDFUL:
        cluster = replace(cluster, stopping=Watch(cluster, config))
    run_key = getattr(parsed, "run_key", None) or ""
    context = Context(cluster, selected, config.for_table, config.backup_prefix, new_run_id(), config.dry_run, confirm, run_key)
    most_row_groups, keeps_files = catalogue.most_row_groups(config.catalogue), catalogue.keeps_files(config.catalogue)
    context = replace(context, most_row_groups=most_row_groups, keeps_files=keeps_files)
    if parsed.command == "catalogue":
        request = catalogue.Request(parsed.action, parsed.of, parsed.kind or "", _words(parsed.columns), parsed.key or "", parsed.limit)
        return catalogue.run_catalogue(context, config.catalogue, config.trusted_owners, request)
    return run_analyze(context, config, parsed) if parsed.command == "analyze" else COMMANDS[parsed.command](context, parsed)


def _words(text: Optional[str]) -> Tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip()) if text else ()


def new_run_id() -> names.RunId:
    return names.run_id(datetime.now(timezone.utc), secrets.token_hex(2))


def examine(
    parsed: argparse.Namespace, config: Config, selected: Selection, clock: Clock, open_probes: Callable[[], ContextManager[doctor.Probes]]
) -> CommandResult:
    """Run doctor, the only command that also works when no cluster can be opened."""
    subject = doctor.Subject(
        selected,
        config.for_table,
        config.backup_prefix,
        new_run_id(),
        config.spark.queue,
        list_on_cluster(config),
        document.read_checks(parsed.edge_checks),
        config.trusted_owners,
    )
    return doctor.check_up(open_probes, clock, subject)


def run_analyze(context: Context, config: Config, parsed: argparse.Namespace) -> CommandResult:
    if parsed.fsimage is not None:
        return analyze_image.analyze_image(context, parsed.fsimage, output_files.is_remote(parsed.fsimage))
    return analyze.analyze(context, catalogue.open_known(context, config.catalogue, config.trusted_owners) if parsed.changed else None)


COMMANDS: Mapping[str, Callable[[Context, argparse.Namespace], CommandResult]] = {
    "backup": lambda context, _: backup.back_up(context),
    "compact-swap": lambda context, _: compact_swap.compact_swap(context),
    "compact": lambda context, _: compact_swap.compact_swap(context),
    "verify": lambda context, parsed: verify.verify(context, parsed.of_run, parsed.level),
    "rollback": lambda context, parsed: rollback.rollback(context, parsed.of_run),
    "cleanup": lambda context, parsed: (
        cleanup_orphans.clean_up_orphans(context)
        if parsed.orphans
        else cleanup.clean_up(replace(context, former_tables=parsed.former_tables))
    ),
    "forget": lambda context, _: forget.forget(context),
    "history": lambda context, parsed: (
        orphans.show_orphans(context)
        if parsed.orphans
        else history.show_history(context, history.View(parsed.of_run, parsed.at, parsed.partitions, parsed.cleanups))
    ),
    "pin": lambda context, parsed: pin.pin(context, parsed.of_run, pinned=True),
    "unpin": lambda context, parsed: pin.pin(context, parsed.of_run, pinned=False),
    "recover": lambda context, _: recover.recover(context),
}
