"""The words that the launcher gets, compared as lists: no quoting, no dependence on dictionary order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.config import layers as configuration
from hivekeeper.config.sources import CARRIED, MASK
from hivekeeper.launch import driver_words, spark_submit

PYTHON, LOG4J2 = "/opt/py/bin/python", Path("/opt/hive keeper/log4j2.properties")


def words(**flags: Any) -> List[str]:
    return spark_submit.submit_options(merged(**flags), PYTHON, LOG4J2)


def merged(**flags: Any) -> configuration.Config:
    properties = flags.pop("properties", {})
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return configuration.load([], {}, dotted, [f"spark.extra_conf.{name}={value}" for name, value in properties.items()])


def options(found: List[str]) -> Dict[str, str]:
    """Option → value, without the properties."""
    pairs = list(zip(found[::2], found[1::2]))
    return {name: value for name, value in pairs if name != "--conf"}


def properties(found: List[str]) -> Dict[str, str]:
    """Property → value."""
    pairs = zip(found[::2], found[1::2])
    return dict(value.split("=", 1) for name, value in pairs if name == "--conf")


def test_a_local_master_gets_no_yarn_settings():
    found = words(spark__queue="etl", spark__num_executors=3, spark__executor_memory="4g", spark__python_env="/e.tar.gz")
    assert options(found) == {"--name": "hivekeeper", "--master": "local[*]"}
    assert not [name for name in properties(found) if name.startswith("spark.yarn.appMasterEnv")]


def test_a_local_driver_gets_its_memory():
    assert options(words(spark__driver_memory="3g"))["--driver-memory"] == "3g"


def test_yarn_gets_queue_and_sizes():
    found = words(
        spark__master="yarn",
        spark__queue="night run",
        spark__num_executors=3,
        spark__executor_memory="4g",
        spark__executor_cores=2,
        spark__executor_memory_overhead="512m",
        spark__driver_memory="2g",
        spark__driver_cores=4,
    )
    assert options(found) == {
        "--name": "hivekeeper",
        "--master": "yarn",
        "--deploy-mode": "client",
        "--queue": "night run",
        "--num-executors": "3",
        "--executor-memory": "4g",
        "--executor-cores": "2",
        "--driver-memory": "2g",
    }
    assert properties(found)["spark.executor.memoryOverhead"] == "512m"


def test_nothing_runs_twice_and_no_file_shows_before_its_job_is_done():
    for found in (words(), words(spark__master="yarn"), words(spark__master="yarn", spark__deploy_mode="cluster")):
        assert properties(found)["spark.yarn.maxAppAttempts"] == "1"
        assert properties(found)["spark.speculation"] == "false"
        assert properties(found)["spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version"] == "1"


def test_a_driver_on_this_machine_runs_on_the_launchers_python_and_log_settings():
    for found in (words(), words(spark__master="yarn")):
        assert properties(found)["spark.pyspark.driver.python"] == PYTHON
        java = properties(found)["spark.driver.defaultJavaOptions"].split()
        assert java[0] == "-Dlog4j2.configurationFile=file:///opt/hive%20keeper/log4j2.properties"


def test_a_driver_that_does_not_copy_does_without_the_second_compiler():
    on_yarn = [words(spark__master="yarn", spark__deploy_mode=mode) for mode in ("client", "cluster")]
    compilers = [properties(found)["spark.driver.defaultJavaOptions"].split()[1:] for found in (*on_yarn, words())]
    assert compilers == [["-XX:TieredStopAtLevel=1"]] * 2 + [spark_submit.LATE_SECOND_COMPILER.split()]


def test_the_java_options_of_the_site_are_left_alone():
    assert not [name for name in properties(words(spark__master="yarn")) if "extraJavaOptions" in name]


def test_cluster_mode_ships_the_log_settings_and_the_configuration():
    flags = {"spark__master": "yarn", "spark__deploy_mode": "cluster", "block_size": "64m", "spark__driver_cores": 2}
    found = words(**flags, spark__driver_memory_overhead="1g", spark__extra_files=["/etc/hive-site.xml"])
    assert options(found)["--files"] == "/etc/hive-site.xml,file:///opt/hive%20keeper/log4j2.properties#hivekeeper-log4j2.properties"
    assert options(found)["--driver-cores"] == "2"
    assert properties(found)["spark.driver.memoryOverhead"] == "1g"
    assert properties(found)["spark.driver.defaultJavaOptions"].split()[0] == "-Dlog4j2.configurationFile=hivekeeper-log4j2.properties"
    assert "spark.pyspark.driver.python" not in properties(found)
    carried = {CARRIED: properties(found)["spark.yarn.appMasterEnv.HIVEKEEPER_CARRIED"]}
    assert configuration.load([], carried, {}).block_bytes == 64 * 2**20


def test_a_packed_python_is_unpacked_under_a_name_of_its_own_or_the_given_one():
    for env, python in (("/envs/e.tar.gz", "./hivekeeper-env/bin/python"), ("hdfs:///e.tar.gz#mine", "./mine/bin/python")):
        found = words(spark__master="yarn", spark__deploy_mode="cluster", spark__python_env=env, spark__archives=["a.zip#a"])
        assert options(found)["--archives"] == f"a.zip#a,{env if '#' in env else env + '#hivekeeper-env'}"
        assert properties(found)["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] == python
        assert properties(found)["spark.pyspark.python"] == python


def test_without_a_packed_python_no_python_is_forced_on_the_cluster():
    found = properties(words(spark__master="yarn", spark__deploy_mode="cluster"))
    assert not [name for name in found if name.endswith(("PYSPARK_PYTHON", "pyspark.python"))]


def test_python_files_are_handed_on():
    assert options(words(spark__py_files=["a.py", "b c.zip"]))["--py-files"] == "a.py,b c.zip"


def test_the_sites_properties_win_over_ours():
    found = words(properties={"spark.speculation": "true", "spark.x": "a b=c"})
    assert properties(found)["spark.speculation"] == "true"
    assert properties(found)["spark.x"] == "a b=c"
    assert len([word for word in found if word.startswith("spark.speculation=")]) == 1


def test_principal_and_keytab_reach_spark_so_that_it_can_renew_the_ticket():
    found = options(words(spark__master="yarn", kerberos__principal="etl@X", kerberos__keytab="/k t"))
    assert (found["--principal"], found["--keytab"]) == ("etl@X", "/k t")


def test_the_launcher_learns_what_it_has_to_find_before_the_options():
    flags = {"kerberos__principal": "etl@X", "kerberos__keytab": "/k", "spark__home": "/opt/spark", "spark__java_home": "/opt/java"}
    config = merged(**flags, spark__submit_command="spark3-submit")
    found = spark_submit.launch_words(config, PYTHON, LOG4J2, "run1")
    known = ["master=local[*]", "deploy_mode=client", "submit_command=spark3-submit", "spark_home=/opt/spark", "java_home=/opt/java"]
    known += ["principal=etl@X", "keytab=/k", "log_keep=30"]
    assert found[:9] == [*known, "--"]
    assert found[9:] == spark_submit.submit_options(config, PYTHON, LOG4J2)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_any_property_is_one_word(value):
    found = words(properties={"spark.x": value})
    assert f"spark.x={value.strip()}" in found
    assert len(found) % 2 == 0


def test_a_proxy_user_goes_without_principal_and_keytab_which_spark_submit_would_refuse():
    found = options(words(spark__master="yarn", kerberos__principal="etl@X", kerberos__keytab="/k", kerberos__proxy_user="loader"))
    assert found["--proxy-user"] == "loader"
    assert not {"--principal", "--keytab"} & set(found)


def test_the_launcher_learns_whose_ticket_it_has_to_get_for_a_proxy_user():
    config = merged(kerberos__principal="etl@X", kerberos__keytab="/k", kerberos__proxy_user="loader")
    found = spark_submit.launch_words(config, PYTHON, LOG4J2, "run1")
    assert {"principal=etl@X", "keytab=/k", "proxy_user=loader"} <= set(found)


def test_only_a_driver_in_cluster_mode_has_a_place_for_its_output():
    cluster = spark_submit.launch_words(merged(spark__master="yarn", spark__deploy_mode="cluster"), PYTHON, LOG4J2, "run1")
    assert "driver_output=.hivekeeper/driver-output/run1.json" in cluster
    client = spark_submit.launch_words(merged(spark__master="yarn"), PYTHON, LOG4J2, "run1")
    assert not [word for word in client if word.startswith("driver_output=")]


def test_words_that_a_shell_reads_otherwise_are_encoded_in_cluster_mode_only():
    typed = ["analyze", "--table", "sales.e`x`"]
    for mode, expected in (("cluster", [f"carried_words={driver_words.carry(typed)}"]), ("client", [])):
        config = merged(spark__master="yarn", spark__deploy_mode=mode)
        found = spark_submit.launch_words(config, PYTHON, LOG4J2, "run1", words=typed)
        assert [word for word in found if word.startswith("carried_words=")] == expected
        plain = spark_submit.launch_words(config, PYTHON, LOG4J2, "run1", words=typed[:1])
        assert not [word for word in plain if word.startswith("carried_words=")]


def test_the_launcher_waits_for_the_end_in_cluster_mode_whatever_the_site_says():
    found = properties(words(spark__master="yarn", spark__deploy_mode="cluster"))
    assert found["spark.yarn.submit.waitAppCompletion"] == "true"


def test_files_of_this_machine_are_shipped_to_a_driver_in_cluster_mode_only():
    shipped = [spark_submit.name_shipped(Path("/t ab.txt"), "tables")]
    for deploy_mode, arrives in (("cluster", True), ("client", False)):
        config = merged(spark__master="yarn", spark__deploy_mode=deploy_mode)
        found = options(spark_submit.submit_options(config, PYTHON, LOG4J2, shipped))
        assert found.get("--files", "").endswith("file:///t%20ab.txt#tables") == arrives


def test_pages_are_off_unless_asked_for():
    assert properties(words())["spark.ui.enabled"] == "false"
    assert properties(words(spark__master="yarn"))["spark.ui.enabled"] == "false"
    assert properties(words(properties={"spark.ui.enabled": "true"}))["spark.ui.enabled"] == "true"


def test_a_local_session_asks_for_a_secret_and_yarn_is_left_to_its_site():
    assert properties(words())["spark.authenticate"] == "true"
    assert properties(words(properties={"spark.authenticate": "false"}))["spark.authenticate"] == "false"
    assert "spark.authenticate" not in properties(words(spark__master="yarn"))


@pytest.mark.parametrize("master", ["local[*]", "yarn"])
def test_a_secret_is_not_on_the_command_line_but_set_by_the_driver(master):
    secrets = {"spark.ssl.keyPassword": "hunter2", "spark.hadoop.a.url": "jdbc:x;password=hunter2"}
    # Java must be started with the last one.
    plain = {"spark.x": "y", "spark.driver.extraJavaOptions": "-Da.token=b"}
    config = merged(spark__master=master, properties={**secrets, **plain})
    given = spark_submit.submit_options(config, PYTHON, LOG4J2)
    assert "hunter2" not in " ".join(given)
    assert plain.items() <= properties(given).items()
    assert spark_submit.hide_secrets(config) == secrets


def test_what_is_carried_to_a_driver_in_a_container_holds_no_secret():
    secret = {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.x": "y"}
    config = merged(spark__master="yarn", spark__deploy_mode="cluster", properties=secret)
    carried = configuration.load([], {CARRIED: configuration.carry(config)}, {})
    assert carried.spark.extra_conf == {"spark.hadoop.fs.s3a.secret.key": MASK, "spark.x": "y"}
    assert properties(spark_submit.submit_options(config, PYTHON, LOG4J2))["spark.hadoop.fs.s3a.secret.key"] == "hunter2"
