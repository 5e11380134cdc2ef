"""What HDFS permissions and an administrator's settings forbid is found before anything is written; everything else is kept."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Set

import pytest

from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import Layout
from hivekeeper.cluster.java_errors import java_causes
from hivekeeper.codes import Exit
from hivekeeper.ports import NoPermission
from hivekeeper.reasons import Code
from hivekeeper.steps import concat_exchange
from support.desk import Desk
from support.drivers import another_cluster

DAYS = ("dt=1", "dt=2", "dt=3")
# How long a run waits at most for somebody to look at its stage.
WAIT_S = 120


class Hdfs:
    """Paths of one table, and what an administrator does to them."""

    def __init__(self, gateway: Any, superuser: Any, root: str) -> None:
        self.jvm, self.dfs, self.root = gateway.jvm, superuser, root

    def path(self, below: str = "") -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.root}/{below}" if below else self.root)

    def give(self, below: str, owner: str, group: str, mode: str) -> None:
        """The directory and the files in it."""
        for place in (self.path(below), *self.children(below)):
            self.dfs.setOwner(place, owner, group)
        self.dfs.setPermission(self.path(below), self.jvm.org.apache.hadoop.fs.permission.FsPermission(mode))

    def children(self, below: str) -> List[Any]:
        return [status.getPath() for status in self.dfs.listStatus(self.path(below))]

    def status(self, below: str) -> Any:
        return self.dfs.getFileStatus(self.path(below))

    def acl(self, place: Any) -> List[str]:
        return sorted(str(entry) for entry in self.dfs.getAclStatus(place).getEntries())

    def set_acl(self, place: Any, spec: str) -> None:
        self.dfs.modifyAclEntries(place, self.jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(spec, True))


@pytest.fixture
def hdfs(spark: Any, gateway: Any, superuser: Any, database: str) -> Iterator[Hdfs]:
    """A table of three partitions with four small files each, all owned by etl."""
    root = f"/user/etl/{database}/events"
    spark.sql(f"CREATE EXTERNAL TABLE {database}.events (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET LOCATION '{root}'")
    for day in DAYS:
        spark.sql(f"ALTER TABLE {database}.events ADD PARTITION (dt='{day[3:]}')")
        # Blocks as small as those of the cluster: a source of a join may have no larger ones than the new file.
        spark.range(0, 40, 1, 4).write.mode("append").option("parquet.block.size", 16 << 20).parquet(f"{root}/{day}")
    hdfs = Hdfs(gateway, superuser, root)
    yield hdfs
    for below in ("", *DAYS):
        hdfs.give(below, "etl", "etl", "755")


def desk_on(table: str, **settings: Any) -> Desk:
    """A table's run ids must differ, so one desk runs every command on it."""
    return Desk(SimpleNamespace(cluster=another_cluster()), table, backup_table=False, **settings)


def compact(table: str, **settings: Any) -> Dict[str, Any]:
    return units_of(desk_on(table, **settings).compact())


def units_of(result: Any) -> Dict[str, Any]:
    (outcome,) = result.tables
    return {"problem": outcome.problem, **{unit.name: unit for unit in outcome.units}}


def outcomes(found: Dict[str, Any]) -> Dict[str, str]:
    return {name: unit.outcome.code for name, unit in found.items() if name != "problem"}


def only_refused(day: str) -> Dict[str, str]:
    return {name: "refused" if name == day else "swapped" for name in DAYS}


def count(spark: Any, table: str) -> int:
    spark.catalog.refreshTable(table)
    return int(spark.table(table).count())


def test_a_partition_without_rights_is_refused_and_the_others_are_done(hdfs, database):
    hdfs.give("dt=2", "analyst", "analyst", "700")
    found = compact(f"{database}.events")
    assert outcomes(found) == only_refused("dt=2")
    assert "may not be read" in found["dt=2"].reason


def test_a_directory_of_another_under_a_sticky_parent_is_refused_before_the_write(hdfs, database):
    hdfs.give("dt=2", "loader", "data", "775")
    hdfs.dfs.setOwner(hdfs.path(), "loader", "data")
    hdfs.dfs.setPermission(hdfs.path(), hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("1777"))
    found = compact(f"{database}.events", owner="ignore")
    assert outcomes(found) == only_refused("dt=2")
    assert "sticky" in found["dt=2"].reason
    assert len(hdfs.children("dt=2")) > 3


def test_an_owner_that_only_a_superuser_could_give_stops_the_run_unless_it_is_not_required(hdfs, database):
    for day in DAYS:
        hdfs.give(day, "loader", "data", "775")
    found = compact(f"{database}.events")
    assert found["problem"].exit is Exit.REFUSED
    assert "owner: try" in found["problem"].next
    assert hdfs.status("dt=1").getOwner() == "loader"
    assert outcomes(compact(f"{database}.events", owner="try")) == dict.fromkeys(DAYS, "swapped")
    made = hdfs.status("dt=1")
    assert (made.getOwner(), made.getGroup(), made.getPermission().toOctal()) == ("etl", "data", 775)
    assert {hdfs.dfs.getFileStatus(file).getGroup() for file in hdfs.children("dt=1")} == {"data"}


def test_units_whose_parent_may_not_be_written_are_refused_and_nothing_is_left(hdfs, database):
    hdfs.give("", "loader", "data", "755")
    result = desk_on(f"{database}.events").compact()
    assert result.code is Exit.REFUSED
    assert {unit.why.code for unit in result.tables[0].units} == {Code.NOT_RENAMABLE}
    assert [path.getName() for path in hdfs.children("")] == list(DAYS)


@pytest.mark.parametrize("inside", ["", "file"], ids=["empty", "filled"])
def test_a_directory_that_may_not_be_listed_is_not_taken_for_an_empty_one(hdfs, inside):
    hdfs.dfs.mkdirs(hdfs.path(f"closed/{inside}".rstrip("/")))
    hdfs.give("closed", "loader", "data", "700")
    with pytest.raises(NoPermission):
        another_cluster().files.remove_empty(f"{hdfs.root}/closed")
    assert hdfs.dfs.exists(hdfs.path("closed"))


def test_mode_acls_xattrs_and_storage_policy_are_as_before(hdfs, database):
    day = hdfs.path("dt=1")
    hdfs.set_acl(day, "user:analyst:r-x,default:user:analyst:r-x,default:group::r-x")
    for file in hdfs.children("dt=1"):
        hdfs.set_acl(file, "user:analyst:r--")
    hdfs.dfs.setXAttr(day, "user.owner-team", bytearray(b"sales"))
    hdfs.dfs.setStoragePolicy(day, "WARM")
    hdfs.dfs.setPermission(day, hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("770"))
    before = (hdfs.acl(day), hdfs.acl(hdfs.children("dt=1")[-1]), str(hdfs.status("dt=1").getPermission()))
    assert outcomes(compact(f"{database}.events")) == dict.fromkeys(DAYS, "swapped")
    files = [path for path in hdfs.children("dt=1") if path.getName().startswith("part-")]
    assert len(files) == 1
    assert (hdfs.acl(day), hdfs.acl(files[0]), str(hdfs.status("dt=1").getPermission())) == before
    assert bytes(hdfs.dfs.getXAttr(day, "user.owner-team")) == b"sales"
    assert hdfs.dfs.getStoragePolicy(day).getName() == "WARM"


def test_a_partition_with_a_quota_or_snapshots_of_its_own_is_refused_and_no_other(hdfs, database):
    hdfs.dfs.setQuota(hdfs.path("dt=1"), 1000, 1 << 40)
    hdfs.dfs.allowSnapshot(hdfs.path("dt=2"))
    found = compact(f"{database}.events")
    assert outcomes(found) == {"dt=1": "refused", "dt=2": "refused", "dt=3": "swapped"}
    assert "quota" in found["dt=1"].reason
    assert "snapshots" in found["dt=2"].reason
    hdfs.dfs.disallowSnapshot(hdfs.path("dt=2"))


def test_a_table_that_has_snapshots_is_compacted_and_the_snapshot_keeps_its_files(spark, hdfs, database):
    hdfs.dfs.allowSnapshot(hdfs.path())
    hdfs.dfs.createSnapshot(hdfs.path(), "before")
    desk = desk_on(f"{database}.events")
    assert outcomes(units_of(desk.compact())) == dict.fromkeys(DAYS, "swapped")
    assert desk.cleanup().code is Exit.DONE
    assert spark.read.parquet(f"{hdfs.root}/.snapshot/before/dt=1").count() == 40
    assert count(spark, f"{database}.events") == 120
    hdfs.dfs.deleteSnapshot(hdfs.path(), "before")
    hdfs.dfs.disallowSnapshot(hdfs.path())


@pytest.fixture
def any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need more than 50 ms for a rename, and would leave the unit for another run."""
    monkeypatch.setattr(concat_exchange, "MOST_MS_BESIDE", 60_000)


JOINS = {"exchange": "files", "fewest_joined": 2}


@pytest.mark.usefixtures("any_speed")
def test_small_files_of_a_directory_that_must_not_be_renamed_are_joined(spark, hdfs, database):
    hdfs.dfs.setQuota(hdfs.path("dt=1"), 1000, 1 << 40)
    hdfs.dfs.allowSnapshot(hdfs.path("dt=2"))
    ids = {day: hdfs.status(day).getFileId() for day in DAYS}
    found = compact(f"{database}.events", **{**JOINS, "exchange": "auto"})
    assert outcomes(found) == dict.fromkeys(DAYS, "swapped")
    assert {day: found[day].exchange for day in DAYS} == {"dt=1": "files", "dt=2": "files", "dt=3": "directory"}
    assert [day for day in DAYS if hdfs.status(day).getFileId() == ids[day]] == ["dt=1", "dt=2"]
    assert count(spark, f"{database}.events") == 120
    hdfs.dfs.disallowSnapshot(hdfs.path("dt=2"))


@pytest.mark.usefixtures("any_speed")
@pytest.mark.parametrize("of", ["dt=2", ""])
def test_files_in_a_snapshot_are_refused_before_anything_is_written(hdfs, database, of):
    hdfs.dfs.allowSnapshot(hdfs.path(of))
    hdfs.dfs.createSnapshot(hdfs.path(of), "before")
    found = compact(f"{database}.events", **JOINS)
    refused = [of] if of else list(DAYS)
    assert outcomes(found) == {day: "refused" if day in refused else "swapped" for day in DAYS}
    assert {found[day].why.code for day in refused} == {Code.NOT_JOINABLE}
    assert all(hdfs.path(of).toString() in found[day].reason for day in refused)
    assert of or not hdfs.dfs.exists(hdfs.path(".hivekeeper"))
    hdfs.dfs.deleteSnapshot(hdfs.path(of), "before")
    hdfs.dfs.disallowSnapshot(hdfs.path(of))


@pytest.fixture
def analyst(layout: Layout, gateway: Any, tmp_path: Path) -> Iterator[Any]:
    """An HDFS client as a user who has no rights."""
    conf, user = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf), "analyst"
    if layout.secure:
        get_ticket(layout, user, tmp_path / "ticket")
        conf.set("hadoop.security.kerberos.ticket.cache.path", str(tmp_path / "ticket"))
    client = gateway.jvm.org.apache.hadoop.fs.FileSystem.newInstance(gateway.jvm.java.net.URI(layout.namenode), conf, user)
    yield client
    client.close()


class Looker:
    """A thread that lists and opens everything below a directory, again and again."""

    def __init__(self, gateway: Any, client: Any, top: str) -> None:
        self._path, self._client, self._top = gateway.jvm.org.apache.hadoop.fs.Path, client, top
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on)
        self.opened: Set[str] = set()
        self.denied: Counter = Counter()

    def __enter__(self) -> Looker:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._ended.is_set():
            self._look_below(self._path(self._top))

    def _look_below(self, directory: Any) -> None:
        for status in self._attempt(self._client.listStatus, directory) or ():
            path = status.getPath()
            if status.isDirectory():
                self._look_below(path)
            elif self._attempt(self._open, path):
                self.opened.add(str(path.toUri().getPath()))

    def _open(self, path: Any) -> bool:
        self._client.open(path).close()
        return True

    def _attempt(self, act: Callable[[Any], Any], path: Any) -> Any:
        """None if it is forbidden, or disappeared meanwhile."""
        try:
            return act(path)
        except Exception as error:
            (*_, cause) = java_causes(error)
            if cause.short_name not in ("AccessControlException", "FileNotFoundException", "RemoteException"):
                raise
            self.denied[str(path.toUri().getPath())] += cause.short_name != "FileNotFoundException"
            return None


@pytest.fixture
def open_place(superuser: Any, gateway: Any, database: str) -> str:
    """A directory of etl that everybody may enter; its default ACL gives everybody every right below it."""
    jvm, place = gateway.jvm, gateway.jvm.org.apache.hadoop.fs.Path(f"/data/{database}-open")
    superuser.mkdirs(place)
    superuser.setPermission(place, jvm.org.apache.hadoop.fs.permission.FsPermission("755"))
    superuser.setOwner(place, "etl", "data")
    spec = "default:user:analyst:rwx,default:group::rwx,default:other::rwx,default:mask::rwx"
    superuser.modifyAclEntries(place, jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(spec, True))
    return str(place)


class Lingering:
    """The rows port of a run that stays at its written stage until somebody has met it, because a stage is there for a moment only."""

    def __init__(self, rows: Any, was_met: Callable[[], bool]) -> None:
        self._rows, self._was_met = rows, was_met

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def write_stage(self, batch: Any) -> Any:
        read = self._rows.write_stage(batch)
        end = time.monotonic() + WAIT_S
        while not self._was_met() and time.monotonic() < end:
            time.sleep(0.05)
        return read


def guard(gateway: Any, superuser: Any, directory: str, mode: str, file_mode: str) -> None:
    """Give a directory and its files these modes and no ACL."""
    hadoop = gateway.jvm.org.apache.hadoop.fs
    for place in (hadoop.Path(directory), *(status.getPath() for status in superuser.listStatus(hadoop.Path(directory)))):
        superuser.removeAcl(place)
        is_file = superuser.getFileStatus(place).isFile()
        superuser.setPermission(place, hadoop.permission.FsPermission(file_mode if is_file else mode))


@pytest.mark.parametrize(
    ("partitioned", "mode", "file_mode"),
    [
        pytest.param(True, "755", "600", id="partitioned, closed files"),
        pytest.param(False, "750", "644", id="unpartitioned, closed directory"),
        pytest.param(True, "750", "644", id="partitioned, closed directory", marks=pytest.mark.thorough),
        pytest.param(False, "755", "600", id="unpartitioned, closed files", marks=pytest.mark.thorough),
    ],
)
def test_a_user_who_may_not_read_a_table_reads_nothing_of_any_run_however_often_they_look(
    spark, gateway, superuser, analyst, open_place, database, partitioned, mode, file_mode
):
    root = f"{open_place}/guarded"
    units = [f"{root}/{day}" for day in DAYS] if partitioned else [root]
    for unit in units:
        spark.range(0, 40, 1, 4).write.mode("append").parquet(unit)
        guard(gateway, superuser, unit, mode, file_mode)
    by = "PARTITIONED BY (dt STRING) " if partitioned else ""
    spark.sql(f"CREATE EXTERNAL TABLE {database}.guarded (id BIGINT) {by}STORED AS PARQUET LOCATION '{root}'")
    for day in DAYS if partitioned else ():
        spark.sql(f"ALTER TABLE {database}.guarded ADD PARTITION (dt='{day[3:]}')")
    desk = desk_on(f"{database}.guarded")
    spark.range(0, 1).write.parquet(f"{open_place}/public")
    top = f"{root}/.hivekeeper" if partitioned else f"{open_place}/.hivekeeper-guarded"
    closed = top if mode == "750" and not partitioned else "/stage"

    def was_turned_away():
        return any(seen and path.startswith(top) and path.endswith(closed) for path, seen in list(looker.denied.items()))

    desk.world.cluster = replace(desk.world.cluster, rows=Lingering(desk.world.cluster.rows, was_turned_away))
    with Looker(gateway, analyst, open_place) as looker:
        for command in (desk.compact, desk.rollback, desk.compact, desk.cleanup):
            assert command().code is Exit.DONE
    assert {path for path in looker.opened if not path.startswith(f"{open_place}/public/")} == set()
    # The looker was at work during the run, and did read the files that are open to all.
    assert looker.opened
    assert was_turned_away(), looker.denied


def rights_below(superuser: Any, gateway: Any, top: str) -> Dict[str, str]:
    """Owner, mode, and + for an ACL, of everything in a control directory that is not the table's own."""
    found, jvm = {}, gateway.jvm
    level = [jvm.org.apache.hadoop.fs.Path(top)]
    for _ in range(4):
        statuses = [superuser.getFileStatus(path) for path in level]
        for status in statuses:
            plus = "+" if status.hasAcl() else ""
            found[status.getPath().toUri().getPath()] = f"{status.getOwner()}:{status.getGroup()} {status.getPermission().toOctal()}{plus}"
        level = [below.getPath() for status in statuses if status.isDirectory() for below in superuser.listStatus(status.getPath())]
    return found


def test_a_control_directory_has_the_tables_group_and_acl_without_anybody_elses_write(hdfs, superuser, gateway, database):
    for below in ("", *DAYS):
        hdfs.give(below, "etl", "data", "770")
    hdfs.set_acl(hdfs.path(), "user:analyst:rwx,default:user:analyst:rwx,default:group:data:rwx")
    desk = desk_on(f"{database}.events")
    assert desk.compact().code is Exit.DONE
    found = rights_below(superuser, gateway, f"{hdfs.root}/.hivekeeper")
    run = f"{hdfs.root}/.hivekeeper/runs/{desk.runs[0]}"
    assert {place: found[place] for place in (f"{hdfs.root}/.hivekeeper", run, f"{run}/retired")} == {
        f"{hdfs.root}/.hivekeeper": "etl:data 750+",
        run: "etl:data 750+",
        f"{run}/retired": "etl:data 750+",
    }
    assert hdfs.acl(hdfs.path(".hivekeeper")) == ["group::r-x", "user:analyst:r-x"]
    assert hdfs.acl(hdfs.path()) != []
    assert {rights for place, rights in found.items() if place.endswith(("json", "jsonl", "lock"))} == {"etl:data 640"}


def test_a_control_directory_that_a_tenant_made_beforehand_is_refused_and_left_as_it_is(hdfs, superuser, gateway, database):
    forged = hdfs.path(".hivekeeper/runs/20260101t000000z-0000")
    superuser.mkdirs(forged)
    for place in (".hivekeeper", ".hivekeeper/runs", ".hivekeeper/runs/20260101t000000z-0000"):
        superuser.setOwner(hdfs.path(place), "loader", "loader")
        superuser.setPermission(hdfs.path(place), hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("777"))
    before = rights_below(superuser, gateway, f"{hdfs.root}/.hivekeeper")
    desk = desk_on(f"{database}.events")
    for command in (desk.compact, desk.recover, desk.history, desk.cleanup, desk.rollback, desk.analyze, desk.backup, desk.verify):
        (outcome,) = command().tables
        assert outcome.problem.code is Code.RECORDS_OF_ANOTHER
        assert "(mode 0777) belongs to loader" in outcome.problem.what
    assert rights_below(superuser, gateway, f"{hdfs.root}/.hivekeeper") == before
    trusting = desk_on(f"{database}.events", trusted_owners=("loader",))
    assert trusting.compact().tables[0].problem.code is Code.RECORDS_WRITABLE
