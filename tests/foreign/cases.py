"""What a case is: files that one writer makes in one directory, and what is to become of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping

COMPACTED = "compacted"
# What the program says of a directory without rows.
EMPTY = "empty"

PARQUET, ORC = "parquet", "orc"


class Unavailable(Exception):
    """The writer cannot be run here; the text says what is missing."""


@dataclass(frozen=True)
class Case:
    """One directory. `write` gets the directory, which exists, and the writers' tools; `columns` is the DDL of a table over it.

    `expected`: COMPACTED, EMPTY, or the code of a reason; `expected_on` has the exceptions, by the minor version of the Spark that runs the
    commands (`3.3`), whose libraries read less or more. `is_quick`: it also runs in `make test`, without the other writers' packages.
    """

    name: str
    format: str
    columns: str
    write: Callable[[Path, Any], None]
    expected: str = COMPACTED
    is_quick: bool = False
    expected_on: Mapping[str, str] = field(default_factory=dict)

    def expected_with(self, spark: str) -> str:
        """`spark` is a version."""
        return self.expected_on.get(".".join(spark.split(".")[:2]), self.expected)

    @property
    def writer(self) -> str:
        return self.name.partition(".")[0]
