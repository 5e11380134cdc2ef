"""Open the cluster: the driver, the ports on it, and our identity."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator, Mapping

from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.signals import Signals
from hivekeeper.cluster.uptime import uptime_s
from hivekeeper.jail import NOWHERE, confine
from hivekeeper.ports import Cluster

if TYPE_CHECKING:
    from hivekeeper.cluster.doctor import ClusterProbes

SPARK_LOG_LEVELS = {"debug": "INFO", "info": "WARN", "warning": "ERROR", "error": "ERROR"}


class WallClock:
    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def monotonic_ms(self) -> float:
        return uptime_s() * 1000

    def sleep_ms(self, ms: float) -> None:
        time.sleep(ms / 1000)


@contextmanager
def connect(options: Mapping[str, str], signals: Signals, log_level: str = "info") -> Iterator[Cluster]:
    """Open the cluster for the body, with signals as its stop condition. Raises Unusable."""
    driver = Driver(options, SPARK_LOG_LEVELS[log_level], signals.is_asked)
    try:
        with signals.heeded_by(driver):
            yield confine(replace(assemble(driver), stopping=signals), NOWHERE)
    except BaseException:
        driver.stop(at_once=True)
        raise
    driver.stop()


@contextmanager
def open_probes(options: Mapping[str, str], log_level: str) -> Iterator[ClusterProbes]:
    """Open the probes for doctor; the metastore is connected on first use. Raises Unusable and UsageError."""
    driver = Driver(options, SPARK_LOG_LEVELS[log_level])
    try:
        from hivekeeper.cluster.doctor import ClusterProbes
        from hivekeeper.cluster.gateway import Gateway

        yield ClusterProbes(Gateway(driver), lambda: confine(assemble(driver), NOWHERE))
    finally:
        driver.stop()


def assemble(driver: Driver) -> Cluster:
    """The ports on a driver."""
    from hivekeeper.cluster.beside import BesideJobs
    from hivekeeper.cluster.files import HadoopFiles
    from hivekeeper.cluster.gateway import Gateway
    from hivekeeper.cluster.metastore import HiveMetastore
    from hivekeeper.cluster.row_files import ParquetRowFiles
    from hivekeeper.cluster.rows import SparkRows

    gateway = Gateway(driver)
    jvm, files = gateway.jvm, HadoopFiles(gateway)
    return Cluster(
        files=files,
        metastore=HiveMetastore(gateway),
        rows=SparkRows(gateway, files.exact),
        row_files=ParquetRowFiles(gateway),
        clock=WallClock(),
        user=jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName(),
        host=socket.getfqdn(),
        application=lambda: driver.application,
        spark_version=driver.spark_version,
        time_zone=jvm.java.util.TimeZone.getDefault().getID(),
        lost=driver.find_end,
        beside=BesideJobs(),
    )
