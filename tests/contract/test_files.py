"""What `ports.Files` promises: the same cases for the fake and for Hadoop, including each row of "HDFS facts measured"."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Callable
from urllib.parse import urlsplit

import pytest

from hivekeeper import names
from hivekeeper.cluster.files import HadoopFiles
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.errors import Refused
from hivekeeper.model import FileRights, Guard, Snapshot, StageBatch, StageOutput, StageUnit, Ties
from hivekeeper.ports import (
    FilesError,
    FilesUnavailable,
    ForeignTrash,
    LockHeld,
    NoPermission,
    NoSpace,
    SourceMissing,
    SourceReplaced,
    TargetExists,
)
from hivekeeper.reasons import Code
from hivekeeper.steps.observe import qualify_table
from support.builders import a_table
from support.fakes.files import TRASH, FakeFiles, Killed
from support.java import FEW_ROWS
from support.listings import tree
from support.storage import local_only

NASTY = ["a b", "p%20q", "it's", 'q"t', "[x]*?{}", "k=v", "ü-日本", ".hidden", "_hidden", "#h", "a+b&c;d,e", "~!$()@"]


def names_in(snapshot):
    return [entry.name for entry in snapshot.entries]


def look(world, path):
    return world.files.look([path])[path]


def text_of(files, path):
    return "".join(files.read_pieces(files.stat(path)))


def wait_a_tick(world):
    """Wait long enough for the next change to get a different time."""
    if world.kind != "fake":
        time.sleep(2 * world.files.clock_grain_ms / 1000)


# ---- spelling


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


def configured(gateway, named="", **conf):
    """The files of another configuration; `named` are the file systems that Spark may use besides."""
    elsewhere = Gateway(gateway.driver)
    elsewhere.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    for key, value in conf.items():
        elsewhere.hadoop_conf.set(key, value)
    elsewhere.driver = SimpleNamespace(conf={"spark.kerberos.access.hadoopFileSystems": named})
    return HadoopFiles(elsewhere)


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


# ---- looking


def test_a_missing_directory_is_reported_not_raised(files_world):
    missing = files_world.path("missing")
    assert files_world.files.look([missing]) == {missing: Snapshot(exists=False)}
    assert files_world.files.stat(missing) is None


def test_a_file_is_not_taken_for_a_directory(files_world):
    files_world.writer.add(files_world.path("f"), "x")
    assert look(files_world, files_world.path("f")) == Snapshot(exists=False)


def test_an_empty_directory_exists_and_has_no_entries(files_world):
    files_world.files.make_directory(files_world.path("d"))
    seen = look(files_world, files_world.path("d"))
    assert (seen.exists, seen.entries) == (True, ())
    assert seen.file_id != 0


def test_nasty_and_hidden_names_are_listed_and_lead_back_to_their_files(files_world):
    for name in NASTY:
        files_world.writer.add(files_world.path("d", name), name)
    seen = look(files_world, files_world.path("d"))
    assert sorted(names_in(seen)) == sorted(NASTY)
    assert [entry.path for entry in seen.entries] == [files_world.path("d", name) for name in names_in(seen)]
    assert {text_of(files_world.files, entry.path) for entry in seen.entries} == set(NASTY)


def test_many_directories_are_looked_at_under_the_names_that_were_asked_for(files_world):
    paths = [files_world.path(f"d{number}") for number in range(40)]
    for number, path in enumerate(paths[:39]):
        files_world.writer.add(f"{path}/f{number}", "x")
    seen = files_world.files.look([path + "/" for path in paths])
    assert [names_in(seen[path + "/"]) for path in paths[:39]] == [[f"f{number}"] for number in range(39)]
    assert not seen[paths[39] + "/"].exists


def test_hidden_names_are_found_wherever_they_sort_among_many_others(files_world):
    """A NameNode returns a limited number of names at a time (dfs.ls.limit), in byte order; a local directory is read whole."""
    share = 10 if files_world.kind == "local" else 1
    hidden = [".hivekeeper", "._", "_", "_temporary", "_x", "-", "-ext-10000", "+tmp"]
    many = [*(f"DT={number}" for number in range(300 // share)), *(f"dt={number}" for number in range(250 // share))]
    many += [f"{first}{number}" for first in ("*", ",", "^", "\u00e9") for number in range(100 // share)]
    others = [*many, "0", "^", "*", ",", "`", "~", "\u00e9", "ZZ"]
    for name in [*hidden, *others]:
        files_world.writer.make_directory(files_world.path("d", name))
    files_world.writer.add(files_world.path("d", ".done"), "x")
    whole = files_world.files.look([files_world.path("d")])[files_world.path("d")]
    places = [files_world.path("d"), files_world.path("absent")]
    directories = files_world.files.look_hidden_directories(places)
    seen = files_world.files.look_hidden(places)
    assert sorted(names_in(seen[files_world.path("d")])) == sorted([*hidden, ".done"])
    assert (seen[files_world.path("d")].file_id, seen[files_world.path("d")].mtime_ms) == (whole.file_id, whole.mtime_ms)
    assert {entry.path for entry in seen[files_world.path("d")].entries} <= {entry.path for entry in whole.entries}
    assert not seen[files_world.path("absent")].exists
    wanted = tuple(entry for entry in seen[places[0]].entries if entry.is_dir)
    assert len(wanted) == len(hidden)
    assert directories == {places[0]: dataclasses.replace(seen[places[0]], entries=wanted), places[1]: Snapshot(exists=False)}


def test_a_listing_ends_at_the_most_entries_that_were_asked_for(files_world):
    """So that a caller who allows fewer than these knows that there are too many."""
    for directory in ("d", "e"):
        files_world.writer.make_directory(files_world.path(directory, "_x"))
        for number in range(20):
            files_world.writer.add(files_world.path(directory, f"_{number}"), "x")
            files_world.writer.make_directory(files_world.path(directory, f"dt={number}"))
    places = [files_world.path("d"), files_world.path("e"), files_world.path("absent")]
    files = files_world.files
    for look, all_of in ((files.look, 82), (files.look_hidden, 42), (files.look_hidden_directories, 2)):
        for most in (0, 1, 30, all_of, all_of + 1):
            seen = look(places, most)
            assert sum(len(one.entries) for one in seen.values()) == min(most, all_of)
            assert [one.exists for one in seen.values()] == [True, True, False]


def test_an_entry_tells_length_time_and_id(files_world):
    before = files_world.files.stat(files_world.root)
    wait_a_tick(files_world)
    files_world.writer.add(files_world.path("d", "f"), "four")
    (entry,) = look(files_world, files_world.path("d")).entries
    assert (entry.length, entry.is_dir, entry.is_open) == (4, False, False)
    assert entry.mtime_ms > before.mtime_ms
    assert entry.block_size > 0
    assert entry.owner
    assert entry.file_id not in (0, before.file_id)
    assert files_world.files.stat(entry.path) == entry


def test_a_file_being_written_is_seen_as_open(files_world):
    files_world.skip_on("local", "a kernel does not tell who has a file open")
    stream = files_world.writer.open(files_world.path("d", "f"), "begun")
    hidden = files_world.writer.open(files_world.path("h", ".f"), "begun")
    look_hidden = lambda: files_world.files.look_hidden([files_world.path("h")])[files_world.path("h")].entries  # noqa: E731
    assert [entry.is_open for entry in look_hidden()] == [True]
    files_world.writer.close(hidden)
    assert [entry.is_open for entry in look_hidden()] == [False]
    assert [entry.is_open for entry in look(files_world, files_world.path("d")).entries] == [True]
    assert files_world.files.stat(files_world.path("d", "f")).is_open
    files_world.writer.close(stream)
    assert [entry.is_open for entry in look(files_world, files_world.path("d")).entries] == [False]
    assert not files_world.files.stat(files_world.path("d", "f")).is_open


# ---- renaming: the facts that the swap stands on


@pytest.mark.parametrize("content", [[], ["x"]], ids=["empty", "full"])
def test_a_rename_onto_a_directory_is_refused_and_does_not_move_into_it(files_world, content):
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.files.make_directory(files_world.path("b"))
    for name in content:
        files_world.writer.add(files_world.path("b", name), "y")
    with pytest.raises(TargetExists):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("b"))
    assert names_in(look(files_world, files_world.path("b"))) == content
    assert names_in(look(files_world, files_world.path("a"))) == ["f"]


@pytest.mark.parametrize(("source", "target"), [("f", "g"), ("f", "d"), ("d", "f"), ("f", "f"), ("d", "d")])
def test_a_rename_onto_anything_that_exists_is_refused(files_world, source, target):
    files_world.writer.add(files_world.path("f"), "f")
    files_world.writer.add(files_world.path("g"), "g")
    files_world.files.make_directory(files_world.path("d"))
    with pytest.raises(TargetExists):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    assert files_world.files.read_texts([files_world.files.stat(files_world.path(name)) for name in "fg"]) == {
        files_world.path("f"): "f",
        files_world.path("g"): "g",
    }


def test_a_rename_without_source_or_without_the_targets_parent_says_so(files_world):
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.writer.add(files_world.path("g"), "x")
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("missing"), files_world.path("b"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("gone", "b"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("a"), files_world.path("g", "b"))
    assert names_in(look(files_world, files_world.path("a"))) == ["f"]


def test_another_programs_plain_rename_moves_into_a_directory_that_exists(files_world):
    files_world.skip_on("local", "a kernel's rename takes the place of an empty directory")
    files_world.writer.add(files_world.path("a", "f"), "x")
    files_world.files.make_directory(files_world.path("b"))
    files_world.writer.rename_into(files_world.path("a"), files_world.path("b"))
    assert names_in(look(files_world, files_world.path("b"))) == ["a"]


def test_a_renamed_directory_keeps_its_id_its_time_and_its_files(files_world):
    files_world.writer.add(files_world.path("live", "f"), "x")
    before = look(files_world, files_world.path("live"))
    wait_a_tick(files_world)
    files_world.files.make_directory(files_world.path("retired"))
    files_world.files.rename_exact(files_world.path("live"), files_world.path("retired", "u"))
    after = look(files_world, files_world.path("retired", "u"))
    assert (after.file_id, after.mtime_ms) == (before.file_id, before.mtime_ms)
    assert [(entry.file_id, entry.mtime_ms, entry.length) for entry in after.entries] == [
        (entry.file_id, entry.mtime_ms, entry.length) for entry in before.entries
    ]
    assert not look(files_world, files_world.path("live")).exists


def test_whatever_happens_in_a_directory_changes_its_time(files_world):
    directory = files_world.path("d")
    files_world.writer.add(directory + "/f", "x")
    times = [look(files_world, directory).mtime_ms]
    for change in (
        lambda: files_world.writer.add(directory + "/g", "x"),
        lambda: files_world.files.rename_exact(directory + "/g", directory + "/h"),
        lambda: files_world.writer.delete(directory + "/h"),
        lambda: files_world.files.make_directory(directory + "/sub"),
    ):
        wait_a_tick(files_world)
        change()
        times.append(look(files_world, directory).mtime_ms)
    assert times == sorted(set(times))


def test_a_change_further_down_leaves_a_directorys_time_alone(files_world):
    files_world.files.make_directory(files_world.path("d", "sub"))
    before = look(files_world, files_world.path("d")).mtime_ms
    wait_a_tick(files_world)
    files_world.writer.add(files_world.path("d", "sub", "f"), "x")
    assert look(files_world, files_world.path("d")).mtime_ms == before


def test_a_file_that_is_being_written_follows_its_directory(files_world):
    stream = files_world.writer.open(files_world.path("live", "f"), "before ")
    files_world.files.rename_exact(files_world.path("live"), files_world.path("retired"))
    files_world.writer.append_open(stream, "after")
    files_world.writer.close(stream)
    assert text_of(files_world.files, files_world.path("retired", "f")) == "before after"
    assert not look(files_world, files_world.path("live")).exists


def test_a_rename_out_of_a_directory_that_was_renamed_away_fails(files_world):
    files_world.writer.add(files_world.path("runs", "R", "ready", "f"), "x")
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("runs", "R", "ready"), files_world.path("live"))


def test_a_rename_into_a_directory_that_was_renamed_away_fails(files_world):
    files_world.writer.add(files_world.path("live", "f"), "x")
    files_world.files.make_directory(files_world.path("runs", "R", "retired"))
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.rename_exact(files_world.path("live"), files_world.path("runs", "R", "retired", "u"))
    assert names_in(look(files_world, files_world.path("live"))) == ["f"]


# ---- making and removing


def test_a_directory_may_be_made_twice_but_not_over_a_file(files_world):
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.writer.add(files_world.path("f"), "x")
    with pytest.raises(TargetExists):
        files_world.files.make_directory(files_world.path("f"))
    with pytest.raises(SourceMissing):
        files_world.files.make_directory(files_world.path("f", "below"))


def test_only_an_empty_directory_is_removed_as_empty(files_world):
    files_world.writer.add(files_world.path("full", ".hidden"), "x")
    files_world.files.make_directory(files_world.path("empty"))
    files_world.writer.add(files_world.path("f"), "x")
    assert files_world.files.remove_empty(files_world.path("empty"))
    assert not files_world.files.remove_empty(files_world.path("full"))
    assert not files_world.files.remove_empty(files_world.path("missing"))
    assert not files_world.files.remove_empty(files_world.path("f"))
    assert names_in(look(files_world, files_world.root)) == ["f", "full"]


def test_a_deleted_tree_is_gone_and_may_be_deleted_again(files_world):
    files_world.writer.add(files_world.path("t", "a", "f"), "x")
    files_world.writer.add(files_world.path("t2", "f"), "x")
    files_world.files.delete_tree(files_world.path("t"))
    files_world.files.delete_tree(files_world.path("t"))
    assert names_in(look(files_world, files_world.root)) == ["t2"]


def test_a_file_is_deleted_and_may_be_deleted_again_but_not_a_directory_with_files_at_its_path(files_world):
    files_world.writer.add(files_world.path("f"), "x")
    files_world.writer.add(files_world.path("t", "f"), "x")
    files_world.files.delete_file(files_world.path("f"))
    files_world.files.delete_file(files_world.path("f"))
    with pytest.raises(FilesUnavailable):
        files_world.files.delete_file(files_world.path("t"))
    assert names_in(look(files_world, files_world.root)) == ["t"]
    assert names_in(look(files_world, files_world.path("t"))) == ["f"]


@pytest.mark.parametrize("is_copied", [True, False], ids=["copied", "sorted"])
def test_in_a_directory_whose_lock_is_held_jobs_write_a_stage_where_that_directory_is_by_now(request, files_world, is_copied):
    """At their ends they delete what their attempts left, as trees; with `sort_columns` it is Spark that does."""
    files_world.skip_on("fake", "it has no jobs")
    files_world.skip_on("local", "paths only")
    from hivekeeper.cluster.rows import SparkRows

    files, writer, top, source = files_world.files, files_world.writer, files_world.path("top"), files_world.path("in")
    request.getfixturevalue("spark").range(3).coalesce(1).write.parquet(source)
    rows = SparkRows(request.getfixturevalue("gateway"), files.exact)
    listed = tuple(entry for entry in look(files_world, source).entries if entry.name.endswith(".parquet"))
    form = rows.footers("parquet", {"in": listed})["in"].groups[0].form
    unit = StageUnit(1, (StageOutput(listed, form, "snappy"),))
    batch = StageBatch("parquet", f"{top}/stage/b00001", (unit,), "20260101t020304z-1f0c", () if is_copied else ("id",), is_copied)
    lock, directory = files.hold(f"{top}/_lock", "us"), "__hivekeeper_unit=1"
    files.make_directory(batch.target)
    for below in (["_attempts"], ["_temporary", "0"], [directory, "_temporary", "0"]):
        writer.add(files_world.path("other", "stage", "b00001", *below, "theirs"), "x")
    before = texts_below(files_world, files_world.path("other"))
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    assert rows.write_stage(batch)[1].failed == ""
    assert rows.read_stage(batch)[1].digest.rows == 3
    lock.release()
    assert texts_below(files_world, top) == before
    assert names_in(look(files_world, files_world.path("aside", "stage", "b00001"))) == [directory]
    assert len(names_in(look(files_world, files_world.path("aside", "stage", "b00001", directory)))) == 1


def test_in_a_directory_whose_lock_is_held_rights_and_trees_change_where_that_directory_is_by_now(files_world):
    """Whoever may write to the directory around it can put another one at its path, with any directory at the next path below."""
    files_world.skip_on("local", "paths only")
    files, writer, top = files_world.files, files_world.writer, files_world.path("top")
    lock = files.hold(f"{top}/_lock", "us")
    for place in (f"{top}/runs/a", f"{top}/runs/b", files_world.path("other", "runs", "a"), files_world.path("other", "runs", "b")):
        files.make_directory(place)
        writer.add(f"{place}/f", "x")
    writer.add(files_world.path("other", "runs", "f"), "x")
    files.make_directory(files_world.path("other", "gone"))
    wanted = dataclasses.replace(files.attributes([f"{top}/runs/a"])[f"{top}/runs/a"], mode=0o751, file_mode=0o640)
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    files.dress({f"{top}/runs/a": wanted})
    files.guard({f"{top}/runs": Guard(0o710), f"{top}/runs/b": Guard(0o711, 0o604)})
    files.delete_tree(f"{top}/gone")
    files.delete_file(f"{top}/gone/f")
    files.delete_file(f"{top}/runs/f")
    with pytest.raises(SourceMissing) as missing:
        files.dress({f"{top}/gone": wanted})
    assert ".reserved" not in str(missing.value)
    others = files_world.another_client()
    assert [others.stat(f"{top}/runs{place}").mode for place in ("", "/a", "/a/f", "/b")] == [0o700, 0o700, 0o644, 0o700]
    aside = files_world.path("aside", "runs")
    assert [others.stat(f"{aside}{place}").mode for place in ("", "/a", "/a/f", "/b", "/b/f")] == [0o710, 0o751, 0o640, 0o711, 0o604]
    files.delete_tree(f"{top}/runs/b")
    assert names_in(look(files_world, aside)) == ["a"]
    lock.release()
    assert names_in(look(files_world, f"{top}/runs")) == ["a", "b", "f"]
    files.delete_tree(f"{top}/runs/b")
    assert names_in(look(files_world, f"{top}/runs")) == ["a", "f"]


def test_in_a_directory_whose_lock_is_held_all_is_seen_made_and_renamed_where_that_directory_is_by_now(files_world):
    """A look at another one and an act in this one would take the one's rights or files for the other's."""
    files_world.skip_on("local", "paths only")
    files, writer, top, aside = files_world.files, files_world.writer, files_world.path("top"), files_world.path("aside")
    lock = files.hold(f"{top}/_lock", "us")
    for place in (f"{top}/d", f"{top}/empty", files_world.path("other", "empty"), files_world.path("live")):
        files.make_directory(place)
    files.write_new(f"{top}/d/f", "ours")
    writer.add(files_world.path("other", "d", "theirs"), "x")
    listed, before = look(files_world, f"{top}/d").entries, texts_below(files_world, files_world.path("other"))
    writer.rename_into(top, aside)
    writer.rename_into(files_world.path("other"), top)
    seen = look(files_world, f"{top}/d")
    assert (seen.entries, [entry.path for entry in seen.entries]) == (listed, [f"{top}/d/f"])
    assert names_in(look(files_world, top)) == [names.SEAL, "_lock", "d", "empty"]
    assert names_in(files.look_hidden([top])[top]) == [names.SEAL, "_lock"]
    assert (files.stat(f"{top}/d/f"), files.stat(f"{top}/d/theirs")) == (listed[0], None)
    assert dict(files.read_texts(listed)) == {f"{top}/d/f": "ours"}
    assert ("".join(files.read_pieces(listed[0])), b"".join(files.read_bytes(listed[0]))) == ("ours", b"ours")
    assert files.exposed(top, 2) == ()
    assert list(files.blocks(f"{top}/d")) == ["f"]
    assert files.attributes([f"{top}/d"])[f"{top}/d"].directory_id == seen.file_id
    files.make_directory(f"{top}/new/below")
    files.write_new(f"{top}/new/below/text", "ours, too")
    files.write_new(f"{top}/new/below/long", iter(["x" * 2_000_000, "y"]))
    files.copy_part(listed[0], 0, 2, f"{top}/new/part")
    files.rename_exact(f"{top}/d/f", f"{top}/new/f")
    with pytest.raises(TargetExists) as exists:
        files.rename_exact(f"{top}/new/f", f"{top}/new/part")
    with pytest.raises(SourceMissing) as missing:
        files.rename_exact(f"{top}/d/theirs", f"{top}/new/theirs")
    assert not [error for error in (exists, missing) if ".reserved" in str(error.value)]
    assert files.remove_empty(f"{top}/empty")
    # Not between it and elsewhere: if a table is renamed with both, nothing goes to what comes to its place.
    mark = look(files_world, files_world.path("live"))
    with pytest.raises(SourceMissing):
        files.rename_exact(f"{top}/new", files_world.path("live", "new"))
    with pytest.raises(SourceMissing):
        files.exchange(files_world.path("live"), f"{top}/old", f"{top}/new", mark)
    files.rename_exact(f"{top}/old", files_world.path("live"))
    # The directory itself has its name in another one, where it is not any more.
    assert files.stat(top).file_id != look(files_world, top).file_id
    files.rename_exact(top, files_world.path("theirs"))
    lock.release()
    assert texts_below(files_world, files_world.path("theirs")) == before
    assert names_in(look(files_world, aside)) == [names.SEAL, "_lock", "d", "new"]
    assert sorted(texts_below(files_world, f"{aside}/new").values(), key=len)[:2] == ["ou", "ours"]


def test_below_what_is_pinned_all_is_seen_and_renamed_where_that_directory_is_by_now(files_world):
    """Between a table's live and its control directory: another table at its place gets nothing, and nothing is taken out of that."""
    files_world.skip_on("local", "paths only")
    files, writer, table, moved = files_world.files, files_world.writer, files_world.path("table"), files_world.path("moved")
    live, control = f"{table}/dt=1", f"{table}/.hivekeeper"
    writer.add(f"{live}/old", "old")
    lock = files.hold(f"{control}/_lock", "us")
    for place in ("retired", "ready"):
        files.make_directory(f"{control}/{place}")
    files.write_new(f"{control}/ready/new", "new")
    around, mark = files.id_around(control), look(files_world, live)
    assert around == files.stat(table).file_id
    for place in ("dt=1", ".hivekeeper/ready", ".hivekeeper/retired/late"):
        writer.add(files_world.path("other", place, "theirs"), "x")
    before = texts_below(files_world, files_world.path("other"))
    wait_a_tick(files_world)
    writer.rename_into(table, moved)
    writer.rename_into(files_world.path("other"), table)
    with files.anchored({table: around, files_world.path("elsewhere"): around, live: 0}):
        assert look(files_world, live).entries == mark.entries
        assert files.stat(live).file_id == mark.file_id
        assert files.exchange(live, f"{control}/retired/u", f"{control}/ready", mark) is None
        assert (names_in(look(files_world, live)), names_in(look(files_world, f"{control}/retired"))) == (["new"], ["u"])
        # The nearest counts, for what lies in it, but not for its own name.
        with files.anchored({live: mark.file_id}):
            assert names_in(look(files_world, live)) == ["old"]
            assert files.stat(live).file_id != mark.file_id
            files.rename_exact(f"{live}/old", f"{control}/retired/old")
        with files.anchored({live: files.stat(live).file_id}):
            files.rename_exact(f"{control}/retired/old", f"{live}/old")
        # That of the directory with the lock is its path alone, which shows whether the table is where it was.
        assert files.stat(control).file_id != look(files_world, control).file_id
    assert names_in(look(files_world, live)) == ["theirs"]
    lock.release()
    with files.anchored({table: around}):
        assert names_in(look(files_world, live)) == ["theirs"]
    assert texts_below(files_world, table) == before
    assert (files.id_around(control), names_in(look(files_world, f"{moved}/dt=1"))) == (0, ["new", "old"])


def test_a_file_is_deleted_in_the_directory_that_was_listed_and_not_in_another_at_its_place(files_world):
    listed, other, aside = (files_world.path(name) for name in ("listed", "other", "aside"))
    for place in (listed, other):
        for name in "abc":
            files_world.writer.add(f"{place}/{name}", "x")
    seen = look(files_world, listed)
    known = {entry.name: (seen.file_id, entry.file_id) for entry in seen.entries}
    files_world.files.delete_file(f"{listed}/a", *known["a"])
    files_world.files.delete_file(f"{listed}/a", *known["a"])
    files_world.writer.rename_into(listed, aside)
    files_world.writer.rename_into(other, listed)
    files_world.files.delete_file(f"{listed}/b", *known["b"])
    assert names_in(look(files_world, listed)) == ["a", "b", "c"]
    # Local files are not found by the id of their directory.
    assert names_in(look(files_world, aside)) == (["b", "c"] if files_world.kind == "local" else ["c"])
    # As a router would do with an id of another NameNode.
    files_world.files.delete_file(f"{listed}/c", seen.file_id, seen.file_id)
    assert "c" in names_in(look(files_world, aside))
    files_world.files.delete_tree(aside)
    files_world.files.delete_file(f"{listed}/c", *known["c"])
    assert names_in(look(files_world, listed)) == ["a", "b", "c"]


def test_another_file_of_that_name_in_the_directory_that_was_listed_stays(files_world):
    listed = files_world.path("listed")
    for name in "ab":
        files_world.writer.add(f"{listed}/{name}", "x")
    seen = look(files_world, listed)
    known = {entry.name: entry.file_id for entry in seen.entries}
    files_world.files.delete_file(f"{listed}/b", seen.file_id, known["a"])
    assert names_in(look(files_world, listed)) == ["a", "b"]
    files_world.files.delete_file(f"{listed}/b", seen.file_id, known["b"])
    assert names_in(look(files_world, listed)) == ["a"]


# ---- the trash


@dataclasses.dataclass
class Trash:
    """`client` returns a client with the trash on or off; `current` is the directory that receives what it deletes."""

    client: Callable[[bool], Any]
    current: str

    def place_of(self, path):
        return self.current + urlsplit(path).path


@pytest.fixture
def trash(files_world, request):
    if files_world.kind == "fake":
        yield Trash(lambda enabled: fake_with_trash(files_world, enabled), TRASH)
        return
    gateway = request.getfixturevalue("gateway")
    home = request.getfixturevalue("tmp_path_factory").mktemp("home")
    system, path = gateway.jvm.java.lang.System, gateway.jvm.org.apache.hadoop.fs.Path(files_world.root)
    fs = path.getFileSystem(gateway.hadoop_conf)
    home_before = system.setProperty("user.home", str(home))
    try:
        root = fs.getTrashRoot(path).toString()
        assert files_world.kind == "hdfs" or root == f"file:{home}/.Trash"
        found = Trash(lambda enabled: hadoop_with_trash(gateway, fs.getServerDefaults(path).getTrashInterval(), enabled), f"{root}/Current")
        yield found
        files_world.files.delete_tree(found.place_of(files_world.root))
    finally:
        system.setProperty("user.home", home_before)


def fake_with_trash(world, enabled):
    client = world.another_client()
    client.trash_enabled = enabled
    return client


def hadoop_with_trash(gateway, interval_of_server, enabled):
    if interval_of_server and not enabled:
        pytest.skip("the NameNode has switched the trash on for everybody")
    own = Gateway(gateway.driver)
    own.hadoop_conf = gateway.jvm.org.apache.hadoop.conf.Configuration(gateway.hadoop_conf)
    own.hadoop_conf.set("fs.trash.interval", "60" if enabled else "0")
    return HadoopFiles(own)


def texts_below(world, top):
    """Text by path below a directory."""
    found = [entry for entry in tree(world.files, top) if not entry.is_dir]
    return {path[len(top) + 1 :]: text for path, text in world.files.read_texts(found).items()}


def test_a_directory_is_moved_to_the_trash_whole(files_world, trash):
    directory = files_world.path("t", "u a=%20")
    for name in ("f", ".hidden", "sub/g"):
        files_world.writer.add(f"{directory}/{name}", name)
    assert trash.client(True).move_to_trash(directory)
    assert texts_below(files_world, trash.place_of(directory)) == {name: name for name in ("f", ".hidden", "sub/g")}
    assert files_world.files.stat(directory) is None
    assert look(files_world, files_world.path("t")).exists


def test_the_trash_keeps_every_directory_that_lay_at_one_place(files_world, trash):
    for text in ("first", "second", "third"):
        files_world.writer.add(files_world.path("t", "u", "f"), text)
        assert trash.client(True).move_to_trash(files_world.path("t", "u"))
    kept = texts_below(files_world, trash.place_of(files_world.path("t")))
    assert sorted(kept.values()) == ["first", "second", "third"]
    assert kept["u/f"] == "first"
    assert all(path.startswith("u") and path.endswith("/f") for path in kept)


def test_nothing_is_moved_where_the_trash_is_switched_off(files_world, trash):
    files_world.writer.add(files_world.path("t", "f"), "x")
    before = files_world.files.stat(files_world.path("t"))
    assert not trash.client(False).move_to_trash(files_world.path("t"))
    assert files_world.files.stat(files_world.path("t")) == before
    assert texts_below(files_world, files_world.path("t")) == {"f": "x"}
    assert files_world.files.stat(trash.place_of(files_world.path("t"))) is None


@pytest.mark.parametrize("enabled", [True, False])
def test_a_missing_directory_cannot_be_moved_to_the_trash(files_world, trash, enabled):
    with pytest.raises(SourceMissing):
        trash.client(enabled).move_to_trash(files_world.path("missing"))


def test_what_goes_to_the_trash_is_what_lies_in_the_directory_whose_lock_is_held(files_world, trash):
    files_world.skip_on("local", "paths only")
    client, writer, top = trash.client(True), files_world.writer, files_world.path("top")
    lock = client.hold(f"{top}/_lock", "us")
    for text, place in (("ours", f"{top}/runs/u"), ("theirs", files_world.path("other", "runs", "u"))):
        files_world.files.make_directory(place)
        writer.add(f"{place}/f", text)
    writer.rename_into(top, files_world.path("aside"))
    writer.rename_into(files_world.path("other"), top)
    assert client.move_to_trash(f"{top}/runs/u")
    assert texts_below(files_world, f"{top}/runs") == {"u/f": "theirs"}
    assert texts_below(files_world, trash.place_of(f"{top}/runs")) == {"u/f": "ours"}
    with pytest.raises(SourceMissing) as missing:
        client.move_to_trash(f"{top}/runs/u")
    assert ".reserved" not in str(missing.value)
    lock.release()
    assert client.move_to_trash(f"{top}/runs/u")
    assert sorted(texts_below(files_world, trash.place_of(f"{top}/runs")).values()) == ["ours", "theirs"]


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
@pytest.mark.parametrize("depth", [0, 1, -1])
def test_nothing_goes_to_a_trash_that_others_may_write_to(files_world, trash, depth, mode, locked):
    client, writer, top = trash.client(True), files_world.writer, files_world.path("top")
    lock = client.hold(f"{top}/_lock", "us") if locked else None
    for name in ("first", "second"):
        writer.add(f"{top}/runs/{name}/f", name)
    assert client.move_to_trash(f"{top}/runs/first")
    # The trash itself; in it that of today; what is around the first one there.
    root = names.parent(trash.current)
    opened = {0: root, 1: trash.current, -1: trash.place_of(f"{top}/runs")}[depth]
    before = client.stat(opened).mode
    client.guard({opened: Guard(mode)})
    try:
        with pytest.raises(ForeignTrash) as refused:
            client.move_to_trash(f"{top}/runs/second")
        assert opened in str(refused.value)
        assert ".reserved" not in str(refused.value)
        assert texts_below(files_world, f"{top}/runs") == {"second/f": "second"}
    finally:
        client.guard({opened: Guard(before)})
    assert client.move_to_trash(f"{top}/runs/second")
    assert texts_below(files_world, trash.place_of(f"{top}/runs")) == {"first/f": "first", "second/f": "second"}
    if lock:
        lock.release()


@pytest.mark.parametrize(("mode", "is_fixed"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_a_trash_is_used_in_a_home_where_others_may_write_if_they_cannot_exchange_it(files_world, trash, mode, is_fixed):
    """On HDFS it is found by its id, so it does not matter what they can rename."""
    files_world.skip_on("fake", "it looks at no homes")
    client, top, home = trash.client(True), files_world.path("top"), names.parent(names.parent(trash.current))
    lock = client.hold(f"{top}/_lock", "us")
    files_world.writer.add(f"{top}/u/f", "x")
    before = client.stat(home).mode
    client.guard({home: Guard(mode)})
    try:
        if is_fixed or files_world.kind == "hdfs":
            assert client.move_to_trash(f"{top}/u")
        else:
            with pytest.raises(ForeignTrash, match=home):
                client.move_to_trash(f"{top}/u")
            assert texts_below(files_world, f"{top}/u") == {"f": "x"}
            # For what the fixture deletes.
            files_world.files.make_directory(trash.place_of(files_world.root))
    finally:
        client.guard({home: Guard(before)})
    lock.release()


def test_the_directories_of_the_trash_are_for_its_user_alone(files_world, trash):
    writer, directory = files_world.writer, files_world.path("t", "a b=%20", "u")
    writer.add(f"{directory}/f", "x")
    assert trash.client(True).move_to_trash(directory)
    above = [trash.place_of(names.parent(directory))]
    while above[-1] != trash.place_of(files_world.root):
        above.append(names.parent(above[-1]))
    assert {path: files_world.files.stat(path).mode for path in above} == dict.fromkeys(above, 0o700)


def test_a_trash_that_cannot_be_made_is_an_error_and_not_taken_for_one_that_is_off(files_world, trash, request, tmp_path):
    files_world.skip_on("fake", "its trash can always be made")
    files_world.skip_on("hdfs", "its trash can always be made by its user")
    files_world.writer.add(files_world.path("t", "f"), "x")
    system = request.getfixturevalue("gateway").jvm.java.lang.System
    system.setProperty("user.home", f"{tmp_path}/{'longer than a name may be' * 20}")
    with pytest.raises(FilesUnavailable, match="File name too long"):
        trash.client(True).move_to_trash(files_world.path("t"))
    assert texts_below(files_world, files_world.path("t")) == {"f": "x"}


# ---- texts


def test_a_text_is_written_once_and_read_back(files_world):
    text = 'line\n"quoted" ü 日本 \\ \t\n'
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.write_new(files_world.path("a", "b", "t"), text)
    assert text_of(files_world.files, files_world.path("a", "b", "t")) == text
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("a", "b", "t"), "other")
    assert text_of(files_world.files, files_world.path("a", "b", "t")) == text


def test_a_text_of_any_length_is_written_and_read_in_pieces(files_world):
    # Three-byte characters and two-byte line ends, so that some of them cross the edge of a piece.
    lines = [f"{number} 日本\r\n" * 50_000 for number in range(10)]
    files_world.files.write_new(files_world.path("t"), iter(lines))
    assert text_of(files_world.files, files_world.path("t")) == "".join(lines)
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("t"), iter(lines))


@pytest.mark.parametrize("size", [1, 1000, 9_000_000])
def test_bytes_are_written_and_read_as_they_are(files_world, size):
    content = random.Random(size).randbytes(size)
    files_world.files.write_new(files_world.path("t"), content, 0o600)
    listed = files_world.files.stat(files_world.path("t"))
    assert (listed.length, listed.mode) == (size, 0o600)
    assert b"".join(files_world.files.read_bytes(listed)) == content
    with pytest.raises(TargetExists):
        files_world.files.write_new(files_world.path("t"), content)
    files_world.writer.delete(files_world.path("t"))
    with pytest.raises(SourceMissing):
        list(files_world.files.read_bytes(listed))


@pytest.mark.parametrize("text", ["", "a", "日本"])
def test_a_short_text_has_its_pieces_too(files_world, text):
    files_world.files.write_new(files_world.path("t"), iter(text))
    assert text_of(files_world.files, files_world.path("t")) == text


def test_who_holds_a_lock_is_the_end_of_a_file_of_any_length(files_world):
    files_world.writer.add(files_world.path("c", "lock"), "日" * 3_000_000 + "\n")
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    with pytest.raises(LockHeld) as held:
        files_world.another_client().hold(files_world.path("c", "lock"), "run two")
    assert held.value.holder == "run one"
    lock.release()


def test_a_text_is_not_written_below_a_directory_that_was_taken_away(files_world):
    files_world.files.make_directory(files_world.path("runs", "R"))
    files_world.files.rename_exact(files_world.path("runs", "R"), files_world.path("runs", "R.t1"))
    with pytest.raises(SourceMissing):
        files_world.files.write_new(files_world.path("runs", "R", "entry.json"), "late")
    assert names_in(look(files_world, files_world.path("runs"))) == ["R.t1"]


def test_a_missing_text_is_an_error_alone_and_left_out_among_many(files_world):
    for name in "gt":
        files_world.files.write_new(files_world.path(name), "text")
    gone, there = (files_world.files.stat(files_world.path(name)) for name in "gt")
    files_world.writer.delete(files_world.path("g"))
    with pytest.raises(SourceMissing):
        list(files_world.files.read_pieces(gone))
    assert files_world.files.read_texts([gone, there]) == {there.path: "text"}
    assert files_world.files.read_texts([]) == {}


def test_exactly_the_file_that_was_listed_is_read_and_none_that_somebody_put_in_its_place(files_world):
    listed = {}
    for name, text in (("ours", "true"), ("theirs", "forged")):
        files_world.files.make_directory(files_world.path(name))
        files_world.files.write_new(files_world.path(name, "t"), text)
        listed[name] = files_world.files.stat(files_world.path(name, "t"))
    for source, target in (("ours", "aside"), ("theirs", "ours")):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    for read in (files_world.files.read_pieces, lambda file: files_world.files.read_texts([file])):
        with pytest.raises(SourceReplaced):
            list(read(listed["ours"]))
    for source, target in (("ours", "theirs"), ("aside", "ours")):
        files_world.files.rename_exact(files_world.path(source), files_world.path(target))
    assert set(files_world.files.read_texts(list(listed.values())).values()) == {"true", "forged"}


def test_the_owner_of_a_file_that_this_user_has_made_is_this_user(files_world):
    files_world.files.write_new(files_world.path("t"), "text")
    assert files_world.files.stat(files_world.path("t")).owner == files_world.files.user_at(files_world.path("t"))


ROUNDS = 100


@pytest.fixture
def impatient_threads():
    """Threads switch at every opportunity, not every few milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient_threads")
def test_of_two_committers_at_once_exactly_one_gets_the_number(files_world):
    files_world.files.make_directory(files_world.path("log"))
    start = threading.Barrier(2, timeout=600)

    def commit(client, name):
        """The numbers that this committer got."""
        won = []
        for number in range(ROUNDS):
            client.write_new(files_world.path("log", f".{number}.{name}"), f"{name} {number}")
            start.wait()
            try:
                client.rename_exact(files_world.path("log", f".{number}.{name}"), files_world.path("log", str(number)))
                won.append(number)
            except TargetExists:
                pass
        return won

    with ThreadPoolExecutor(2) as pool:
        won = dict(zip("ab", pool.map(commit, [files_world.another_client(), files_world.another_client()], "ab")))
    assert sorted(won["a"] + won["b"]) == list(range(ROUNDS))
    expected = {str(number): f"{name} {number}" for name in "ab" for number in won[name]}
    lost = {f".{number}.{name}": f"{name} {number}" for name in "ab" for number in range(ROUNDS) if number not in won[name]}
    assert texts_below(files_world, files_world.path("log")) == {**expected, **lost}


# ---- the lock


def test_a_lock_makes_its_directory_and_none_around_it(files_world):
    """That may be away for a moment: a rename of another one to its place would go into it (FileSystem.rename)."""
    table = files_world.path("away")
    with pytest.raises(SourceMissing):
        files_world.files.hold(f"{table}/c/lock", "us")
    assert files_world.files.stat(table) is None
    files_world.writer.make_directory(table)
    files_world.files.hold(f"{table}/c/lock", "us").release()
    made = files_world.files.stat(f"{table}/c")
    assert made is not None
    assert made.mode == 0o700
    # It may be there already, of an earlier run.
    files_world.files.hold(f"{table}/c/lock", "us").release()
    assert names_in(look(files_world, table)) == ["c"]


def test_a_directory_that_a_lock_makes_has_the_seal_and_one_that_is_there_gets_none(files_world):
    files, there = files_world.files, files_world.path("there")
    files.make_directory(there)
    files.hold(f"{there}/lock", "us").release()
    assert names_in(look(files_world, there)) == ["lock"]
    made = files_world.path("made, with a name of its own")
    files.hold(f"{made}/lock", "us").release()
    seal = look(files_world, made).entries[0]
    assert (seal.name, seal.is_dir, seal.length, seal.mode, seal.owner) == (names.SEAL, False, 0, 0o600, files.user_at(seal.path))


def test_a_file_at_the_place_of_the_directory_of_a_lock_stays(files_world):
    files_world.writer.add(files_world.path("c"), "theirs")
    with pytest.raises(FilesError):
        files_world.files.hold(files_world.path("c", "lock"), "us")
    assert names_in(look(files_world, files_world.root)) == ["c"]


def test_a_held_lock_is_refused_to_others_and_to_its_own_holder(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one\non host")
    for client in (files_world.another_client(), files_world.files):
        with pytest.raises(LockHeld) as held:
            client.hold(files_world.path("c", "lock"), "run two")
        assert held.value.holder == "run one on host"
    assert lock.check()
    lock.release()


def test_a_released_lock_can_be_taken_and_shows_its_new_holder(files_world):
    files_world.files.hold(files_world.path("c", "lock"), "run one").release()
    other = files_world.another_client()
    lock = other.hold(files_world.path("c", "lock"), "run two")
    with pytest.raises(LockHeld) as held:
        files_world.files.hold(files_world.path("c", "lock"), "run three")
    assert held.value.holder == "run two"
    assert lock.check()
    lock.release()


def test_the_lock_file_taken_by_another_program_is_noticed(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    files_world.writer.delete(files_world.path("c", "lock"))
    assert not lock.check()
    files_world.writer.add(files_world.path("c", "lock"), "somebody else")
    assert not lock.check()
    lock.release()
    assert text_of(files_world.files, files_world.path("c", "lock")) == "somebody else"


def test_a_lock_whose_directory_was_renamed_away_is_lost(files_world):
    lock = files_world.files.hold(files_world.path("c", "lock"), "run one")
    files_world.files.rename_exact(files_world.path("c"), files_world.path("moved"))
    assert not lock.check()
    lock.release()


def test_the_lock_of_a_dead_holder_can_be_taken(files_world):
    files_world.skip_on("hdfs", "a lease takes a minute to end, and its holder has to be killed: done in the cluster suite")
    path = files_world.path("c", "lock")
    if files_world.kind == "fake":
        files_world.another_client().hold(path, "dead run")
        files_world.files.expire_locks()
    else:
        files_world.files.make_directory(files_world.path("c"))
        code = "import fcntl, os, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
        subprocess.run([sys.executable, "-c", code, path.partition(":")[2]], check=False)
    lock = files_world.files.hold(path, "next run")
    assert lock.check()
    lock.release()


def test_a_lost_lease_is_noticed_by_its_holder():
    files = FakeFiles()
    lock = files.hold("/c/_lock", "sleeper")
    files.expire_locks()
    taken = files.another_client().hold("/c/_lock", "taker")
    assert not lock.check()
    assert taken.check()


# ---- attributes and space


def test_attributes_can_be_read_and_given_to_another_directory_and_its_files(files_world):
    files_world.writer.add(files_world.path("old", "f"), "x")
    files_world.writer.add(files_world.path("new", "g"), "x")
    files_world.files.make_directory(files_world.path("new", "sub"))
    sub_before = files_world.files.stat(files_world.path("new", "sub")).mode
    old, new = files_world.path("old"), files_world.path("new")
    wanted = dataclasses.replace(files_world.files.attributes([old])[old], mode=0o1770, file_mode=0o640)
    files_world.files.dress({old: wanted, new: wanted})
    found = files_world.files.attributes([old, new])
    assert found == {old: wanted, new: wanted}
    assert [found[place].directory_id for place in (old, new)] == [files_world.files.stat(place).file_id for place in (old, new)]
    assert files_world.files.stat(files_world.path("new")).mode == 0o1770
    assert files_world.files.stat(files_world.path("new", "g")).mode == 0o640
    assert files_world.files.stat(files_world.path("new", "sub")).mode == sub_before


def test_a_missing_directory_has_no_attributes_and_cannot_be_dressed(files_world):
    files_world.files.make_directory(files_world.path("d"))
    wanted = files_world.files.attributes([files_world.path("d"), files_world.path("missing")])
    assert list(wanted) == [files_world.path("d")]
    with pytest.raises(SourceMissing):
        files_world.files.dress({files_world.path("missing"): wanted[files_world.path("d")]})


def test_an_empty_directorys_files_would_get_its_own_mode_without_execution(files_world):
    directory = files_world.path("d")
    files_world.files.make_directory(directory)
    files_world.files.dress({directory: dataclasses.replace(files_world.files.attributes([directory])[directory], mode=0o750)})
    assert files_world.files.attributes([directory])[directory].file_mode == 0o640


@pytest.mark.parametrize(("value", "is_told"), [("0s" + "A" * 4000, True), ("0s" + "A" * 4096, False)])
def test_extended_attributes_are_told_up_to_four_kilobytes(files_world, value, is_told):
    files_world.skip_on("local", "local files have none of them in Hadoop")
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    wanted = (("user.source", value),)
    files_world.files.dress({top: dataclasses.replace(known, xattrs=wanted)})
    expected = dataclasses.replace(known, xattrs=wanted if is_told else (), has_more_xattrs=not is_told)
    assert files_world.files.attributes([top]) == {top: expected}


def rights_in(files_world, *directories, most=10):
    found = files_world.files.file_rights(dict.fromkeys(directories, 0), most)
    return {directory: {rights: list(ids) for rights, ids in some.items()} for directory, some in found.items()}


def test_the_rights_of_data_files_are_told_once_each_and_no_more_than_asked_for(files_world):
    top = files_world.path("d")
    for name in ("a", "b", "c", ".hidden", "_hidden"):
        files_world.writer.add(f"{top}/{name}", "x")
    files_world.writer.add(f"{top}/below/e", "x")
    known = files_world.files.attributes([top])[top]
    files_world.files.dress({top: dataclasses.replace(known, file_mode=0o640)})
    owner, group = files_world.files.stat(f"{top}/a").owner, files_world.files.stat(f"{top}/a").group
    of_all = FileRights(owner, group, 0o640)
    ids = [files_world.files.stat(f"{top}/{name}").file_id for name in ("a", "b", "c")]
    assert rights_in(files_world, top, files_world.path("missing")) == {top: {of_all: ids}}
    files_world.files.guard({f"{top}/b": Guard(0o600), f"{top}/c": Guard(0o644)})
    expected = {of_all: ids[:1], of_all._replace(mode=0o600): ids[1:2], of_all._replace(mode=0o644): ids[2:]}
    assert rights_in(files_world, top) == {top: expected}
    assert [*rights_in(files_world, top, most=1)[top]] == [*expected][:2]


def test_the_acls_of_data_files_are_told(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    acl = ("group::r--", "group:etl:rw-", "mask::rw-", "other::---", "user::rw-")
    files_world.files.dress({top: dataclasses.replace(known, file_mode=0o660, file_acl=acl)})
    assert [*rights_in(files_world, top)[top]] == [FileRights(known.owner, known.group, 0o660, acl)]


def test_a_listing_is_of_the_directory_whose_id_it_shows_while_others_come_to_its_path(files_world):
    """If a lock is held there. It takes several calls: a NameNode tells a thousand names at once."""
    files_world.skip_on("local", "paths only")
    files_world.skip_on("fake", "it lists at once")
    top = files_world.path("top")
    one, other, aside = (files_world.path("top", name) for name in ("one", "other", "aside"))
    with ThreadPoolExecutor(8) as pool:
        places = (f"{place}/{nth}-{names.base(place)}" for nth in range(2500) for place in (one, other))
        list(pool.map(files_world.files.make_directory, places))
    own = {look(files_world, place).file_id: f"-{names.base(place)}" for place in (one, other)}
    lock, done = files_world.files.hold(f"{top}/_lock", "us"), threading.Event()

    def exchange():
        while not done.is_set():
            for source, target in ((one, aside), (other, one), (aside, other)):
                files_world.writer.rename_into(source, target)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        seen = [snapshot for _ in range(100) for snapshot in [look(files_world, one)] if snapshot.exists]
    finally:
        done.set()
        thread.join()
        lock.release()
    assert seen
    assert all(len(snapshot.entries) == 2500 for snapshot in seen)
    assert all(entry.name.endswith(own[snapshot.file_id]) for snapshot in seen for entry in snapshot.entries)


def test_rights_are_those_of_the_directory_that_was_listed_while_a_lock_is_held_there(files_world):
    """Whoever may rename it can put another one at its path, whose files have the same owner, group and mode."""
    files_world.skip_on("local", "paths only")
    files, top = files_world.files, files_world.path("top")
    listed, other, aside = (files_world.path("top", name) for name in ("listed", "other", "aside"))
    groups = {listed: "etl", other: "hr"}
    acls = {place: ("group::r--", f"group:{group}:rw-", "mask::rw-", "other::---", "user::rw-") for place, group in groups.items()}
    for place, mode in ((listed, 0o700), (other, 0o755)):
        files_world.writer.add(f"{place}/f", "x")
        files.dress({place: dataclasses.replace(files.attributes([place])[place], mode=mode, file_mode=0o660, file_acl=acls[place])})
    ids = {place: look(files_world, place).file_id for place in (listed, other)}
    of_file = files.stat(f"{listed}/f").file_id
    files_world.writer.rename_into(listed, aside)
    files_world.writer.rename_into(other, listed)

    def ask():
        known = files.attributes([listed, top], ids)
        rights = files.file_rights({listed: ids[listed]}, 10)[listed]
        return known[listed].directory_id == ids[listed], known[listed].mode, known[listed].file_acl, [one.acl for one in rights]

    lock = files.hold(f"{top}/_lock", "us")
    assert ask() == (True, 0o700, acls[listed], [acls[listed]])
    assert [list(found) for found in files.file_rights({listed: ids[listed]}, 10)[listed].values()] == [[of_file]]
    files_world.writer.delete(aside)
    assert listed not in files.attributes([listed, top], ids)
    assert files.file_rights({listed: ids[listed]}, 10) == {}
    lock.release()
    assert ask() == (False, 0o755, acls[other], [acls[other]])


def test_files_may_get_another_owner_and_group_than_their_directory_or_keep_theirs(files_world):
    top = files_world.path("d")
    files_world.writer.add(f"{top}/f", "x")
    known = files_world.files.attributes([top])[top]
    wanted = dataclasses.replace(known, owner="", group="", file_owner=known.owner, file_group=known.group)
    for given in (wanted, dataclasses.replace(known, file_owner="", file_group="")):
        files_world.files.dress({top: given})
        assert files_world.files.attributes([top]) == {top: known}
        file = files_world.files.stat(f"{top}/f")
        assert (file.owner, file.group) == (known.owner, known.group)


def test_acls_extended_attributes_and_policies_are_carried_over(files_world):
    files_world.skip_on("local", "local files have none of them in Hadoop")
    old, new = files_world.path("old"), files_world.path("new")
    files_world.writer.add(old + "/f", "x")
    files_world.writer.add(new + "/g", "x")
    acl = ("default:group::r-x", "default:group:etl:rwx", "default:mask::rwx", "default:other::---", "default:user::rwx")
    access = ("group::r-x", "group:etl:rwx", "mask::rwx", "other::---", "user::rwx")
    file_acl = ("group::r--", "group:etl:rw-", "mask::rw-", "other::---", "user::rw-")
    wanted = dataclasses.replace(
        files_world.files.attributes([old])[old],
        mode=0o770,
        file_mode=0o660,
        acl=tuple(sorted(acl + access)),
        file_acl=tuple(sorted(file_acl)),
        xattrs=(("user.source", "0sYWJj"),),
        storage_policy="COLD",
        own_storage_policy=True,
    )
    files_world.files.dress({new: wanted})
    assert files_world.files.attributes([new]) == {new: wanted}
    bare = dataclasses.replace(wanted, acl=(), file_acl=(), storage_policy="HOT", own_storage_policy=False)
    files_world.files.dress({new: bare})
    assert files_world.files.attributes([new]) == {new: bare}


def mode_of(world, *below):
    return world.files.stat(world.path(*below)).mode


def test_what_is_made_is_its_makers_alone(files_world):
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.write_new(files_world.path("a", "private"), "x")
    files_world.files.write_new(files_world.path("a", "for the group"), "x", 0o640)
    files_world.files.hold(files_world.path("c", "lock"), "run one").release()
    assert [mode_of(files_world, *place) for place in (["a"], ["a", "b"], ["c"])] == [0o700] * 3
    assert [mode_of(files_world, *place) for place in (["a", "private"], ["a", "for the group"], ["c", "lock"])] == [0o600, 0o640, 0o600]


def test_a_directory_that_is_there_keeps_its_mode_when_it_is_made_again(files_world):
    files_world.files.make_directory(files_world.path("a"))
    files_world.files.guard({files_world.path("a"): Guard(0o755)})
    files_world.files.make_directory(files_world.path("a", "b"))
    files_world.files.make_directory(files_world.path("a"))
    assert [mode_of(files_world, "a"), mode_of(files_world, "a", "b")] == [0o755, 0o700]


def test_what_others_may_write_to_is_told_down_to_a_level(files_world):
    wide = [["c"], ["c", "runs"], ["c", "runs", "r", "plan"], ["c", "runs", "r", "d", "deeper"]]
    files_world.files.make_directory(files_world.path("c", "runs", "r", "d"))
    files_world.files.write_new(files_world.path("c", "runs", "r", "plan"), "x")
    files_world.files.write_new(files_world.path("c", "runs", "r", "d", "deeper"), "x")
    top = files_world.path("c")
    assert files_world.files.exposed(top, 9) == ()
    files_world.files.guard({files_world.path(*place): Guard(0o775 if len(place) < 3 else 0o664) for place in wide})
    found = {one.path: one for one in files_world.files.exposed(top, 3)}
    assert sorted(found) == [files_world.path(*place) for place in wide[:3]]
    assert {(one.is_dir, one.mode) for one in found.values()} == {(True, 0o775), (False, 0o664)}
    assert all(one.is_ours and one.owner == files_world.files.stat(one.path).owner for one in found.values())
    assert [one.path for one in files_world.files.exposed(top, 0)] == [top]
    assert len(files_world.files.exposed(top, 4)) == 4
    assert files_world.files.exposed(files_world.path("missing"), 3) == ()


def test_a_directory_and_all_above_it_are_told_from_the_root_down(files_world):
    base = files_world.path("open", "base")
    files_world.files.make_directory(base)
    files_world.files.guard({files_world.path("open"): Guard(0o777)})
    found = files_world.files.way_to(base)
    assert [one.path.rstrip("/") for one in found] == list(reversed([path.rstrip("/") for path in names.with_above(base)]))
    assert [(one.mode, one.is_ours, one.is_dir) for one in found[-2:]] == [(0o777, True, True), (0o700, True, True)]
    assert [one.owner for one in found[-2:]] == [files_world.files.user_at(base)] * 2
    assert files_world.files.way_to(f"{base}/not/there") == found


@local_only
def test_the_way_to_a_directory_behind_a_mount_is_that_to_the_real_one(gateway, tmp_path):
    (tmp_path / "data" / "base").mkdir(parents=True)
    (tmp_path / "data").chmod(0o777)
    files = configured(gateway, **{"fs.viewfs.mounttable.ours.link./mounted": f"file:{tmp_path}/data"})
    for below in ("base", "base/missing"):
        found = files.way_to(f"viewfs://ours/mounted/{below}")
        assert [one.path for one in found[-2:]] == [f"file:{tmp_path}/data", f"file:{tmp_path}/data/base"]
        assert (found[0].path, found[-2].mode) == ("file:/", 0o777)


def test_the_way_to_a_directory_tells_whom_acls_let_write(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    base = files_world.path("base")
    files_world.files.make_directory(base)
    acl = ("group::r-x", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx")
    known = files_world.files.attributes([base])[base]
    files_world.files.dress({base: dataclasses.replace(known, mode=0o770, acl=acl)})
    assert set(acl) <= set(files_world.files.way_to(base)[-1].acl)


def test_what_others_may_write_to_is_not_looked_for_among_millions_of_files(files_world):
    """Whoever may write to the directory around a control directory can put another one at its place, after its owner was looked at."""
    files_world.skip_on("fake", "it has all in memory")
    files = files_world.files
    for name in "abcd":
        files_world.writer.add(files_world.path("c", "log", name), "x")
    files._rights.setMostListed(5)
    files.exposed(files_world.path("c"), 3)
    files._rights.setMostListed(4)
    with pytest.raises(FilesUnavailable, match="too many entries"):
        files.exposed(files_world.path("c"), 3)


def test_rights_are_given_to_a_directory_and_the_files_in_it_and_to_nothing_else(files_world):
    files_world.files.make_directory(files_world.path("c", "sub"))
    files_world.files.write_new(files_world.path("c", "f"), "x")
    files_world.files.guard({files_world.path("c"): Guard(0o750, 0o640)})
    assert [mode_of(files_world, *place) for place in (["c"], ["c", "f"], ["c", "sub"])] == [0o750, 0o640, 0o700]
    files_world.files.guard({files_world.path("c"): Guard(0o711), files_world.path("c", "f"): Guard(0o604)})
    assert [mode_of(files_world, *place) for place in (["c"], ["c", "f"])] == [0o711, 0o604]
    with pytest.raises(SourceMissing):
        files_world.files.guard({files_world.path("missing"): Guard(0o700)})


def test_rights_are_given_to_the_directory_that_is_meant_and_to_no_other_at_its_path(files_world):
    meant, other, aside = (files_world.path(name) for name in ("meant", "other", "aside"))
    for place in (meant, other):
        files_world.files.make_directory(place)
        files_world.files.write_new(f"{place}/f", "x")
    readable = Guard(0o750, 0o640, file_id=files_world.files.stat(meant).file_id)
    files_world.files.rename_exact(meant, aside)
    files_world.files.rename_exact(other, meant)
    with contextlib.suppress(SourceMissing):
        files_world.files.guard({meant: readable})
    assert [mode_of(files_world, "meant"), mode_of(files_world, "meant", "f")] == [0o700, 0o600]
    files_world.files.guard({aside: readable})
    assert [mode_of(files_world, "aside"), mode_of(files_world, "aside", "f")] == [0o750, 0o640]
    assert [mode_of(files_world, "meant"), mode_of(files_world, "meant", "f")] == [0o700, 0o600]


def test_an_acl_is_taken_off_with_its_default_entries_and_given_without_any(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    directory, sample = files_world.path("d"), files_world.path("sample")
    files_world.writer.add(directory + "/f", "x")
    files_world.writer.add(sample + "/f", "x")
    acl = ("default:group::rwx", "default:mask::rwx", "default:other::---", "default:user::rwx", "default:user:bob:rwx")
    access = ("group::rwx", "mask::rwx", "other::---", "user::rwx", "user:bob:rwx")
    file_acl = ("group::rw-", "mask::rw-", "other::---", "user::rw-", "user:bob:rw-")
    known = files_world.files.attributes([sample])[sample]
    wide = dataclasses.replace(known, mode=0o770, file_mode=0o660, acl=tuple(sorted(acl + access)), file_acl=file_acl)
    files_world.files.dress({directory: wide})
    shown = {one.path: one.acl for one in files_world.files.exposed(directory, 1)}
    assert set(access) <= set(shown[directory])
    assert shown[directory + "/f"] == file_acl
    read_only = ("group::r-x", "mask::r-x", "other::---", "user::rwx", "user:bob:r-x")
    files_world.files.guard({directory: Guard(0o750, 0o640, acl=read_only)})
    found = files_world.files.attributes([directory])[directory]
    assert (found.mode, found.file_mode, found.acl, found.file_acl) == (0o750, 0o640, read_only, ())
    files_world.files.guard({directory: Guard(0o700, 0o600)})
    assert files_world.files.attributes([directory])[directory].acl == ()
    assert files_world.files.exposed(directory, 1) == ()


@pytest.mark.parametrize("access", [("user:bob:r-x", "mask::r-x"), ()], ids=["beside others", "alone"])
def test_default_entries_are_given_where_the_wanted_acl_has_them(access, files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    directory = files_world.path("d")
    files_world.writer.add(directory + "/f", "x")
    before = files_world.files.attributes([directory])[directory]
    default = ("default:group::r-x", "default:group:etl:r-x", "default:mask::r-x", "default:other::---", "default:user::rwx")
    acl = tuple(sorted((*default, *access, "group::r-x", "other::---", "user::rwx")))
    files_world.files.guard({directory: Guard(0o750, acl=acl)})
    after = files_world.files.attributes([directory])[directory]
    assert (after.mode, after.acl, after.file_mode) == (0o750, acl, before.file_mode)


def test_a_default_acl_gives_nobody_anything_in_what_is_made(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    files_world.skip_on("fake", "nothing is inherited there")
    top = files_world.path("top")
    files_world.files.make_directory(top)
    acl = ("default:group::rwx", "default:mask::rwx", "default:other::rwx", "default:user::rwx", "default:user:bob:rwx")
    access = ("group::r-x", "other::r-x", "user::rwx")
    known = files_world.files.attributes([top])[top]
    files_world.files.dress({top: dataclasses.replace(known, mode=0o755, acl=tuple(sorted(acl + access)))})
    files_world.files.make_directory(top + "/a/b")
    files_world.files.hold(top + "/a/_lock", "run one").release()
    files_world.files.write_new(top + "/a/plan", "x")
    assert {entry.path[len(top) :]: entry.mode for entry in tree(files_world.files, top)} == {
        "/a": 0o700,
        "/a/b": 0o700,
        "/a/_lock": 0o600,
        "/a/plan": 0o600,
    }


def test_a_policy_of_its_own_stays_when_a_directory_leaves_a_parent_that_has_the_same(files_world):
    files_world.skip_on("local", "local files have none in Hadoop")
    batch, unit, live = (files_world.path(*below) for below in (["batch"], ["batch", "unit"], ["live"]))
    files_world.files.make_directory(unit)
    wanted = dataclasses.replace(files_world.files.attributes([unit])[unit], storage_policy="WARM", own_storage_policy=True)
    files_world.files.dress({batch: wanted})
    files_world.files.dress({unit: wanted})
    files_world.files.rename_exact(unit, live)
    assert files_world.files.attributes([live])[live].storage_policy == "WARM"


def test_nothing_ties_an_ordinary_directory_and_a_missing_one_is_left_out(files_world):
    directory = files_world.path("d")
    files_world.files.make_directory(directory)
    assert files_world.files.ties([directory, files_world.path("missing")]) == {directory: Ties()}
    assert files_world.files.ties([]) == {}


def test_room_is_told_for_a_place_that_does_not_exist_yet(files_world):
    room = files_world.files.room(files_world.path("not", "yet"), [])
    assert room.copies >= 1
    assert room.block_bytes > 0
    assert room.free_bytes is None if files_world.kind == "fake" else room.free_bytes > 0


def test_directories_without_a_quota_and_missing_ones_are_left_out_however_often_they_are_asked_about(files_world):
    for _ in range(2):
        assert files_world.files.room(files_world.root, [files_world.root, files_world.path("missing")]).quotas == ()


def test_what_is_looked_at_side_by_side_leaves_no_thread_behind(files_world, request):
    files_world.skip_on("fake", "it has none")
    threads = request.getfixturevalue("gateway").jvm.java.lang.Thread
    client, paths = files_world.another_client(), [files_world.path(str(number)) for number in range(20)]

    def count() -> int:
        return sum(1 for thread in threads.getAllStackTraces().keySet() if thread.getName() == "hivekeeper-worker")

    # On a busy machine they may be gone before they were counted.
    assert any(client.look(paths) and count() for _ in range(20))
    until = time.monotonic() + 600
    while count():
        assert time.monotonic() < until
        time.sleep(0.5)


# ---- what the fake alone can do: die, fail, starve, and let others act in between


@pytest.mark.parametrize("at_once", [True, False])
def test_a_killed_client_has_made_so_many_steps_and_makes_no_more(at_once):
    files = FakeFiles()
    files.die_after(2, at_once)
    with pytest.raises(Killed):
        for name in "abc":
            files.make_directory(f"/{name}")
    for call in (lambda: files.look(["/a"]), lambda: files.delete_tree("/a"), lambda: files.hold("/_lock", "x")):
        with pytest.raises(Killed):
            call()
    files.revive()
    assert names_in(files.look(["/"])["/"]) == ["a", "b"]
    assert files.steps == 2


def test_a_text_whose_writer_is_killed_stays_in_part_and_open_until_its_lease_ends():
    files = FakeFiles()
    files.die_after(1)
    with pytest.raises(Killed):
        files.write_new("/plan", "whole text")
    files.revive()
    assert text_of(files, "/plan") == "whole"
    assert files.stat("/plan").is_open
    files.expire_locks()
    assert not files.stat("/plan").is_open


def test_a_dead_clients_lock_is_held_until_its_lease_ends():
    files = FakeFiles()
    files.hold("/_lock", "dead")
    files.die_after(0)
    with pytest.raises(Killed):
        files.make_directory("/a")
    with pytest.raises(LockHeld):
        files.another_client().hold("/_lock", "next")
    files.expire_locks()
    assert files.another_client().hold("/_lock", "next").check()


@pytest.mark.parametrize("done", [True, False])
def test_an_injected_error_may_hide_a_change_that_was_made(done):
    files = FakeFiles({"/a/f": "x"})
    files.fail_next("rename_exact", FilesUnavailable("connection lost"), done=done)
    with pytest.raises(FilesUnavailable):
        files.rename_exact("/a", "/b")
    assert names_in(files.look(["/"])["/"]) == (["b"] if done else ["a"])
    files.rename_exact(*(("/b", "/a") if done else ("/a", "/b")))


def test_another_program_may_act_before_each_step():
    files = FakeFiles({"/a/f": "x"})
    seen = []

    def interleave(what):
        seen.append(what.split()[0])
        if what.startswith("rename_exact"):
            files.writer.add("/b/late", "y")

    files.before_step = interleave
    files.make_directory("/c")
    with pytest.raises(TargetExists):
        files.rename_exact("/a", "/b")
    assert seen == ["make_directory", "rename_exact"]


def test_a_denied_place_cannot_be_changed_and_a_full_one_not_written_to():
    files = FakeFiles({"/a/f": "x", "/ab/f": "x"})
    files.namespace.denied.add(files.qualify("/a"))
    with pytest.raises(NoPermission):
        files.rename_exact("/a/f", "/c")
    files.rename_exact("/ab/f", "/c")
    files.namespace.space_bytes = 8
    assert files.room("/", []).free_bytes == 6
    with pytest.raises(NoSpace):
        files.write_new("/big", "0123456789")
    assert files.contents() == {files.qualify("/a/f"): "x", files.qualify("/c"): "x", files.qualify("/big"): "01234"}


def test_a_move_to_the_trash_is_one_step_and_needs_a_right():
    files = FakeFiles({"/t/u/f": "x"})
    files.die_after(1)
    with pytest.raises(Killed):
        files.move_to_trash("/t/u")
    files.revive()
    assert files.contents() == {TRASH + "/t/u/f": "x"}
    files.writer.add("/t/u/f", "y")
    files.namespace.denied.add(files.qualify("/t"))
    with pytest.raises(NoPermission):
        files.move_to_trash("/t/u")
    assert text_of(files, "/t/u/f") == "y"


def test_a_coarse_clock_gives_two_changes_one_time():
    files = FakeFiles({"/a/f": "x"})
    files.namespace.tick_ms = 0
    before = files.stat("/a").mtime_ms
    files.writer.add("/a/g", "x")
    assert files.stat("/a").mtime_ms == before
    files.namespace.advance(1)
    files.writer.add("/a/h", "x")
    assert files.stat("/a").mtime_ms == before + 1


def test_a_committer_that_is_left_alone_brings_its_rows_and_one_whose_directory_is_swapped_loses_them():
    files = FakeFiles({"/live/f": "x", "/ready/c": "x"})
    files.writer.start_committer("/live")
    files.writer.commit_task("/live", "p1", "one")
    files.rename_exact("/live", "/retired")
    files.rename_exact("/ready", "/live")
    files.writer.commit_task("/live", "p2", "two")
    files.writer.commit_job("/live")
    assert names_in(files.look(["/live"])["/live"]) == ["c", "p2"]
    assert list(files.contents("/retired/_temporary").values()) == ["one"]


@pytest.mark.jvm
def test_renames_are_made_by_the_client_that_reads(request, files_world):
    """Observers tell each client no less than it has changed itself, so another client's rename may look as if it had not happened."""
    if files_world.kind != "hdfs":
        pytest.skip("only HDFS has observers")
    statistics = request.getfixturevalue("gateway").jvm.org.apache.hadoop.fs.GlobalStorageStatistics.INSTANCE
    # A FileContext, whose client is another one, is not counted.
    before = statistics.get("DFSOpsCountStatistics").getLong("op_rename")
    files_world.files.make_directory(files_world.path("a"))
    files_world.files.rename_exact(files_world.path("a"), files_world.path("b"))
    assert statistics.get("DFSOpsCountStatistics").getLong("op_rename") == before + 1
