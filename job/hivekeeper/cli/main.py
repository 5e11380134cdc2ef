"""Words in, exit code out: the only module that prints or exits.

What needs a JVM, or only a result to show, is imported when it is needed: help, configuration and wrong usage answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import secrets
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, List, Mapping, NoReturn, Optional, Sequence, TextIO

from hivekeeper.cli import parser
from hivekeeper.config import files as config_files
from hivekeeper.config import layers, reference
from hivekeeper.config.layers import Config
from hivekeeper.config.sources import DRIVER_OUTPUT
from hivekeeper.errors import Exit, HivekeeperError, Unusable, UsageError
from hivekeeper.launch import driver_failure, driver_output, output_files, spark_submit
from hivekeeper.ports import FilesError, MetastoreUnavailable
from hivekeeper.stop_conditions import HEEDFUL, refuse_local_files

if TYPE_CHECKING:
    from hivekeeper.cluster.signals import Signals
    from hivekeeper.report.results import CommandResult, Problem, TableOutcome

log = logging.getLogger("hivekeeper")

HIVE_SITE = "hive-site.xml"


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run a command line; gives the exit code."""
    words = list(sys.argv[1:] if words is None else words)
    signal.signal(signal.SIGTERM, _on_terminate)
    place = os.environ.get(DRIVER_OUTPUT)
    return run_far_away(words, place) if place else run(words)


def run(words: List[str]) -> int:
    """Everything but the way back to the launcher."""
    try:
        return int(run_words(words))
    except HivekeeperError as error:
        return show_error(error, words)
    except (FilesError, MetastoreUnavailable) as error:
        return show_error(Unusable(str(error), state="consistent", next="mend the cause, then run again"), words)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        log.exception("this is a bug")
        bug = HivekeeperError(f"unexpected: {error!r}", state="the next run recovers what was begun", next="report the traceback above")
        return show_error(bug, words)


def run_far_away(words: List[str], place: str) -> int:
    """Run in YARN's cluster mode and send all that the operator shall see to `place`, where the launcher fetches it."""
    from hivekeeper.cluster.driver_output import send

    near, asked_for = driver_output.bring_near(words)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = run(near)
    # For those who read the container's log.
    print(text.getvalue(), end="", flush=True)
    files = {asked: Path(beside).read_text("utf-8") for asked, beside in asked_for.items() if os.path.exists(beside)}
    kept = Path(driver_output.LOG)
    its_log = driver_output.cut_log(kept.read_text("utf-8", "replace")) if kept.exists() else ""
    try:
        send(place, driver_output.write(driver_output.DriverOutput(code, text.getvalue(), its_log, files)))
    except Unusable as error:
        # What was done is done: the code still comes back, by what spark-submit prints.
        show_error(error, [])
    return code


def receive_driver_output(words: List[str]) -> int:
    """What bin/hivekeeper asks for after a run in cluster mode: show, write and exit as the driver would have done here."""
    end = words.index("--")
    place, submit_log, container_log, status = (*map(Path, words[: end - 1]), int(words[end - 1]))
    asked = words[end + 1 :]
    application = driver_failure.find_application(_read_if_there(submit_log))
    if not place.exists():
        return show_fate(driver_failure.judge(_read_if_there(submit_log), status), _read_if_there(container_log), asked)
    received = driver_output.read(place.read_text("utf-8"))
    sys.stderr.write(received.log)
    sys.stdout.write(received.text)
    for path in driver_output.bring_near(asked)[1]:
        # Only files that were asked for here, whatever the document says.
        if path in received.files:
            output_files.write_local(path, received.files[path].removesuffix("\n"))
    if received.code and application:
        print(f"hivekeeper: all of the driver's log: {driver_failure.log_command(application)}", file=sys.stderr)
    return received.code


def show_fate(fate: driver_failure.Fate, container_log: str, asked: List[str]) -> int:
    """Say what became of a run without output, and the lines of its log that matter."""
    forget_properties(parser.find_properties_out(asked))
    for line in driver_failure.pick_lines(container_log):
        print(line, file=sys.stderr)
    error = HivekeeperError(fate.what, state=fate.state, next=fate.next)
    if fate.code in set(Exit):
        error.code = Exit(fate.code)
        show_error(error, ["receive-driver-output", "--", *asked])
    else:
        from hivekeeper.report import screen
        from hivekeeper.report.results import Problem

        print(screen.render_problem(Problem.of(error)), file=sys.stderr)
    return fate.code


def _read_if_there(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""


def _on_terminate(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def run_words(words: List[str]) -> int:
    """Everything but the rendering of errors."""
    if words[:1] == ["receive-driver-output"]:
        return receive_driver_output(words[1:])
    if words[:1] == ["submit-options"]:
        return print_submit_options(_leave_out_launcher(words))
    parsed = parse(words)
    if parsed.command == "config":
        return print_config(parsed)
    forget_properties(parsed.properties_out)
    config = load_config(parsed)
    parser.read_selection(parsed)
    set_up_log(config.log_level, find_stderr())
    require_packed_python(config, os.getcwd(), sys.prefix)
    return run_on_cluster(parsed, config)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parsed = parser.build_parser().parse_args(words)
    if parsed.command is None:
        raise UsageError("no subcommand is given", next="see hivekeeper --help")
    parser.check_outputs(parsed)
    return parsed


def _leave_out_launcher(words: List[str]) -> List[str]:
    """The words of the operator, of those that bin/hivekeeper asks with."""
    if words[:1] not in (["submit-options"], ["receive-driver-output"]):
        return words
    return words[words.index("--") + 1 :] if "--" in words else words[1:]


def require_packed_python(config: Config, directory: str, prefix: str) -> None:
    """Raise UsageError unless the Python of `prefix` is the packed one, where the driver in `directory` is to run on one."""
    home = spark_submit.find_packed_home(config)
    if home is None or os.path.realpath(os.path.join(directory, home)) == os.path.realpath(prefix):
        return
    raise UsageError(
        f"spark.python_env is {config.spark.python_env}, but the driver runs on the Python in {prefix}, not on the one in ./{home}",
        next="look for a Spark property (spark.extra_conf, spark-defaults.conf) that names another Python; docs/python-env.md",
    )


def load_config(parsed: argparse.Namespace) -> Config:
    """The merged configuration that a command line asks for. Raises UsageError."""
    files = config_files.read_files(os.environ, parsed.config_file)
    config = layers.load(files, os.environ, parser.find_flags(parsed), parsed.sets)
    if config.spark.deploy_mode == "cluster":
        refuse_local_files(config)
    return config


def print_submit_options(words: Sequence[str]) -> Exit:
    """What bin/hivekeeper asks for: the launcher's words, each ended by NUL, so that nothing needs quoting."""
    parsed = parse(words)
    config = load_config(parsed)
    if parsed.command != "config":
        # Here too: a launcher that finds no ticket never starts the run.
        forget_properties(parsed.properties_out)
        parser.read_selection(parsed)
    run_name = f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{secrets.token_hex(8)}"
    launch = spark_submit.launch_words(
        config, sys.executable, config_files.find_log4j2(os.environ), run_name, find_shipped(parsed, config, os.environ)
    )
    sys.stdout.buffer.write(b"".join(os.fsencode(word) + b"\0" for word in launch))
    return Exit.DONE


def find_shipped(parsed: argparse.Namespace, config: Config, environ: Mapping[str, str]) -> List[str]:
    """The files of this machine that a driver in cluster mode needs beside it.

    Spark ships what lies in HADOOP_CONF_DIR and YARN_CONF_DIR, but not the hive-site.xml of its own configuration.
    """
    shipped = []
    if getattr(parsed, "tables_file", None):
        if config.spark.deploy_mode == "cluster" and "," in os.path.abspath(parsed.tables_file):
            raise UsageError(f"Spark cannot ship a file with a comma in its path: {parsed.tables_file}", next="rename it")
        shipped.append(spark_submit.name_shipped(Path(parsed.tables_file), driver_output.TABLES))
    spark_home = config.spark.home or environ.get("SPARK_HOME")
    own = environ.get("SPARK_CONF_DIR") or (spark_home and os.path.join(spark_home, "conf"))
    by_spark = [environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    given = any(path.partition("#")[0].endswith(HIVE_SITE) for path in config.spark.extra_files)
    if own and not given and not any(path and Path(path, HIVE_SITE).exists() for path in by_spark) and Path(own, HIVE_SITE).exists():
        shipped.append(spark_submit.name_shipped(Path(own, HIVE_SITE), HIVE_SITE))
    return shipped


def print_config(parsed: argparse.Namespace) -> Exit:
    if parsed.template:
        print(reference.render_template(), end="")
        return Exit.DONE
    from hivekeeper.report import document, screen

    config, site = load_config(parsed), config_files.find_site(os.environ)
    print(document.to_json(document.build_config(config, site)) if parsed.json else screen.render_config(config, site))
    return Exit.DONE


def run_on_cluster(parsed: argparse.Namespace, config: Config) -> int:
    """Open the cluster, run, print the answer."""
    if parsed.command == "doctor":
        return run_doctor(parsed, config)
    from hivekeeper.cluster.signals import Signals
    from hivekeeper.report import document

    with Signals(patient=parsed.command in HEEDFUL) as signals:
        result = run_connected(parsed, config, signals)
        answer_text = document.to_json(document.build(result)) if parsed.json else render_answer(parsed, result)
        print(answer_text, flush=True)
    return result.exit_code


def run_connected(parsed: argparse.Namespace, config: Config, signals: Signals) -> CommandResult:
    """The result of a command on an open cluster, written to the files that were asked for."""
    from hivekeeper.cli import dispatch
    from hivekeeper.cluster.connect import connect
    from hivekeeper.report import document, properties

    with connect({}, signals, config.log_level) as cluster:
        remote = [path for path in (parsed.report_file, parsed.properties_out) if path and output_files.is_remote(path)]
        output_files.refuse_directories(cluster.files, remote)
        if parsed.properties_out in remote:
            output_files.forget_remote(cluster.files, parsed.properties_out)
        result = dispatch.run_command(parsed, config, cluster, parser.read_selection(parsed), partial(ask_for_rollback, parsed))
        if parsed.report_file:
            output_files.write(cluster.files, parsed.report_file, document.to_json(document.build(result)))
        if parsed.properties_out and parsed.properties_out != "-":
            output_files.write(cluster.files, parsed.properties_out, properties.render(result))
    return result


def run_doctor(parsed: argparse.Namespace, config: Config) -> Exit:
    """A cluster that cannot be opened is a finding. What is asked for is written to local files: there may be no others."""
    from hivekeeper.cli import dispatch
    from hivekeeper.cluster.connect import WallClock, open_probes
    from hivekeeper.report import document, properties

    for path in (parsed.report_file, parsed.properties_out):
        if path and output_files.is_remote(path):
            raise UsageError(f"{path}: doctor writes local files only", next="give a path of this machine")
    result = dispatch.examine(parsed, config, parser.read_selection(parsed), WallClock(), partial(open_probes, config.log_level))
    text = document.to_json(document.build(result))
    if parsed.report_file:
        output_files.write_local(parsed.report_file, text)
    if parsed.properties_out and parsed.properties_out != "-":
        output_files.write_local(parsed.properties_out, properties.render(result))
    print(text if parsed.json else render_answer(parsed, result))
    return result.code


def render_answer(parsed: argparse.Namespace, result: CommandResult) -> str:
    """What a person, or a scheduler that captures the output, reads."""
    from hivekeeper.report import properties, screen

    if parsed.properties_out == "-":
        return properties.render(result)
    return screen.render(result, partitions=getattr(parsed, "partitions", False), width=_width())


def ask_for_rollback(parsed: argparse.Namespace, planned: TableOutcome) -> bool:
    """Show what a rollback will do and, where a person sits at a terminal, ask; a script that runs it has decided already."""
    from hivekeeper.cluster import console
    from hivekeeper.report import screen

    stderr = find_stderr()
    print(screen.render_planned_rollback(planned), file=stderr)
    if parsed.yes:
        return True
    with console.find_terminal() as terminal:
        if terminal is None:
            return True
        print("roll back? [y/N] ", end="", file=stderr, flush=True)
        return terminal.readline().strip().lower() in ("y", "yes")


def forget_properties(path: Optional[str]) -> None:
    """See `outputs.forget_local`; "-" is no file, and one on the cluster is forgotten when that is open."""
    if path and path != "-" and not output_files.is_remote(path):
        output_files.forget_local(path)


def write_properties_of_error(problem: Problem, words: List[str]) -> None:
    """The properties of a run without a result. A file of the cluster is not written: the error may be that there is none."""
    from hivekeeper.report import properties

    path = parser.find_properties_out(words)
    if not path:
        return
    text = properties.render_error(problem, _leave_out_launcher(words)[0])
    if path == "-" and "--json" not in words:
        print(text)
    elif path != "-" and not output_files.is_remote(path):
        output_files.write_local(path, text)


def show_error(error: HivekeeperError, words: List[str]) -> int:
    """Print an error once, in its three lines; gives its exit code."""
    from hivekeeper.report import document, screen
    from hivekeeper.report.results import Problem

    problem = Problem.of(error)
    if "--json" in words:
        print(document.to_json(document.build_error(problem)))
    write_properties_of_error(problem, words)
    print(screen.render_problem(problem), file=find_stderr())
    return int(error.code)


def find_stderr() -> TextIO:
    """Where the log and errors go: never into the answer, which spark-submit would do with our own stderr."""
    from hivekeeper.cluster import console

    return console.find_stderr(copy=driver_output.LOG if os.environ.get(DRIVER_OUTPUT) else None)


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
