"""Rights for a directory with an id, as a catalogue gives them, behind a router that has no default nameservice.

Such a router knows no place for /.reserved/.inodes: RouterClientProtocol.getFileInfo then throws what MountTableResolver.lookupLocation
threw, a RouterResolveException, which HDFS's client does not unwrap. (dfs.federation.router.default.nameservice.enable=false.)
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import JavaPackage, JavaSource, compiled

pytestmark = pytest.mark.jvm

ROUTED = """package hivekeeper.routed;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.ipc.RemoteException;

public class Routed extends DistributedFileSystem {
  public static int mode = 0700;

  public void initialize(URI uri, Configuration conf) {
    setConf(conf);
  }

  public String getScheme() {
    return "routed";
  }

  public URI getUri() {
    return URI.create("routed://router");
  }

  protected URI canonicalizeUri(URI uri) {
    return uri;
  }

  public Path getWorkingDirectory() {
    return new Path("routed://router/");
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    String asked = path.toUri().getPath();
    if (asked.startsWith("/.reserved/")) {
      throw new RemoteException("org.apache.hadoop.hdfs.server.federation.resolver.RouterResolveException",
          "Cannot find locations for " + asked + ", because the default nameservice is disabled to read or write");
    }
    HdfsFileStatus found = new HdfsFileStatus.Builder().isdir(true).fileId(7L).perm(new FsPermission((short) mode)).owner("hive")
        .group("hive").path("catalogue".getBytes()).build();
    return found.makeQualified(getUri(), path.getParent());
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    mode = permission.toShort();
  }

  public void close() {}
}
"""


def test_rights_are_given_by_the_path_where_a_router_has_no_place_for_ids(gateway: Any) -> None:
    package = JavaPackage(gateway.jvm, "hivekeeper.routed", [JavaSource("Routed.java", ROUTED)], compiled(gateway.java_gateway).loader)
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    conf.setClassLoader(package.loader)
    conf.set("fs.routed.impl", "hivekeeper.routed.Routed")
    conf.setBoolean("fs.routed.impl.disable.cache", True)
    gateway.helper("Rights", conf).give(json.dumps({"routed://router/catalogue": {"mode": 0o755, "file_id": 7}}))
    status = (
        gateway.jvm.org.apache.hadoop.fs.Path("routed://router/catalogue")
        .getFileSystem(conf)
        .getFileStatus(gateway.jvm.org.apache.hadoop.fs.Path("routed://router/catalogue"))
    )
    assert oct(status.getPermission().toShort()) == oct(0o755)
