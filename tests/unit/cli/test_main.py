"""The command line without a cluster: what is refused, what is printed, which exit code is returned."""

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hivekeeper import __version__
from hivekeeper.cli import command_line, dispatch, main, on_cluster, output, parser
from hivekeeper.config.sources import DRIVER_OUTPUT
from hivekeeper.errors import UsageError
from hivekeeper.model import Attributes
from hivekeeper.reasons import Code
from hivekeeper.report.results import TableOutcome, UnitOutcome
from hivekeeper.runlog.outcomes import Outcome
from support.builders import a_table
from support.world import World

JOB = Path(__file__).parents[3] / "job"
RUN = "20260101t020304z-1f0c"


@pytest.fixture
def run(capsys, monkeypatch):
    for name in ("HIVEKEEPER_CONF_DIR",):
        monkeypatch.delenv(name, raising=False)

    def run(*words):
        try:
            code = main.main(list(words))
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no subcommand is given"),
        (["compress"], "invalid choice: 'compress'"),
        (["analyze"], "no table is selected"),
        (["analyze", "--table", "a.b.c.d"], "'a.b.c.d' is not a table's name"),
        (["analyze", "--table", "events"], "'events' is not a table's name"),
        (["analyze", "--table", "@spark#sales.events"], "'@spark#sales.events' names a catalog"),
        (["analyze", "--database", "@hive#sales"], "'@hive#sales' names a catalog"),
        (["analyze", "--table", "d.t", "--tabel", "d.u"], "unrecognized arguments: --tabel d.u"),
        (["compact-swap", "--table", "d.t", "--block-size", "-5"], "block_size"),
        (["compact-swap", "--table", "d.t", "--max-units", "0"], "max_units"),
        (["compact-swap", "--table", "d.t", "--table", "d.u", "--sort-columns", "id"], "--sort-columns takes exactly one --table"),
        (["compact-swap", "--database", "d", "--sort-columns", "id"], "--sort-columns takes exactly one --table"),
        (["analyze", "--tables-file", "/nowhere/tables"], "--tables-file /nowhere/tables: No such file or directory"),
        (["analyze", "--table", "d.t", "--fsimage", "/nowhere/image"], "--fsimage /nowhere/image: No such file or directory"),
        (["analyze", "--table", "d.t", "--fsimage", "/"], "--fsimage /: Is a directory"),
        (["analyze", "--table", "d.t", "--set", "block_sise=1m"], "block_size"),
        (["compact-swap", "--table", "d.t", "--set", "exchange=concat"], "allowed: directory, files, auto"),
        (["analyze", "--table", "d.t", "-c", "/nowhere/site.yaml"], "/nowhere/site.yaml"),
        (["catalogue"], "the following arguments are required: action"),
        (["catalogue", "drop"], "invalid choice: 'drop'"),
        (["catalogue", "delete"], "no table is selected"),
        (["catalogue", "purge", "--table", "d.t"], "catalogue purge is about the whole catalogue"),
        (["catalogue", "expire", "--key", "dt=1"], "catalogue expire is about the whole catalogue"),
        (["catalogue", "show", "--of", "files"], "invalid choice: 'files'"),
        (["catalogue", "show", "--limit", "0"], "'0' is no number of rows"),
        (["catalogue", "show", "--set", "catalogue.relative_path=../x"], 'catalogue.relative_path is "../x"'),
        (["catalogue", "show", "--set", "catalogue.tables=a/b"], 'catalogue.tables is "a/b"'),
        (["catalogue", "show", "--set", "catalogue.expire_after=7"], 'catalogue.expire_after is "7"'),
        (["catalogue", "show", "--set", "catalogue.level=row"], 'catalogue.level is "row"'),
        (["cleanup", "--table", "d.t", "--older-than", "7"], 'command line --older-than: keep_for is "7"'),
        (["cleanup", "--table", "d.t", "--older-than", "0d"], 'keep_for is "0d"; allowed: a time such as 90s, 15m, 4h or 7d, not 0'),
        (["cleanup", "--table", "d.t", "--keep-latest-runs", "0"], 'keep_latest_runs is "0"; allowed: a whole number, 1 or more'),
        (["cleanup", "--table", "d.t", "--keep-latest-runs", "-2"], 'keep_latest_runs is "-2"'),
        (["cleanup", "--table", "d.t", "--older-than", "-7d"], "older-than"),
        (["cleanup", "--table", "d.t", "--min-age", "a week"], "min_age"),
        (["cleanup", "--table", "d.t", "--keep-last", "many"], "--keep-last: keep_latest_versions is"),
        (["cleanup", "--table", "d.t", "--keep-last", "-1"], "keep_latest_versions"),
        (["cleanup", "--table", "d.t", "--set", "discard=shred"], "discard"),
        (["cleanup"], "no table is selected"),
        (["verify", "--table", "d.t", "--run", "latest"], "'latest' is not the id of a run, such as 20260101t020304z-1f0c"),
        (["verify", "--table", "d.t", "--level", "all"], "invalid choice: 'all'"),
        (["rollback", "--table", "d.t", "--run", f"{RUN}.t1"], "is not the id of a run"),
        (["rollback", "--table", "d.t", "--run", f"../{RUN}"], "is not the id of a run"),
        (["rollback", "--table", "d.t", "--run", ""], "is not the id of a run"),
        (["compact-swap", "--table", "d.t", "--run-key", "k" * 10_000], f"'{'k' * 40}…' is no key: 1 to 200 letters, digits and"),
        (["rollback", "--table", "d.t", "--run-key", ""], "'' is no key"),
        (["rollback", "--table", "d.t", "--run-key", "a b"], "'a b' is no key"),
        (["analyze", "--table", "d.t", "--run-key", "k"], "unrecognized arguments"),
        (["pin", "--table", "d.t"], "--run"),
        (["unpin", "--table", "d.t"], "--run"),
        (["pin", "--table", "d.t", "--run", "20260101"], "is not the id of a run"),
        (["history", "--table", "d.t", "--files"], "--files and --run belong together"),
        (["history", "--table", "d.t", "--run", RUN], "--files and --run belong together"),
        (["history", "--table", "d.t", "--at", "1", "--where", "dt = '1'"], "--at and --where cannot be combined"),
        (["history", "--table", "d.t", "--cleanups", "--where", "dt = '1'"], "--cleanups and --where cannot be combined"),
        (["history", "--table", "d.t", "--cleanups", "--partitions"], "--partitions, --cleanups and --orphans cannot be combined"),
        (["history", "--database", "d", "--orphans", "--at", "1"], "--partitions, --cleanups and --orphans cannot be combined"),
        (["history", "--table", "d.t", "--orphans"], "--orphans is about whole databases"),
        (["compact-swap", "--table", "d.t", "--where", "a = 1", "--where", "b = 1"], "--where is given twice"),
        (["analyze", "--tables-file", "a", "--tables-file", "b"], "--tables-file is given twice"),
        (["cleanup", "--table", "d.t", "--where", "dt = '1'"], "cleanup takes no --where: its rules are about all partitions"),
        (["compact-swap", "--table", "d.t", "--yes"], "unrecognized arguments: --yes"),
        (["analyze", "--table", "d.t", "--report-file", "/nowhere/report.json"], "/nowhere/report.json cannot be written: No such file"),
        (["analyze", "--table", "d.t", "--properties-out", "/nowhere/p"], "/nowhere/p cannot be written: No such file"),
        (["submit-options", "--", "analyze", "--table", "d.t", "--report-file", "/nowhere/r"], "/nowhere/r cannot be written"),
        (["history", "--table", "d.t", "--at", "-1"], "--at"),
        (["history", "--table", "d.t", "--at", "newest"], "'newest' is not the number of a log entry"),
        (["history", "--table", "d.t", "--at", "²"], "is not the number of a log entry"),
    ],
)
def test_wrong_usage_is_one_clear_error_with_code_2(run, words, says):
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert says in err
    assert err.startswith("hivekeeper: ")
    assert "\n  state: nothing was changed\n  next:  " in err


def test_two_questions_to_history_at_once_are_wrong_usage():
    parsed = parser.build_parser().parse_args(["history", "--table", "d.t", "--files", "--run", RUN, "--at", "3"])
    with pytest.raises(UsageError):
        command_line.read_selection(parsed)


def test_wrong_usage_with_json_is_a_document_too(run):
    code, out, _ = run("analyze", "--json")
    document = json.loads(out)
    assert (code, document["exit_code"], document["error"]["what"]) == (2, 2, "no table is selected")


def properties_of(text):
    return dict(line.partition("=")[::2] for line in text.splitlines())


def test_wrong_usage_writes_the_properties_too_as_far_as_the_words_say_where(run, tmp_path):
    out_file = tmp_path / "out.properties"
    code, out, err = run("analyze", "--tabel", "d.t", "--properties-out", str(out_file))
    written = properties_of(out_file.read_text("ascii"))
    assert (code, out) == (2, "")
    assert (written["hivekeeper.exit_code"], written["hivekeeper.retry"], written["hivekeeper.command"]) == ("2", "manual", "analyze")
    assert written["hivekeeper.error"] in err
    assert [path.name for path in tmp_path.iterdir()] == ["out.properties"]


@pytest.mark.parametrize("launcher", [[], ["submit-options", "--"]], ids=["by hand", "asked by the launcher"])
def test_properties_of_an_error_can_take_the_place_of_the_answer(run, launcher):
    code, out, err = run(*launcher, "analyze", "--properties-out=-")
    assert (code, properties_of(out)["hivekeeper.command"]) == (2, "analyze")
    assert properties_of(out)["hivekeeper.error"] == "no table is selected"
    assert "no table is selected" in err


def test_two_answers_on_the_standard_output_are_wrong_usage_and_the_document_says_so(run):
    code, out, _ = run("analyze", "--table", "d.t", "--json", "--properties-out", "-")
    assert code == 2
    assert "both take the standard output" in json.loads(out)["error"]["what"]


def test_properties_that_cannot_be_written_do_not_hide_the_error(run, tmp_path):
    code, _, err = run("analyze", "--properties-out", str(tmp_path / "nowhere" / "out"))
    assert code == 2
    assert "no table is selected" in err


def test_an_error_leaves_a_file_of_the_cluster_alone(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("analyze", "--properties-out", "hdfs:///tmp/out")
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])


def test_the_properties_of_the_run_before_are_gone_before_the_cluster_is_asked(tmp_path):
    old = tmp_path / "out.properties"
    old.write_text("hivekeeper.exit_code=0\n")
    output.forget_properties(str(old))
    output.forget_properties(str(old))
    assert not old.exists()


def test_a_launcher_that_asks_for_words_has_the_old_properties_removed(run, tmp_path):
    old = tmp_path / "out.properties"
    old.write_text("hivekeeper.exit_code=0\n")
    assert run("submit-options", "--", "analyze", "--table", "d.t", "--properties-out", str(old))[0] == 0
    assert not old.exists()


def test_the_version_and_the_help_need_no_cluster(run):
    assert run("--version")[:2] == (0, f"hivekeeper {__version__}\n")
    code, out, _ = run("--help")
    assert code == 0
    for word in (*dispatch.COMMANDS, "config", "exit codes:"):
        assert word in out


@pytest.mark.parametrize("command", sorted(dispatch.COMMANDS))
def test_every_command_has_a_help_with_the_exit_codes(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "exit codes:" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [("--help", 0), ("config", 0), ("config --template", 0), ("analyze --json", 2), ("analyze --properties-out -", 2)],
)
def test_a_reader_that_has_gone_changes_neither_the_exit_code_nor_the_log(words, code):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "hivekeeper.cli.main", *words.split()]
    with os.fdopen(write, "w") as closed:
        environ = {**os.environ, "PYTHONPATH": str(JOB)}
        done = subprocess.run(command, check=False, stdout=closed, stderr=subprocess.PIPE, text=True, env=environ)
    assert done.returncode == code
    assert "BrokenPipe" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stderr", [subprocess.PIPE, "full"])
@pytest.mark.parametrize(("code", "ends"), [(7, 7), (5, 5), (0, 1)])
def test_an_answer_that_finds_its_disk_full_takes_no_exit_code_away(tmp_path, code, ends, stderr):
    """A scheduler's wrapper repeats 1, and the next run may not tell again what the first one ended with 7 for."""
    from hivekeeper.launch import driver_output

    asked, place, log = str(tmp_path / "report"), tmp_path / "answer", tmp_path / "log"
    log.write_text("Submitted application application_1_2\n")
    place.write_text(driver_output.write(driver_output.DriverOutput(code, "rows are missed\n", "", {asked: "{}\n"})))
    words = ["receive-driver-output", str(place), str(log), "/dev/null", "0", "--", "recover", "--database", "d", "--report-file", asked]
    with open("/dev/full", "w") as full:
        environ = {**os.environ, "PYTHONPATH": str(JOB)}
        command = [sys.executable, "-m", "hivekeeper.cli.main", *words]
        done = subprocess.run(command, check=False, stdout=full, stderr=full if stderr == "full" else stderr, text=True, env=environ)
    assert done.returncode == ends
    assert Path(asked).read_text() == "{}\n"
    if stderr != "full":
        assert "the answer cannot be printed: No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


SWEPT = """
import sys
from contextlib import nullcontext
from hivekeeper.cli import dispatch, main
from hivekeeper.cluster import connect
from hivekeeper.ports import Cluster
from hivekeeper.report.results import CommandResult, TableOutcome
from hivekeeper.reasons import Code, Reason

class Swept:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("hivekeeper"):
            raise ModuleNotFoundError(name)

def work(*_):
    sys.meta_path.insert(0, Swept())
    lost = TableOutcome("sales.events", problem=Reason(Code.FOREIGN_RECORD, "rows are missed", "look", "consistent"))
    return CommandResult("recover", "20260101t020304z-1f0c", 0, 1.0, True, tables=(lost,))

dispatch.run_command = work
connect.connect = lambda *_: nullcontext(Cluster(*[None] * 5, "etl", "edge", lambda: "", "3.5.9", "UTC"))
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [[], ["--json"], ["--properties-out", "-"]])
def test_a_run_tells_its_result_although_its_unpacked_files_were_swept_meanwhile(words):
    """systemd removes from /tmp what was not read for ten days, and Python reads no source again that it has compiled."""
    environ = {**os.environ, "PYTHONPATH": str(JOB)}
    command = [sys.executable, "-c", SWEPT, "recover", "--table", "sales.events", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    assert done.returncode == 7, done.stderr
    assert "rows are missed" in done.stdout


class Terminal(io.StringIO):
    """A stdin connected to a terminal."""

    def isatty(self):
        return True


def ask(monkeypatch, capsys, stdin, *words):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("sys.stdin", stdin)
    parsed = parser.build_parser().parse_args(["rollback", "--table", "sales.events", *words])
    planned = TableOutcome("sales.events", units=(UnitOutcome("dt=1", Outcome.PLANNED, 1, 10, 3, 10, of_run=RUN),))
    answer = on_cluster.ask_for_rollback(parsed, planned)
    captured = capsys.readouterr()
    assert captured.out == ""
    return answer, captured.err


def test_an_answer_is_not_lost_where_the_terminal_lacks_a_character(monkeypatch):
    """The table is done by then, and exit code 1 would have an operator look for a bug."""
    shown = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", shown)
    output.print_answer('{"partition": "région=\U0001f41d"}')
    text = shown.buffer.getvalue().decode("latin-1")
    assert text == '{"partition": "région=\\ud83d\\udc1d"}\n'
    assert json.loads(text) == {"partition": "région=\U0001f41d"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("y\n", True), ("yes\n", True), (" Yes \n", True), ("n\n", False), ("\n", False), ("", False), ("yeah\n", False)],
)
def test_on_a_terminal_a_rollback_shows_its_plan_and_asks(monkeypatch, capsys, typed, expected):
    answer, shown = ask(monkeypatch, capsys, Terminal(typed))
    assert answer is expected
    assert f"sales.events/dt=1: 1 → 3 files, undoes run {RUN}" in shown
    assert shown.endswith("roll back? [y/N] ")


@pytest.mark.parametrize(
    ("stdin", "words"),
    [(Terminal("n\n"), ["--yes"]), (io.StringIO("n\n"), []), (None, [])],
    ids=["with --yes", "in a pipe", "without stdin"],
)
def test_where_nobody_is_to_be_asked_a_rollback_shows_its_plan_and_goes_on(monkeypatch, capsys, stdin, words):
    answer, shown = ask(monkeypatch, capsys, stdin, *words)
    assert answer is True
    assert "would roll back 1 step" in shown
    assert "[y/N]" not in shown


def test_a_tables_file_has_one_table_a_line(tmp_path):
    listed = tmp_path / "tables"
    listed.write_text("# nightly\nsales.events\n\n # big\nsales.orders\nsales.events\n")
    parsed = parser.build_parser().parse_args(["analyze", "--tables-file", str(listed), "--tables", "a.b, a.c", "--table", "x.y"])
    assert command_line.read_selection(parsed).tables == ("x.y", "a.b", "a.c", "sales.events", "sales.orders")


def test_a_tables_file_that_is_no_text_is_wrong_usage_not_a_bug(run, tmp_path):
    listed = tmp_path / "tables"
    listed.write_bytes("sales.événements\n".encode("latin-1"))
    code, _, err = run("analyze", "--tables-file", str(listed))
    assert (code, err.splitlines()[0]) == (2, f"hivekeeper: --tables-file {listed}: not a text in UTF-8 [wrong-usage]")


def test_several_databases_are_all_selected():
    parsed = parser.build_parser().parse_args(["analyze", "--database", "a", "--database", "b", "--database", "a"])
    assert command_line.read_selection(parsed).databases == ("a", "b")


@pytest.mark.parametrize("command", sorted({*dispatch.COMMANDS, "doctor"}))
def test_every_command_on_tables_takes_where_or_says_why_not(command):
    run_id = ["--run", RUN] if command in ("pin", "unpin") else []
    words = [command, "--table", "d.t", "--where", "dt = '1'", *run_id]
    if command in ("cleanup", "forget", "pin", "unpin", "recover", "doctor"):
        with pytest.raises(UsageError, match=f"{command} takes no --where: "):
            parser.build_parser().parse_args(words)
    else:
        assert command_line.read_selection(parser.build_parser().parse_args(words)).where == "dt = '1'"


def test_config_shows_each_value_and_where_it_comes_from(run, tmp_path, monkeypatch):
    site = tmp_path / "site.yaml"
    site.write_text("block_size: 256m\nanalyze_stats: true\n")
    monkeypatch.setenv("HIVEKEEPER_ANALYZE_STATS", "false")
    code, out, _ = run("config", "-c", str(site), "--set", "spark.queue=etl", "--json")
    values = json.loads(out)["values"]
    assert code == 0
    assert values["block_size"] == {"value": "256m", "origin": f"{site} line 1"}
    assert values["analyze_stats"]["value"] is False
    assert values["spark.queue"]["value"] == "etl"


def test_config_says_which_site_file_was_read(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HIVEKEEPER_CONF_DIR", str(tmp_path))
    assert run("config")[1].splitlines()[-1] == "site.yaml: none"
    assert json.loads(run("config", "--json")[1])["site_file"] is None
    site = tmp_path / "site.yaml"
    site.write_text("block_size: 256m\n")
    assert run("config")[1].splitlines()[-1] == f"site.yaml: {site}"
    assert json.loads(run("config", "--json")[1])["site_file"] == str(site)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_directory_of_the_site_where_anybody_may_put_a_file_next_is_refused_before_one_is_there(run, tmp_path, monkeypatch, mode):
    tmp_path.chmod(mode)
    monkeypatch.setenv("HIVEKEEPER_CONF_DIR", str(tmp_path))
    code, _, err = run("config")
    assert (code, "[untrusted-file]" in err, str(tmp_path) in err) == (2, True, True)


def test_the_template_is_a_configuration_that_changes_nothing(run, tmp_path):
    code, out, _ = run("config", "--template")
    assert code == 0
    copy = tmp_path / "copy.yaml"
    copy.write_text(out)
    assert run("config", "-c", str(copy))[1] == run("config")[1]


def test_submit_options_come_separated_by_nul_and_whole(run):
    code, out, _ = run("submit-options", "--", "analyze", "--table", "d.big events; $x 'y'", "--set", "spark.queue=a b")
    assert code == 0
    assert out.endswith("\0")
    assert "--master" in out.split("\0")


def test_a_bare_number_for_the_block_size_means_mebibytes():
    for said in ("256", "256m"):
        parsed = parser.build_parser().parse_args(["analyze", "--table", "d.t", "--block-size", said])
        assert command_line.load_config(parsed).block_bytes == 256 * 2**20


def test_a_file_of_tables_and_sparks_own_hive_site_are_shipped_in_cluster_mode(run, tmp_path, monkeypatch):
    conf, hadoop, tables = tmp_path / "conf", tmp_path / "hadoop", tmp_path / "tables"
    conf.mkdir(), hadoop.mkdir()
    (conf / "hive-site.xml").touch()
    tables.write_text("a.b\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hadoop))
    cluster = ["--set", "spark.master=yarn", "--set", "spark.deploy_mode=cluster"]
    words = ["submit-options", "--", "analyze", "--tables-file", str(tables), *cluster]
    hive_site = f"{(conf / 'hive-site.xml').as_uri()}#hive-site.xml"

    def shipped(*more):
        return run(*words, *more)[1].split("\0--files\0")[1].split("\0")[0].split(",")

    assert shipped()[1:] == [f"{tables.as_uri()}#hivekeeper-tables.txt", hive_site]
    assert hive_site not in shipped("--set", "spark.extra_files=/etc/hive-site.xml")
    (hadoop / "hive-site.xml").touch()
    assert hive_site not in shipped(), "Spark ships the one in HADOOP_CONF_DIR by itself"


def test_the_output_of_a_driver_is_shown_and_only_files_that_were_asked_for_are_written(run, tmp_path):
    from hivekeeper.launch import driver_output

    asked, other, place = str(tmp_path / "r.json"), str(tmp_path / "other"), tmp_path / "answer"
    place.write_text(driver_output.write(driver_output.DriverOutput(6, "text\n", "a step\n", {asked: "{}\n", other: "x"})))
    (tmp_path / "log").write_text("Submitted application application_1_2\n")
    files = [str(place), str(tmp_path / "log"), str(tmp_path / "none")]
    code, out, err = run("receive-driver-output", *files, "1", "--", "analyze", "--database", "d", "--report-file", asked)
    assert (code, out) == (6, "text\n")
    assert err.startswith("a step\n")
    assert "yarn logs -applicationId application_1_2" in err
    assert (tmp_path / "r.json").read_text() == "{}\n"
    assert not (tmp_path / "other").exists()


def test_a_run_that_left_no_output_is_an_error_with_its_document_and_properties(run, tmp_path):
    (tmp_path / "log").write_text('Exception in thread "main" java.io.IOException: no such host\n')
    old = tmp_path / "p"
    old.write_text("hivekeeper.exit_code=0\n")
    files = [str(tmp_path / "none"), str(tmp_path / "log"), str(tmp_path / "none")]
    words = ["analyze", "--database", "d", "--json", "--properties-out", str(old)]
    code, out, err = run("receive-driver-output", *files, "1", "--", *words)
    assert code == 8
    assert json.loads(out)["error"]["what"] == "nothing was started on YARN: IOException: no such host"
    assert err.startswith("hivekeeper: nothing was started on YARN")
    assert "exit_code=8" in old.read_text()


def test_the_properties_of_an_earlier_run_do_not_stand_for_a_killed_one(run, tmp_path):
    (tmp_path / "log").write_text('Exception in thread "main" org.apache.spark.SparkException: Application application_1_2 is killed\n')
    old = tmp_path / "p"
    old.write_text("hivekeeper.exit_code=0\n")
    files = [str(tmp_path / "none"), str(tmp_path / "log"), str(tmp_path / "none")]
    code, _, err = run("receive-driver-output", *files, "1", "--", "analyze", "--database", "d", "--properties-out", str(old))
    assert code == 143
    assert "application_1_2 was killed on YARN" in err
    assert not old.exists()


def test_a_local_image_is_refused_at_once_where_the_driver_could_not_open_it(run, tmp_path):
    (tmp_path / "image").touch()
    words = ["submit-options", "--", "analyze", "--table", "d.t", "--set", "spark.master=yarn"]
    code, _, err = run(*words, "--fsimage", str(tmp_path / "image"), "--set", "spark.deploy_mode=cluster")
    assert code == 2
    assert "copy it to HDFS" in err
    assert run(*words, "--fsimage", "hdfs:///tmp/image", "--set", "spark.deploy_mode=cluster")[0] == 0
    assert run(*words, "--fsimage", str(tmp_path / "image"))[0] == 0


def test_a_file_of_tables_that_spark_cannot_ship_is_refused_at_once(run, tmp_path):
    (tmp_path / "a,b").write_text("a.b\n")
    cluster = ["--set", "spark.master=yarn", "--set", "spark.deploy_mode=cluster"]
    code, _, err = run("submit-options", "--", "analyze", "--tables-file", str(tmp_path / "a,b"), *cluster)
    assert code == 2
    assert "comma" in err


def test_a_record_of_the_log_is_one_line_whatever_it_names_and_a_stack_stands_in():
    stream = io.StringIO()
    output.set_up_log("info", stream)
    log = logging.getLogger("hivekeeper")
    try:
        log.info("table=%s step=table done", "sales.t\n2026-01-01T00:00:00Z level=INFO table=sales.u\x1b[2J")
        try:
            raise ValueError("dt=1\n2026-01-01T00:00:00Z level=INFO forged\r\x1b[2J")
        except ValueError:
            log.exception("this is a bug")
    finally:
        log.handlers[:] = []
    first, second, *stack = stream.getvalue().splitlines()
    assert first.endswith("level=INFO table=sales.t\\n2026-01-01T00:00:00Z level=INFO table=sales.u\\x1b[2J step=table done")
    assert second.endswith("level=ERROR this is a bug")
    assert "forged" in stack[-1]
    assert all(line.startswith("  ") and line.isprintable() for line in stack)


@pytest.mark.parametrize("option", ["--report-file", "--properties-out"])
def test_an_output_that_cannot_be_written_is_found_before_the_launcher_starts_anything(run, tmp_path, option):
    """The launcher checks it; the driver's own check comes minutes later."""
    code, out, err = run("submit-options", "--", "analyze", "--table", "d.t", option, str(tmp_path / "none" / "out"))
    assert (code, out) == (2, "")
    assert f"{tmp_path}/none/out cannot be written" in err


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_list_of_tables_that_everybody_may_write_is_not_taken(run, tmp_path, mode):
    """Another user of this machine would choose whose tables a run with rights on all of them rolls back or cleans up."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    (shared / "tables").write_text("sales.events\n")
    code, _, err = run("submit-options", "--", "rollback", "--tables-file", str(shared / "tables"))
    assert (code, "[untrusted-file]" in err) == (2, True), err


def test_a_table_with_a_number_sign_in_its_name_is_not_taken_for_another_one(tmp_path):
    """Hive 4 allows it, so whoever may create tables could bring the table before the sign into a list that is made from SHOW TABLES."""
    listed = tmp_path / "tables"
    listed.write_text("sales.events#old\nsales.events # old\n")
    parsed = parser.build_parser().parse_args(["cleanup", "--tables-file", str(listed)])
    assert command_line.read_selection(parsed).tables == ("sales.events#old", "sales.events # old")


def test_a_report_whose_directory_is_not_the_users_own_is_refused_but_not_beside_a_driver(run, tmp_path, monkeypatch):
    """A driver in cluster mode writes below a directory of the NodeManager's user; the launcher has judged where that goes to."""
    (tmp_path / "mine").mkdir()
    tmp_path.chmod(0o777)
    report = str(tmp_path / "mine" / "out.json")
    words = ["analyze", "--table", "d.t", "--report-file", report]
    refused = f"hivekeeper: {report} cannot be written: everyone may exchange files in {tmp_path} [wrong-usage]"
    for asked in (words, ["submit-options", "--", *words]):
        code, _, err = run(*asked)
        assert (code, err.partition("\n")[0]) == (2, refused)
    monkeypatch.setenv(DRIVER_OUTPUT, "hdfs:///outputs/1.json")
    output.require_writable_outputs(parser.build_parser().parse_args(words))


def test_no_command_goes_on_with_an_archive_that_others_may_change():
    world = World()
    world.files.writer.add("/tmp/hivekeeper.py", "")
    world.files.namespace.find("hdfs://nn/tmp").attributes = Attributes("hive", "hive", 0o777, 0o644)
    words = ["history", "--table", "sales.events", "--set", "spark.archive=hdfs:///tmp/hivekeeper.py"]
    parsed = command_line.parse(words)
    with pytest.raises(UsageError, match=r"hdfs://nn/tmp \(owner hive, mode 0777\) may be written by everybody"):
        dispatch.run_command(parsed, command_line.load_config(parsed), world.cluster, command_line.read_selection(parsed), lambda _: True)


def test_every_command_knows_where_the_catalogue_is():
    world = World()
    world.add_table(a_table(location="hdfs://nn/catalogue/metadata/tables"), {"": [1000] * 3})
    parsed = command_line.parse(["analyze", "--table", "sales.events", "--set", "catalogue.base_path=/catalogue"])
    config, selected = command_line.load_config(parsed), command_line.read_selection(parsed)
    (found,) = dispatch.run_command(parsed, config, world.cluster, selected, lambda _: True).tables
    assert found.problem.code is Code.SHARED_DIRECTORY


def test_an_error_is_told_in_a_directory_that_is_gone(run, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    code, _, err = run("analyze", "--tabel", "d.t", "--properties-out", "out.properties")
    assert code == 2
    assert "--tabel" in err


@pytest.mark.parametrize("launcher", [[], ["submit-options", "--"], ["receive-driver-output", "none", "none", "none", "1", "--"]])
@pytest.mark.parametrize("more", [["--table", "d.t"], ["--tabel", "d.t"], []], ids=["right", "wrong usage", "no table"])
def test_a_file_behind_a_link_that_others_may_exchange_is_neither_removed_nor_replaced_by_an_error(run, tmp_path, launcher, more):
    """Whoever may write to the directory puts a link there: a file of that name elsewhere, which only the user of the runs may write."""
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir()
    shared.mkdir()
    shared.chmod(0o777)
    (home / "out.properties").write_text("precious\n")
    (shared / "link").symlink_to(home)
    code, _, _ = run(*launcher, "analyze", *more, "--properties-out", str(shared / "link" / "out.properties"))
    assert code != 0
    assert (home / "out.properties").read_text() == "precious\n"
