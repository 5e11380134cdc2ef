"""What one tenant's definitions may cost the others on the same metastore."""

from __future__ import annotations

import itertools
import json
import socketserver
import threading
from dataclasses import replace
from typing import Any, List

import pytest

from hivekeeper import names, ports
from hivekeeper.cluster import metastore as metastore_module
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_classes import JavaPackage, JavaSource, compiled
from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.errors import Refused
from hivekeeper.model import Table
from hivekeeper.plan import own_place
from hivekeeper.ports import MetastoreRefused, MetastoreUnavailable
from hivekeeper.reasons import Code
from support import hostile_files
from support.driver_cpu import cpu_seconds
from support.metastore_worlds import COLUMNS, MARKS, add_partitions, find, let_fail, partition_of
from support.storage import local_only

# ---- definitions that are too large


RICH = {"EXTERNAL": "TRUE", "x": "v" * 4000, "y": "\N{GRINNING FACE}" * 100}


def test_a_table_with_a_huge_definition_is_unreadable_and_the_others_are_read(world, monkeypatch):
    for name in ("before", "huge", "rest"):
        world.add_table(name)
    table = world.metastore.tables(world.database, ["huge"])["huge"]
    world.set_parameters(table, "", RICH)
    assert world.metastore.tables(world.database, ["huge"])["huge"].parameters["y"] == RICH["y"]
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 3000)
    found = world.metastore.tables(world.database, ["before", "huge", "rest"])
    assert {name: bool(one.unreadable) for name, one in found.items()} == {"before": False, "huge": True, "rest": False}
    assert (found["huge"].kind, found["huge"].create_time, found["huge"].parameters) == (table.kind, table.create_time, {})
    assert world.metastore.locations_below([table.location])[table.location] == (table.full_name,)


def test_of_tables_that_are_huge_together_the_largest_are_unreadable(world, monkeypatch):
    names = ["before", "huge", "large", "rest"]
    tables = {name: world.add_table(name) for name in names}
    world.set_parameters(tables["huge"], "", RICH)
    world.set_parameters(tables["large"], "", {**RICH, "x": "v" * 3000})
    created = find(world, tables["huge"].full_name).create_time
    for most, unread in ((2**14, set()), (7000, {"huge"}), (3000, {"huge", "large"})):
        monkeypatch.setattr(ports, "MOST_OF_TABLES", most)
        found = world.metastore.tables(world.database, names)
        assert {name for name, one in found.items() if one.unreadable} == unread
        assert (sorted(found), found["huge"].create_time) == (names, created)


def describe_storage(world: Any, table: Table, part: str) -> None:
    """Give a table much of what Hive keeps beside its properties, columns and SerDe: by DDL, or by a client of the metastore."""
    stored, java = world.stored(table, ""), world.gateway.jvm.java.util
    words = java.ArrayList([f"{number:0200d}" for number in range(20)])
    if part == "storage properties":
        stored.getSd().setParameters(java.HashMap({"x": "v" * 4000}))
    elif part == "buckets":
        stored.getSd().setBucketCols(words)
    elif part == "sorting":
        stored.getSd().setSortCols(java.ArrayList([world.hive.metastore.api.Order(word, 1) for word in words]))
    elif part == "skew":
        values = java.ArrayList([java.ArrayList([word]) for word in words])
        stored.getSd().setSkewedInfo(world.hive.metastore.api.SkewedInfo(java.ArrayList(["v"]), values, java.HashMap()))
    elif part == "comments":
        for column in stored.getSd().getCols():
            column.setComment("c" * 250)
        stored.getSd().setCols(java.ArrayList([*stored.getSd().getCols(), *_commented(world, 18)]))
    else:
        stored.setViewOriginalText("v" * 4000)
    world.client.alter_table_with_environmentContext(table.database, table.name, stored, world.keep_statistics())


def _commented(world: Any, columns: int) -> List[Any]:
    return [world.hive.metastore.api.FieldSchema(f"c{number}", "int", "c" * 250) for number in range(columns)]


@local_only
@pytest.mark.parametrize("part", ["storage properties", "buckets", "sorting", "skew", "comments", "text"])
def test_all_that_a_definition_holds_counts(real, monkeypatch, part):
    """Java keeps all of it until it has read the other tables of the database."""
    for name in ("before", "huge"):
        table = real.add_table(name)
    describe_storage(real, table, part)
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 3000)
    found = real.metastore.tables(real.database, ["before", "huge"])
    assert {name: bool(one.unreadable) for name, one in found.items()} == {"before": False, "huge": True}


@local_only
@pytest.mark.parametrize("part", ["properties", "columns", "buckets"])
def test_what_many_short_texts_take_besides_their_characters_counts(real, monkeypatch, part):
    """A property or a column of two characters takes hundreds of bytes."""
    table, java = real.add_table("many"), real.gateway.jvm.java.util
    stored, short = real.stored(table, ""), [f"{number:x}" for number in range(3000)]
    if part == "properties":
        stored.setParameters(java.HashMap({**dict.fromkeys(short, "v"), "EXTERNAL": "TRUE"}))
    elif part == "columns":
        more = [real.hive.metastore.api.FieldSchema(f"c{name}", "int", "") for name in short]
        stored.getSd().setCols(java.ArrayList([*stored.getSd().getCols(), *more]))
    else:
        stored.getSd().setBucketCols(java.ArrayList(short))
    real.client.alter_table_with_environmentContext(table.database, table.name, stored, real.keep_statistics())
    assert not find(real, table.full_name).unreadable
    monkeypatch.setattr(ports, "MOST_OF_TABLE", 100_000)
    assert find(real, table.full_name).unreadable


@pytest.mark.parametrize(("many", "most"), [(3000, 100_000), (900, 20_000)])
def test_what_many_short_properties_of_partitions_take_counts(world, monkeypatch, many, most):
    table = world.add_table("many")
    add_partitions(world, table, ["1", "2"])
    world.set_parameters(table, "dt=1", {f"{number:x}": "v" for number in range(many)})
    assert len(world.metastore.partitions(table)) == 2
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", most)
    with pytest.raises(Refused):
        world.metastore.partitions(table)
    assert list(world.metastore.partitions_named(table, ["dt=2"])) == ["dt=2"]


def test_many_definitions_come_in_answers_of_bounded_size(real, monkeypatch):
    """Java holds several copies of an answer: in one of all definitions, a few large tables took the memory that Spark gives a driver."""
    names = [f"t{number}" for number in range(12)]
    for name in names:
        real.set_parameters(real.add_table(name), "", {"y": "v" * 2000})
    lengths, loads = [], json.loads
    monkeypatch.setattr(ports, "MOST_OF_ANSWER", 5000)
    monkeypatch.setattr(json, "loads", lambda text: (lengths.append(len(text)), loads(text))[1])
    found = real.metastore.tables(real.database, names)
    assert {name: len(one.parameters["y"]) for name, one in found.items()} == dict.fromkeys(names, 2000)
    assert max(lengths) < 12_000


def test_partitions_with_huge_properties_are_refused(world, monkeypatch):
    table, other = world.add_table("huge"), world.add_table("other")
    for one in (table, other):
        add_partitions(world, one, ["1", "2"])
    world.set_parameters(table, "dt=1", RICH)
    assert world.metastore.partitions_named(table, ["dt=1"])["dt=1"].parameters["y"] == RICH["y"]
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 4000)
    for read in (lambda: world.metastore.partitions(table), lambda: world.metastore.partitions_named(table, ["dt=1"])):
        with pytest.raises(Refused) as refused:
            read()
        assert refused.value.reason.code is Code.UNREADABLE_DEFINITION
    assert list(world.metastore.partitions_named(table, ["dt=2"])) == ["dt=2"]
    assert len(world.metastore.partitions(other)) == 2


def test_too_many_partitions_are_refused_however_little_each_says(world, monkeypatch):
    table = world.add_table("many")
    add_partitions(world, table, ["1", "2", "3"])
    monkeypatch.setattr(ports, "MOST_PARTITIONS", 2)
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION
    assert sorted(world.metastore.partitions_named(table, ["dt=1", "dt=3"])) == ["dt=1", "dt=3"]


def test_partitions_with_huge_locations_are_refused(world, monkeypatch):
    """A million of 4,000 characters would be read whole, several times over."""
    table, other = world.add_table("huge"), world.add_table("other")
    deep = "/".join([table.location, *["d" * 200] * 6])
    for value in ("1", "2"):
        assert world.metastore.add_partition(table, partition_of(table, value, location=f"{deep}/dt={value}"))
    add_partitions(world, other, ["1", "2"])
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 1500)
    assert len(world.metastore.partitions(other)) == 2
    assert list(world.metastore.partitions_named(table, ["dt=1"])) == ["dt=1"]
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION


def test_partitions_with_huge_values_are_refused(world, monkeypatch):
    """Each is in the name and by itself, and one character of a rare alphabet takes six on its way."""
    table, other = world.add_table("huge"), world.add_table("other")
    for number in range(5):
        value = "\N{CJK UNIFIED IDEOGRAPH-65E5}" * 60 + str(number)
        assert world.metastore.add_partition(table, partition_of(table, value, location=f"{table.location}/{number}"))
    add_partitions(world, other, [str(number) for number in range(5)])
    assert len(world.metastore.partitions(table)) == 5
    monkeypatch.setattr(ports, "MOST_OF_PARTITIONS", 2000)
    assert len(world.metastore.partitions(other)) == 5
    with pytest.raises(Refused) as refused:
        world.metastore.partitions(table)
    assert refused.value.reason.code is Code.UNREADABLE_DEFINITION


@local_only
@pytest.mark.parametrize(("bound", "most", "said"), [("MOST_TABLES", 1, "are 2, more than 1"), ("MOST_OF_PLACES", 99, "more than 99 ch")])
def test_a_database_with_more_than_there_is_memory_for_is_named(real, monkeypatch, bound, most, said):
    for name in ("events", "clicks"):
        real.add_table(name)
    real.metastore.locations_below([])
    real.metastore._roots = None
    monkeypatch.setattr(ports, bound, most)
    with pytest.raises(MetastoreUnavailable, match=f"the database {real.database} .*{said}"):
        real.metastore.locations_below([])


def test_of_databases_with_more_together_than_there_is_memory_for_the_largest_is_named(real, monkeypatch):
    """Not the last one, which may be anybody's."""
    others = sum(len(name) + len(place) for name, place in real.metastore.table_locations().items())
    real.add_database()
    for name in ("events", "clicks"):
        # Other tests have tables in the same metastore.
        real.add_table(name, location="/".join([real.root, name, *["x" * 200] * 10]))
    real.metastore._roots = None
    monkeypatch.setattr(ports, "MOST_OF_ALL_PLACES", others + 3000)
    with pytest.raises(MetastoreUnavailable, match=f"characters, most of them in the database {real.database};"):
        real.metastore.locations_below([])


class HugeTables(socketserver.BaseRequestHandler):
    """A metastore's server, in Thrift's binary protocol. Each of its tables has a text of two gigabytes, which follows in part."""

    NAMES = b"\x0f\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x02ok\x00"
    TABLE = b"\x0c\x00\x00\x0b\x00\x01\x7f\x00\x00\x00" + b"y" * 1000

    def handle(self) -> None:
        while True:
            asked = self.request.recv(65536)
            if not asked:
                return
            end = 8 + int.from_bytes(asked[4:8], "big")
            header = b"\x80\x01\x00\x02" + asked[4 : end + 4]
            one = {b"get_table": self.TABLE, b"get_table_req": b"\x0c\x00\x00" + self.TABLE}.get(asked[8:end], self.NAMES)
            self.request.sendall(header + one)


@local_only
def test_an_answer_that_takes_all_memory_is_not_read_on_as_the_answer_to_the_next_question(gateway):
    """Whoever may alter a table gives it properties after its definition was looked at; what follows may be about any other table."""
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), HugeTables)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    elsewhere.hadoop_conf.set("hive.metastore.uris", f"thrift://127.0.0.1:{server.server_address[1]}")
    elsewhere.hadoop_conf.set("hive.metastore.client.socket.timeout", "10s")
    try:
        metastore = HiveMetastore(elsewhere)
        with pytest.raises(MetastoreRefused, match="larger than the driver has memory for"):
            metastore.drop_backup_table("sales.__bkp_events", MARKS)
        assert metastore.databases() == ("ok",)
    finally:
        server.shutdown()


# Spark looks for the property `path` of a SerDe in any case.
PATHS = ["".join(letters) for letters in itertools.product("pP", "aA", "tT", "hH")]


@local_only
def test_of_many_long_paths_of_one_table_some_are_kept(real):
    """All commands keep those of all tables, for as long as they run."""
    table = real.add_table("mine")
    for number, key in enumerate(PATHS):
        real.set_serde_path(table, f"/{number:02d}{'/y' * names.MOST_PATH}"[: names.MOST_PATH], key=key)
    kept = real.metastore.table_places()[table.full_name]
    assert len(kept) > 1
    assert sum(map(len, kept)) <= 2 * names.MOST_PATH


# A metastore of one table, with as many partitions as there are values.
MANY_PARTITIONS = """package hivekeeper.tested;

import hivekeeper.MetastoreConnection;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.hive.metastore.IMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.Table;

public class ManyPartitions implements InvocationHandler {
  private List<String> names;

  public void answer(MetastoreConnection connection, String[] values) throws Exception {
    names = new ArrayList<String>();
    for (String value : values) names.add("p=" + value);
    Class[] kinds = {IMetaStoreClient.class};
    Field client = MetastoreConnection.class.getDeclaredField("client");
    client.setAccessible(true);
    client.set(connection, Proxy.newProxyInstance(IMetaStoreClient.class.getClassLoader(), kinds, this));
  }

  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("listPartitionNames")) return names;
    if (method.getName().equals("getTable")) {
      Table table = new Table();
      table.setPartitionKeys(new ArrayList<FieldSchema>(Collections.singletonList(new FieldSchema("p", "string", ""))));
      return table;
    }
    List<Partition> found = new ArrayList<Partition>();
    for (Object name : (List) arguments[2]) {
      Partition partition = new Partition();
      partition.setValues(new ArrayList<String>(Collections.singletonList(((String) name).substring(2))));
      found.add(partition);
    }
    return found;
  }
}
"""


@local_only
def test_partitions_of_one_hash_are_not_compared_with_one_another(gateway):
    """Whoever gives a table a million of them could have each command that reads its partitions take hours, also one about all tables."""
    package = JavaPackage(
        gateway.jvm, "hivekeeper.tested", [JavaSource("ManyPartitions.java", MANY_PARTITIONS)], compiled(gateway.java_gateway).loader
    )
    chosen, seconds = [name.decode() for name in hostile_files.names_of_one_hash(16_000)], []
    for values in ([f"c{number:027d}" for number in range(16_000)], chosen):
        connection = gateway.helper("MetastoreConnection", gateway.hadoop_conf)
        package.find("ManyPartitions").getDeclaredConstructors()[0].newInstance(None).answer(connection, gateway.strings(values))
        reader = gateway.helper("MetastoreReader", connection)
        before = cpu_seconds(gateway)
        found = json.loads(reader.partitions("sales", "events", None, ports.MOST_OF_PARTITIONS, ports.MOST_PARTITIONS))
        seconds.append(cpu_seconds(gateway) - before)
        assert [partition["values"] for partition in found["partitions"]] == [[value] for value in values]
    assert seconds[1] < 3 + 2 * seconds[0]


# ---- tables and databases that fail each request for them


def test_a_table_that_fails_every_request_for_it_fails_no_other_table(real):
    tables = {name: real.add_table(name) for name in ("a", "b", "bad", "c", "d")}
    let_fail(real, lambda _, names: "bad" in list(names))
    found = real.metastore.tables(real.database, list(tables))
    assert {name for name, one in found.items() if one.unreadable} == {"bad"}
    assert found["bad"].unreadable.startswith("the metastore cannot give its definition: ")
    assert found["d"].columns == COLUMNS
    below = real.metastore.locations_below([table.location for table in tables.values()])
    assert [name for names in below.values() for name in names] == [tables[name].full_name for name in ("a", "b", "c", "d")]


@local_only
def test_a_metastore_that_fails_at_every_request_is_not_asked_for_each_table(real):
    asked = []
    let_fail(real, lambda _, names: not asked.append(list(names)))
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.tables(real.database, ["a", "b", "c", "d"])
    assert len(asked) == 2


@local_only
def test_a_database_that_fails_every_request_for_it_fails_no_other(real):
    """Its owner may have given it gigabytes of properties, with which it is read."""
    table, bad = real.add_table("events"), real.add_database()
    let_fail(real, lambda name: name == bad, "getDatabase")
    homes = real.metastore.database_locations()
    assert (homes[real.database], bad in homes) == (real.root, False)
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    assert (real.metastore.table_names(bad), real.metastore.table_names(real.database)) == ((), ("events",))


@local_only
def test_newer_places_are_told_beside_a_database_that_fails_every_request_for_it(real, monkeypatch):
    """It is the only one whose directory is not known, and so the only one that is asked for. A failure would end the work on each table
    that is new, or elsewhere, and have all places be read again for the next one.
    """
    monkeypatch.setattr(metastore_module, "KEEP_READ_AGAIN", 10**6)
    old, bad = real.add_table("events"), real.add_database()
    let_fail(real, lambda name: name == bad, "getDatabase")
    real.metastore.read_places_again("")
    new = real.add_table("new")
    real.metastore.read_newer_places(new)
    assert real.metastore.locations_below([old.location, new.location]) == {table.location: (table.full_name,) for table in (old, new)}
    assert bad not in real.metastore.database_locations()


def test_a_database_whose_tables_cannot_be_told_is_named_and_not_passed_over(real, monkeypatch):
    """A million tables with names of a hundred characters are more than Spark 4's Thrift reads; one of them may lie in any directory."""
    table, crowd, asked = real.add_table("events"), real.add_database(), []
    let_fail(real, lambda name: name == crowd and not asked.append(name), "getAllTables")
    for _ in range(2):
        with pytest.raises(MetastoreUnavailable, match=f"the database {crowd} .*cannot tell their names.*dropped") as raised:
            real.metastore.locations_below([table.location])
        # No caller takes it as a refusal of the table in its hands.
        assert not isinstance(raised.value, MetastoreRefused)
    # Twice for the first time, and not for the second.
    assert asked == [crowd, crowd]
    assert real.metastore.table_names(real.database) == ("events",)
    with pytest.raises(MetastoreRefused, match="cannot tell their names"):
        real.metastore.table_names(crowd)
    real.gateway.spark.sql(f"DROP DATABASE {crowd}")
    real.databases.remove(crowd)
    monkeypatch.setattr("hivekeeper.cluster.metastore.KEEP_REFUSAL_S", 0)
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@local_only
def test_a_metastore_that_answers_nothing_about_a_database_is_asked_again(real):
    table = real.add_table("events")
    asked = []
    let_fail(real, lambda name: not asked.append(name), "getAllTables")
    let_fail(real, lambda *_: True, "getTables")
    for _ in range(2):
        with pytest.raises(Exception, match="too large for this metastore"):
            real.metastore.locations_below([table.location])
    assert len(asked) == 2


@local_only
def test_a_metastore_that_fails_once_at_the_names_of_a_database_keeps_no_table_from_its_turn(real):
    """Each of a thousand tables was refused for a minute, which is all that they take then."""
    table, fails = real.add_table("events"), [True]
    let_fail(real, lambda _: bool(fails and fails.pop()), "getAllTables")
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)
    fails.append(True)
    assert real.metastore.table_names(real.database) == ("events",)


@local_only
def test_what_a_metastore_refuses_while_it_refuses_everything_is_not_kept(real, monkeypatch):
    table, is_down, ask, passed = real.add_table("events"), [True], metastore_module._ask, []

    def answer(method, *arguments):
        # It has qualified the places, and named the databases.
        if is_down and len(passed) == 2:
            raise MetastoreRefused("the database behind it does not answer")
        passed.append(method)
        return ask(method, *arguments)

    monkeypatch.setattr(metastore_module, "_ask", answer)
    with pytest.raises(MetastoreUnavailable, match="is not known"):
        real.metastore.locations_below([table.location])
    is_down.clear()
    assert real.metastore.locations_below([table.location])[table.location] == (table.full_name,)


@local_only
def test_a_metastore_that_fails_for_every_database_is_an_error(real):
    let_fail(real, lambda _: True, "getDatabase")
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.database_locations()


@local_only
def test_a_table_that_fails_each_request_for_it_fails_no_other_whatever_its_name_is(real):
    """As with gigabytes of properties. Nobody can foresee by which name the metastore is asked whether it answers at all."""
    victim, mine = real.add_table("events"), real.add_table("hivekeeper_no_table")
    let_fail(real, lambda _, wanted: mine.name in list(wanted))
    assert real.metastore.locations_below([victim.location])[victim.location] == (victim.full_name,)
    assert real.metastore.tables(real.database, [victim.name, mine.name])[victim.name].columns == COLUMNS


@local_only
def test_a_database_that_is_closed_while_those_behind_it_are_asked_for_fails_no_other(real):
    victim, bad, asked = real.add_table("events"), real.add_database(), []
    real.metastore.make_database("a_tenants", "")

    def fails(name):
        asked.append(name)
        return name == bad or asked.count("a_tenants") > 1

    let_fail(real, fails, "getDatabase")
    homes = real.metastore.database_locations()
    assert (homes[real.database], bad in homes) == (real.root, False)
    assert real.metastore.locations_below([victim.location])[victim.location] == (victim.full_name,)


@local_only
@pytest.mark.parametrize("uptime_s", [100.0, 100_000.0], ids=["machine-just-started", "long-running"])
def test_directories_of_databases_that_could_not_be_read_once_are_read_again(real, monkeypatch, uptime_s):
    """Else a table in the directory of another database, which is refused, is compacted: that nothing is known of databases is no error."""
    failing = [True]
    tenants = replace(real.add_table("events"), database="tenants")
    monkeypatch.setattr(metastore_module, "uptime_s", lambda: uptime_s)
    let_fail(real, lambda _: failing[0], "getDatabase")
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.database_locations()
    failing[0] = False
    refused = own_place.refuse_home(tenants, own_place.Homes(real.metastore.database_locations()))
    assert refused is not None
    assert refused.code is Code.SHARED_DIRECTORY
