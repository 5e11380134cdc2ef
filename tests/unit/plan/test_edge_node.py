"""What the facts of an edge node mean."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from hivekeeper.plan import edge_node
from hivekeeper.plan.doctor import FIX, MACHINE, OK, SKIP, WARN, Check
from hivekeeper.plan.edge_node import ClientConf, HadoopFile, JavaFacts, KeytabFacts, SparkFacts, TicketFacts

ETC = "/etc/hadoop/conf"
KEYS = "Keytab name: FILE:/k\nKVNO Timestamp         Principal\n   2 11/21/26 08:00:00 etl@EXAMPLE.COM\n"
KEYTAB = KeytabFacts("/k", "etl", "-rw-------", True, KEYS)


def a_file(name, error="", **properties):
    return HadoopFile(f"{ETC}/{name}", {key.replace("_", "."): value for key, value in properties.items()}, error)


def a_conf(core=None, hdfs=None, yarn=None, **more):
    """A client configuration without faults."""
    files = {
        "core-site.xml": core or a_file("core-site.xml", fs_defaultFS="hdfs://nn:8020"),
        "hdfs-site.xml": hdfs or a_file("hdfs-site.xml"),
        "yarn-site.xml": yarn or a_file("yarn-site.xml", yarn_resourcemanager_hostname="rm"),
    }
    return ClientConf(**{"variables": {"HADOOP_CONF_DIR": ETC}, "files": files, **more})


def without(conf, name):
    return replace(conf, files={each: file for each, file in conf.files.items() if each != name})


def assert_check(check, level, what):
    """The finding says this, is about this machine, and says what to do if something is wrong."""
    assert (check.level, check.what) == (level, what)
    assert check.place is MACHINE
    assert bool(check.next) == (level in (WARN, FIX))


@pytest.mark.parametrize(
    ("version", "level"),
    [("3.3.2.3.3.7190.0-91", OK), ("3.5.9", OK), ("4.0.1", OK), ("3.4.1", WARN), ("", WARN), ("2.4.8", FIX), ("3.2.0", FIX)],
)
def test_a_spark_is_judged_by_its_version(version, level):
    check = edge_node.judge_spark(SparkFacts("/spark/bin/spark-submit", "/spark", version))
    assert (check.level, bool(check.next)) == (level, level != OK)
    assert version in check.what
    assert "/spark/bin/spark-submit" in check.what


@pytest.mark.parametrize(
    ("java", "spark", "level", "what"),
    [
        ("17.0.15", "3.5.9", OK, "17.0.15 at /j"),
        ("1.8.0_392", "3.5.9", OK, "1.8.0_392 at /j"),
        ("11.0.2", "", OK, "11.0.2 at /j"),
        ("21.0.4", "3.5.9", FIX, "21.0.4 at /j does not fit Spark 3.5.9"),
        ("21.0.4", "4.0.1", OK, "21.0.4 at /j"),
        ("11.0.2", "4.0.1", FIX, "11.0.2 at /j does not fit Spark 4.0.1"),
        ("7", None, OK, "7 at /j (whether it fits depends on the version of Spark)"),
        ("", "3.5.9", FIX, "/j does not tell its version"),
    ],
)
def test_a_java_must_fit_the_spark(java, spark, level, what):
    assert_check(edge_node.judge_java(JavaFacts("/j", java), spark), level, what)


def test_the_remedy_for_java_names_the_versions_that_fit():
    assert edge_node.judge_java(JavaFacts("/j", "11"), "4.0.1").next.endswith("Java 17 or 21")
    assert edge_node.judge_java(JavaFacts("/j", "21"), "3.3.2").next.endswith("Java 8, 11 or 17")


@pytest.mark.parametrize(
    ("conf", "level", "what"),
    [
        (a_conf(), OK, f"hdfs://nn:8020, from {ETC}/core-site.xml"),
        (a_conf(core=a_file("core-site.xml", fs_default_name="hdfs://old")), OK, f"hdfs://old, from {ETC}/core-site.xml"),
        (a_conf(no_directories=("HADOOP_CONF_DIR",)), FIX, f"HADOOP_CONF_DIR is {ETC}, which is not a directory"),
        (without(a_conf(), "core-site.xml"), FIX, f"{ETC} holds no core-site.xml"),
        (without(a_conf(), "hdfs-site.xml"), FIX, f"{ETC} holds no hdfs-site.xml"),
        (a_conf(hdfs=a_file("hdfs-site.xml", "not XML")), FIX, f"{ETC}/hdfs-site.xml cannot be read: not XML"),
        (a_conf(core=a_file("core-site.xml")), FIX, f"{ETC}/core-site.xml: fs.defaultFS is not set, so paths would mean local files"),
        (
            a_conf(core=a_file("core-site.xml", fs_defaultFS="file:///")),
            FIX,
            f"{ETC}/core-site.xml: fs.defaultFS is file:///, so paths would mean local files",
        ),
        (ClientConf(), FIX, "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"),
        (ClientConf(spark_env="/spark/conf/spark-env.sh"), OK, "left to /spark/conf/spark-env.sh; its files are not checked here"),
    ],
)
def test_with_yarn_the_client_configuration_must_lead_to_a_cluster(conf, level, what):
    assert_check(edge_node.judge_hadoop_conf(conf, "yarn"), level, what)


def test_without_yarn_local_files_may_be_meant():
    core = a_file("core-site.xml")
    assert_check(edge_node.judge_hadoop_conf(ClientConf(), "local[2]"), OK, "not set: spark.master local[2] works on local files")
    warned = edge_node.judge_hadoop_conf(a_conf(core=core), "local[2]")
    assert_check(warned, WARN, f"{core.path}: fs.defaultFS is not set: paths mean local files")


@pytest.mark.parametrize(
    ("conf", "level", "what"),
    [
        (a_conf(), OK, f"ResourceManager rm, from {ETC}/yarn-site.xml"),
        (ClientConf(), OK, "left to spark-env.sh"),
        (without(a_conf(), "yarn-site.xml"), FIX, f"{ETC} holds no yarn-site.xml"),
        (a_conf(yarn=a_file("yarn-site.xml", "not XML")), FIX, f"{ETC}/yarn-site.xml cannot be read: not XML"),
        (a_conf(yarn=a_file("yarn-site.xml", x="y")), FIX, f"{ETC}/yarn-site.xml names no ResourceManager"),
    ],
)
def test_with_yarn_a_resource_manager_must_be_named(conf, level, what):
    assert_check(edge_node.judge_yarn_conf(conf, "yarn"), level, what)


def test_without_yarn_no_resource_manager_is_needed():
    assert_check(edge_node.judge_yarn_conf(ClientConf(), "local[*]"), OK, "not needed: spark.master is local[*]")


def test_the_resource_managers_of_a_pair_count_before_a_single_address():
    yarn = HadoopFile("/y", {"yarn.resourcemanager.hostname": "rm", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2"})
    assert edge_node.judge_yarn_conf(a_conf(yarn=yarn), "yarn").what == "ResourceManager rm1,rm2, from /y"


EMPTY, HMS = HadoopFile("/a/hive-site.xml"), HadoopFile("/b/hive-site.xml", {"hive.metastore.uris": "thrift://hms:9083"})


@pytest.mark.parametrize(
    ("hive_sites", "master", "configured", "level", "what"),
    [
        ((EMPTY, HMS), "yarn", "", OK, "thrift://hms:9083, from /b/hive-site.xml"),
        ((HMS,), "yarn", "thrift://other", OK, "thrift://other, from spark.extra_conf"),
        ((), "yarn", "", FIX, "no hive-site.xml"),
        ((EMPTY,), "yarn", "", FIX, "/a/hive-site.xml does not set hive.metastore.uris"),
        ((HadoopFile("/a", error="not XML"), HMS), "local[*]", "", FIX, "/a cannot be read: not XML"),
        ((EMPTY,), "local[*]", "", WARN, "no hive.metastore.uris: Spark uses an embedded metastore of its own"),
    ],
)
def test_a_cluster_needs_a_metastore(hive_sites, master, configured, level, what):
    assert_check(edge_node.judge_hive_conf(a_conf(hive_sites=hive_sites), master, configured), level, what)


@pytest.mark.parametrize(
    ("facts", "level", "what"),
    [
        (None, OK, "none configured: the user's own ticket is used"),
        (KEYTAB, OK, "etl@EXAMPLE.COM in /k"),
        (replace(KEYTAB, mode=""), FIX, "/k is not there"),
        (replace(KEYTAB, readable=False), FIX, "/k cannot be read by etl"),
        (replace(KEYTAB, mode="-rw-r--r--"), FIX, "/k is open to every user of this machine (-rw-r--r--)"),
        (replace(KEYTAB, mode="-rw-r-----"), WARN, "etl@EXAMPLE.COM in /k, which its group may read (-rw-r-----)"),
        (replace(KEYTAB, listed=None), FIX, "klist is not on PATH, so the contents of /k are unknown"),
        (replace(KEYTAB, error="klist: Bad format in keytab"), FIX, "/k: klist: Bad format in keytab"),
        (replace(KEYTAB, listed=KEYS.replace("etl@", "petl@")), FIX, "/k holds no key of etl@EXAMPLE.COM"),
    ],
)
def test_a_keytab_is_there_private_and_holds_the_principal(facts, level, what):
    assert_check(edge_node.judge_keytab(facts, "etl@EXAMPLE.COM"), level, what)


@pytest.mark.parametrize("wrong", [{"mode": "-rw-r--r--"}, {"mode": "-rw-r-----"}, {"listed": ""}])
def test_a_command_about_a_keytab_has_its_path_as_one_word(wrong):
    check = edge_node.judge_keytab(replace(KEYTAB, path="/a b/it's", **wrong), "etl@EXAMPLE.COM")
    assert "/a b/it's" in shlex.split(check.next)


def test_a_principal_may_leave_out_its_realm():
    assert edge_node.holds_principal(KEYS, "etl")
    assert not edge_node.holds_principal(KEYS, "et")
    assert not edge_node.holds_principal(KEYS, "etl@OTHER.COM")


@pytest.mark.parametrize(
    ("conf", "master", "reason"),
    [
        (a_conf(), "yarn", f"not needed: hadoop.security.authentication in {ETC}/core-site.xml is not kerberos"),
        (a_conf(core=a_file("core-site.xml", hadoop_security_authentication="kerberos")), "yarn", ""),
        (a_conf(core=a_file("core-site.xml", hadoop_security_authentication="kerberos")), "local[*]", ""),
        (a_conf(core=a_file("core-site.xml", "not XML")), "local[*]", ""),
        (ClientConf(), "local[*]", "not needed: spark.master local[*] works on local files"),
        (ClientConf(), "yarn", ""),
    ],
)
def test_a_ticket_is_needed_unless_the_configuration_says_otherwise(conf, master, reason):
    assert edge_node.find_no_ticket_reason(conf, master) == reason


@pytest.mark.parametrize(
    ("facts", "level", "what"),
    [
        (TicketFacts(seconds_left=35984, seconds_renewable=169200), OK, "of this user, for 9 h 59 min, renewable for 47 h"),
        (TicketFacts(seconds_left=3600), OK, "of this user, for 1 h 0 min"),
        (TicketFacts(seconds_left=1185), WARN, "of this user, for 19 more minutes"),
        (TicketFacts(seconds_left=60, seconds_renewable=3600), WARN, "of this user, for 1 more minute, renewable for 1 h"),
        (TicketFacts(), WARN, "of this user; how long it lasts cannot be read from klist"),
        (TicketFacts(missing="klist"), FIX, "klist is not on PATH"),
        (TicketFacts(error="no credentials"), FIX, "there is no valid one"),
    ],
)
def test_a_ticket_of_the_user_must_last_for_an_hour(facts, level, what):
    assert_check(edge_node.judge_own_ticket(facts), level, what)


@pytest.mark.parametrize(
    ("facts", "level", "what"),
    [
        (TicketFacts(seconds_left=600), OK, "from the keytab, for 0 h 10 min"),
        (TicketFacts(), WARN, "from the keytab; how long it lasts cannot be read from klist"),
        (TicketFacts(missing="kinit"), FIX, "kinit is not on PATH"),
        (TicketFacts(error="Preauthentication failed"), FIX, "the KDC gives none to etl: Preauthentication failed"),
    ],
)
def test_a_ticket_from_the_keytab_is_renewed_so_it_need_not_last(facts, level, what):
    assert_check(edge_node.judge_keytab_ticket(facts, "etl"), level, what)


@pytest.mark.parametrize(
    ("path", "writable", "level", "what"),
    [
        (None, False, OK, "none configured: the log goes to stderr"),
        ("/var/log/hk", True, OK, "/var/log/hk"),
        ("/var/log/hk", False, FIX, "/var/log/hk cannot be written to by etl"),
    ],
)
def test_a_log_directory_can_be_written_to(path, writable, level, what):
    assert_check(edge_node.judge_log_dir(path, writable, "etl"), level, what)


def test_files_that_cannot_be_read_are_named():
    assert_check(edge_node.judge_files(("/a", "/b"), [], None), OK, "2 local ones to be shipped with the job")
    assert_check(edge_node.judge_files(("/a", "/b"), ["/b"], None), FIX, "cannot be read: /b")


def test_the_cluster_is_checked_only_if_a_job_can_be_started():
    fine = [Check(name, OK, "") for name in edge_node.MACHINE_CHECKS]
    assert edge_node.can_check_cluster(fine)
    for wrong in edge_node.MACHINE_CHECKS:
        for level in (FIX, SKIP):
            checks = [replace(check, level=level if check.name == wrong else WARN) for check in fine]
            assert edge_node.can_check_cluster(checks) == (wrong in ("hive-conf", "keytab", "ticket", "log-dir")), wrong


def test_some_needs_depend_on_the_configuration():
    assert edge_node.find_needs("yarn-conf", on_yarn=False, with_keytab=True) == ("configuration",)
    assert edge_node.find_needs("yarn-conf", on_yarn=True, with_keytab=False) == ("configuration", "hadoop-conf")
    assert edge_node.find_needs("ticket", on_yarn=True, with_keytab=False) == ("configuration",)
    assert edge_node.find_needs("ticket", on_yarn=False, with_keytab=True) == ("configuration", "keytab")
