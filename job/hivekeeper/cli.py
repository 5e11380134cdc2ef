"""Words in, exit code out: the only module that prints or exits.

What needs a JVM, or only a result to show, is imported when it is needed: help, configuration and wrong usage answer at once.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, List, NoReturn, Optional, Sequence, TextIO

from hivekeeper import config as configuration
from hivekeeper import options, submit
from hivekeeper.config import Config
from hivekeeper.errors import Exit, HivekeeperError, Unusable, UsageError
from hivekeeper.seams import FilesError, MetastoreUnavailable

if TYPE_CHECKING:
    from hivekeeper.report.results import TableOutcome
    from hivekeeper.seams import Cluster

log = logging.getLogger("hivekeeper")


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run a command line; gives the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    signal.signal(signal.SIGTERM, _on_terminate)
    as_json = "--json" in words
    try:
        return int(run_words(words))
    except HivekeeperError as error:
        return show_error(error, as_json)
    except (FilesError, MetastoreUnavailable) as error:
        return show_error(Unusable(str(error), state="consistent", next="mend the cause, then run again"), as_json)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        log.exception("this is a bug")
        bug = HivekeeperError(f"unexpected: {error!r}", state="the next run recovers what was begun", next="report the traceback above")
        return show_error(bug, as_json)


def _on_terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def run_words(words: List[str]) -> Exit:
    """Everything but the rendering of errors."""
    if words[:1] == ["submit-options"]:
        return print_submit_options(words[2:] if words[1:2] == ["--"] else words[1:])
    parsed = parse(words)
    if parsed.command == "config":
        return print_config(parsed)
    config = load_config(parsed)
    options.read_selection(parsed)
    set_up_log(config.log_level, find_stderr())
    return run_on_cluster(parsed, config)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parsed = options.build_parser().parse_args(words)
    if parsed.command is None:
        raise UsageError("no subcommand is given", next="see hivekeeper --help")
    return parsed


def load_config(parsed: argparse.Namespace) -> Config:
    """The merged configuration that a command line asks for. Raises UsageError."""
    flags = {key: getattr(parsed, name, None) for name, key in options.FLAG_KEYS.items()}
    files = configuration.read_files(os.environ, parsed.config_file)
    return configuration.load(files, os.environ, flags, parsed.sets)


def print_submit_options(words: Sequence[str]) -> Exit:
    """What bin/hivekeeper asks for: the launcher's words, each ended by NUL, so that nothing needs quoting."""
    parsed = parse(words)
    config = load_config(parsed)
    if parsed.command != "config":
        options.read_selection(parsed)
    launch = submit.launch_words(config, sys.executable, configuration.find_log4j2(os.environ))
    sys.stdout.buffer.write(b"".join(os.fsencode(word) + b"\0" for word in launch))
    return Exit.DONE


def print_config(parsed: argparse.Namespace) -> Exit:
    if parsed.template:
        print(configuration.template(), end="")
        return Exit.DONE
    from hivekeeper.report import document, screen

    config = load_config(parsed)
    print(document.to_json(document.build_config(config)) if parsed.json else screen.render_config(config))
    return Exit.DONE


def run_on_cluster(parsed: argparse.Namespace, config: Config) -> Exit:
    """Open the cluster, run, print the answer."""
    from hivekeeper import dispatch
    from hivekeeper.cluster.connect import connect
    from hivekeeper.report import document, screen

    with connect({}, config.log_level) as cluster:
        result = dispatch.run_command(parsed, config, cluster, options.read_selection(parsed), partial(ask_for_rollback, parsed))
        text = document.to_json(document.build(result))
        if parsed.report_file:
            write_report(cluster, parsed.report_file, text)
    print(text if parsed.json else screen.render(result, partitions=getattr(parsed, "partitions", False), width=_width()))
    return result.code


def ask_for_rollback(parsed: argparse.Namespace, planned: TableOutcome) -> bool:
    """Show what a rollback will do and, where a person sits at a terminal, ask; a script that runs it has decided already."""
    from hivekeeper.cluster import streams
    from hivekeeper.report import screen

    stderr = find_stderr()
    print(screen.render_planned_rollback(planned), file=stderr)
    if parsed.yes:
        return True
    with streams.find_terminal() as terminal:
        if terminal is None:
            return True
        print("roll back? [y/N] ", end="", file=stderr, flush=True)
        return terminal.readline().strip().lower() in ("y", "yes")


def write_report(cluster: Cluster, path: str, text: str) -> None:
    """A path without scheme is local; the file is replaced whole."""
    aside = f"{path}.{secrets.token_hex(4)}"
    if "://" in path or path.startswith(("hdfs:", "file:")):
        cluster.files.write_new(aside, text + "\n")
        cluster.files.delete_tree(path)
        cluster.files.rename_exact(aside, path)
        return
    try:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(aside, path)
    except OSError as error:
        # The work is done and its result must not be lost for want of a directory.
        log.error("step=report-file failed path=%r reason=%r", path, error.strerror)


def show_error(error: HivekeeperError, as_json: bool) -> int:
    """Print an error once, in its three lines; gives its exit code."""
    from hivekeeper.report import document, screen
    from hivekeeper.report.results import Problem

    problem = Problem.of(error)
    if as_json:
        print(document.to_json(document.build_error(problem)))
    print(screen.render_problem(problem), file=find_stderr())
    return int(error.code)


def find_stderr() -> TextIO:
    """Where the log and errors go: never into the answer, which spark-submit would do with our own stderr."""
    from hivekeeper.cluster import streams

    return streams.find_stderr()


def set_up_log(level: str, stream: TextIO) -> None:
    """One line per step on stderr, UTC, key=value; stdout is for the answer alone."""
    handler = logging.StreamHandler(stream)
    formatter = logging.Formatter("%(asctime)s level=%(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


def _width() -> int:
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 120


if __name__ == "__main__":
    sys.exit(main())
