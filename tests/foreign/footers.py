"""Parquet's footers read, and replaced in finished files: for writers that cannot be run here, for damage, and to read bare values.

Field numbers are those of parquet.thrift in apache/parquet-format.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

from foreign import thrift
from foreign.thrift import BINARY, I32, LIST, STRUCT, Struct

MAGIC = b"PAR1"
TAIL = len(MAGIC) + 4
INT32, INT64, INT96, FLOAT, DOUBLE, FIXED = 1, 2, 3, 4, 5, 7
INT96_BYTES = 12

# FileMetaData
SCHEMA, ROW_GROUPS, KEY_VALUES, CREATED_BY = 2, 4, 5, 6
# SchemaElement
TYPE, TYPE_LENGTH, NAME, CHILDREN, CONVERTED, SCALE, PRECISION, LOGICAL = 1, 2, 4, 5, 6, 7, 8, 10
ANNOTATIONS = (CONVERTED, SCALE, PRECISION, LOGICAL)
# RowGroup, ColumnChunk, ColumnMetaData
COLUMNS, META, CHUNK_TYPE, CODEC, DATA_PAGE, STATISTICS = 1, 3, 1, 4, 9, 12

# What has the same bytes in a page: a NaN's bits and INT96 are lost to no reader of these.
BARE = {FLOAT: INT32, DOUBLE: INT64, INT96: FIXED}


class Form(NamedTuple):
    """What decides how readers understand a file's values: the footer's own bytes of the schema, the key-values and created_by."""

    schema: bytes
    key_values: bytes
    created_by: bytes


def split(content: bytes) -> Tuple[bytes, Struct]:
    """A file's bytes before its footer, and the footer. Raises ValueError."""
    if len(content) < TAIL + len(MAGIC) or content[-4:] != MAGIC:
        raise ValueError("no Parquet file with a plain footer")
    size = struct.unpack("<I", content[-TAIL:-4])[0]
    return content[: -TAIL - size], thrift.read_struct(content[-TAIL - size : -TAIL])


def join(body: bytes, footer: Struct) -> bytes:
    written = thrift.write_struct(footer)
    return body + written + struct.pack("<I", len(written)) + MAGIC


def form_of(content: bytes) -> Form:
    _, footer = split(content)
    raw = (thrift.write_struct({number: footer[number]}) if number in footer else b"" for number in (SCHEMA, KEY_VALUES, CREATED_BY))
    return Form(*raw)


def change(path: Path, change_footer: Callable[[Struct], None]) -> None:
    body, footer = split(path.read_bytes())
    change_footer(footer)
    path.write_bytes(join(body, footer))


def sign(path: Path, created_by: Optional[str], key_values: Mapping[str, str]) -> None:
    """Let a file say that somebody else wrote it; None and {} leave the fields out."""

    def change_signs(footer: Struct) -> None:
        for field in (CREATED_BY, KEY_VALUES):
            footer.pop(field, None)
        if created_by is not None:
            footer[CREATED_BY] = (BINARY, created_by.encode())
        if key_values:
            pairs = [{1: (BINARY, key.encode()), 2: (BINARY, value.encode())} for key, value in key_values.items()]
            footer[KEY_VALUES] = (LIST, (STRUCT, pairs))

    change(path, change_signs)


def chunks(footer: Struct) -> Iterator[Struct]:
    """The ColumnMetaData of every column chunk."""
    for group in footer[ROW_GROUPS][1][1]:
        for chunk in group[COLUMNS][1][1]:
            yield chunk[META][1]


def elements(footer: Struct) -> Iterator[Dict[int, Any]]:
    """The elements of the schema, the root first."""
    yield from footer[SCHEMA][1][1]


def set_codec(path: Path, codec: int) -> None:
    def change_codec(footer: Struct) -> None:
        for chunk in chunks(footer):
            chunk[CODEC] = (I32, codec)

    change(path, change_codec)


def rename_columns(path: Path, names: Mapping[str, str]) -> None:
    """In the schema and in the paths of the chunks (top-level columns only)."""

    def change_names(footer: Struct) -> None:
        for element in elements(footer):
            old = element[NAME][1].decode()
            element[NAME] = (BINARY, names.get(old, old).encode())
        for chunk in chunks(footer):
            path_in_schema = chunk[3][1][1]
            path_in_schema[0] = names.get(path_in_schema[0].decode(), path_in_schema[0].decode()).encode()

    change(path, change_names)


def drop_annotations(path: Path, fields: Tuple[int, ...] = (LOGICAL,)) -> None:
    """As writers from before 2018 did, who knew only the converted types."""

    def change_elements(footer: Struct) -> None:
        for element in elements(footer):
            for field in fields:
                element.pop(field, None)

    change(path, change_elements)


def bare(content: bytes) -> bytes:
    """The same pages under a footer whose leaves are whole numbers and bytes, so that a reader can change nothing in the values."""
    body, footer = split(content)
    footer.pop(KEY_VALUES, None)
    for element in elements(footer):
        if CHILDREN not in element or TYPE in element:
            for field in ANNOTATIONS:
                element.pop(field, None)
        if TYPE in element:
            kind = element[TYPE][1]
            element[TYPE] = (I32, BARE.get(kind, kind))
            if kind == INT96:
                element[TYPE_LENGTH] = (I32, INT96_BYTES)
    for chunk in chunks(footer):
        chunk[CHUNK_TYPE] = (I32, BARE.get(chunk[CHUNK_TYPE][1], chunk[CHUNK_TYPE][1]))
        chunk.pop(STATISTICS, None)
    return join(body, footer)
