"""Decide how a run in YARN cluster mode ended if its driver left no output, from what spark-submit and YARN wrote.

Pure: texts in, an exit code and a reason out. In doubt the run is assumed to have begun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional

from hivekeeper.reasons import Code, Reason

APPLICATION = re.compile(r"\bapplication_\d+_\d+\b")

# How spark-submit reports the driver's own exit code.
DRIVER_CODE = re.compile(r"User application exited with status (\d{1,3})\b")

KILLED = re.compile(r"Application application_\d+_\d+ (?:is|was) killed|final status: KILLED|state: KILLED")

# How YARN reports that the driver's container was killed from outside. YARN's own reasons are negative; memory is -103 and -104.
CONTAINER = re.compile(r"AM Container for \S+ exited with\s+exitCode: (-?\d+)")
MEMORY = ("-103", "-104")

# How Java and YARN report that nothing was started. What a proxy user gets says only that it has a cause.
REFUSAL = re.compile(r"Exception in thread \"main\" (?:[\w.$]+\.)?(?!UndeclaredThrowableException)(\w+(?:Exception|Error)\b.*)")
CAUSE = re.compile(r"Caused by: (?:[\w.$]+\.)?(\w+(?:Exception|Error)\b.*)")

# Reasons that a retry cannot fix: the configuration is wrong.
CONFIGURED = re.compile(
    r"unknown queue|permission to submit|cannot submit applications?|Login failure|Unable to obtain password|is above the max threshold"
    r"|FileNotFoundException|0\.0\.0\.0:80\d\d"
)

# YARN's own diagnosis of a failed application.
DIAGNOSIS = re.compile(r"Application diagnostics message: (.+)")

BEGUN = re.compile(r"state: RUNNING|User application exited|User class threw")

# A line of a log that says what went wrong.
TELLING = re.compile(r"\b(?:ERROR|FATAL)\b|^Traceback|^[\w.]*(?:Error|Exception)\b|^Exception in thread|^Caused by:|No such file")

LINES = 20


@dataclass(frozen=True)
class Fate:
    """How a run without output ended. `exit_code` is 128+n if it was killed."""

    exit_code: int
    reason: Reason


def find_application(log: str) -> Optional[str]:
    found = APPLICATION.search(log)
    return found[0] if found else None


def judge(log: str, status: int) -> Fate:
    """The fate of a run: `log` is what spark-submit wrote, `status` its own exit code."""
    application = find_application(log)
    container = CONTAINER.search(log)
    # Behind that, YARN quotes the end of the container's own log, in which names of tables and files say what somebody has chosen.
    said = log[: container.start()] if container else log
    driver = DRIVER_CODE.findall(said)
    see = f"read {log_command(application)}" if application else "read spark-submit's own messages above"
    begun = "what was begun is recovered by the next run"
    if driver:
        what = f"the driver ended with exit code {driver[-1]} and its output did not come back"
        return Fate(int(driver[-1]), Reason(Code.OUTPUT_LOST, what, see, begun))
    if status == 0:
        what = "the run is done, but its output did not come back"
        return Fate(0, Reason(Code.OUTPUT_LOST, what, f"hivekeeper history shows it; or {see}", "done"))
    if KILLED.search(said):
        return Fate(143, Reason(Code.KILLED_ON_YARN, f"{application} was killed on YARN", "run again", begun))
    if container and container[1] in MEMORY:
        what = "YARN killed the driver, which took too much memory"
        return Fate(137, Reason(Code.DRIVER_OUT_OF_MEMORY, what, "raise spark.driver_memory_overhead", begun))
    if container and int(container[1]) > 128:
        what = f"the driver's container was killed (exit code {container[1]})"
        return Fate(int(container[1]), Reason(Code.KILLED_ON_YARN, what, f"run again; {see}", begun))
    if BEGUN.search(log) or container:
        diagnosis = DIAGNOSIS.search(log)
        what = f"the driver ended without output{': ' + diagnosis[1][:300] if diagnosis else ''}"
        return Fate(1, Reason(Code.DRIVER_FAILED, what, see, begun))
    reason = find_reason(log)
    what = f"nothing was started on YARN{': ' + reason if reason else ''}"
    if CONFIGURED.search(reason):
        return Fate(2, Reason(Code.SUBMISSION_REFUSED, what, "correct the configuration", "no table was touched"))
    return Fate(8, Reason(Code.CLUSTER_UNUSABLE, what, "fix the cause, then run again", "no table was touched"))


def find_reason(log: str) -> str:
    """Java's own message about a failed submission."""
    found = REFUSAL.search(log) or CAUSE.search(log)
    return found[1].strip()[:300] if found else ""


def pick_lines(log: str) -> List[str]:
    """The relevant lines of a container's log: the three lines of the driver's own last error, else the last lines that report errors."""
    lines = log.splitlines()
    own = [number for number, line in enumerate(lines) if line.startswith("hivekeeper: ")]
    if own:
        return lines[own[-1] : own[-1] + 3]
    return [line for line in lines if TELLING.search(line)][-LINES:]


def log_command(application: str) -> str:
    """With an end that shows control characters: an executor's log quotes names and values that others have chosen."""
    return f"yarn logs -applicationId {application} -log_files stdout,stderr | cat -v"
