"""What a case is: files that one writer makes in one directory, and what is to become of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

COMPACTED = "compacted"
# What the program says of a directory without rows.
EMPTY = "empty"

PARQUET, ORC = "parquet", "orc"


class Unavailable(Exception):
    """The writer cannot be run here; the text says what is missing."""


@dataclass(frozen=True)
class Case:
    """One directory. `write` gets the directory, which exists, and the writers' tools; `columns` is the DDL of a table over it.

    `expected`: COMPACTED, EMPTY, or the code of a reason. `is_quick`: it also runs in `make test`, without the other writers' packages.
    """

    name: str
    format: str
    columns: str
    write: Callable[[Path, Any], None]
    expected: str = COMPACTED
    is_quick: bool = False

    @property
    def writer(self) -> str:
        return self.name.partition(".")[0]
