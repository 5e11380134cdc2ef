"""What every unit test is given."""

import logging

import pytest


@pytest.fixture(autouse=True)
def restored_log():
    """A command line sets up the program's log for good: to the stream of one test, unseen by the others."""
    log = logging.getLogger("hivekeeper")
    before = (log.handlers[:], log.level, log.propagate)
    yield
    log.handlers[:], log.level, log.propagate = before
