"""The command line without a cluster: what is refused, what is said, which code comes back."""

import io
import json

import pytest

from hivekeeper import __version__, cli, dispatch, options
from hivekeeper.errors import UsageError
from hivekeeper.report.results import TableOutcome, UnitOutcome

RUN = "20260101t020304z-1f0c"


@pytest.fixture
def run(capsys, monkeypatch):
    for name in ("HIVEKEEPER_CONF_DIR",):
        monkeypatch.delenv(name, raising=False)

    def run(*words):
        try:
            code = cli.main(list(words))
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
        (["analyze", "--table", "d.t", "--tabel", "d.u"], "unrecognized arguments: --tabel d.u"),
        (["compact-swap", "--table", "d.t", "--block-size", "-5"], "block_size_mb"),
        (["compact-swap", "--table", "d.t", "--max-units", "0"], "max_units"),
        (["compact-swap", "--table", "d.t", "--table", "d.u", "--sort-columns", "id"], "--sort-columns takes exactly one --table"),
        (["compact-swap", "--database", "d", "--sort-columns", "id"], "--sort-columns takes exactly one --table"),
        (["analyze", "--tables-file", "/nowhere/tables"], "--tables-file /nowhere/tables: No such file or directory"),
        (["analyze", "--table", "d.t", "--set", "block_sise_mb=1"], "block_size_mb"),
        (["analyze", "--table", "d.t", "-c", "/nowhere/site.yaml"], "/nowhere/site.yaml"),
        (["cleanup", "--table", "d.t", "--older-than", "7"], "older_than"),
        (["cleanup", "--table", "d.t", "--older-than", "-7d"], "older-than"),
        (["cleanup", "--table", "d.t", "--min-age", "a week"], "min_age"),
        (["cleanup", "--table", "d.t", "--keep-last", "many"], "keep_last"),
        (["cleanup", "--table", "d.t", "--keep-last", "-1"], "keep_last"),
        (["cleanup", "--table", "d.t", "--set", "discard=shred"], "discard"),
        (["cleanup"], "no table is selected"),
        (["verify", "--table", "d.t", "--run", "latest"], "'latest' is not the id of a run, such as 20260101t020304z-1f0c"),
        (["verify", "--table", "d.t", "--level", "all"], "invalid choice: 'all'"),
        (["rollback", "--table", "d.t", "--run", f"{RUN}.t1"], "is not the id of a run"),
        (["rollback", "--table", "d.t", "--run", f"../{RUN}"], "is not the id of a run"),
        (["rollback", "--table", "d.t", "--run", ""], "is not the id of a run"),
        (["pin", "--table", "d.t"], "--run"),
        (["unpin", "--table", "d.t"], "--run"),
        (["pin", "--table", "d.t", "--run", "20260101"], "is not the id of a run"),
        (["history", "--table", "d.t", "--files"], "--files and --run belong together"),
        (["history", "--table", "d.t", "--run", RUN], "--files and --run belong together"),
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
    parsed = options.build_parser().parse_args(["history", "--table", "d.t", "--files", "--run", RUN, "--at", "3"])
    with pytest.raises(UsageError):
        options.read_selection(parsed)


def test_wrong_usage_with_json_is_a_document_too(run):
    code, out, _ = run("analyze", "--json")
    document = json.loads(out)
    assert (code, document["exit_code"], document["error"]["what"]) == (2, 2, "no table is selected")


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


class Terminal(io.StringIO):
    """A stdin where a person sits."""

    def isatty(self):
        return True


def ask(monkeypatch, capsys, stdin, *words):
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr("sys.stdin", stdin)
    parsed = options.build_parser().parse_args(["rollback", "--table", "sales.events", *words])
    planned = TableOutcome("sales.events", units=(UnitOutcome("dt=1", "planned", 1, 10, 3, 10, of_run=RUN),))
    answer = cli.ask_for_rollback(parsed, planned)
    captured = capsys.readouterr()
    assert captured.out == ""
    return answer, captured.err


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
    listed.write_text("# nightly\nsales.events\n\nsales.orders # big\nsales.events\n")
    parsed = options.build_parser().parse_args(["analyze", "--tables-file", str(listed), "--tables", "a.b, a.c", "--table", "x.y"])
    assert options.read_selection(parsed).tables == ("x.y", "a.b", "a.c", "sales.events", "sales.orders")


def test_config_shows_each_value_and_where_it_comes_from(run, tmp_path, monkeypatch):
    site = tmp_path / "site.yaml"
    site.write_text("block_size_mb: 256\nanalyze_stats: true\n")
    monkeypatch.setenv("HIVEKEEPER_ANALYZE_STATS", "false")
    code, out, _ = run("config", "-c", str(site), "--set", "spark.queue=etl", "--json")
    values = json.loads(out)["values"]
    assert code == 0
    assert values["block_size_mb"] == {"value": 256, "origin": str(site)} or values["block_size_mb"]["value"] == 256
    assert values["analyze_stats"]["value"] is False
    assert values["spark.queue"]["value"] == "etl"


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


def test_every_flag_of_the_help_has_a_key_of_the_configuration():
    from hivekeeper import config

    known = set(config.load([], {}, {}).winners)
    assert set(options.FLAG_KEYS.values()) <= known
