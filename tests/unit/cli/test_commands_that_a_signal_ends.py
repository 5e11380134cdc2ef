"""A signal ends a command at once only where a later one finds what it has found: what readers miss of an interrupted run is told once."""

import signal
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from hivekeeper.cli import command_line, dispatch, on_cluster
from hivekeeper.cluster import connect as connecting
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome
from support.builders import a_table
from support.fakes.files import Killed
from support.world import World

RUN = "20260101t020304z-1f0c"
MISPLACED = TableOutcome("sales.events", problem=Reason(Code.CHANGED_IN_OUTAGE, "sales.events/dt=1: the interrupted run was ended"))


def end_by_a_signal(monkeypatch, words):
    """The exit code of a command that is told to end while it works on another table."""

    @contextmanager
    def connect(_options, signals, _log_level):
        signals._receive(signal.SIGTERM, None)
        yield replace(World().cluster, stopping=signals)

    def work(_parsed, _config, cluster, _selected, _confirm):
        return CommandResult(words[0], RUN, 0, 0.0, False, tables=(MISPLACED,), signal=cluster.stopping.signal)

    monkeypatch.setattr(connecting, "connect", connect)
    monkeypatch.setattr(dispatch, "run_command", work)
    parsed = command_line.parse([*words, "--json"])
    return on_cluster.run_on_cluster(parsed, command_line.load_config(parsed))


@pytest.mark.parametrize("words", ["recover", "backup", "forget", f"pin --run {RUN}", f"unpin --run {RUN}", "cleanup", "compact"])
def test_what_no_later_command_tells_is_told_in_spite_of_a_signal(monkeypatch, capsys, words):
    assert end_by_a_signal(monkeypatch, [*words.split(), "--database", "sales"]) == 7
    assert "changed-in-outage" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["analyze", "verify", "history"])
def test_what_only_reads_ends_at_once(monkeypatch, command):
    with pytest.raises(SystemExit) as ended:
        end_by_a_signal(monkeypatch, [command, "--database", "sales"])
    assert ended.value.code == 128 + signal.SIGTERM


@pytest.mark.parametrize("waits_for", ["metadata", "report"])
def test_the_answer_is_told_before_a_namenode_that_does_not_answer_is_waited_for(monkeypatch, capsys, waits_for):
    """While the catalogue, or a report on the cluster, is written. Whoever ends the command then has the answer."""
    world = World()
    world.files.writer.make_directory("hdfs://nn/catalogue")
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    words = ["analyze", "--table", "sales.events", "--set", "catalogue.base_path=/catalogue", "--report-file", "hdfs://nn/catalogue/report"]
    parsed = command_line.parse(words)
    run_command = dispatch.run_command

    def work(*arguments):
        result = run_command(*arguments)
        world.files.before_step = lambda what: world.files.die_after(0) if waits_for in what else None
        return result

    monkeypatch.setattr(connecting, "connect", lambda *_: nullcontext(world.cluster))
    monkeypatch.setattr(dispatch, "run_command", work)
    with pytest.raises(Killed):
        on_cluster.run_on_cluster(parsed, command_line.load_config(parsed))
    assert "sales.events" in capsys.readouterr().out
