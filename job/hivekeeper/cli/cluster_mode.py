"""Both ends of a run in YARN cluster mode: the driver sends its output, the launcher shows it and exits with the driver's exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Callable, List

from hivekeeper.cli import command_line, output, parser
from hivekeeper.codes import Exit
from hivekeeper.errors import HivekeeperError, Unusable
from hivekeeper.launch import driver_failure, driver_output, output_files
from hivekeeper.report.text import clean_text


def run_in_driver(words: List[str], place: str, run: Callable[[List[str]], int]) -> int:
    """Run and send everything the operator should see to `place`, where the launcher fetches it."""
    from hivekeeper.cluster.driver_output import send

    near, asked_for = driver_output.bring_near(words)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = run(near)
    files = {asked: Path(beside).read_text("utf-8") for asked, beside in asked_for.items() if os.path.exists(beside)}
    kept = Path(driver_output.LOG)
    its_log = driver_output.cut_log(kept.read_text("utf-8", "replace")) if kept.exists() else ""
    try:
        send(place, driver_output.write(driver_output.DriverOutput(code, text.getvalue(), its_log, files)))
    except Unusable as error:
        # The work is already done, and the exit code still reaches the launcher through spark-submit's output.
        output.show_error(error, [])
    # So that the container's log holds the answer too.
    with contextlib.suppress(HivekeeperError):
        output.print_answer(text.getvalue(), end="", code=code)
    return code


def receive_driver_output(words: List[str]) -> int:
    """Print, write and exit as the driver would have done here; bin/hivekeeper calls this after a run in cluster mode."""
    end = words.index("--")
    place, submit_log, container_log, status = (*map(Path, words[: end - 1]), int(words[end - 1]))
    asked = words[end + 1 :]
    application = driver_failure.find_application(_read_if_there(submit_log))
    if not place.exists():
        return show_fate(driver_failure.judge(_read_if_there(submit_log), status), _read_if_there(container_log), asked)
    received = driver_output.read(place.read_text("utf-8"))
    with contextlib.suppress(OSError):
        sys.stderr.write(received.log)
    for path in driver_output.bring_near(asked)[1]:
        # Write only files requested on this command line, whatever the document says.
        if path in received.files:
            output_files.write_local(path, received.files[path].removesuffix("\n"))
    output.print_answer(received.text, end="", code=received.code)
    if received.code and application:
        with contextlib.suppress(OSError):
            print(f"hivekeeper: all of the driver's log: {driver_failure.log_command(application)}", file=sys.stderr)
    return received.code


def show_fate(fate: driver_failure.Fate, container_log: str, asked: List[str]) -> int:
    """Print how a run without output ended, and the relevant lines of its log."""
    output.forget_properties(parser.find_properties_out(asked))
    for line in driver_failure.pick_lines(container_log):
        print(clean_text(line), file=sys.stderr)
    if fate.exit_code in set(Exit):
        return output.show_reason(fate.reason, Exit(fate.exit_code), [command_line.RECEIVE_DRIVER_OUTPUT, "--", *asked])
    output.print_problem(fate.reason)
    return fate.exit_code


def _read_if_there(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""
