"""Where the tests' tables are: on local files, or in the directory that HKTEST_FS names (`hdfs://127.0.0.1:8020/user/etl/tests`).

It stands for other programs and uses no Hivekeeper code. Locations are text with a scheme; readers get local copies.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest

TEST_FS = os.environ.get("HKTEST_FS", "")

# For cases that a cluster would only slow down: about a format, a text or the gateway.
local_only = pytest.mark.skipif(bool(TEST_FS), reason="local: it says the same on every file system and metastore")


def login_options() -> Dict[str, str]:
    """How Spark logs in: not at all without Kerberos; else with the keytab from `tests/cluster/cluster env`, named after its principal."""
    keytab = os.environ.get("HKTEST_KEYTAB")
    return {"spark.kerberos.principal": Path(keytab).stem, "spark.kerberos.keytab": keytab} if keytab else {}


class Found(NamedTuple):
    """A file or directory; compare times only with others from the same storage."""

    location: str
    size_bytes: int
    mtime: int
    is_dir: bool


class Storage:
    """What both kinds have in common; `root` is one test's directory."""

    root: str

    def listing(self, location: str) -> List[Found]:
        raise NotImplementedError

    def tree(self, location: str) -> List[Found]:
        """Everything below a directory."""
        found = self.listing(location)
        return found + [below for one in found if one.is_dir for below in self.tree(one.location)]


class LocalStorage(Storage):
    def __init__(self, root: Path) -> None:
        self.root = f"file:{root}"

    def _path(self, location: str) -> Path:
        return Path(location.partition(":")[2])

    def exists(self, location: str) -> bool:
        return self._path(location).exists()

    def listing(self, location: str) -> List[Found]:
        found = sorted(self._path(location).iterdir())
        statuses = [path.stat() for path in found]
        return [Found(f"file:{path}", at.st_size, at.st_mtime_ns, path.is_dir()) for path, at in zip(found, statuses)]

    def write(self, location: str, content: bytes = b"") -> None:
        """Write a file, replacing an existing one; create its parent directories."""
        self.make_directory(location.rpartition("/")[0])
        self._path(location).unlink(missing_ok=True)
        self._path(location).write_bytes(content)

    def make_directory(self, location: str) -> None:
        self._path(location).mkdir(parents=True, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Move to an unused name; create its parent directories."""
        self.make_directory(target.rpartition("/")[0])
        self._path(source).rename(self._path(target))

    def delete(self, location: str) -> None:
        path = self._path(location)
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def bring(self, directory: Path, location: str) -> None:
        """Copy a local directory's files to a place that does not exist yet."""
        shutil.copytree(directory, self._path(location), copy_function=os.link)

    def copy(self, location: str) -> Path:
        """A local path with the contents, to read only; it does not exist if there are none."""
        return self._path(location)

    def close(self) -> None:
        """Remove the directory at the end of the test."""


class HadoopStorage(Storage):
    """Uses a separate client."""

    def __init__(self, spark: Any, root: str, copies: Path) -> None:
        self.root = root
        self._jvm = spark._jvm
        self._copies = copies
        self._made = 0
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._fs = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._path(root).toUri(), configuration)
        self._fs.delete(self._path(root), True)
        self.make_directory(root)

    def _path(self, location: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(location)

    def exists(self, location: str) -> bool:
        return bool(self._fs.exists(self._path(location)))

    def listing(self, location: str) -> List[Found]:
        found = self._fs.listStatus(self._path(location))
        return sorted(Found(at.getPath().toString(), at.getLen(), at.getModificationTime(), at.isDirectory()) for at in found)

    def write(self, location: str, content: bytes = b"") -> None:
        stream = self._fs.create(self._path(location), True)
        stream.write(bytearray(content))
        stream.close()

    def make_directory(self, location: str) -> None:
        self._fs.mkdirs(self._path(location))

    def rename(self, source: str, target: str) -> None:
        self.make_directory(target.rpartition("/")[0])
        assert not self.exists(target), f"{target} is there"
        assert self._fs.rename(self._path(source), self._path(target)), f"{source} was not renamed"

    def delete(self, location: str) -> None:
        assert self._fs.delete(self._path(location), True), f"{location} was not there"

    def bring(self, directory: Path, location: str) -> None:
        self._fs.copyFromLocalFile(False, False, self._path(f"file:{directory}"), self._path(location))

    def copy(self, location: str) -> Path:
        self._made += 1
        target = self._copies / f"copy-{self._made}"
        if self.exists(location):
            # The last argument: no checksum files beside the copies.
            self._fs.copyToLocalFile(False, self._path(location), self._path(f"file:{target}"), True)
        return target

    def end_lease(self, location: str) -> None:
        """As an administrator does for a writer that died, instead of waiting a minute."""
        while not self._fs.recoverLease(self._path(location)):
            time.sleep(0.2)

    def open(self, location: str) -> Any:
        """A new file's stream, for a slow writer: write(bytearray), hflush(), close()."""
        return self._fs.create(self._path(location), False)

    def append(self, location: str) -> Any:
        """A stream that appends to an existing file."""
        return self._fs.append(self._path(location))

    def rename_as_committers_do(self, source: str, target: str) -> None:
        """FileSystem.rename: moves below the target if that is a directory."""
        assert self._fs.rename(self._path(source), self._path(target)), f"{source} was not renamed"

    def close(self) -> None:
        self._fs.delete(self._path(self.root), True)
        self._fs.close()


def open_storage(spark: Any, directory: Path) -> Storage:
    """The storage for one test, in its temporary directory."""
    if not TEST_FS:
        return LocalStorage(directory)
    return HadoopStorage(spark, f"{TEST_FS}/{directory.parent.name}/{directory.name}", directory)
