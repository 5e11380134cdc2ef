"""The text that `hdfs oiv -p Delimited` makes of a NameNode's image, written as Hadoop 3.3.6 does."""

from __future__ import annotations

from typing import Iterable, Tuple

from hivekeeper.plan.image_format import COLUMNS

HEADER = "\t".join(COLUMNS)
BLOCK = 134217728


def quote(path: str) -> str:
    """As commons-lang's escapeCsv and PBImageTextWriter.append do it."""
    if not any(mark in path for mark in ',"\r\n'):
        return path
    quoted = '"' + path.replace('"', '""') + '"'
    return quoted.replace("\r\n", "%x0D%x0A") if "\r\n" in quoted else quoted.replace("\n", "%x0A")


def file_line(path: str, size: int, changed: str = "2026-01-01 00:00", block: int = BLOCK) -> str:
    return f"{quote(path)}\t3\t{changed}\t{changed}\t{block}\t{-(-size // block)}\t{size}\t0\t0\t-rw-r--r--\tetl\thive\n"


def directory_line(path: str, changed: str = "2026-01-01 00:00") -> str:
    return f"{quote(path)}\t0\t{changed}\t1970-01-01 00:00\t0\t0\t0\t-1\t-1\tdrwxr-xr-x\tetl\thive\n"


def image(files: Iterable[Tuple[str, int]], directories: Iterable[str] = ()) -> bytes:
    """An image with these files and directories, and those above them."""
    listed = list(files)
    there = {"/", *directories}
    for path in [*directories, *(path for path, _ in listed)]:
        parts = path.split("/")
        there.update("/".join(parts[:depth]) for depth in range(2, len(parts)))
    lines = [HEADER + "\n", *map(directory_line, sorted(there)), *(file_line(path, size) for path, size in listed)]
    return "".join(lines).encode()
