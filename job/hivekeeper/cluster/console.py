"""Finds the stderr and the terminal of the command that an operator or scheduler started.

Under spark-submit these are the JVM's: Spark's PythonRunner redirects the driver's own stderr into stdout, where it
would mix with the answer, and gives the driver a stdin of its own.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Optional, TextIO, Tuple, Type, cast


class _JvmStream(io.TextIOBase):
    """A Java PrintStream as a Python text stream; one gateway call per write. `gone`: what a call raises once Java has ended."""

    def __init__(self, stream: Any, copy: Optional[str], gone: Tuple[Type[Exception], ...]) -> None:
        self._stream = stream
        self._copy = copy
        self._gone = gone

    def write(self, text: str) -> int:
        try:
            self._stream.print(text)
        except self._gone:
            # Java has ended; stderr is the only stream left.
            sys.stderr.write(text)
        if self._copy:
            with open(self._copy, "a", encoding="utf-8") as file:
                file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(*self._gone):
            self._stream.flush()


@contextmanager
def find_terminal() -> Iterator[Optional[TextIO]]:
    """The terminal to read an answer from; None if there is none: a scheduler, a pipe, YARN."""
    if sys.stdin is not None and sys.stdin.isatty():
        yield sys.stdin
        return
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        yield None
        return
    try:
        with open(f"/proc/{os.getppid()}/fd/0", encoding="utf-8") as stdin_of_jvm:
            yield stdin_of_jvm if stdin_of_jvm.isatty() else None
    except OSError:
        yield None


def find_stderr(copy: Optional[str] = None) -> TextIO:
    """The JVM's stderr if spark-submit started us, with an optional copy in a file; else our own."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return sys.stderr
    try:
        from pyspark import SparkContext

        from hivekeeper.cluster.java_errors import ALL_ERRORS
    except ImportError:
        # Opening the session reports the error.
        return sys.stderr
    try:
        SparkContext._ensure_initialized()
        jvm: Any = SparkContext._jvm
        return cast(TextIO, _JvmStream(jvm.java.lang.System.err, copy, ALL_ERRORS))
    except ALL_ERRORS:
        # Java has ended; the reason still has to be printed.
        return sys.stderr
