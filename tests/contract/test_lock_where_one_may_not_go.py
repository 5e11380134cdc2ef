"""Whether a lock's directory is found by its id is asked once, when the lock is taken. Who may rename the directory, and so can have it
for just that call where this user may not go, must not make a run go by paths on HDFS for all its time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.ports import FilesError
from support.storage import TEST_FS

pytestmark = [pytest.mark.jvm, pytest.mark.skipif(not TEST_FS.startswith("hdfs:"), reason="ids of directories")]


class Moving:
    """The lock's Java helper; somebody has the directory in a closed one of theirs while its id is asked for."""

    def __init__(self, locks: Any, fs: Any, path: Any, control: str, closed: str) -> None:
        self._locks, self._fs, self._path, self._control, self._closed = locks, fs, path, control, closed
        self._mode = fs.getFileStatus(path(closed)).getPermission()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._locks, name)

    def directoryIds(self, number: int) -> str:  # noqa: N802
        path, inside = self._path, f"{self._closed}/moved"
        self._fs.rename(path(self._control), path(inside))
        self._fs.setPermission(path(self._closed), self._none())
        try:
            return str(self._locks.directoryIds(number))
        finally:
            # The owner of that directory, whom the test's user stands for, opens it again.
            self._fs.setPermission(path(self._closed), self._mode)
            self._fs.rename(path(inside), path(self._control))

    def _none(self) -> Any:
        return type(self)._permission(0)

    _permission: Any = None


@pytest.mark.parametrize("is_moved", [False, True], ids=["there all the time", "moved for one call"])
def test_a_run_stays_in_the_directory_with_its_lock(gateway: Any, tmp_path: Any, is_moved: bool) -> None:
    jvm, files = gateway.jvm, HadoopFiles(gateway)
    top = files.qualify(f"{TEST_FS}/{tmp_path.parent.name}/{tmp_path.name}")
    path = jvm.org.apache.hadoop.fs.Path
    fs = path(top).getFileSystem(gateway.hadoop_conf)
    fs.delete(path(top), True)
    control, stage = f"{top}/table/.hivekeeper", f"{top}/table/.hivekeeper/runs/r/stage"
    for place in (stage, f"{top}/theirs", f"{top}/closed"):
        files.make_directory(place)
    files.write_new(f"{top}/theirs/rows", "of another table")
    Moving._permission = staticmethod(lambda mode: jvm.org.apache.hadoop.fs.permission.FsPermission(f"{mode:03o}"))
    if is_moved:
        files._locks = Moving(files._locks, fs, path, control, f"{top}/closed")
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
        found = [place for place in (f"{stage}/rows", f"{top}/theirs/rows") if fs.exists(path(place))]
        assert found, "the other table's rows are deleted"
    finally:
        if lock is not None:
            lock.release()
