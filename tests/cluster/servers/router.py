"""A router of HDFS (RBF) over the cluster's NameNode and a second one with a DataNode of its own; only the tests that need it start it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Dict, Mapping

from cluster.servers import hadoop, process
from cluster.servers.artifacts import find_program
from cluster.servers.layout import REALM, Layout, find_ports
from cluster.servers.process import Server

HERE = Path(__file__).resolve().parent
FEDERATION = f"{hadoop.HDFS}.federation"
ORDER = ("namenode", "datanode", "router")
PORTS = ("namenode", "namenode_http", "datanode", "datanode_ipc", "datanode_http", "router")
# The directory in that of the cluster.
INSIDE = "router"
# Of the cluster's NameNode and of the second one.
DEFAULT, OTHER = "ns0", "ns1"
# The root of the second one, as the router names it. All else is the first one's.
MOUNT = "/mounted"


class Router:
    """`uri`: its own name. `other`: that of the second NameNode."""

    def __init__(self, behind: Layout) -> None:
        self.uri, self.other = f"hdfs://localhost:{behind.ports['router']}", behind.namenode


def start_router(layout: Layout) -> Router:
    """Raises ServerFailed, RuntimeError."""
    behind = _make_layout(layout)
    hadoop.write_configuration(behind, {"hdfs-site": {**_nameservices(layout, behind), **_router(behind)}})
    servers = _make_servers(behind)
    try:
        hadoop.format_namenode(behind)
        for name in ("namenode", "datanode"):
            process.start(servers[name], behind.run)
        hadoop.run_java(behind, [str(HERE / "MakeMounts.java"), MOUNT, OTHER, "/"])
        process.start(servers["router"], behind.run)
        process.wait_until_ready(servers["namenode"], behind.run)
        hadoop.make_directories(behind)
        for name in ORDER:
            process.wait_until_ready(servers[name], behind.run)
    except BaseException:
        stop_router(layout.run)
        raise
    return Router(behind)


def stop_router(run: Path) -> None:
    """Of the cluster in `run`, if it has one, with what only the router needs."""
    for name in reversed(ORDER):
        process.stop(name, run / INSIDE)


def _make_layout(layout: Layout) -> Layout:
    """The second NameNode's and the router's, in a directory inside the cluster's; the keys and the KDC are the cluster's."""
    stop_router(layout.run)
    behind = replace(layout, run=layout.run / INSIDE, ports={**layout.ports, **find_ports(PORTS)})
    shutil.rmtree(behind.run, ignore_errors=True)
    for directory in (behind.conf, behind.logs, behind.run / "pids", behind.run / "tmp"):
        directory.mkdir(parents=True)
    if layout.secure:
        behind.keytabs.symlink_to(layout.keytabs)
        behind.krb5_conf.parent.symlink_to(layout.krb5_conf.parent)
    return behind


def _make_servers(behind: Layout) -> Dict[str, Server]:
    servers = {server.name: server for server in hadoop.make_servers(behind) if server.name in ORDER}
    command = [
        find_program("java"),
        *hadoop.java_options(behind, "256m"),
        "-cp",
        hadoop.class_path(behind),
        f"{FEDERATION}.router.DFSRouter",
    ]
    both = "".join(f"(?=.*->{name}:.*-ACTIVE)" for name in (DEFAULT, OTHER))
    servers["router"] = Server("router", command, rf"(?s)\A{both}", {"HADOOP_USER_NAME": "hdfs"})
    return servers


def _nameservices(layout: Layout, behind: Layout) -> Mapping[str, str]:
    addresses = {
        f"dfs.namenode.{kind}-address.{name}": f"localhost:{of.ports['namenode' if kind == 'rpc' else 'namenode_http']}"
        for name, of in ((DEFAULT, layout), (OTHER, behind))
        for kind in ("rpc", "http", "https")
    }
    return {
        "dfs.nameservices": f"{DEFAULT},{OTHER}",
        **addresses,
        # What the second NameNode is, and the only one to which its DataNode reports.
        "dfs.nameservice.id": OTHER,
        "dfs.internal.nameservices": OTHER,
    }


def _router(behind: Layout) -> Mapping[str, str]:
    key = "dfs.federation.router"
    properties = {
        f"{key}.rpc-address": f"localhost:{behind.ports['router']}",
        f"{key}.default.nameserviceId": DEFAULT,
        f"{key}.monitor.namenode": f"{DEFAULT},{OTHER}",
        f"{key}.monitor.localnamenode.enable": "false",
        f"{key}.store.driver.class": f"{FEDERATION}.store.driver.impl.StateStoreFileImpl",
        f"{key}.store.driver.file.directory": str(behind.run / "store"),
        f"{key}.admin.enable": "false",
        f"{key}.http.enable": "false",
        # It would take no calls for half a minute.
        f"{key}.safemode.enable": "false",
        # How often it looks whether a NameNode has started, and takes up what it found.
        f"{key}.heartbeat.interval": "1000",
        f"{key}.cache.ttl": "1s",
    }
    if behind.secure:
        properties[f"{key}.kerberos.principal"] = f"hdfs/localhost@{REALM}"
        properties[f"{key}.keytab.file"] = str(behind.keytab("hdfs/localhost"))
        # Hadoop's own keeps them in ZooKeeper.
        properties[f"{key}.secret.manager.class"] = f"{FEDERATION}.security.MockDelegationTokenSecretManager"
    return properties
