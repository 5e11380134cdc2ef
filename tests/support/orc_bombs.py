"""ORC files of some hundred bytes whose footers claim sizes that make the library ask for gigabytes.

Each has one column and is sound but for that number. Fields are numbered as in `orc_proto.proto`.
"""

from __future__ import annotations

import zlib
from typing import Callable, Mapping, Sequence, Tuple, Union

from support.hostile_files import varint

BIGINT, STRING, TIMESTAMP, STRUCT, UNION, TIMESTAMP_INSTANT = 4, 7, 9, 12, 13, 18
PRESENT, DATA, LENGTH, DICTIONARY_DATA, SECONDARY, ROW_INDEX, FILE_STATISTICS = 0, 1, 2, 3, 5, 6, 101
DIRECT, DICTIONARY, DIRECT_V2, DICTIONARY_V2 = 0, 1, 2, 3
NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = 0, 1, 2, 3, 4, 5
LARGE = 1_900_000_000


def message(*fields: Tuple[int, Union[int, bytes]]) -> bytes:
    parts = (
        varint(number << 3 | 2) + varint(len(value)) + value if isinstance(value, bytes) else varint(number << 3) + varint(value)
        for number, value in fields
    )
    return b"".join(parts)


def file_of(
    kind: int,
    streams: Union[Mapping[int, bytes], Sequence[Tuple[int, bytes]]],
    encoding: int = DIRECT,
    dictionary_size: int = 0,
    stream_size: int = 0,
    footer_size: int = 0,
    codec: int = NONE,
    block_size: int = 1 << 18,
    characters: int = 0,
    rows_there: bytes = b"",
    encodings: int = 0,
    digits: Sequence[int] = (),
    index_size: int = 0,
    is_blocks: bool = False,
    blocks_of_footer: bytes = b"",
) -> bytes:
    """Three rows. A size of 0 is the right one; `characters` are those of a char or varchar, `rows_there` the bits of those not NULL.

    So many `encodings` are for no column. `digits` of a decimal: how many, and how many of them are behind the point.
    `index_size` bytes more are to be put behind the streams. `is_blocks`: the streams are blocks already. `blocks_of_footer` come before
    that of the stripe. The end does not say a `block_size` of 0.
    """

    def held(body: bytes) -> bytes:
        return body if codec == NONE else (len(body) << 1 | 1).to_bytes(3, "little") + body

    listed = list(streams.items() if isinstance(streams, Mapping) else streams)
    bodies = [(number, 1, body if is_blocks else held(body)) for number, body in listed]
    if rows_there:
        bodies.insert(0, (PRESENT, 0, held(rows_there)))
    data = b"".join(body for _, _, body in bodies)
    described = [(1, message((1, number), (2, column), (3, stream_size or len(body)))) for number, column, body in bodies]
    direct = (2, message((1, DIRECT)))
    ending = blocks_of_footer + held(message(*described, direct, (2, message((1, encoding), (2, dictionary_size))), *[direct] * encodings))
    stripe = message((1, 3), (2, index_size), (3, len(data)), (4, footer_size or len(ending)), (5, 3))
    most = [(4, characters)] if characters else [(5 + place, count) for place, count in enumerate(digits)]
    types = [(4, message((1, STRUCT), (2, b"\x01"), (3, b"id"))), (4, message((1, kind), *most))]
    statistics = [(7, message((1, 3))), (7, message((1, 3)))]
    length = index_size + len(data) + len(ending)
    foot = held(message((1, 3), (2, length), (3, stripe), *types, (6, 3), *statistics, (8, 0)))
    buffers = [(3, block_size)] if block_size else []
    postscript = message((1, len(foot)), (2, codec), *buffers, (4, b"\x00\x0c"), (5, 0), (8000, b"ORC"))
    return b"ORC" + data + ending + foot + postscript + bytes([len(postscript)])


# Runs of version 1: three numbers, the first 5, each one more than the one before.
NUMBERS = b"\x00\x01\x0a"
ONES = b"\x00\x00\x01"
PLACES = b"\x00\x01\x00"


def lengths(*numbers: int) -> bytes:
    """Of version 1, each as it is; the format knows no negative ones."""
    return bytes([256 - len(numbers)]) + b"".join(varint(number % 2**64) for number in numbers)


SOUND: Mapping[str, Callable[[], bytes]] = {
    "numbers": lambda: file_of(BIGINT, {DATA: NUMBERS}),
    "strings": lambda: file_of(STRING, {DATA: b"abc", LENGTH: ONES}),
    "dictionary": lambda: file_of(STRING, {DATA: PLACES, LENGTH: ONES, DICTIONARY_DATA: b"abc"}, DICTIONARY, 3),
}

BOMBS: Mapping[str, Callable[[], bytes]] = {
    "footer of a stripe": lambda: file_of(BIGINT, {DATA: NUMBERS}, footer_size=LARGE),
    "stream": lambda: file_of(BIGINT, {DATA: NUMBERS}, stream_size=LARGE),
    "values of a dictionary": lambda: file_of(STRING, {DATA: PLACES, LENGTH: ONES, DICTIONARY_DATA: b"abc"}, DICTIONARY, LARGE),
    "buffers": lambda: file_of(BIGINT, {DATA: NUMBERS}, codec=ZLIB, block_size=LARGE),
    "lengths that cancel out": lambda: file_of(STRING, {DATA: b"abc", LENGTH: lengths(LARGE, -LARGE, 3)}),
    "short lengths that cancel out": lambda: file_of(STRING, {DATA: b"abc", LENGTH: lengths(3, -3, 3)}),
    "lengths of a dictionary that cancel out": lambda: file_of(
        STRING, {DATA: PLACES, LENGTH: lengths(LARGE, -LARGE, 3), DICTIONARY_DATA: b"abc"}, DICTIONARY, 3
    ),
}


def file_without_columns(rows: int, text_bytes: int = 0) -> bytes:
    """It says that its texts have so many bytes."""
    ending = message((2, message((1, DIRECT))))
    stripe = message((1, 3), (2, 0), (3, 0), (4, len(ending)), (5, rows))
    said = message((1, rows), (4, message((3, 2 * text_bytes))))
    foot = message((1, 3), (2, len(ending)), (3, stripe), (4, message((1, STRUCT))), (6, rows), (7, said), (8, 0))
    postscript = message((1, len(foot)), (2, NONE), (3, 1 << 18), (4, b"\x00\x0c"), (5, 0), (8000, b"ORC"))
    return b"ORC" + ending + foot + postscript + bytes([len(postscript)])


ENDLESS: Mapping[str, Callable[[], bytes]] = {"rows without columns": lambda: file_without_columns(1 << 50)}


BLOCK = 1 << 18


def block(body: bytes, is_compressed: bool = True) -> bytes:
    return (len(body) << 1 | (not is_compressed)).to_bytes(3, "little") + body


def deflated(body: bytes) -> bytes:
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    return pack.compress(body) + pack.flush()


def packed(body: bytes, times: int = 1) -> bytes:
    """So many times the same, in compressed blocks."""
    return b"".join(block(deflated(body[at : at + BLOCK])) for at in range(0, len(body), BLOCK)) * times


TYPES = [(4, message((1, STRUCT), (2, b"\x01"), (3, b"id"))), (4, message((1, BIGINT)))]
FOOTER_WITHOUT_ROWS = message((1, 3), (2, 0), *TYPES, (6, 0), (7, message((1, 0))), (7, message((1, 0))), (8, 0))


def file_with_blocks(blocks: bytes, codec: int, size: int, statistics: int = 0) -> bytes:
    """These blocks are its footer; it claims `statistics` bytes of encrypted ones."""
    claimed = [(7, statistics)] if statistics else []
    sizes = message((1, len(blocks)), (2, codec), (3, size), (4, b"\x00\x0c"), (5, 0), *claimed, (8000, b"ORC"))
    return b"ORC" + blocks + sizes + bytes([len(sizes)])


def file_with_a_long_end(megabytes: int, of_stripes: bool) -> bytes:
    """Without rows. Its footer says its number of rows again and again, or there are statistics of as many stripes, which take no bytes."""
    foot = packed(FOOTER_WITHOUT_ROWS)
    much = packed((b"\x0a\x00" if of_stripes else b"\x30\x00") * (BLOCK // 2), megabytes * (1 << 20) // BLOCK)
    statistics, foot = (much, foot) if of_stripes else (b"", foot + much)
    sizes = message((1, len(foot)), (2, ZLIB), (3, BLOCK), (4, b"\x00\x0c"), (5, len(statistics)), (8000, b"ORC"))
    return b"ORC" + statistics + foot + sizes + bytes([len(sizes)])


def file_of_dictionaries(stripes: int, texts: int) -> bytes:
    """Three rows in each of these stripes, and a dictionary of so many empty texts."""
    lengths, places = packed(b"\x7f\x00\x00" * (texts // 130)), packed(PLACES)
    described = [(1, message((1, DATA), (2, 1), (3, len(places)))), (1, message((1, LENGTH), (2, 1), (3, len(lengths))))]
    ending = packed(message(*described, (2, message((1, DIRECT))), (2, message((1, DICTIONARY), (2, texts // 130 * 130)))))
    stripe = places + lengths + ending
    sizes = [(2, 0), (3, len(places + lengths)), (4, len(ending)), (5, 3)]
    told = [(3, message((1, 3 + number * len(stripe)), *sizes)) for number in range(stripes)]
    types = [(4, message((1, STRUCT), (2, b"\x01"), (3, b"id"))), (4, message((1, STRING)))]
    statistics = [(7, message((1, 3 * stripes)))] * 2
    foot = packed(message((1, 3), (2, len(stripe) * stripes), *told, *types, (6, 3 * stripes), *statistics, (8, 0)))
    postscript = message((1, len(foot)), (2, ZLIB), (3, BLOCK), (4, b"\x00\x0c"), (5, 0), (8000, b"ORC"))
    return b"ORC" + stripe * stripes + foot + postscript + bytes([len(postscript)])


def file_of_stripes(types: Sequence[bytes], stripe: bytes, footer: bytes, stripes: int, rows: int = 1, size: int = BLOCK) -> bytes:
    """So many times the same stripe, of so many rows: its streams, and its footer in blocks. `size` is the one of buffers."""
    whole = len(stripe) + len(footer)
    sizes = [(2, 0), (3, len(stripe)), (4, len(footer)), (5, rows)]
    told = [(3, message((1, 3 + number * whole), *sizes)) for number in range(stripes)]
    counted = [(6, rows * stripes), (7, message((1, rows * stripes))), (8, 0)]
    foot = packed(message((1, 3), (2, whole * stripes), *told, *[(4, one) for one in types], *counted))
    postscript = message((1, len(foot)), (2, ZLIB), (3, size), (4, b"\x00\x0c"), (5, 0), (8000, b"ORC"))
    return b"ORC" + (stripe + footer) * stripes + foot + postscript + bytes([len(postscript)])


def file_of_unions(children: int, stripes: int, rows: int) -> bytes:
    """Of a union of so many numbers, of which only the first are there."""
    places = b"".join(varint(number) for number in range(2, children + 2))
    types = [message((1, STRUCT), (2, b"\x01"), (3, b"u")), message((1, UNION), (2, places))] + [message((1, BIGINT))] * children
    runs = -(-rows // 130)
    tags, numbers = packed(b"\x7f\x00" * runs), packed(b"\x7f\x00\x00" * runs)
    if rows == 1:
        tags, numbers = block(b"\xff\x00", False), block(b"\xff\x02", False)
    described = [(1, message((1, DATA), (2, 1), (3, len(tags)))), (1, message((1, DATA), (2, 2), (3, len(numbers))))]
    footer = packed(message(*described, *[(2, message((1, DIRECT)))] * (children + 2)))
    return file_of_stripes(types, tags + numbers, footer, stripes, rows)


def file_of_columns(columns: int) -> bytes:
    """Without rows, and with statistics of each."""
    places = b"".join(varint(number) for number in range(1, columns + 1))
    root = message((1, STRUCT), (2, places), *[(3, b"c")] * columns)
    types = [(4, root), *[(4, message((1, BIGINT)))] * columns]
    return file_with_blocks(packed(message((1, 3), (2, 0), *types, (6, 0), *[(7, message((1, 0)))] * (columns + 1), (8, 0))), ZLIB, BLOCK)
