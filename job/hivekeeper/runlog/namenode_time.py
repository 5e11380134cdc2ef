"""Asks a NameNode for its time: the clocks of machines may be days ahead, or behind. Changes only the file that is made for that."""

from __future__ import annotations

from typing import Optional

from hivekeeper.names import ControlPaths
from hivekeeper.ports import Files


def ask_time(files: Files, path: str, content: str = "") -> Optional[int]:
    """The modification time of a file that is made here now, in the place of an older one; None if it is gone at once.

    Raises SourceMissing if the directory around it is gone.
    """
    files.delete_file(path)
    files.write_new(path, content)
    made = files.stat(path)
    return made.mtime_ms if made else None


def ask_before_run(files: Files, control: ControlPaths) -> int:
    """The time before a run is opened, with the table's lock held: by a file whose name every version knows, as a kill may leave it.

    0 if it is gone at once: then nothing is old enough to go.
    """
    told_ms = ask_time(files, control.new_mark)
    files.delete_file(control.new_mark)
    return told_ms or 0
