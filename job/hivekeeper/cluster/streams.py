"""Finds the standard error of the command that a person or scheduler started.

Under spark-submit that is the JVM's: it merges the driver's own stderr into stdout (Spark's PythonRunner redirects
the one into the other), where it would stand in the middle of the answer.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class _JvmStream(io.TextIOBase):
    """A Java PrintStream as a Python text stream; one gateway call per write."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.print(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def find_stderr() -> TextIO:
    """The JVM's where spark-submit started us, else our own."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return sys.stderr
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    return _JvmStream(SparkContext._jvm.java.lang.System.err)
