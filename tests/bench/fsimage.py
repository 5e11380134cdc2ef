"""Measure how fast and in how much memory the text of a NameNode's image is summed up: LINES=10000000 lines.

  make bench-fsimage [LINES=10000000] [UNITS=100000] [TIMES=10]

The image is synthetic: four fifths of the files are in UNITS partitions of a thousand tables, the others in directories of no table, and
the directories come in random order, as the inodes of a real image do. The first tenth is measured by itself, to show that memory does not
grow with the lines, and so is the whole file compressed. Beside them, in the same run and on the same file: the same Python that only
splits each line into columns (the floor of any reader in Python), wc -l, and awk that adds up the sizes by parent directory.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO, Callable, Dict, Iterator, List

from hivekeeper.plan import image_format
from hivekeeper.plan.image_survey import Places, Survey, to_bytes

HEADER = "\t".join(image_format.COLUMNS)
TABLES = 1000
WAREHOUSE = "/user/hive/warehouse/sales.db"
# As long as those that Spark writes.
NAME = "part-{:05d}-2f1cbb0c-3d1e-4f3c-9d6e-0a8a7f4f1c11.c000.snappy.parquet"
FILE = "{}/{}\t3\t2026-11-{:02d} {:02d}:{:02d}\t2026-11-22 03:14\t134217728\t1\t{}\t0\t0\t-rw-r-----\tetl\thive\n"
DIRECTORY = "{}\t0\t2026-11-22 03:14\t1970-01-01 00:00\t0\t0\t0\t-1\t-1\tdrwxr-x---\tetl\thive\n"


def units(count: int) -> List[str]:
    return [f"{WAREHOUSE}/table_{number % TABLES:04d}/dt={2000 + number // TABLES}" for number in range(count)]


def write_image(path: Path, lines: int, of_units: int) -> None:
    chance = random.Random(1)
    live = units(of_units)
    others = [f"/user/person_{number % 500:03d}/job_{number:06d}/output" for number in range(of_units // 4)]
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{HEADER}\n{DIRECTORY.format('/')}")
        file.writelines(DIRECTORY.format(directory) for directory in (*live, *others))
        left = lines - 2 - len(live) - len(others)
        while left > 0:
            # Files that were written together have neighbouring inodes.
            directory = chance.choice(live if chance.random() < 0.8 else others)
            together = min(left, chance.randrange(1, 20))
            for number in range(together):
                size = int(chance.lognormvariate(13, 2))
                file.write(FILE.format(directory, NAME.format(number), *(chance.randrange(1, most) for most in (22, 24, 60)), size))
            left -= together


def pieces(path: Path, times: int = 1) -> Iterator[bytes]:
    """The file, and its lines several times more."""
    with path.open("rb") as file:
        for _ in range(times - 1):
            yield from read_pieces(file)
            file.seek(len(HEADER) + 1)
        yield from read_pieces(file)


def read_pieces(file: BinaryIO) -> Iterator[bytes]:
    while True:
        piece = file.read(image_format.PIECE_BYTES)
        if not piece:
            return
        yield piece


def survey(path: Path, of_units: int, times: int = 1) -> None:
    tables = [to_bytes(f"{WAREHOUSE}/table_{number:04d}") for number in range(TABLES)]
    counted = Survey(Places([to_bytes(unit) for unit in units(of_units)], tables, [table + b"/.hivekeeper" for table in tables]))
    for batch in image_format.split_lines(image_format.unpack(pieces(path, times))):
        counted.count(batch)
    totals = counted.finish()
    print(f"  {totals.files} files, {totals.directories} directories, {len(counted.orphans())} orphans", flush=True)


def split_only(path: Path, _of_units: int) -> None:
    for batch in image_format.split_lines(pieces(path)):
        for line in batch.lines:
            line.split(b"\t")


def count_lines(path: Path, _of_units: int) -> None:
    subprocess.run(["wc", "-l", str(path)], check=True, stdout=subprocess.DEVNULL)


def awk(path: Path, _of_units: int) -> None:
    program = r'BEGIN { FS = "\t" } { at = match($1, /\/[^\/]*$/); sum[substr($1, 1, at - 1)] += $7 } END { print length(sum) }'
    subprocess.run(["awk", program, str(path)], check=True, stdout=subprocess.DEVNULL)


PROGRAMS: Dict[str, Callable[[Path, int], None]] = {"survey": survey, "split only": split_only, "wc -l": count_lines, "awk": awk}


def measure(what: str, program: Callable[[Path, int], None], path: Path, lines: int, of_units: int) -> None:
    """In a process of its own, so that its peak memory is its own; CPU seconds, because the machine may be busy."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        program(path, of_units)
        own, its = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        cpu = sum(usage.ru_utime + usage.ru_stime for usage in (own, its))
        most = (its.ru_maxrss or own.ru_maxrss) // 1024
        wall = time.monotonic() - began
        print(f"{what}: {cpu:.1f} s of CPU, {wall:.1f} s, {lines / cpu:,.0f} lines per second of CPU, {most} MiB at most", flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"{what} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=1, help="at last, read the lines so many times as one image")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-fsimage-") as home:
        path = Path(home) / "image.tsv"
        # In a child, because a process that forks shares its peak with its children.
        child = os.fork()
        if child == 0:
            write_image(path, asked.lines, asked.units)
            os._exit(0)
        os.waitpid(child, 0)
        print(
            f"{asked.lines} lines, {path.stat().st_size >> 20} MiB, {asked.units} partitions; Python {sys.version.split()[0]}", flush=True
        )
        tenth, packed = Path(home) / "tenth.tsv", Path(home) / "image.tsv.gz"
        for command, target in ((["head", "-n", str(asked.lines // 10), str(path)], tenth), (["gzip", "-1", "-c", str(path)], packed)):
            with target.open("wb") as file:
                subprocess.run(command, check=True, stdout=file)
        measure("survey of a tenth", survey, tenth, asked.lines // 10, asked.units)
        for name, program in PROGRAMS.items():
            measure(name, program, path, asked.lines, asked.units)
        measure("survey of the gzip", survey, packed, asked.lines, asked.units)
        if asked.times > 1:
            again = partial(survey, times=asked.times)
            measure(f"survey of it {asked.times} times", again, path, asked.lines * asked.times, asked.units)


if __name__ == "__main__":
    main()
