"""What HDFS permissions and an administrator's settings forbid is found before anything is written; everything else is kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict, Iterator, List

import pytest

from cluster.servers.hadoop import ZONE_KEY
from hivekeeper.cluster.connect import assemble
from hivekeeper.codes import Exit
from support.desk import Desk

DAYS = ("dt=1", "dt=2", "dt=3")


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
        spark.range(0, 40, 1, 4).write.mode("append").parquet(f"{root}/{day}")
    hdfs = Hdfs(gateway, superuser, root)
    yield hdfs
    for below in ("", *DAYS):
        hdfs.give(below, "etl", "etl", "755")


def desk_on(spark: Any, table: str, **settings: Any) -> Desk:
    """A table's run ids must differ, so one desk runs every command on it."""
    return Desk(SimpleNamespace(cluster=assemble(spark)), table, backup_table=False, **settings)


def compact(spark: Any, table: str, **settings: Any) -> Dict[str, Any]:
    return units_of(desk_on(spark, table, **settings).compact())


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


def test_a_partition_without_rights_is_refused_and_the_others_are_done(spark, hdfs, database):
    hdfs.give("dt=2", "analyst", "analyst", "700")
    found = compact(spark, f"{database}.events")
    assert outcomes(found) == only_refused("dt=2")
    assert "may not be read" in found["dt=2"].reason


def test_a_directory_of_another_under_a_sticky_parent_is_refused_before_the_write(spark, hdfs, database):
    hdfs.give("dt=2", "loader", "data", "775")
    hdfs.dfs.setOwner(hdfs.path(), "loader", "data")
    hdfs.dfs.setPermission(hdfs.path(), hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("1777"))
    found = compact(spark, f"{database}.events", owner="ignore")
    assert outcomes(found) == only_refused("dt=2")
    assert "sticky" in found["dt=2"].reason
    assert len(hdfs.children("dt=2")) > 3


def test_an_owner_that_only_a_superuser_could_give_stops_the_run_unless_it_is_not_required(spark, hdfs, database):
    for day in DAYS:
        hdfs.give(day, "loader", "data", "775")
    found = compact(spark, f"{database}.events")
    assert found["problem"].exit is Exit.REFUSED
    assert "owner: try" in found["problem"].next
    assert hdfs.status("dt=1").getOwner() == "loader"
    assert outcomes(compact(spark, f"{database}.events", owner="try")) == dict.fromkeys(DAYS, "swapped")
    made = hdfs.status("dt=1")
    assert (made.getOwner(), made.getGroup(), made.getPermission().toOctal()) == ("etl", "data", 775)
    assert {hdfs.dfs.getFileStatus(file).getGroup() for file in hdfs.children("dt=1")} == {"data"}


def test_a_parent_that_may_not_be_written_refuses_the_table_and_leaves_nothing(spark, hdfs, database):
    hdfs.give("", "loader", "data", "755")
    assert compact(spark, f"{database}.events")["problem"].exit is Exit.REFUSED
    assert [path.getName() for path in hdfs.children("")] == list(DAYS)


def test_mode_acls_xattrs_and_storage_policy_are_as_before(spark, hdfs, database):
    day = hdfs.path("dt=1")
    hdfs.set_acl(day, "user:analyst:r-x,default:user:analyst:r-x,default:group::r-x")
    for file in hdfs.children("dt=1"):
        hdfs.set_acl(file, "user:analyst:r--")
    hdfs.dfs.setXAttr(day, "user.owner-team", bytearray(b"sales"))
    hdfs.dfs.setStoragePolicy(day, "WARM")
    hdfs.dfs.setPermission(day, hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("770"))
    before = (hdfs.acl(day), hdfs.acl(hdfs.children("dt=1")[-1]), str(hdfs.status("dt=1").getPermission()))
    assert outcomes(compact(spark, f"{database}.events")) == dict.fromkeys(DAYS, "swapped")
    files = [path for path in hdfs.children("dt=1") if path.getName().startswith("part-")]
    assert len(files) == 1
    assert (hdfs.acl(day), hdfs.acl(files[0]), str(hdfs.status("dt=1").getPermission())) == before
    assert bytes(hdfs.dfs.getXAttr(day, "user.owner-team")) == b"sales"
    assert hdfs.dfs.getStoragePolicy(day).getName() == "WARM"


def test_a_partition_with_a_quota_or_snapshots_of_its_own_is_refused_and_no_other(spark, hdfs, database):
    hdfs.dfs.setQuota(hdfs.path("dt=1"), 1000, 1 << 40)
    hdfs.dfs.allowSnapshot(hdfs.path("dt=2"))
    found = compact(spark, f"{database}.events")
    assert outcomes(found) == {"dt=1": "refused", "dt=2": "refused", "dt=3": "swapped"}
    assert "quota" in found["dt=1"].reason
    assert "snapshots" in found["dt=2"].reason
    hdfs.dfs.disallowSnapshot(hdfs.path("dt=2"))


def test_a_table_that_has_snapshots_is_compacted_and_the_snapshot_keeps_its_files(spark, hdfs, database):
    hdfs.dfs.allowSnapshot(hdfs.path())
    hdfs.dfs.createSnapshot(hdfs.path(), "before")
    desk = desk_on(spark, f"{database}.events")
    assert outcomes(units_of(desk.compact())) == dict.fromkeys(DAYS, "swapped")
    assert desk.cleanup().code is Exit.DONE
    assert spark.read.parquet(f"{hdfs.root}/.snapshot/before/dt=1").count() == 40
    assert count(spark, f"{database}.events") == 120
    hdfs.dfs.deleteSnapshot(hdfs.path(), "before")
    hdfs.dfs.disallowSnapshot(hdfs.path())


@pytest.fixture
def zone(superuser: Any, gateway: Any, database: str) -> str:
    """An encryption zone owned by etl."""
    place = gateway.jvm.org.apache.hadoop.fs.Path(f"/data/{database}")
    superuser.mkdirs(place)
    superuser.setOwner(place, "etl", "data")
    superuser.createEncryptionZone(place, ZONE_KEY)
    return str(place)


def make_in_zone(spark: Any, database: str, name: str, location: str) -> str:
    spark.range(0, 40, 1, 4).write.mode("append").parquet(location)
    spark.sql(f"CREATE EXTERNAL TABLE {database}.{name} (id BIGINT) STORED AS PARQUET LOCATION '{location}'")
    return f"{database}.{name}"


def test_a_table_inside_an_encryption_zone_is_compacted_and_its_backup_goes_to_the_trash_of_the_zone(
    spark, zone, superuser, gateway, database
):
    table = make_in_zone(spark, database, "inside", f"{zone}/inside")
    desk = desk_on(spark, table)
    assert outcomes(units_of(desk.compact())) == {"": "swapped"}
    assert count(spark, table) == 40
    assert desk.cleanup(how="trash").code is Exit.DONE
    trash_of_zone = gateway.jvm.org.apache.hadoop.fs.Path(f"{zone}/.Trash/etl/Current")
    assert superuser.exists(trash_of_zone)


def test_a_table_that_is_an_encryption_zone_is_refused(spark, zone, database):
    table = make_in_zone(spark, database, "root", zone)
    found = compact(spark, table)
    assert outcomes(found) == {"": "refused"}
    assert "encryption zone" in found[""].reason
