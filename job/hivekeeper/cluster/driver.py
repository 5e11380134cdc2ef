"""The driver: its JVM at once, a Spark application in it only when files must be read or written, a session only for Spark SQL.

What moves or reads no rows (analyze, history, rollback, cleanup …) needs a file system and the metastore, which the JVM reaches by
itself: no place in a queue, no executors, no seconds of start-up. Only YARN's cluster mode insists on an application.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional

from hivekeeper.cluster import session
from hivekeeper.errors import HivekeeperError, Unusable, UsageError
from hivekeeper.reasons import Code

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# How often a wait for the application checks whether the command should stop.
CHECK_EVERY_S = 0.5
# How long a command that needs no application any more waits for its start, to end it in good order.
MOST_S_OF_A_START = 10.0


class StopAsked(Exception):
    """The command was asked to stop while it waited for the application."""


class Driver:
    """This process and its JVM. Raises UsageError and Unusable, with a message of one line, if something does not start."""

    def __init__(self, options: Mapping[str, str], log_level: str = "WARN", is_stop_asked: Callable[[], bool] = lambda: False) -> None:
        """`options` are Spark's own, and the guards override them. A context that already runs in this process is used."""
        # Imported here, so that a missing PySpark is explained first.
        _require_pyspark()
        from hivekeeper.cluster.java_classes import compiled

        self._log_level, self._is_stop_asked = log_level, is_stop_asked
        settings = {**options, **session.configuration(), session.CATALOG: session.HIVE}
        with _start_errors():
            self.java_gateway = _start_java(settings)
            # It runs beside all that follows.
            compiled(self.java_gateway)
            self.jvm: Any = self.java_gateway.jvm
            self.conf = _make_conf(settings)
            self.hadoop_conf = self._make_hadoop_conf()
        session.require_own_client(self.hadoop_conf)
        self._starting: Optional[threading.Thread] = None
        self._context: Optional[SparkContext] = None
        self._session: Optional[SparkSession] = None
        self._failure: Optional[HivekeeperError] = None
        if self.is_in_cluster or self._is_proxied():
            self.context  # noqa: B018

    @property
    def is_in_cluster(self) -> bool:
        """Whether YARN runs this process (cluster mode). It ends a process that starts no application."""
        return str(self.conf.get("spark.submit.deployMode", "client")) == "cluster"

    def _is_proxied(self) -> bool:
        """Whether another user is impersonated, who has no ticket: only a starting application fetches the metastore's token for one
        (HiveDelegationTokenProvider, Spark 3.3 to 4.0).
        """
        return self.jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getRealUser() is not None

    @cached_property
    def spark_version(self) -> str:
        return str(getattr(getattr(self.jvm.org.apache.spark, "package$"), "MODULE$").SPARK_VERSION())

    @property
    def application(self) -> str:
        """The id of the Spark application, or this process where none has started."""
        return str(self._context.applicationId) if self._context else f"process {os.getpid()}"

    def warm_up(self) -> None:
        """Begin to start the application, without waiting for it. A failure is raised when it is first needed."""
        if self._starting is None:
            # In its own thread PySpark installs no handler of signals. As a daemon it does not hold up a command that ends early.
            self._starting = threading.Thread(target=self._start_context, name="hivekeeper-start-spark", daemon=True)
            self._starting.start()

    @property
    def context(self) -> SparkContext:
        """The application's context; waits until it has started. Raises StopAsked too."""
        self.warm_up()
        while self._starting and self._starting.is_alive():
            self._starting.join(CHECK_EVERY_S)
            if self._is_stop_asked():
                raise StopAsked
        if self._context is None:
            raise self._failure or Unusable("Spark did not start", code=Code.SPARK_NOT_STARTED, next="its own message is above")
        return self._context

    @property
    def session(self) -> SparkSession:
        """The session for Spark SQL, which connects to the metastore by itself. Raises StopAsked too."""
        if self._session is None:
            self.context  # noqa: B018
            with _start_errors():
                self._session = session.open_session()
        return self._session

    def cancel_jobs(self) -> None:
        if self._context:
            self._context.cancelAllJobs()

    def find_end(self) -> str:
        """Why nothing can be asked any more, "" while the JVM runs and with it the application, if there is one."""
        from hivekeeper.cluster.java_errors import ALL_ERRORS

        try:
            stopped = bool(self._context._jsc.sc().isStopped()) if self._context else self.jvm.java.lang.System.nanoTime() is None
        except ALL_ERRORS:
            return "Spark's Java process ended"
        if self._failure:
            return str(self._failure)
        return "Spark's application was stopped" if stopped else ""

    def stop(self, at_once: bool = False) -> None:
        """Stop the application. One that is still waiting for its place in a queue ends with the process."""
        from hivekeeper.cluster.java_errors import ALL_ERRORS

        until = time.monotonic() + MOST_S_OF_A_START
        while self._starting and self._starting.is_alive() and not at_once and not self._is_stop_asked() and time.monotonic() < until:
            self._starting.join(CHECK_EVERY_S)
        try:
            if self._session or self._context:
                (self._session or self._context).stop()  # type: ignore[union-attr]
        except ALL_ERRORS as error:
            # If the application has already ended, this must not hide the command's result.
            log.warning("step=stop-spark failed reason=%r", str(error))

    def _start_context(self) -> None:
        from pyspark import SparkContext

        began = time.monotonic()
        try:
            with _start_errors():
                context = SparkContext.getOrCreate(self.conf)
            session.require_guarded(context)
        except HivekeeperError as error:
            # Whoever needs the application raises it, in the command's own thread.
            self._failure = error
            return
        context.setLogLevel(self._log_level)
        self._context = context
        log.info("step=start-spark done application=%s seconds=%.1f", context.applicationId, time.monotonic() - began)

    def _make_hadoop_conf(self) -> Any:
        """What a context would give its jobs, hive-site.xml included."""
        from pyspark import SparkContext

        running = SparkContext._active_spark_context
        if running is not None:
            return running._jsc.hadoopConfiguration()
        self.jvm.org.apache.spark.util.Utils.setLogLevel(self.jvm.org.apache.logging.log4j.Level.toLevel(self._log_level))
        return self.jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(self.conf._jconf)


def _require_pyspark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise Unusable(
            f"Spark's Python package cannot be imported ({error})",
            next="run it through bin/hivekeeper, or with spark-submit; Spark 3.3 takes Python up to 3.12: set HIVEKEEPER_PYTHON",
        ) from error


@contextmanager
def _start_errors() -> Iterator[None]:
    from hivekeeper.cluster.java_errors import CALL_ERRORS, explain_unusable, java_causes

    try:
        yield
    except CALL_ERRORS as error:
        trouble = explain_unusable(java_causes(error))
        what = f"Spark did not start: {trouble.what}"
        if trouble.configured:
            raise UsageError(what, next=trouble.next) from error
        raise Unusable(what, next=trouble.next, code=trouble.code or Code.SPARK_NOT_STARTED) from error
    except (RuntimeError, OSError) as error:
        # PySpark starts Java through a shell script and sees only that it ended.
        raise Unusable(f"Spark's Java process did not start ({error})", code=Code.SPARK_NOT_STARTED, next=_NEXT_JAVA) from error


_NEXT_JAVA = "its own message is above: mostly JAVA_HOME (Java 8, 11 or 17; for Spark 4: 17 or 21) or HADOOP_CONF_DIR is not set"


def _start_java(settings: Mapping[str, str]) -> Any:
    """PySpark's gateway to the JVM; if none runs yet, it is started as for a context."""
    from pyspark import SparkConf, SparkContext

    if SparkContext._gateway is None:
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))
    return SparkContext._gateway


def _make_conf(settings: Mapping[str, str]) -> SparkConf:
    """spark-submit's and spark-defaults.conf's settings below ours. Java must run already."""
    from pyspark import SparkConf

    conf = SparkConf().setAll(list(settings.items()))
    return conf.setAll(list(session.defaults(conf).items()))
