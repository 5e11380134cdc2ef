"""Parquet files of some hundred bytes in which a count, a length or a size makes a decoder ask for gigabytes.

Each has one column and is sound but for that number. Encodings are numbered as in the format's `Encoding`.
"""

from __future__ import annotations

import struct
from typing import Callable, List, Mapping, Optional, Sequence

import pyarrow as pa

from support.hostile_files import (
    BINARY,
    I32,
    I64,
    LIST,
    MAGIC,
    MOST,
    SNAPPY,
    STRUCT,
    UTF8_CODEC_NONE,
    Field,
    varint,
    whole,
    write_struct,
    zigzag,
)

BOOLEAN, INT32, BYTE_ARRAY = 0, 1, 6
PLAIN, RLE, BIT_PACKED, DELTA, DELTA_LENGTH, DELTA_STRINGS, DICTIONARY, BYTE_STREAM_SPLIT = 0, 3, 4, 5, 6, 7, 8, 9
V1, DICTIONARY_PAGE, V2 = 0, 2, 3
GROUPS = 1 << 27
ROWS = 3


def file_of(
    pages: bytes, kind: int = INT32, optional: bool = False, codec: int = UTF8_CODEC_NONE, rows: int = ROWS, length: int = 0
) -> bytes:
    """`length` is that of the pages if some of their bytes are left out."""
    column: List[Field] = [
        (1, I32, kind),
        (2, LIST, (I32, 1, [PLAIN])),
        (3, LIST, (BINARY, 1, [b"id"])),
        (4, I32, codec),
        (5, I64, rows),
        (6, I64, MOST),
        (7, I64, length or len(pages)),
        (9, I64, len(MAGIC)),
    ]
    group: List[Field] = [
        (1, LIST, (STRUCT, 1, [[(2, I64, len(MAGIC)), (3, STRUCT, column)]])),
        (2, I64, MOST),
        (3, I64, rows),
    ]
    schema: List[List[Field]] = [[(4, BINARY, b"root"), (5, I32, 1)], [(1, I32, kind), (3, I32, int(optional)), (4, BINARY, b"id")]]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, 2, schema)), (3, I64, rows), (4, LIST, (STRUCT, 1, [group]))]
    return whole(pages, write_struct(fields))


def page(
    body: bytes,
    encoding: int = PLAIN,
    rows: int = ROWS,
    levels: int = RLE,
    size: int = -1,
    compressed: Optional[int] = None,
    more: Sequence[Field] = (),
) -> bytes:
    """A data page of version 1; `size` is the decompressed one."""
    about: List[Field] = [(1, I32, rows), (2, I32, encoding), (3, I32, levels), (4, I32, levels), *more]
    stored = len(body) if compressed is None else compressed
    return write_struct([(1, I32, V1), (2, I32, len(body) if size < 0 else size), (3, I32, stored), (5, STRUCT, about)]) + body


def page_v2(body: bytes, definitions: bytes = b"", encoding: int = PLAIN, size: int = -1) -> bytes:
    """`size` is that of the decompressed body."""
    about: List[Field] = [(1, I32, ROWS), (2, I32, 0), (3, I32, ROWS), (4, I32, encoding), (5, I32, len(definitions)), (6, I32, 0)]
    stored = len(definitions) + len(body)
    whole = stored if size < 0 else len(definitions) + size
    return write_struct([(1, I32, V2), (2, I32, whole), (3, I32, stored), (8, STRUCT, about)]) + definitions + body


def dictionary(body: bytes, count: int, size: int = -1) -> bytes:
    about: List[Field] = [(1, I32, count), (2, I32, PLAIN)]
    whole = len(body) if size < 0 else size
    return write_struct([(1, I32, DICTIONARY_PAGE), (2, I32, whole), (3, I32, len(body)), (7, STRUCT, about)]) + body


def with_length(body: bytes) -> bytes:
    return struct.pack("<i", len(body)) + body


def run(groups: int = GROUPS) -> bytes:
    """A bit-packed run of so many groups of eight values, with the bits of one."""
    return varint(groups << 1 | 1) + b"\0"


def deltas(total: int = ROWS, block: int = 128, parts: int = 4, first: int = 0, widths: bytes = bytes(4)) -> bytes:
    return varint(block) + varint(parts) + varint(total) + zigzag(first) + zigzag(0) + widths


class Claimed(bytes):
    """No bytes that claim a length."""

    def __new__(cls, length: int) -> Claimed:
        made = super().__new__(cls)
        made.length = length  # type: ignore[attr-defined]
        return made

    def __len__(self) -> int:
        return self.length  # type: ignore[attr-defined,no-any-return]


NUMBERS = struct.pack("<iii", 7, 8, 9)
LONG = 1_900_000_000

SOUND: Mapping[str, Callable[[], bytes]] = {
    "plain": lambda: file_of(page(NUMBERS)),
    "dictionary": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\x02" + varint(1 << 1 | 1) + b"\x24\0", DICTIONARY)),
    "levels": lambda: file_of(page(with_length(run(1)[:1] + b"\x07") + NUMBERS), optional=True),
    "version 2": lambda: file_of(page_v2(NUMBERS, run(1)[:1] + b"\x07"), optional=True),
    "deltas": lambda: file_of(page(deltas(), DELTA)),
    "strings": lambda: file_of(page(deltas() + deltas(first=1) + b"abc", DELTA_STRINGS), BYTE_ARRAY),
    "booleans": lambda: file_of(page(with_length(run(1)[:1] + b"\x05"), RLE), BOOLEAN),
    "snappy": lambda: file_of(page(b"\x0c\x2c" + NUMBERS, size=12), codec=SNAPPY),
    "a page that is left out": lambda: file_of(write_struct([(1, I32, 1), (2, I32, 2), (3, I32, 2)]) + b"xx" + page(NUMBERS)),
}

BOMBS: Mapping[str, Callable[[], bytes]] = {
    "run of a dictionary's places": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\x02" + run(), DICTIONARY)),
    "run of levels": lambda: file_of(page(with_length(run()) + NUMBERS), optional=True),
    "run of levels of version 2": lambda: file_of(page_v2(NUMBERS, run()), optional=True),
    "run of booleans": lambda: file_of(page(with_length(run()), RLE), BOOLEAN),
    "run as long as the page says": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\0" + run(1 << 27), DICTIONARY, 1 << 30), rows=1 << 30),
    "values of deltas": lambda: file_of(page(deltas(MOST - 200), DELTA)),
    "values of deltas as many as the page says": lambda: file_of(page(deltas(1 << 30), DELTA, 1 << 30), rows=1 << 30),
    "block of deltas": lambda: file_of(page(deltas(block=1 << 30, parts=1), DELTA)),
    "parts of a block of deltas": lambda: file_of(page(deltas(block=1 << 30, parts=1 << 27), DELTA)),
    "deltas as levels": lambda: file_of(page(deltas(block=1 << 30, parts=1) + NUMBERS, levels=DELTA), optional=True),
    "lengths of strings": lambda: file_of(page(deltas(MOST - 200) + b"abc", DELTA_LENGTH), BYTE_ARRAY),
    "shared beginnings of strings": lambda: file_of(page(deltas(first=LONG) + deltas(first=1) + b"abc", DELTA_STRINGS), BYTE_ARRAY),
    "lengths of the ends of strings": lambda: file_of(page(deltas() + deltas(MOST - 200) + b"abc", DELTA_STRINGS), BYTE_ARRAY),
    "length inside snappy": lambda: file_of(page(varint(LONG) + b"\x2c" + NUMBERS, size=12), codec=SNAPPY),
    "page beyond the file": lambda: file_of(page(NUMBERS, compressed=LONG)),
    "page that goes back to its header": lambda: file_of(page(b"", rows=0, compressed=-len(page(b"", rows=0))) + page(NUMBERS)),
    "bound in a page header": lambda: file_of(page(NUMBERS, more=[(5, STRUCT, [(1, BINARY, Claimed(99_000_000))])])),
}

# A run of one value is four bytes long, however many rows have it.
MANY = 1 << 30

ENDLESS: Mapping[str, Callable[[], bytes]] = {
    "rows of one value": lambda: file_of(
        dictionary(NUMBERS, 3) + page(b"\x02" + varint(MANY << 1) + b"\0", DICTIONARY, MANY) * 64, rows=64 * MANY
    ),
    "nulls": lambda: file_of(page(with_length(varint(MANY << 1) + b"\0"), rows=MANY) * 64, optional=True, rows=64 * MANY),
}

# The head of a bit-packed run of eight values.
EIGHT = varint(1 << 1 | 1)

# Pages whose last run is shorter than it says, with all their values.
SHORT: Mapping[str, Callable[[], bytes]] = {
    "places": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\x02" + EIGHT + b"\x24", DICTIONARY)),
    "places of some": lambda: file_of(
        dictionary(NUMBERS, 3) + page(with_length(EIGHT + b"\x05") + b"\x08" + EIGHT + b"\0\x02", DICTIONARY), optional=True
    ),
    "places of version 2": lambda: file_of(
        dictionary(NUMBERS, 3) + page_v2(b"\x08" + EIGHT + b"\0\x02", EIGHT + b"\x05", DICTIONARY), optional=True
    ),
}
# One value, zero, which is there no times.
NO_TIMES = b"\0\0"
# Such pages that lack some of their values, or have a run that readers take for different ones: of no values, or of too many bits.
CUT: Mapping[str, Callable[[], bytes]] = {
    "places": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\x08" + EIGHT + b"\1\2", DICTIONARY)),
    "places of some": lambda: file_of(
        dictionary(NUMBERS, 3) + page(with_length(EIGHT + b"\x05") + b"\x08" + EIGHT + b"\0", DICTIONARY), optional=True
    ),
    "places of version 2": lambda: file_of(
        dictionary(NUMBERS, 3) + page_v2(b"\x08" + EIGHT + b"\0", EIGHT + b"\x05", DICTIONARY), optional=True
    ),
    "levels": lambda: file_of(page(with_length(EIGHT) + NUMBERS), optional=True),
    "levels of version 2": lambda: file_of(page_v2(NUMBERS, EIGHT), optional=True),
    "booleans": lambda: file_of(page(b""), BOOLEAN),
    "runs of booleans": lambda: file_of(page(with_length(EIGHT), RLE), BOOLEAN),
    "places behind a run of none": lambda: file_of(
        dictionary(NUMBERS, 3) + page(b"\x02" + NO_TIMES + varint(ROWS << 1) + b"\2", DICTIONARY)
    ),
    "levels behind a run of none": lambda: file_of(page(with_length(NO_TIMES + varint(ROWS << 1) + b"\1") + NUMBERS), optional=True),
    "levels of version 2 behind a run of none": lambda: file_of(page_v2(NUMBERS, NO_TIMES + varint(ROWS << 1) + b"\1"), optional=True),
    "booleans of two bits": lambda: file_of(page(with_length(varint(ROWS << 1) + b"\2"), RLE), BOOLEAN),
    "places of more bits than they say": lambda: file_of(dictionary(NUMBERS, 3) + page(b"\1" + varint(ROWS << 1) + b"\2", DICTIONARY)),
    "booleans behind a run of none": lambda: file_of(page(with_length(NO_TIMES + varint(ROWS << 1) + b"\1"), RLE), BOOLEAN),
}

# Pages of no values in front of others.
EMPTY: Mapping[str, Callable[[], bytes]] = {
    "booleans": lambda: file_of(page(b"", rows=0) + page(b"\7"), BOOLEAN),
    "numbers": lambda: file_of(page(b"", rows=0) + page(NUMBERS)),
}


def text(length: int, content: bytes = b"") -> bytes:
    return struct.pack("<i", length) + content


# Texts of which one has a negative length.
BACKWARDS: Mapping[str, Callable[[], bytes]] = {
    "texts": lambda: file_of(page(text(3, b"abc") + text(-11)), BYTE_ARRAY),
    "texts of a dictionary": lambda: file_of(
        dictionary(text(3, b"abc") + text(-4), 2) + page(b"\1" + varint(ROWS << 1) + b"\1", DICTIONARY), BYTE_ARRAY
    ),
    "lengths": lambda: file_of(page(deltas(first=-1) + b"abc", DELTA_LENGTH), BYTE_ARRAY),
    "lengths of ends": lambda: file_of(page(deltas() + deltas(first=-1) + b"abc", DELTA_STRINGS), BYTE_ARRAY),
}


# As in the format's `CompressionCodec`.
CODECS = {"snappy": SNAPPY, "gzip": 2, "zstd": 6, "lz4_raw": 7}


def packed(codec: str, body: bytes) -> bytes:
    return pa.compress(body, codec, asbytes=True)  # type: ignore[no-any-return]


def pages_with(codec: str, body: bytes) -> Mapping[str, bytes]:
    """Files of which a page claims to become `NUMBERS`, by the kind of page."""
    places = page(packed(codec, b"\x02" + EIGHT + b"\x24\0"), DICTIONARY, size=4)
    size = len(NUMBERS)
    kinds = {"version 1": page(body, size=size), "version 2": page_v2(body, size=size), "dictionary": dictionary(body, 3, size) + places}
    return {kind: file_of(pages, codec=CODECS[codec]) for kind, pages in kinds.items()}


def bodies(codec: str) -> Mapping[str, bytes]:
    """Of pages that say `NUMBERS`, and are something else."""
    found = {"short": packed(codec, NUMBERS[:8]), "nothing": packed(codec, b""), "no bytes": b"", "cut off": packed(codec, NUMBERS)[:-12]}
    if codec in FROM_A_DISTANCE_OF_0:
        found["more"] = packed(codec, NUMBERS + NUMBERS)
        found["and more"] = packed(codec, NUMBERS) + NUMBERS
        found["copy from a distance of 0"] = FROM_A_DISTANCE_OF_0[codec]
    return found


# Two numbers and a copy of four bytes, in an order that the codec allows.
FROM_A_DISTANCE_OF_0: Mapping[str, bytes] = {
    "snappy": b"\x0c\x0cabcd" + b"\x1e\0\0",
    "lz4_raw": b"\x30abc\0\0\x50defgh",
}


def file_of_blocks(pages: int, block: int) -> bytes:
    """Three numbers in each page, in a block of so many deltas, which take no bits."""
    return file_of(page(deltas(block=block, parts=1, widths=b"\0"), DELTA) * pages, rows=ROWS * pages)


def file_of_dictionaries(groups: int, texts: int) -> bytes:
    """Row groups of one row, each with a dictionary of so many empty texts."""
    place = b"\0" + varint(1 << 1)
    places = page(packed("zstd", place), DICTIONARY, 1, size=len(place))
    pages = dictionary(packed("zstd", bytes(4 * texts)), texts, 4 * texts) + places
    told: List[List[Field]] = []
    for number in range(groups):
        at = len(MAGIC) + number * len(pages)
        column: List[Field] = [
            (1, I32, BYTE_ARRAY),
            (2, LIST, (I32, 1, [DICTIONARY])),
            (3, LIST, (BINARY, 1, [b"id"])),
            (4, I32, CODECS["zstd"]),
            (5, I64, 1),
            (6, I64, MOST),
            (7, I64, len(pages)),
            (9, I64, at),
        ]
        told.append([(1, LIST, (STRUCT, 1, [[(2, I64, at), (3, STRUCT, column)]])), (2, I64, MOST), (3, I64, 1)])
    schema: List[List[Field]] = [[(4, BINARY, b"root"), (5, I32, 1)], [(1, I32, BYTE_ARRAY), (3, I32, 0), (4, BINARY, b"id")]]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, 2, schema)), (3, I64, groups), (4, LIST, (STRUCT, groups, told))]
    return whole(pages * groups, write_struct(fields))
