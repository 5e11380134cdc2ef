"""The subcommands and their options, with their help texts.

Contacts nothing; wrong usage is a UsageError.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, Dict, NoReturn, Optional, Sequence

from hivekeeper import __version__, names
from hivekeeper.config.definitions import Flag, Setting
from hivekeeper.config.settings import list_settings
from hivekeeper.errors import UsageError

EXIT_CODES = """exit codes:
  0  done, or nothing to do
  1  unknown failure (a bug, or spark-submit's own)
  2  wrong usage or configuration; no table was touched
  3  a table named on the command line was refused, or all were
  4  another run holds the table, or a writer is at work in it: retry later
  5  verification found a difference
  6  some units done, some not; each one consistent: run again
  7  a state that is not understood: stop and investigate
  8  the cluster is not usable now: retry later
  128+n  killed by signal n; the next run recovers by itself"""

PROPERTIES_HELP = "write a few Java properties for a scheduler, less than 2 KB (docs/schedulers.md); - prints them instead of the text"


class Once(argparse.Action):
    """A selection option that may be given only once: argparse would silently drop one of the two."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: Optional[str] = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice")
        setattr(namespace, self.dest, values)


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
    _add_backup(commands)
    _add_compact_swap(commands)
    _add_verify(commands)
    _add_rollback(commands)
    _add_cleanup(commands)
    _add_forget(commands)
    _add_history(commands)
    _add_pins(commands)
    _add_recover(commands)
    _add_catalogue(commands)
    _add_doctor(commands)
    _add_config(commands)
    return parser


def _add_command(commands: Any, name: str, does: str, details: str, **more: Any) -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.\n\n{details}",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **more,
    )
    return parser


def _add_analyze(commands: Any) -> None:
    parser = _add_command(
        commands,
        "analyze",
        "find the tables and partitions worth compacting, and predict the gain",
        "Reads metadata only and changes no table. To act on what it finds: hivekeeper compact-swap.",
    )
    _add_selection(parser, where="look at")
    parser.add_argument("--partitions", action="store_true", help="show every partition, those with the greatest gain first")
    image = "take sizes from the text of a NameNode's image (hdfs oiv -p Delimited, plain or gzip, local or on HDFS) instead of listings, "
    parser.add_argument("--fsimage", metavar="FILE", action=Once, help=f"{image}and list what belongs to no table (docs/fsimage.md)")
    changed = "do not list partitions that have nothing to do by the catalogue, and whose directories have not changed since it saw them"
    parser.add_argument("--changed", action="store_true", help=f"{changed} (docs/catalogue.md)")
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
    _add_selection(parser, where="compact")
    _add_run_key(parser)
    _add_common(parser)


def _add_backup(commands: Any) -> None:
    parser = _add_command(
        commands,
        "backup",
        "record what a table holds now, and put a backup table over it; copies no file",
        "It does not protect from writers: until compact-swap has set the old files aside, files that another job deletes are gone.\n"
        "compact-swap uses the newest record that still describes the table; without one it takes its own.",
    )
    _add_selection(parser, where="record")
    _add_common(parser)


def _add_verify(commands: Any) -> None:
    parser = _add_command(
        commands,
        "verify",
        "prove again that the table holds what a backup holds, plus what was written later",
        "Reads the old and the new files; writes nothing, except what was verified, into the log, where cleanup_requires asks for it.\n"
        "Exit code 5 if something differs.",
    )
    _add_selection(parser, where="verify")
    _add_run(parser, "compare with the backup of this run (default: the newest one of each unit)")
    levels = "count: rows by the footers; digest: the content (default); rows: row by row, and which ones differ"
    parser.add_argument("--level", choices=["count", "digest", "rows"], default="digest", help=levels)
    _add_common(parser)


def _add_rollback(commands: Any) -> None:
    parser = _add_command(
        commands,
        "rollback",
        "put back the old files that a run set aside, and keep what was written later",
        "Without --run the newest compaction is undone. Later runs on the same partitions are undone first. What a rollback sets\n"
        "aside stays until cleanup, so a rollback can itself be undone: name it with --run.\n"
        "At a terminal it shows the plan and asks; in a script it does not ask.",
    )
    _add_selection(parser, where="roll back")
    _add_run(parser, "go back to the state before this run")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    _add_run_key(parser)
    _add_common(parser)


def _add_cleanup(commands: Any) -> None:
    parser = _add_command(
        commands,
        "cleanup",
        "delete old backups",
        "Deletes the backups that no rule keeps; pinned backups stay. Before a file is deleted it is compared with the backup's manifest.",
    )
    _add_selection(parser, no_where="its rules are about all partitions of a table")
    orphans = "instead: discard what dropped tables have left in each --database; the first time it is only marked (docs/retention.md)"
    parser.add_argument("--orphans", action="store_true", help=orphans)
    former = "also those of tables that lay at the same place before and are gone, such as one that was dropped and created again"
    parser.add_argument("--former-tables", action="store_true", help=former)
    _add_run_key(parser)
    _add_common(parser)


def _add_forget(commands: Any) -> None:
    parser = _add_command(
        commands,
        "forget",
        "remove every trace of Hivekeeper from a table whose backups are gone",
        "Removes the table's control directory with its log, and backup tables that show nothing any more. It refuses a table of which a\n"
        "backup or record is left, or a run was interrupted. Files of the table are not touched, and it can be compacted again.",
    )
    _add_selection(parser, no_where="it is about a whole table")
    _add_common(parser)


def _add_history(commands: Any) -> None:
    parser = _add_command(
        commands,
        "history",
        "list the runs and backups of a table",
        "Reads the table's log; writes nothing.",
    )
    _add_selection(parser, where="show")
    parser.add_argument("--files", action="store_true", help="with --run: the files that the run took out of the table and put into it")
    _add_run(parser, "the run for --files")
    parser.add_argument("--at", metavar="VERSION", type=_version, help="the files and tombstones that the log knows at this version")
    parser.add_argument(
        "--partitions", action="store_true", help="the old files of each partition, and whether a cleanup would keep them now"
    )
    parser.add_argument("--cleanups", action="store_true", help="what each cleanup discarded, and by which rules")
    parser.add_argument(
        "--orphans", action="store_true", help="what is left in each --database of tables, backups and runs that are not there any more"
    )
    _add_common(parser)


def _add_pins(commands: Any) -> None:
    for name, does in (("pin", "protect a backup from every cleanup"), ("unpin", "let cleanup delete a pinned backup again")):
        parser = _add_command(commands, name, does, "Writes an entry into the table's log, nothing else.")
        _add_selection(parser, no_where="the backup of a run is kept or deleted as a whole")
        _add_run(parser, "the run whose backup is meant", required=True)
        _add_common(parser)


def _add_run_key(parser: Parser) -> None:
    meaning = "a name for this execution, such as the scheduler's id of it: with a key that is in a table's log nothing is done again"
    parser.add_argument("--run-key", metavar="KEY", type=_run_key, help=meaning)


def _run_key(text: str) -> str:
    if not names.RUN_KEY.fullmatch(text):
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(f"{shown!r} is no key: 1 to 200 letters, digits and . _ : @ + = / % # -, a letter or digit first")
    return text


def _run_id(text: str) -> str:
    if not names.RUN.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a run, such as 20260101t020304z-1f0c; hivekeeper history lists them")
    return text


def _version(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a log entry; hivekeeper history lists them")
    return int(text)


def _add_recover(commands: Any) -> None:
    parser = _add_command(
        commands,
        "recover",
        "finish or undo interrupted runs",
        "Every command that writes does this first. Starts no new work.",
    )
    _add_selection(parser, no_where="an interrupted run is finished or undone as a whole")
    _add_common(parser)


def _add_catalogue(commands: Any) -> None:
    parser = _add_command(
        commands,
        "catalogue",
        "show or trim the catalogue of what commands saw and did (catalogue.base_path)",
        "show: rows of the newest state; delete: take out the rows about tables; purge: take out all; expire: remove files that newer\n"
        "commits replaced long ago. No table is touched. Queries ask its tables in SQL: docs/catalogue.md.",
    )
    parser.add_argument("action", choices=["show", "delete", "purge", "expire"], help="what to do")
    parser.add_argument("--of", choices=["tables", "views", "runs"], default="tables", help="show: rows of this component (tables)")
    kinds = "TABLE (default), SEGMENT, PARTITION, FILE or ROW_GROUP; VIEW; RUN (default) or UNIT"
    parser.add_argument("--kind", metavar="KIND", help=f"show: {kinds}")
    parser.add_argument("--columns", metavar="A,B", help="show: these columns")
    parser.add_argument("--limit", metavar="N", type=_limit, default=1000, help="show: at most so many rows (1000)")
    parser.add_argument("--key", metavar="KEY", help="show, delete: only this metadata key, such as dt=2026-01-01 or the id of a run")
    _add_selection(parser, no_where="its rows are found by their metadata key")
    _add_common(parser)


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows, 1 or more")
    return int(text)


def _add_doctor(commands: Any) -> None:
    parser = _add_command(
        commands,
        "doctor",
        "check everything that a run needs, and say what to fix",
        "Below the root of each table named it makes a scratch directory, tries there what a run will do, and removes it.\n"
        "bin/hivekeeper-doctor checks this machine first, before any Java is started. docs/doctor.md explains each check.\n"
        "Exit code 2: fix this machine or the configuration; 8: only the cluster needs fixing.",
    )
    parser.add_argument("named", metavar="D.T", nargs="*", help="a table whose rights, quotas and space are checked")
    _add_selection(parser, no_where="rights, quotas and space are those of a whole table")
    _add_common(parser)
    # The findings of bin/hivekeeper-doctor on this machine; they come first in the document.
    parser.add_argument("--edge-checks", default="[]", help=argparse.SUPPRESS)


def _add_config(commands: Any) -> None:
    parser = _add_command(
        commands,
        "config",
        "print the merged configuration and where each value came from",
        "Contacts no cluster and starts no JVM.",
    )
    parser.add_argument("--template", action="store_true", help="write a commented configuration file instead")
    _add_common(parser, has_outcome=False)


def _add_selection(parser: Parser, where: str = "", no_where: str = "") -> None:
    """Add the selection options. `where`: what is done with the partitions --where selects; `no_where`: why the command takes none."""
    group = parser.add_argument_group("selection")
    databases = "all tables of a database; unfit ones are reported and left alone; may be repeated"
    group.add_argument("--database", metavar="D", action="append", default=[], help=databases)
    group.add_argument("--table", metavar="D.T", action="append", default=[], help="a table; may be repeated")
    group.add_argument("--tables", metavar="D.T,D.U", action="append", default=[], help="several tables; may be repeated")
    group.add_argument(
        "--tables-file",
        metavar="F",
        action=Once,
        help="a file with one table per line; lines that begin with # are comments",
    )
    group.add_argument(
        "--exclude",
        metavar="GLOB",
        action="append",
        default=[],
        help="leave out tables that match ([*] is the sign itself); may be repeated",
    )
    if where:
        example = f"partitions to {where}, by partition columns, such as \"dt >= '2026-01-01'\""
        group.add_argument("--where", metavar="PREDICATE", action=Once, help=example)
    else:
        parser.description = f"{parser.description}\nTakes no --where: {no_where}."
        group.add_argument("--where", type=partial(_refuse_where, parser.prog.split()[-1], no_where), help=argparse.SUPPRESS)


def _refuse_where(command: str, why: str, _predicate: str) -> NoReturn:
    raise UsageError(f"{command} takes no --where: {why}", next="leave --where out")


def _add_run(parser: Parser, meaning: str, required: bool = False) -> None:
    parser.add_argument("--run", metavar="ID", dest="of_run", type=_run_id, required=required, help=meaning)


def _add_settings(parser: Parser, command: str) -> None:
    """Add the options that override the configuration for this run."""
    group = parser.add_argument_group("settings", "each is a key of the configuration too: docs/configuration.md")
    for setting in list_settings():
        if setting.flag and setting.flag.belongs_to(command):
            _add_setting(group, setting, setting.flag)


def _add_setting(group: Any, setting: Setting, flag: Flag) -> None:
    """Add one option; its value is None if not given, so that a lower layer decides."""
    meaning = setting.meaning[0].lower() + setting.meaning[1:].rstrip(".")
    if flag.metavar:
        default = f" (default {setting.default})" if setting.default else ""
        group.add_argument(flag.name, metavar=flag.metavar, type=flag.complete, help=meaning + default)
    elif setting.per_table:
        # Only a --no- option can override a table's own true.
        group.add_argument(flag.name, action=argparse.BooleanOptionalAction, default=None, help=meaning)
    else:
        group.add_argument(flag.name, action="store_true", default=None, help=meaning)


def find_flags(options: argparse.Namespace) -> Dict[str, Any]:
    """The values of the options, by configuration key; None for an option not given, or not known to the command."""
    with_flags = [setting for setting in list_settings() if setting.flag]
    return {setting.key: getattr(options, setting.flag.attribute, None) for setting in with_flags if setting.flag}


def _add_common(parser: Parser, has_outcome: bool = True) -> None:
    _add_settings(parser, parser.prog.split()[-1])
    group = parser.add_argument_group("common")
    files = "a configuration file; may be repeated, later ones win"
    group.add_argument("-c", "--config-file", metavar="F", action="append", default=[], help=files)
    group.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="sets", help="set one key; may be repeated")
    group.add_argument("--json", action="store_true", help="print one JSON document instead of text (docs/json.md)")
    if has_outcome:
        group.add_argument("--report-file", metavar="F", help="also write this document to a file, local or on HDFS")
        group.add_argument("--properties-out", metavar="F", help=PROPERTIES_HELP)


def find_properties_out(words: Sequence[str]) -> Optional[str]:
    """The value of --properties-out, even if the rest of the command line is wrong."""
    found = None
    for word, following in zip(words, [*words[1:], None]):
        if word == "--properties-out":
            found = following
        elif word.startswith("--properties-out="):
            found = word.partition("=")[2]
    return found
