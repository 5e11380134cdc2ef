"""Signals to real processes: the wrapper, spark-submit's JVM and the driver, on a local table. pyarrow counts the rows."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.count_rows import find_files, fingerprint
from hivekeeper.cluster.signals import SAME_WISH_S
from hivekeeper.reasons import Code
from spark.test_command_line import Place

ROOT = Path(__file__).parents[2]
TABLE = "demo.events_by_date_ref"
PARTITIONS = 36

STARTS_WITHIN_SECONDS = 900
ENDS_WITHIN_SECONDS = 900

# The driver, with a file system that does not return from a rename to a backup directory while the file `slow` exists.
APPLICATION = f"""
import os, sys, time
sys.path[:0] = [{str(ROOT / "job")!r}, {str(ROOT / "tests")!r}]
from support import step_by_step
from hivekeeper.cli.main import main
from hivekeeper.cluster import signals
from hivekeeper.cluster.files import HadoopFiles

# A terminal's one wish reaches the driver twice, the second time through a JVM that takes its time on a busy machine.
if not os.path.exists("slow"):
    signals.SAME_WISH_S = 600.0

rename = HadoopFiles.rename_exact

def rename_slowly(files, source, target):
    rename(files, source, target)
    while "/retired/" in target and os.path.exists("slow"):
        time.sleep(0.05)

HadoopFiles.rename_exact = rename_slowly
HadoopFiles.exchange = step_by_step.exchange
sys.exit(main())
"""


@contextmanager
def heeding_signals():
    """If the tests run under nohup, or in the background of a script, so would their runs, which would then rightly ignore that signal."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Installation(Place):
    """bin/hivekeeper as installed, with the checkout's own code."""

    def __init__(self, home):
        super().__init__(home)
        shutil.copytree(ROOT / "bin", home / "bin")
        (home / "dist").mkdir()
        (home / "dist" / "hivekeeper.py").write_text(APPLICATION)
        self.environ["HIVEKEEPER_PYTHON"] = sys.executable
        self.table = home / "tables" / "events_by_date_ref"

    def start(self, *words):
        """In its own process group, as a shell at a terminal starts it."""
        command = [str(self.home / "bin" / "hivekeeper"), "compact-swap", "--table", TABLE, "--json", *words]
        with open(self.home / "stdout", "wb") as stdout, open(self.home / "stderr", "wb") as stderr:
            streams = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
            with heeding_signals():
                return subprocess.Popen(command, env=self.environ, cwd=self.home, start_new_session=True, **streams)

    def wait_for(self, process, words, times=1):
        """Wait until the log says this."""
        until = time.monotonic() + STARTS_WITHIN_SECONDS
        while self.log().count(words) < times:
            assert process.poll() is None, f"ended with {process.returncode}: {self.log()}"
            assert time.monotonic() < until, f"not said: {words}: {self.log()}"
            time.sleep(0.05)

    def log(self):
        return (self.home / "stderr").read_text("utf-8", "replace")

    def end(self, process, within_seconds=ENDS_WITHIN_SECONDS):
        """Exit code, seconds until the end, and the document."""
        began = time.monotonic()
        code = process.wait(within_seconds)
        return code, time.monotonic() - began, json.loads((self.home / "stdout").read_text())

    def rows(self):
        return fingerprint(list(find_files(str(self.table))))

    def left_in(self, state):
        return list((self.table / ".hivekeeper" / "runs").glob(f"*/{state}/*"))


def count_outcomes(document):
    (table,) = document["tables"]
    return Counter(unit["outcome"] for unit in table["units"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    place = Installation(tmp_path_factory.mktemp("installed"))
    words = ["--location", f"file:{place.home}/tables", "--tables", "events_by_date_ref", "--files", "3", "--rows", "60"]
    days = ",".join(f"2026-01-{day:02d}" for day in range(1, PARTITIONS // 3 + 1))
    made = place.run([sys.executable, str(ROOT / "tests" / "demo" / "generate.py"), *words, "--dates", days])
    assert made.returncode == 0, made.stderr
    return place


def test_a_signal_ends_a_run_in_good_order_and_the_next_run_goes_on(installed, capsys):
    """One test, because each step starts Spark."""
    rows = installed.rows()
    seconds = {}

    # Schedulers and `kill` signal one process, which is Java by then.
    process = installed.start("--set", "batch_units=500")
    installed.wait_for(process, "step=stage begin")
    os.kill(process.pid, signal.SIGTERM)
    code, seconds["TERM while staging"], document = installed.end(process)
    assert (code, document["exit_code"], document["signal"]) == (143, 143, signal.SIGTERM), installed.log()
    assert set(count_outcomes(document)) <= {"swapped", "left"}
    assert count_outcomes(document)["left"] > 0
    assert (installed.left_in("stage"), installed.left_in("ready"), installed.rows()) == ([], [], rows)

    # A terminal signals all processes of the group, so the driver gets two signals.
    process = installed.start("--set", "batch_units=4")
    installed.wait_for(process, "step=swap done")
    os.killpg(process.pid, signal.SIGINT)
    code, seconds["a terminal's INT while swapping"], document = installed.end(process)
    assert (code, document["exit_code"]) == (130, 130), installed.log()
    (table,) = document["tables"]
    # Hadoop starts a process to set a local file's mode; the terminal's signal ends it too, and then live is untouched.
    interrupted = [unit for unit in table["units"] if unit["code"] == Code.CALL_FAILED.code]
    assert len(interrupted) <= 1
    assert {unit["outcome"] for unit in table["units"] if unit not in interrupted} == {"swapped", "left"}
    assert (table["recovered"], table["log_version"] is None) == ([], False)
    assert "stopped by SIGINT" in {unit["reason"] for unit in table["units"]}
    assert (installed.left_in("stage"), installed.left_in("ready"), installed.rows()) == ([], [], rows)

    # Between the two renames of a swap, from a terminal that is closed, and from an operator who does not want to wait.
    (installed.home / "slow").touch()
    backups = len(installed.left_in("retired"))
    process = installed.start("--set", "batch_units=4")
    installed.wait_for(process, "step=stage begin")
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while len(installed.left_in("retired")) <= backups:
        assert time.monotonic() < until, installed.log()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGHUP)
    installed.wait_for(process, "step=stop begin")
    time.sleep(SAME_WISH_S + 0.1)
    assert process.poll() is None
    began = time.monotonic()
    os.kill(process.pid, signal.SIGHUP)
    assert process.wait(ENDS_WITHIN_SECONDS) == 129
    seconds["a second HUP"] = time.monotonic() - began
    assert (installed.home / "stdout").read_text() == ""
    (installed.home / "slow").unlink()

    # The last run has to wait, because of a file that Hadoop looks for.
    pause = installed.home / "pause"
    pause.touch()
    process = installed.start("--set", f"pause_file=file:{pause}")
    installed.wait_for(process, "step=pause waiting")
    pause.unlink()
    code, _, document = installed.end(process, STARTS_WITHIN_SECONDS)
    assert (code, len(document["tables"][0]["recovered"])) == (0, 1), installed.log()
    assert "step=pause done stopped=''" in installed.log()
    assert installed.rows() == rows
    assert sum(1 for _ in find_files(str(installed.table))) == PARTITIONS
    with capsys.disabled():
        sys.stdout.write(f"seconds until the end: { {name: round(taken, 1) for name, taken in seconds.items()} }\n")
