"""Opens the one door from Python to the driver's JVM: compiles our Java helpers, counts calls, names Java errors.

It decides nothing. Everything that grows with files or partitions goes through a helper as one string or array.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

try:
    from pyspark.errors.exceptions.captured import CapturedException
except ImportError:  # Spark 3.3
    from pyspark.sql.utils import CapturedException

# What a call to the JVM raises when Java threw: PySpark replaces some classes (IllegalArgumentException) by exceptions of its own.
JAVA_ERRORS = (Py4JJavaError, CapturedException)

# Compiled classes by JVM and name. Py4J finds methods by the name of their class, so a JVM may see each name once only.
_CLASSES: Dict[Tuple[Any, str], Any] = {}

# Py4J tells the JVM about garbage in commands of its own, at moments that nobody chooses.
_MEMORY_COMMAND = "m\n"


class Cause(NamedTuple):
    """One link of a Java exception's cause chain. For an error from a server, `name` is the class that the server threw."""

    name: str
    message: str

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2].rpartition("$")[2]


class Gateway:
    """The JVM behind a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self.hadoop_conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._client = spark.sparkContext._gateway._gateway_client
        self._bridges: Dict[str, Any] = {}
        self._counter: List[int] = []
        self._mapper: Any = None

    def bridge(self, name: str) -> Any:
        """An instance of the Java class in `cluster/java/NAME.java`, compiled in the driver's JVM when it is first asked for."""
        if name not in self._bridges:
            new_array = self.spark.sparkContext._gateway.new_array
            constructor = self._class(name).getDeclaredConstructor(new_array(self.jvm.java.lang.Class, 0))
            self._bridges[name] = constructor.newInstance(new_array(self.jvm.java.lang.Object, 0))
        return self._bridges[name]

    def _class(self, name: str) -> Any:
        """Janino comes with every Spark (its own code generator needs it), so no jar of ours has to be shipped."""
        if (self._client, name) not in _CLASSES:
            compiler = self.jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(self.jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook(files(__package__).joinpath("java", f"{name}.java").read_text("utf-8"))
            _CLASSES[self._client, name] = compiler.getClassLoader().loadClass(f"hivekeeper.{name}")
        return _CLASSES[self._client, name]

    def strings(self, items: Sequence[str]) -> Any:
        """A Java String[] made in a fixed number of calls; Py4J's own conversion of a list takes one per element."""
        if self._mapper is None:
            self._mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return self._mapper.readValue(json.dumps(list(items)), self.jvm.java.lang.Class.forName("[Ljava.lang.String;"))

    @property
    def calls(self) -> int:
        """Commands sent to the JVM since this was first asked for. The first question installs the counter."""
        if not self._counter:
            self._counter.append(0)
            send = self._client.send_command

            def count_and_send(command: str, *args: Any, **kwargs: Any) -> Any:
                if not command.startswith(_MEMORY_COMMAND):
                    self._counter[0] += 1
                return send(command, *args, **kwargs)

            self._client.send_command = count_and_send
        return self._counter[0]


def java_causes(error: Exception) -> Tuple[Cause, ...]:
    """The chain of Java exceptions behind a Python exception, outermost first; () where there is none.

    The exceptions that PySpark makes itself keep the Java one as `_origin`.
    """
    java = getattr(error, "java_exception", None)
    if java is None:
        java = getattr(error, "_origin", None)
    chain = []
    while java is not None and len(chain) < 20:
        name = str(java.getClass().getName())
        if name == "org.apache.hadoop.ipc.RemoteException":
            name = str(java.getClassName())
        chain.append(Cause(name, str(java.getMessage() or "")))
        java = java.getCause()
    return tuple(chain)


def first_line(causes: Sequence[Cause]) -> str:
    """The innermost message that says anything, in one line; HDFS appends its server's stack trace to messages."""
    for cause in reversed(causes):
        if cause.message.strip():
            return cause.message.strip().splitlines()[0]
    return causes[0].short_name if causes else ""
