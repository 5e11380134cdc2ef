"""The mark of a control directory that belongs to no table: _orphan.json (docs/on-disk.md).

Pure: a value to JSON and back. Since when it lies there is the file's own time, not a number in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hivekeeper.runlog import strict
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import CLEANUP
from hivekeeper.runlog.strict import NewerRecord, Node

MARK_VERSION = 1
_KEYS = frozenset(["version", "table", "entry"])


@dataclass(frozen=True)
class OrphanMark:
    """Which table the log was about, and its last entry that is not of a cleanup; -1 for none.

    Another table that came to the same place and went again has written other entries, so the mark of the former one does not fit. A
    cleanup of the orphan itself writes entries too, and must not have to wait again.
    """

    table_id: str
    entry: int

    @classmethod
    def of(cls, history: History) -> OrphanMark:
        return cls(history.table_id, max((run.version for run in history.runs if run.operation != CLEANUP), default=-1))


def to_text(mark: OrphanMark) -> str:
    return json.dumps({"version": MARK_VERSION, "table": mark.table_id, "entry": mark.entry}, ensure_ascii=False) + "\n"


def from_text(text: str, where: str) -> OrphanMark:
    """Read a mark; `where` names its file. Raises UnreadableRecord."""
    known = Node(strict.parse(text, where), where)
    if known["version"].whole(1) > MARK_VERSION:
        raise NewerRecord(f"{where} was written by a newer Hivekeeper")
    known.only(_KEYS)
    return OrphanMark(known["table"].text(), known["entry"].whole(-1))
