"""What goes by the id of a directory or file, behind a router that has a default nameservice, as all have unless a site changed it
(dfs.federation.router.default.nameservice.enable, dfs.federation.router.default.nameserviceId).

Such a router asks the NameNode of that nameservice for all that begins with /.reserved/.inodes. What lies in another nameservice has an id
there that may be anything's here: both count from the same number.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from hivekeeper.cluster.java_classes import compiled
from hivekeeper.cluster.java_errors import JAVA_ERRORS, files_error, java_causes
from hivekeeper.ports import NotPossible
from support.file_systems import configuration_with
from support.storage import TEST_FS

pytestmark = pytest.mark.jvm

ROUTED = """package hivekeeper.tested;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DFSClient;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.DataChecksum;

/** Directories have the id 7, all that is called `file` has 8. What was done by an id is in `touched`. */
public class RoutedToOne extends WithoutServer {
  public static String touched = "";
  private static int ofCatalogue = 0700;
  private static boolean isDeleted;

  private static boolean isById(String path) {
    return path.startsWith("/.reserved/");
  }

  private static String of(Path path) {
    return path.toUri().getPath();
  }

  private static boolean touches(String what, String path) {
    if (isById(path)) touched += what + " " + path;
    return isById(path);
  }

  private static boolean isFile(String path) {
    return path.endsWith("/file") || path.endsWith("/8");
  }

  /** Another table's, in the default nameservice, may have the same owner; not the same time as well. */
  private static HdfsFileStatus statusOf(String path) throws IOException {
    if (isById(path) && path.endsWith("/touched")) return new HdfsFileStatus.Builder().isdir(false).length(touched.length()).build();
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    return new HdfsFileStatus.Builder().isdir(!isFile(path)).length(isFile(path) ? 9L : 0L).fileId(isFile(path) ? 8L : 7L)
        .perm(new FsPermission((short) (isById(path) ? 0700 : ofCatalogue))).mtime(isById(path) ? 1001L : 1000L)
        .owner(user).group("hive").path(new Path(path).getName().getBytes()).build();
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    if (isDeleted && isFile(of(path)) && !isById(of(path))) throw new FileNotFoundException(of(path));
    return statusOf(of(path)).makeQualified(getUri(), path.getParent());
  }

  /** All directories between the trash and what goes there are in the one around them. */
  public RemoteIterator<FileStatus> listStatusIterator(Path path) throws IOException {
    final Path directory = path;
    final Iterator<String> names = Arrays.asList(".Trash", "Current", "table", ".hivekeeper", "runs", "r", "discarding").iterator();
    return new RemoteIterator<FileStatus>() {
      public boolean hasNext() {
        return names.hasNext();
      }

      public FileStatus next() throws IOException {
        return getFileStatus(new Path(directory, (String) names.next()));
      }
    };
  }

  public void setPermission(Path path, FsPermission permission) throws IOException {
    if (!touches("mode", of(path))) ofCatalogue = permission.toShort();
  }

  public boolean delete(Path path, boolean isRecursive) throws IOException {
    if (!touches("delete", of(path))) isDeleted = true;
    return true;
  }

  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    touches("make", of(path));
    return true;
  }

  /** The source is in the default nameservice. */
  public void rename(Path source, Path target, Options.Rename[] how) throws IOException {
    touches("rename", of(target));
  }

  public Path getTrashRoot(Path path) {
    return new Path(path.toUri().getScheme() + "://router/user/somebody/.Trash");
  }

  public FsServerDefaults getServerDefaults(Path path) throws IOException {
    return new FsServerDefaults(1L, 1, 1, (short) 1, 1, false, 60L, DataChecksum.Type.CRC32C);
  }

  public boolean isFileClosed(Path path) {
    return true;
  }

  /** Also the numbers of blocks are the same. */
  private static LocatedBlocks blocksOf(String path) {
    LocatedBlock block = new LocatedBlock(new ExtendedBlock(isById(path) ? "BP-1" : "BP-2", 1073741825L, 9L, 1001L), new DatanodeInfo[0]);
    return new LocatedBlocks(9L, false, Collections.singletonList(block), block, true, null, null);
  }

  public DFSClient getClient() {
    Class<?>[] kinds = {ClientProtocol.class};
    Object server = Proxy.newProxyInstance(ClientProtocol.class.getClassLoader(), kinds, new InvocationHandler() {
      public Object invoke(Object proxy, Method method, Object[] asked) throws Throwable {
        String path = String.valueOf(asked[0]);
        if (method.getName().equals("getFileInfo")) return statusOf(path);
        if (method.getName().equals("getBlockLocations")) return blocksOf(path);
        if (method.getName().equals("truncate")) return Boolean.valueOf(touches("cut", path));
        throw new UnsupportedOperationException(method.getName());
      }
    });
    try {
      return new DFSClient(null, (ClientProtocol) server, getConf(), null);
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
"""
CATALOGUE = "routed2://router/catalogue"
FILE = f"{CATALOGUE}/file"


class Routed:
    """Our helpers behind such a router."""

    def __init__(self, gateway: Any) -> None:
        self._gateway, self._conf = gateway, configuration_with(gateway, "routed2", "RoutedToOne", ROUTED)

    def helper(self, kind: str) -> Any:
        core = compiled(self._gateway.java_gateway)
        return core.factory.make(core.find(kind), self._conf)

    def stat(self, path: str) -> Any:
        """Without a method of the file system, whose class is another one in each test: Py4J would take it for the first one."""
        found = json.loads(self.helper("Listing").stat(path))
        return found and found["entry"]

    def require_untouched(self) -> None:
        assert self.stat("routed2://router/.reserved/.inodes/touched")["length"] == 0


@pytest.fixture
def routed(gateway: Any) -> Routed:
    return Routed(gateway)


def test_the_rights_of_a_catalogue_are_given_to_nothing_in_the_default_nameservice(routed: Routed) -> None:
    """As `catalogue/store` gives them, with the id that a listing by the path has shown."""
    routed.helper("Rights").give(json.dumps({CATALOGUE: {"mode": 0o750, "file_id": 7}}))
    routed.require_untouched()
    assert oct(routed.stat(CATALOGUE)["mode"]) == oct(0o750)


def test_a_listed_file_is_deleted_at_its_path_and_not_in_the_default_nameservice(routed: Routed) -> None:
    """As `forget` and the expiry of checkpoints do."""
    routed.helper("Directories").deleteListed(FILE, 7, 8)
    routed.require_untouched()
    assert routed.stat(FILE) is None


def test_nothing_is_looked_for_by_ids(routed: Routed) -> None:
    """So no files are joined, and none that were are called gone."""
    blocks, whereabouts = routed.helper("Blocks"), routed.helper("Whereabouts")
    asked = [(blocks.isAnywhere, FILE, 8), (blocks.isAnywhere, CATALOGUE, 9), (whereabouts.find, CATALOGUE, '{"8": ""}')]
    for ask, near, ids in asked:
        with pytest.raises(JAVA_ERRORS) as caught:
            ask(near, ids)
        assert isinstance(files_error(java_causes(caught.value)), NotPossible)


def test_no_file_of_the_default_nameservice_is_cut(routed: Routed) -> None:
    with suppress(*JAVA_ERRORS):
        routed.helper("Blocks").cut(FILE, 8, 9, "[[1073741825, 1001, 9]]")
    routed.require_untouched()


def test_no_file_of_the_default_nameservice_is_read(routed: Routed) -> None:
    assert json.loads(routed.helper("StageFiles").exactPaths(json.dumps([[FILE, 9, 0, 8]]))) == [FILE]


def test_a_trash_in_another_nameservice_than_the_table_is_not_looked_for_in_that(routed: Routed) -> None:
    """The table is in the default nameservice, so it was found by its ids when its lock was taken."""
    source = "routed2://router/.reserved/.inodes/6/discarding/u00001"
    routed.helper("Directories").moveToTrash("routed2://router/table/.hivekeeper/runs/r/discarding/u00001", source)
    routed.require_untouched()


OF_LOCK = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** The lock has the id of one of another control directory, in the default nameservice. */
public class RoutedLocks extends DistributedFileSystem {
  public FileStatus getFileStatus(Path path) throws IOException {
    FileStatus found = super.getFileStatus(path);
    if (!path.toUri().getPath().startsWith("/.reserved/")) return found;
    HdfsFileStatus other = new HdfsFileStatus.Builder().isdir(found.isDirectory()).fileId(((HdfsFileStatus) found).getFileId())
        .perm(found.getPermission()).owner(found.getOwner()).group(found.getGroup()).mtime(found.getModificationTime() - 1)
        .path(path.getName().getBytes()).build();
    return other.makeQualified(getUri(), path.getParent());
  }
}
"""


@pytest.mark.skipif(not TEST_FS.startswith("hdfs:"), reason="locks of HDFS")
@pytest.mark.parametrize("is_routed", [False, True])
def test_a_lock_is_not_taken_for_one_of_the_default_nameservice(gateway: Any, tmp_path: Any, is_routed: bool) -> None:
    conf = configuration_with(gateway, "hdfs", "RoutedLocks", OF_LOCK) if is_routed else gateway.hadoop_conf
    top = f"{TEST_FS}/{tmp_path.parent.name}/{tmp_path.name}"
    gateway.helper("Directories", conf).make(top)
    locks = gateway.helper("LeaseLock", conf)
    number = locks.hold(top, "_lock", "somebody")
    try:
        ids = json.loads(locks.directoryIds(number))
    finally:
        locks.release(number)
    assert [file_id != 0 for file_id in ids] == [not is_routed] * 2
