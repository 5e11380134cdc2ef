"""Words in, exit code out: the command line, and the only module that prints or exits.

The cluster is opened lazily, so that help, configuration and wrong usage answer without a JVM.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import signal
import sys
import time
from datetime import datetime, timezone
from typing import Any, List, NoReturn, Optional, Sequence, TextIO

from hivekeeper import __version__, config as configuration, names, submit
from hivekeeper.commands import selection
from hivekeeper.commands.selection import Selection
from hivekeeper.config import Config
from hivekeeper.errors import Exit, HivekeeperError, UsageError
from hivekeeper.plan.settings import Settings
from hivekeeper.report import document, screen
from hivekeeper.report.results import CommandResult, Problem
from hivekeeper.seams import Cluster, FilesError, MetastoreUnavailable

EXIT_CODES = """exit codes:
  0  done, or nothing to do
  1  unknown failure (a bug, or spark-submit's own)
  2  wrong usage or configuration; the cluster was not contacted
  3  a table named on the command line was refused, or all were
  4  another run holds the table
  5  verification found a difference
  6  some units done, some not; each one consistent: run again
  7  a state that we do not understand: a person decides
  8  the cluster is not usable now: retry later
  128+n  killed by signal n; the next run recovers by itself"""

log = logging.getLogger("hivekeeper")


class Parser(argparse.ArgumentParser):
    """Raises UsageError, so that wrong usage looks like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, next=f"see {self.prog} --help")


def build_parser() -> Parser:
    parser = Parser(
        prog="hivekeeper",
        description="Compact the small files of Hive tables without losing a row and without moving the table.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hivekeeper {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="SUBCOMMAND", parser_class=Parser)
    _add_analyze(commands)
    _add_compact_swap(commands)
    _add_recover(commands)
    _add_config(commands)
    return parser


def _add_command(commands: Any, name: str, does: str, details: str, **more: Any) -> Parser:
    return commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.\n\n{details}",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **more,
    )


def _add_analyze(commands: Any) -> None:
    parser = _add_command(
        commands,
        "analyze",
        "find the tables and partitions worth compacting, and predict the gain",
        "Reads metadata only and writes nothing. To act on what it finds: hivekeeper compact-swap.",
    )
    _add_selection(parser)
    parser.add_argument("--where", metavar="PREDICATE", help="partitions to look at, by partition columns: \"dt >= '2026-01-01'\"")
    _add_sizing(parser)
    parser.add_argument("--partitions", action="store_true", help="show every partition, the most profitable first")
    _add_common(parser)


def _add_compact_swap(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compact-swap",
        "compact: write a compacted copy aside, prove it, swap it in",
        "The old files stay as a backup below the table's control directory; nothing is deleted.\n"
        "An interrupted run of the same table is finished or undone first.",
        aliases=["compact"],
    )
    _add_selection(parser)
    parser.add_argument("--where", metavar="PREDICATE", help="partitions to compact, by partition columns: \"dt >= '2026-01-01'\"")
    _add_sizing(parser)
    group = parser.add_argument_group("compaction")
    group.add_argument("--max-units", metavar="N", help="at most so many units of a table, the most profitable first")
    group.add_argument("--sort-columns", metavar="A,B", help="sort the rows of each unit by these columns (one table only)")
    group.add_argument("--analyze-stats", action=argparse.BooleanOptionalAction, default=None, help="run ANALYZE TABLE afterwards")
    group.add_argument("--dry-run", action="store_true", default=None, help="print the plan and change nothing")
    _add_common(parser)


def _add_recover(commands: Any) -> None:
    parser = _add_command(
        commands,
        "recover",
        "bring interrupted runs to their end or back to their start",
        "Every writing command does this first by itself. Starts no new work.",
    )
    _add_selection(parser)
    _add_common(parser)


def _add_config(commands: Any) -> None:
    parser = _add_command(
        commands,
        "config",
        "print the merged configuration and where each value came from",
        "Contacts no cluster and starts no JVM.",
    )
    parser.add_argument("--template", action="store_true", help="write a commented configuration file instead")
    _add_common(parser)


def _add_selection(parser: Parser) -> None:
    group = parser.add_argument_group("selection")
    group.add_argument("--database", metavar="D", help="all tables of a database; unfit ones are reported and left alone")
    group.add_argument("--table", metavar="D.T", action="append", default=[], help="a table; may be given again")
    group.add_argument("--tables", metavar="D.T,D.U", action="append", default=[], help="several tables")
    group.add_argument("--tables-file", metavar="F", help="a file with one table a line; # begins a comment")
    group.add_argument("--exclude", metavar="GLOB", action="append", default=[], help="leave out tables that match; may be given again")


def _add_sizing(parser: Parser) -> None:
    group = parser.add_argument_group("sizing")
    group.add_argument("--block-size", metavar="MB", help="size that compacted files should have, in MiB")
    group.add_argument("--ratio-threshold", metavar="X", help="compact where files are typically smaller than block size / X")
    group.add_argument("--min-quiet", metavar="TIME", help="leave units alone that were written to more recently, such as 15m")


def _add_common(parser: Parser) -> None:
    group = parser.add_argument_group("common")
    group.add_argument("-c", "--config-file", metavar="F", action="append", default=[], help="a configuration file; later ones win")
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="one configuration value; may be given again")
    group.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    group.add_argument("--json", action="store_true", help="print one JSON document instead of text (docs/json.md)")
    group.add_argument("--report-file", metavar="F", help="write the same document to a file as well, local or HDFS")
    group.add_argument("--yes", action="store_true", help="do not ask")


FLAG_KEYS = {
    "block_size": "block_size_mb",
    "ratio_threshold": "ratio_threshold",
    "min_quiet": "min_quiet",
    "max_units": "max_units",
    "sort_columns": "sort_columns",
    "analyze_stats": "analyze_stats",
    "dry_run": "dry_run",
    "log_level": "log_level",
}


def load_config(options: argparse.Namespace) -> Config:
    """The merged configuration that a command line asks for. Raises UsageError."""
    flags = {key: getattr(options, name, None) for name, key in FLAG_KEYS.items()}
    files = configuration.read_files(os.environ, options.config_file)
    return configuration.load(files, os.environ, flags, options.sets)


def read_selection(options: argparse.Namespace) -> Selection:
    """Raises UsageError."""
    tables = list(options.table)
    for listed in options.tables:
        tables += [name.strip() for name in listed.split(",") if name.strip()]
    if options.tables_file:
        tables += _read_tables_file(options.tables_file)
    selected = Selection(options.database, tuple(dict.fromkeys(tables)), tuple(options.exclude), getattr(options, "where", None))
    selection.check(selected)
    if getattr(options, "sort_columns", None) and (len(selected.tables) != 1 or selected.database):
        raise UsageError(
            "--sort-columns takes exactly one --table", next="name one table, or set sort_columns per table in the configuration under tables:"
        )
    return selected


def _read_tables_file(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except OSError as error:
        raise UsageError(f"--tables-file {path}: {error.strerror}", next="correct the path") from error
    return [line for line in lines if line]


def settings_of(config: Config, table: str) -> Settings:
    """What of the configuration bears on one table, in the units of the plan."""
    of_table = config.for_table(table)
    return Settings(
        block_bytes=of_table.block_size_bytes,
        ratio=of_table.ratio_threshold,
        min_quiet_ms=of_table.min_quiet_s * 1000,
        compression=of_table.compression,
        sort_columns=of_table.sort_columns,
        analyze_stats=of_table.analyze_stats,
        max_units=of_table.max_units,
        batch_bytes=config.batch_bytes,
        batch_units=config.batch_units,
        hive_lock=of_table.hive_lock == "try",
        owner=of_table.owner,
    )


def new_run() -> str:
    return names.run_id(datetime.now(timezone.utc), secrets.token_hex(2))


def run_command(options: argparse.Namespace, config: Config, cluster: Cluster) -> CommandResult:
    from hivekeeper.commands.analyze import analyze
    from hivekeeper.commands.compact_swap import Request, compact_swap
    from hivekeeper.commands.recover import recover

    selected, run = read_selection(options), new_run()

    def settings_for(table: str) -> Settings:
        return settings_of(config, table)

    if options.command == "analyze":
        return analyze(cluster, selected, settings_for, config.backup_prefix, run)
    if options.command == "recover":
        return recover(cluster, selected, config.backup_prefix, run)
    return compact_swap(cluster, Request(selected, settings_for, config.backup_prefix, run, config.dry_run))


def run_on_cluster(options: argparse.Namespace, config: Config) -> Exit:
    """Open the cluster, run, print the answer."""
    read_selection(options)
    from hivekeeper.cluster.connect import connect

    with connect({}, config.log_level) as cluster:
        result = run_command(options, config, cluster)
        text = document.to_json(document.build(result))
        if options.report_file:
            write_report(cluster, options.report_file, text)
    print(text if options.json else screen.render(result, partitions=getattr(options, "partitions", False), width=_width()))
    return result.code


def write_report(cluster: Cluster, path: str, text: str) -> None:
    """A path without scheme is local; the file is replaced whole."""
    if "://" in path or path.startswith(("hdfs:", "file:")):
        aside = f"{path}.{secrets.token_hex(4)}"
        cluster.files.write_new(aside, text)
        cluster.files.delete_tree(path)
        cluster.files.rename_exact(aside, path)
        return
    aside = f"{path}.{os.getpid()}"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.replace(aside, path)


def print_config(options: argparse.Namespace) -> Exit:
    if options.template:
        print(configuration.template(), end="")
        return Exit.DONE
    config = load_config(options)
    print(document.to_json(document.build_config(config)) if options.json else screen.render_config(config))
    return Exit.DONE


def print_submit_options(words: Sequence[str]) -> Exit:
    """What bin/hivekeeper asks for: the launcher's words, each ended by NUL, so that nothing needs quoting."""
    options = build_parser().parse_args(words)
    if options.command is None:
        raise UsageError("no subcommand is given", next="see hivekeeper --help")
    config = load_config(options)
    if options.command != "config":
        read_selection(options)
    launch = submit.launch_words(config, sys.executable, configuration.find_log4j2(os.environ))
    sys.stdout.write("".join(f"{word}\0" for word in launch))
    return Exit.DONE


def run_words(words: Sequence[str]) -> Exit:
    """Everything but the rendering of errors."""
    if words[:1] == ["submit-options"]:
        return print_submit_options(words[2:] if words[1:2] == ["--"] else words[1:])
    options = build_parser().parse_args(words)
    if options.command is None:
        raise UsageError("no subcommand is given", next="see hivekeeper --help")
    if options.command == "config":
        return print_config(options)
    config = load_config(options)
    set_up_log(config.log_level, sys.stderr)
    return run_on_cluster(options, config)


def set_up_log(level: str, stream: TextIO) -> None:
    """One line per step on stderr, UTC, key=value; stdout is for the answer alone."""
    handler = logging.StreamHandler(stream)
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


def show_error(problem: Problem, as_json: bool) -> None:
    if as_json:
        print(document.to_json(document.build_error(problem)))
    print(screen.render_problem(problem), file=sys.stderr)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run a command line; gives the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    signal.signal(signal.SIGTERM, _on_terminate)
    as_json = "--json" in words
    try:
        return int(run_words(words))
    except HivekeeperError as error:
        show_error(Problem.of(error), as_json)
        return int(error.code)
    except (FilesError, MetastoreUnavailable) as error:
        show_error(Problem(str(error), "consistent", "mend the cause, then run again", Exit.UNUSABLE), as_json)
        return int(Exit.UNUSABLE)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        log.exception("this is a bug")
        show_error(Problem(f"unexpected: {error!r}", "hivekeeper recover is safe", "report the traceback above", Exit.BUG), as_json)
        return int(Exit.BUG)


def _on_terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _width() -> int:
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 120



if __name__ == "__main__":
    sys.exit(main())
