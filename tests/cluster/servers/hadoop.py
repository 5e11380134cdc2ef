"""HDFS and YARN: their configuration, secured or not, and how to start each server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Dict, List, Mapping, Sequence
from xml.sax.saxutils import escape

from cluster.servers.artifacts import find_program
from cluster.servers.kerberos import get_ticket
from cluster.servers.layout import GROUPS, JARS, REALM, Layout
from cluster.servers.process import Server

HERE = Path(__file__).resolve().parent
HDFS = "org.apache.hadoop.hdfs.server"
YARN = "org.apache.hadoop.yarn.server"
PASSWORD = "not-a-secret"

# What Java 17 must open for Hadoop 3.3; Java 8 ignores it.
OPENS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.lang.reflect", "java.util", "java.net", "sun.nio.ch")),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
]

# A server of these tests lives for minutes: HotSpot's second compiler costs more time than it saves.
NO_SECOND_COMPILER = "-XX:TieredStopAtLevel=1"

# Keys of encryption zones: the one that etl may use, and one that no user of these tests may use.
ZONE_KEY, CLOSED_KEY = "zone-key", "closed-key"

# Created in HDFS at the start: path, owner, group, mode.
DIRECTORIES = [
    ("/tmp", "hdfs", "supergroup", "1777"),
    ("/user", "hdfs", "supergroup", "755"),
    ("/user/etl", "etl", "etl", "750"),
    ("/user/loader", "loader", "loader", "750"),
    ("/user/analyst", "analyst", "analyst", "750"),
    ("/user/scheduler", "scheduler", "scheduler", "750"),
    ("/warehouse", "hive", "hive", "1777"),
    ("/data", "etl", "data", "775"),
]

LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.hdfs.StateChange=WARN
log4j.logger.BlockStateChange=WARN
log4j.logger.org.apache.hadoop.hdfs.server.datanode.DataNode.clienttrace=WARN
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=WARN
"""

# A line for each call that NameNode audits, with user, path and caller, in a file of its own.
AUDIT_LOG4J = """\
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=INFO,audit
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.appender.audit=org.apache.log4j.FileAppender
log4j.appender.audit.file={file}
log4j.appender.audit.layout=org.apache.log4j.PatternLayout
log4j.appender.audit.layout.ConversionPattern=%m%n
"""

# Counters in JMX are at most a second old, instead of ten.
BENCH_METRICS = "*.period=1\n"

CLIENT_LOG4J = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""


def write_xml(file: Path, properties: Mapping[str, object]) -> None:
    rows = "".join(
        f"  <property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>\n" for name, value in properties.items()
    )
    file.write_text(f'<?xml version="1.0"?>\n<configuration>\n{rows}</configuration>\n')


def java_options(layout: Layout, heap: str) -> List[str]:
    fixed = ["-XX:+UseSerialGC", *OPENS, f"-Djava.security.krb5.conf={layout.krb5_conf}", "-Djava.net.preferIPv4Stack=true"]
    return [f"-Xmx{heap}", *([] if layout.bench else [NO_SECOND_COMPILER]), *fixed]


def class_path(layout: Layout) -> str:
    return os.pathsep.join([str(layout.run / "server-conf"), str(layout.conf), str(layout.run / "web"), str(JARS / "hadoop" / "*")])


def write_configuration(layout: Layout, extra: Mapping[str, Mapping[str, str]]) -> None:
    """Configuration for servers and clients; `extra`: further properties by file, such as {"hdfs-site": {...}}."""
    for page in ("hdfs", "datanode"):
        # The HDFS jars lack the web pages, and the servers do not start without their directories.
        (layout.run / "web" / "webapps" / page).mkdir(parents=True, exist_ok=True)
    (layout.run / "server-conf").mkdir(exist_ok=True)
    audit = AUDIT_LOG4J.format(file=layout.audit) if layout.bench else ""
    (layout.run / "server-conf" / "log4j.properties").write_text(LOG4J + audit)
    if layout.bench:
        (layout.run / "server-conf" / "hadoop-metrics2.properties").write_text(BENCH_METRICS)
    (layout.conf / "log4j.properties").write_text(CLIENT_LOG4J)
    files = {
        "core-site": _core(layout),
        "hdfs-site": _hdfs(layout),
        "yarn-site": _yarn(layout),
        "capacity-scheduler": _queues(),
        "mapred-site": {"mapreduce.framework.name": "yarn"},
        "kms-site": _kms(layout),
        "kms-acls": _key_acls(),
    }
    if layout.secure:
        _make_certificate(layout)
        files.update(_ssl(layout))
    for name, properties in files.items():
        write_xml(layout.conf / f"{name}.xml", {**properties, **extra.get(name, {})})


def _core(layout: Layout) -> Dict[str, object]:
    return {
        "fs.defaultFS": layout.namenode,
        "fs.trash.interval": 60,
        "fs.viewfs.mounttable.ours.link./user": f"{layout.namenode}/user",
        "hadoop.tmp.dir": layout.run / "tmp",
        "hadoop.security.authentication": "kerberos" if layout.secure else "simple",
        "hadoop.security.authorization": str(layout.secure).lower(),
        "hadoop.user.group.static.mapping.overrides": GROUPS,
        "hadoop.security.key.provider.path": f"kms://http@localhost:{layout.ports['kms']}/kms",
        # The metastore creates directories as the calling user; scheduler may run jobs as etl.
        "hadoop.proxyuser.hive.hosts": "*",
        "hadoop.proxyuser.hive.groups": "*",
        "hadoop.proxyuser.scheduler.hosts": "*",
        "hadoop.proxyuser.scheduler.users": "etl",
        # A router calls its NameNodes as the user who called it.
        "hadoop.proxyuser.hdfs.hosts": "*",
        "hadoop.proxyuser.hdfs.users": "*",
        # Spark names the job and the stage of each call.
        **({"hadoop.caller.context.enabled": "true"} if layout.bench else {}),
    }


def _hdfs(layout: Layout) -> Dict[str, object]:
    ports = layout.ports
    properties: Dict[str, object] = {
        "dfs.replication": 1,
        "dfs.namenode.name.dir": (layout.run / "namenode").as_uri(),
        "dfs.datanode.data.dir": (layout.run / "datanode").as_uri(),
        "dfs.namenode.rpc-address": f"localhost:{ports['namenode']}",
        "dfs.namenode.http-address": f"localhost:{ports['namenode_http']}",
        "dfs.namenode.https-address": f"localhost:{ports['namenode_http']}",
        "dfs.datanode.address": f"127.0.0.1:{ports['datanode']}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{ports['datanode_ipc']}",
        "dfs.datanode.http.address": f"127.0.0.1:{ports['datanode_http']}",
        "dfs.datanode.https.address": f"127.0.0.1:{ports['datanode_http']}",
        "dfs.datanode.hostname": "localhost",
        "dfs.namenode.fs-limits.min-block-size": 4096,
        "dfs.namenode.edits.noeditlogchannelflush": "true",
        "dfs.namenode.safemode.extension": 0,
        **(_sizes_for_bench() if layout.bench else _sizes_for_tests()),
        "dfs.permissions.superusergroup": "supergroup",
        "dfs.namenode.delegation.token.always-use": str(layout.secure).lower(),
    }
    if layout.secure:
        for server in ("namenode", "datanode"):
            properties[f"dfs.{server}.kerberos.principal"] = f"hdfs/localhost@{REALM}"
            properties[f"dfs.{server}.keytab.file"] = layout.keytab("hdfs/localhost")
        properties.update(
            {
                "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
                "dfs.web.authentication.kerberos.keytab": layout.keytab("hdfs/localhost"),
                "dfs.block.access.token.enable": "true",
                # A DataNode that protects its own protocol needs no privileged ports.
                "dfs.data.transfer.protection": "authentication",
                "dfs.http.policy": "HTTPS_ONLY",
            }
        )
    return properties


def key_file(layout: Layout) -> str:
    return f"jceks://file{layout.run}/keys.jceks"


def _kms(layout: Layout) -> Dict[str, object]:
    """A KMS that keeps its keys in a file and asks for Kerberos where the cluster does."""
    properties: Dict[str, object] = {
        "hadoop.kms.http.host": "localhost",
        "hadoop.kms.http.port": layout.ports["kms"],
        "hadoop.kms.key.provider.uri": key_file(layout),
        "hadoop.kms.authentication.type": "kerberos" if layout.secure else "simple",
        "hadoop.kms.proxyuser.scheduler.hosts": "*",
        "hadoop.kms.proxyuser.scheduler.users": "etl",
    }
    if layout.secure:
        properties["hadoop.kms.authentication.kerberos.principal"] = f"HTTP/localhost@{REALM}"
        properties["hadoop.kms.authentication.kerberos.keytab"] = layout.keytab("hdfs/localhost")
    return properties


def _key_acls() -> Dict[str, object]:
    """The NameNode makes encrypted keys for files but may not open them; of the users only etl may, and only those of one zone key."""
    acls: Dict[str, object] = {}
    for key in (ZONE_KEY, CLOSED_KEY):
        acls.update({f"key.acl.{key}.{act}": "hdfs" for act in ("GENERATE_EEK", "READ")})
        acls[f"key.acl.{key}.DECRYPT_EEK"] = "etl" if key == ZONE_KEY else "hdfs"
    return acls


def _sizes_for_tests() -> Dict[str, object]:
    return {
        # The tests' quotas are smaller than a block of 128 MiB.
        "dfs.blocksize": "16m",
        # Far below the default, so that a listing of a few hundred names comes in parts.
        "dfs.ls.limit": 200,
    }


def _sizes_for_bench() -> Dict[str, object]:
    """HDFS's own defaults, and what every client of a single DataNode needs: without it each file that is written waits 400 ms."""
    return {
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": 5,
        "dfs.client.block.write.locateFollowingBlock.retries": 12,
    }


def _yarn(layout: Layout) -> Dict[str, object]:
    ports = layout.ports
    properties: Dict[str, object] = {
        "yarn.resourcemanager.hostname": "localhost",
        "yarn.resourcemanager.address": f"localhost:{ports['resourcemanager']}",
        "yarn.resourcemanager.scheduler.address": f"localhost:{ports['rm_scheduler']}",
        "yarn.resourcemanager.resource-tracker.address": f"localhost:{ports['rm_tracker']}",
        "yarn.resourcemanager.admin.address": f"localhost:{ports['rm_admin']}",
        "yarn.resourcemanager.webapp.address": f"localhost:{ports['rm_web']}",
        "yarn.nodemanager.hostname": "localhost",
        "yarn.nodemanager.address": f"localhost:{ports['nodemanager']}",
        "yarn.nodemanager.localizer.address": f"localhost:{ports['nm_localizer']}",
        "yarn.nodemanager.webapp.address": f"localhost:{ports['nm_web']}",
        "yarn.nodemanager.collector-service.address": f"localhost:{ports['nm_collector']}",
        "yarn.nodemanager.local-dirs": layout.run / "nm-local",
        "yarn.nodemanager.log-dirs": layout.run / "nm-logs",
        "yarn.nodemanager.resource.memory-mb": 12288,
        "yarn.nodemanager.resource.cpu-vcores": 8,
        "yarn.scheduler.minimum-allocation-mb": 256,
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99.5,
        # Aggregation requires native code in a secured NodeManager ("Secure IO is not possible") and stops the server without it.
        "yarn.log-aggregation-enable": "false",
        "yarn.nodemanager.log.retain-seconds": 86400,
        # Finished applications stay visible for tests that look later.
        "yarn.nodemanager.delete.debug-delay-sec": 0,
        # What a real node has anyway: its own address, and /etc/krb5.conf.
        "yarn.nodemanager.env-whitelist": "JAVA_HOME," + ",".join(_node_environment(layout)),
        "yarn.resourcemanager.am.max-attempts": 2,
        # A container starts and ends with a heartbeat of its node: by default there is one each second.
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
        "yarn.acl.enable": "true",
    }
    if layout.secure:
        for server in ("resourcemanager", "nodemanager"):
            properties[f"yarn.{server}.principal"] = f"yarn/localhost@{REALM}"
            properties[f"yarn.{server}.keytab"] = layout.keytab("yarn/localhost")
    return properties


def _node_environment(layout: Layout) -> Dict[str, str]:
    """That of containers, too: their executors get the same options."""
    options = [] if layout.bench else [NO_SECOND_COMPILER]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1"}
    if layout.secure:
        environment["KRB5_CONFIG"] = str(layout.krb5_conf)
        options.append(f"-Djava.security.krb5.conf={layout.krb5_conf}")
    return {**environment, **({"JDK_JAVA_OPTIONS": " ".join(options)} if options else {})}


def _queues() -> Dict[str, object]:
    root = "yarn.scheduler.capacity.root"
    return {
        f"{root}.queues": "default,etl,closed",
        f"{root}.default.capacity": 50,
        f"{root}.etl.capacity": 49,
        f"{root}.closed.capacity": 1,
        f"{root}.etl.maximum-capacity": 100,
        f"{root}.default.maximum-capacity": 100,
        # ACLs add up along the path: a queue is closed only if the root is closed, and each queue is opened separately.
        f"{root}.acl_submit_applications": " ",
        f"{root}.acl_administer_queue": " ",
        f"{root}.default.acl_submit_applications": "*",
        f"{root}.etl.acl_submit_applications": "*",
        f"{root}.closed.acl_submit_applications": " ",
        "yarn.scheduler.capacity.maximum-am-resource-percent": 1.0,
        "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    }


def _make_certificate(layout: Layout) -> None:
    """A self-signed certificate for HTTPS on NameNode and DataNode."""
    store = layout.run / "keystore.jks"
    words = ["-genkeypair", "-alias", "localhost", "-keyalg", "RSA", "-validity", "30", "-dname", "CN=localhost"]
    subprocess.run(
        [find_program("keytool"), *words, "-keystore", str(store), "-storepass", PASSWORD, "-keypass", PASSWORD],
        check=True,
        capture_output=True,
    )


def _ssl(layout: Layout) -> Dict[str, Dict[str, object]]:
    store = layout.run / "keystore.jks"
    sides: Dict[str, Dict[str, object]] = {}
    for side in ("server", "client"):
        sides[f"ssl-{side}"] = {
            f"ssl.{side}.keystore.location": store,
            f"ssl.{side}.keystore.password": PASSWORD,
            f"ssl.{side}.keystore.keypassword": PASSWORD,
            f"ssl.{side}.truststore.location": store,
            f"ssl.{side}.truststore.password": PASSWORD,
        }
    return sides


def make_servers(layout: Layout) -> List[Server]:
    """Format the NameNode before its first start."""
    parts = [
        ("kms", "org.apache.hadoop.crypto.key.kms.server.KMSWebServer", "128m", r"KMS Started", "hdfs"),
        ("namenode", f"{HDFS}.namenode.NameNode", "512m", r"NameNode RPC up at", "hdfs"),
        ("datanode", f"{HDFS}.datanode.DataNode", "384m", r"[Ss]uccessfully registered with NN", "hdfs"),
        ("resourcemanager", f"{YARN}.resourcemanager.ResourceManager", "512m", r"Transitioned to active state", "yarn"),
        ("nodemanager", f"{YARN}.nodemanager.NodeManager", "384m", r"Registered with ResourceManager as", "yarn"),
    ]
    return [
        Server(
            name,
            [find_program("java"), *java_options(layout, heap), f"-Dkms.config.dir={layout.conf}", "-cp", class_path(layout), main],
            ready,
            {"HADOOP_USER_NAME": user, **_node_environment(layout)},
            # A thread of a secured ResourceManager polls for late token renewals without a pause (YARN-9768): it would use up a core.
            yields=name == "resourcemanager",
        )
        for name, main, heap, ready, user in parts
    ]


def make_keys(layout: Layout) -> None:
    """Those of encryption zones, in the file that the KMS reads when it starts."""
    for key in (ZONE_KEY, CLOSED_KEY):
        run_java(layout, ["org.apache.hadoop.crypto.key.KeyShell", "create", key, "-provider", key_file(layout)])


def format_namenode(layout: Layout) -> None:
    run_java(layout, [f"{HDFS}.namenode.NameNode", "-format", "-force", "-nonInteractive"])


def make_directories(layout: Layout) -> None:
    """As superuser; one JVM for all of them."""
    words = [word for directory in DIRECTORIES for word in directory]
    run_java(layout, [str(HERE / "MakeDirectories.java"), str(layout.keytab("hdfs/localhost")) if layout.secure else "", *words])


def run_admin(layout: Layout, words: Sequence[str]) -> str:
    """Run `dfs` or `dfsadmin` as superuser and return its stdout. Raises RuntimeError with the reason."""
    mains = {"dfs": "org.apache.hadoop.fs.FsShell", "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin"}
    environment = {}
    if layout.secure:
        cache = layout.run / "tmp" / "superuser"
        get_ticket(layout, "hdfs/localhost", cache)
        environment["KRB5CCNAME"] = f"FILE:{cache}"
    return run_java(layout, [mains[words[0]], *words[1:]], environment)


def run_java(layout: Layout, words: List[str], environment: Mapping[str, str] = {}) -> str:  # noqa: B006 - never changed
    command = [find_program("java"), *java_options(layout, "256m"), "-cp", class_path(layout), *words]
    environ = {**os.environ, "HADOOP_USER_NAME": "hdfs", **environment}
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environ, cwd=layout.run / "tmp")
    if result.returncode != 0:
        raise RuntimeError(f"{Path(words[0]).name} failed:\n" + "\n".join(result.stderr.splitlines()[-12:]))
    return result.stdout
