"""ACLs with odd names: whoever may write to a table gives them to its directories and files. HDFS bounds only the number of entries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper.cluster.java_errors import JAVA_ERRORS
from hivekeeper.plan import file_rights
from hivekeeper.ports import NoPermission
from support.file_systems import configuration_with

pytestmark = pytest.mark.jvm

# So many named users has an access ACL at most, besides the base entries (AclTransformation.MAX_ENTRIES).
NAMED = 28
FITS, LONG = 200, 300


@pytest.fixture
def hdfs(files_world):
    if files_world.kind != "hdfs":
        pytest.skip("only HDFS has ACLs")
    return files_world


def give_acl(gateway, path, length):
    jvm = gateway.jvm
    users = (f"user:{'n' * (length - 2)}{number:02d}:r-x" for number in range(NAMED))
    acl = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(",".join(["user::rwx,group::r-x,mask::r-x,other::---", *users]), True)
    place = jvm.org.apache.hadoop.fs.Path(path)
    place.getFileSystem(gateway.hadoop_conf).setAcl(place, acl)


@pytest.mark.parametrize("part", ["directory", "file"])
def test_an_acl_that_is_too_long_to_be_kept_for_many_is_not_read(hdfs, gateway, part):
    """A table may have a hundred thousand directories, whose attributes are read in one call; each of their files may have another ACL."""
    top = hdfs.path("closed")
    hdfs.writer.make_directory(top)
    hdfs.writer.add(f"{top}/a", "x")
    place = top if part == "directory" else f"{top}/a"
    ids = {top: hdfs.files.stat(top).file_id}
    reads = [lambda: hdfs.files.attributes([top])]
    if part == "file":
        reads.append(lambda: hdfs.files.file_rights(ids, file_rights.MOST_DIFFERENT))
    give_acl(gateway, place, FITS)
    for read in reads:
        assert "n" * (FITS - 2) in str(read())
    give_acl(gateway, place, LONG)
    for read in reads:
        with pytest.raises(NoPermission, match=r"closed.*its ACL has more than 8192 characters"):
            read()


def test_a_listing_tells_what_has_an_acl(hdfs, gateway):
    top = hdfs.path("named")
    hdfs.writer.make_directory(top)
    for name in ("a", "b"):
        hdfs.writer.add(f"{top}/{name}", "x")
    give_acl(gateway, f"{top}/b", FITS)
    assert {entry.name: entry.has_acl for entry in hdfs.files.look([top])[top].entries} == {"a": False, "b": True}


@pytest.mark.parametrize("name", ["mallory:rwx,user:nobody", "mallory:rwx,mask::rwx,user:nobody", "a,b", "a:b"])
@pytest.mark.parametrize("part", ["directory", "file"])
def test_nor_is_one_with_a_name_that_says_another_entry(hdfs, gateway, part, name):
    """What is made for the table, its control directory among it, would be open to `mallory`: the text of an ACL is read again there."""
    top = hdfs.path("crafted")
    hdfs.writer.make_directory(top)
    hdfs.writer.add(f"{top}/a", "x")
    jvm = gateway.jvm
    place = jvm.org.apache.hadoop.fs.Path(top if part == "directory" else f"{top}/a")
    entries = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec("user::rwx,group::r-x,other::---,mask::r-x,user:x:r-x", True)
    kinds = jvm.org.apache.hadoop.fs.permission
    entry = kinds.AclEntry.Builder().setScope(kinds.AclEntryScope.ACCESS).setType(kinds.AclEntryType.USER).setName(name)
    entries.add(entry.setPermission(kinds.FsAction.READ_EXECUTE).build())
    place.getFileSystem(gateway.hadoop_conf).setAcl(place, entries)
    with pytest.raises(NoPermission, match="an entry that names no user or group"):
        hdfs.files.attributes([top])


# A directory of this user with fifty entries that others may write to and that have ACLs.
OPENED = """package hivekeeper.tested;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.AclStatus;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;

public class Opened extends WithoutServer {
  private boolean is(String name, Path path) {
    return getConf().getBoolean("tested." + name, false) && path.getName().equals("00");
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    if (is("gone", path)) throw new FileNotFoundException(path.toString());
    count("statuses");
    return status(path, false);
  }

  private FileStatus status(Path path, boolean isListed) throws IOException {
    boolean isTop = path.getName().equals("c");
    boolean isDir = isTop || isListed && getConf().getBoolean("tested.directories", false);
    FsPermission mode = new FsPermission((short) (isTop ? 0700 : 0666));
    boolean hasAcl = !isTop && getConf().getBoolean("tested.acls", true);
    String user = UserGroupInformation.getCurrentUser().getShortUserName();
    return new FileStatus(1, isDir, 1, 1, 1, 1, mode, user, "etl", null, path, hasAcl, false, false);
  }

  public RemoteIterator<FileStatus> listStatusIterator(final Path path) throws IOException {
    return new RemoteIterator<FileStatus>() {
      private int told;

      public boolean hasNext() {
        return told < 50;
      }

      public FileStatus next() throws IOException {
        return status(new Path(path, (told < 10 ? "0" : "") + told++), true);
      }
    };
  }

  public AclStatus getAclStatus(Path path) throws IOException {
    count("acls");
    char[] name = new char[is("long", path) ? 9000 : 3];
    Arrays.fill(name, 'b');
    List<AclEntry> entries = AclEntry.parseAclSpec("user:" + new String(name) + ":rw-,group::r--", true);
    return new AclStatus.Builder().addEntries(entries).setPermission(new FsPermission((short) 0666)).build();
  }

  private static void count(String what) {
    System.setProperty("tested." + what, String.valueOf(Integer.getInteger("tested." + what, 0) + 1));
  }
}
"""


class Opened:
    """`Rights` there, and how often it has asked."""

    def __init__(self, gateway: Any, **settings: str) -> None:
        self._properties = gateway.jvm.java.lang.System
        for what in ("acls", "statuses"):
            self._properties.clearProperty(f"tested.{what}")
        self.rights = gateway.helper("Rights", configuration_with(gateway, "opened", "Opened", OPENED, **settings))

    def exposed(self) -> Any:
        return json.loads(self.rights.exposed("opened://nn/c", 1))

    def asked(self, what: str) -> int:
        return int(self._properties.getProperty(f"tested.{what}", "0"))


def test_what_others_may_write_to_is_asked_for_few_acls(gateway):
    """Others may fill a directory of this user with a million files, and each ACL costs a call and has up to eight thousand characters."""
    opened = Opened(gateway)
    assert {tuple(one["acl"]) for one in opened.exposed()} == {("group::r--", "mask::rw-", "other::rw-", "user::rw-", "user:bbb:rw-")}
    assert opened.asked("acls") == 50
    opened.rights.setMostAcls(10)
    assert [bool(one["acl"]) for one in opened.exposed()] == [True] * 10 + [False] * 40
    assert opened.asked("acls") == 60


def test_what_has_no_acl_is_not_asked_for_one(gateway):
    opened = Opened(gateway, acls="false")
    assert len(opened.exposed()) == 50
    # That of the directory itself.
    assert (opened.asked("acls"), opened.asked("statuses")) == (0, 1)


def test_directories_of_ours_are_not_judged_without_their_acls(gateway):
    opened = Opened(gateway, directories="true")
    opened.rights.setMostAcls(50)
    assert len(opened.exposed()) == 50
    opened.rights.setMostAcls(49)
    with pytest.raises(JAVA_ERRORS, match="too many ACLs"):
        opened.exposed()


def test_what_others_may_write_to_is_not_told_by_the_million(gateway):
    opened = Opened(gateway)
    opened.rights.setMostExposed(50)
    assert len(opened.exposed()) == 50
    opened.rights.setMostExposed(49)
    with pytest.raises(JAVA_ERRORS, match="too many entries of others"):
        opened.exposed()


@pytest.mark.parametrize("why", ["long", "gone"])
def test_an_acl_that_cannot_be_read_hides_nothing_that_lies_behind_it(gateway, why):
    """Whoever may write to the directory gives a file of his own such an ACL, or removes it just after it was listed."""
    found = Opened(gateway, **{why: "true"}).exposed()
    assert [one["path"].rpartition("/")[2] for one in found] == [f"{number:02d}" for number in range(50)]
    assert [bool(one["acl"]) for one in found] == [False] + [True] * 49
