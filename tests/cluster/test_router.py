"""Tables by way of a router (RBF): in its default nameservice, and below a mount point, where its ids are those of others there."""

from __future__ import annotations

import json
import time
from typing import Any, Iterator, List, Tuple

import pytest

from cluster.servers.layout import Layout
from cluster.servers.router import MOUNT, Router, start_router, stop_router
from cluster.tables import SmallTable
from hivekeeper.cluster.java_errors import JAVA_ERRORS
from hivekeeper.codes import Exit
from hivekeeper.config.settings import AT_ONCE, JOINED
from hivekeeper.reasons import Code
from support.desk import outcomes
from support.drivers import another_cluster, another_driver

pytestmark = pytest.mark.usefixtures("routed")

DAYS = ("2026-01-01", "2026-01-02")
IN_DEFAULT, IN_MOUNTED = "/user/etl", f"{MOUNT}/user/etl"
TOPS = pytest.mark.parametrize("top", [IN_DEFAULT, IN_MOUNTED], ids=["default", "mounted"])
# HDFS takes no path of more than 1000 names.
DEEPEST = 900
# More than a table and all commands on it have ids.
MOST_IDS = 200


class NameServer:
    """A NameNode, or both by way of the router, as etl."""

    def __init__(self, gateway: Any, uri: str) -> None:
        self._jvm, self.uri = gateway.jvm, uri
        self.fs = gateway.jvm.org.apache.hadoop.fs.FileSystem.get(gateway.jvm.java.net.URI(uri), gateway.hadoop_conf)

    def wait_for(self, text: str) -> None:
        """A router that answers may not have read its mounts yet, or not know yet which NameNode is behind one."""
        until = time.monotonic() + 120
        while not self._has(text):
            assert time.monotonic() < until, f"there is no {text}"
            time.sleep(0.2)

    def _has(self, text: str) -> bool:
        try:
            return bool(self.fs.exists(self.path(text)))
        except JAVA_ERRORS:
            return False

    def path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)

    def make(self, text: str) -> int:
        """The id of a new directory: the last one that the NameNode has given."""
        assert self.fs.mkdirs(self.path(text))
        return self.id_of(text)

    def id_of(self, text: str) -> int:
        return self.fs.getFileStatus(self.path(text)).getFileId()

    def use_ids_up_to(self, last: int, top: str) -> None:
        """Each call makes many directories, one inside the other."""
        left = last - self.make(top)
        assert left >= 0
        while left:
            depth = min(left, DEEPEST)
            self.make(f"{top}/{left}" + "/d" * (depth - 1))
            left -= depth
        assert self.make(f"{top}-next") == last + 1

    def everything(self, top: str) -> List[Tuple[str, int]]:
        """All that it tells of what is below, with ids."""
        found, tops = [], [top]
        while tops:
            for status in self.fs.listStatus(self.path(tops.pop())):
                found.append((status.toString(), status.getFileId()))
                if status.isDirectory():
                    tops.append(status.getPath().toUri().getPath())
        return sorted(found)


class Routed:
    """The router `by`, and the NameNodes behind it."""

    def __init__(self, gateway: Any, layout: Layout, running: Router) -> None:
        self.by, self.default, self.other = (NameServer(gateway, uri) for uri in (running.uri, layout.namenode, running.other))

    def take_ids_of_others(self, name: str, many: int) -> str:
        """The next ids in the other nameservice are those of etl's directories in the default one, and of a lock in each."""
        strangers = f"/user/etl/{name}-strangers"
        first = self.default.make(strangers)
        for number in range(many // 2):
            self.default.fs.mkdirs(self.default.path(f"{strangers}/{number}"))
            self.default.fs.createNewFile(self.default.path(f"{strangers}/{number}/_lock"))
        self.other.use_ids_up_to(first, f"/user/etl/{name}-used")
        return strangers


@pytest.fixture(scope="module")
def routed(layout: Layout, gateway: Any) -> Iterator[Routed]:
    """The router is the default file system meanwhile, as for clients that know no other one."""
    running, conf = start_router(layout), another_driver().hadoop_conf
    try:
        conf.set("fs.defaultFS", running.uri)
        found = Routed(gateway, layout, running)
        for place in (IN_DEFAULT, IN_MOUNTED):
            found.by.wait_for(place)
        yield found
    finally:
        conf.set("fs.defaultFS", layout.namenode)
        stop_router(layout.run)


def hold(gateway: Any, routed: Routed, directory: str) -> List[bool]:
    """Whether what is found by the lock's id is used: the directory of a lock, and the one around it."""
    locks = gateway.helper("LeaseLock", gateway.hadoop_conf)
    number = locks.hold(f"{routed.by.uri}{directory}", "_lock", "somebody")
    try:
        assert locks.isHeld(number)
        return [found != 0 for found in json.loads(locks.directoryIds(number))]
    finally:
        locks.release(number)


def test_a_router_tells_ids_and_looks_for_all_of_them_in_its_default_nameservice(gateway, routed, database):
    routed.take_ids_of_others(database, 4)
    lock = f"/user/etl/{database}-locked"
    file_id = routed.other.make(lock)
    assert routed.by.id_of(f"{MOUNT}{lock}") == file_id
    by_id = routed.by.path(f"/.reserved/.inodes/{file_id}")
    assert routed.by.fs.getFileStatus(by_id).toString() == routed.default.fs.getFileStatus(by_id).toString().replace(
        routed.default.uri, routed.by.uri
    )
    assert hold(gateway, routed, f"{MOUNT}{lock}") == [False, False]
    routed.default.make(lock)
    assert hold(gateway, routed, lock) == [True, True]


@TOPS
def test_whole_commands_lose_no_row_and_touch_nothing_that_has_the_same_ids(spark, routed, database, top):
    strangers = routed.take_ids_of_others(database, MOST_IDS if top == IN_MOUNTED else 0)
    before = routed.default.everything(strangers)
    first = routed.other.make(f"/user/etl/{database}-first")
    table = SmallTable(spark, database, DAYS, top=top)
    desk = table.desk(exchange=AT_ONCE)
    for command, outcome in ((desk.compact, "swapped"), (desk.verify, "verified"), (desk.rollback, "rolled-back")):
        result = command()
        assert (result.code, outcomes(result)) == (Exit.DONE, dict.fromkeys(table.units, outcome))
        table.require_every_row_once()
    table.append()
    table.kill_after("live → retired", desk.compact)
    assert desk.recover().code is Exit.DONE
    table.require_every_row_once()
    assert desk.compact().code is Exit.DONE
    assert [len(table.ids(table.live(unit))) for unit in table.units] == [1, 1]
    assert desk.cleanup().code is Exit.DONE
    table.require_every_row_once()
    assert desk.history().tables[0].backups == ()
    assert not [path for path, _, _ in table.everything() if "/runs/" in path]
    assert routed.other.make(f"/user/etl/{database}-last") - first < MOST_IDS
    assert routed.default.everything(strangers) == before


@TOPS
def test_files_are_joined_in_the_default_nameservice_alone(spark, database, top):
    table = SmallTable(spark, database, DAYS[:1], files=12, top=top)
    desk = table.desk(exchange=JOINED)
    result = desk.compact()
    table.require_every_row_once()
    if top == IN_MOUNTED:
        assert [unit.why.code for unit in result.tables[0].units] == [Code.NOT_JOINABLE]
        return
    assert outcomes(result) == {table.units[0]: "swapped"}
    assert outcomes(desk.rollback()) == {table.units[0]: "rolled-back"}
    table.require_every_row_once()


@pytest.mark.parametrize(
    ("top", "has_trash"),
    [(IN_DEFAULT, False), (IN_MOUNTED, False), (IN_MOUNTED, True)],
    ids=["default", "mounted, new", "mounted, open to all"],
)
def test_old_files_go_to_the_trash_where_all_around_it_can_be_looked_at(spark, gateway, routed, database, top, has_trash):
    """A router has the trash of what is below a mount point in that nameservice, in directories that it does not show."""
    table = SmallTable(spark, database, DAYS[:1], top=top)
    desk = table.desk(exchange=AT_ONCE)
    desk.compact()
    if has_trash:
        # As `hdfs dfs -rm` does.
        routed.by.make(f"/user/etl/.Trash/Current{table.root}")
        everybody = gateway.jvm.org.apache.hadoop.fs.permission.FsPermission("777")
        for around in (".Trash", ".Trash/Current"):
            routed.other.fs.setPermission(routed.other.path(f"/user/etl/{around}"), everybody)
    result = desk.cleanup(how="trash")
    (backup,) = result.tables[0].backups
    if top == IN_DEFAULT:
        assert result.code is Exit.DONE
        assert routed.default.everything(f"/user/etl/.Trash/Current{table.root}")
    else:
        assert [(unit, why.code) for unit, why in backup.kept_units] == [(table.units[0], Code.TRASH_NOT_OURS)]
        assert "another nameservice" in backup.kept_units[0][1].what
        assert outcomes(desk.rollback()) == {table.units[0]: "rolled-back"}
    table.require_every_row_once()


def test_quotas_are_seen_though_the_router_has_its_own_switched_off(superuser, routed, database):
    files, limited = another_cluster().files, f"/user/etl/{database}-limited"
    routed.default.make(limited)
    place = files.qualify(limited)
    assert not files.ties([place])[place].quota and not files.room(place, [place]).quotas
    superuser.setQuota(routed.default.path(limited), 10, 2**63 - 1)
    assert files.ties([place])[place].quota
    assert [quota.names_left for quota in another_cluster().files.room(place, [place]).quotas] == [9]
