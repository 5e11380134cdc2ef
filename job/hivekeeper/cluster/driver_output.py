"""Sends the output of a driver in YARN cluster mode to a file that the launcher reads.

Works without a session, so that a driver whose session did not open can still say why. Touches only such files.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

from hivekeeper.errors import Unusable

# A later driver deletes older files that nobody fetched (because the launcher was stopped).
KEPT_MS = 7 * 86_400_000

# As bin/hivekeeper has them named, and the same while it is written: the directory may hold other files of the user, too.
OWN = re.compile(r"[0-9]{8}t[0-9]{6}z-[0-9a-f]{16}\.json(\.[0-9a-f]{8})?")


def send(path: str, text: str) -> None:
    """Write the file. Raises Unusable."""
    from pyspark import SparkContext

    from hivekeeper.cluster.java_errors import ALL_ERRORS, first_line, java_causes

    try:
        SparkContext._ensure_initialized()
        _write(SparkContext._jvm, path, text)
    except ALL_ERRORS as error:
        raise Unusable(
            f"the driver's output cannot be written to {path}: {first_line(java_causes(error)) or 'Java has ended'}",
            state="the run has ended",
            next="correct spark.driver_output_dir; hivekeeper history shows what was done",
        ) from error


def _write(jvm: Any, path: str, text: str) -> None:
    """Write to another name, then rename, so that a reader finds only complete files."""
    target = jvm.org.apache.hadoop.fs.Path(path)
    aside = target.suffix(f".{secrets.token_hex(4)}")
    files = target.getFileSystem(jvm.org.apache.hadoop.conf.Configuration())
    private = jvm.org.apache.hadoop.fs.permission.FsPermission("700")
    files.mkdirs(target.getParent(), private)
    stream = files.create(aside, False)
    files.setPermission(aside, jvm.org.apache.hadoop.fs.permission.FsPermission("600"))
    stream.write(bytearray(text.encode()))
    stream.close()
    files.rename(aside, target)
    _forget_old(files, target.getParent(), jvm.java.lang.System.currentTimeMillis())


def _forget_old(files: Any, directory: Any, now_ms: int) -> None:
    for status in files.listStatus(directory):
        if OWN.fullmatch(status.getPath().getName()) and status.isFile() and now_ms - status.getModificationTime() > KEPT_MS:
            files.delete(status.getPath(), False)
