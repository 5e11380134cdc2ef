"""Runs one command on the cluster: opens it, runs, writes the requested files, prints the answer.

Modules that need a JVM are imported on use, so that help, configuration and usage errors answer at once.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from hivekeeper.cli import command_line, output
from hivekeeper.codes import Exit
from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from hivekeeper.launch.spark_submit import hide_secrets
from hivekeeper.reasons import Code
from hivekeeper.stop_conditions import PATIENT

if TYPE_CHECKING:
    from hivekeeper.cluster.signals import Signals
    from hivekeeper.ports import Files
    from hivekeeper.report.results import CommandResult, TableOutcome


def run_on_cluster(parsed: argparse.Namespace, config: Config) -> int:
    """Run the command and return its exit code."""
    output.load_reports()
    if parsed.command == "doctor":
        return run_doctor(parsed, config)
    from hivekeeper.cluster.signals import Signals

    with Signals(patient=parsed.command in PATIENT) as signals:
        return run_connected(parsed, config, signals).exit_code


def run_connected(parsed: argparse.Namespace, config: Config, signals: Signals) -> CommandResult:
    """Run a command on an open cluster, print its answer, write the requested files and the catalogue, and return the result."""
    from hivekeeper.cli import dispatch
    from hivekeeper.cluster.connect import connect
    from hivekeeper.commands import catalogue

    with connect(hide_secrets(config), signals, config.log_level) as cluster:
        remote = [path for path in (parsed.report_file, parsed.properties_out) if path and output_files.is_remote(path)]
        for path in remote:
            output_files.require_writable(cluster.files, path)
        if parsed.properties_out in remote:
            output_files.forget_remote(cluster.files, parsed.properties_out)
        confirm = partial(ask_for_rollback, parsed)
        result = dispatch.run_command(parsed, config, cluster, command_line.read_selection(parsed), confirm)
        try:
            # First: a NameNode that does not answer may hold up all that follows until somebody ends the command.
            output.print_result(parsed, result)
        finally:
            # If the cluster can no longer be reached, files on it are not written.
            write_files(parsed, result, cluster.files, cluster.lost() if remote else "")
            catalogue.record(cluster, config.catalogue, config.trusted_owners, result)
    return result


def write_files(parsed: argparse.Namespace, result: CommandResult, files: Files, lost: str) -> None:
    """Write the requested files. `lost`: why those of the cluster cannot be written, "" if they can."""
    from hivekeeper.report import document, properties

    if parsed.report_file:
        output_files.write(files, parsed.report_file, document.to_json(document.build(result)), lost)
    if parsed.properties_out and parsed.properties_out != "-":
        output_files.write(files, parsed.properties_out, properties.render(result), lost)


def run_doctor(parsed: argparse.Namespace, config: Config) -> Exit:
    """Run doctor; a cluster that cannot be opened is a finding. Output files must be local: the cluster may be down."""
    from hivekeeper.cli import dispatch
    from hivekeeper.cluster.connect import WallClock, open_probes
    from hivekeeper.report import document, properties

    for path in (parsed.report_file, parsed.properties_out):
        if path and output_files.is_remote(path):
            raise UsageError(f"{path}: doctor writes local files only", code=Code.LOCAL_FILE, next="give a path of this machine")
    open_cluster = partial(open_probes, hide_secrets(config), config.log_level)
    result = dispatch.examine(parsed, config, command_line.read_selection(parsed), WallClock(), open_cluster)
    if parsed.report_file:
        output_files.write_local(parsed.report_file, document.to_json(document.build(result)))
    if parsed.properties_out and parsed.properties_out != "-":
        output_files.write_local(parsed.properties_out, properties.render(result))
    output.print_result(parsed, result)
    return result.code


def ask_for_rollback(parsed: argparse.Namespace, planned: TableOutcome) -> bool:
    """Show what a rollback will do and, at a terminal, ask for confirmation; a script has already decided."""
    from hivekeeper.cluster import console
    from hivekeeper.report import screen

    stderr = output.find_stderr()
    print(screen.render_planned_rollback(planned), file=stderr)
    if parsed.yes:
        return True
    with console.find_terminal() as terminal:
        if terminal is None:
            return True
        print("roll back? [y/N] ", end="", file=stderr, flush=True)
        return terminal.readline().strip().lower() in ("y", "yes")
