"""Few random examples where a developer waits; in CI many, always the same ones, so that a red run means a change."""

import logging
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200, derandomize=True)
settings.load_profile("thorough" if os.environ.get("CI") else "quick")


@pytest.fixture(autouse=True)
def restored_log():
    """A command line sets up the program's log for good: to the stream of one test, unseen by the others."""
    log = logging.getLogger("hivekeeper")
    before = (log.handlers[:], log.level, log.propagate)
    yield
    log.handlers[:], log.level, log.propagate = before
