"""What the operator sees: the answer on stdout, the log and errors on stderr, and the requested files of a failed run."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, TextIO

from hivekeeper.cli import command_line, parser
from hivekeeper.codes import Exit
from hivekeeper.config.sources import DRIVER_OUTPUT
from hivekeeper.errors import HivekeeperError, UsageError
from hivekeeper.launch import driver_output, output_files
from hivekeeper.launch.trusted_files import require_sole_use
from hivekeeper.reasons import Reason
from hivekeeper.report import text

if TYPE_CHECKING:
    from hivekeeper.report.results import CommandResult

log = logging.getLogger("hivekeeper")


def load_reports() -> None:
    """Load now what tells a result: the archive's unpacked files may be swept from /tmp while a command is at work."""
    from hivekeeper.report import document, properties, screen  # noqa: F401


def print_result(parsed: argparse.Namespace, result: CommandResult) -> None:
    """Print the result as text, as a JSON document or as properties."""
    from hivekeeper.report import document, properties, screen

    if parsed.json:
        answer = document.to_json(document.build(result))
    elif parsed.properties_out == "-":
        answer = properties.render(result)
    else:
        answer = screen.render(result, partitions=getattr(parsed, "partitions", False), width=_width())
    print_answer(answer, code=result.exit_code)


def print_answer(answer: str, end: str = "\n", code: int = 0) -> None:
    """In an encoding that lacks characters of a name, these become escapes: the work is done, and its answer must not be lost.

    If it is lost, as where a disk is full, the command fails, unless it has ended with a `code` of its own: what that asks for, no later
    command may ask for again.
    """
    try:
        answer.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        answer = text.escape_for_json(answer, sys.stdout.encoding)
    try:
        with despite_closed_stdout():
            print(answer, end=end, flush=True)
    except OSError as error:
        _leave_stdout()
        lost = HivekeeperError(
            f"the answer cannot be printed: {error.strerror}",
            state="what the command did is done",
            next="make room, then see it with hivekeeper history",
        )
        if not code:
            raise lost from None
        print_problem(lost.reason)


@contextmanager
def despite_closed_stdout() -> Iterator[None]:
    """Ignore a closed stdout (`| head`): the run did not fail, and its own exit code counts."""
    try:
        yield
    except BrokenPipeError:
        _leave_stdout()


def _leave_stdout() -> None:
    """Python flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_error(error: HivekeeperError, words: List[str]) -> int:
    """Print an error once, in its three lines, and return its exit code."""
    return show_reason(error.reason, error.reason.exit, words)


def show_reason(reason: Reason, exit: Exit, words: List[str]) -> int:
    from hivekeeper.report import document

    if "--json" in words:
        print_answer(document.to_json(document.build_error(reason, int(exit))), code=int(exit))
    _write_properties_of_error(reason, exit, words)
    print_problem(reason)
    return int(exit)


def print_problem(reason: Reason) -> None:
    from hivekeeper.report import screen

    with suppress(OSError):
        print(screen.render_problem(reason), file=find_stderr())


def _write_properties_of_error(reason: Reason, exit: Exit, words: List[str]) -> None:
    """Write the properties of a run without a result. A file on the cluster is skipped: the cluster may be what failed."""
    from hivekeeper.report import properties

    path = parser.find_properties_out(words)
    if not path:
        return
    text = properties.render_error(reason, command_line.find_operators_words(words)[0], exit)
    if path == "-" and "--json" not in words:
        print_answer(text, code=int(exit))
    elif _is_own(path):
        output_files.write_local(path, text)


def forget_properties(path: Optional[str]) -> None:
    """Remove a local properties file (see `output_files.forget_local`); one on the cluster is removed once the cluster is open."""
    if path and _is_own(path):
        output_files.forget_local(path)


def _is_own(path: str) -> bool:
    """Whether a path is of a local file that nobody else can exchange: behind somebody's link lies another one of that name."""
    if path == "-" or output_files.is_remote(path):
        return False
    try:
        _require_sole_use(path)
    except (UsageError, OSError):
        # Nor one that is named from a directory that has been removed.
        return False
    return True


def _require_sole_use(path: str) -> None:
    # A driver in cluster mode writes beside itself, below a directory of the NodeManager's user.
    if not os.environ.get(DRIVER_OUTPUT):
        require_sole_use(path, os.environ)


def require_writable_outputs(parsed: argparse.Namespace) -> None:
    """Raise UsageError if a requested local file cannot be written, or if somebody else could exchange it. Files on the cluster are checked
    once it is open.
    """
    for path in (parsed.report_file, parsed.properties_out):
        if path and path != "-" and not output_files.is_remote(path):
            output_files.require_writable_here(path)
            _require_sole_use(path)


def find_stderr() -> TextIO:
    """The stream for the log and errors, kept apart from the answer: spark-submit merges a driver's stderr into stdout."""
    from hivekeeper.cluster import console

    return console.find_stderr(copy=driver_output.LOG if os.environ.get(DRIVER_OUTPUT) else None)


class OneLine(logging.Formatter):
    """One line per record, whatever names it contains. Lines of a stack trace are indented; records are not."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name in logging)
        record.message = text.clean_text(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"  {text.clean_text(line)}" for line in super().formatException(ei).split("\n"))


def set_up_log(level: str, stream: TextIO) -> None:
    """Log one line per step to stderr, UTC, key=value; stdout is for the answer only."""
    handler = logging.StreamHandler(stream)
    formatter = OneLine("%(asctime)s level=%(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
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
