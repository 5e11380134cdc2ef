"""What a run of hours meets: an expiring ticket, and killed servers and containers. No row is lost, and the next run finishes."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, List

import pytest
from py4j.protocol import Py4JJavaError

from cluster.long_run import LongRun
from cluster.servers import process
from cluster.servers.bring_up import start_server
from cluster.servers.kerberos import add_principals
from cluster.servers.layout import Layout
from hivekeeper.codes import Exit
from support.desk import Desk
from support.drivers import another_cluster

DAYS = ("1", "2", "3")
ROWS_A_DAY = 40
IN_THE_GAP = "/retired/u"
PROVED = "/ready/u"
READY_WITHIN_SECONDS = 600
# By default each call to a server that is not there is tried for ten seconds.
FEW_RETRIES = {"extra_conf": {"spark.hadoop.ipc.client.connect.max.retries": "2"}}
# A ticket's lifetime: long enough to start a run on a busy machine. Then that of a principal whose keytab is available.
TICKET_SECONDS = 90
SHORT_LIFE_SECONDS = 30
# By default a client does not log in twice within a minute.
LOGIN_AGAIN_SOON = {"extra_conf": {"spark.hadoop.hadoop.kerberos.min.seconds.before.relogin": "5"}}
SHORT_LIVED = "mayfly"
# A ticket's times are whole seconds.
CLOCK_GRAIN_SECONDS = 2
# Hadoop closes a connection without calls after 10 s; until then it needs no ticket.
IDLE_SECONDS = 15
YARN = {"master": "yarn", "num_executors": 1, "executor_memory": "600m", "executor_cores": 1, "driver_memory": "800m"}


def find_root(table: str) -> str:
    return f"/user/etl/{table.replace('.', '/')}"


@pytest.fixture
def table(spark: Any, database: str) -> str:
    """Three partitions with four small files each."""
    root = find_root(f"{database}.events")
    spark.sql(f"CREATE EXTERNAL TABLE {database}.events (id BIGINT) PARTITIONED BY (dt STRING) STORED AS PARQUET LOCATION '{root}'")
    for day in DAYS:
        spark.sql(f"ALTER TABLE {database}.events ADD PARTITION (dt='{day}')")
        spark.range(0, ROWS_A_DAY, 1, 4).write.mode("append").parquet(f"{root}/dt={day}")
    return f"{database}.events"


@pytest.fixture
def whole(layout: Layout) -> Iterator[Layout]:
    """The cluster; killed servers are restarted afterwards, however the test ended."""
    yield layout
    for name in ("namenode", "metastore"):
        start_server(layout.run, name)


def find_containers(layout: Layout, main_class: str) -> List[int]:
    """The Java processes of one Spark class in this cluster's containers."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        text = b" ".join(words).decode(errors="replace")
        if words[0].endswith(b"java") and main_class in text and str(layout.run) in text:
            found.append(int(directory.name))
    return found


def kill_server(layout: Layout, name: str) -> None:
    process.stop(name, layout.run, signal.SIGKILL)


def require_every_row_once(spark: Any, table: str) -> None:
    spark.sql(f"REFRESH TABLE {table}")
    found = spark.sql(f"SELECT dt, count(*), count(DISTINCT id), sum(id) FROM {table} GROUP BY dt ORDER BY dt").collect()
    assert [tuple(row) for row in found] == [(day, ROWS_A_DAY, ROWS_A_DAY, sum(range(ROWS_A_DAY))) for day in DAYS]


def count_files(gateway: Any, table: str) -> int:
    """Data files of all partitions."""
    return count_paths(gateway, f"{find_root(table)}/dt=*/part-*")


def count_paths(gateway: Any, pattern: str) -> int:
    path = gateway.jvm.org.apache.hadoop.fs.Path(pattern)
    # None if a directory above the first star is missing.
    return len(path.getFileSystem(gateway.hadoop_conf).globStatus(path) or ())


def finish_by_next_run(gateway: Any, table: str) -> None:
    """The next run, after a killed run's lock was freed as an administrator does: test_lock.py waits for the lease."""
    lock, until = gateway.jvm.org.apache.hadoop.fs.Path(f"{find_root(table)}/.hivekeeper/_lock"), time.monotonic() + READY_WITHIN_SECONDS
    fs = lock.getFileSystem(gateway.hadoop_conf)
    while fs.exists(lock) and not fs.recoverLease(lock):
        assert time.monotonic() < until
        time.sleep(0.5)
    (outcome,) = Desk(SimpleNamespace(cluster=another_cluster()), table).compact().tables
    assert outcome.code is Exit.DONE, outcome.problem


def require_finished(spark: Any, gateway: Any, table: str) -> None:
    """One file per partition, and every row in it."""
    require_every_row_once(spark, table)
    assert count_files(gateway, table) == len(DAYS)


def require_one_error(run: LongRun, what: str) -> None:
    """Three lines, once, and no stack trace."""
    text = run.output
    assert len(re.findall(r"^hivekeeper: ", text, re.MULTILINE)) == 1, text
    assert re.search(rf"^hivekeeper: .*{what}.*\n  state: .*\n  next:  ", text, re.MULTILINE), text
    assert "Traceback" not in text and "\tat " not in text, text


def wait_until_answers(superuser: Any, gateway: Any) -> None:
    """A NameNode that listens answers only some seconds later, and takes writes only once its DataNodes have reported. The first call of
    each client ends with the connection that it had to the one before.
    """
    action = gateway.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction.SAFEMODE_GET
    root, until = gateway.jvm.org.apache.hadoop.fs.Path("/"), time.monotonic() + READY_WITHIN_SECONDS
    while True:
        try:
            if not superuser.setSafeMode(action) and root.getFileSystem(gateway.hadoop_conf).exists(root):
                return
        except Py4JJavaError:
            assert time.monotonic() < until
        time.sleep(0.5)


@pytest.mark.thorough
def test_the_namenode_killed_while_files_are_staged(start, whole, table, spark, gateway, superuser):
    run = start()
    run.wait_for_line("step=stage begin batch=2")
    kill_server(whole, "namenode")
    time.sleep(5)
    start_server(whole.run, "namenode")
    assert run.wait() in (Exit.DONE, Exit.PARTIAL, Exit.UNUSABLE), run.output
    wait_until_answers(superuser, gateway)
    require_every_row_once(spark, table)
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)


def test_the_namenode_away_in_the_gap_of_a_swap_until_the_run_has_ended(start, whole, table, spark, gateway, superuser):
    run = start(IN_THE_GAP, **FEW_RETRIES)
    run.wait_until_stopped()
    kill_server(whole, "namenode")
    assert run.go_on() == Exit.UNUSABLE, run.output
    # The open connection of a killed server ends, or is reset if the kernel had still something to deliver.
    require_one_error(run, "Connection (?:refused|reset)")
    start_server(whole.run, "namenode")
    wait_until_answers(superuser, gateway)
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)


@pytest.mark.thorough
def test_where_hdfs_is_asked_again_a_restart_of_the_namenode_in_the_gap_is_only_a_wait(start, whole, table, spark, gateway, superuser):
    run = start(IN_THE_GAP, extra_conf={"spark.hadoop.dfs.client.retry.policy.enabled": "true"})
    run.wait_until_stopped()
    kill_server(whole, "namenode")
    run.resume()
    time.sleep(5)
    start_server(whole.run, "namenode")
    assert run.wait() == Exit.DONE, run.output
    wait_until_answers(superuser, gateway)
    require_finished(spark, gateway, table)


@pytest.mark.thorough
def test_safe_mode_in_the_gap_of_a_swap_is_a_cluster_that_is_not_usable_and_no_question_for_a_person(
    start, table, spark, gateway, superuser
):
    actions = gateway.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    run = start(IN_THE_GAP)
    run.wait_until_stopped()
    superuser.setSafeMode(actions.SAFEMODE_ENTER)
    try:
        assert run.go_on() == Exit.UNUSABLE, run.output
    finally:
        superuser.setSafeMode(actions.SAFEMODE_LEAVE)
    require_one_error(run, "safe mode")
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)


@pytest.mark.thorough
def test_a_metastore_that_stays_away_ends_the_run_after_the_swap_that_was_begun_and_the_next_run_goes_on(
    start, whole, table, spark, gateway
):
    run = start(IN_THE_GAP)
    run.wait_until_stopped()
    kill_server(whole, "metastore")
    assert run.go_on() == Exit.UNUSABLE, run.output
    assert "step=swap done outcome=swapped" in run.stderr, "the swap itself needs no metastore"
    require_one_error(run, "the metastore does not answer")
    start_server(whole.run, "metastore")
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)


@pytest.mark.thorough
def test_a_ticket_that_ends_in_a_run_without_keytab_is_one_clear_error(start, edge, table, spark, gateway):
    edge.login("etl", f"{TICKET_SECONDS}s")
    ends = time.monotonic() + TICKET_SECONDS
    run = start(IN_THE_GAP, user=None)
    run.wait_until_stopped()
    time.sleep(max(IDLE_SECONDS, ends + CLOCK_GRAIN_SECONDS - time.monotonic()))
    assert run.go_on() == Exit.UNUSABLE, run.output
    require_one_error(run, "Kerberos ticket")
    assert "get a ticket with a longer life, or set kerberos.principal and kerberos.keytab" in run.output
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)


def test_with_a_keytab_a_run_outlives_its_tickets_and_a_restart_of_the_metastore(start, edge, whole, table, spark, gateway):
    """Both clients that live as long as the run must reconnect, with a ticket that only the keytab can provide."""
    add_principals(whole, [SHORT_LIVED], max_life=f"{SHORT_LIFE_SECONDS}s")
    edge.admin("dfs", "-chown", "-R", f"{SHORT_LIVED}:etl", find_root(table))
    run = start(IN_THE_GAP, user=SHORT_LIVED, **LOGIN_AGAIN_SOON)
    run.wait_until_stopped()
    ends = time.monotonic() + SHORT_LIFE_SECONDS
    kill_server(whole, "metastore")
    start_server(whole.run, "metastore")
    time.sleep(max(0.0, ends + CLOCK_GRAIN_SECONDS - time.monotonic()))
    assert run.go_on() == Exit.DONE, run.output
    assert " failed " not in run.stderr, run.output
    require_finished(spark, gateway, table)


@pytest.mark.thorough
def test_an_executor_that_is_killed_on_yarn_is_replaced_and_the_run_ends_well(start, layout, table, spark, gateway):
    run = start(PROVED, **YARN)
    run.wait_until_stopped()
    (executor,) = find_containers(layout, "CoarseGrainedExecutorBackend")
    os.kill(executor, signal.SIGKILL)
    assert run.go_on() == Exit.DONE, run.output
    require_finished(spark, gateway, table)


def test_a_driver_that_is_killed_in_cluster_mode_is_137_with_what_to_do_and_the_next_run_recovers(edge, layout, table, spark, gateway):
    edge.configure(spark={**YARN, "deploy_mode": "cluster"})
    run = LongRun(edge, table)
    run.wait_for("plan", lambda: count_paths(gateway, f"{find_root(table)}/.hivekeeper/runs/*/plan.json") > 0)
    (driver,) = find_containers(layout, "deploy.yarn.ApplicationMaster")
    os.kill(driver, signal.SIGKILL)
    assert run.wait() == 128 + signal.SIGKILL, run.output
    assert re.search(r"^hivekeeper: the driver's container was killed.*\n  state: .*\n  next:  run again", run.stderr, re.MULTILINE), (
        run.output
    )
    finish_by_next_run(gateway, table)
    require_finished(spark, gateway, table)
