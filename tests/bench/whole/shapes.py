"""The tables that are measured. Pure: only their form, and which stored file each of their files is a copy of."""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Tuple


class Seeds(NamedTuple):
    """The distinct files that a table is made of: `count` files of `rows` rows each."""

    format: str
    count: int
    rows: int


class Shape(NamedTuple):
    """`units` partitions, or with `flat` one unpartitioned table, with `files` small files each."""

    about: str
    units: int
    files: int
    seeds: Seeds
    flat: bool = False

    @property
    def all_files(self) -> int:
        return self.units * self.files

    def directories(self) -> Tuple[str, ...]:
        """Relative to the table's location."""
        return ("",) if self.flat else tuple(f"dt={value}" for value in self.partitions())

    def partitions(self) -> Tuple[str, ...]:
        """Words, so that no reader guesses a number or a date."""
        return tuple(f"p{number:05d}" for number in range(self.units))

    def copies(self) -> Iterator[Tuple[int, str]]:
        """Number of the seed, and the path relative to the table's location, of each file."""
        for unit, directory in enumerate(self.directories()):
            for number in range(self.files):
                name = f"part-{number:05d}.{self.seeds.format}"
                yield (unit * self.files + number) % self.seeds.count, f"{directory}/{name}" if directory else name


# About 47 KB each, as 65,000 files of 3 GB are.
SMALL = Seeds("parquet", 1000, 280)
SMALL_ORC = Seeds("orc", 1000, 280)
LARGE = Seeds("parquet", 25, 32_000)

SHAPES: Dict[str, Shape] = {
    "quick": Shape("1,000 files in 20 partitions", 20, 50, SMALL),
    "partitions": Shape("5,000 files in 100 partitions", 100, 50, SMALL),
    "directory": Shape("2,000 files in one directory", 1, 2000, SMALL, flat=True),
    "orc": Shape("5,000 ORC files in 100 partitions", 100, 50, SMALL_ORC),
    "large": Shape("20 large partitions of 25 files", 20, 25, LARGE),
    "tiny": Shape("10,000 partitions of 5 files", 10_000, 5, SMALL),
    "many": Shape("65,000 files in 130 partitions", 130, 500, SMALL),
}
