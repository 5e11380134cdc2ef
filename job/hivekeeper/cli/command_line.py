"""Turns the command line into parsed options, the selected tables and the effective configuration.

Contacts nothing; wrong usage is a UsageError.
"""

from __future__ import annotations

import argparse
import os
from typing import List, Optional, Sequence

from hivekeeper import names
from hivekeeper.cli import parser
from hivekeeper.config import files, layers
from hivekeeper.config.layers import Config
from hivekeeper.errors import UsageError
from hivekeeper.launch import output_files
from hivekeeper.launch.trusted_files import require_trusted
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.stop_conditions import refuse_local_files

# bin/hivekeeper puts one of these words first for its own requests; the operator's words follow a --.
SUBMIT_OPTIONS = "submit-options"
RECEIVE_DRIVER_OUTPUT = "receive-driver-output"
EDGE_CHECKS = "edge-checks"


def find_operators_words(words: List[str]) -> List[str]:
    """The operator's words, without the launcher's own."""
    if words[:1] not in ([SUBMIT_OPTIONS], [RECEIVE_DRIVER_OUTPUT], [EDGE_CHECKS]):
        return words
    return words[words.index("--") + 1 :] if "--" in words else words[1:]


def parse(words: Sequence[str]) -> argparse.Namespace:
    parsed = parser.build_parser().parse_args(words)
    if parsed.command is None:
        raise UsageError("no subcommand is given", next="see hivekeeper --help")
    if parsed.json and getattr(parsed, "properties_out", None) == "-":
        raise UsageError("--json and --properties-out - both take the standard output", next="give --properties-out a file")
    return parsed


def load_config(parsed: argparse.Namespace) -> Config:
    """The merged configuration for a command line."""
    # Who can change a list of tables chooses those that a rollback or a cleanup is about.
    lists = filter(None, [getattr(parsed, "tables_file", None)])
    for path in files.find_files(os.environ, [*parsed.config_file, *lists]):
        require_trusted(path, os.environ)
    config = layers.load(files.read_files(os.environ, parsed.config_file), os.environ, parser.find_flags(parsed), parsed.sets)
    if config.spark.deploy_mode == "cluster":
        refuse_local_files(config)
    _check_image(getattr(parsed, "fsimage", None), config)
    return config


def _check_image(path: Optional[str], config: Config) -> None:
    """Raise UsageError for a local image that the driver could not open, before Spark starts."""
    if path is None or output_files.is_remote(path):
        return
    if config.spark.deploy_mode == "cluster":
        raise UsageError(
            f"--fsimage {path} is a file of this machine, but spark.deploy_mode is cluster",
            code=Code.LOCAL_FILE,
            next="copy it to HDFS and name it there, or set spark.deploy_mode to client",
        )
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UsageError(f"--fsimage {path}: {error.strerror}", code=Code.UNREADABLE_IMAGE, next="correct the path") from error


def read_selection(parsed: argparse.Namespace) -> Selection:
    typed, listed = [*getattr(parsed, "named", ()), *parsed.table], []
    for names_of_some in parsed.tables:
        listed += [name.strip() for name in names_of_some.split(",") if name.strip()]
    if parsed.tables_file:
        listed += _read_tables_file(parsed.tables_file)
    tables = [*typed, *listed]
    selected = Selection(tuple(dict.fromkeys(parsed.database)), tuple(dict.fromkeys(tables)), tuple(parsed.exclude), parsed.where)
    can_be_empty = parsed.command == "doctor" or (parsed.command == "catalogue" and parsed.action != "delete")
    # A list may be made from SHOW TABLES: a name in it that somebody gave to their table must not end the command for all others.
    has_some = bool(selected.databases) or any(map(names.is_table_name, tables))
    check_selection(selected, typed if has_some else tables, required=not can_be_empty)
    check_together(parsed, selected)
    return selected


def _read_tables_file(path: str) -> List[str]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise UsageError(f"--tables-file {path}: {error.strerror}", next="correct the path") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--tables-file {path}: not a text in UTF-8", next="correct it") from error
    # Behind a name it would be a part of that, as Hive 4 allows: what is before it may be the name of another table.
    return [line for line in lines if line and not line.startswith("#")]


def check_selection(selection: Selection, tables: Sequence[str], required: bool = True) -> None:
    """Raise UsageError for a selection that no cluster could satisfy. `tables`: those of its names that have to be names of tables."""
    if required and not selection.databases and not selection.tables:
        raise UsageError(
            "no table is selected", code=Code.NO_TABLE_SELECTED, next="give --table DATABASE.TABLE, --tables, --tables-file or --database"
        )
    for name in tables:
        if not names.TABLE.fullmatch(name):
            raise UsageError(f"{name!r} is not a table's name", next="write DATABASE.TABLE, with one dot")
    for name in (*tables, *selection.databases):
        if name.startswith("@"):
            raise UsageError(f"{name!r} names a catalog", next="leave it out: only the metastore's default catalog is looked at")


def check_together(parsed: argparse.Namespace, selected: Selection) -> None:
    """Raise UsageError for options that contradict each other."""
    if parsed.command == "history" and parsed.files != (parsed.of_run is not None):
        raise UsageError("--files and --run belong together", next="give both, or neither to list all runs")
    if parsed.command == "history" and sum((parsed.files, parsed.at is not None, parsed.partitions, parsed.cleanups, parsed.orphans)) > 1:
        raise UsageError("--files, --at, --partitions, --cleanups and --orphans cannot be combined", next="give one of them")
    if getattr(parsed, "orphans", False) and (selected.tables or selected.exclude or parsed.where or getattr(parsed, "run_key", None)):
        raise UsageError("--orphans is about whole databases", next="give --database alone")
    if parsed.command == "history" and parsed.where and (parsed.at is not None or parsed.cleanups):
        name, what = ("--cleanups", "a cleanup") if parsed.cleanups else ("--at", "a version of the log")
        raise UsageError(f"{name} and --where cannot be combined: {what} is of the whole table", next="leave one of them out")
    if parsed.command == "analyze" and parsed.changed and parsed.fsimage:
        raise UsageError("--changed and --fsimage cannot be combined: an image costs the NameNode nothing", next="leave one of them out")
    if parsed.command == "catalogue" and parsed.action in ("purge", "expire") and (selected != Selection() or parsed.key):
        raise UsageError(f"catalogue {parsed.action} is about the whole catalogue", next="leave tables out, or use catalogue delete")
    if getattr(parsed, "sort_columns", None) and not selected.names_one:
        raise UsageError(
            "--sort-columns takes exactly one --table",
            next="name one table, or set sort_columns per table in the configuration under tables:",
        )
