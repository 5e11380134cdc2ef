"""Hadoop file systems of tests: HDFS as another program sees it; and HDFS, in Java, whose calls a test answers or does something beside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.java_classes import JavaPackage, JavaSource, compiled
from support.storage import TEST_FS

PACKAGE = "hivekeeper.tested"
# HDFS without a server: for file systems that answer all that is asked of them themselves.
_WITHOUT_SERVER = """package hivekeeper.tested;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.UserGroupInformation;

public class WithoutServer extends DistributedFileSystem {
  private URI uri;

  public void initialize(URI uri, Configuration conf) {
    setConf(conf);
    this.uri = uri;
  }

  public String getScheme() {
    return uri.getScheme();
  }

  public URI getUri() {
    return uri;
  }

  protected URI canonicalizeUri(URI uri) {
    return uri;
  }

  public Path getWorkingDirectory() {
    return new Path(new Path(uri), "/");
  }

  /** Everything is a directory of this user. */
  public FileStatus getFileStatus(Path path) throws IOException {
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    return new FileStatus(0, true, 1, 1, 1, 1, new FsPermission((short) 0755), user, "etl", path);
  }

  public FsStatus getStatus(Path path) throws IOException {
    return new FsStatus(9, 0, 9);
  }

  public short getDefaultReplication(Path path) {
    return 3;
  }

  public long getDefaultBlockSize(Path path) {
    return 1;
  }

  public void close() {}
}
"""


def configuration_with(gateway: Any, scheme: str, kind: str, source: str, **settings: str) -> Any:
    """A Hadoop configuration, with these settings (`tested.…`), in which a scheme's file system is the class `kind` of this source. Its
    package is `hivekeeper.tested`, as that of `WithoutServer`, which it may extend.
    """
    sources = [JavaSource("WithoutServer.java", _WITHOUT_SERVER), JavaSource(f"{kind}.java", source)]
    package = JavaPackage(gateway.jvm, PACKAGE, sources, compiled(gateway.java_gateway).loader)
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    conf.setClassLoader(package.loader)
    conf.set(f"fs.{scheme}.impl", f"{PACKAGE}.{kind}")
    conf.setBoolean(f"fs.{scheme}.impl.disable.cache", True)
    for name, value in settings.items():
        conf.set(f"tested.{name}", value)
    return conf


@dataclass
class EmptyPlace:
    """One test's directory on HDFS, empty: `files` are those of a run, `fs` is what another program uses, with Hadoop's paths."""

    gateway: Any
    files: HadoopFiles
    fs: Any
    top: str

    @classmethod
    def on_hdfs(cls, gateway: Any, tmp_path: Path) -> EmptyPlace:
        files = HadoopFiles(gateway)
        top = files.qualify(f"{TEST_FS}/{tmp_path.parent.name}/{tmp_path.name}")
        path = gateway.jvm.org.apache.hadoop.fs.Path(top)
        fs = path.getFileSystem(gateway.hadoop_conf)
        fs.delete(path, True)
        return cls(gateway, files, fs, top)

    def path(self, location: str) -> Any:
        return self.gateway.jvm.org.apache.hadoop.fs.Path(location)
