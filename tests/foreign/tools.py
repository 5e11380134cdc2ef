"""What writers need that are not Python packages: Java machines of their own, so that no writer runs in the program's, and Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, Dict, List

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from cluster.servers.artifacts import Missing, fetch_jars
from foreign.cases import Unavailable

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
JARS = CHECKOUT / ".cache" / "foreign" / "jars"
# Whatever Spark runs the commands: writers are the same everywhere.
PINNED_SPARK = re.findall(r"^pyspark==(.+)$", (CHECKOUT / "packaging" / "dev.txt").read_text("utf-8"), re.M)[0]
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
    "janino-*",
    "commons-compiler-*",
)
# Old versions of ORC's codecs read a field of java.nio, Hive one of java.net.URI; Py4J before 0.10.9.7 calls methods of hidden lists.
PACKAGES = ("java.nio", "sun.nio.ch", "java.net", "java.util")
OPENED = ["-XX:+IgnoreUnrecognizedVMOptions", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in PACKAGES)]
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
        """ForeignRows, which write."""
        return self._compiled("ForeignRows")

    @cached_property
    def reader(self) -> Any:
        """HiveReader, where Hive is."""
        return self._compiled("HiveReader")

    def _compiled(self, name: str) -> Any:
        """An instance of a class here, compiled by the compiler that comes with Spark."""
        compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook((HERE / f"{name}.java").read_text("utf-8"))
        found = compiler.getClassLoader().loadClass(f"foreign.{name}")
        return found.getDeclaredConstructors()[0].newInstance(None)


class Tools:
    """Made once for a session; each tool is made when a writer first asks for it. `spark` is the tests' session."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._started: List[JavaWriters] = []
        self._home = tempfile.TemporaryDirectory()
        self._made: Dict[str, Path] = {}

    @cached_property
    def java(self) -> JavaWriters:
        """parquet-mr and ORC of the pinned Spark."""
        return self._start([f"{pinned_jars()}/*"])

    @cached_property
    def avro(self) -> JavaWriters:
        """parquet-avro beside them."""
        return self._start([f"{pinned_jars()}/*", f"{_fetched('avro')}/*"])

    @cached_property
    def hive(self) -> JavaWriters:
        """hive-exec, with the Parquet and ORC that it brings."""
        jars = [str(jar) for pattern in FOR_HIVE for jar in sorted(pinned_jars().glob(pattern))]
        return self._start([f"{_fetched('hive')}/*", *jars])

    def _start(self, class_path: List[str]) -> JavaWriters:
        self._started.append(JavaWriters(class_path))
        return self._started[-1]

    @property
    def hive_reader(self) -> Any:
        """None in `make test`, which does without Hive's jars."""
        return self.hive.reader if os.environ.get("HKTEST_FOREIGN") else None

    def made_once(self, name: str, write: Callable[[Path], None]) -> List[Path]:
        """Files that many cases hold; `write` makes them when the first one asks for them. Copy them, do not change them."""
        if name not in self._made:
            place = Path(tempfile.mkdtemp(dir=self._home.name))
            write(place)
            self._made[name] = place
        return sorted(self._made[name].iterdir())

    def close(self) -> None:
        while self._started:
            self._started.pop().close()
        self._home.cleanup()


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
    """The Python of a Spark. Raises Unavailable."""
    name = ".venv" if version == PINNED_SPARK else f".venv-spark-{version}"
    python = CHECKOUT / name / "bin" / "python"
    if not python.exists() or shutil.which(str(python)) is None:
        raise Unavailable(f"there is no Spark {version} here; make test-sparks makes it")
    return python


def pinned_jars() -> Path:
    """The jars of the pinned Spark. Raises Unavailable."""
    found = sorted(find_spark(PINNED_SPARK).parents[1].glob("lib/python3*/site-packages/pyspark/jars"))
    if not found:
        raise Unavailable(f"there are no jars of Spark {PINNED_SPARK} here; make venv gets them")
    return found[0]


def run_elsewhere(version: str, program: str, *arguments: str) -> None:
    """Run a program with the Python of another Spark. Raises Unavailable."""
    # Not the packages of the writers, which are for this Python.
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")}
    environment["PYTHONPATH"] = str(CHECKOUT / "tests")
    command = [str(find_spark(version)), program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
