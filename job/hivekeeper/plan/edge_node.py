"""Decide what the facts of an edge node mean, before any Java is started: facts in, one finding each out.

Pure. The first four checks must work without Python: bin/lib/doctor.bash runs them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import quoting
from hivekeeper.plan.doctor import FIX, MACHINE, OK, SKIP, WARN, Check, Level
from hivekeeper.reasons import Reason

BASH_CHECKS = ("bash", "archive", "python", "temp-dir")

# All other checks of the machine, in order, and the checks that each one always needs. docs/doctor.md explains each.
NEEDS: Mapping[str, Tuple[str, ...]] = {
    "configuration": ("archive", "python", "temp-dir"),
    "spark": ("configuration",),
    "java": (),
    "hadoop-conf": ("configuration",),
    "yarn-conf": ("configuration",),
    "hive-conf": ("spark",),
    "keytab": ("configuration",),
    "ticket": ("configuration",),
    "log-dir": ("configuration",),
    "files": ("configuration",),
}
MACHINE_CHECKS = (*BASH_CHECKS, *NEEDS)

# Without these no job can be started, so the cluster cannot be checked.
NEEDED_FOR_CLUSTER = (*BASH_CHECKS, "configuration", "java", "spark", "hadoop-conf", "yarn-conf", "files")

CORE, HDFS, YARN = "core-site.xml", "hdfs-site.xml", "yarn-site.xml"
METASTORE_URIS = "hive.metastore.uris"
FILE_SYSTEM_KEYS = ("fs.defaultFS", "fs.default.name")
RESOURCE_MANAGER_KEYS = ("yarn.resourcemanager.ha.rm-ids", "yarn.resourcemanager.address", "yarn.resourcemanager.hostname")

HADOOP_REMEDY = "set HADOOP_CONF_DIR to the directory of the cluster's client configuration, such as /etc/hadoop/conf"
CLIENT_REMEDY = "install the Kerberos client (krb5-workstation, krb5-user)"

# The user's own ticket is not renewed during a run, so it must last this long. Spark renews a ticket from a keytab.
OWN_TICKET_SECONDS = 3600


@dataclass(frozen=True)
class SparkFacts:
    """A spark-submit that was found. `version`: "" if unknown."""

    submit: str
    home: str
    version: str


@dataclass(frozen=True)
class JavaFacts:
    """A Java that was found. `version`: "" if unknown."""

    path: str
    version: str


@dataclass(frozen=True)
class HadoopFile:
    """A Hadoop XML file. `error`: "" unless it cannot be read."""

    path: str
    properties: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    def first_of(self, names: Sequence[str]) -> str:
        """The value of the first of these properties that is set; "" if none is."""
        return next((self.properties[name] for name in names if self.properties.get(name)), "")


@dataclass(frozen=True)
class ClientConf:
    """The cluster's client configuration.

    `variables`: HADOOP_CONF_DIR and YARN_CONF_DIR, if set; `files`: the files found through them, by name.
    `hive_sites`: every hive-site.xml that Spark may read, in order. `spark_env`: a spark-env.sh that sets HADOOP_CONF_DIR, or "".
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    no_directories: Tuple[str, ...] = ()
    files: Mapping[str, HadoopFile] = field(default_factory=dict)
    hive_sites: Tuple[HadoopFile, ...] = ()
    spark_env: str = ""

    @property
    def directory(self) -> str:
        return next(iter(self.variables.values()), "")


@dataclass(frozen=True)
class KeytabFacts:
    """A keytab. `mode` as shown by ls, "" if it does not exist. `listed`: None without klist; `error`: the error from klist."""

    path: str
    user: str
    mode: str = ""
    readable: bool = False
    listed: Optional[str] = None
    error: str = ""


@dataclass(frozen=True)
class TicketFacts:
    """A ticket. `missing`: the program not found on PATH; `error`: why there is no ticket; times are None if klist does not show them."""

    missing: str = ""
    error: str = ""
    seconds_left: Optional[int] = None
    seconds_renewable: Optional[int] = None


def find_needs(name: str, on_yarn: bool, with_keytab: bool) -> Tuple[str, ...]:
    """The checks that this check needs under the configuration."""
    more = {"yarn-conf": ("hadoop-conf",) if on_yarn else (), "ticket": ("keytab",) if with_keytab else ()}
    return (*NEEDS[name], *more.get(name, ()))


def fits(level: Optional[Level]) -> bool:
    """Whether checks that need one with this level can go on."""
    return level in (OK, WARN)


def can_check_cluster(checks: Iterable[Check]) -> bool:
    levels = {check.name: check.level for check in checks}
    return all(fits(levels.get(name)) for name in NEEDED_FOR_CLUSTER)


def skip_cluster() -> Check:
    return skip("cluster", "not checked: fix what is reported above first")


def skip(name: str, why: str) -> Check:
    return Check(name, SKIP, why, place=MACHINE)


def judge_configuration(master: str, deploy_mode: str, conf_dir: str) -> Check:
    return _ok("configuration", f"spark.master {master}, deploy mode {deploy_mode}; conf directory {conf_dir or 'none'}")


def judge_spark(facts: SparkFacts) -> Check:
    version, at = facts.version, f"{facts.version} at {facts.submit}"
    if not version:
        unknown = f"the version of {facts.submit} is unknown"
        return _warn("spark", unknown, f"see that it is Spark 3.3, 3.5 or 4: {facts.submit} --version")
    if version.startswith(("3.3", "3.5", "4.")):
        return _ok("spark", at)
    if version.startswith("3.4"):
        return _warn("spark", f"{at} is not a tested version", "prefer Spark 3.3, 3.5 or 4")
    return _fix("spark", f"{at} is not supported", "point SPARK_HOME or spark.submit_command to Spark 3.3, 3.5 or 4")


def judge_java(facts: JavaFacts, spark_version: Optional[str]) -> Check:
    """Judge Java. `spark_version`: None if there is no usable Spark, "" if its version is unknown."""
    major = re.match(r"(?:1\.)?(\d+)", facts.version)
    wanted = ("17", "21") if (spark_version or "").startswith("4.") else ("8", "11", "17")
    text = f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    remedy, at = f"set JAVA_HOME or spark.java_home to Java {text}", f"{facts.version} at {facts.path}"
    if major is None:
        return _fix("java", f"{facts.path} does not tell its version", remedy)
    if spark_version is None:
        return _ok("java", f"{at} (whether it fits depends on the version of Spark)")
    if major[1] in wanted:
        return _ok("java", at)
    return _fix("java", f"{at} does not fit Spark {spark_version}", remedy)


def judge_hadoop_conf(conf: ClientConf, master: str) -> Check:
    for name in conf.no_directories:
        return _fix("hadoop-conf", f"{name} is {conf.variables[name]}, which is not a directory", HADOOP_REMEDY)
    if not conf.variables:
        return _judge_no_hadoop_conf(conf, master)
    for name in (CORE, HDFS):
        if name not in conf.files:
            return _fix("hadoop-conf", f"{conf.directory} holds no {name}", HADOOP_REMEDY)
        if conf.files[name].error:
            return _unreadable("hadoop-conf", conf.files[name])
    core = conf.files[CORE]
    default_fs = core.first_of(FILE_SYSTEM_KEYS)
    if default_fs and not default_fs.startswith("file:"):
        return _ok("hadoop-conf", f"{default_fs}, from {core.path}")
    what = f"{core.path}: fs.defaultFS is {default_fs or 'not set'}"
    if master == "yarn":
        return _fix("hadoop-conf", f"{what}, so paths would mean local files", HADOOP_REMEDY)
    return _warn("hadoop-conf", f"{what}: paths mean local files", HADOOP_REMEDY)


def _judge_no_hadoop_conf(conf: ClientConf, master: str) -> Check:
    """Judge a missing HADOOP_CONF_DIR: correct only for local files, or if spark-env.sh sets it."""
    if conf.spark_env:
        return _ok("hadoop-conf", f"left to {conf.spark_env}; its files are not checked here")
    if master == "yarn":
        return _fix("hadoop-conf", "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set", HADOOP_REMEDY)
    return _ok("hadoop-conf", f"not set: spark.master {master} works on local files")


def judge_yarn_conf(conf: ClientConf, master: str) -> Check:
    """Judge yarn-site.xml: without an address of the ResourceManager its clients try 0.0.0.0:8032 for ever."""
    if master != "yarn":
        return _ok("yarn-conf", f"not needed: spark.master is {master}")
    if not conf.variables:
        return _ok("yarn-conf", "left to spark-env.sh")
    file = conf.files.get(YARN)
    if file is None:
        return _fix("yarn-conf", f"{conf.directory} holds no {YARN}", "copy it from the cluster, or correct HADOOP_CONF_DIR")
    if file.error:
        return _unreadable("yarn-conf", file)
    address = file.first_of(RESOURCE_MANAGER_KEYS)
    if not address:
        remedy = "set yarn.resourcemanager.address there; without it clients try 0.0.0.0:8032"
        return _fix("yarn-conf", f"{file.path} names no ResourceManager", remedy)
    return _ok("yarn-conf", f"ResourceManager {address}, from {file.path}")


def judge_hive_conf(conf: ClientConf, master: str, configured_uris: str) -> Check:
    """Judge hive-site.xml. `configured_uris`: the metastore named in spark.extra_conf."""
    if configured_uris:
        return _ok("hive-conf", f"{configured_uris}, from spark.extra_conf")
    for file in conf.hive_sites:
        if file.error:
            return _unreadable("hive-conf", file)
        if file.properties.get(METASTORE_URIS):
            return _ok("hive-conf", f"{file.properties[METASTORE_URIS]}, from {file.path}")
    if master == "yarn":
        what = f"{conf.hive_sites[-1].path} does not set {METASTORE_URIS}" if conf.hive_sites else "no hive-site.xml"
        remedy = f"put a hive-site.xml with {METASTORE_URIS} into HADOOP_CONF_DIR or Spark's conf directory"
        return _fix("hive-conf", what, remedy)
    what = f"no {METASTORE_URIS}: Spark uses an embedded metastore of its own"
    return _warn("hive-conf", what, "for a cluster put its hive-site.xml into HADOOP_CONF_DIR")


def judge_keytab(facts: Optional[KeytabFacts], principal: str) -> Check:
    """Judge a keytab; None if none is configured."""
    if facts is None:
        return _ok("keytab", "none configured: the user's own ticket is used")
    path, mode = facts.path, facts.mode
    if not mode:
        return _fix("keytab", f"{path} is not there", "correct kerberos.keytab")
    if not facts.readable:
        return _fix("keytab", f"{path} cannot be read by {facts.user}", "correct its owner and permissions, or kerberos.keytab")
    if mode[7:10] != "---":
        return _fix("keytab", f"{path} is open to every user of this machine ({mode})", f"chmod 600 {quoting.shell(path)}")
    if facts.listed is None:
        return _fix("keytab", f"klist is not on PATH, so the contents of {path} are unknown", CLIENT_REMEDY)
    if facts.error:
        return _fix("keytab", f"{path}: {facts.error}", "fetch it again from the KDC (ktutil, kadmin)")
    if not holds_principal(facts.listed, principal):
        remedy = f"correct kerberos.principal; klist -kt {quoting.shell(path)} lists what it holds"
        return _fix("keytab", f"{path} holds no key of {principal}", remedy)
    if mode[4:7] != "---":
        return _warn(
            "keytab",
            f"{principal} in {path}, which its group may read ({mode})",
            f"chmod 600 {quoting.shell(path)} unless that is intended",
        )
    return _ok("keytab", f"{principal} in {path}")


def holds_principal(listed: str, principal: str) -> bool:
    """Whether a list of keys contains this principal; its realm may be omitted."""
    return any(word == principal or ("@" not in principal and word.startswith(f"{principal}@")) for word in listed.split())


def find_no_ticket_reason(conf: ClientConf, master: str) -> str:
    """Why no ticket is needed without a keytab; "" if one is."""
    core = conf.files.get(CORE)
    if core and not core.error and core.properties.get("hadoop.security.authentication") != "kerberos":
        return f"not needed: hadoop.security.authentication in {core.path} is not kerberos"
    if not conf.variables and master != "yarn":
        return f"not needed: spark.master {master} works on local files"
    return ""


def asks_for_ticket(conf: ClientConf) -> bool:
    """Whether the cluster's client configuration requires a Kerberos ticket."""
    core = conf.files.get(CORE)
    return core is not None and core.properties.get("hadoop.security.authentication") == "kerberos"


def judge_no_ticket(reason: str) -> Check:
    return _ok("ticket", reason)


def judge_own_ticket(facts: TicketFacts) -> Check:
    if facts.missing:
        return _fix("ticket", f"{facts.missing} is not on PATH", CLIENT_REMEDY)
    if facts.error:
        return _fix("ticket", "there is no valid one", "run kinit, or set kerberos.principal and kerberos.keytab")
    return _judge_times(facts, "of this user", OWN_TICKET_SECONDS)


def judge_keytab_ticket(facts: TicketFacts, principal: str) -> Check:
    if facts.missing:
        return _fix("ticket", f"{facts.missing} is not on PATH", CLIENT_REMEDY)
    if facts.error:
        remedy = "fetch the keytab again (a new password makes the old one invalid), or fix krb5.conf"
        return _fix("ticket", f"the KDC gives none to {principal}: {facts.error}", remedy)
    return _judge_times(facts, "from the keytab", 0)


def _judge_times(facts: TicketFacts, whose: str, wanted_seconds: int) -> Check:
    left = facts.seconds_left
    if left is None:
        return _warn("ticket", f"{whose}; how long it lasts cannot be read from klist", "look yourself: klist")
    hours = f", renewable for {facts.seconds_renewable // 3600} h" if facts.seconds_renewable is not None else ""
    if left < wanted_seconds:
        remedy = "kinit -R or kinit before a longer run, or configure a keytab, from which Spark gets new ones"
        minutes = left // 60
        return _warn("ticket", f"{whose}, for {minutes} more minute{'' if minutes == 1 else 's'}{hours}", remedy)
    return _ok("ticket", f"{whose}, for {left // 3600} h {left % 3600 // 60} min{hours}")


def judge_log_dir(path: Optional[str], writable: bool, user: str) -> Check:
    if not path:
        return _ok("log-dir", "none configured: the log goes to stderr")
    if writable:
        return _ok("log-dir", path)
    return _fix("log-dir", f"{path} cannot be written to by {user}", "make it a directory of this user, or correct log_dir")


def judge_files(shipped: Sequence[str], unreadable: List[str], refused: Optional[Reason]) -> Check:
    """Judge the local files shipped with the job. The job itself checks paths on the cluster."""
    if refused is not None:
        return Check("files", FIX, refused.what, refused.next, MACHINE, cause=refused.code.code)
    if unreadable:
        remedy = "correct spark.python_env, spark.archives, spark.extra_files, spark.py_files or spark.archive"
        return _fix("files", f"cannot be read: {' '.join(unreadable)}", remedy)
    return _ok("files", f"{len(shipped)} local ones to be shipped with the job")


def _unreadable(name: str, file: HadoopFile) -> Check:
    return _fix(name, f"{file.path} cannot be read: {file.error}", "copy it from the cluster again")


def _ok(name: str, what: str) -> Check:
    return Check(name, OK, what, place=MACHINE)


def _warn(name: str, what: str, remedy: str) -> Check:
    return Check(name, WARN, what, remedy, MACHINE)


def _fix(name: str, what: str, remedy: str) -> Check:
    return Check(name, FIX, what, remedy, MACHINE)
