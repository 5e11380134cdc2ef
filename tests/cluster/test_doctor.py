"""The probes of doctor on the real cluster: what HDFS, YARN and the metastore answer, and that doctor leaves nothing behind."""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Dict, List

import pytest

from hivekeeper import names
from hivekeeper.cluster.connect import WallClock, assemble
from hivekeeper.cluster.doctor import ClusterProbes
from hivekeeper.commands.doctor import Subject, check_up
from hivekeeper.model import Selection
from hivekeeper.plan.doctor import FIX, OK, WARN, Check
from support.contexts import PREFIX, QUIET

RUN = "20260101t020304z-0000"


@pytest.fixture
def probes(gateway: Any) -> ClusterProbes:
    return ClusterProbes(gateway, partial(assemble, gateway.driver))


@pytest.fixture
def root(gateway: Any, tmp_path: Path) -> Any:
    """A directory of etl, the operator, removed when the test ends."""
    path = gateway.jvm.org.apache.hadoop.fs.Path(f"/user/etl/doctor-{abs(hash(str(tmp_path))) % 10**8}")
    fs = path.getFileSystem(gateway.hadoop_conf)
    fs.mkdirs(path)
    yield fs.makeQualified(path)
    fs.delete(path, True)


def below(gateway: Any, root: Any) -> List[str]:
    return [status.getPath().getName() for status in root.getFileSystem(gateway.hadoop_conf).listStatus(root)]


def try_rights(probes: ClusterProbes, root: Any) -> Any:
    return probes.try_rights(str(root), f"{root}/.hivekeeper", names.trial_directory(RUN))


def test_the_cluster_tells_who_we_are_and_what_it_has(probes, layout):
    login, files = probes.login(), probes.file_system()
    assert login.user.startswith("etl")
    assert (login.secured, login.proved) == (layout.secure, layout.secure)
    assert (files.is_hdfs, files.safe_mode, files.acls, files.xattrs) == (True, False, "", "")
    assert files.remaining_bytes > 0


def test_a_queue_that_takes_us_one_that_does_not_and_one_that_is_not_there(probes):
    found = {name: probes.queue(name) for name in ("etl", "root.etl", "closed", "nope")}
    assert [(name, facts.exists, facts.running and facts.may_submit) for name, facts in found.items() if facts.exists] == [
        ("etl", True, True),
        ("root.etl", True, True),
        ("closed", True, False),
    ]
    assert not found["nope"].exists
    assert {"default", "etl", "closed"} <= set(found["nope"].others)


def test_the_operator_may_do_all_in_a_directory_of_his_own_and_leaves_nothing(gateway, probes, root):
    facts = try_rights(probes, root)
    assert set(facts.trials.values()) == {""}
    assert (facts.owner, facts.left) == ("etl", "")
    assert below(gateway, root) == []


def test_a_control_directory_that_was_there_stays(gateway, probes, root):
    fs = root.getFileSystem(gateway.hadoop_conf)
    fs.mkdirs(gateway.jvm.org.apache.hadoop.fs.Path(root, ".hivekeeper/log"))
    try_rights(probes, root)
    assert below(gateway, root) == [".hivekeeper"]
    assert below(gateway, gateway.jvm.org.apache.hadoop.fs.Path(root, ".hivekeeper")) == ["log"]


@pytest.mark.parametrize("beside", ["", ".hivekeeper/"])
def test_what_a_killed_check_up_left_is_removed_after_an_hour_and_not_before(gateway, probes, root, beside):
    fs = root.getFileSystem(gateway.hadoop_conf)
    left = [names.trial_directory(f"20250101t020304z-000{digit}") for digit in (1, 2)]
    old, young = (gateway.jvm.org.apache.hadoop.fs.Path(root, f"{beside}{name}") for name in left)
    for path in (old, young):
        fs.mkdirs(path, gateway.jvm.org.apache.hadoop.fs.permission.FsPermission("700"))
    fs.setTimes(old, 1, -1)
    try_rights(probes, root)
    assert below(gateway, old.getParent()) == [young.getName()]


def test_a_directory_that_takes_the_place_of_the_trial_gets_no_rights(gateway, probes, root):
    """Whoever may write to a table's root may rename another table's directory, which they may not read, to that place."""
    jvm, fs = gateway.jvm, root.getFileSystem(gateway.hadoop_conf)
    acl = jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec("user::rwx,user:mallory:rwx,group::r-x,other::---", True)
    fs.setAcl(root, acl)
    path = jvm.org.apache.hadoop.fs.Path
    scratch, other = path(root, names.trial_directory(RUN)), path(root, "other")
    theirs = path(scratch, "set-acl")
    closed = jvm.org.apache.hadoop.fs.permission.FsPermission("700")
    fs.mkdirs(path(other, "set-acl"), closed)
    fs.setPermission(other, closed)
    fs.create(path(other, "set-acl/rows")).close()
    ended = threading.Event()

    def exchange() -> None:
        while not ended.is_set() and not fs.exists(theirs):
            if fs.exists(path(scratch, "control")) and fs.rename(scratch, path(root, f"aside-{next(numbers)}")):
                # It goes into one that was made again meanwhile.
                fs.rename(other, scratch)
                fs.rename(path(scratch, "other"), other)

    numbers = itertools.count()
    for _ in range(20):
        ended.clear()
        thread = threading.Thread(target=exchange)
        thread.start()
        facts = try_rights(probes, root)
        ended.set()
        thread.join()
        if fs.exists(path(theirs, "rows")):
            break
    assert fs.exists(path(theirs, "rows"))
    assert [str(entry) for entry in fs.getAclStatus(theirs).getEntries()] == []
    assert facts.trials["set-acl"] == ""


def test_files_of_somebody_else_cannot_be_kept_his_and_nothing_is_left(gateway, probes, root, superuser):
    superuser.setOwner(root, "loader", "loader")
    superuser.setPermission(root, gateway.jvm.org.apache.hadoop.fs.permission.FsPermission("777"))
    facts = try_rights(probes, root)
    refused = {name for name, result in facts.trials.items() if result}
    assert refused == {"owner", "group"}
    assert below(gateway, root) == []
    superuser.setOwner(root, "etl", None)


def test_without_rights_on_the_root_one_reason_is_told_and_the_rest_not_tried(gateway, probes, root, superuser):
    superuser.setOwner(root, "loader", None)
    superuser.setPermission(root, gateway.jvm.org.apache.hadoop.fs.permission.FsPermission("755"))
    facts = try_rights(probes, root)
    assert "Permission denied" in facts.trials["control"]
    assert {result for name, result in facts.trials.items() if name != "control"} == {None}
    superuser.setOwner(root, "etl", None)


def test_a_quota_that_is_used_up_stops_half_way_and_nothing_is_left(gateway, probes, root, superuser):
    # Room for .hivekeeper, the scratch directory and one more.
    superuser.setQuota(root, 4, 9_223_372_036_854_775_807)
    facts = try_rights(probes, root)
    assert facts.trials["control"] == ""
    assert any("quota" in (result or "").lower() for result in facts.trials.values())
    assert below(gateway, root) == []
    room = probes.room(str(root))
    assert (room.names_left, room.quota_at) == (3, root.toUri().getPath())


def test_the_staging_directory_can_be_written_to_and_the_clocks_agree(gateway, probes):
    home = gateway.jvm.org.apache.hadoop.fs.Path("/user/etl")
    facts = probes.staging(f".hivekeeper-doctor-{RUN}")
    assert facts.path.endswith("/user/etl")
    assert abs(facts.difference_ms) < 60_000
    assert f".hivekeeper-doctor-{RUN}" not in below(gateway, home)


def test_files_that_are_not_there_are_named(probes):
    assert probes.missing(["hdfs:///user/etl", "hdfs:///user/etl/none.tar.gz"]) == ("hdfs:///user/etl/none.tar.gz",)


def examine(probes: ClusterProbes, *tables: str) -> Dict[str, Check]:
    @contextmanager
    def open_probes():
        yield probes

    subject = Subject(Selection(tables=tables), lambda _table: QUIET, PREFIX, RUN, queue="etl")
    return {check.name: check for check in check_up(open_probes, WallClock(), subject).checks}


def test_the_whole_of_it_on_a_table(gateway, spark, probes, database):
    where = f"STORED AS PARQUET LOCATION '/user/etl/{database}/e'"
    spark.sql(f"CREATE EXTERNAL TABLE {database}.events (id INT) PARTITIONED BY (dt STRING) {where}")
    spark.sql(f"ALTER TABLE {database}.events ADD PARTITION (dt='1')")
    found = examine(probes, f"{database}.events")
    assert {name: check.what for name, check in found.items() if check.level in (FIX, WARN)} == {}
    assert found["units"].level == OK
    assert found["metastore"].what.startswith("thrift://")
    assert below(gateway, gateway.jvm.org.apache.hadoop.fs.Path(f"/user/etl/{database}/e")) == ["dt=1"]


def test_the_edge_node_of_the_cluster_is_found_in_order(edge):
    answer = edge.run("--edge-only", "--set", "spark.master=yarn", program="hivekeeper-doctor")
    assert "fix " not in answer.stdout, answer.stdout
    assert answer.returncode == 0


def test_safe_mode_is_seen_by_asking(gateway, probes, superuser):
    actions = gateway.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    superuser.setSafeMode(actions.SAFEMODE_ENTER)
    try:
        assert probes.file_system().safe_mode
    finally:
        superuser.setSafeMode(actions.SAFEMODE_LEAVE)
    assert not probes.file_system().safe_mode
