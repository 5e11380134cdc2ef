"""bin/hivekeeper on YARN, as an operator starts it. An application takes a minute, so each test checks many things."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any, Dict, Sequence

import pytest

from cluster.edge import Edge
from cluster.servers.layout import CHECKOUT, Layout
from support.storage import Storage

YARN = {"master": "yarn", "num_executors": 1, "executor_memory": "600m", "executor_cores": 1, "driver_memory": "800m"}
CLUSTER = {**YARN, "deploy_mode": "cluster"}
RUNS_WITHIN_SECONDS = 1200


def kill_application(gateway: Any, application: str) -> None:
    """As `yarn application -kill` does, as etl."""
    yarn = gateway.jvm.org.apache.hadoop.yarn
    client = yarn.client.api.YarnClient.createYarnClient()
    client.init(yarn.conf.YarnConfiguration(gateway.hadoop_conf))
    client.start()
    client.killApplication(yarn.api.records.ApplicationId.fromString(application))
    client.stop()


def find_application(stderr: str) -> str:
    found = re.search(r"application_\d+_\d+", stderr)
    assert found, stderr
    return found[0]


def read_properties(path: Path) -> Dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


@pytest.fixture
def tables(spark: Any, database: str) -> Sequence[str]:
    """Four small files worth compacting, and a bucketed table, which is refused."""
    spark.range(0, 40, 1, 4).write.format("parquet").option("path", f"/user/etl/{database}/small").saveAsTable(f"{database}.small")
    spark.sql(f"CREATE TABLE {database}.bucketed (id BIGINT) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    return (f"{database}.small", f"{database}.bucketed")


def test_in_cluster_mode_all_that_a_driver_gives_comes_back(edge: Edge, tables: Sequence[str], database: str, gateway: Any):
    """Archive from HDFS, a tables file, local outputs, queue, sizes, properties; one table done, one refused: exit 6."""
    archive = gateway.jvm.org.apache.hadoop.fs.Path(f"/user/etl/{database}/hivekeeper.py")
    archive.getFileSystem(gateway.hadoop_conf).copyFromLocalFile(
        gateway.jvm.org.apache.hadoop.fs.Path(f"file:{CHECKOUT}/dist/hivekeeper.py"), archive
    )
    (edge.home / "beside.py").write_text("")
    edge.configure(
        spark={
            **CLUSTER,
            "queue": "etl",
            "archive": f"hdfs:///user/etl/{database}/hivekeeper.py",
            "driver_output_dir": f"/user/etl/{database}/driver-output",
            "py_files": [str(edge.home / "beside.py")],
            "extra_conf": {"spark.sql.shuffle.partitions": "3"},
        },
        log_dir=str(edge.home / "logs"),
    )
    (edge.home / "my tables").write_text("# both\n" + "\n".join(tables) + "\n")
    words = ["--tables-file", "my tables", "--json", "--report-file", "report.json", "--properties-out", "p.properties"]
    done = edge.run("compact-swap", *words)
    assert done.returncode == 6, done.stderr
    document = json.loads(done.stdout)
    assert {table["table"]: table["exit_code"] for table in document["tables"]} == dict(zip(tables, (0, 3)))
    assert json.loads((edge.home / "report.json").read_text()) == document
    assert read_properties(edge.home / "p.properties")["hivekeeper.exit_code"] == "6"
    assert re.search(rf"level=INFO .*table={tables[0]}", done.stderr), "the driver's own log comes back"
    assert "queue: etl" in done.stderr
    assert f"yarn logs -applicationId {find_application(done.stderr)}" in done.stderr
    (log,) = (edge.home / "logs").iterdir()
    assert log.read_text().splitlines()[-3:] == done.stderr.splitlines()[-3:]
    assert not (edge.home / "ticket").exists(), "the user's own ticket cache is not touched"


def test_in_cluster_mode_no_word_is_run_or_changed_by_the_shell_of_a_container(edge: Edge, database: str, spark: Any):
    """A tenant names the partition that an operator leaves out."""
    marks = [Path(f"/tmp/ran-{database}"), Path(f"/tmp/ran2-{database}")]
    names = (f"a`touch {marks[0]}`", f"b{{{{(touch {marks[1]})}}}}", "c}}", "$HOME", "<LOG_DIR>", "it's")
    spark.sql(f"CREATE TABLE {database}.parted (id BIGINT) PARTITIONED BY (p STRING) STORED AS PARQUET")
    for name in names:
        quoted = name.replace("'", "\\'")
        spark.sql(f"ALTER TABLE {database}.parted ADD PARTITION (p='{quoted}')")
    edge.configure(spark={**CLUSTER, "driver_output_dir": f"/user/etl/{database}/driver-output"})
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in names[:-1])
    done = edge.run("analyze", "--table", f"{database}.parted", "--where", f"p IN ({listed})", "--partitions", "--json")
    assert done.returncode == 0, done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    assert not any(mark.exists() for mark in marks)
    assert table["analysis"]["statuses"] == {"empty": len(names) - 1}


def test_an_application_that_is_killed_is_143_with_what_to_do(edge: Edge, gateway: Any):
    edge.configure(spark=CLUSTER)
    process = edge.start("analyze", "--database", "default")
    stderr, until = edge.home / "stderr", time.monotonic() + RUNS_WITHIN_SECONDS
    while "(state: ACCEPTED)" not in stderr.read_text():
        assert time.monotonic() < until, stderr.read_text()
        time.sleep(0.5)
    kill_application(gateway, find_application(stderr.read_text()))
    assert process.wait(RUNS_WITHIN_SECONDS) == 143, stderr.read_text()
    assert f"hivekeeper: {find_application(stderr.read_text())} was killed on YARN" in stderr.read_text()
    assert (edge.home / "stdout").read_text() == ""


def test_an_unknown_queue_starts_nothing_and_is_one_clear_error(edge: Edge):
    edge.configure(spark={**CLUSTER, "queue": "nosuch"})
    done = edge.run("analyze", "--database", "default")
    assert done.returncode == 2, done.stderr
    assert re.search(r"^hivekeeper: nothing was started on YARN: .*: nosuch \[submission-refused\]$", done.stderr, re.MULTILINE)


def test_in_client_mode_the_driver_is_here_and_its_exit_code_is_ours(edge: Edge):
    edge.configure(spark=YARN)
    done = edge.run("analyze", "--table", "default.absent", "--json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["exit_code"] == 3
    assert not (edge.home / "ticket").exists(), "the user's own ticket cache is not touched"


def test_in_client_mode_a_signal_ends_a_run_in_good_order_also_while_it_waits_for_a_file_on_hdfs(
    edge: Edge, tables: Sequence[str], storage: Storage, spark: Any
):
    pause = f"{storage.root}/pause"
    storage.write(pause, b"")
    edge.configure(spark=YARN, pause_file=pause)
    process = edge.start("compact-swap", "--table", tables[0], "--json")
    stderr, until = edge.home / "stderr", time.monotonic() + RUNS_WITHIN_SECONDS
    while "step=pause waiting" not in stderr.read_text():
        assert time.monotonic() < until, stderr.read_text()
        time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(RUNS_WITHIN_SECONDS) == 143, stderr.read_text()
    document = json.loads((edge.home / "stdout").read_text())
    assert (document["exit_code"], document["signal"]) == (143, signal.SIGTERM)
    assert [unit["outcome"] for table in document["tables"] for unit in table["units"]] in ([], ["left"])
    assert spark.table(tables[0]).count() == 40


def test_a_proxy_user_runs_on_a_ticket_of_the_runs_own(edge: Edge, layout: Layout):
    """`scheduler` may impersonate etl. The driver's output belongs to etl, is below etl's home, and is fetched as etl."""
    if not layout.secure:
        pytest.skip("NOTHING TESTED: an unsecured cluster asks nobody who they are")
    edge.configure(user="scheduler", spark=CLUSTER)
    done = edge.run("analyze", "--database", "default", "--proxy-user", "etl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["exit_code"] == 0
    assert "user: etl" in done.stderr
    assert not (edge.home / "ticket").exists(), "the user's own ticket cache is not touched"
