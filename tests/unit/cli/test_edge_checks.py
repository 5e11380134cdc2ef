"""edge-checks: what bin/hivekeeper-doctor gets from the archive. Machines differ, so it asserts only what holds on any of them."""

from __future__ import annotations

import json

import pytest

from hivekeeper.cli import main
from hivekeeper.plan.edge_node import BASH_CHECKS, MACHINE_CHECKS
from hivekeeper.report import document

FOUND = [f"found=ok {name} x" for name in BASH_CHECKS]
NO_JAVA = "found=fix java no Java found → set JAVA_HOME"


@pytest.fixture
def check(capsys, monkeypatch, tmp_path):
    for name in ("HIVEKEEPER_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "RELEASE").write_text("Spark 3.5.9 built for Hadoop 3.3.4", "utf-8")
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"', "utf-8")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    def check(*words, found=FOUND, edge_only="no"):
        launcher = [f"edge_only={edge_only}", *found, f"spark_submit={tmp_path}/bin/spark-submit", f"hand_over={tmp_path}/checks"]
        code = main.main(["edge-checks", *launcher, "--", "doctor", *words])
        handed = tmp_path / "checks"
        return code, capsys.readouterr().out, document.read_checks(handed.read_text("utf-8")) if handed.exists() else None

    return check


def test_each_finding_is_a_line_below_those_of_the_launcher_and_all_are_handed_over(check):
    code, out, handed = check()
    assert [line.split()[1] for line in out.splitlines() if line[0] != " "] == list(MACHINE_CHECKS[len(BASH_CHECKS) :])
    assert "ok    java             17.0.15 at " in out
    assert (code, [check.name for check in handed]) == (0, list(MACHINE_CHECKS))


def test_with_edge_only_nothing_is_handed_over(check):
    code, out, handed = check(edge_only="yes")
    assert (code, handed) == (0, None)
    assert "not checked" not in out


def test_what_prevents_a_job_ends_it_here(check):
    code, out, handed = check(found=[*FOUND, NO_JAVA])
    assert (code, handed) == (2, None)
    assert "fix   java             no Java found\n      → set JAVA_HOME\n" in out
    assert out.endswith("skip  cluster          not checked: fix what is reported above first\n")


def test_a_keytab_that_must_be_fixed_lets_the_cluster_be_checked(check):
    code, _, handed = check("--set", "kerberos.principal=etl", "--set", "kerberos.keytab=/nowhere/k")
    assert (code, [check.name for check in handed if check.level.code == "fix"]) == (2, ["keytab"])


def test_options_that_are_refused_are_a_finding(check):
    code, out, _ = check("--nonsense")
    assert code == 2
    assert "fix   configuration    unrecognized arguments: --nonsense\n      → " in out


def test_json_is_one_document_where_the_cluster_is_not_checked_and_nothing_where_it_is(check):
    assert check("--json")[1] == ""
    code, out, _ = check("--json", found=[*FOUND, NO_JAVA])
    written = json.loads(out)
    assert (written["command"], written["exit_code"], code) == ("doctor", 2, 2)
    assert [each["name"] for each in written["checks"]] == [*MACHINE_CHECKS, "cluster"]
