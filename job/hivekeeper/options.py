"""The words of the command line: subcommands, options, help texts, and what they select.

Contacts nothing; wrong usage is a UsageError.
"""

from __future__ import annotations

import argparse
from typing import Any, List, NoReturn

from hivekeeper import __version__, names
from hivekeeper.errors import UsageError
from hivekeeper.model import Selection

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

# Options that stand for a key of the configuration.
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
    group.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="one configuration value; may be given again"
    )
    group.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    group.add_argument("--json", action="store_true", help="print one JSON document instead of text (docs/json.md)")
    group.add_argument("--report-file", metavar="F", help="write the same document to a file as well, local or HDFS")
    group.add_argument("--yes", action="store_true", help="do not ask")


def read_selection(options: argparse.Namespace) -> Selection:
    """Raises UsageError."""
    tables = list(options.table)
    for listed in options.tables:
        tables += [name.strip() for name in listed.split(",") if name.strip()]
    if options.tables_file:
        tables += _read_tables_file(options.tables_file)
    selected = Selection(options.database, tuple(dict.fromkeys(tables)), tuple(options.exclude), getattr(options, "where", None))
    check_selection(selected)
    if getattr(options, "sort_columns", None) and (len(selected.tables) != 1 or selected.database):
        raise UsageError(
            "--sort-columns takes exactly one --table",
            next="name one table, or set sort_columns per table in the configuration under tables:",
        )
    return selected


def _read_tables_file(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except OSError as error:
        raise UsageError(f"--tables-file {path}: {error.strerror}", next="correct the path") from error
    return [line for line in lines if line]


def check_selection(selection: Selection) -> None:
    """Raise UsageError for a selection that no cluster could satisfy."""
    if not selection.database and not selection.tables:
        raise UsageError("no table is selected", next="give --table DATABASE.TABLE, --tables, --tables-file or --database")
    for name in selection.tables:
        if not names.TABLE.fullmatch(name):
            raise UsageError(f"{name!r} is not a table's name", next="write DATABASE.TABLE, with one dot")
