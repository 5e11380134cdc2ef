"""The worlds of the contract of `ports.Metastore`: the port, and what others do there; and what is made and looked at in them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from hivekeeper import names, quoting
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.model import Column, Partition, Table
from hivekeeper.ports import Metastore
from support.fakes.files import FakeFiles
from support.fakes.metastore import PARQUET, FakeMetastore
from support.hive_statements import Hive
from support.storage import Storage

COLUMNS = (Column("id", "int"), Column("v", "string"))

BY_DT = (Column("dt", "string"),)

NASTY = ("it's", 'a"b', "a`b", "a\\b", "F R", " x ", "a/b", "a%2Fb", "12:30", "a=b", "été 日本", "[x]{y}^*?#", "${env:HOME}", "\\'", "A")

STATS = {"numRows": "7", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true","COLUMN_STATS":{"id":"true"}}', "rawDataSize": "70", "mine": "x"}

MARKS = {"hivekeeper.backup-of": "contract.events", "hivekeeper.run": "20260101t020304z-0000"}


@dataclass
class FakeWorld:
    """Changes by others, made in the fake's catalog."""

    metastore: FakeMetastore
    files: FakeFiles
    database: str
    root: str = "hdfs://nn/warehouse"
    is_remote: bool = False

    def add_table(self, name: str, partitioned: bool = True, location: str = "", database: str = "") -> Table:
        storage = PARQUET
        location = location or f"{self.root}/{name}"
        table = Table(database or self.database, name, "EXTERNAL_TABLE", location, storage, COLUMNS, BY_DT if partitioned else ())
        self.metastore.catalog.add_table(table)
        return table

    def add_managed_table(self, name: str) -> Table:
        table = Table(self.database, name, "MANAGED_TABLE", f"{self.root}/{name}", PARQUET, COLUMNS, BY_DT, create_time=5)
        self.metastore.catalog.add_table(table)
        self.files.writer.make_directory(table.location)
        return table

    def add_view(self, name: str, location: str = "") -> Table:
        self.catalog.add_table(Table(self.database, name, "VIRTUAL_VIEW", location, PARQUET, COLUMNS, BY_DT, view_text="SELECT 1"))
        return find(self, f"{self.database}.{name}")

    @property
    def hive(self) -> Hive:
        return Hive(self, metadata_first=True)

    @property
    def catalog(self) -> Any:
        return self.metastore.catalog

    def hand_over(self, table: Table, change: str) -> None:
        purge = {**table.parameters, "external.table.purge": "true"}
        changed = {"owner": {"owner": "mallory"}, "kind": {"kind": "MANAGED_TABLE"}, "purge": {"parameters": purge}}
        self.catalog.put_table(replace(table, **changed[change]))

    def rename_partition(self, table: Table, old: str, new: str) -> None:
        list(self.hive.rename_partition(table.full_name, old, new))

    def rename_table(self, table: Table, new: str) -> None:
        list(self.hive.rename_table(table.full_name, f"{self.database}.{new}"))

    def let_act(self, act: Callable[[], object], before: str) -> None:
        """Let somebody act just before each request of a certain method of Hive's client."""
        is_second = itertools.cycle([False, True])
        # Definitions of tables are each second request, after names.
        self.metastore.before_request = lambda _: (before == "getPartitionsByNames" or next(is_second)) and act()

    def drop_with_files(self, table: Table, name: str) -> None:
        list(self.hive.drop_partition(table.full_name, name))

    def take_away(self, location: str) -> None:
        self.files.writer.rename_into(location, f"{self.root}/aside")

    def drop_table(self, table: Table) -> None:
        self.metastore.catalog.drop_table(table.full_name)

    def drop_partition(self, table: Table, name: str) -> None:
        self.metastore.catalog.drop_partition(table.full_name, name)

    def set_location(self, table: Table, location: str) -> None:
        self.catalog.put_table(replace(table, location=location))

    def set_parameters(self, table: Table, name: str, parameters: Mapping[str, str]) -> None:
        catalog = self.metastore.catalog
        if name:
            catalog.put_partition(table.full_name, replace(catalog.partitions[table.full_name][name], parameters=parameters))
        else:
            catalog.put_table(replace(catalog.tables[table.full_name], parameters=parameters))

    def set_serde_path(self, table: Table, path: str, key: str = "path", provider: str = "parquet") -> Table:
        storage = replace(table.storage, serde_parameters={**table.storage.serde_parameters, key: path})
        of_spark = {names.SPARK_PROVIDER: provider} if provider else {}
        changed = replace(table, storage=storage, parameters={**table.parameters, **of_spark})
        self.metastore.catalog.put_table(changed)
        return changed

    def promise(self, table: Table, name: str, layout: str) -> None:
        stored = self.metastore.catalog.partitions[table.full_name][name]
        self.metastore.catalog.put_partition(table.full_name, replace(stored, storage=replace(stored.storage, layout=layout)))

    def add_database(self, home: str = "") -> str:
        self.metastore.catalog.databases.add("backups")
        if home:
            self.metastore.catalog.homes["backups"] = home
        return "backups"

    def exists(self, location: str) -> bool:
        return self.files.look([location])[location].exists

    def add_file(self, location: str) -> None:
        self.files.writer.add(location, "rows")

    def delete(self, location: str) -> None:
        self.files.writer.delete(location)

    def listing(self) -> Any:
        return [(found.path, found.mtime_ms) for found in self.files.tree(self.root)]

    def another_client(self) -> Metastore:
        return FakeMetastore(self.files.another_client(), self.metastore.catalog)

    def make_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = True

    def drop_lock_tables(self) -> None:
        self.metastore.catalog.has_locks = False


class RealWorld:
    """Changes by others, made with Spark SQL and a separate client; the metastore is a server, or embedded."""

    def __init__(self, gateway: Gateway, storage: Storage, database: str) -> None:
        self.gateway, self.storage, self.database, self.root = gateway, storage, database, storage.root
        self.metastore = HiveMetastore(gateway)
        self.is_remote = bool(gateway.hadoop_conf.get("hive.metastore.uris"))
        jvm = gateway.jvm
        self.hive = jvm.org.apache.hadoop.hive
        self.conf = self.hive.conf.HiveConf(gateway.hadoop_conf, jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"))
        if not self.is_remote:
            url = "javax.jdo.option.ConnectionURL"
            for key, value in ((url, gateway.hadoop_conf.get(url)), ("hive.metastore.schema.verification", "false")):
                self.conf.set(key, value)
        self.client = self.hive.metastore.HiveMetaStoreClient(self.conf)
        self.databases: List[str] = []
        self._make_database(database, self.root)

    def add_database(self, home: str = "") -> str:
        return self._make_database(f"{self.database}_backups", home or self.root)

    def _make_database(self, database: str, home: str) -> str:
        self.gateway.spark.sql(f"CREATE DATABASE {database} LOCATION '{home}'")
        self.databases.append(database)
        return database

    def add_table(self, name: str, partitioned: bool = True, location: str = "", database: str = "") -> Table:
        by = "PARTITIONED BY (dt string)" if partitioned else ""
        location, database = location or f"{self.root}/{name}", database or self.database
        what = f"EXTERNAL TABLE {database}.{name} (id int, v string) {by}"
        self.gateway.spark.sql(f"CREATE {what} STORED AS PARQUET LOCATION '{location}'")
        return self.metastore.tables(database, [name])[name]

    def add_managed_table(self, name: str) -> Table:
        self.gateway.spark.sql(f"CREATE TABLE {self.database}.{name} (id int, v string) PARTITIONED BY (dt string) STORED AS PARQUET")
        return self.metastore.tables(self.database, [name])[name]

    def add_view(self, name: str, location: str = "") -> Table:
        """By the metastore's own interface, which takes a location for it, too."""
        stored = self.stored(self.add_table(f"like_{name}"), "").deepCopy()
        stored.setTableName(name)
        stored.setTableType("VIRTUAL_VIEW")
        stored.getSd().setLocation(location or None)
        stored.setParameters(self.gateway.jvm.java.util.HashMap({}))
        stored.setViewOriginalText("SELECT 1")
        stored.setViewExpandedText("SELECT 1")
        self.client.createTable(stored)
        return find(self, f"{self.database}.{name}")

    def rename_partition(self, table: Table, old: str, new: str) -> None:
        stored = self.stored(table, old)
        former, renamed = stored.getValues(), stored.deepCopy()
        renamed.setValues(self.gateway.jvm.java.util.ArrayList([new.partition("=")[2]]))
        self.client.renamePartition(table.database, table.name, former, renamed)

    def rename_table(self, table: Table, new: str) -> None:
        stored = self.stored(table, "")
        stored.setTableName(new)
        self.client.alter_table(table.database, table.name, stored)

    def let_act(self, act: Callable[[], object], before: str) -> None:
        let_fail(self, lambda *_: bool(act() and False), before)

    def drop_with_files(self, table: Table, name: str) -> None:
        self.client.dropPartition(table.database, table.name, name, True)

    def take_away(self, location: str) -> None:
        self.storage.rename(location, f"{self.root}/aside")

    def drop_table(self, table: Table) -> None:
        self.gateway.spark.sql(f"DROP TABLE {table.full_name}")

    def drop_partition(self, table: Table, name: str) -> None:
        self.client.dropPartition(table.database, table.name, name, False)

    def set_location(self, table: Table, location: str) -> None:
        self.gateway.spark.sql(f"ALTER TABLE {table.full_name} SET LOCATION '{location}'")

    def set_parameters(self, table: Table, name: str, parameters: Mapping[str, str]) -> None:
        stored = self.stored(table, name)
        stored.setParameters(self.gateway.jvm.java.util.HashMap(dict(parameters)))
        if name:
            self.client.alter_partition(table.database, table.name, stored, self.keep_statistics())
        else:
            self.client.alter_table_with_environmentContext(table.database, table.name, stored, self.keep_statistics())

    def promise(self, table: Table, name: str, layout: str) -> None:
        stored, java, api = self.stored(table, name), self.gateway.jvm.java.util, self.hive.metastore.api
        if layout == "bucketed":
            stored.getSd().setNumBuckets(4)
            stored.getSd().setBucketCols(java.ArrayList(["id"]))
        elif layout == "sorted":
            stored.getSd().setSortCols(java.ArrayList([api.Order("id", 1)]))
        else:
            names_of, values = (["v"], [java.ArrayList(["x"])]) if layout else ([], [])
            stored.getSd().setSkewedInfo(api.SkewedInfo(java.ArrayList(names_of), java.ArrayList(values), java.HashMap()))
        self.client.alter_partition(table.database, table.name, stored, self.keep_statistics())

    def hand_over(self, table: Table, change: str) -> None:
        stored = self.stored(table, "")
        if change == "owner":
            stored.setOwner("mallory")
        elif change == "kind":
            stored.setTableType("MANAGED_TABLE")
            stored.getParameters().remove("EXTERNAL")
        else:
            stored.getParameters().put("external.table.purge", "true")
        self.client.alter_table_with_environmentContext(table.database, table.name, stored, self.keep_statistics())

    def stored(self, table: Table, name: str) -> Any:
        return self.client.getPartition(table.database, table.name, name) if name else self.client.getTable(table.database, table.name)

    def keep_statistics(self) -> Any:
        return self.hive.metastore.api.EnvironmentContext(self.gateway.jvm.java.util.HashMap({"DO_NOT_UPDATE_STATS": "true"}))

    def set_serde_path(self, table: Table, path: str, key: str = "path", provider: str = "parquet") -> Table:
        stored = self.stored(table, "")
        stored.getSd().getSerdeInfo().putToParameters(key, path)
        if provider:
            stored.putToParameters(names.SPARK_PROVIDER, provider)
        self.client.alter_table_with_environmentContext(table.database, table.name, stored, self.keep_statistics())
        return self.metastore.tables(table.database, [table.name])[table.name]

    def add_file(self, location: str) -> None:
        self.storage.write(location, b"rows")

    def delete(self, location: str) -> None:
        self.storage.delete(location)

    def listing(self) -> Any:
        return self.storage.tree(self.root)

    def exists(self, location: str) -> bool:
        return self.storage.exists(location)

    def another_client(self) -> Metastore:
        return HiveMetastore(Gateway(self.gateway.driver))

    def make_lock_tables(self) -> None:
        """A server has them from its installation on."""
        if not self.is_remote:
            self.hive.metastore.txn.TxnDbUtil.prepDb(self.conf)

    def drop_lock_tables(self) -> None:
        if not self.is_remote:
            self.hive.metastore.txn.TxnDbUtil.cleanDb(self.conf)


def partition_of(table: Table, value: str, parameters: Optional[Mapping[str, str]] = None, location: str = "") -> Partition:
    name = quoting.partition_name(["dt"], [value])
    return Partition(name, (value,), location or f"{table.location}/{name}", table.storage, parameters or {})


def add_partitions(world: Any, table: Table, values: Sequence[str]) -> None:
    for value in values:
        assert world.metastore.add_partition(table, partition_of(table, value))


def without_time(parameters: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in parameters.items() if key != "transient_lastDdlTime"}


def _invoke(method: Any, client: Any, arguments: Any) -> Any:
    """What Hive's client answers or throws: of databases that other tests drop meanwhile it has an exception of their own."""
    from py4j.protocol import Py4JJavaError

    try:
        return method.invoke(client, arguments)
    except Py4JJavaError as failed:
        failed.java_exception = failed.java_exception.getCause()
        raise


class FailingClient:
    """Hive's client, which fails at each request that reads a certain table or database, or at all of them."""

    def __init__(self, client: Any, fails: Any, fails_at: str) -> None:
        self._client, self._fails, self._fails_at = client, fails, fails_at

    def invoke(self, _proxy: Any, method: Any, arguments: Any) -> Any:
        if method.getName() == self._fails_at and self._fails(*(arguments or ())):
            raise RuntimeError("too large for this metastore")
        return _invoke(method, self._client, arguments)

    class Java:
        implements = ["java.lang.reflect.InvocationHandler"]


class AnsweringClient:
    """Hive's client, which always gives the same answer to a certain request."""

    def __init__(self, client: Any, answers_at: str, answer: object) -> None:
        self._client, self._answers_at, self._answer = client, answers_at, answer

    def invoke(self, _proxy: Any, method: Any, arguments: Any) -> Any:
        return self._answer if method.getName() == self._answers_at else _invoke(method, self._client, arguments)

    class Java:
        implements = ["java.lang.reflect.InvocationHandler"]


class ForgetfulClient:
    """Hive's client, to which the metastore tells partitions without a property if it is asked for many (HIVE-27114)."""

    def __init__(self, client: Any, key: str) -> None:
        self._client, self._key = client, key

    def invoke(self, _proxy: Any, method: Any, arguments: Any) -> Any:
        if method.getName() == "getConfigValue" and arguments[0] == "hive.metastore.partitions.parameters.exclude.pattern":
            return f"{self._key}%"
        answer = _invoke(method, self._client, arguments)
        if method.getName() == "getPartitionsByNames":
            for partition in answer:
                partition.getParameters().remove(self._key)
        return answer

    class Java:
        implements = ["java.lang.reflect.InvocationHandler"]


def let_forget(world: RealWorld, key: str) -> None:
    """Exchange the client behind the metastore of a world."""
    _exchange_client(world, world.metastore, lambda client: ForgetfulClient(client, key))


def let_fail(world: RealWorld, fails: Any, fails_at: str = "getTableObjectsByName") -> None:
    """Exchange the client behind the metastore of a world."""
    _exchange_client(world, world.metastore, lambda client: FailingClient(client, fails, fails_at))


def let_answer(world: RealWorld, metastore: Any, answers_at: str, answer: object) -> None:
    """Exchange the client behind a metastore."""
    _exchange_client(world, metastore, lambda client: AnsweringClient(client, answers_at, answer))


def _exchange_client(world: RealWorld, metastore: Any, exchange: Callable[[Any], Any]) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(world.gateway.java_gateway)
    # What they throw is thrown on the Java side.
    world.gateway.java_gateway.python_parameters.propagate_java_exceptions = True
    reader = metastore._reader
    of_reader = reader.getClass().getDeclaredField("connection")
    of_reader.setAccessible(True)
    connection = of_reader.get(reader)
    of_connection = connection.getClass().getDeclaredField("client")
    of_connection.setAccessible(True)
    client = of_connection.get(connection)
    jvm = world.gateway.jvm
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.hive.metastore.IMetaStoreClient", True, client.getClass().getClassLoader())
    kinds = world.gateway.java_gateway.new_array(jvm.java.lang.Class, 1)
    kinds[0] = kind
    made = jvm.java.lang.reflect.Proxy.newProxyInstance(client.getClass().getClassLoader(), kinds, exchange(client))
    of_connection.set(connection, made)


def backup_of(world: Any, database: str = "") -> str:
    return f"{database or world.database}.__bkp_events_20260101_020304"


def place(world: Any, number: int, state: str = "retired") -> str:
    return f"{world.root}/events/.hivekeeper/runs/20260101t020304z-0000/{state}/u{number:05d}"


def find(world: Any, name: str) -> Any:
    database, _, own_name = name.partition(".")
    return world.metastore.tables(database, [own_name]).get(own_name)


def shown_by(world: Any, name: str) -> Dict[str, str]:
    table = find(world, name)
    if not table.partitioned:
        return {"": table.location}
    return {partition.name: partition.location for partition in world.metastore.partitions(table)}


def make_backup(world: Any, table: Table, places: Mapping[str, str], name: str = "") -> str:
    name = name or backup_of(world)
    world.metastore.make_backup_table(table, name, place(world, 0, "backup_table"), MARKS, list(places))
    world.metastore.point_backup_table(name, MARKS, places)
    return name
