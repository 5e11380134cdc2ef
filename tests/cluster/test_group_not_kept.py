"""`owner: try` and `ignore`: a copy of files whose group cannot be kept must not be open to the group of the directory that it comes to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError

from hivekeeper.codes import Exit
from support.desk import Desk
from support.drivers import another_cluster


def opens(fs, place):
    """How many of the files there this user can open."""
    try:
        found = [status.getPath() for status in fs.listStatus(place)]
    except Py4JJavaError:
        return 0
    return sum(can_open(fs, path) for path in found)


def can_open(fs, path):
    try:
        fs.open(path).close()
    except Py4JJavaError:
        return False
    return True


@pytest.mark.parametrize("owner", ["try", "ignore"])
def test_rows_of_another_table_that_one_may_rename_but_not_read_are_not_opened_to_one_s_own_group(
    spark, gateway, superuser, database, loader, owner
):
    """etl may read all by ACLs, and is in the group of the tenant's table, but not in that of the other table."""
    path, fs_classes = gateway.jvm.org.apache.hadoop.fs.Path, gateway.jvm.org.apache.hadoop.fs.permission
    theirs, mine = path(f"/data/{database}-theirs"), path(f"/data/{database}-mine")
    for place in (theirs, path(f"{mine}/dt=1")):
        spark.range(0, 40, 1, 4).write.mode("append").parquet(str(place))
    superuser.setOwner(mine, "loader", "data")
    superuser.setPermission(mine, fs_classes.FsPermission("775"))
    for place, bits in [(theirs, "750"), *((status.getPath(), "640") for status in superuser.listStatus(theirs))]:
        superuser.setOwner(place, "analyst", "analyst")
        superuser.setPermission(place, fs_classes.FsPermission(bits))
        superuser.modifyAclEntries(place, fs_classes.AclEntry.parseAclSpec("user:etl:rwx", True))
    assert opens(loader, theirs) == 0
    # What HDFS lets a member of the group of the directory around them do.
    assert loader.rename(theirs, path(f"{mine}/dt=2"))
    assert opens(loader, path(f"{mine}/dt=2")) == 0
    table = f"{database}.mine"
    spark.sql(f"CREATE EXTERNAL TABLE {table} (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET LOCATION '{mine}'")
    for day in (1, 2):
        spark.sql(f"ALTER TABLE {table} ADD PARTITION (dt='{day}')")
    result = Desk(SimpleNamespace(cluster=another_cluster()), table, backup_table=False, owner=owner).compact()
    assert result.code is Exit.DONE
    status = superuser.getFileStatus(path(f"{mine}/dt=2"))
    assert (status.getOwner(), status.getGroup()) == ("etl", "data")
    assert opens(loader, path(f"{mine}/dt=2")) == 0, status.getPermission()
    # Whom the ACL names still reads, and what has the group of its table is as before.
    assert [str(entry) for entry in superuser.getAclStatus(path(f"{mine}/dt=2")).getEntries()] == ["user:etl:rwx", "group::---"]
    assert opens(loader, path(f"{mine}/dt=1")) == 1
