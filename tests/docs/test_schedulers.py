"""The examples for schedulers: the program accepts each command line, and each exit code leads where docs/schedulers.md says."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import pytest

from hivekeeper.cli import command_line, main, parser
from hivekeeper.codes import Exit
from hivekeeper.config.sources import RELEASE_OWNERS
from hivekeeper.launch import spark_submit
from hivekeeper.reasons import Code, Reason
from hivekeeper.report import properties
from hivekeeper.report.results import CommandResult

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
PAGE = (ROOT / "docs" / "schedulers.md").read_text("utf-8")
SHELL, SPARK = "{uri:oozie:shell-action:1.0}", "{uri:oozie:spark-action:1.0}"
WORKFLOW, COORDINATOR = "{uri:oozie:workflow:1.0}", "{uri:oozie:coordinator:0.5}"
HIVEKEEPER = "/opt/hivekeeper/current/bin/hivekeeper"
KILLED = (129, 130, 137, 143)


# -- the examples -------------------------------------------------------------------------------------------


def read_job_properties() -> Dict[str, str]:
    """job.properties, with the keys inside its values substituted."""
    lines = [line for line in (CONF / "oozie" / "job.properties").read_text("ascii").splitlines() if line and line[0] != "#"]
    found = dict(line.split("=", 1) for line in lines)
    return {key: fill_in(value, found) for key, value in found.items()}


def fill_in(text: str, values: Dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)


JOB = read_job_properties()
SHELL_WORKFLOW = ElementTree.parse(CONF / "oozie" / "shell" / "workflow.xml").getroot()
SPARK_WORKFLOW = ElementTree.parse(CONF / "oozie" / "spark" / "workflow.xml").getroot()
CONTROL_M = json.loads((CONF / "control-m" / "hivekeeper.json").read_text("ascii"))
CRON = (CONF / "cron" / "hivekeeper.cron").read_text("ascii")


def read_unit(name: str) -> configparser.RawConfigParser:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(CONF / "systemd" / name)
    return unit


SERVICE, TIMER = read_unit("hivekeeper.service"), read_unit("hivekeeper.timer")


def control_m_jobs() -> Dict[str, Dict[str, object]]:
    jobs = {}
    for folder in CONTROL_M.values():
        jobs.update({name: part for name, part in folder.items() if isinstance(part, dict) and part.get("Type") == "Job:Command"})
    return jobs


def cron_lines() -> List[List[str]]:
    return [line.split(None, 6) for line in CRON.splitlines() if re.match(r"[\d*]+ ", line)]


def command_lines() -> Iterator[Tuple[str, List[str]]]:
    """(example, the operator's words) for every call of the program."""
    for action in SHELL_WORKFLOW.iter(f"{SHELL}shell"):
        yield "oozie shell", [fill_in(argument.text, JOB) for argument in action.iter(f"{SHELL}argument")]
    for action in SPARK_WORKFLOW.iter(f"{SPARK}spark"):
        yield "oozie spark", [fill_in(argument.text.replace("${wf:id()}", "w1"), JOB) for argument in action.iter(f"{SPARK}arg")]
    for job in control_m_jobs().values():
        yield "control-m", after_program(shlex.split(job["Command"]))
    for fields in cron_lines():
        yield "cron", shlex.split(fields[6])[2:]
    yield "systemd", after_program(shlex.split(SERVICE["Service"]["ExecStart"]))


def after_program(words: List[str]) -> List[str]:
    assert words[0] == HIVEKEEPER
    return words[1:]


@pytest.mark.parametrize("words", [pytest.param(words, id=f"{name}: {' '.join(words)}") for name, words in command_lines()])
def test_every_command_line_of_an_example_is_one_that_the_program_takes(words, monkeypatch):
    monkeypatch.delenv("HIVEKEEPER_CONF_DIR", raising=False)
    parsed = parser.build_parser().parse_args(words)
    assert command_line.read_selection(parsed).databases == ("sales",)
    if not parsed.config_file:
        assert command_line.load_config(parsed)


def test_every_scheduler_has_command_lines():
    names = [name for name, _ in command_lines()]
    assert {name: names.count(name) for name in names} == {"oozie shell": 3, "oozie spark": 1, "control-m": 3, "cron": 2, "systemd": 1}


# -- the retry rule -----------------------------------------------------------------------------------------


def retry_table() -> Dict[int, Dict[str, str]]:
    header, _, *rows = re.search(r"^## The retry rule\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE)[1].splitlines()
    titles = cells_of(header)
    return {int(cells_of(row)[0]): dict(zip(titles, cells_of(row))) for row in rows}


def cells_of(row: str) -> List[str]:
    return [cell.strip(" `") for cell in row.strip()[1:-1].split("|")]


TABLE = retry_table()


def test_the_table_knows_every_exit_code_of_the_program_and_the_signals():
    assert tuple(TABLE) == (*map(int, Exit), *KILLED)
    for code in Exit:
        assert (TABLE[code]["meaning"], TABLE[code]["retry"]) == (code.name.lower(), properties.RETRIES[code])


def decide_in_oozie(name: str, code: int) -> str:
    """Where a decision node goes after an exit code."""
    switch = SHELL_WORKFLOW.find(f"{WORKFLOW}decision[@name='{name}']/{WORKFLOW}switch")
    for case in switch.iter(f"{WORKFLOW}case"):
        action, comparison, number = re.fullmatch(
            r"\$\{wf:actionData\('(\w+)'\)\['hivekeeper\.exit_code'\] (eq|gt) (\d+)\}", case.text
        ).groups()
        assert name == f"after-{action}"
        if code == int(number) or (comparison == "gt" and code > int(number)):
            return case.get("to")
    return switch.find(f"{WORKFLOW}default").get("to")


def follow_oozie(code: int) -> str:
    target = decide_in_oozie("after-compact", code)
    if target == "recover":
        assert (decide_in_oozie("after-recover", 0), decide_in_oozie("after-recover", 7)) == ("later", "manual")
        return "recover, then again"
    return {"later": "again"}.get(target, target)


def follow_control_m(code: int) -> str:
    job = control_m_jobs()["COMPACT"]
    rules = [part for part in job.values() if isinstance(part, dict) and part.get("CompletionStatus") == str(code)]
    assert [rule["Type"] for rule in rules] == ["If:CompletionStatus"]
    (action,) = [part for part in rules[0].values() if isinstance(part, dict)]
    if action["Type"] == "Action:Run":
        sequence = [part for part in CONTROL_M[action["Folder"]].values() if isinstance(part, dict) and part.get("Type") == "Flow"][0][
            "Sequence"
        ]
        assert [after_program(shlex.split(control_m_jobs()[name]["Command"]))[0] for name in sequence] == ["recover", "compact-swap"]
        return "recover, then again"
    if action["Type"] == "Action:Rerun":
        assert int(job["RerunLimit"]["Times"]) >= 1
    return {"Action:SetToOK": "end", "Action:Rerun": "again", "Action:Notify": "manual"}[action["Type"]]


def follow_systemd(code: int) -> str:
    service = SERVICE["Service"]
    prevents = [int(word) for word in service["RestartPreventExitStatus"].split()]
    if code == 0 or code in [int(word) for word in service["SuccessExitStatus"].split()]:
        assert code == 0 or code in prevents
        return "end"
    return "manual" if code in prevents else {"on-failure": "again"}[service["Restart"]]


@pytest.mark.parametrize("code", TABLE)
def test_each_example_does_after_each_exit_code_what_the_docs_say(code):
    row = TABLE[code]
    assert follow_oozie(code) == row["Oozie, shell action"]
    assert follow_control_m(code) == row["Control-M"]
    assert follow_systemd(code) == row["systemd"]


@pytest.fixture
def nightly(tmp_path):
    """Run hivekeeper-nightly, installed beside a program that ends with a code; returns its code, its output, and how often it called."""
    installed = tmp_path / "conf" / "cron" / "hivekeeper-nightly"
    installed.parent.mkdir(parents=True)
    shutil.copy(CONF / "cron" / "hivekeeper-nightly", installed)
    program = tmp_path / "bin" / "hivekeeper"
    shutil.copytree(ROOT / "bin" / "lib", program.parent / "lib")

    def run(*codes: int) -> Tuple[int, str, int]:
        answers = tmp_path / "codes"
        answers.write_text("".join(f"{code}\n" for code in codes))
        program.write_text(f'#!/bin/sh\necho "$@"\ncode="$(head -n 1 {answers})"\nsed -i 1d {answers}\nexit "$code"\n')
        program.chmod(0o755)
        environ = {**os.environ, "HIVEKEEPER_PAUSE": "0", "HIVEKEEPER_TRIES": "3"}
        command = [str(installed), str(tmp_path / "log"), "cleanup", "--database", "big sales"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        calls = (tmp_path / "log").read_text().splitlines()
        assert set(calls) == {"cleanup --database big sales"}
        assert done.stderr == ""
        return done.returncode, done.stdout, len(calls)

    return run


CALLS = {"end": 1, "manual": 1, "again, once": 2, "again": 3}


@pytest.mark.parametrize("code", TABLE)
def test_cron_runs_it_again_as_the_docs_say(nightly, code):
    status, printed, calls = nightly(*[code] * 4)
    assert (status, calls) == (code, CALLS[TABLE[code]["cron"]])
    assert (printed == "") == (code == 0)


def test_cron_is_silent_where_the_second_run_succeeds(nightly):
    assert nightly(4, 0) == (0, "", 2)


def test_cron_stops_at_once_where_the_second_run_needs_a_person(nightly):
    status, printed, calls = nightly(8, 7, 0)
    assert (status, calls) == (7, 2)
    assert "ended with exit code 7" in printed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
def test_cron_writes_its_log_to_no_file_that_another_user_has_put_there(nightly, tmp_path):
    """A link in the log's place: all that a run says would be appended to a file of our user's, such as its ~/.ssh/authorized_keys."""
    own = tmp_path / "own"
    own.write_text("")
    tmp_path.chmod(0o1777)
    link = tmp_path / "log"
    link.symlink_to(own)
    os.lchown(link, 65534, 65534)
    with contextlib.suppress(Exception):
        nightly(0)
    assert own.read_text() == ""


def test_other_users_of_the_machine_cannot_read_cron_s_log(nightly, tmp_path):
    """It holds the answer, with names of partitions and examples of rows, as the files in log_dir do, which are closed."""
    before = os.umask(0o022)
    try:
        nightly(0)
    finally:
        os.umask(before)
    assert (tmp_path / "log").stat().st_mode & 0o007 == 0


# -- Oozie --------------------------------------------------------------------------------------------------


def test_job_properties_names_all_that_the_examples_use_and_no_more():
    texts = [path.read_text("utf-8") for path in [*CONF.glob("oozie/**/*.xml"), CONF / "oozie" / "job.properties"]]
    used = set(re.findall(r"\$\{(\w+)\}", "\n".join(texts)))
    assert {key for key in JOB if not key.startswith("oozie.")} == used


def test_the_spark_action_is_started_as_the_wrapper_would_but_without_a_login():
    words = SPARK_WORKFLOW.find(f".//{SPARK}spark-opts").text.split()
    given = [words[at + 1] for at, word in enumerate(words) if word == "--conf"]
    assert {f"{name}={value}" for name, value in spark_submit.FIXED.items()} <= set(given)
    assert not {"--principal", "--keytab", "--proxy-user"} & set(words)
    assert f"spark.pyspark.python=./{spark_submit.ENV_ALIAS}/bin/python" in given
    assert SPARK_WORKFLOW.find(f"{WORKFLOW}action").get("cred") == SPARK_WORKFLOW.find(f".//{WORKFLOW}credential").get("name")


def test_the_spark_action_trusts_the_user_of_the_nodemanager_which_the_directories_of_a_container_belong_to():
    """`tests/unit/launch/test_trusted_files.py` has the directories; without this the driver refuses its site.yaml."""
    action = SPARK_WORKFLOW.find(f".//{SPARK}spark")
    assert "--config-file" in [argument.text for argument in action.iter(f"{SPARK}arg")]
    assert f"spark.yarn.appMasterEnv.{RELEASE_OWNERS}=yarn" in action.find(f"{SPARK}spark-opts").text.split()


def test_the_coordinator_never_lets_two_runs_meet_and_makes_up_for_no_old_night():
    coordinator = ElementTree.parse(CONF / "oozie" / "coordinator.xml").getroot()
    controls = {control.tag.replace(COORDINATOR, ""): control.text for control in coordinator.find(f"{COORDINATOR}controls")}
    assert (controls["concurrency"], controls["execution"]) == ("1", "LAST_ONLY")
    assert int(controls["timeout"]) > 0


@pytest.fixture
def action(tmp_path):
    """Run hivekeeper-action over a program given as a shell line; returns its code and output."""

    def run(program: str, *words: str) -> Tuple[int, str]:
        installed = tmp_path / "bin" / "hivekeeper"
        installed.parent.mkdir()
        installed.write_text(f"#!/bin/bash\n{program}\n")
        installed.chmod(0o755)
        environ = {**os.environ, "HIVEKEEPER_HOME": str(tmp_path), "HADOOP_TOKEN_FILE_LOCATION": "/tokens", "PYTHONPATH": str(ROOT / "job")}
        script = CONF / "oozie" / "shell" / "hivekeeper-action"
        done = subprocess.run([str(script), *words], env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    return run


def test_an_action_ends_well_whatever_the_exit_code_so_that_oozie_captures_it(action):
    status, captured = action(f'exec {shlex.quote(sys.executable)} -m hivekeeper.cli.main "$@"', "analyze", "--tabel", "d.t")
    assert status == 0
    assert captured.startswith("hivekeeper.exit_code=2\nhivekeeper.meaning=usage\n")
    assert "hivekeeper.error=unrecognized arguments: --tabel d.t\n" in captured


def test_an_action_that_was_killed_gives_its_code_and_not_what_it_had_printed(action):
    assert action("echo hivekeeper.exit_code=0; kill -9 $$", "analyze") == (0, "hivekeeper.exit_code=137\n")


def test_an_action_passes_on_nothing_but_properties(action):
    assert action("echo Picked up JAVA_OPTIONS; echo hivekeeper.exit_code=6; exit 6", "analyze") == (0, "hivekeeper.exit_code=6\n")


def test_an_action_does_not_use_the_tokens_of_its_container(action):
    assert action('[[ -z ${HADOOP_TOKEN_FILE_LOCATION:-} ]] || exit 8; [[ "$*" == "analyze --properties-out -" ]]', "analyze") == (
        0,
        "hivekeeper.exit_code=0\n",
    )


# -- cron, Control-M, systemd -------------------------------------------------------------------------------


def test_a_line_of_cron_has_a_user_and_no_percent_sign():
    assert [fields[5] for fields in cron_lines()] == ["etl", "etl"]
    assert not any("%" in " ".join(fields) for fields in cron_lines())
    assert "MAILTO=" in CRON


def test_every_object_of_control_m_has_a_type_that_its_reference_knows():
    known = {"Folder", "Job:Command", "Flow", "If:CompletionStatus", "Action:SetToOK", "Action:Rerun", "Action:Run", "Action:Notify"}
    plain = {"When", "RerunLimit"}
    waiting = list(CONTROL_M.items())
    while waiting:
        name, part = waiting.pop()
        if isinstance(part, dict) and name not in plain:
            assert part["Type"] in known, name
            waiting += part.items()
    for folder in CONTROL_M.values():
        assert {"Type", "RunAs", "Host", "When"} <= set(folder)


def test_the_unit_is_one_that_the_oldest_systemd_takes():
    service = SERVICE["Service"]
    assert (service["Type"], service["Restart"]) == ("simple", "on-failure")
    assert "StartLimitIntervalSec" not in SERVICE["Unit"]
    assert int(service["StartLimitBurst"]) > 1
    assert TIMER["Timer"]["OnCalendar"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on PATH")
@pytest.mark.parametrize(("old", "new", "refused"), [("", "", False), ("Type=simple", "Type=oneshot\nRestart=always", True)])
def test_systemd_itself_takes_the_units_and_would_refuse_wrong_ones(tmp_path, old, new, refused):
    for name in ("hivekeeper.service", "hivekeeper.timer"):
        text = (CONF / "systemd" / name).read_text("ascii").replace(HIVEKEEPER, "/bin/true").replace("User=etl", "User=root")
        (tmp_path / name).write_text(text.replace("Restart=on-failure\n", "").replace(old, new) if refused else text)
    units = [str(tmp_path / name) for name in ("hivekeeper.service", "hivekeeper.timer")]
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == refused, done.stderr
    assert ("hivekeeper" in done.stderr) == refused, done.stderr


# -- the properties -----------------------------------------------------------------------------------------


def keys_of(text: str) -> List[str]:
    return [line.partition("=")[0] for line in text.splitlines()]


def test_every_key_of_the_properties_is_described_and_every_described_key_is_written():
    rows = re.search(r"^\| key \| holds \|\n\|[- |]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)[1]
    described = re.findall(r"`(hivekeeper\.\w+)`", rows)
    starred = re.findall(r"`(hivekeeper\.\w+)` \*", rows)
    assert described == keys_of(properties.render(CommandResult("analyze", "r", 0, 0.0, True)))
    assert starred == keys_of(properties.render_error(Reason(Code.WRONG_USAGE, "what", "next", "state"), "analyze", Exit.USAGE))


def test_a_variable_that_an_example_sets_is_none_that_the_program_takes_for_a_setting(monkeypatch, capsys):
    shell = CONF / "oozie" / "shell"
    scripts = [shell / "hivekeeper-action", shell / "workflow.xml", CONF / "cron" / "hivekeeper-nightly"]
    found = {name for path in scripts for name in re.findall(r"HIVEKEEPER_[A-Z_]+", path.read_text("utf-8"))}
    assert {"HIVEKEEPER_HOME", "HIVEKEEPER_TRIES"} <= found
    for name in found:
        monkeypatch.setenv(name, "4")
    assert main.main(["config"]) == Exit.DONE, capsys.readouterr().err
