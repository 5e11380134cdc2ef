"""The command line in its own processes: exit codes, what goes to stdout and stderr, and the question at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from hivekeeper.reasons import Code
from support.java import FEW_ROWS

ROOT = Path(__file__).parents[2]
SPARK_HOME = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
APPLICATION = "import sys\n\nfrom hivekeeper.cli.main import main\n\nsys.exit(main())\n"
QUESTION = "roll back? [y/N] "
STARTS_WITHIN_SECONDS = 900


class Place:
    """A directory with its own warehouse and metastore; commands run there as an operator's processes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.application = home / "application.py"
        self.application.write_text(APPLICATION)
        self.settings = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": FEW_ROWS,
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": f"{home}/warehouse",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/metastore;create=true",
        }
        lines = [f"{key} {value}\n" for key, value in self.settings.items()]
        (home / "spark-defaults.conf").write_text("".join(lines))
        (home / "site.yaml").write_text("min_quiet: 0s\nspark: {master: 'local[2]'}\n")
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "HIVEKEEPER_", "COV_"))},
            "HIVEKEEPER_CONF_DIR": str(home),
            "PYTHONPATH": str(ROOT / "job"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(home),
            "SPARK_HOME": SPARK_HOME,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def by_python(self, *words):
        """The driver by itself, as in a Python environment that has pyspark."""
        return [sys.executable, "-m", "hivekeeper.cli.main", *words]

    def by_spark_submit(self, *words):
        """As bin/hivekeeper does."""
        asked = [sys.executable, "-m", "hivekeeper.cli.main", "submit-options", "--", *words]
        answer = subprocess.run(asked, env=self.environ, cwd=self.home, check=True, stdout=subprocess.PIPE).stdout.decode()
        launch = answer.split("\0")[:-1]
        return [f"{SPARK_HOME}/bin/spark-submit", *launch[launch.index("--") + 1 :], str(self.application), *words]

    def run(self, command, **environ):
        """Run without a terminal."""
        environ = {**self.environ, **environ}
        nobody = subprocess.DEVNULL
        return subprocess.run(command, check=False, env=environ, cwd=self.home, stdin=nobody, capture_output=True, text=True)

    def run_at_terminal(self, command, answer):
        """Type the answer once the question is on stderr; stdout goes into a file, as with `> answer.txt`."""
        with self.start_at_terminal(command) as (process, keyboard):
            wait_for_question(process, self.home / "stderr")
            os.write(keyboard, answer.encode() + b"\n")
            process.wait(STARTS_WITHIN_SECONDS)
        return process.returncode, (self.home / "stdout").read_text(), (self.home / "stderr").read_text()

    @contextmanager
    def start_at_terminal(self, command):
        keyboard, terminal = pty.openpty()
        with open(self.home / "stdout", "wb") as stdout, open(self.home / "stderr", "wb") as stderr:
            process = subprocess.Popen(command, env=self.environ, cwd=self.home, stdin=terminal, stdout=stdout, stderr=stderr)
        try:
            yield process, keyboard
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(terminal)
            os.close(keyboard)

    def data_files(self):
        return sorted(path.name for path in (self.home / "tables" / "events_flat").iterdir() if path.name.startswith("part-"))


def wait_for_question(process, stderr):
    until = time.monotonic() + STARTS_WITHIN_SECONDS
    while not stderr.read_text().endswith(QUESTION):
        assert process.poll() is None, f"ended with {process.returncode} before it asked: {stderr.read_text()}"
        assert time.monotonic() < until, f"did not ask: {stderr.read_text()}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """demo.events_flat with four small files, and demo.bucketed, which is refused."""
    place = Place(tmp_path_factory.mktemp("operator"))
    words = ["--location", f"file:{place.home}/tables", "--tables", "events_flat,bucketed", "--files", "4", "--rows", "400"]
    made = place.run([sys.executable, str(ROOT / "tests" / "demo" / "generate.py"), *words])
    assert made.returncode == 0, made.stderr
    return place


def read_document(stdout):
    """The whole of stdout is one JSON document, or this raises."""
    return json.loads(stdout)


def read_properties(text):
    return dict(line.partition("=")[::2] for line in text.splitlines())


def is_log(line):
    return re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ level=\w+ \S", line) is not None


def is_error_of_three_lines(stderr):
    lines = stderr.strip().split("\n")[-3:]
    return [line[:9] for line in lines] == ["hivekeepe", "  state: ", "  next:  "]


@pytest.mark.parametrize("words", [["rollback"], ["rollback", "--table", "nodot"], ["cleanup", "--table", "a.b", "--keep-last", "x"]])
def test_wrong_usage_ends_with_2_and_three_lines_on_stderr_alone(place, words):
    done = place.run(place.by_python(*words))
    assert (done.returncode, done.stdout) == (2, "")
    assert is_error_of_three_lines(done.stderr)
    assert done.stderr.count("\n") == 3


def test_with_json_wrong_usage_is_a_document_too(place):
    done = place.run(place.by_python("rollback", "--json"))
    assert done.returncode == 2
    assert read_document(done.stdout)["error"]["exit_code"] == 2
    assert is_error_of_three_lines(done.stderr)


def test_a_spark_that_cannot_start_ends_with_8_and_three_lines(place):
    done = place.run(place.by_python("rollback", "--table", "demo.events_flat"), JAVA_HOME=str(place.home))
    assert (done.returncode, done.stdout) == (8, "")
    assert is_error_of_three_lines(done.stderr)


def test_a_rollback_asks_at_a_terminal_and_not_without_one(place):
    """One test, because each step starts Spark: compact, answer n, answer y, and undo that without a terminal. All answers besides."""
    small = place.data_files()
    tables = ["--table", "demo.events_flat", "--table", "demo.bucketed"]
    done = place.run(place.by_python("compact-swap", "--json", *tables, "--properties-out", "out.properties"))
    document = read_document(done.stdout)
    codes = {table["table"]: table["exit_code"] for table in document["tables"]}
    assert (done.returncode, document["exit_code"], codes) == (6, 6, {"demo.events_flat": 0, "demo.bucketed": 3})
    assert any(is_log(line) and "table=demo.events_flat" in line for line in done.stderr.split("\n"))
    read = read_properties((place.home / "out.properties").read_text("ascii"))
    assert (read["hivekeeper.exit_code"], read["hivekeeper.tables_done"]) == ("6", "1")
    assert read["hivekeeper.error"].startswith("demo.bucketed: ")
    (told,) = (line for line in done.stderr.split("\n") if "step=metastore embedded" in line)
    assert "level=WARNING" in told and f"place='{place.home}/metastore'" in told
    large = place.data_files()
    assert (len(small), len(large)) == (4, 1)

    rollback = ["rollback", "--table", "demo.events_flat"]
    code, stdout, stderr = place.run_at_terminal(place.by_spark_submit(*rollback), "n")
    assert (code, place.data_files()) == (3, large), stderr
    assert stdout.strip().split("\n")[0] == "hivekeeper: demo.events_flat: not confirmed [not-confirmed]"
    assert is_error_of_three_lines(stdout)
    assert stdout.strip().count("\n") == 2
    assert "would roll back 1 step" in stderr

    code, stdout, stderr = place.run_at_terminal(place.by_python(*rollback, "--json"), "y")
    assert (code, place.data_files()) == (0, small), stderr
    (table,) = read_document(stdout)["tables"]
    assert [unit["outcome"] for unit in table["units"]] == ["rolled-back"]

    done = place.run(place.by_spark_submit(*rollback, "--run", table["run"], "--properties-out", "-"))
    assert (done.returncode, place.data_files()) == (0, large), done.stderr
    assert QUESTION not in done.stderr
    read = read_properties(done.stdout)
    assert (read["hivekeeper.exit_code"], read["hivekeeper.tables_done"]) == ("0", "1")
    assert all(key.startswith("hivekeeper.") for key in read)
    assert any(is_log(line) and "table=demo.events_flat" in line for line in done.stderr.split("\n"))


@pytest.mark.parametrize("way", [pytest.param("by_python", marks=pytest.mark.thorough), "by_spark_submit"])
def test_a_reader_that_has_gone_changes_neither_the_exit_code_nor_the_log(place, way):
    read, write = os.pipe()
    os.close(read)
    command = getattr(place, way)("analyze", "--table", "demo.events_flat", "--json")
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(command, check=False, env=place.environ, cwd=place.home, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def moved_metastore(place, tmp_path):
    """The place's metastore, where only a setting of the site with a password in it says that it is."""
    (place.home / "metastore").rename(tmp_path / "metastore")
    url = f"jdbc:derby:;databaseName={tmp_path}/metastore;password=hunter2"
    (tmp_path / "secret.yaml").write_text(f'spark: {{extra_conf: {{spark.hadoop.javax.jdo.option.ConnectionURL: "{url}"}}}}\n')
    yield str(tmp_path / "secret.yaml")
    shutil.rmtree(place.home / "metastore", ignore_errors=True)
    (tmp_path / "metastore").rename(place.home / "metastore")


def test_a_driver_with_a_place_for_its_output_sends_all_of_it_there_and_a_secret_of_the_site_nowhere(place, moved_metastore):
    """As in YARN's cluster mode. Output that nobody has fetched for a week is removed, other files stay."""
    outputs = place.home / "outputs"
    outputs.mkdir()
    week_ago = time.time() - 8 * 86_400
    for name in ("20200101t000000z-0123456789abcdef.json", "notes.txt"):
        (outputs / name).touch()
        os.utime(outputs / name, (week_ago, week_ago))
    asked = place.home / "elsewhere" / "report.json"
    asked.parent.mkdir()
    words = ["compact-swap", "--dry-run", "--table", "demo.bucketed", "--json", "--report-file", str(asked), "-c", moved_metastore]
    command = place.by_spark_submit(*words)
    done = place.run(command, HIVEKEEPER_DRIVER_OUTPUT=f"file:{outputs}/run1.json")
    # Refused because it is bucketed, so it was found: the secret has reached the driver.
    assert done.returncode == 3, done.stderr
    assert Code.NO_SUCH_TABLE.code not in done.stdout
    sent = json.loads((outputs / "run1.json").read_text())
    assert (sent["code"], sent["text"]) == (3, done.stdout)
    assert json.loads(sent["files"][str(asked)]) == read_document(done.stdout)
    assert [line for line in sent["log"].split("\n") if line and line not in done.stderr] == []
    assert sorted(path.name for path in outputs.iterdir() if not path.name.startswith(".")) == ["notes.txt", "run1.json"]
    assert not asked.exists()
    assert "hunter2" not in " ".join(command) + done.stdout + done.stderr + json.dumps(sent)
