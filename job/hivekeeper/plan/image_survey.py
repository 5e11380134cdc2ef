"""Sum up a NameNode's image by the directories that tables, partitions and control directories have.

Pure: lines in, sums out. Memory grows with the number of these directories, and of those above them in the image, not with the number of
files: lines come in any order, so all sums are kept until the end. What belongs to no table is summed up in the highest directory that has
no table below it; of these at most MOST_ORPHANS are kept apart.

Paths are bytes without the file system's name; the root is empty.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Sequence

from hivekeeper import names
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import listings
from hivekeeper.plan.image_format import BLOCKS, MODE, MODIFIED, MOST_LINE_BYTES, SIZE, Batch, Layout, bad_line
from hivekeeper.plan.sizing import Lengths, Sizes

# Directories without a table that are kept apart; beyond, the smaller half is added to the directories above.
MOST_ORPHANS = 100_000
# Directories whose place is remembered, so that their next file finds it at once.
REMEMBERED = 100_000
# Of the names of either, which have 32 KB at most: whoever may make directories could take all memory with them.
MOST_NAMES_BYTES = 2**26
# `yyyy-MM-dd HH:mm`. A file's owner may set any time; those of year 10000 and later are left out.
MINUTE = 16

# Parts of names that may say more than "a data file": hidden, of a writer, unfinished, or with offsets. listings decides what they say.
TELLING_START = frozenset(b"._+-")
TELLING_END = (b"._COPYING_", b".tmp", b".copying", b".pending")
TELLING_PART, OFFSET_PART = b"progress", b"+"


def to_bytes(path: str) -> bytes:
    """A path as oiv writes it: Java puts a question mark for half a surrogate pair. Without a slash at its end."""
    return path.encode("utf-8", "replace").rstrip(b"/")


def to_text(path: bytes) -> str:
    return path.decode("utf-8", "replace") or "/"


class Bin:
    """Sums of some part of the image."""

    __slots__ = ("blocks", "directories", "files", "total_bytes")

    def __init__(self) -> None:
        self.files = self.directories = self.total_bytes = self.blocks = 0

    def add_file(self, _name: bytes, size: int, blocks: int) -> None:
        self.files += 1
        self.total_bytes += size
        self.blocks += blocks

    def add_directory(self) -> None:
        """Count the directory itself."""
        self.directories += 1

    def enter(self, _name: bytes) -> None:
        """Note a directory in it."""

    def add(self, other: Bin) -> None:
        self.files += other.files
        self.directories += other.directories
        self.total_bytes += other.total_bytes
        self.blocks += other.blocks

    @property
    def objects(self) -> int:
        return self.files + self.directories + self.blocks


class UnitBin(Bin):
    """What lies in the directory of one unit, not below it."""

    __slots__ = ("_telling", "lengths", "markers", "offsets")

    def __init__(self) -> None:
        super().__init__()
        self.lengths = Lengths()
        # How many; their names are not needed.
        self.markers = 0
        self._telling: Optional[FileInfo] = None
        # The first of the files that keep offsets in their names.
        self.offsets: Optional[FileInfo] = None

    def add_file(self, name: bytes, size: int, blocks: int) -> None:
        # A search by one regular expression takes twice as long.
        if name[0] in TELLING_START or OFFSET_PART in name or name.endswith(TELLING_END) or TELLING_PART in name:
            self._add_telling(name, size, blocks)
        elif size > 0:
            self.blocks += blocks
            self.lengths.add(size)

    def enter(self, name: bytes) -> None:
        entry = FileInfo(to_text(name), 0, 0, True, 0)
        if not listings.is_impala_staging(entry):
            self.note(entry)

    def note(self, entry: FileInfo) -> None:
        """Keep the first by name of the entries for which the unit is refused: a listing has it first."""
        if self._telling is None or entry.path < self._telling.path:
            self._telling = entry

    def _add_telling(self, name: bytes, size: int, blocks: int) -> None:
        entry = FileInfo(to_text(name), size, 0, False, 0)
        if listings.refuse_directory(Snapshot(True, entries=(entry,))):
            self.note(entry)
        if size == 0 and names.is_hidden(entry.path):
            self.markers += 1
        if size > 0 and not names.is_hidden(entry.path):
            self.blocks += blocks
            self.lengths.add(size)
            if names.is_offset_file(entry.path) and (self.offsets is None or entry.path < self.offsets.path):
                self.offsets = entry

    @property
    def snapshot(self) -> Snapshot:
        """What a listing would show, without the data files."""
        is_there = self.directories > 0 or self.lengths.files > 0 or self._telling is not None
        return Snapshot(is_there, entries=(self._telling,) if self._telling else ())

    @property
    def sizes(self) -> Sizes:
        files, total = self.lengths.files, self.lengths.total_bytes
        return Sizes(files, total, total / files if files else 0.0, self.lengths.median, files + self.blocks + 1)


class _BelowUnit(Bin):
    """A directory in a unit: its files are not the unit's. Anything in it tells that it is not an empty leftover."""

    __slots__ = ("_entry", "_unit")

    def __init__(self, unit: UnitBin, name: bytes) -> None:
        super().__init__()
        self._unit = unit
        self._entry = FileInfo(to_text(name), 0, 0, True, 0)

    def add_file(self, _name: bytes, _size: int, _blocks: int) -> None:
        self._unit.note(self._entry)

    def enter(self, _name: bytes) -> None:
        self._unit.note(self._entry)


class _Above(Bin):
    """A directory with tables below it: its own files, and what was small in it."""

    __slots__ = ()

    def add_directory(self) -> None:
        """It is no orphan itself."""


class ControlBin(Bin):
    """A control directory; `retired` is what its runs took out of live."""

    __slots__ = ("retired",)

    def __init__(self) -> None:
        super().__init__()
        self.retired = Bin()

    def find(self, rest: bytes) -> Bin:
        """The bin of a directory below."""
        place = "/".join(to_text(rest).split("/")[:4])
        return self.retired if names.BACKUP_PLACE.fullmatch(place) else self

    @property
    def exists(self) -> bool:
        return self.directories > 0


@dataclass(frozen=True)
class Places:
    """Where to count, as paths. `tables` are the directories of all tables of all databases, selected or not; `controls` those where a
    control directory belongs.
    """

    units: Sequence[bytes]
    tables: Sequence[bytes]
    controls: Sequence[bytes]


@dataclass(frozen=True)
class OrphanedData:
    """A directory that belongs to no table, with all below it. With `is_rest` there are tables below it: then only what lies directly in
    it, and directories that were too small to be kept apart.
    """

    path: str
    is_rest: bool
    files: int
    directories: int
    total_bytes: int
    objects: int


@dataclass(frozen=True)
class Totals:
    """The whole image. `newest_change` is the latest modification time in it, by the clock of whoever ran oiv, "" for none."""

    files: int
    directories: int
    total_bytes: int
    newest_change: str


# Stands for the slash in sorted paths: no name has it, and it comes before all characters, so that a directory precedes all below it.
END = b"\0"


def _sortable(path: bytes) -> bytes:
    return path.replace(b"/", END)


def _find_outermost(paths: Iterable[bytes]) -> List[bytes]:
    """Those of the paths that lie in none of the others, sorted."""
    found: List[bytes] = []
    for path in sorted(map(_sortable, paths)):
        if not found or not path.startswith(found[-1] + END):
            found.append(path)
    return found


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes of two sortable paths, each with a slash at its end, are the same directories; without the last slash."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if other.startswith(one[:middle]):
            low = middle
        else:
            high = middle - 1
    return one.rfind(END, 0, low)


class Survey:
    """Counts lines. Raises BadImage for a line that cannot be read; its figures are not to be used then."""

    def __init__(self, places: Places) -> None:
        self._fixed: Dict[bytes, Bin] = {}
        self._orphans: Dict[bytes, Bin] = {}
        self._of_tables = Bin()
        self._layout: Optional[Layout] = None
        # A path with a line end in it: the lines so far, their bytes, and the number of the first, 0 for none.
        self._open: List[bytes] = []
        self._open_bytes = self._open_at = 0
        # Whether small orphans were added to the directories above.
        self.has_merged = False
        self._files = self._directories = self._total_bytes = 0
        self._newest = b""
        self._fix(places)
        self._bins = dict(self._fixed)
        self._bins_bytes = self._orphans_bytes = 0

    def _fix(self, places: Places) -> None:
        for path in places.units:
            self._fixed.setdefault(path, UnitBin())
        for path in places.controls:
            self._fixed.setdefault(path, ControlBin())
        for path in places.tables:
            if not names.is_in_control(to_text(path)):
                self._fixed.setdefault(path, self._of_tables)
        self._outermost = _find_outermost(self._fixed)
        self._sorted = sorted(_sortable(path) + END for path in {*self._fixed, b""})
        self._fixed.setdefault(b"", _Above())

    def _find_fixed(self, place: bytes) -> Optional[Bin]:
        """The bin of exactly this directory, if it is one of the places, or has some below it and lies in none. Directories above are made
        only where the image has them: the locations of tables may be a thousand directories deep, and need not exist.
        """
        found = self._fixed.get(place)
        if found is None and self._is_above(place):
            found = self._fixed[place] = _Above()
        return found

    def _is_above(self, place: bytes) -> bool:
        start = _sortable(place) + END
        at = bisect_left(self._outermost, start)
        return at < len(self._outermost) and self._outermost[at].startswith(start)

    def count(self, batch: Batch) -> None:
        """Count the next lines. One loop without calls where possible: there are a hundred million of them."""
        layout, first, lines = self._layout, batch.first, batch.lines
        if layout is None:
            layout = self._layout = Layout.of_header(lines[0])
            first, lines = first + 1, lines[1:]
        delimiter, columns, bins, newest = layout.delimiter, layout.columns, self._bins, self._newest
        files = total_bytes = 0
        number, is_open = first, bool(self._open_at)
        try:
            for number, line in enumerate(lines, first):
                fields = line.split(delimiter)
                if is_open or len(fields) != columns or fields[0][:1] != b"/":
                    found = self._read_odd(layout, line, number)
                    is_open = found is None
                    if found is None:
                        continue
                    fields = found
                kind = fields[MODE][:1]
                if kind == b"-":
                    size = int(fields[SIZE])
                    directory, _, name = fields[0].rpartition(b"/")
                    (bins.get(directory) or self._find(directory)).add_file(name, size, int(fields[BLOCKS]))
                    files += 1
                    total_bytes += size
                elif kind == b"d":
                    self._count_directory(fields[0])
                else:
                    raise ValueError("its mode does not begin with d or -")
                if fields[MODIFIED] > newest and len(fields[MODIFIED]) == MINUTE:
                    newest = fields[MODIFIED]
        except ValueError as error:
            raise bad_line(self._open_at or number, str(error)) from None
        self._files += files
        self._total_bytes += total_bytes
        self._newest = newest

    def _read_odd(self, layout: Layout, line: bytes, number: int) -> Optional[List[bytes]]:
        """The columns of a line that is not simple, or None if it goes on in the next one."""
        fields = layout.read_odd(line, self._open)
        if fields is None:
            self._open_bytes += len(line) + 1
            # Of a path that is too long the middle is left out: its beginning says where it belongs.
            if not self._open_at or self._open_bytes <= MOST_LINE_BYTES:
                self._open.append(line)
            self._open_at = self._open_at or number
        else:
            self._open.clear()
            self._open_bytes = self._open_at = 0
        return fields

    def _count_directory(self, path: bytes) -> None:
        parent, _, name = path.rpartition(b"/")
        own = path if name else parent
        (self._bins.get(own) or self._find(own)).add_directory()
        (self._bins.get(parent) or self._find(parent)).enter(name)
        self._directories += 1

    def _find(self, directory: bytes) -> Bin:
        """The bin of a directory that is not remembered."""
        self._bins_bytes += len(directory)
        if len(self._bins) > 2 * len(self._fixed) + REMEMBERED or self._bins_bytes > MOST_NAMES_BYTES:
            self._forget()
        place = self._cut(directory)
        fixed = self._find_fixed(place)
        while fixed is None:
            place = place.rpartition(b"/")[0]
            fixed = self._find_fixed(place)
        found = self._find_below(fixed, place, directory[len(place) + 1 :])
        self._bins[directory] = found
        return found

    def _cut(self, directory: bytes) -> bytes:
        """A directory without what none of the places shares with it. Those that are nested more deeply, perhaps thousands in one another,
        are not gone through one by one.
        """
        key = _sortable(directory) + END
        at = bisect_left(self._sorted, key)
        return directory[: max(_shared(key, other) for other in self._sorted[max(0, at - 1) : at + 1])]

    def _find_below(self, fixed: Bin, place: bytes, rest: bytes) -> Bin:
        if not rest:
            return fixed
        if isinstance(fixed, UnitBin):
            return _BelowUnit(fixed, rest.partition(b"/")[0])
        if isinstance(fixed, ControlBin):
            return fixed.find(rest)
        return self._orphan(place + b"/" + rest.partition(b"/")[0]) if isinstance(fixed, _Above) else fixed

    def _orphan(self, path: bytes) -> Bin:
        if path not in self._orphans:
            if len(self._orphans) >= MOST_ORPHANS or self._orphans_bytes > MOST_NAMES_BYTES:
                self._merge_orphans()
            self._orphans[path] = Bin()
            self._orphans_bytes += len(path)
        return self._orphans[path]

    def _merge_orphans(self) -> None:
        """Add the smaller half to the directories above."""
        ranked = sorted(self._orphans, key=lambda path: (self._orphans[path].total_bytes, self._orphans[path].objects))
        for path in ranked[: len(ranked) // 2 + 1]:
            self._fixed[path.rpartition(b"/")[0]].add(self._orphans.pop(path))
        self._orphans_bytes = sum(map(len, self._orphans))
        self.has_merged = True
        self._forget()

    def _forget(self) -> None:
        self._bins.clear()
        self._bins.update(self._fixed)
        self._bins_bytes = 0

    def finish(self) -> Totals:
        """The sums of the whole image, when all lines are counted. Raises BadImage if something is missing."""
        if self._open_at:
            raise bad_line(self._open_at, "its quoted path has no end, so the file was cut off")
        if not self._files + self._directories:
            raise bad_line(1, "no line of a file or directory follows")
        return Totals(self._files, self._directories, self._total_bytes, self._newest.decode("ascii", "replace"))

    def unit(self, path: bytes) -> UnitBin:
        found = self._fixed.get(path)
        return found if isinstance(found, UnitBin) else UnitBin()

    def control(self, path: bytes) -> ControlBin:
        found = self._fixed.get(path)
        return found if isinstance(found, ControlBin) else ControlBin()

    def orphans(self) -> List[OrphanedData]:
        """What belongs to no table, the largest first."""
        above = {path: found for path, found in self._fixed.items() if isinstance(found, _Above) and found.objects}
        found = [*_list_orphans(self._orphans, False), *_list_orphans(above, True)]
        return sorted(found, key=lambda one: (-one.total_bytes, -one.objects, one.path))


def _list_orphans(bins: Mapping[bytes, Bin], is_rest: bool) -> List[OrphanedData]:
    return [OrphanedData(to_text(path), is_rest, one.files, one.directories, one.total_bytes, one.objects) for path, one in bins.items()]
