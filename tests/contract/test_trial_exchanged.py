"""What doctor tries, and rights by an id, while somebody who may write there exchanges what is looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_errors import JAVA_ERRORS
from support.file_systems import EmptyPlace, configuration_with
from support.storage import TEST_FS

pytestmark = [pytest.mark.jvm, pytest.mark.skipif(not TEST_FS.startswith("hdfs:"), reason="ids of directories, and ACLs")]

EXCHANGING = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;

public class Exchanging extends DistributedFileSystem {
  private static int done;
  private static boolean wasClosed;

  private Path made() {
    return new Path(getConf().get("tested.made"));
  }

  private Path table() {
    return new Path(getConf().get("tested.table"));
  }

  private Path scratch() {
    return new Path(table(), getConf().get("tested.scratch"));
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    if (getConf().get("tested.made") != null) return exchangeMade(path);
    if (done == 0 && path.toUri().getPath().startsWith("/.reserved/.inodes/")) {
      done = 1;
      // Whoever may write to the directory around it may delete an empty one of another user, and had kept one of an earlier doctor.
      if (!super.delete(scratch(), false)) throw new AssertionError("it is not there");
      if (!super.rename(new Path(table(), "kept"), scratch())) throw new AssertionError("it is not there any more");
    }
    return super.getFileStatus(path);
  }

  /** What was made is for a moment where this user may not go, then back, and then another one is at its path. */
  private FileStatus exchangeMade(Path path) throws IOException {
    Path closed = new Path(made().getParent(), "closed");
    if (path.toUri().getPath().startsWith("/.reserved/.inodes/")) {
      super.rename(made(), closed);
      super.setPermission(closed, new FsPermission((short) 0));
      wasClosed = true;
      try {
        return super.getFileStatus(path);
      } finally {
        super.setPermission(closed, new FsPermission((short) 0700));
        super.rename(new Path(closed, made().getName()), made());
      }
    }
    FileStatus found = super.getFileStatus(path);
    Path theirs = new Path(made().getParent(), "theirs");
    if (wasClosed && path.toUri().getPath().equals(made().toUri().getPath()) && super.exists(theirs)) {
      super.rename(made(), new Path(made().getParent(), "aside"));
      super.rename(theirs, made());
    }
    return found;
  }

  public boolean mkdir(Path path, FsPermission permission) throws IOException {
    if (done == 1 && path.getName().equals("set-acl")) {
      done = 2;
      super.rename(scratch(), new Path(table(), "aside"));
      super.rename(new Path(table(), "mallorys"), scratch());
    }
    return super.mkdir(path, permission);
  }
}
"""

REMOVING = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Just before anything is deleted, another directory comes to the place of the old trial. */
public class Removing extends DistributedFileSystem {
  private boolean done;

  public boolean delete(Path path, boolean recursive) throws IOException {
    if (!done) {
      done = true;
      Path old = new Path(getConf().get("tested.old"));
      if (!super.rename(old, old.suffix("-away"))) throw new AssertionError("it is not there");
      if (!super.rename(new Path(getConf().get("tested.theirs")), old)) throw new AssertionError("it is not there any more");
    }
    return super.delete(path, recursive);
  }
}
"""

REPLACING = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Just after a directory was looked at, another one comes to its path. */
public class Replacing extends DistributedFileSystem {
  private boolean done;

  public FileStatus getFileStatus(Path path) throws IOException {
    FileStatus found = super.getFileStatus(path);
    if (done || !path.getName().equals("closed")) return found;
    done = true;
    if (!super.rename(path, path.suffix("-away"))) throw new AssertionError("it is not there");
    if (!super.rename(new Path(path.getParent(), "theirs"), path)) throw new AssertionError("it is not there any more");
    return found;
  }
}
"""

RUN = "20260101t020304z-0000"
OLD = "20250101t020304z-0001"
NAME = names.trial_directory(RUN)


def exchanging(gateway: Any, **settings: str) -> Any:
    """A configuration in which somebody exchanges directories between the calls."""
    return configuration_with(gateway, "hdfs", "Exchanging", EXCHANGING, **settings)


@pytest.fixture
def place(gateway: Any, tmp_path: Any) -> EmptyPlace:
    return EmptyPlace.on_hdfs(gateway, tmp_path)


def try_rights(place: EmptyPlace, conf: Any) -> Any:
    """What the trial of a doctor tells of a table there."""
    trial = place.gateway.helper("doctor.RightsTrial", conf)
    return json.loads(trial.run(place.top, f"{place.top}/.hivekeeper", NAME, names.TRIAL_DIRECTORIES))


def test_rights_for_the_directory_with_an_id_are_not_given_to_another_one_at_its_path(place: EmptyPlace, gateway: Any) -> None:
    """As a catalogue gives them, which holds no lock, to a directory that it has just made."""
    top, files = place.top, place.files
    for name in ("made", "theirs", "closed"):
        files.make_directory(f"{top}/{name}")
    files.write_new(f"{top}/theirs/rows", "of another table")
    guard = {"mode": 0o755, "file_id": files.stat(f"{top}/made").file_id}
    with pytest.raises(JAVA_ERRORS, match="Permission denied"):
        gateway.helper("Rights", exchanging(gateway, made=f"{top}/made")).give(json.dumps({f"{top}/made": guard}))
    found = [files.stat(f"{top}/{name}") for name in ("theirs", "made") if files.stat(f"{top}/{name}/rows")]
    assert [oct(one.mode) for one in found] == [oct(0o700)]


def test_the_acl_of_a_directory_is_not_that_of_another_one_that_comes_to_its_path(place: EmptyPlace, gateway: Any) -> None:
    """If a lock is held beside it. The mode is told by an earlier call, and that of one which only its ACL closes to some is open."""
    top, entries = place.top, gateway.jvm.org.apache.hadoop.fs.permission.AclEntry
    for name, rights in (("closed", "---"), ("theirs", "r-x")):
        place.files.make_directory(f"{top}/{name}")
        place.fs.setAcl(place.path(f"{top}/{name}"), entries.parseAclSpec(f"user::rwx,group:hr:{rights},group::r-x,other::r-x", True))
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = configuration_with(gateway, "hdfs", "Replacing", REPLACING)
    files = HadoopFiles(elsewhere)
    lock = files.hold(f"{top}/control/_lock", "us")
    known = files.attributes([f"{top}/closed"])[f"{top}/closed"]
    lock.release()
    assert known.directory_id == place.files.stat(f"{top}/closed-away").file_id
    assert "group:hr:---" in known.acl


def test_a_directory_that_takes_the_place_of_the_trial_while_it_is_looked_at_by_its_id_gets_no_acl(place: EmptyPlace, gateway: Any) -> None:
    """Another table's closed directory, `set-acl` in a directory of mallory's, must not get the ACL of mallory's table."""
    table, fs, path = place.top, place.fs, place.path
    for made in (table, f"{table}/kept", f"{table}/mallorys", f"{table}/mallorys/set-acl"):
        place.files.make_directory(made)
    place.files.write_new(f"{table}/mallorys/set-acl/rows", "of another table")
    entries = gateway.jvm.org.apache.hadoop.fs.permission.AclEntry
    fs.setAcl(path(table), entries.parseAclSpec("user::rwx,user:mallory:rwx,group::r-x,other::---", True))
    told = try_rights(place, exchanging(gateway, table=table, scratch=NAME))
    found = [one for one in (f"{table}/mallorys/set-acl", f"{table}/{NAME}/set-acl") if fs.exists(path(f"{one}/rows"))]
    assert [[str(entry) for entry in fs.getAclStatus(path(one)).getEntries()] for one in found] == [[]], told


def test_what_comes_to_the_place_of_an_old_trial_that_goes_is_not_deleted(place: EmptyPlace, gateway: Any) -> None:
    """Even if it looks like a trial: another one may be at work in it."""
    fs, path = place.fs, place.path
    old, theirs = f"{place.top}/{names.trial_directory(OLD)}", f"{place.top}/theirs"
    for trial in (old, theirs):
        for name in ("write", "group"):
            place.files.make_directory(f"{trial}/{name}")
        place.files.write_new(f"{trial}/write/file", "1")
    fs.setTimes(path(old), 1, -1)
    told = try_rights(place, configuration_with(gateway, "hdfs", "Removing", REMOVING, old=old, theirs=theirs))
    assert told["left"] == ""
    assert [fs.exists(path(f"{old}/{name}")) for name in ("write/file", "write", "group")] == [True] * 3
    assert not fs.exists(path(f"{old}-away"))


def test_a_file_that_is_being_written_where_an_old_trial_would_have_one_stays(place: EmptyPlace, gateway: Any) -> None:
    """A writer of this user may be at work in a directory that somebody has given the name of a trial."""
    fs, path = place.fs, place.path
    old = f"{place.top}/{names.trial_directory(OLD)}"
    place.files.make_directory(f"{old}/write")
    out = fs.create(path(f"{old}/write/file"))
    out.write(1)
    fs.setTimes(path(old), 1, -1)
    try_rights(place, gateway.hadoop_conf)
    out.close()
    assert fs.getFileStatus(path(f"{old}/write/file")).getLen() == 1
    fs.setTimes(path(old), 1, -1)
    try_rights(place, gateway.hadoop_conf)
    assert not fs.exists(path(old))
