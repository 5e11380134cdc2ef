"""The probes of doctor on local files: what a file system other than HDFS can report, and that doctor leaves nothing behind."""

from __future__ import annotations

import json
import os
from functools import partial

import pytest

from hivekeeper import names
from hivekeeper.cluster.connect import assemble
from hivekeeper.cluster.doctor import ClusterProbes
from hivekeeper.cluster.java_errors import JAVA_ERRORS
from support.file_systems import configuration_with

RUN = "20260101t020304z-0000"

pytestmark = pytest.mark.skipif("HADOOP_CONF_DIR" in os.environ, reason="tests/cluster/test_doctor.py asks HDFS")


@pytest.fixture
def probes(gateway):
    return ClusterProbes(gateway, partial(assemble, gateway.driver))


def test_a_session_says_what_it_is(probes):
    assert "master local[2]" in probes.session
    assert not probes.on_yarn
    assert probes.metastore.startswith("embedded, through Hive's client ")
    assert probes.queue("etl") is None
    assert not probes.login().secured


def test_local_files_are_asked_only_what_they_know(probes):
    facts = probes.file_system()
    assert (facts.uri, facts.is_hdfs) == ("file:///", False)
    assert facts.remaining_bytes > 0


def test_rights_are_tried_and_nothing_is_left(probes, tmp_path):
    facts = probes.try_rights(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN))
    assert {name: facts.trials[name] for name in ("control", "write", "rename", "owner", "group", "policy")} == dict.fromkeys(
        ("control", "write", "rename", "owner", "group", "policy"), ""
    )
    assert facts.trials["set-acl"] is None
    assert facts.left == ""
    assert list(tmp_path.iterdir()) == []


def test_a_trial_lies_beside_the_place_of_a_control_directory_that_is_not_there_and_is_closed_to_others(gateway, tmp_path):
    """Killed there, the trial of another user must not become the table's control directory."""
    trial = gateway.helper("doctor.RightsTrial", gateway.hadoop_conf)
    control, name = f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN)
    place = trial.place(control, name)
    assert place == f"file:{tmp_path}/{name}"
    trial.make(place)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    (tmp_path / ".hivekeeper").mkdir()
    assert trial.place(control, name) == f"{control}/{name}"


@pytest.mark.parametrize("beside", [".", ".hivekeeper"])
def test_what_a_killed_doctor_left_goes_after_an_hour_and_nothing_else(probes, tmp_path, beside):
    (tmp_path / ".hivekeeper").mkdir()
    old, young = (tmp_path / beside / names.trial_directory(f"20250101t020304z-000{digit}") for digit in (1, 2))
    others = [tmp_path / beside / name for name in (".hivekeeper-doctor-20250101t020304z-0003", ".hivekeeper.doctor-x", "doctor-1")]
    for path in (old, young, *others):
        path.mkdir(mode=0o700)
    (old / "write").mkdir()
    (old / "write" / "file").write_text("1")
    (old / "renamed").mkdir()
    for path in (old, *others):
        os.utime(path, (1, 1))
    probes.try_rights(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN))
    assert [path.exists() for path in (old, young, *others)] == [False, True, True, True, True]


ENDLESS = """package hivekeeper.tested;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.RemoteIterator;

public class Endless extends RawLocalFileSystem {
  public FileStatus[] listStatus(Path path) throws IOException {
    if (path.getName().startsWith(".")) return super.listStatus(path);
    throw new AssertionError(path + " has too many entries");
  }

  public RemoteIterator listStatusIterator(final Path path) throws IOException {
    if (path.getName().startsWith(".")) return super.listStatusIterator(path);
    return new RemoteIterator() {
      private int told;

      public boolean hasNext() {
        return true;
      }

      public Object next() throws IOException {
        told++;
        if (told > 100000) throw new AssertionError(path + " has too many entries");
        if (told == 2) return getFileStatus(new Path(path, getConf().get("tested.old")));
        return new FileStatus(0, true, 1, 1, 1, new Path(path, "dt=" + told));
      }
    };
  }
}
"""


def test_of_a_table_with_any_number_of_partitions_only_the_first_ones_are_looked_at(gateway, tmp_path):
    old = tmp_path / names.trial_directory("20250101t020304z-0001")
    old.mkdir(mode=0o700)
    os.utime(old, (1, 1))
    trial = gateway.helper("doctor.RightsTrial", configuration_with(gateway, "file", "Endless", ENDLESS, old=old.name))
    trial.run(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN), names.TRIAL_DIRECTORIES)
    assert list(tmp_path.iterdir()) == []


CROWDED = """package hivekeeper.tested;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;

public class Crowded extends WithoutServer {
  private void count() {
    getConf().setInt("tested.calls", getConf().getInt("tested.calls", 0) + 1);
  }

  public FileStatus getFileStatus(Path path) throws IOException {
    count();
    if (path.getName().equals(".hivekeeper") || path.getName().endsWith("-made")) throw new FileNotFoundException(path.toString());
    return told(path);
  }

  /** `tested.owner` and `tested.mode` are those of five thousand directories that look like a trial's. */
  private FileStatus told(Path path) throws IOException {
    String own = UserGroupInformation.getCurrentUser().getShortUserName();
    FsPermission mode = new FsPermission(Short.parseShort(getConf().get("tested.mode"), 8));
    return new FileStatus(0, true, 1, 1, 1, 1, mode, getConf().get("tested.owner", own), "etl", path);
  }

  public RemoteIterator<FileStatus> listStatusIterator(final Path path) throws IOException {
    count();
    return new RemoteIterator<FileStatus>() {
      private int number;

      public boolean hasNext() {
        return number < 5000;
      }

      public FileStatus next() throws IOException {
        return told(new Path(path, ".hivekeeper.doctor-20250101t020304z-" + (1000 + number++)));
      }
    };
  }

  public boolean delete(Path path, boolean recursive) {
    count();
    return true;
  }

  public boolean mkdir(Path path, FsPermission permission) throws IOException {
    count();
    throw new IOException("the trial ends here");
  }
}
"""


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"owner": "mallory", "mode": "700"}, 100), ({"mode": "755"}, 100), ({"mode": "700"}, 3000)],
    ids=["somebody-else's", "open", "ours"],
)
def test_thousands_of_directories_with_names_of_trials_beside_many_tables_cost_a_listing(gateway, settings, most):
    """One database has many unpartitioned tables, and whoever may create one there may make such directories, or rename ours."""
    conf = configuration_with(gateway, "crowded", "Crowded", CROWDED, **settings)
    trial = gateway.helper("doctor.RightsTrial", conf)
    for number in range(10):
        root = f"crowded://host/sales.db/t{number}"
        told = trial.run(root, "crowded://host/sales.db/.hivekeeper", ".hivekeeper.doctor-made", names.TRIAL_DIRECTORIES)
        assert "the trial ends here" in json.loads(told)["trials"]["control"]
    assert int(conf.get("tested.calls")) < most


def test_a_trial_does_not_make_a_directory_that_is_gone(gateway, tmp_path):
    """Its loader may take a table's directory away, or put another one there, in which this would be in the way."""
    trial = gateway.helper("doctor.RightsTrial", gateway.hadoop_conf)
    with pytest.raises(JAVA_ERRORS, match="NoSuchFile"):
        trial.make(f"file:{tmp_path}/gone/{names.trial_directory(RUN)}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_directory_that_was_given_the_name_of_a_trial_is_not_deleted(probes, tmp_path, mode):
    """A rename keeps a directory's time, and needs no right on the directory itself: it may be another table's."""
    taken = tmp_path / names.trial_directory("20250101t020304z-0001")
    (taken / "dt=1").mkdir(parents=True)
    (taken / "dt=1" / "part-0").write_text("rows")
    taken.chmod(mode)
    os.utime(taken, (1, 1))
    probes.try_rights(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN))
    assert (taken / "dt=1" / "part-0").exists()


@pytest.mark.parametrize("place", ["write/file", "owner", "renamed", "write/more", "part-0"])
def test_of_a_closed_directory_that_was_given_the_name_of_a_trial_nothing_is_deleted_but_what_a_trial_makes(probes, tmp_path, place):
    """Of another table's, which this user may own, whoever may rename it can know or choose the names inside."""
    taken = tmp_path / names.trial_directory("20250101t020304z-0001")
    for directory in (taken, taken / "group", (taken / place).parent):
        directory.mkdir(mode=0o700, exist_ok=True)
    (taken / place).write_text("rows")
    os.utime(taken, (1, 1))
    probes.try_rights(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN))
    assert (taken / place).read_text() == "rows"


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_what_is_in_the_place_of_the_trial_is_not_handed_over(probes, tmp_path, mode):
    """Whoever may write to a table's root may give another table's directory this name, to own it, and to have its ACL changed."""
    root, taken = tmp_path / "root", tmp_path / "root" / names.trial_directory(RUN)
    (taken / "owner").mkdir(parents=True)
    (taken / "owner" / "part-0").write_text("rows")
    for path in (taken, taken / "owner"):
        path.chmod(mode)
    if os.getuid() == 0:
        os.chown(root, 12345, 12345)
    facts = probes.try_rights(f"file:{root}", f"file:{root}/.hivekeeper", names.trial_directory(RUN))
    assert (taken / "owner").stat().st_uid == os.getuid()
    assert (taken / "owner" / "part-0").exists()
    assert "has something in it" in facts.trials["control"]


def test_a_file_where_the_control_directory_should_be_is_a_refusal(probes, tmp_path):
    (tmp_path / ".hivekeeper").write_text("not ours")
    facts = probes.try_rights(f"file:{tmp_path}", f"file:{tmp_path}/.hivekeeper", names.trial_directory(RUN))
    assert facts.trials["control"]
    assert (tmp_path / ".hivekeeper").read_text() == "not ours"


def test_what_a_table_takes_is_counted(probes, tmp_path):
    (tmp_path / "dt=1").mkdir()
    (tmp_path / "dt=1" / "file").write_bytes(b"x" * 100)
    room = probes.room(f"file:{tmp_path}")
    assert (room.size_bytes, room.objects) == (100, 3)


def test_what_is_missing_is_named(probes, tmp_path):
    assert probes.missing([f"file:{tmp_path}", f"file:{tmp_path}/none"]) == (f"file:{tmp_path}/none",)


def test_a_file_where_the_staging_directory_is_to_be_tried_stays(gateway, tmp_path):
    taken = tmp_path / "scratch"
    taken.write_text("somebody's")
    with pytest.raises(JAVA_ERRORS):
        gateway.helper("doctor.ClusterFacts", gateway.hadoop_conf).staging(f"file:{tmp_path}", "scratch")
    assert taken.read_text() == "somebody's"


def test_the_home_directory_is_written_to_and_left_as_it_was(probes):
    facts = probes.staging(f".hivekeeper-doctor-{RUN}")
    assert abs(facts.difference_ms) < 60_000
    assert not os.path.exists(f"{facts.path.partition(':')[2]}/.hivekeeper-doctor-{RUN}")
