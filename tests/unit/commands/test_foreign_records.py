"""A user who may write to one table forges its records, and a user with rights on all tables runs on it: no other files are touched."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands.compact_swap import compact_swap
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.reasons import Code
from hivekeeper.runlog import store
from support.builders import a_table
from support.contexts import a_context
from support.desk import Desk
from support.records import changed, plan_from_json_lines, plan_to_json_lines
from support.world import World

VICTIM = "../../salaries/dt=1"
# Of the first command on a desk.
RUN = "20260101t020000z-0000"
NEVER_BEFORE = names.log_entry(0)


@pytest.fixture
def world():
    world = World()
    for name in ("events", "salaries", "ways"):
        world.add_table(a_table(["dt"], name=name), {f"dt={day}": [1000] * 3 for day in (1, 2)})
    return world


@pytest.fixture
def desk(world):
    return Desk(world)


def interrupted(desk, command, before):
    """The control directory as an interrupted run left it, and that run's plan."""
    desk.kill_before(before, command)
    (directory,) = (name for name in desk.run_directories() if name.startswith(desk.runs[-1]))
    return desk.control.run(directory)


def swap(desk):
    return interrupted(desk, desk.compact, ["rename_exact", "/retired/u00001"])


def roll_back(desk):
    desk.compact()
    return interrupted(desk, desk.rollback, ["rename_exact", "/restoring/u00001"])


def clean_up(desk):
    desk.compact()
    return interrupted(desk, desk.cleanup, ["rename_exact", "/held/u00001"])


def rewrite(world, path, change):
    text = str(world.picture()[path])
    world.files.writer.delete(path)
    world.files.writer.add(path, change(text))


def forge(world, path, way, value):
    rewrite(world, path, lambda text: plan_to_json_lines(changed(plan_from_json_lines(text), way, value)))


def run_on_all(desk):
    selection = Selection(databases=("sales",))
    return compact_swap(a_context(desk.world.cluster, selection, desk._new_run(), Settings(min_quiet_ms=0)))


def files_of(world, *tables):
    return {path: content for path, content in world.picture().items() if any(f"/{table}/" in path for table in tables)}


def require_refused(desk, result, *says):
    """The table is refused, with the file and the field; the other tables are done."""
    found = {table.table: table for table in result.tables}
    problem = found.pop("sales.events").problem
    assert (problem.code, problem.exit) == (Code.FOREIGN_RECORD, Exit.INVESTIGATE)
    assert all(say in problem.what for say in ("is not what Hivekeeper writes", desk.control.top, *says)), problem.what
    assert problem.next
    assert {unit.outcome.code for table in found.values() for unit in table.units} == {"swapped"}


def ours(world):
    """The table's own files and its backups, whatever the name of the run's directory."""
    picture = files_of(world, "events")
    return sorted((re.sub(r"\.t\d+/", "/", path), str(content)) for path, content in picture.items() if not path.endswith("/_lock"))


PLANS = [
    (swap, ["units", 0, "live"], "../salaries/dt=1"),
    (swap, ["units", 0, "live"], ".hivekeeper/log"),
    (swap, ["units", 0, "live"], "dt=2"),
    (swap, ["units", 1, "live"], "."),
    (swap, ["units", 0, "live"], "somewhere/else"),
    (swap, ["units", 0, "partition"], "dt=2"),
    (swap, ["units", 0, "files", 0, 0], f"../../../{VICTIM}/part-00000.parquet"),
    (swap, ["units", 0, "markers"], ["../../x"]),
    (swap, ["run"], "20260101t020304z-ffff"),
    (roll_back, ["units", 0, "backup", "place"], VICTIM),
    (roll_back, ["units", 0, "live"], "../salaries/dt=1"),
    (roll_back, ["units", 0, "live"], "somewhere/else"),
    (roll_back, ["units", 0, "expected", 0, 0], "../part-00000.parquet"),
    (clean_up, ["units", 0, "backup", "place"], VICTIM),
    (clean_up, ["units", 0, "live"], "../salaries/dt=1"),
    (clean_up, ["units", 0, "live"], "dt=2"),
    (clean_up, ["units", 0, "backup"], {"run": RUN, "unit": 2, "place": f"runs/{RUN}/retired/u00002"}),
    (clean_up, ["records"], ["../../salaries"]),
]


@pytest.mark.parametrize(("begun", "way", "value"), PLANS, ids=[f"{b.__name__} {'.'.join(map(str, w))} {v}" for b, w, v in PLANS])
def test_a_forged_plan_moves_nothing(world, desk, begun, way, value):
    run = begun(desk)
    forge(world, run.plan, way, value)
    victim, before = files_of(world, "salaries"), ours(world)
    assert desk.recover().code is Exit.INVESTIGATE
    assert (files_of(world, "salaries"), ours(world)) == (victim, before)
    require_refused(desk, run_on_all(desk), "plan.json", str(way[0]))
    assert ours(world) == before


ENTRIES = [
    ("commitInfo", ["units", 0, "place"], VICTIM),
    ("commitInfo", ["units", 0, "live"], "../salaries/dt=1"),
    ("commitInfo", ["directory"], "../../../salaries"),
    ("remove", ["retired"], f"{VICTIM}/part-00000.parquet"),
    ("remove", ["path"], "../salaries/dt=1/part-00000.parquet"),
    ("add", ["path"], "dt=1/../../salaries/dt=1/part-00000.parquet"),
]


@pytest.mark.parametrize("command", ["rollback", "cleanup", "verify", "recover", "compact", "history"])
@pytest.mark.parametrize(("kind", "way", "value"), ENTRIES, ids=[f"{k}.{'.'.join(map(str, w))}" for k, w, _ in ENTRIES])
def test_a_forged_log_entry_moves_nothing(world, desk, kind, way, value, command):
    desk.compact()

    def change(text):
        actions = [json.loads(line) for line in text.splitlines()]
        at = next(index for index, action in enumerate(actions) if kind in action)
        return "".join(json.dumps(action) + "\n" for action in changed(actions, [at, kind, *way], value))

    rewrite(world, names.join(desk.control.log, NEVER_BEFORE), change)
    victim, before = files_of(world, "salaries"), ours(world)
    (outcome,) = getattr(desk, command)().tables
    assert (outcome.problem.code, outcome.code) == (Code.FOREIGN_RECORD, Exit.INVESTIGATE)
    assert f"/log/{NEVER_BEFORE} is not what Hivekeeper writes: {kind}." in outcome.problem.what
    assert (files_of(world, "salaries"), ours(world)) == (victim, before)


def test_a_forged_certificate_moves_nothing(world, desk):
    run = swap(desk)
    rewrite(world, run.certificates(1), lambda text: text.replace('"files": {"', '"files": {"../'))
    before = ours(world)
    require_refused(desk, run_on_all(desk), "certificates-1.jsonl", "files")
    assert ours(world) == before


def test_a_unit_at_its_own_place_in_the_metastore_is_recovered_wherever_that_is(world, desk):
    elsewhere = f"{desk.live()}/somewhere/else"
    world.files.writer.make_directory(names.parent(elsewhere))
    world.files.namespace.rename(desk.live("dt=1"), elsewhere)
    partitions = world.catalog.partitions["sales.events"]
    partitions["dt=1"] = replace(partitions["dt=1"], location=elsewhere)
    run = swap(desk)
    assert plan_from_json_lines(world.picture()[run.plan])["units"][0]["live"] == "somewhere/else"
    assert desk.recover().code is Exit.DONE


@pytest.mark.parametrize("record", ["plan", "certificates", "entry"])
def test_a_record_that_is_too_large_is_not_read(world, desk, record):
    run = swap(desk)
    path = {"plan": run.plan, "certificates": run.certificates(1), "entry": names.join(desk.control.log, NEVER_BEFORE)}[record]
    if record != "entry":
        world.files.writer.delete(path)
    length = (store.MOST_ENTRY_BYTES if record == "entry" else store.MOST_RECORD_BYTES) + 1
    world.files.writer.add(path, "[", length)
    (outcome,) = desk.recover().tables
    assert outcome.problem.code is Code.FOREIGN_RECORD
    assert f"it has {length} bytes, more than {length - 1}" in outcome.problem.what
