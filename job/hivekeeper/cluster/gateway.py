"""The only access from Python to the driver's JVM: creates our Java helpers and counts calls.

It decides nothing. Everything that grows with files or partitions goes through a helper as one string or array.
"""

from __future__ import annotations

import json
from typing import Any, List, Sequence, cast

from pyspark.sql import SparkSession

from hivekeeper.cluster.java_classes import compiled

# Py4J reports garbage to the JVM in commands of its own, at arbitrary times.
_MEMORY_COMMAND = "m\n"


class Gateway:
    """The JVM behind a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm
        self.hadoop_conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self.java_gateway: Any = cast(Any, spark.sparkContext._gateway)
        self._client = self.java_gateway._gateway_client
        self._counter: List[int] = []
        self._mapper: Any = None

    def helper(self, name: str, *argument: Any) -> Any:
        """A new instance of `cluster/java/NAME.java`, or of `doctor/NAME.java` for `doctor.NAME`.

        For most helpers `argument` is a configuration. Raises Unusable if the sources could not be compiled.
        """
        folder, _, class_name = name.rpartition(".")
        return compiled(self.java_gateway).factory.make(compiled(self.java_gateway, folder).find(class_name), *argument)

    def strings(self, items: Sequence[str]) -> Any:
        """A Java String[], created in a fixed number of calls; Py4J's own list conversion takes one call per element."""
        if self._mapper is None:
            self._mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return self._mapper.readValue(json.dumps(list(items)), self.jvm.java.lang.Class.forName("[Ljava.lang.String;"))

    def find_end(self) -> str:
        """Why this session can no longer be used, "" while it runs."""
        from hivekeeper.cluster.java_errors import ALL_ERRORS

        try:
            stopped = bool(self.spark.sparkContext._jsc.sc().isStopped())
        except ALL_ERRORS:
            return "Spark's Java process ended"
        return "Spark's application was stopped" if stopped else ""

    @property
    def calls(self) -> int:
        """Commands sent to the JVM since this property was first read, which installs the counter."""
        if not self._counter:
            self._counter.append(0)
            send = self._client.send_command

            def count_and_send(command: str, *args: Any, **kwargs: Any) -> Any:
                if not command.startswith(_MEMORY_COMMAND):
                    self._counter[0] += 1
                return send(command, *args, **kwargs)

            self._client.send_command = count_and_send
        return self._counter[0]
