"""Open the cluster: one Spark session, the three ports on it, and our identity."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator, Mapping

from hivekeeper.cluster.session import open_session
from hivekeeper.cluster.signals import Signals
from hivekeeper.jail import NOWHERE, confine
from hivekeeper.ports import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hivekeeper.cluster.doctor import ClusterProbes

log = logging.getLogger(__name__)

SPARK_LOG_LEVELS = {"debug": "INFO", "info": "WARN", "warning": "ERROR", "error": "ERROR"}


class WallClock:
    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def sleep_ms(self, ms: float) -> None:
        time.sleep(ms / 1000)


@contextmanager
def connect(options: Mapping[str, str], signals: Signals, log_level: str = "info") -> Iterator[Cluster]:
    """Open the cluster for the body, with signals as its stop condition. Raises Unusable."""
    spark = open_session(options, SPARK_LOG_LEVELS[log_level])
    try:
        with signals.heeded_by(spark):
            yield confine(replace(assemble(spark), stopping=signals), NOWHERE)
    finally:
        _stop(spark)


@contextmanager
def open_probes(log_level: str) -> Iterator[ClusterProbes]:
    """Open the probes for doctor; the metastore is connected on first use. Raises Unusable and UsageError."""
    spark = open_session({}, SPARK_LOG_LEVELS[log_level])
    try:
        from hivekeeper.cluster.doctor import ClusterProbes
        from hivekeeper.cluster.gateway import Gateway

        yield ClusterProbes(Gateway(spark), lambda: confine(assemble(spark), NOWHERE))
    finally:
        _stop(spark)


def _stop(spark: SparkSession) -> None:
    """Stop Spark. If the session has already ended, this must not hide the command's result."""
    from hivekeeper.cluster.java_errors import ALL_ERRORS

    try:
        spark.stop()
    except ALL_ERRORS as error:
        log.warning("step=stop-spark failed reason=%r", str(error))


def assemble(spark: SparkSession) -> Cluster:
    """The ports on an open session."""
    from hivekeeper.cluster.files import HadoopFiles
    from hivekeeper.cluster.gateway import Gateway
    from hivekeeper.cluster.metastore import HiveMetastore
    from hivekeeper.cluster.rows import SparkRows

    gateway = Gateway(spark)
    jvm = gateway.jvm
    return Cluster(
        files=HadoopFiles(gateway),
        metastore=HiveMetastore(gateway),
        rows=SparkRows(gateway),
        clock=WallClock(),
        user=jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getUserName(),
        host=socket.getfqdn(),
        application_id=gateway.spark.sparkContext.applicationId,
        spark_version=gateway.spark.version,
        time_zone=jvm.java.util.TimeZone.getDefault().getID(),
        lost=gateway.find_end,
    )
