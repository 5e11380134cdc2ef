"""Decide how many files a unit should have and what that saves the NameNode.

Pure: file sizes in, numbers out. Sizes are bytes.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from statistics import median
from typing import Collection, Dict, Iterable, Optional, Sequence, Tuple

# So many different lengths of a unit's files are kept as they are. Beyond, files are counted in steps, eight for each power of two.
EXACT_LENGTHS = 16
STEP_BITS = 4
# How many files have which length. No dict of them: an int's hash is the int, so whoever chooses lengths chooses where they lie in it, each
# behind all others. HDFS believes what a client says of the length of its file.
Counts = Collection[Tuple[int, int]]
# Of the blocks of one file: whoever may write to a table can ask for 512, for a file of a byte among large ones.
MOST_COPIES = 10


@dataclass(frozen=True)
class Sizes:
    """Statistics of the sizes of one unit's data files."""

    files: int
    total_bytes: int
    average_bytes: float
    median_bytes: float
    objects: int

    @property
    def typical_bytes(self) -> float:
        """The smaller of average and median: one huge file among thousands of small ones must not hide them."""
        return min(self.average_bytes, self.median_bytes)


def measure(lengths: Sequence[int], block_bytes: int) -> Sizes:
    """Compute the statistics; `block_bytes` is the HDFS block size, for counting NameNode objects."""
    total = sum(lengths)
    return Sizes(
        files=len(lengths),
        total_bytes=total,
        average_bytes=total / len(lengths) if lengths else 0.0,
        median_bytes=float(median(lengths)) if lengths else 0.0,
        objects=sum(file_objects(length, block_bytes) for length in lengths) + 1,
    )


def copies_of(replications: Iterable[int]) -> int:
    """How often HDFS is to keep the blocks of the copy of files with these numbers of copies, at least: nobody's file becomes less safe, or
    slower to read for many at a time.
    """
    return min(MOST_COPIES, max(replications, default=0))


def count(lengths: Iterable[int]) -> Counts:
    return [(length, sum(1 for _ in alike)) for length, alike in groupby(sorted(lengths))]


def merge(some: Iterable[Counts]) -> Counts:
    """The files of all these together, by length."""
    ordered = sorted(chain.from_iterable(some))
    return [(length, sum(files for _, files in alike)) for length, alike in groupby(ordered, lambda pair: pair[0])]


def sum_up(counts: Counts) -> Tuple[int, int]:
    """Files and bytes."""
    return sum(files for _, files in counts), sum(length * files for length, files in counts)


def measure_counts(counts: Counts, block_bytes: int) -> Sizes:
    """As measure, of so many files of each length."""
    files, total = sum_up(counts)
    objects = sum(file_objects(length, block_bytes) * alike for length, alike in counts) + 1
    return Sizes(files, total, total / files if files else 0.0, median_of(counts), objects)


class Lengths:
    """How many files have which length: exactly for a few different lengths, else in steps. Sums are always exact."""

    __slots__ = ("_exact", "_steps", "files", "total_bytes")

    def __init__(self) -> None:
        self.files = self.total_bytes = 0
        self._exact: Optional[Dict[int, int]] = {}
        # The number of files by step; an array takes a quarter of a dict's memory.
        self._steps = array("I")

    @classmethod
    def of(cls, counts: Counts) -> Lengths:
        """Of so many files of each length."""
        found = cls()
        for length, files in counts:
            found.add(length, files)
        return found

    def add(self, length: int, files: int = 1) -> None:
        self.files += files
        self.total_bytes += length * files
        exact = self._exact
        if exact is None:
            self._add_step(length, files)
            return
        exact[length] = exact.get(length, 0) + files
        if len(exact) > EXACT_LENGTHS:
            self._exact = None
            for each, count in exact.items():
                self._add_step(each, count)

    def _add_step(self, length: int, count: int) -> None:
        shift = length.bit_length() - STEP_BITS
        step = length if shift <= 0 else (shift << STEP_BITS - 1) + (length >> shift)
        if step >= len(self._steps):
            self._steps.extend(repeat(0, step + 1 - len(self._steps)))
        self._steps[step] += count

    @property
    def counts(self) -> Dict[int, int]:
        """Length → number of files. A step is represented by its middle."""
        if self._exact is not None:
            return self._exact
        return {_middle_of(step): count for step, count in enumerate(self._steps) if count}

    @property
    def median(self) -> float:
        return median_of(self.counts.items())


def _middle_of(step: int) -> int:
    """Powers of two begin steps, so that a histogram with such bounds is exact."""
    steps = 1 << STEP_BITS - 1
    if step < 2 * steps:
        return step
    shift = step // steps - 1
    return (steps + step % steps << shift) + (1 << shift) // 2


def median_of(counts: Counts) -> float:
    """The median of values that occur so often."""
    number, seen = sum_up(counts)[0], 0
    lower: Optional[int] = None
    for value, times in sorted(counts):
        seen += times
        if lower is None and 2 * seen >= number:
            lower = value
        if 2 * seen > number:
            return (value + (value if lower is None else lower)) / 2
    return 0.0


def file_objects(length: int, block_bytes: int) -> int:
    """An inode and its blocks; an empty file has no block."""
    return 1 + -(-length // block_bytes)


def directory_objects(lengths: Iterable[int], block_bytes: int) -> int:
    """A directory with files of these lengths, as the NameNode counts: inodes and blocks."""
    return sum(file_objects(length, block_bytes) for length in lengths) + 1


def threshold_bytes(block_bytes: int, ratio: float) -> float:
    """Files below this size count as small. (The rule of Lakekeeper 0.0.6, which our users know.)"""
    return block_bytes / ratio


def find_small(lengths: Counts, block_bytes: int, ratio: float) -> Counts:
    """Those of so many files of each length that are small."""
    threshold = threshold_bytes(block_bytes, ratio)
    return [(length, files) for length, files in lengths if length < threshold]


def target_files(total_bytes: int, block_bytes: int) -> int:
    """The fewest files of at most one block each."""
    return max(1, -(-total_bytes // block_bytes))


def is_worthwhile(sizes: Sizes, block_bytes: int, ratio: float) -> bool:
    """Whether the files are small and compaction leaves fewer: never true for a single file or a compacted unit."""
    small = sizes.typical_bytes < threshold_bytes(block_bytes, ratio)
    return small and target_files(sizes.total_bytes, block_bytes) < sizes.files


def predicted_objects(total_bytes: int, files: int, block_bytes: int) -> int:
    """NameNode objects of a unit with this many equal files, its directory included."""
    each = -(-total_bytes // files) if files else 0
    return files * file_objects(each, block_bytes) + 1


def control_objects(units: int, batches: int, first_run: bool) -> Tuple[int, int]:
    """Our own NameNode objects for one run: (until cleanup, after it).

    A run has its directory, `retired` and `ready`, a plan and one file of certificates per batch (an inode and a
    block each), and one directory per retired unit. The log entry stays, and so do the control
    directory, its seal, lock, log and runs created by the first run.
    """
    if not units:
        return 0, 0
    kept = 2 + (5 if first_run else 0)
    return kept + 3 + 2 + 2 * batches + units, kept


def control_names(batches: int, first_run: bool) -> int:
    """The largest number of our own files and directories at any moment of one run, without those for its units.

    The run, its plan, its log entry, `clock`, `backup_table`, `stage`, `ready`, `retired`; per batch a directory of the stage and a
    file of certificates; and a committer's `_temporary/0/_temporary`. The first run creates the control directory, its seal,
    lock, log and runs.
    """
    return 8 + 2 * batches + 3 + (5 if first_run else 0)


def assign_bins(lengths: Sequence[int], bins: int) -> Tuple[int, ...]:
    """The output file (bin) of each input, in reading order: contiguous ranges of about equal size.

    Every bin gets at least one file, so there are min(bins, len(lengths)) of them. Ranges are contiguous, so
    that rows stay in the order of their files and bounds stay narrow.
    """
    bins = min(bins, len(lengths))
    remaining, assigned, current, filled = sum(lengths), [], 0, 0
    share = remaining / bins if bins else 0
    for index, length in enumerate(lengths):
        left = len(lengths) - index
        must_advance = left == bins - current - 1 and filled > 0
        may_advance = current < bins - 1 and filled > 0 and filled + length / 2 > share
        if must_advance or may_advance:
            remaining -= filled
            current, filled = current + 1, 0
            share = remaining / (bins - current)
        filled += length
        assigned.append(current)
    return tuple(assigned)
