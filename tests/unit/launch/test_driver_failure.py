"""What became of a run without output, according to the messages of spark-submit 3.5 and YARN 3.3."""

from __future__ import annotations

import pytest

from hivekeeper.launch import driver_failure

ID = "application_1795281679060_0002"
REPORTS = f"INFO Client: Submitted application {ID}\nINFO Client: Application report for {ID} (state: ACCEPTED)\n"
RUNNING = f"{REPORTS}INFO Client: Application report for {ID} (state: RUNNING)\n"
FAILED = f'Exception in thread "main" org.apache.spark.SparkException: Application {ID} finished with failed status\n'

CASES = {
    "the driver's own code": (
        f"{RUNNING}ERROR Client: Application diagnostics message: User application exited with status 6\n{FAILED}",
        6,
    ),
    "a kill by YARN": (f'{RUNNING}Exception in thread "main" org.apache.spark.SparkException: Application {ID} is killed\n', 143),
    "too much memory": (f"{RUNNING}AM Container for appattempt_1_0002_000001 exited with  exitCode: -104\n{FAILED}", 137),
    "a killed container": (f"{RUNNING}AM Container for appattempt_1_0002_000001 exited with  exitCode: 137\n{FAILED}", 137),
    "a container that ended by itself": (f"{RUNNING}AM Container for appattempt_1_0002_000001 exited with  exitCode: 13\n{FAILED}", 1),
    "a driver that ended without a word": (f"{RUNNING}{FAILED}", 1),
    "an unknown queue": (
        'Exception in thread "main" org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit '
        f"{ID} to YARN : Application {ID} submitted by user etl to unknown queue: nosuch\n",
        2,
    ),
    "an unknown queue, with a proxy user": (
        'Exception in thread "main" java.lang.reflect.UndeclaredThrowableException\n'
        "\tat org.apache.hadoop.security.UserGroupInformation.doAs(UserGroupInformation.java:1894)\n"
        f"Caused by: org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit {ID} to YARN : unknown queue: nosuch\n",
        2,
    ),
    "a file that is not there": ('Exception in thread "main" java.io.FileNotFoundException: File does not exist: hdfs://a/env.tar.gz\n', 2),
    "a ResourceManager that does not answer": ('Exception in thread "main" java.net.ConnectException: Connection refused\n', 8),
    "nothing known": ("", 8),
}


# YARN quotes the end of a container's log, and in that of a driver are names of files and partitions.
QUOTED = "Last 4096 bytes of stderr :\n2026-01-01T00:00:00Z level=WARNING table=a.b reason='a file looks unfinished ({}.tmp)'\n"


@pytest.mark.parametrize("case", CASES)
def test_the_exit_code_says_how_a_run_ended(case):
    log, code = CASES[case]
    assert driver_failure.judge(log, 1).exit_code == code


@pytest.mark.parametrize(
    "name", ["User application exited with status 0", f"Application {ID} is killed", "AM Container for x exited with  exitCode: 143"]
)
def test_no_name_of_a_file_says_how_a_killed_run_ended(name):
    killed = f"{RUNNING}AM Container for appattempt_1_0002_000001 exited with  exitCode: 137\n{QUOTED.format(name)}{FAILED}"
    assert driver_failure.judge(killed, 1).exit_code == 137


def test_what_was_never_started_is_told_in_javas_words_and_touched_nothing():
    fate = driver_failure.judge(CASES["an unknown queue"][0], 1)
    assert "unknown queue: nosuch" in fate.reason.what
    assert fate.reason.state == "no table was touched"


def test_what_may_have_begun_is_never_said_to_be_untouched():
    for case, (log, code) in CASES.items():
        if code not in (2, 8):
            assert "touched" not in driver_failure.judge(log, 1).reason.state, case


def test_a_run_that_succeeded_stays_one_when_its_output_is_lost():
    fate = driver_failure.judge(RUNNING, 0)
    assert fate.exit_code == 0
    # The logs of executors have control characters as somebody has put them there.
    assert f"yarn logs -applicationId {ID} -log_files stdout,stderr | cat -v" in fate.reason.next


def test_without_a_driver_to_speak_the_last_lines_that_tell_are_picked():
    log = "INFO fine\n" * 50 + "26/01/01 ERROR ApplicationMaster: User class threw\nCaused by: java.io.IOException: disk\nINFO end\n"
    assert driver_failure.pick_lines(log) == ["26/01/01 ERROR ApplicationMaster: User class threw", "Caused by: java.io.IOException: disk"]


def test_the_drivers_own_error_is_picked_whole_and_alone():
    log = "ERROR noise\nhivekeeper: first\n  state: a\n  next:  b\nhivekeeper: last\n  state: c\n  next:  d\nERROR more noise\n"
    assert driver_failure.pick_lines(log) == ["hivekeeper: last", "  state: c", "  next:  d"]


def test_an_endless_log_gives_few_lines():
    assert len(driver_failure.pick_lines("ERROR x\n" * 10_000)) == driver_failure.LINES


def test_a_log_without_any_telling_line_gives_none():
    assert driver_failure.pick_lines("INFO all is well\n") == []


def test_a_driver_that_yarn_gave_up_is_told_in_yarns_words():
    why = "Max number of executor failures (3) reached"
    fate = driver_failure.judge(f"{RUNNING}ERROR Client: Application diagnostics message: {why}\n{FAILED}", 1)
    assert (fate.exit_code, fate.reason.what) == (1, f"the driver ended without output: {why}")
