"""What the program sees of this machine: real files, and stubs for Spark, Java and Kerberos."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from hivekeeper.launch.edge_node import ThisMachine
from hivekeeper.plan.edge_node import TicketFacts

NOW = datetime(2026, 11, 21, 9, 30, 0).timestamp()
TICKET = "11/21/26 08:00:00  11/21/26 10:30:00  krbtgt/E@E"


class Machine:
    """A machine below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {"PATH": str(root / "bin")}
        self.write("bin/nothing")

    def write(self, path, text="", mode=0o644):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(mode)
        return str(file)

    def program(self, path, body):
        return self.write(path, f"#!/bin/sh\n{body}\n", 0o755)

    def look(self, **environ):
        return ThisMachine({**self.environ, **environ}, lambda: NOW)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def conf(**properties):
    text = "".join(
        f"<property><name>{name.replace('_', '.')}</name><value>{value}</value></property>" for name, value in properties.items()
    )
    return f"<configuration>{text}</configuration>"


def test_the_version_of_spark_is_read_from_its_release_file(machine):
    submit = machine.program("spark/bin/spark-submit", "echo ' version 9.9.9'")
    machine.write("spark/RELEASE", "Spark 3.5.9 (git revision x) built for Hadoop 3.3.4\n")
    machine.write("spark/jars/spark-core_2.12-3.3.0.jar")
    facts = machine.look().spark(submit)
    assert (facts.version, facts.home) == ("3.5.9", str(machine.root / "spark"))


def test_else_from_the_name_of_a_jar(machine):
    submit = machine.program("spark/bin/spark-submit", "echo ' version 9.9.9'")
    machine.write("spark/jars/spark-core_2.12-3.3.2.3.3.7190.0-91.jar")
    assert machine.look().spark(submit).version == "3.3.2.3.3.7190.0-91"


def test_else_from_spark_submit_itself(machine):
    submit = machine.program("bin/spark3-submit", "echo '   /___/ .__/  version 3.3.2.3' >&2; echo 'Using Scala version 2.12.15'")
    assert machine.look().spark(submit).version == "3.3.2.3"
    assert machine.look().spark(machine.program("bin/spark-submit", "exit 1")).version == ""


def test_spark_home_says_where_a_wrapper_starts_spark_from(machine):
    submit = machine.program("bin/spark3-submit", "exit 1")
    machine.write("parcel/RELEASE", "Spark 3.3.2 built for Hadoop 3.1\n")
    assert machine.look(SPARK_HOME=str(machine.root / "parcel")).spark(submit).version == "3.3.2"


def test_the_version_of_java_is_read_without_starting_it(machine):
    java = machine.program("jdk/bin/java", f"touch {machine.root}/started; echo ' version \"9\"'")
    machine.write("jdk/release", 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n')
    facts = machine.look(JAVA_HOME=str(machine.root / "jdk")).java()
    assert (facts.path, facts.version) == (java, "17.0.15")
    assert not (machine.root / "started").exists()


def test_the_release_file_of_a_jdk_8_lies_beside_its_jre(machine):
    java = machine.program("jdk/jre/bin/java", "exit 1")
    machine.write("jdk/release", 'JAVA_VERSION="1.8.0_392"\n')
    os.symlink(java, machine.root / "bin" / "java")
    assert machine.look().java().version == "1.8.0_392"


def test_a_java_without_a_release_file_must_be_started(machine):
    machine.program("bin/java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    assert machine.look().java().version == "11.0.2"
    machine.program("bin/java", "exit 1")
    assert machine.look().java().version == ""


def test_the_client_configuration_is_read_where_the_variables_lead(machine):
    machine.write("hadoop/core-site.xml", conf(fs_defaultFS="hdfs://nn"))
    machine.write("yarn/core-site.xml", conf(fs_defaultFS="hdfs://other"))
    machine.write("yarn/yarn-site.xml", conf(yarn_resourcemanager_hostname="rm"))
    variables = {"HADOOP_CONF_DIR": str(machine.root / "hadoop"), "YARN_CONF_DIR": str(machine.root / "yarn")}
    facts = machine.look(**variables).client_conf("")
    assert facts.variables == variables
    assert {name: dict(file.properties) for name, file in facts.files.items()} == {
        "core-site.xml": {"fs.defaultFS": "hdfs://nn"},
        "yarn-site.xml": {"yarn.resourcemanager.hostname": "rm"},
    }
    assert (facts.no_directories, facts.hive_sites, facts.spark_env) == ((), (), "")


def test_a_variable_may_lead_nowhere_or_be_empty(machine):
    facts = machine.look(HADOOP_CONF_DIR="", YARN_CONF_DIR="/nowhere").client_conf("")
    assert (facts.variables, facts.no_directories) == ({"YARN_CONF_DIR": "/nowhere"}, ("YARN_CONF_DIR",))


def test_every_place_where_spark_reads_a_hive_site_is_looked_at_in_its_order(machine):
    found = [machine.write(f"{place}/hive-site.xml", conf()) for place in ("hadoop", "own", "spark/conf")]
    machine.write("spark/conf/spark-env.sh", "export HADOOP_CONF_DIR=/x\n")
    spark = str(machine.root / "spark")
    facts = machine.look(HADOOP_CONF_DIR=str(machine.root / "hadoop"), SPARK_CONF_DIR=str(machine.root / "own")).client_conf(spark)
    assert ([file.path for file in facts.hive_sites], facts.spark_env) == (found, "")
    facts = machine.look().client_conf(spark)
    assert ([file.path for file in facts.hive_sites], facts.spark_env) == (found[2:], f"{spark}/conf/spark-env.sh")


def test_a_keytab_is_listed_in_english(machine):
    keytab = machine.write("etl key.tab", mode=0o640)
    machine.program("bin/klist", '[ "$LC_ALL" = C ] && echo "$1 of $2: 2 etl@E"')
    facts = machine.look(LC_ALL="de_DE").keytab(keytab)
    assert (facts.mode, facts.readable, facts.listed, facts.error) == ("-rw-r-----", True, f"-kt of {keytab}: 2 etl@E\n", "")


def test_a_keytab_that_is_missing_unlisted_or_broken(machine):
    keytab = machine.write("k", mode=0o600)
    assert machine.look().keytab(f"{keytab}.none").mode == ""
    assert machine.look().keytab(keytab).listed is None
    machine.program("bin/klist", "echo 'Keytab name: FILE:k'; echo 'klist: Bad format in keytab' >&2; exit 1")
    assert machine.look().keytab(keytab).error == "klist: Bad format in keytab"


def test_the_ticket_of_the_user_is_read_by_the_clock(machine):
    assert machine.look().own_ticket() == TicketFacts(missing="klist")
    machine.program("bin/klist", f'[ "$1" = -s ] || echo "{TICKET}"')
    assert machine.look().own_ticket() == TicketFacts(seconds_left=3600)
    machine.program("bin/klist", "exit 1")
    assert machine.look().own_ticket().error


def test_a_keytab_gives_its_ticket_into_a_cache_that_does_not_stay(machine, monkeypatch, tmp_path):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    assert machine.look().keytab_ticket("etl", "/k") == TicketFacts(missing="kinit")
    machine.program("bin/kinit", f'echo "$@" >{tmp_path}/asked; echo "{TICKET}" >"${{KRB5CCNAME#FILE:}}"')
    machine.program("bin/klist", 'while read -r line; do echo "$line"; done <"${KRB5CCNAME#FILE:}"')
    assert machine.look(KRB5CCNAME="FILE:/the/users/own").keytab_ticket("etl", "/k") == TicketFacts(seconds_left=3600)
    assert (tmp_path / "asked").read_text("utf-8") == "-k -t /k etl\n"
    assert not list((tmp_path / "tmp").iterdir())


def test_a_keytab_that_the_kdc_refuses_gives_the_words_of_kinit(machine):
    machine.program("bin/kinit", "echo 'using x'; echo 'kinit: Preauthentication failed' >&2; exit 1")
    assert machine.look().keytab_ticket("etl", "/k") == TicketFacts(error="kinit: Preauthentication failed")


def test_a_log_directory_is_one_or_can_be_made(machine):
    machine.write("logs/x")
    look = machine.look()
    assert look.can_log_to(str(machine.root / "logs"))
    assert look.can_log_to(f"{machine.root}/new/")
    assert not look.can_log_to(str(machine.root / "none" / "new"))
    assert not look.can_log_to(str(machine.root / "logs" / "x"))


def test_files_that_cannot_be_read_are_found(machine):
    there = machine.write("a b")
    assert machine.look().find_unreadable((there, "/nowhere/x")) == ["/nowhere/x"]
