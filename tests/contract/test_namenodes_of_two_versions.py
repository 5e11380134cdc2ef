"""A command reads files of two HDFS, as while a site moves from one to the other: an old NameNode does not open files by their ids."""

from __future__ import annotations

from typing import Any

import pytest

from hivekeeper.cluster.java_errors import JAVA_ERRORS
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

VERSIONS = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathHandle;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.ipc.RpcNoSuchMethodException;

/** Tells how a file was to be opened. */
public class OfTwoVersions extends WithoutServer {
  public FSDataInputStream open(PathHandle handle, int bufferSize) throws IOException {
    if (getUri().getAuthority().equals("before-3-1")) throw new RemoteException(RpcNoSuchMethodException.class.getName(), "Unknown method");
    throw new IOException("opened by its id");
  }

  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    throw new IOException("opened by its path");
  }
}
"""


def test_what_one_namenode_cannot_do_is_still_asked_of_the_other(gateway: Any) -> None:
    """By its path, a file of another table can be read that somebody has there for a moment."""
    texts = gateway.helper("TextFiles", configuration_with(gateway, "versions", "OfTwoVersions", VERSIONS))
    for server, how in (("before-3-1", "path"), ("since-3-1", "id"), ("before-3-1", "path")):
        with pytest.raises(JAVA_ERRORS, match=f"opened by its {how}"):
            texts.readPiece(f"versions://{server}/file", 8, 0, 1)
