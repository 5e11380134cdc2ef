"""What a signal does to a command, on the driver's side. tests/spark/test_signals.py sends real ones to real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hivekeeper.cluster.signals import SAME_WISH_S, Signals

JOB = Path(__file__).parents[2] / "job"

# A driver that gets the same signal at these seconds of its clock, and reports after each one that it is still alive.
DRIVER = """
import os, signal, sys
from hivekeeper.cluster.signals import Signals
moments = [float(word) for word in sys.argv[1:]]
now = [0.0]
signals = Signals(patient=True, now_s=lambda: now[0])
signal.signal(signal.SIGTERM, signals._receive)
for now[0] in moments:
    os.kill(os.getpid(), signal.SIGTERM)
    print(now[0], flush=True)
"""


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT"), (signal.SIGHUP, "SIGHUP")])
def test_a_patient_command_is_told_which_signal_asked_for_its_end(number, name):
    signals = Signals(patient=True)
    assert (signals.signal, signals.why(), signals.is_asked()) == (0, "", False)
    signals._receive(number, None)
    assert (signals.signal, signals.why(), signals.is_asked()) == (number, f"stopped by {name}", True)


def test_the_same_wish_may_come_twice_and_the_first_counts():
    signals = Signals(patient=True)
    signals._receive(signal.SIGINT, None)
    signals._receive(signal.SIGTERM, None)
    assert signals.signal == signal.SIGINT


def test_another_command_ends_at_once():
    with pytest.raises(SystemExit) as ended:
        Signals(patient=False)._receive(signal.SIGTERM, None)
    assert ended.value.code == 143


def test_while_a_person_is_asked_a_patient_command_ends_at_once_too():
    signals = Signals(patient=True)
    with pytest.raises(SystemExit) as ended, signals.at_once():
        signals._receive(signal.SIGINT, None)
    assert (ended.value.code, signals.signal) == (130, 0)
    signals._receive(signal.SIGINT, None)
    assert signals.signal == signal.SIGINT


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in Signals(patient=True)._heeded
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_wish_ends_the_process_by_that_signal():
    moments = ["10.0", str(10 + SAME_WISH_S), str(10.1 + SAME_WISH_S), "99.0"]
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, *moments], env={"PYTHONPATH": str(JOB)}, capture_output=True, text=True, check=False
    )
    assert (driver.returncode, driver.stdout.split()) == (-signal.SIGTERM, moments[:2]), driver.stderr
