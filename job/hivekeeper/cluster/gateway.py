"""The only access from Python to the driver's JVM: creates our Java helpers and counts calls.

It decides nothing. Everything that grows with files or partitions goes through a helper as one string or array.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, List, Sequence

from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.java_classes import compiled

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# Py4J reports garbage to the JVM in commands of its own, at arbitrary times.
_MEMORY_COMMAND = "m\n"


class Gateway:
    """The JVM of a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.jvm: Any = driver.jvm
        self.hadoop_conf: Any = driver.hadoop_conf
        self.java_gateway: Any = driver.java_gateway
        self._client = self.java_gateway._gateway_client
        self._counter: List[int] = []
        self._mapper: Any = None

    @property
    def context(self) -> SparkContext:
        """The application, which starts on first use."""
        return self.driver.context

    @property
    def spark(self) -> SparkSession:
        """The session for Spark SQL, which starts on first use."""
        return self.driver.session

    def helper(self, name: str, *argument: Any) -> Any:
        """A new instance of `cluster/java/NAME.java`, or of `doctor/NAME.java` for `doctor.NAME`.

        For most helpers `argument` is a configuration. Raises Unusable if the sources could not be compiled.
        """
        folder, _, class_name = name.rpartition(".")
        return self._factory.make(compiled(self.java_gateway, folder).find(class_name), *argument)

    @cached_property
    def _factory(self) -> Any:
        package = compiled(self.java_gateway)
        package.factory.make(package.find("PromptAnswers"), self.java_gateway.java_gateway_server)
        return package.factory

    def strings(self, items: Sequence[str]) -> Any:
        """A Java String[], created in a fixed number of calls; Py4J's own list conversion takes one call per element."""
        if self._mapper is None:
            self._mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return self._mapper.readValue(json.dumps(list(items)), self.jvm.java.lang.Class.forName("[Ljava.lang.String;"))

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
