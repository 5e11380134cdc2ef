"""PostgreSQL, and the standalone metastore on top of it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from typing import List, Mapping, Optional

from cluster.servers.artifacts import find_program, unpacked_home
from cluster.servers.hadoop import java_options, write_xml
from cluster.servers.layout import JARS, REALM, Layout
from cluster.servers.process import Server

TOOLS = "org.apache.hadoop.hive.metastore"


def make_postgres(layout: Layout) -> Server:
    """Create the data directory; PostgreSQL refuses to run as root, so as root it belongs to the user `postgres`."""
    home, user = layout.run / "postgres", _other_user()
    home.mkdir(mode=0o700)
    if user is not None:
        shutil.chown(home, user)
        _open_the_way(home)
    initdb = [find_program("initdb"), "-D", str(home), "-U", "hive", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
    subprocess.run(_as(user, initdb), check=True, capture_output=True, cwd="/")
    words = [
        "-p",
        str(layout.ports["postgres"]),
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "fsync=off",
        "-c",
        f"unix_socket_directories={home}",
    ]
    # SIGINT: a fast shutdown, which does not wait for clients.
    return Server(
        "postgres",
        [find_program("postgres"), "-D", str(home), *words],
        r"ready to accept connections",
        user=user,
        stop_signal=signal.SIGINT,
    )


def _other_user() -> Optional[str]:
    if os.geteuid() != 0:
        return None
    pwd.getpwnam("postgres")
    return "postgres"


def _as(user: Optional[str], command: List[str]) -> List[str]:
    return command if user is None else ["setpriv", f"--reuid={user}", "--init-groups", *command]


def _open_the_way(directory: Path) -> None:
    """Let another user reach a directory: grants only search permission on its parents."""
    for parent in directory.parents:
        if not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o001)


def write_configuration(layout: Layout, extra: Mapping[str, str]) -> None:
    """metastore-site.xml for the server, hive-site.xml for clients."""
    security = {}
    if layout.secure:
        principal = f"hive/localhost@{REALM}"
        security = {
            "metastore.sasl.enabled": "true",
            "hive.metastore.sasl.enabled": "true",
            "metastore.kerberos.principal": principal,
            "hive.metastore.kerberos.principal": principal,
        }
    clients = {"hive.metastore.uris": layout.metastore, "hive.metastore.warehouse.dir": "/warehouse", **security}
    write_xml(layout.conf / "hive-site.xml", clients)
    server = {
        **security,
        **({"metastore.kerberos.keytab.file": layout.keytab("hive/localhost")} if layout.secure else {}),
        "metastore.thrift.uris": layout.metastore,
        "metastore.thrift.port": layout.ports["metastore"],
        "metastore.warehouse.dir": "/warehouse",
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{layout.ports['postgres']}/postgres",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": "hive",
        "javax.jdo.option.ConnectionPassword": "not-a-secret",
        # The default needs hive-exec, which the standalone server does not have.
        "metastore.expression.proxy": f"{TOOLS}.DefaultPartitionExpressionProxy",
        # Without the compactor's threads, which need tables of their own.
        "metastore.task.threads.always": f"{TOOLS}.events.EventCleanerTask",
        # Asynchronous loggers need a library that the server does not include.
        "metastore.async.log.enabled": "false",
        **extra,
    }
    write_xml(_server_conf(layout) / "metastore-site.xml", server)


def _server_conf(layout: Layout) -> Path:
    directory = layout.run / "metastore-conf"
    directory.mkdir(exist_ok=True)
    return directory


def make_schema(layout: Layout) -> None:
    """Needs PostgreSQL."""
    command = [*_java(layout), f"{TOOLS}.tools.MetastoreSchemaTool", "-initSchema", "-dbType", "postgres"]
    environment = {**os.environ, "METASTORE_HOME": str(unpacked_home())}
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise RuntimeError("the metastore's schema cannot be made:\n" + "\n".join((result.stdout + result.stderr).splitlines()[-12:]))


def make_metastore(layout: Layout) -> Server:
    environment = {"METASTORE_HOME": str(unpacked_home()), "METASTORE_CONF_DIR": str(_server_conf(layout)), "HADOOP_USER_NAME": "hive"}
    return Server("metastore", [*_java(layout), f"{TOOLS}.HiveMetaStore"], r"Started the new metaserver on port", environment)


def _java(layout: Layout) -> List[str]:
    # Hadoop's jars come first, so that their logging (reload4j) is used.
    places = [
        _server_conf(layout),
        layout.run / "server-conf",
        layout.conf,
        JARS / "hadoop" / "*",
        unpacked_home() / "lib" / "*",
        JARS / "metastore" / "*",
    ]
    return [find_program("java"), *java_options(layout, "512m"), "-cp", os.pathsep.join(map(str, places))]
