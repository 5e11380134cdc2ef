"""The session, in its own processes: a site's configuration, a missing Java, a metastore in use."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Mapping

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.cluster.session import GUARDS, Where
from support.java import FEW_ROWS, WITHOUT_FSYNC

JOB = str(Path(__file__).resolve().parents[2] / "job")

# A value different from ours, for guards that are not true or false.
HOSTILE = {
    "spark.sql.sources.useV1SourceList": "csv",
    "spark.sql.orc.impl": "hive",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.sources.commitProtocolClass": "org.example.NoSuchProtocol",
    "spark.sql.sources.outputCommitterClass": "org.example.NoSuchCommitter",
    "spark.sql.parquet.output.committer.class": "org.example.NoSuchCommitter",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "parquet.summary.metadata.level": "ALL",
    "parquet.writer.version": "v2",
    "spark.sql.sources.partitionOverwriteMode": "DYNAMIC",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.hive.caseSensitiveInferenceMode": "INFER_AND_SAVE",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "10000",
}

# What Java and Spark add to names in the directory for temporary files: a UUID, or a number of 63 bits.
RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{12}")

REPORT = """
import json, os, sys
from hivekeeper.cluster.driver import Driver, StopAsked
from hivekeeper.cluster.session import GUARDS, Where
from hivekeeper.errors import HivekeeperError

def refusal(options):
    try:
        Driver(options).context
    except HivekeeperError as error:
        return [type(error).__name__, error.reason.what, error.reason.next]

def values(session):
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    core = session.sparkContext.getConf()
    ask = {Where.CORE: core.get, Where.SESSION: lambda key: session.conf.get(key, None), Where.HADOOP: hadoop.get}
    return {guard.key: ask[guard.where](guard.key) for guard in GUARDS}

options = json.loads(sys.argv[1])
found = {}
spark = Driver(options, "ERROR").session
found["session"], found["new_session"] = values(spark), values(spark.newSession())
spark.range(10).repartition(1).write.parquet(sys.argv[2])
spark.sql("SHOW DATABASES").collect()
found["temporary"] = os.listdir(sys.argv[3])
spark.stop()
mounts = {"spark.hadoop.fs.hdfs.impl": "org.apache.hadoop.hdfs.ViewDistributedFileSystem"}
found["mounts"] = refusal({**options, **mounts})
from pyspark.sql import SparkSession
builder = SparkSession.builder.enableHiveSupport()
for key, value in {**options, "spark.files.ignoreCorruptFiles": "true"}.items():
    builder = builder.config(key, value)
running = builder.getOrCreate()
found["running"] = refusal(options)
running.stop()
stopped = Driver(options, is_stop_asked=lambda: True)
try:
    stopped.context
except StopAsked:
    found["stopped"] = True
stopped._starting.join()
stopped.stop()
found["failing"] = refusal({**options, "spark.testing.memory": "1000"})
print(json.dumps(found))
"""


def run_python(source: str, *arguments: str, home: Path, environment: Mapping[str, str] = os.environ, flags: tuple = ()) -> Dict[str, Any]:
    """The last line that a fresh process prints, as JSON. Derby leaves its log in `home`."""
    begin = f"import sys; sys.path.insert(0, {JOB!r})\n"
    command = [sys.executable, *flags, "-c", begin + source, *arguments]
    done = subprocess.run(command, cwd=home, env=dict(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    """Our session when a site's spark-defaults.conf sets the opposite of every guard."""
    home = tmp_path_factory.mktemp("site")
    lines = []
    for guard in GUARDS:
        opposite = {"true": "false", "false": "true"}.get(guard.value) or HOSTILE[guard.key]
        lines.append(f"{'spark.hadoop.' if guard.where is Where.HADOOP else ''}{guard.key} {opposite}")
    (home / "spark-defaults.conf").write_text("\n".join(lines))
    url = f"jdbc:derby:;databaseName={home}/metastore;create=true"
    options = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": f"{FEW_ROWS} {WITHOUT_FSYNC} -Djava.io.tmpdir={home}/tmp",
        "spark.hadoop.javax.jdo.option.ConnectionURL": url,
    }
    (home / "tmp").mkdir()
    environment = {**os.environ, "SPARK_CONF_DIR": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    output = home / "output"
    found = run_python(REPORT, json.dumps(options), str(output), f"{home}/tmp", home=home, environment=environment)
    found["written"] = sorted(path.name for path in output.iterdir())
    return found


def test_every_guard_wins_over_the_sites_configuration(report):
    assert report["session"] == {guard.key: guard.value for guard in GUARDS}


def test_a_new_session_of_the_same_context_begins_guarded(report):
    assert report["new_session"] == {guard.key: guard.value for guard in GUARDS}


def test_only_one_data_file_is_written_whatever_the_site_says(report):
    (written,) = [name for name in report["written"] if not name.endswith(".crc")]
    assert written.startswith("part-")


def test_a_session_makes_nothing_in_tmp_by_a_name_that_others_could_take_first(report):
    """Such as the user's name, which a session of Hive makes a directory by (hive.exec.local.scratchdir)."""
    assert any(name.startswith("spark-") for name in report["temporary"])
    assert [name for name in report["temporary"] if not RANDOM.search(name)] == []


def test_a_running_context_with_dangerous_core_settings_is_refused(report):
    kind, what, _ = report["running"]
    assert kind == "Unusable"
    assert "spark.files.ignoreCorruptFiles=true" in what


def test_a_client_that_shows_several_namenodes_as_one_is_refused(report):
    kind, what, following = report["mounts"]
    assert kind == "UsageError"
    assert "fs.hdfs.impl" in what and "ViewDistributedFileSystem" in what
    assert "viewfs://" in following


def test_a_command_that_is_asked_to_stop_does_not_wait_for_its_application(report):
    assert report["stopped"]


def test_a_context_that_does_not_start_says_why_in_one_line(report):
    kind, what, _ = report["failing"]
    assert kind == "Unusable"
    assert what.startswith("Spark did not start: ")
    assert "System memory 1000 must be at least" in what
    assert "\n" not in what


REFUSAL = """
import json
from hivekeeper.cluster.driver import Driver
from hivekeeper.errors import HivekeeperError
try:
    Driver({"spark.master": "local[1]"})
except HivekeeperError as error:
    print(json.dumps([type(error).__name__, error.reason.what, error.reason.next]))
"""


def test_without_pyspark_the_wrapper_is_named(tmp_path):
    kind, what, following = run_python(REFUSAL, home=tmp_path, flags=("-I", "-S"))
    assert (kind, "cannot be imported" in what) == ("Unusable", True)
    assert "bin/hivekeeper" in following


def test_without_java_java_is_asked_for(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "env", "dirname", "readlink", "ls", "python3"):
        tool_path = sys.executable if tool == "python3" else shutil.which(tool)
        (tools / tool).symlink_to(str(tool_path))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("JAVA", "SPARK"))}
    kind, what, following = run_python(REFUSAL, home=tmp_path, environment={**environment, "PATH": str(tools)})
    assert (kind, "did not start" in what) == ("Unusable", True)
    assert "JAVA_HOME" in following


LOCKED = """
import json, sys
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.cluster.driver import Driver
from hivekeeper.errors import HivekeeperError
url = {"spark.hadoop.javax.jdo.option.ConnectionURL": sys.argv[1], "spark.driver.extraJavaOptions": sys.argv[2]}
gateway = Gateway(Driver({"spark.master": "local[1]", **url}, "ERROR"))
try:
    HiveMetastore(gateway)
except HivekeeperError as error:
    print(json.dumps([type(error).__name__, error.reason.what, error.reason.next]))
"""


def test_an_embedded_metastore_in_use_by_another_process_is_unusable(gateway: Gateway, tmp_path: Path):
    HiveMetastore(gateway).databases()
    url = str(gateway.hadoop_conf.get("javax.jdo.option.ConnectionURL"))
    kind, what, following = run_python(LOCKED, url, FEW_ROWS, home=tmp_path, environment={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"})
    assert (kind, "in use by another process" in what) == ("Unusable", True)
    assert "hive.metastore.uris" in following


UNLOADABLE = """
import json, sys
from hivekeeper.cluster.driver import Driver
from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.physical_copy import PhysicalCopy
from hivekeeper.model import FileInfo
options = "-DZstdNativePath=/no/such/place " + sys.argv[2]
gateway = Gateway(Driver({"spark.master": "local[1]", "spark.driver.extraJavaOptions": options}, "ERROR"))
formats = {"parquet": sys.argv[3], "orc": sys.argv[4]}
files = {format: (FileInfo(f"file:{sys.argv[1]}/{format}", int(length), 0, False, 0),) for format, length in formats.items()}
print(json.dumps([PhysicalCopy(gateway).digest([files[format]], format=format)[0].failed for format in formats]))
"""


def test_a_library_of_zstandard_that_cannot_be_loaded_is_told_so(tmp_path: Path):
    """As where the temporary directory is mounted noexec: nothing is wrong with the file."""
    rows = pa.table({"text": ["ab" * 500]})
    pq.write_table(rows, tmp_path / "parquet", compression="zstd")
    po.write_table(rows, str(tmp_path / "orc"), compression="zstd")
    lengths = [str((tmp_path / format).stat().st_size) for format in ("parquet", "orc")]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    failed = run_python(UNLOADABLE, str(tmp_path), FEW_ROWS, *lengths, home=tmp_path, environment=environment)
    assert ["whose library cannot be loaded from" in each for each in failed] == [True, True]


ENDING = """
import json, logging, sys
from pyspark import SparkContext
from hivekeeper.cluster.connect import connect
from hivekeeper.cluster.signals import Signals
from hivekeeper.commands import per_table
from hivekeeper.commands.context import Context
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection, Storage, Table

def work(_confined, table):
    if table.name == "a":
        cluster.rows.inner.gateway.jvm.org.example.NoSuchClass.none()
    if table.name == "b":
        cluster.rows.inner.gateway.jvm.java.lang.Runtime.getRuntime().halt(52)
    raise AssertionError(f"{table.name} was tried")

logging.disable(logging.CRITICAL)
options = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": sys.argv[2]}
options["spark.hadoop.javax.jdo.option.ConnectionURL"] = sys.argv[1]
tables = [Table("sales", name, "EXTERNAL_TABLE", "", Storage("", "", ""), ()) for name in "abc"]
with connect(options, Signals(patient=True), "error") as cluster:
    cluster.files.stat("/"), cluster.metastore.databases()
    started = [SparkContext._active_spark_context is not None, cluster.application().partition(" ")[0]]
    cluster.rows.require_started()
    started += [SparkContext._active_spark_context is not None, cluster.application().partition("-")[0]]
    spark = cluster.rows.inner.gateway.spark
    conf = spark.sparkContext.getConf()
    rows = spark.range(1000).repartition(3).groupBy("id").count().count()
    settings = [conf.get("spark.authenticate"), conf.get("spark.ui.enabled"), spark.sparkContext.uiWebUrl, rows]
    context = Context(cluster, Selection(), lambda table: Settings(), "__bkp_", "20260101t020304z-0000")
    outcomes = per_table.for_each(context, tables, work)
print(json.dumps([started, settings, [[table.problem.code.code, table.problem.what] for table in outcomes]]))
"""


def test_a_bug_ends_one_table_and_the_end_of_java_all_that_follow(tmp_path: Path):
    url = f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
    started, settings, found = run_python(
        ENDING, url, f"{FEW_ROWS} {WITHOUT_FSYNC}", home=tmp_path, environment={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    )
    # Only rows need an application.
    assert started == [False, "process", True, "local"]
    # The defaults of a session: its ports require a secret, and it serves no pages.
    assert settings == ["true", "false", None, 1000]
    assert [code for code, _ in found] == ["bug", "spark-ended", "spark-ended"]
    assert found[1][1].startswith("sales.b: Spark's Java process ended (")
    assert found[2][1] == "sales.c: not begun: Spark's Java process ended"


def test_a_line_of_javas_log_cannot_be_forged_and_a_stack_is_short(gateway: Gateway):
    jvm = gateway.jvm
    settings = (Path(JOB).parent / "conf" / "log4j2.properties").read_text("utf-8").splitlines()
    (pattern,) = (line.partition(" = ")[2].replace("\\\\", "\\") for line in settings if line.startswith("appender.stderr.layout.pattern"))
    layout = (
        jvm.org.apache.logging.log4j.core.layout.PatternLayout.newBuilder().withPattern(pattern).withAlwaysWriteExceptions(False).build()
    )
    event = jvm.org.apache.logging.log4j.core.impl.Log4jLogEvent.newBuilder()
    message = jvm.org.apache.logging.log4j.message.SimpleMessage("gone: dt=1\n2026-01-01T00:00:00Z level=INFO forged")
    thrown = jvm.java.lang.RuntimeException("outer", jvm.java.io.IOException("no ticket\n\x1b[2J"))
    line = layout.toSerializable(event.setLoggerName("a.b").setMessage(message).setThrown(thrown).build())
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert line[:-1].isprintable()
    assert "java.io.IOException: no ticket | " in line
    assert line.count("?at ") < 15
