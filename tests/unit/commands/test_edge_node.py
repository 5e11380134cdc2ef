"""The checks of this machine together: which run, which are skipped, and what each one is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple

import pytest

from hivekeeper.commands.edge_node import LauncherFacts, check_machine
from hivekeeper.config import layers
from hivekeeper.errors import UsageError
from hivekeeper.plan.doctor import FIX, MACHINE, OK, SKIP, Check
from hivekeeper.plan.edge_node import (
    BASH_CHECKS,
    MACHINE_CHECKS,
    ClientConf,
    HadoopFile,
    JavaFacts,
    KeytabFacts,
    SparkFacts,
    TicketFacts,
    can_check_cluster,
)
from hivekeeper.reasons import Code, Reason

BASH = tuple(Check(name, OK, "", place=MACHINE) for name in BASH_CHECKS)
YARN = ("spark.master=yarn",)
KEYTAB = ("kerberos.principal=etl", "kerberos.keytab=/k")


@dataclass
class HealthyMachine:
    """A healthy edge node, except for what a test changes."""

    java_version: str = "17"
    spark_version: str = "3.5.9"
    kerberos: str = "kerberos"
    mode: str = "-rw-------"
    ticket: TicketFacts = TicketFacts(seconds_left=36000)
    conf_dir: str = "/etc/hivekeeper"
    user: str = "etl"
    unreadable: Tuple[str, ...] = ()
    untrusted: Optional[Reason] = None
    spark_home: str = "not asked"

    def spark(self, submit):
        return SparkFacts(submit, "/spark", self.spark_version)

    def java(self):
        return JavaFacts("/java", self.java_version)

    def client_conf(self, spark_home):
        self.spark_home = spark_home
        core = HadoopFile("/c/core-site.xml", {"fs.defaultFS": "hdfs://nn", "hadoop.security.authentication": self.kerberos})
        yarn = HadoopFile("/c/yarn-site.xml", {"yarn.resourcemanager.address": "rm"})
        files = {"core-site.xml": core, "hdfs-site.xml": HadoopFile("/c/hdfs-site.xml"), "yarn-site.xml": yarn}
        hive = HadoopFile("/c/hive-site.xml", {"hive.metastore.uris": "thrift://hms"})
        return ClientConf({"HADOOP_CONF_DIR": "/c"}, (), files, (hive,))

    def keytab(self, path):
        return KeytabFacts(path, self.user, self.mode, True, "2 etl@EXAMPLE.COM")

    def own_ticket(self):
        return self.ticket

    def keytab_ticket(self, principal, keytab):
        return replace(self.ticket, error=f"{principal} {keytab} refused") if self.ticket.error else self.ticket

    def can_log_to(self, path):
        return path == "/log"

    def find_unreadable(self, paths):
        return [path for path in paths if path in self.unreadable]

    def refuse_shipped(self, _config):
        return self.untrusted


def check(machine=None, sets=YARN, found=BASH, load=None, **launcher):
    facts = LauncherFacts(found, "/spark/bin/spark-submit", **launcher)
    return list(check_machine(machine or HealthyMachine(), facts, load or (lambda: layers.load([], {}, {}, sets))))


def levels_of(checks):
    return {check.name: check.level for check in checks}


def skipped(checks):
    return {check.name: check.what for check in checks if check.level is SKIP}


def one(checks, name):
    return next(check for check in checks if check.name == name)


@pytest.mark.parametrize("sets", [YARN, (*YARN, *KEYTAB), ("spark.master=local[2]",)])
def test_where_all_is_well_every_check_is_made_in_order_and_is_ok(sets):
    checks = check(sets=sets)
    assert [check.name for check in checks] == list(MACHINE_CHECKS)
    assert set(levels_of(checks).values()) == {OK}
    assert {check.place for check in checks} == {MACHINE}


def test_a_configuration_that_is_refused_is_told_in_its_own_words_and_java_is_still_checked():
    def refuse():
        raise UsageError("unknown key block_sise_mb", next="did you mean block_size_mb?")

    checks = check(load=refuse)
    assert one(checks, "configuration") == Check("configuration", FIX, "unknown key block_sise_mb", "did you mean block_size_mb?", MACHINE)
    needing = {"spark", "hadoop-conf", "yarn-conf", "keytab", "ticket", "log-dir", "files"}
    assert skipped(checks) == {**dict.fromkeys(needing, "needs configuration"), "hive-conf": "needs spark"}
    assert one(checks, "java").what == "17 at /java (whether it fits depends on the version of Spark)"


def test_without_a_temporary_directory_the_configuration_is_not_read():
    found = tuple(replace(check, level=FIX) if check.name == "temp-dir" else check for check in BASH)
    checks = check(found=found, load=lambda: pytest.fail("it must not be read"))
    assert one(checks, "configuration").what == "needs temp-dir"


@pytest.mark.parametrize("name", ["configuration", "spark", "java"])
def test_what_the_launcher_did_not_find_stands_as_it_says(name):
    its_own = Check(name, FIX, "not found", "install it", MACHINE)
    checks = check(found=(*BASH, its_own))
    assert one(checks, name) == its_own
    assert [check.name for check in checks] == list(MACHINE_CHECKS)


def test_without_a_usable_spark_only_what_needs_it_is_skipped():
    machine = HealthyMachine(spark_version="2.4.8")
    checks = check(machine)
    assert skipped(checks) == {"hive-conf": "needs spark"}
    assert machine.spark_home == ""


def test_the_configuration_of_the_spark_that_was_found_is_read():
    machine = HealthyMachine()
    check(machine)
    assert machine.spark_home == "/spark"


def test_a_java_that_does_not_fit_the_spark_stops_nothing_else():
    checks = check(HealthyMachine(java_version="11", spark_version="4.0.1"))
    assert one(checks, "java").what == "11 at /java does not fit Spark 4.0.1"
    assert not skipped(checks)


def test_a_keytab_that_must_be_fixed_is_not_tried():
    checks = check(HealthyMachine(mode="-rw-r--r--"), (*YARN, *KEYTAB))
    assert (one(checks, "keytab").level, skipped(checks)) == (FIX, {"ticket": "needs keytab"})


def test_a_keytab_counts_more_than_the_ticket_of_the_user():
    refused = HealthyMachine(ticket=TicketFacts(error="x"))
    assert one(check(refused, (*YARN, *KEYTAB)), "ticket").what == "the KDC gives none to etl: etl /k refused"
    assert one(check(refused), "ticket").what == "there is no valid one"


def test_a_cluster_without_kerberos_needs_no_ticket():
    checks = check(HealthyMachine(kerberos="simple", ticket=TicketFacts(error="x")))
    assert one(checks, "ticket").what == "not needed: hadoop.security.authentication in /c/core-site.xml is not kerberos"


def test_the_metastore_may_be_named_by_the_configuration():
    config = replace(layers.load([], {}, {}, YARN))
    named = replace(config, spark=replace(config.spark, extra_conf={"spark.hadoop.hive.metastore.uris": "thrift://other"}))
    assert one(check(load=lambda: named), "hive-conf").what == "thrift://other, from spark.extra_conf"


def test_the_log_directory_and_the_files_of_the_launcher_are_looked_at():
    checks = check(HealthyMachine(unreadable=("/gone",)), (*YARN, "log_dir=/closed"), shipped=("/a", "/gone"))
    assert one(checks, "log-dir").what == "/closed cannot be written to by etl"
    assert one(checks, "files").what == "cannot be read: /gone"
    assert one(check(sets=(*YARN, "log_dir=/log")), "log-dir").level is OK


def test_a_file_to_be_shipped_that_others_may_change_is_a_finding_and_the_cluster_is_not_checked():
    why = Reason(Code.UNTRUSTED_FILE, "/a is not used", "chmod o-w /a")
    checks = check(HealthyMachine(untrusted=why), shipped=("/a",))
    assert checks[-1] == Check("files", FIX, "/a is not used", "chmod o-w /a", MACHINE, cause="untrusted-file")
    assert not can_check_cluster(checks)
