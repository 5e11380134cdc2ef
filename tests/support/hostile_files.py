"""Parquet files that a tenant could create to harm their readers: small on disk, but claiming huge sizes.

Footers and page headers are written here in Thrift's compact protocol, because no library writes such values.
"""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Callable, List, Mapping, Sequence, Tuple, Union

import pyarrow as pa
import pyarrow.orc as po

MAGIC = b"PAR1"
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
INT32, UTF8_CODEC_NONE, REQUIRED, SNAPPY = 1, 0, 0, 1
MOST = 2**31 - 1

# (id, type, value); a value is a number, bytes, (element type, claimed size, elements), or nested fields.
Field = Tuple[int, int, object]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    return varint(2 * number if number >= 0 else -2 * number - 1)


def write_list(kind: int, size: int, elements: Sequence[object]) -> bytes:
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return head + b"".join(write_value(kind, each) for each in elements)


def write_value(kind: int, value: object) -> bytes:
    if kind == LIST:
        return write_list(*value)  # type: ignore[misc]
    if kind == STRUCT:
        return write_struct(value)  # type: ignore[arg-type]
    return varint(len(value)) + value if isinstance(value, bytes) else zigzag(value)  # type: ignore[arg-type]


def write_struct(fields: Sequence[Field]) -> bytes:
    out, before = b"", 0
    for number, kind, value in fields:
        step = number - before
        out += (bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + zigzag(number)) + write_value(kind, value)
        before = number
    return out + b"\0"


def page(rows: int, claimed_uncompressed: int, body: bytes, claimed_compressed: int = 0) -> bytes:
    data_page: List[Field] = [(1, I32, rows), (2, I32, 0), (3, I32, 3), (4, I32, 3)]
    header = write_struct([(1, I32, 0), (2, I32, claimed_uncompressed), (3, I32, claimed_compressed or len(body)), (5, STRUCT, data_page)])
    return header + body


def chunk(path: Sequence[bytes], size: int, codec: int, rows: int, statistics: Sequence[Field] = ()) -> List[Field]:
    column: List[Field] = [
        (1, I32, INT32),
        (2, LIST, (I32, 1, [0])),
        (3, LIST, (BINARY, len(path), path)),
        (4, I32, codec),
        (5, I64, rows),
        (6, I64, size),
        (7, I64, size),
        (9, I64, len(MAGIC)),
        *([(12, STRUCT, statistics)] if statistics else []),
    ]
    return [(2, I64, len(MAGIC)), (3, STRUCT, column)]


def schema(depth: int = 0, annotation: Sequence[Field] = ()) -> List[List[Field]]:
    """A required int32 `id`, nested in this many groups."""
    groups: List[List[Field]] = [[(3, I32, REQUIRED), (4, BINARY, b"g"), (5, I32, 1)] for _ in range(depth)]
    return [[(4, BINARY, b"spark_schema"), (5, I32, 1)], *groups, [(1, I32, INT32), (3, I32, REQUIRED), (4, BINARY, b"id"), *annotation]]


def footer(
    size: int,
    codec: int = UTF8_CODEC_NONE,
    rows: int = 1,
    depth: int = 0,
    more: Sequence[Field] = (),
    annotation: Sequence[Field] = (),
    group_rows: int = 0,
    values: int = 0,
    statistics: Sequence[Field] = (),
) -> bytes:
    """`more` are fields after the fourth, `annotation` those of the column after its name."""
    elements = schema(depth, annotation)
    path = [b"g"] * depth + [b"id"]
    group: List[Field] = [
        (1, LIST, (STRUCT, 1, [chunk(path, size, codec, values or rows, statistics)])),
        (2, I64, size),
        (3, I64, group_rows or rows),
    ]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, len(elements), elements)), (3, I64, rows), (4, LIST, (STRUCT, 1, [group]))]
    return write_struct([*fields, *more])


def whole(body: bytes, foot: bytes) -> bytes:
    return MAGIC + body + foot + struct.pack("<i", len(foot)) + MAGIC


GOOD = page(1, 4, struct.pack("<i", 7))
TWO = page(2, 8, struct.pack("<ii", 7, 8))


def good() -> bytes:
    """A valid file, to show that the others fail only for their own defect."""
    return whole(GOOD, footer(len(GOOD)))


def claims_many_columns() -> bytes:
    """A schema that claims two billion elements and contains none of them."""
    return whole(b"", b"\x15\x02\x19\xfc" + varint(MOST))


def claims_fewer_columns() -> bytes:
    """As many as libraries that check the length accept."""
    return whole(b"", b"\x15\x02\x19\xfc" + varint(99_000_000))


def nests_structs() -> bytes:
    """An unknown field, a million structs deep, which readers have to skip."""
    return whole(GOOD, footer(len(GOOD))[:-1] + b"\xfc" + b"\x1c" * 1_000_000)


def nests_columns() -> bytes:
    return whole(GOOD, footer(len(GOOD), depth=500))


def claims_a_long_chunk() -> bytes:
    """The file is small, but one column chunk claims a terabyte."""
    return whole(GOOD, footer(2**40))


def claims_a_long_page() -> bytes:
    """Only reading the page shows its size."""
    long = page(1, MOST - 8, b"\xfc\xff\xff\xff\x07" + b"\0" * 8)
    return whole(long, footer(len(long), codec=SNAPPY))


def claims_a_long_dictionary() -> bytes:
    """A dictionary of four bytes that claims two billion values."""
    head = [(1, I32, 2), (2, I32, 4), (3, I32, 4), (7, STRUCT, [(1, I32, MOST - 8), (2, I32, 0)])]
    pages = write_struct(head) + GOOD[-4:]
    data = [(1, I32, 0), (2, I32, 2), (3, I32, 2), (5, STRUCT, [(1, I32, 1), (2, I32, 8), (3, I32, 3), (4, I32, 3)])]
    pages += write_struct(data) + b"\1\2"
    return whole(pages, footer(len(pages)))


def annotates_unknown(logical: int = 99) -> bytes:
    """A valid file with a later format's annotation and order of values."""
    orders: Field = (7, LIST, (STRUCT, 1, [[(9, STRUCT, [])]]))
    return whole(GOOD, footer(len(GOOD), annotation=[(10, STRUCT, [(logical, STRUCT, [])])], more=[orders]))


def has_two_writers() -> bytes:
    """The list of row groups says that it holds a text of eight bytes: whoever goes by that finds another key and writer behind these."""

    def said_by(version: bytes, writer: bytes) -> bytes:
        key: List[Field] = [(1, BINARY, b"org.apache.spark.version"), (2, BINARY, version)]
        return write_struct([(1, LIST, (STRUCT, 1, [key])), (2, BINARY, writer)])

    # Both begin behind field 4. Inside the row group they are the value of a field that no library knows.
    unknown = bytes(5) + said_by(b"3.5.0", b"impala")
    group = bytes([BINARY]) + zigzag(100) + write_value(BINARY, unknown)
    group += bytes([LIST]) + zigzag(1) + write_list(STRUCT, 1, [chunk([b"id"], len(GOOD), UTF8_CODEC_NONE, 1)])
    group += write_struct([(1, I64, len(GOOD)), (2, I64, 1)])
    before = write_struct([(1, I32, 1), (2, LIST, (STRUCT, 2, schema())), (3, I64, 1)])[:-1]
    return whole(GOOD, before + bytes([1 << 4 | LIST, 1 << 4 | BINARY]) + group + said_by(b"2.4.0", b"parquet-mr"))


def has_columns(columns: Sequence[bytes]) -> bytes:
    """A file without rows, with these columns."""
    root: List[Field] = [(4, BINARY, b"spark_schema"), (5, I32, len(columns))]
    leaves: List[List[Field]] = [[(1, I32, INT32), (3, I32, REQUIRED), (4, BINARY, name)] for name in columns]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, len(leaves) + 1, [root, *leaves])), (3, I64, 0), (4, LIST, (STRUCT, 0, []))]
    return whole(b"", write_struct(fields))


def has_long_paths(characters: int, columns: int) -> bytes:
    """A file without rows, of one struct with a long name: the full name of each column in it is that long."""
    leaves: List[List[Field]] = [[(1, I32, INT32), (3, I32, REQUIRED), (4, BINARY, b"c%d" % number)] for number in range(columns)]
    group: List[Field] = [(3, I32, REQUIRED), (4, BINARY, b"x" * characters), (5, I32, columns)]
    elements = [[(4, BINARY, b"spark_schema"), (5, I32, 1)], group, *leaves]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, len(elements), elements)), (3, I64, 0), (4, LIST, (STRUCT, 0, []))]
    return whole(b"", write_struct(fields))


def names_of_one_hash(count: int) -> List[bytes]:
    """Java's hash of "Aa" is that of "BB"."""
    return [b"".join(pair) for pair in itertools.islice(itertools.product((b"Aa", b"BB"), repeat=(count - 1).bit_length()), count)]


def numbers_of_one_place(count: int) -> List[int]:
    """Numbers of 64 bits that have one place in the tables of Parquet's writer: fastutil's `HashCommon.mix` makes them multiples of 2³²."""
    found = []
    for number in range(count):
        mixed = number << 32
        mixed ^= mixed >> 16 ^ mixed >> 32 ^ mixed >> 48
        mixed ^= mixed >> 32
        hashed = mixed * pow(0x9E3779B97F4A7C15, -1, 1 << 64) % (1 << 64)
        found.append(hashed - (hashed >> 63 << 64))
    return found


# Defects that only a reader of all values meets.
CONTENTS: Mapping[str, Callable[[], bytes]] = {
    "claims-a-long-page": claims_a_long_page,
    "claims-a-long-dictionary": claims_a_long_dictionary,
    "footer-claims-more-rows": lambda: whole(GOOD, footer(len(GOOD), rows=2, group_rows=1, values=1)),
    "row-group-claims-more-rows": lambda: whole(GOOD, footer(len(GOOD), rows=2, values=1)),
    "column-claims-more-values": lambda: whole(GOOD, footer(len(GOOD), values=2)),
    "page-has-more-rows": lambda: whole(TWO, footer(len(TWO), values=2)),
    "not-enough-bytes": lambda: whole(page(1, 4, b"\7"), footer(len(page(1, 4, b"\7")))),
    "begins-otherwise": lambda: b"PAR2" + good()[4:],
    "ends-otherwise": lambda: good()[:-4] + b"PAR2",
    "is-cut": lambda: good()[:-10],
    "has-an-encrypted-footer": lambda: good()[:-4] + b"PARE",
    "has-encrypted-columns": lambda: whole(GOOD, footer(len(GOOD), more=[(8, STRUCT, [(1, STRUCT, [])])])),
    "has-a-later-field": lambda: whole(GOOD, footer(len(GOOD), more=[(12, I32, 1)])),
    "has-hadoops-lz4": lambda: whole(GOOD, footer(len(GOOD), codec=5)),
    "is-empty": lambda: b"",
}


def claims(low: int, high: int, nulls: int) -> bytes:
    """A valid file with these statistics for its value, which is 7."""
    statistics: List[Field] = [(3, I64, nulls), (5, BINARY, struct.pack("<i", high)), (6, BINARY, struct.pack("<i", low))]
    return whole(GOOD, footer(len(GOOD), statistics=statistics, more=[(7, LIST, (STRUCT, 1, [[(1, STRUCT, [])]]))]))


CLAIMS: Mapping[str, Callable[[], bytes]] = {
    "true": lambda: claims(7, 7, 0),
    "low": lambda: claims(8, 9, 0),
    "high": lambda: claims(5, 6, 0),
    "nulls": lambda: claims(7, 7, 1),
}


def has_a_number_of_many_digits() -> bytes:
    """Row metadata whose JSON takes a parser time quadratic in the length of a number."""
    return has_row_metadata(b'{"a":' + b"7" * 5000 + b"}")


def has_row_metadata(json: bytes) -> bytes:
    pair: List[Field] = [(1, BINARY, b"org.apache.spark.sql.parquet.row.metadata"), (2, BINARY, json)]
    return whole(GOOD, footer(len(GOOD), more=[(5, LIST, (STRUCT, 1, [pair]))]))


def has_labels_that_begin_everywhere(size: int, label: bytes = b"[]") -> bytes:
    """Labels of pandas after so many bytes that another key repeats: whoever searches for the value takes time quadratic in its length."""
    pandas: List[Field] = [(1, BINARY, b"pandas"), (2, BINARY, b"a" * size + b'{"index_columns": ' + label + b"}")]
    other: List[Field] = [(1, BINARY, b"other"), (2, BINARY, b"a" * 2 * size)]
    return whole(GOOD, footer(len(GOOD), more=[(5, LIST, (STRUCT, 2, [pandas, other]))]))


def has_long_bounds(size: int) -> bytes:
    """A decimal whose lowest and highest value take this many bytes; their text takes time more than linear in it."""
    decimal: List[Field] = [(1, I32, 6), (3, I32, REQUIRED), (4, BINARY, b"id"), (6, I32, 5), (7, I32, 2), (8, I32, 38)]
    bounds: List[Field] = [(3, I64, 0), (5, BINARY, b"\x55" * size), (6, BINARY, b"\x11" * size)]
    column: List[Field] = [(1, I32, 6), *chunk([b"id"], len(GOOD), UTF8_CODEC_NONE, 1, bounds)[1][2][1:]]  # type: ignore[index]
    group: List[Field] = [(1, LIST, (STRUCT, 1, [[(2, I64, len(MAGIC)), (3, STRUCT, column)]])), (2, I64, len(GOOD)), (3, I64, 1)]
    elements = [schema()[0], decimal]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, 2, elements)), (3, I64, 1), (4, LIST, (STRUCT, 1, [group]))]
    return whole(GOOD, write_struct([*fields, (7, LIST, (STRUCT, 1, [[(1, STRUCT, [])]]))]))


def adds_up_to(rows: int, groups: Sequence[int], values: int = 0) -> bytes:
    """A file of one row whose footer names it in several row groups, whose rows overflow to the sum that it claims."""
    elements = schema()
    of_group = [
        [(1, LIST, (STRUCT, 1, [chunk([b"id"], len(GOOD), UTF8_CODEC_NONE, values or count)])), (2, I64, len(GOOD)), (3, I64, count)]
        for count in groups
    ]
    fields: List[Field] = [(1, I32, 1), (2, LIST, (STRUCT, 2, elements)), (3, I64, rows), (4, LIST, (STRUCT, len(groups), of_group))]
    return whole(GOOD, write_struct(fields))


ENDLESS = 2**63 - 1

# Defects that only a reader of the footer meets.
FOOTERS: Mapping[str, Callable[[], bytes]] = {
    "claims-many-columns": claims_many_columns,
    "claims-fewer-columns": claims_fewer_columns,
    "nests-structs": nests_structs,
    "nests-columns": nests_columns,
    "claims-a-long-chunk": claims_a_long_chunk,
    "adds-up-to-no-rows": lambda: adds_up_to(0, [1, ENDLESS, ENDLESS, 1]),
    "adds-up-to-few-rows": lambda: adds_up_to(3, [1, ENDLESS, ENDLESS, 4]),
    "adds-up-to-less-than-none": lambda: adds_up_to(-ENDLESS - 1, [1, ENDLESS]),
    "has-less-than-no-values": lambda: adds_up_to(1, [1], values=-1),
}


def write_long_footer(path: Union[str, Path], footer_bytes: int) -> None:
    """A file that is nearly all footer; only its two ends take space on disk, the rest is a hole."""
    with open(path, "wb") as file:
        file.write(MAGIC)
        file.seek(len(MAGIC) + footer_bytes)
        file.write(struct.pack("<I", footer_bytes) + MAGIC)


def write_orc_tail(path: Path, footer_bytes: int, block_bytes: int, file_bytes: int) -> None:
    """An ORC file that ends with this postscript: zlib-compressed, with nothing to decompress."""
    fields = [(1, footer_bytes), (2, 1), (3, block_bytes), (5, 0)]
    postscript = b"".join(varint(number << 3) + varint(value) for number, value in fields) + varint(8000 << 3 | 2) + b"\3ORC"
    with open(path, "wb") as file:
        file.write(b"ORC")
        file.seek(file_bytes)
        file.write(postscript + bytes([len(postscript)]))


def write_orc_of_no_rows(path: Path) -> None:
    """A file of 77 rows whose footer claims none; its stripe still has them."""
    po.write_table(pa.table({"id": range(77)}), str(path), compression="uncompressed")
    content = bytearray(path.read_bytes())
    postscript = len(content) - 1 - content[-1]
    length, shift, at = 0, 0, postscript + 1
    while shift == 0 or content[at - 1] & 128:
        length |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
    # Footer.numberOfRows is field 6.
    found = content.index(bytes([6 << 3, 77]), postscript - length, postscript)
    content[found + 1] = 0
    path.write_bytes(bytes(content))


def with_orc_footer(content: bytes, more: bytes) -> bytes:
    """An uncompressed ORC file whose footer ends with these fields too: of repeated ones there are more, of others the last one counts."""
    postscript = content[-1 - content[-1] : -1]
    end = len(content) - 1 - len(postscript)
    longer = footer_length(postscript) + len(more)
    # The magic stays at the end.
    postscript = postscript[:-7] + varint(1 << 3) + varint(longer) + postscript[-7:]
    return content[:end] + more + postscript + bytes([len(postscript)])


def footer_length(postscript: bytes) -> int:
    """The first field of an ORC postscript."""
    assert postscript[0] == 1 << 3
    found, shift, at = 0, 0, 1
    while True:
        found |= (postscript[at] & 127) << shift
        if postscript[at] < 128:
            return found
        shift, at = shift + 7, at + 1


def write_orc_naming_a_stripe_often(path: Path, times: int) -> None:
    """A small file of 77 rows whose footer names the same stripe again and again."""
    po.write_table(pa.table({"id": range(77)}), str(path), compression="uncompressed")
    content = path.read_bytes()
    # Offset, lengths of index, data and footer, rows: any that lie within the file will do.
    fields = [(1, 3), (2, 0), (3, 20), (4, 20), (5, 77)]
    message = b"".join(varint(number << 3) + varint(value) for number, value in fields)
    more = (varint(3 << 3 | 2) + varint(len(message)) + message) * times + varint(6 << 3) + varint(77 * (times + 1))
    path.write_bytes(with_orc_footer(content, more))


def write_orc_of_a_long_name(path: Path, characters: int, columns: int) -> None:
    """A file without rows, of one struct with a long name whose fields are all called alike: each field's full name is that long."""
    subtypes = b"".join(varint(number) for number in range(2, columns + 2))
    fields = message(3, b"a") * columns
    types = [
        numbers({1: 12}) + message(2, varint(1)) + message(3, b"x" * characters),
        numbers({1: 12}) + message(2, subtypes) + fields,
        *[numbers({1: 3})] * columns,
    ]
    footer = numbers({1: 3, 2: 3}) + b"".join(message(4, each) for each in types) + numbers({6: 0})
    postscript = numbers({1: len(footer), 2: 0, 3: 1 << 18}) + message(4, b"\0\x0c") + numbers({5: 0}) + message(8000, b"ORC")
    path.write_bytes(b"ORC" + footer + postscript + bytes([len(postscript)]))


def numbers(fields: Mapping[int, int]) -> bytes:
    """Fields of a protobuf message that are numbers."""
    return b"".join(varint(number << 3) + varint(value) for number, value in fields.items())


def message(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def write_orc_that_adds_up_to_no_rows(path: Path) -> None:
    """A file of 77 rows, with further stripes without a byte whose rows overflow to none together."""
    po.write_table(pa.table({"id": range(77)}), str(path), compression="uncompressed")
    content = path.read_bytes()
    stripes = [
        b"".join(varint(number << 3) + varint(value) for number, value in ((1, len(content)), (2, 0), (3, 0), (4, 0), (5, count)))
        for count in (ENDLESS, ENDLESS - 75)
    ]
    path.write_bytes(with_orc_footer(content, b"".join(message(3, stripe) for stripe in stripes) + varint(6 << 3) + varint(0)))


ORC_TAILS: Mapping[str, Callable[[Path], None]] = {
    "footer-longer-than-the-file": lambda path: write_orc_tail(path, MOST, 2**18, 1000),
    "footer-of-most-of-the-file": lambda path: write_orc_tail(path, 1_500_000_000, 2**18, 1_500_001_000),
    "footer-claims-no-rows": write_orc_of_no_rows,
    "stripes-add-up-to-no-rows": write_orc_that_adds_up_to_no_rows,
    "one-stripe-again": lambda path: write_orc_naming_a_stripe_often(path, 1),
    "one-stripe-very-often": lambda path: write_orc_naming_a_stripe_often(path, 20_000),
    "blocks-of-two-gib": lambda path: write_orc_tail(path, 900, MOST, 1000),
}
