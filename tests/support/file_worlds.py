"""The worlds of the contract of `ports.Files`: the port, and another program that writes there; and what is looked at in them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import pytest

from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.model import Snapshot
from support.listings import tree


@dataclass
class FilesWorld:
    """`kind` is fake, local or hdfs. `writer` is another program, with the methods of `fakes.namespace.Writer` that the cases use."""

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


def names_in(snapshot: Snapshot) -> List[str]:
    return [entry.name for entry in snapshot.entries]


def look(world: FilesWorld, path: str) -> Snapshot:
    return world.files.look([path])[path]


def text_of(files: Any, path: str) -> str:
    return "".join(files.read_pieces(files.stat(path)))


def wait_a_tick(world: FilesWorld) -> None:
    """Wait long enough for the next change to get a different time."""
    if world.kind != "fake":
        time.sleep(2 * world.files.clock_grain_ms / 1000)


def configured(gateway: Gateway, named: str = "", **conf: str) -> HadoopFiles:
    """The files of another configuration; `named` are the file systems that Spark may use besides."""
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    for key, value in conf.items():
        elsewhere.hadoop_conf.set(key, value)
    elsewhere.driver = SimpleNamespace(conf={"spark.kerberos.access.hadoopFileSystems": named})
    return HadoopFiles(elsewhere)


def texts_below(world: FilesWorld, top: str) -> Dict[str, str]:
    """Text by path below a directory."""
    found = [entry for entry in tree(world.files, top) if not entry.is_dir]
    return {path[len(top) + 1 :]: text for path, text in world.files.read_texts(found).items()}


def mode_of(world: FilesWorld, *below: str) -> int:
    return world.files.stat(world.path(*below)).mode
