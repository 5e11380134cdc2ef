"""What goes by the id of a directory or file, behind a router that has no default nameservice.

Such a router knows no place for /.reserved/.inodes: RouterClientProtocol.getFileInfo then throws what MountTableResolver.lookupLocation
threw, which HDFS's client does not unwrap. (dfs.federation.router.default.nameservice.enable=false; an IOException before Hadoop 3.3, a
RouterResolveException since.)
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import compiled
from hivekeeper.cluster.java_errors import JAVA_ERRORS, files_error, java_causes
from hivekeeper.ports import NotPossible
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

ROUTED = """package hivekeeper.tested;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.ipc.RemoteException;

public class Routed extends WithoutServer {
  public static int mode = 0700;
  private static boolean isDeleted;

  public FileStatus getFileStatus(Path path) throws IOException {
    String asked = path.toUri().getPath();
    if (asked.startsWith("/.reserved/")) {
      throw new RemoteException(getConf().get("tested.error"),
          "Cannot find locations for " + asked + ", because the default nameservice is disabled to read or write\\n\\tat ...");
    }
    boolean isFile = path.getName().equals("file");
    if (isFile && isDeleted) throw new FileNotFoundException(asked);
    HdfsFileStatus found = new HdfsFileStatus.Builder().isdir(!isFile).fileId(isFile ? 8L : 7L).perm(new FsPermission((short) mode))
        .owner("hive").group("hive").path(path.getName().getBytes()).build();
    return found.makeQualified(getUri(), path.getParent());
  }

  public boolean isFileClosed(Path path) {
    return true;
  }

  public boolean delete(Path path, boolean isRecursive) throws IOException {
    isDeleted = path.getName().equals("file") && !isRecursive;
    return isDeleted;
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    mode = permission.toShort();
  }
}
"""
CATALOGUE = "routed://router/catalogue"


class Routed:
    """Our helpers behind a router."""

    def __init__(self, gateway: Any, error: str) -> None:
        self.gateway, self.conf = gateway, configuration_with(gateway, "routed", "Routed", ROUTED, error=error)

    def helper(self, kind: str) -> Any:
        core = compiled(self.gateway.java_gateway)
        return core.factory.make(core.find(kind), self.conf)

    def stat(self, path: str) -> Any:
        """Without a method of the file system, whose class is another one in each test: Py4J would take it for the first one."""
        found = json.loads(self.helper("Listing").stat(path))
        return found and found["entry"]


@pytest.fixture(params=["java.io.IOException", "org.apache.hadoop.hdfs.server.federation.resolver.RouterResolveException"])
def routed(request: Any, gateway: Any) -> Routed:
    return Routed(gateway, request.param)


def test_rights_are_given_by_the_path(routed: Routed) -> None:
    """As a catalogue gives them."""
    routed.helper("Rights").give(json.dumps({CATALOGUE: {"mode": 0o755, "file_id": 7}}))
    assert oct(routed.stat(CATALOGUE)["mode"]) == oct(0o755)


def test_a_listed_file_is_deleted_by_its_path_and_no_other(routed: Routed) -> None:
    """As `forget` and the expiry of checkpoints do."""
    file = f"{CATALOGUE}/file"
    routed.helper("Directories").deleteListed(file, 7, 9)
    assert routed.stat(file)["file_id"] == 8
    routed.helper("Directories").deleteListed(file, 7, 8)
    assert routed.stat(file) is None


def test_that_ids_are_not_found_is_told_so_no_files_are_joined(routed: Routed) -> None:
    with pytest.raises(JAVA_ERRORS) as caught:
        routed.helper("Blocks").isAnywhere(CATALOGUE, 7)
    assert isinstance(files_error(java_causes(caught.value)), NotPossible)
