"""What a NameNode's image says besides the tables, as text.

Pure: a result and a width in, lines out.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import List

from hivekeeper.plan.image_survey import OrphanedData
from hivekeeper.report import text
from hivekeeper.report.command_text import plural
from hivekeeper.report.results import ImageReport

MOST_LISTED = 20

HEADERS = ["DIRECTORY", "FILES", "DIRECTORIES", "SIZE", "OBJECTS"]


def render(image: ImageReport, width: int) -> List[str]:
    totals = image.totals
    written = datetime.fromtimestamp(image.written_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M")
    change = f"; newest change in it {totals.newest_change} by the clock of the machine that ran oiv" if totals.newest_change else ""
    lines = [
        "",
        f"image            {image.path}",
        f"                 written {written} UTC{change}",
        f"                 {plural(totals.files, 'file')} and {text.count_text(totals.directories)} directories, "
        f"{text.bytes_text(totals.total_bytes)}; it cannot say who is writing now",
    ]
    return lines + _render_orphans(image, width)


def _render_orphans(image: ImageReport, width: int) -> List[str]:
    sums = image.orphaned
    if not image.orphans:
        return ["", "orphaned data: none, everything belongs to a table"]
    lines = ["", f"orphaned data: belongs to no table: {plural(sums.files, 'file')}, {text.bytes_text(sums.total_bytes)}"]
    rows = [_row(one) for one in image.orphans[:MOST_LISTED]]
    lines.append(text.table(rows, HEADERS, "<>>>>", width))
    more = len(image.orphans) + image.left_out - len(rows)
    lines += [f"… and {text.count_text(more)} more (the {text.count_text(len(image.orphans))} largest with --json)"] if more else []
    if image.other_tables:
        others = plural(image.other_tables, "table")
        lines.append(f"not selected, or refused: {others}; their partitions outside their own directories count as orphaned here")
    return lines


def _row(one: OrphanedData) -> List[str]:
    path = f"{one.path} (without the directories of tables)" if one.is_rest else one.path
    counts = [text.count_text(number) for number in (one.files, one.directories)]
    return [path, *counts, text.bytes_text(one.total_bytes), text.count_text(one.objects)]
