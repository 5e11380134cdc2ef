"""The worlds for contract tests: a port's fake and its real implementation, each with another program that writes there.

The real one works on local files, or below the directory that HKTEST_FS names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator

import pytest

from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from support.fakes.files import FakeFiles
from support.storage import TEST_FS


@dataclass
class FilesWorld:
    """`kind` is fake, local or hdfs. `writer` is another program, with the methods of `fakes.files.Writer` that the cases use."""

    kind: str
    files: Any
    writer: Any
    root: str
    another_client: Callable[[], Any]

    def path(self, *below: str) -> str:
        return "/".join([self.root, *below])

    def skip_on(self, kind: str, reason: str) -> None:
        if self.kind == kind:
            pytest.skip(f"{kind}: {reason}")


class HadoopWriter:
    """Another program on a real file system, with its own client."""

    def __init__(self, gateway: Gateway, root: str) -> None:
        self._jvm = gateway.jvm
        self._fs = gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._path(root).toUri(), gateway.hadoop_conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def add(self, path: str, content: str) -> None:
        self._write(self._fs.create(self._path(path), False), content).close()

    def open(self, path: str, content: str = "") -> Any:
        return self._write(self._fs.create(self._path(path), False), content)

    def append_open(self, stream: Any, more: str) -> None:
        self._write(stream, more)

    def _write(self, stream: Any, text: str) -> Any:
        stream.write(bytearray(text.encode()))
        stream.hflush()
        return stream

    def close(self, stream: Any) -> None:
        stream.close()

    def make_directory(self, path: str) -> None:
        self._fs.mkdirs(self._path(path))

    def delete(self, path: str) -> None:
        self._fs.delete(self._path(path), True)

    def rename_into(self, source: str, target: str) -> None:
        assert self._fs.rename(self._path(source), self._path(target))

    def stop(self) -> None:
        self._fs.close()


def client_of_its_own(driver: Driver) -> HadoopFiles:
    """A second process as far as HDFS can tell: it shares nothing through Hadoop's cache of clients."""
    gateway = Gateway(driver)
    gateway.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    gateway.hadoop_conf.setBoolean("fs.hdfs.impl.disable.cache", True)
    return HadoopFiles(gateway)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.jvm)])
def files_world(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[FilesWorld]:
    if request.param == "fake":
        files = FakeFiles()
        files.make_directory("/contract")
        yield FilesWorld("fake", files, files.writer, files.qualify("/contract"), files.another_client)
        return
    gateway = request.getfixturevalue("gateway")
    files = HadoopFiles(gateway)
    root = files.qualify(f"{TEST_FS}/{tmp_path.parent.name}/{tmp_path.name}" if TEST_FS else str(tmp_path))
    files.delete_tree(root)
    files.make_directory(root)
    writer = HadoopWriter(gateway, root)
    yield FilesWorld("hdfs" if root.startswith("hdfs:") else "local", files, writer, root, lambda: client_of_its_own(gateway.driver))
    writer.stop()
