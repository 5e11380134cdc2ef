"""Writes and reads the catalogue's Parquet files in the driver's JVM, with the Parquet library of Spark: no application is needed."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Sequence

from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import JAVA_ERRORS, files_error, java_causes
from hivekeeper.ports import Row

# Rows in one call, and where it ends earlier: a table's owner chooses the lengths of many cells.
ROWS_AT_ONCE, CHARACTERS_AT_ONCE = 5000, 2**22


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
            for some in _in_pieces(rows):
                _ask(file.append, f"[{','.join(some)}]")
            return int(_ask(file.close))
        except BaseException:
            file.abandon()
            raise

    def read(self, path: str, columns: Mapping[str, str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        file = self._gateway.helper("catalogue.RowFile", self._gateway.hadoop_conf)
        # A filter sees only the columns that are read.
        asked = {**columns, **dict.fromkeys((column for column in only if column not in columns), "string")}
        _ask(file.read, path, json.dumps(asked), json.dumps(dict(only)))
        while some := json.loads(_ask(file.next, ROWS_AT_ONCE, CHARACTERS_AT_ONCE)):
            for cells in some:
                yield tuple(cells[: len(columns)])


def _in_pieces(rows: Iterable[Row]) -> Iterator[List[str]]:
    """The rows in JSON, as many at once as go in one call."""
    some: List[str] = []
    characters = 0
    for row in rows:
        some.append(json.dumps(list(row), allow_nan=False))
        characters += len(some[-1])
        if len(some) >= ROWS_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield some
            some, characters = [], 0
    if some:
        yield some


def _ask(method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except JAVA_ERRORS as error:
        raise files_error(java_causes(error)) from error
