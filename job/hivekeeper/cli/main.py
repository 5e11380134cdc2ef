"""Entry point: selects the program to run and turns each error into a message and an exit code. Only cli/ prints or exits."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import List, NoReturn, Optional, Sequence

from hivekeeper.cli import cluster_mode, command_line, configuration, on_cluster, output
from hivekeeper.config.sources import DRIVER_OUTPUT
from hivekeeper.errors import HivekeeperError, Unusable
from hivekeeper.launch import driver_words
from hivekeeper.launch.packed_python import require_packed_python
from hivekeeper.ports import FilesError, MetastoreUnavailable

log = logging.getLogger("hivekeeper")


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run a command line and return its exit code."""
    # Encoded also where somebody calls by hand what --print shows.
    words = driver_words.unpack(list(sys.argv[1:] if words is None else words))
    signal.signal(signal.SIGTERM, _on_terminate)
    place = os.environ.get(DRIVER_OUTPUT)
    try:
        return cluster_mode.run_in_driver(words, place, run) if place else run(words)
    finally:
        # Help and version are printed by argparse.
        with output.despite_closed_stdout():
            sys.stdout.flush()


def _on_terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def run(words: List[str]) -> int:
    """Run the words, show any error, and return the exit code."""
    try:
        return int(run_words(words))
    except HivekeeperError as error:
        return output.show_error(error, words)
    except (FilesError, MetastoreUnavailable) as error:
        unusable = Unusable(str(error), code=error.code, state="consistent", next="fix the cause, then run again")
        return output.show_error(unusable, words)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        log.exception("this is a bug")
        bug = HivekeeperError(f"unexpected: {error!r}", state="the next run recovers what was begun", next="report the traceback above")
        return output.show_error(bug, words)


def run_words(words: List[str]) -> int:
    if words[:1] == [command_line.RECEIVE_DRIVER_OUTPUT]:
        return cluster_mode.receive_driver_output(words[1:])
    if words[:1] == [command_line.SUBMIT_OPTIONS]:
        return configuration.print_submit_options(command_line.find_operators_words(words))
    if words[:1] == [command_line.EDGE_CHECKS]:
        from hivekeeper.cli import edge_checks

        return edge_checks.check_edge_node(words)
    parsed = command_line.parse(words)
    if parsed.command == "config":
        return configuration.print_config(parsed)
    output.forget_properties(parsed.properties_out)
    config = command_line.load_config(parsed)
    command_line.read_selection(parsed)
    output.require_writable_outputs(parsed)
    output.set_up_log(config.log_level, output.find_stderr())
    require_packed_python(config, os.getcwd(), sys.prefix)
    return on_cluster.run_on_cluster(parsed, config)


if __name__ == "__main__":
    sys.exit(main())
