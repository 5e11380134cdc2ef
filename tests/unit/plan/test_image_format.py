"""The text that oiv makes: lines, columns, compression.

The sample is what oiv 3.3.6 wrote for an image with such names, a symbolic link, and a file that no directory has, which is missing.
"""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.plan import image_format
from hivekeeper.plan.image_format import BadImage, Layout, split_lines, unpack
from support.images import HEADER, directory_line, file_line

REST = "\t3\t2026-01-01 00:00\t2026-01-01 00:00\t134217728\t1\t17386\t0\t0\t-rw-r--r--\troot\t"
SAMPLE = "\n".join(
    [
        HEADER,
        "/\t0\t1970-01-01 00:00\t1970-01-01 00:00\t0\t0\t0\t9223372036854775807\t-1\tdrwxr-xr-x\troot\tsupergroup",
        *(
            f'{path}{REST}"super,group"'
            for path in ('"/a,b"', '"/q""uote"', "/tab\there", '"/lf%x0Aname"', '"/crlf%x0D%x0Ax"', '"/crlf%x0D%x0Ay\nz"', '"/cr\rname"')
        ),
        *(f'{path}{REST}"super,group"' for path in ("/back\\slash", "/%x0Aliteral", "/blank name", "/ü€😀", "/part-0.parquet")),
        '"/dir%x0Ax"\t0\t2026-01-01 00:00\t1970-01-01 00:00\t0\t0\t0\t-1\t-1\tdrwxr-xr-x\troot\tsupergroup',
        '"/dir%x0Ax/inner"\t3\t2026-01-01 00:00\t1970-01-01 00:00\t134217728\t0\t0\t0\t0\t-rw-r--r--\troot\tsupergroup',
        "/link\t0\t2026-01-01 00:00\t2026-01-01 00:00\t0\t0\t0\t0\t0\t-rwxrwxrwx\troot\tsupergroup",
        "",
    ]
)
PATHS = ["/", "/a,b", '/q"uote', "/tab\there", "/lf\nname", "/crlf\r\nx", "/crlf\r\ny\nz", "/cr\rname", "/back\\slash", "/%x0Aliteral"]
PATHS += ["/blank name", "/ü€😀", "/part-0.parquet", "/dir\nx", "/dir\nx/inner", "/link"]


def read_all(*pieces):
    return [line for batch in split_lines(unpack(pieces)) for line in batch.lines]


def read_paths(text):
    """All paths, by the reader of odd lines."""
    header, *lines = read_all(text.encode())
    layout, found, begun = Layout.of_header(header), [], b""
    for line in lines:
        fields = layout.read_odd(begun + line)
        begun = begun + line + b"\n" if fields is None else b""
        found += [fields[0].decode()] if fields else []
    return found


def test_every_name_is_read_back_from_what_oiv_makes_of_it():
    assert read_paths(SAMPLE) == PATHS


def test_another_delimiter_and_more_columns_are_known_by_the_header():
    header = HEADER.replace("\t", "::") + "::StoragePolicyId::ErasureCodingPolicy"
    layout = Layout.of_header(header.encode())
    assert layout == (b"::", 14)
    line = file_line("/a::b", 5).rstrip("\n").replace("\t", "::") + "::7::-"
    assert layout.read_odd(line.encode())[0] == b"/a::b"


@pytest.mark.parametrize(
    "header",
    [b"", b"Path", b"/\t0\t1970-01-01", HEADER.replace("FileSize", "Size").encode(), b"<?xml version='1.0'?>", b"Path\nReplication"],
)
def test_another_file_is_not_taken_for_an_image(header):
    with pytest.raises(BadImage, match="line 1 cannot be read: it does not begin with the names of the columns"):
        Layout.of_header(header)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"/a\t3\t2026", "3 columns instead of 12"),
        (b'"/a"x\t3', "text follows the quote"),
        (b"a" + REST.encode() + b"g", "does not begin with /"),
        (b'"/a,b"\t3', "2 columns instead of 12"),
    ],
)
def test_a_line_with_a_part_missing_is_refused(line, why):
    with pytest.raises(ValueError, match=why):
        Layout(b"\t", 12).read_odd(line)


def test_a_file_that_was_cut_off_in_its_last_line_is_refused_with_its_number():
    whole = (HEADER + "\n" + directory_line("/") + file_line("/a", 1)).encode()
    assert len(read_all(whole)) == 3
    with pytest.raises(BadImage, match="line 3 cannot be read: it has no line end"):
        read_all(whole[:-1])


def test_a_line_has_a_limit_and_memory_too():
    endless = (b"a" * 50_000 for _ in range(10**9))
    with pytest.raises(BadImage, match="line 1 cannot be read: it has more than 65536 bytes"):
        list(split_lines(endless))


TEXT = SAMPLE.encode() * 40


def in_pieces(content, length):
    return [content[start : start + length] for start in range(0, len(content), length)]


@pytest.mark.parametrize("length", [1, 7, 1000, 10**6])
@pytest.mark.parametrize(
    "content",
    [TEXT, gzip.compress(TEXT), gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:]) + b"\0" * 512],
    # Not the bytes: gzip's has the time in it, and two processes must collect tests of the same names.
    ids=["plain", "gzip", "two members and zeros"],
)
def test_plain_and_gzip_are_the_same_in_pieces_of_any_length(content, length):
    assert b"".join(unpack(in_pieces(content, length))) == TEXT


@pytest.mark.parametrize("length", [1, 1000])
def test_a_gzip_that_was_cut_off_or_damaged_is_refused(length):
    packed = gzip.compress(TEXT)
    for damaged in (packed[:-1], packed[:-9], packed[:20], packed[:2], packed[:-6] + b"xxxxxx", packed + b"garbage"):
        with pytest.raises(BadImage, match=r"it cannot be unpacked: .*, after \d+ bytes of text$"):
            list(unpack(in_pieces(damaged, length)))


def test_a_small_gzip_with_gigabytes_of_zeros_takes_little_memory():
    packer = zlib.compressobj(wbits=31)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush()
    assert len(packed) < 2**17
    assert max(map(len, unpack([packed]))) <= image_format.PIECE_BYTES
    with pytest.raises(BadImage, match="more than 65536 bytes"):
        list(split_lines(unpack([packed])))


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=30), st.integers(1, 40))
def test_lines_are_numbered_from_one_whatever_the_pieces(lines, length):
    content = b"".join(line + b"\n" for line in lines)
    found = {batch.first + offset: line for batch in split_lines(in_pieces(content, length)) for offset, line in enumerate(batch.lines)}
    assert found == dict(enumerate(lines, 1))
