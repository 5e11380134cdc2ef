"""How a location is spelled, and on whose server it is: on the fake and on Hadoop."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.errors import Refused
from hivekeeper.reasons import Code
from hivekeeper.steps.observe import qualify_table
from support.builders import a_table
from support.file_worlds import configured
from support.java import FEW_ROWS


@pytest.mark.parametrize("tail", ["/a/b", "/a/b/", "//a//b", "/a///b//"])
def test_a_location_has_one_spelling_whatever_its_slashes(files_world, tail):
    assert files_world.files.qualify(files_world.root + tail) == files_world.root + "/a/b"


@pytest.mark.parametrize("path", ["a/../b", "./b", "a/.././b", "a/c/../../b"])
def test_dots_are_resolved_before_anything_is_looked_for(files_world, path):
    files_world.writer.add(files_world.path("b"), "x")
    asked = f"{files_world.root}/{path}"
    assert files_world.files.qualify(asked) == files_world.path("b")
    assert files_world.files.stat(asked).length == 1


def test_a_location_without_scheme_gets_the_default_one(files_world):
    assert files_world.files.qualify("/a b/x=%20").endswith("/a b/x=%20")
    assert files_world.files.qualify("/a b/x=%20").partition(":")[0] in ("file", "hdfs")


def test_a_qualified_location_stays_as_it_is(files_world):
    once = files_world.files.qualify(files_world.path("a b", "k=%2F"))
    assert files_world.files.qualify(once) == once == files_world.path("a b", "k=%2F")


FAILOVER = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def failover(*nameservices):
    """What a client needs to take these names for nameservices."""
    return {f"dfs.client.failover.proxy.provider.{name}": FAILOVER for name in nameservices}


def test_a_namenode_that_is_named_by_its_address_is_spelled_as_its_nameservice(gateway):
    elsewhere = Gateway(gateway.driver)
    conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    for key, value in {
        "fs.defaultFS": "hdfs://home",
        "dfs.nameservices": "home,away",
        "dfs.ha.namenodes.home": "nn1,nn2",
        "dfs.namenode.rpc-address.home.nn1": "127.0.0.1:8020",
        "dfs.namenode.rpc-address.home.nn2": "localhost:9820",
        "dfs.namenode.rpc-address.away": "127.0.0.2:8020",
        **failover("home", "away"),
        "dfs.namenode.http-address.home.nn1": "Web.Example:50070",
        "dfs.namenode.http-address.home.nn2": "0.0.0.0:9999",
        "dfs.namenode.https-address.home.nn1": "web.example:50470",
    }.items():
        conf.set(key, value)
    elsewhere.hadoop_conf = conf
    files = HadoopFiles(elsewhere)
    for spelled in (
        "/w/t",
        "hdfs:///w/t",
        "hdfs://home/w/t",
        "hdfs://127.0.0.1/w/t",
        "hdfs://127.0.0.1:8020/w//t/",
        "HDFS://LocalHost:9820/w/t",
        "hdfs://localhost:8020/w/t",
        "hdfs://localhost.:8020/w/t",
        "hdfs://somebody@home/w/t",
        "hdfs://somebody:else@127.0.0.1:8020/w/t",
        # As a client takes the name of a nameservice, too.
        "hdfs://home:8020/w/t",
        "hdfs://HOME:08020/w/t",
        "hdfs://home:/w/t",
        "hdfs://127.0.0.1:/w/t",
        # The same over HTTP, and without decryption.
        "webhdfs://home/w/t",
        "webhdfs://home:14000/w/t",
        "webhdfs://127.0.0.1:9999/w/t",
        "webhdfs://web.example:50070/w/t",
        "webhdfs://localhost:9999/w/t",
        "swebhdfs://Web.Example:050470/w/t",
        "swebhdfs://localhost/w/t",
        "/.reserved/raw/w/t",
        "hdfs://home:8020/.reserved//raw/w/t/",
        "webhdfs://home/.reserved/raw/w/t",
    ):
        assert files.qualify(spelled) == "hdfs://home/w/t"
        conf.set("fs.defaultFS", "hdfs://home:8020")
        assert HadoopFiles(elsewhere).qualify(spelled) == "hdfs://home/w/t"
        conf.set("fs.defaultFS", "hdfs://home")
    for other in (
        "hdfs://127.0.0.1:8021/w/t",
        "webhdfs://web.example:50471/w/t",
        "swebhdfs://else:50470/w/t",
        "hdfs://other/.reserved/rawer/t",
    ):
        assert files.qualify(other) == other
    assert files.qualify("/.reserved/raw") == "hdfs://home/"
    assert files.qualify("webhdfs://else/.reserved/raw/t") == "webhdfs://else/t"
    assert files.qualify("hdfs://127.0.0.2/.reserved/raw/t") == "hdfs://away/t"


@pytest.mark.parametrize(("port", "secure"), [(9870, ""), (9871, "s")])
def test_webhdfs_of_a_namenode_without_a_nameservice_is_its_hdfs(gateway, port, secure):
    # The cluster of a test has ports of its own.
    unset = {"dfs.namenode.http-address": "", "dfs.namenode.https-address": ""}
    files = configured(gateway, **{"fs.defaultFS": "hdfs://localhost:8020", **unset})
    for spelled in (f"{secure}webhdfs://localhost:{port}/w", f"{secure}WEBHDFS://somebody@LOCALHOST/w", f"{secure}webhdfs://localhost/w"):
        assert files.qualify(spelled) == "hdfs://localhost:8020/w"
    assert files.is_foreign(files.qualify(f"{secure}webhdfs://localhost:14000/w"))


HOME = {
    "fs.defaultFS": "hdfs://home",
    "dfs.nameservices": "home",
    "dfs.ha.namenodes.home": "nn1,nn2",
    "dfs.namenode.rpc-address.home.nn1": "127.0.0.1:8020",
    "dfs.namenode.rpc-address.home.nn2": "127.0.0.2:8020",
    **failover("home"),
}
# The cluster of a test has addresses of its own.
UNSET = {f"dfs.namenode.{kind}-address": "" for kind in ("rpc", "servicerpc", "http", "https")}


def spelled_alike(files, spelling, *servers):
    for server in servers:
        assert files.qualify(f"{server}/w") == f"{spelling}/w", server
    assert not files.is_foreign(spelling)


@pytest.mark.parametrize(
    ("conf", "spelling", "other"),
    [
        (
            {
                **HOME,
                "dfs.namenode.servicerpc-address.home.nn1": "127.0.0.1:8022",
                "dfs.namenode.servicerpc-address.home.nn2": "127.0.0.2:8022",
                "dfs.namenode.lifeline.rpc-address.home.nn1": "127.0.0.1:8050",
            },
            "hdfs://home",
            "hdfs://127.0.0.1:8050",
        ),
        (
            {"fs.defaultFS": "hdfs://127.0.0.1:8020", "dfs.namenode.servicerpc-address": "127.0.0.1:8022"},
            "hdfs://127.0.0.1:8020",
            "hdfs://127.0.0.2:8022",
        ),
        (
            {**HOME, "dfs.namenode.rpc-address": "127.0.0.1:8020", "dfs.namenode.servicerpc-address": "127.0.0.1:8022"},
            "hdfs://home",
            "hdfs://127.0.0.3:8022",
        ),
        (
            {
                "fs.defaultFS": "hdfs://127.0.0.9",
                "dfs.nameservices": "one",
                "dfs.namenode.rpc-address.one": "127.0.0.1:8020",
                "dfs.namenode.servicerpc-address.one": "127.0.0.1:8022",
            },
            "hdfs://127.0.0.1:8020",
            "hdfs://127.0.0.9:8022",
        ),
    ],
    ids=["of-a-nameservice", "of-the-default", "without-a-nameservice", "of-a-name-of-no-client"],
)
def test_the_service_address_of_a_namenode_is_its_hdfs(gateway, conf, spelling, other):
    files = configured(gateway, **{**UNSET, **conf})
    spelled_alike(files, spelling, "hdfs://127.0.0.1:8022", "hdfs://u@LocalHost:08022", "hdfs://127.0.0.1", spelling)
    assert files.qualify(f"{other}/w") == f"{other}/w"
    assert files.is_foreign(f"{other}/w")


@pytest.mark.parametrize("order", ["home,alias", "alias,home"])
@pytest.mark.parametrize("default", ["hdfs://home", "hdfs://alias", "hdfs://127.0.0.9:8020", "file:///"])
@pytest.mark.parametrize("alias", ["127.0.0.1:8020", "localhost:8020"])
def test_two_nameservices_with_one_namenode_are_one_hdfs(gateway, order, default, alias):
    conf = {**HOME, **failover("alias"), "fs.defaultFS": default, "dfs.nameservices": order, "dfs.namenode.rpc-address.alias": alias}
    files = configured(gateway, **{**UNSET, **conf})
    spelling = default if default.endswith(("home", "alias")) else f"hdfs://{order.partition(',')[0]}"
    spelled_alike(files, spelling, "hdfs://home", "hdfs://alias", "hdfs://ALIAS:8020", "hdfs://127.0.0.2", "hdfs://localhost")
    spelled_alike(files, spelling, "webhdfs://home", "swebhdfs://alias", "webhdfs://127.0.0.1:9870", "webhdfs://127.0.0.2")


@pytest.mark.parametrize("default", ["hdfs://127.0.0.1:8020", "hdfs://LocalHost", "hdfs://127.0.0.2:8020"])
def test_a_default_file_system_by_address_is_its_nameservice(gateway, default):
    files = configured(gateway, **{**UNSET, **HOME, "fs.defaultFS": default})
    spelled_alike(files, default, default, "hdfs://home", "hdfs://home:8020", "hdfs://127.0.0.1", "hdfs://127.0.0.2:8020", "webhdfs://home")
    spelled_alike(files, default, "webhdfs://127.0.0.1:9870", "webhdfs://localhost", "swebhdfs://127.0.0.2")
    assert files.qualify("/w") == f"{default}/w"


def test_a_nameservice_that_no_client_knows_by_its_name_is_spelled_by_an_address(gateway):
    """Its name is a host's for a client of this configuration (DFSUtilClient.getNNAddress), but one with another means the nameservice."""
    conf = {**HOME, "dfs.nameservices": "home,no-such-host.invalid,localhost", "dfs.internal.nameservices": "home,inner"}
    conf.update(failover("inner"))
    conf["dfs.namenode.rpc-address.no-such-host.invalid"] = "127.0.0.3:8020"
    conf["dfs.namenode.rpc-address.inner"] = "127.0.0.4:8020"
    # There is such a host, but it is no NameNode of the nameservice.
    conf["dfs.namenode.rpc-address.localhost"] = "127.0.0.5:8020"
    files = configured(gateway, **{**UNSET, **conf})
    spelled_alike(files, "hdfs://127.0.0.3:8020", "hdfs://127.0.0.3", "hdfs://no-such-host.invalid", "hdfs://No-Such-Host.invalid:8020")
    spelled_alike(files, "hdfs://127.0.0.3:8020", "webhdfs://127.0.0.3", "webhdfs://no-such-host.invalid:14000")
    spelled_alike(files, "hdfs://127.0.0.4:8020", "hdfs://127.0.0.4", "hdfs://inner")
    spelled_alike(files, "hdfs://127.0.0.5:8020", "hdfs://127.0.0.5")
    spelled_alike(files, "hdfs://home", "hdfs://localhost")
    assert files.is_foreign(files.qualify("hdfs://no-such-host.invalid:8021/w"))


TWO_ADDRESSES = """
import json, sys
from types import SimpleNamespace
from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway

gateway = Gateway(Driver({"spark.master": "local[1]", "spark.driver.extraJavaOptions": sys.argv[1]}, "ERROR"))
for key, value in json.loads(sys.argv[2]).items():
    gateway.hadoop_conf.set(key, value)
gateway.driver = SimpleNamespace(conf={})
files = HadoopFiles(gateway)
print(json.dumps([files.qualify(f"hdfs://{host}:8020/w") for host in json.loads(sys.argv[3])]))
"""


@pytest.mark.jvm
def test_a_host_with_two_addresses_is_at_each_of_them(tmp_path):
    hosts = [("two", 1), ("two", 2), ("other", 2), ("other", 3), ("third", 4), ("third", 5), ("alias", 5), ("alias", 6), ("else", 7)]
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"127.0.0.{last} {name}\n" for name, last in hosts))
    conf = {**HOME, **failover("far", "near"), "dfs.nameservices": "home,far,near", "dfs.namenode.rpc-address.home.nn1": "two:8020"}
    conf.update({"dfs.namenode.rpc-address.home.nn2": "127.0.0.9:8020"})
    conf.update({"dfs.namenode.rpc-address.far": "third:8020", "dfs.namenode.rpc-address.near": "alias:8020"})
    asked = ["127.0.0.1", "127.0.0.2", "other", "127.0.0.4", "alias", "127.0.0.6", "near", "else"]
    options = f"{FEW_ROWS} -Djdk.net.hosts.file={tmp_path}/hosts"
    command = [sys.executable, "-c", TWO_ADDRESSES, options, json.dumps({**UNSET, **conf}), json.dumps(asked)]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("HADOOP_CONF_DIR", None)
    answer = subprocess.run(command, check=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, timeout=600).stdout
    spelled = [names.server_of(place) for place in json.loads(answer.splitlines()[-1])]
    assert spelled == ["hdfs://home"] * 3 + ["hdfs://far"] * 4 + ["hdfs://else:8020"]


@pytest.fixture
def silent_port():
    """The port of a server that accepts connections and never says anything; nothing may connect."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def soon(act):
    """The result of a call that must not wait for a server; what still waits ends with the process."""
    found = []
    thread = threading.Thread(target=lambda: found.append(act()), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it waits for a server"
    return found[0]


FOREIGN = [
    "ftp://127.0.0.1:{0}/x",
    "hdfs://127.0.0.1:{0}/x",
    "webhdfs://127.0.0.1:{0}/x",
    "har://hdfs-127.0.0.1:{0}/x.har/y",
    "viewfs://v/x",
]


@pytest.mark.parametrize("location", FOREIGN)
def test_a_server_that_nobody_configured_is_known_without_a_call(files_world, silent_port, location):
    location = location.format(silent_port)
    assert soon(lambda: files_world.files.qualify(f"{location}//a/./b/")) == f"{location}/a/b"
    assert soon(lambda: files_world.files.is_foreign(f"{location}/a/b"))
    with pytest.raises(Refused) as refused:
        qualify_table(files_world.files, a_table(location=location))
    assert refused.value.reason.code is Code.FOREIGN_SERVER


def test_a_location_is_spelled_in_a_time_that_grows_with_its_length_only(files_world):
    """A metastore takes thousands of characters for each partition's."""
    assert soon(lambda: files_world.files.qualify(f"hdfs://h:{'0' * 200_000}a/x")).endswith("0a/x")


@pytest.mark.parametrize("text", ["x:y", "x:.hivekeeper/y", "hdfs://[/x", "//w", "//w:t", "//[x", "//[::1]:8020w/t", "file:"])
def test_a_text_that_is_no_location_is_nowhere_and_no_error(files_world, text):
    """Hive's server stores whatever alter_partitions gives a partition for its location."""
    found = files_world.files.qualify(text)
    assert not found.startswith((files_world.root, files_world.files.qualify("/")))
    assert files_world.files.is_foreign(found)


def test_the_clusters_own_file_system_is_not_foreign(files_world):
    assert not files_world.files.is_foreign(files_world.root)
    assert not files_world.files.is_foreign(files_world.path("a", "b"))
    assert not files_world.files.is_foreign(files_world.files.qualify("/"))


def own_name(gateway):
    """A name of this machine that is not localhost, and its address: Spark does not start without."""
    own = gateway.jvm.java.net.InetAddress.getLocalHost()
    return own.getHostName().lower(), own.getHostAddress()


def test_names_of_servers_that_are_found_take_of_the_time_for_all_searches_too(gateway):
    """Whoever has a name server of their own can have each name found after seconds. Before all tests that look in vain."""
    name, address = own_name(gateway)
    files = configured(gateway, **{"fs.defaultFS": f"hdfs://{address}:8020", "hivekeeper.host-search.most-ms": "0"})
    files.qualify("hdfs://localhost:8020/w")
    assert files.qualify(f"hdfs://{name}:8020/w") == f"hdfs://{name}:8020/w"


def test_servers_that_a_site_configures_are_not_foreign(gateway):
    conf = {
        "fs.defaultFS": "hdfs://home",
        "dfs.nameservices": "home,away",
        "dfs.internal.nameservices": "home,inner",
        "dfs.ha.namenodes.home": "nn1,nn2",
        "dfs.namenode.rpc-address.home.nn1": "127.0.0.1:8020",
        "dfs.namenode.rpc-address.home.nn2": "127.0.0.2:9820",
        "dfs.namenode.rpc-address.away": "127.0.0.3:8020",
        "dfs.client.failover.proxy.provider.home": "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
        "fs.viewfs.mounttable.ours.link./w": "hdfs://home/w",
        "fs.viewfs.mounttable.ours.link./x": "hdfs://mounted:9820/a b",
        "fs.viewfs.mounttable.ours.linkNfly../y": "hdfs://twice1/y, hdfs://twice2/y",
    }
    files = configured(gateway, named="hdfs://third:8020, hdfs://fourth,s3a://ours", **conf)
    for known in (
        *(
            "/w",
            "hdfs:///w",
            "hdfs://home/w",
            "hdfs://HOME/w",
            "hdfs://127.0.0.2:9820/w",
            "hdfs://away/w",
            "hdfs://AWAY/w",
            "hdfs://inner/w",
        ),
        *(
            "hdfs://127.0.0.3/w",
            "hdfs://third/w",
            "hdfs://u@third:8020/w",
            "hdfs://FOURTH:8020/w",
            "s3a://ours/w",
            "viewfs://ours/w",
            "hdfs://mounted:9820/w",
            "hdfs://twice2:8020/w",
        ),
    ):
        assert not files.is_foreign(files.qualify(known)), known
    for unknown in (
        *(
            "hdfs://127.0.0.2:8020/w",
            "hdfs://home:8021/w",
            "hdfs://third:8021/w",
            "hdfs://home.evil/w",
            "hdfs://home@evil/w",
            "hdfs://mounted/w",
            "hdfs://evil",
        ),
        *(
            "s3a://theirs/w",
            "viewfs://theirs/w",
            "viewfs:/w",
            "viewfs://our/w",
            "file://home/w",
            "hftp://home/w",
            "webhdfs://theirs/w",
            "file:/w",
        ),
        *("ftp://home/w", "har:/w/x.har", "har://hdfs-home/w/x.har", "swift://a.b/w", "http://home/w", "abc:/w", "alluxio://zk@home/w"),
    ):
        assert files.is_foreign(files.qualify(unknown)), unknown


@pytest.mark.parametrize(
    ("most_ms", "is_found"), [("0", False), ("60000", True), ("0", True)], ids=["spent", "time-left", "spent-but-found-before"]
)
def test_names_of_servers_are_looked_for_until_that_was_in_vain_for_too_long(gateway, most_ms, is_found):
    """Each table may name another one, and a name server that keeps silent costs seconds for each."""
    name, address = own_name(gateway)
    files = configured(gateway, **{"fs.defaultFS": f"hdfs://{address}:8020", "hivekeeper.host-search.most-ms": most_ms})
    assert files.qualify("hdfs://no-such-server.invalid:8020/w") == "hdfs://no-such-server.invalid:8020/w"
    assert files.qualify(f"hdfs://{name}:8020/w") == f"hdfs://{address if is_found else name}:8020/w"


def test_a_namenode_without_a_nameservice_is_not_foreign(gateway):
    files = configured(gateway, **{"fs.defaultFS": "hdfs://127.0.0.1:8020", "dfs.namenode.rpc-address": "127.0.0.2:8020"})
    for known in ("/w", "hdfs://127.0.0.1/w", "HDFS://localhost:8020/w", "hdfs://127.0.0.2/w"):
        assert not files.is_foreign(files.qualify(known)), known
    assert files.is_foreign(files.qualify("hdfs://127.0.0.1:8021/w"))


def test_nothing_is_locked_or_made_on_this_machine_for_a_table_of_a_cluster(gateway, tmp_path):
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    elsewhere.hadoop_conf.set("fs.defaultFS", "hdfs://127.0.0.1:9")
    files, lock = HadoopFiles(elsewhere), f"file:{tmp_path}/.hivekeeper-t/_lock"
    for ask in (lambda: files.hold(lock, "run one"), lambda: files.require_lockable(lock)):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.reason.code is Code.LOCAL_TABLE
    assert list(tmp_path.iterdir()) == []
