"""Decide which units need not be looked at again, because their directories are as the catalogue saw them.

Pure. A directory's modification time changes when a file is added, removed or renamed in it, not when one is appended to in place. Only
units with nothing to do are taken over; all others are looked at again, because time alone may change what is to be done with them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional

from hivekeeper.config.settings import AT_ONCE, Settings
from hivekeeper.model import Snapshot, Unit
from hivekeeper.plan.sizing import Counts, Lengths, Sizes

# A change of a directory so shortly before it was seen may have come after the look: clocks differ.
MARGIN_MS = 60_000

_LENGTHS = re.compile(r"(?:[0-9]{1,19}:[0-9]{1,10}(?: (?!$)|$))*")


@dataclass(frozen=True)
class KnownUnit:
    """What the catalogue says of a unit. `lengths`: how many files have which length, in steps if there are many different ones."""

    place: str
    directory_id: int
    modified_ms: int
    seen_ms: int
    judged_by: str
    verdict: str
    files: int
    total_bytes: int
    median_bytes: float
    objects: int
    small_files: int
    small_bytes: int
    lengths: Counts
    main_writer: Optional[str] = None
    row_count: Optional[int] = None

    @property
    def sizes(self) -> Sizes:
        average = self.total_bytes / self.files if self.files else 0.0
        return Sizes(self.files, self.total_bytes, average, self.median_bytes, self.objects)


def judged_by(settings: Settings) -> str:
    """The settings that decide whether anything is to be done with a unit."""
    parts = (settings.block_bytes, f"{settings.ratio_threshold:g}", settings.compression, ",".join(settings.sort_columns))
    # Not for a directory's exchange: catalogues have texts without these.
    more = () if settings.exchange == AT_ONCE else (settings.exchange, settings.discard, settings.read_by_llap)
    return "/".join(map(str, (*parts, *more)))


def is_unchanged(known: KnownUnit, unit: Unit, now: Snapshot, settings: Settings) -> bool:
    """Whether a unit is as it was seen, and nothing is to be done with it. `now` needs no entries."""
    same = (known.place, known.directory_id, known.modified_ms) == (unit.live, now.file_id, now.mtime_ms)
    settled = known.modified_ms + MARGIN_MS < known.seen_ms
    return now.exists and same and settled and known.verdict in ("fine", "empty") and known.judged_by == judged_by(settings)


def lengths_text(counts: Counts) -> str:
    """`1000:3 2000:1`, as the catalogue keeps them."""
    return " ".join(f"{length}:{count}" for length, count in sorted(Lengths.of(counts).counts.items()))


def lengths_from(text: str) -> Optional[Counts]:
    """None for a text that `lengths_text` does not write."""
    if _LENGTHS.fullmatch(text) is None:
        return None
    return [(int(length), int(count)) for length, _, count in (part.partition(":") for part in text.split())]
