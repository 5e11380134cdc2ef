"""Drivers for tests: each is a client of its own of the JVM and the application that the `spark` fixture has started."""

from __future__ import annotations

from hivekeeper.cluster.connect import assemble
from hivekeeper.cluster.driver import Driver
from hivekeeper.ports import Cluster


def another_driver() -> Driver:
    return Driver({}, "ERROR")


def another_cluster() -> Cluster:
    return assemble(another_driver())
