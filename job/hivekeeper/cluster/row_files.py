"""Writes and reads the catalogue's Parquet files in the driver's JVM, with the Parquet library of Spark: no application is needed."""

from __future__ import annotations

import json
from itertools import islice
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import JAVA_ERRORS, files_error, java_causes
from hivekeeper.ports import Row

# Rows in one call: a few megabytes of text.
ROWS_AT_ONCE = 5000


class ParquetRowFiles:
    """`ports.RowFiles` on the file system of each path."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def write(
        self,
        path: str,
        columns: Mapping[str, str],
        rows: Iterable[Row],
        source: str = "",
        keys: Sequence[str] = (),
        without: Iterable[Sequence[str]] = (),
    ) -> int:
        file = self._gateway.helper("catalogue.RowFile", self._gateway.hadoop_conf)
        _ask(file.create, path, json.dumps(dict(columns)))
        try:
            if source:
                _ask(file.copy, source, json.dumps(list(keys)), json.dumps([list(each) for each in without]))
            remaining = iter(rows)
            while some := [list(row) for row in islice(remaining, ROWS_AT_ONCE)]:
                _ask(file.append, json.dumps(some, allow_nan=False))
            return int(_ask(file.close))
        except BaseException:
            file.abandon()
            raise

    def read(self, path: str, columns: Mapping[str, str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        file = self._gateway.helper("catalogue.RowFile", self._gateway.hadoop_conf)
        # A filter sees only the columns that are read.
        asked = {**columns, **dict.fromkeys((column for column in only if column not in columns), "string")}
        _ask(file.read, path, json.dumps(asked), json.dumps(dict(only)))
        while some := json.loads(_ask(file.next, ROWS_AT_ONCE)):
            for cells in some:
                yield tuple(cells[: len(columns)])


def _ask(method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except JAVA_ERRORS as error:
        raise files_error(java_causes(error)) from error
