"""A signal ends a command at once only where a later one finds what it has found: what readers miss of an interrupted run is told once."""

import signal

import pytest

from hivekeeper.cli import command_line, on_cluster
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, TableOutcome

RUN = "20260101t020304z-1f0c"
MISPLACED = TableOutcome("sales.events", problem=Reason(Code.CHANGED_IN_OUTAGE, "sales.events/dt=1: the interrupted run was ended"))


def end_by_a_signal(monkeypatch, words):
    """The exit code of a command that is told to end while it works on another table."""

    def work(_parsed, _config, signals):
        signals._receive(signal.SIGTERM, None)
        return CommandResult(words[0], RUN, 0, 0.0, False, tables=(MISPLACED,), signal=signals.signal)

    monkeypatch.setattr(on_cluster, "run_connected", work)
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
