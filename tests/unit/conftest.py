"""Fixtures for every unit test."""

import logging

import pytest


@pytest.fixture(autouse=True)
def restored_log():
    """A command line configures the program's log permanently: to one test's stream, invisible to the others."""
    log = logging.getLogger("hivekeeper")
    before = (log.handlers[:], log.level, log.propagate)
    yield
    log.handlers[:], log.level, log.propagate = before
