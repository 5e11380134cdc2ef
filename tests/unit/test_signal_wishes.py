"""What a signal does to a command: the driver's side of it. tests/spark/test_signals.py sends real ones to real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivekeeper.cluster.signals import SAME_WISH_S, Signals

JOB = Path(__file__).parents[2] / "job"

# A driver that is in the middle of something for a minute.
DRIVER = """
import signal, sys, time
from hivekeeper.cluster.signals import Signals
signals = Signals(patient=True)
signal.signal(signal.SIGTERM, signals._receive)
print("ready", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    time.sleep(0.1)
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
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], env={"PYTHONPATH": str(JOB)}, stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout.readline() == "ready\n"
        driver.terminate()
        time.sleep(SAME_WISH_S / 4)
        driver.terminate()
        time.sleep(SAME_WISH_S)
        assert driver.poll() is None
        driver.terminate()
        assert driver.wait(30) == -signal.SIGTERM
    finally:
        driver.kill()
        driver.stdout.close()
        driver.wait()
