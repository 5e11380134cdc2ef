"""The tables that are measured. Pure: only their form, and which stored file each of their files is a copy of."""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class Seeds(NamedTuple):
    """The distinct files that a table is made of: `count` files of `rows` rows each."""

    format: str
    count: int
    rows: int


class Shape(NamedTuple):
    """`units` partitions, or with `flat` one unpartitioned table, with `files` small files each, and one of each seed of `large`."""

    about: str
    units: int
    files: int
    seeds: Seeds
    flat: bool = False
    large: Optional[Seeds] = None
    block_bytes: int = 128 << 20

    @property
    def all_files(self) -> int:
        return self.units * (self.files + (self.large.count if self.large else 0))

    def directories(self) -> Tuple[str, ...]:
        """Relative to the table's location."""
        return ("",) if self.flat else tuple(f"dt={value}" for value in self.partitions())

    def partitions(self) -> Tuple[str, ...]:
        """Words, so that no reader guesses a number or a date."""
        return tuple(f"p{number:05d}" for number in range(self.units))

    def copies(self) -> Iterator[Tuple[Seeds, int, str]]:
        """The seeds and the number in them, and the path relative to the table's location, of each file."""
        for unit, directory in enumerate(self.directories()):
            for number in range(self.files):
                yield self.seeds, (unit * self.files + number) % self.seeds.count, self._path(directory, f"part-{number:05d}")
            for number in range(self.large.count if self.large else 0):
                yield self.large or self.seeds, number, self._path(directory, f"large-{number:05d}")

    def _path(self, directory: str, name: str) -> str:
        return f"{directory}/{name}.{self.seeds.format}" if directory else f"{name}.{self.seeds.format}"


# About 47 KB each, as 65,000 files of 3 GB are.
SMALL = Seeds("parquet", 1000, 280)
SMALL_ORC = Seeds("orc", 1000, 280)
LARGE = Seeds("parquet", 25, 32_000)
# About 3.6 MB each.
WELL_SIZED = Seeds("parquet", 200, 22_500)

SHAPES: Dict[str, Shape] = {
    "quick": Shape("1,000 files in 20 partitions", 20, 50, SMALL),
    "partitions": Shape("5,000 files in 100 partitions", 100, 50, SMALL),
    "directory": Shape("2,000 files in one directory", 1, 2000, SMALL, flat=True),
    "orc": Shape("5,000 ORC files in 100 partitions", 100, 50, SMALL_ORC),
    "mixed": Shape(
        "5,000 small files among 200 well-sized ones in one directory", 1, 5000, SMALL, flat=True, large=WELL_SIZED, block_bytes=4 << 20
    ),
    "large": Shape("20 large partitions of 25 files", 20, 25, LARGE),
    "tiny": Shape("10,000 partitions of 5 files", 10_000, 5, SMALL),
    "many": Shape("65,000 files in 130 partitions", 130, 500, SMALL),
}
