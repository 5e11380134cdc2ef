"""The worlds for contract tests: a port's fake and its real implementation, each with another program that changes things there.

The real ones work on local files and an embedded metastore, or on those of the cluster that HKTEST_FS and HADOOP_CONF_DIR name.
"""

from __future__ import annotations

import itertools
import os
from typing import Any, Iterator

import pytest

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.session import guard_session
from support.fakes.files import FakeFiles
from support.fakes.metastore import FakeMetastore
from support.file_worlds import FilesWorld, HadoopWriter, client_of_its_own
from support.metastore_worlds import FakeWorld, RealWorld
from support.storage import TEST_FS, Storage

DATABASES = itertools.count()


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


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.jvm)])
def world(request: pytest.FixtureRequest) -> Any:
    """A metastore, and others who change what it has: the fake's, and the real one."""
    if request.param == "real":
        return request.getfixturevalue("real")
    files = FakeFiles()
    found = FakeWorld(FakeMetastore(files), files, "contract")
    found.metastore.catalog.databases.add(found.database)
    found.metastore.catalog.homes[found.database] = found.root
    return found


@pytest.fixture
def real(gateway: Gateway, storage: Storage) -> Iterator[RealWorld]:
    """The real metastore alone, for what only it can show."""
    found = RealWorld(gateway, storage, f"contract_{os.getpid()}_{next(DATABASES)}")
    yield found
    for database in found.databases:
        gateway.spark.sql(f"DROP DATABASE {database} CASCADE")
    found.client.close()


@pytest.fixture(scope="module")
def guarded(spark: Any) -> Any:
    """A session as a command has it."""
    session = spark.newSession()
    guard_session(session)
    return session
