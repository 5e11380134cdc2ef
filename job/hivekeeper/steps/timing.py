"""How long each step of a command on a table took: a line of the log, and a sum in the answer."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from enum import Enum
from typing import Iterator

from hivekeeper.ports import Cluster

log = logging.getLogger(__name__)


class Step(Enum):
    """The steps that are measured; one that is repeated for each batch is summed up."""

    OBSERVE = "observe"
    LOCK = "lock"
    SETTLE = "settle"
    PLAN = "plan"
    RECORD = "record"
    COPY = "copy"
    PROVE = "prove"
    EXCHANGE = "exchange"
    COMPARE = "compare"
    DISCARD = "discard"


@contextmanager
def timed(cluster: Cluster, step: Step) -> Iterator[None]:
    """Measure the body as a part of this step, also if it fails."""
    began = cluster.clock.monotonic_ms()
    try:
        yield
    finally:
        seconds = (cluster.clock.monotonic_ms() - began) / 1000
        cluster.spent[step.value] = cluster.spent.get(step.value, 0.0) + seconds
        log.info("step=%s done seconds=%.2f", step.value, seconds)
