"""Read the text that `hdfs oiv -p Delimited` makes of a NameNode's image: pieces of a file in, lines and columns out.

Pure; memory is bounded whatever the file holds.
"""

from __future__ import annotations

import re
import zlib
from typing import Iterable, Iterator, List, NamedTuple, Optional, Sequence

# Facts from Hadoop's PBImageTextWriter and PBImageDelimitedTextWriter (package o.a.h.hdfs.tools.offlineImageViewer), checked by running
# the oiv of Hadoop 3.3.6:
# - The first line names the columns; the options -sp and -ec, which 3.3.6 lacks, add more behind them. The delimiter is a tab unless
#   -delimiter says otherwise. The first version (HDFS-6673) wrote neither this line nor a `d` or `-` before the mode: it is refused.
# - There is a line for each inode that a directory has, in the order of the image: not sorted, and the files of a directory need not follow
#   each other. Inodes that only snapshots hold, or nothing, are left out.
# - A text with a comma, a quote, a CR or an LF is quoted as in CSV (commons-lang escapeCsv). Then each CR LF becomes %x0D%x0A; without any,
#   each LF becomes %x0A. So a path that has a CR LF and another LF keeps the latter, and its line goes on after it. A path begins with `/`,
#   so a quote before it is not part of it. Tabs, single CRs and other control characters stay as they are.
# - Times are `yyyy-MM-dd HH:mm` in the time zone of the machine that runs oiv.
COLUMNS = (
    "Path",
    "Replication",
    "ModificationTime",
    "AccessTime",
    "PreferredBlockSize",
    "BlocksCount",
    "FileSize",
    "NSQUOTA",
    "DSQUOTA",
    "Permission",
    "UserName",
    "GroupName",
)
MODIFIED, BLOCKS, SIZE, MODE = (COLUMNS.index(name) for name in ("ModificationTime", "BlocksCount", "FileSize", "Permission"))

GZIP = b"\x1f\x8b"
PIECE_BYTES = 2**20
# Lines that are longer are shortened. A table's location is far shorter, and so is any path that HDFS lets somebody create; but whoever
# renames directories into one another can make paths of any length, and they must not hide all others.
MOST_LINE_BYTES = 2**16

# What stands between the names of two columns: no letter, so that a file of another kind is not taken for an image.
DELIMITER = re.compile(rb"[^A-Za-z0-9\"\r\n]{1,8}")


class Batch(NamedTuple):
    """Some complete lines without their ends; `first` is the number of the first one, from 1."""

    first: int
    lines: List[bytes]


class BadImage(Exception):
    """The file is not the whole output of oiv: where, and what is wrong, in one line."""


def bad_line(number: int, why: str) -> BadImage:
    return BadImage(f"line {number} cannot be read: {why}")


def unpack(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a file that may be compressed by gzip, in pieces of bounded size. Raises BadImage if that is damaged or cut off."""
    waiting = iter(pieces)
    head = b""
    while len(head) < len(GZIP):
        piece = next(waiting, b"")
        if not piece:
            break
        head += piece
    if not head.startswith(GZIP):
        yield head
        yield from waiting
        return
    yield from _unpack_members(head, waiting)


def _unpack_members(head: bytes, waiting: Iterator[bytes]) -> Iterator[bytes]:
    """Several members may follow each other, and zeros the last one: both are what gzip itself accepts."""
    unpacker, rest, done = zlib.decompressobj(wbits=31), head, 0
    while True:
        try:
            unpacked = unpacker.decompress(rest, PIECE_BYTES)
        except zlib.error as error:
            raise _bad_gzip(str(error), done) from None
        done += len(unpacked)
        if unpacked:
            yield unpacked
        rest = unpacker.unconsumed_tail
        if unpacker.eof:
            rest = _skip_zeros(unpacker.unused_data, waiting)
            if not rest:
                return
            unpacker = zlib.decompressobj(wbits=31)
        elif not rest and not unpacked:
            rest = next(waiting, b"")
            if not rest:
                raise _bad_gzip("the compressed data is cut off", done)


def _skip_zeros(rest: bytes, waiting: Iterator[bytes]) -> bytes:
    rest = rest.lstrip(b"\0")
    while not rest:
        piece = next(waiting, b"")
        if not piece:
            return b""
        rest = piece.lstrip(b"\0")
    return rest


def _bad_gzip(why: str, done: int) -> BadImage:
    return BadImage(f"it cannot be unpacked: {why}, after {done} bytes of text")


def split_lines(pieces: Iterable[bytes]) -> Iterator[Batch]:
    """All lines. Raises BadImage if the first one is too long or the last one has no end: it is another file, or was cut off."""
    number, rest = 1, b""
    for piece in pieces:
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        if len(rest) > MOST_LINE_BYTES:
            if number + len(lines) == 1:
                raise bad_line(1, f"it has more than {MOST_LINE_BYTES} bytes")
            rest = _shorten(rest)
        if lines:
            yield Batch(number, lines)
            number += len(lines)
    if rest:
        raise bad_line(number, "it has no line end, so the file was cut off")


def _shorten(line: bytes) -> bytes:
    """A line without the middle of its path. A name is far shorter than half of what stays, so no quote that ends the path goes with those
    that are half of a doubled one.
    """
    half = MOST_LINE_BYTES // 2
    return line[:half].rstrip(b'"') + line[-half:].lstrip(b'"')


class Layout(NamedTuple):
    """How the columns of a file are written."""

    delimiter: bytes
    columns: int

    @classmethod
    def of_header(cls, line: bytes) -> Layout:
        """Raises BadImage for a file that oiv did not write, or that another processor of it wrote."""
        first, second = COLUMNS[0].encode(), COLUMNS[1].encode()
        found = DELIMITER.match(line, len(first)) if line.startswith(first) else None
        names = line.split(found[0]) if found else []
        if found is None or names[: len(COLUMNS)] != [name.encode() for name in COLUMNS]:
            raise bad_line(1, f"it does not begin with the names of the columns ({first.decode()}, {second.decode()}, …)")
        return cls(found[0], len(names))

    def read_odd(self, line: bytes, begun: Sequence[bytes] = ()) -> Optional[List[bytes]]:
        """The columns of a line that is not simply as many texts as columns, the path without quotes. None if a quoted path goes on after
        the end of the line. `begun`: the lines in which its path began; they are not searched again. Raises ValueError with the reason.
        """
        if begun or line[:1] == b'"':
            end = _find_end(line, 0 if begun else 1)
            if end is None:
                return None
            rest = line[end + 1 :]
            if not rest.startswith(self.delimiter):
                raise ValueError("text follows the quote behind its path")
            path = _unquote(b"\n".join([*begun, line[:end]])[1:])
            fields = [path, *rest[len(self.delimiter) :].split(self.delimiter)]
        else:
            # Only the path can have the delimiter in it.
            fields = line.rsplit(self.delimiter, self.columns - 1)
        if len(fields) != self.columns:
            raise ValueError(f"it has {len(fields)} columns instead of {self.columns}")
        if fields[0][:1] != b"/":
            raise ValueError("its path does not begin with /")
        return fields


def _find_end(line: bytes, start: int) -> Optional[int]:
    """Where the quote is that ends a quoted path; None if it goes on in the next line. A quote in a path is doubled, in one line."""
    at = line.find(b'"', start)
    while at >= 0 and line[at + 1 : at + 2] == b'"':
        at = line.find(b'"', at + 2)
    return at if at >= 0 else None


def _unquote(path: bytes) -> bytes:
    return path.replace(b'""', b'"').replace(b"%x0D%x0A", b"\r\n").replace(b"%x0A", b"\n")
