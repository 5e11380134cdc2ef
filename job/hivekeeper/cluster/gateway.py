"""Opens the one door from Python to the driver's JVM: compiles our Java helpers, counts calls.

It decides nothing. Everything that grows with files or partitions goes through a helper as one string or array.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Dict, List, Sequence, Tuple

from pyspark.sql import SparkSession

# Compiled classes by JVM and name. Py4J finds methods by the name of their class, so a JVM may see each name once only.
_CLASSES: Dict[Tuple[Any, str], Any] = {}

# Py4J tells the JVM about garbage in commands of its own, at moments that nobody chooses.
_MEMORY_COMMAND = "m\n"


class Gateway:
    """The JVM behind a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self.hadoop_conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._java: Any = spark.sparkContext._gateway
        self._client = self._java._gateway_client
        self._bridges: Dict[str, Any] = {}
        self._counter: List[int] = []
        self._mapper: Any = None

    def bridge(self, name: str) -> Any:
        """An instance of the Java class in `cluster/java/NAME.java`, compiled in the driver's JVM when it is first asked for."""
        if name not in self._bridges:
            new_array = self._java.new_array
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
