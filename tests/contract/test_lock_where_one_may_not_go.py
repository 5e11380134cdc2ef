"""Whether a lock's directory is found by its id is asked once, when the lock is taken. Who may rename the directory, and so can have it
for just that call where this user may not go, must not make a run go by paths on HDFS for all its time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hivekeeper.ports import FilesError
from support.file_systems import EmptyPlace
from support.storage import TEST_FS

pytestmark = [pytest.mark.jvm, pytest.mark.skipif(not TEST_FS.startswith("hdfs:"), reason="ids of directories")]


class Moving:
    """The lock's Java helper; somebody has the directory in a closed one of theirs while its id is asked for."""

    def __init__(self, locks: Any, place: EmptyPlace, control: str, closed: str) -> None:
        self._locks, self._place, self._control, self._closed = locks, place, control, closed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._locks, name)

    def directoryIds(self, number: int) -> str:  # noqa: N802
        fs, path, inside = self._place.fs, self._place.path, f"{self._closed}/moved"
        mode = fs.getFileStatus(path(self._closed)).getPermission()
        fs.rename(path(self._control), path(inside))
        fs.setPermission(path(self._closed), self._place.gateway.jvm.org.apache.hadoop.fs.permission.FsPermission("000"))
        try:
            return str(self._locks.directoryIds(number))
        finally:
            # The owner of that directory, whom the test's user stands for, opens it again.
            fs.setPermission(path(self._closed), mode)
            fs.rename(path(inside), path(self._control))


@pytest.mark.parametrize("is_moved", [False, True], ids=["there all the time", "moved for one call"])
def test_a_run_stays_in_the_directory_with_its_lock(gateway: Any, tmp_path: Any, is_moved: bool) -> None:
    place = EmptyPlace.on_hdfs(gateway, tmp_path)
    files, fs, path, top = place.files, place.fs, place.path, place.top
    control, stage = f"{top}/table/.hivekeeper", f"{top}/table/.hivekeeper/runs/r/stage"
    for made in (stage, f"{top}/theirs", f"{top}/closed"):
        files.make_directory(made)
    files.write_new(f"{top}/theirs/rows", "of another table")
    if is_moved:
        files._locks = Moving(files._locks, place, control, f"{top}/closed")
    lock = None
    try:
        with suppress(FilesError):
            lock = files.hold(f"{control}/_lock", "somebody")
        if lock is None:
            return
        assert lock.check()
        # The tenant exchanges the control directory for one in which another table's directory is the stage.
        fs.rename(path(control), path(f"{top}/table/.aside"))
        fs.mkdirs(path(f"{control}/runs/r"))
        fs.rename(path(f"{top}/theirs"), path(stage))
        files.delete_tree(stage)
        found = [rows for rows in (f"{stage}/rows", f"{top}/theirs/rows") if fs.exists(path(rows))]
        assert found, "the other table's rows are deleted"
    finally:
        if lock is not None:
            lock.release()
