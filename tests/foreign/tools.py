"""What writers need that are not Python packages: Java machines of their own, so that no writer runs in the program's, and Spark."""

from __future__ import annotations

import os
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, List

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from cluster.servers.artifacts import Missing, fetch_jars
from foreign.cases import Unavailable

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
JARS = CHECKOUT / ".cache" / "foreign" / "jars"
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
# Of Spark's jars, those that Hive needs beside hive-exec: Hadoop's client and what both log with.
FOR_HIVE = (
    "hadoop-client-*",
    "hadoop-shaded-guava-*",
    "commons-lang-2*",
    "commons-logging-*",
    "slf4j-api-*",
    "commons-collections-3*",
    "commons-codec-*",
    "snappy-java-*",
)
# Old versions of ORC's codecs read a field of java.nio.
OPENED = ["-XX:+IgnoreUnrecognizedVMOptions", "--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]
JAVA_OPTIONS = [*OPENED, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Duser.timezone=UTC"]


class JavaWriters:
    """A Java machine with some jars, driven call by call."""

    def __init__(self, class_path: List[str]) -> None:
        home = os.environ.get("JAVA_HOME")
        port, token, self._process = launch_gateway(
            classpath=os.pathsep.join(class_path),
            javaopts=JAVA_OPTIONS,
            java_path=f"{home}/bin/java" if home else "java",
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True, enable_memory_management=False)
        )
        self.jvm = self.gateway.jvm

    def close(self) -> None:
        self.gateway.close()
        # It ends with its standard input.
        self._process.stdin.close()
        self._process.wait(timeout=60)

    @cached_property
    def rows(self) -> Any:
        """ForeignRows, compiled by the compiler that comes with Spark."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook((HERE / "ForeignRows.java").read_text("utf-8"))
        found = compiler.getClassLoader().loadClass("foreign.ForeignRows")
        return found.getDeclaredConstructors()[0].newInstance(None)


class Tools:
    """Made once for a session; each tool is made when a writer first asks for it. `spark` is the tests' session."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._started: List[JavaWriters] = []

    @cached_property
    def java(self) -> JavaWriters:
        """parquet-mr and ORC of the pinned Spark."""
        return self._start([f"{SPARK_JARS}/*"])

    @cached_property
    def avro(self) -> JavaWriters:
        """parquet-avro beside them."""
        return self._start([f"{SPARK_JARS}/*", f"{_fetched('avro')}/*"])

    @cached_property
    def hive(self) -> JavaWriters:
        """hive-exec, with the Parquet and ORC that it brings."""
        jars = [str(jar) for pattern in FOR_HIVE for jar in sorted(SPARK_JARS.glob(pattern))]
        return self._start([f"{_fetched('hive')}/*", *jars])

    def _start(self, class_path: List[str]) -> JavaWriters:
        self._started.append(JavaWriters(class_path))
        return self._started[-1]

    def close(self) -> None:
        while self._started:
            self._started.pop().close()


def _fetched(name: str) -> Path:
    """The directory with the jars of one pom. Raises Unavailable."""
    if not (JARS / name / "pins").exists() and not os.environ.get("HKTEST_FOREIGN"):
        raise Unavailable(f"the jars of pom-{name}.xml are not here; make test-foreign fetches them")
    try:
        fetch_jars([name], HERE, JARS)
    except Missing as error:
        raise Unavailable(str(error)) from error
    return JARS / name


def require_module(name: str) -> Any:
    """An optional package. Raises Unavailable."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unavailable(f"{name} is not installed; make test-foreign installs it") from error


def find_spark(version: str) -> Path:
    """The Python of another Spark. Raises Unavailable."""
    python = CHECKOUT / f".venv-spark-{version}" / "bin" / "python"
    if not python.exists() or shutil.which(str(python)) is None:
        raise Unavailable(f"there is no Spark {version} here; make test-sparks makes it")
    return python
