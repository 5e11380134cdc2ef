"""What the facts from doctor's probes mean."""

from __future__ import annotations

import pytest

from hivekeeper.codes import Exit
from hivekeeper.plan import doctor
from hivekeeper.plan.doctor import CLUSTER, FIX, MACHINE, OK, SKIP, WARN, Check, Level
from hivekeeper.plan.edge_node import MACHINE_CHECKS
from hivekeeper.reasons import Code, Reason

GIB = 2**30


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ([], Exit.DONE),
        ([Check("a", OK, ""), Check("b", WARN, ""), Check("c", SKIP, "")], Exit.DONE),
        ([Check("a", FIX, "", place=CLUSTER)], Exit.UNUSABLE),
        ([Check("a", FIX, "", place=CLUSTER), Check("b", FIX, "", place=MACHINE)], Exit.USAGE),
        ([Check("a", WARN, "", place=MACHINE), Check("b", FIX, "", place=CLUSTER)], Exit.UNUSABLE),
    ],
)
def test_the_code_tells_where_to_mend_first(checks, code):
    assert doctor.code_of_checks(checks) is code


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("ok java 17.0.15 at /a b/java", Check("java", OK, "17.0.15 at /a b/java", "", MACHINE)),
        ("fix keytab /k is open → chmod 600 /k", Check("keytab", FIX, "/k is open", "chmod 600 /k", MACHINE)),
    ],
)
def test_a_finding_of_the_launcher_is_read_back(text, check):
    assert doctor.read_bash_check(text) == check


def test_a_user_without_proof_is_told_only_where_proof_is_asked_for():
    assert doctor.judge_login(doctor.LoginFacts("etl", "SIMPLE", secured=False, proved=False)).level == OK
    assert doctor.judge_login(doctor.LoginFacts("etl", "KERBEROS", secured=True, proved=True)).level == OK
    assert doctor.judge_login(doctor.LoginFacts("etl", "SIMPLE", secured=True, proved=False)).level == FIX


def levels_of(checks):
    return {check.name: check.level for check in checks}


def test_what_hdfs_lacks_is_a_warning_but_safe_mode_and_a_full_disk_must_be_fixed():
    facts = doctor.FileSystemFacts("hdfs://nn", True, safe_mode=True, remaining_bytes=0, acls="switched off on the server")
    found = levels_of(doctor.judge_file_system(facts))
    assert found == {"file-system": OK, "safe-mode": FIX, "acls": WARN, "xattrs": OK, "encryption": OK, "space": FIX}


def test_a_file_system_that_is_not_hdfs_is_not_asked_what_it_cannot_know():
    found = levels_of(doctor.judge_file_system(doctor.FileSystemFacts("file:///", False, remaining_bytes=GIB)))
    assert found == {"file-system": OK, "safe-mode": SKIP, "acls": SKIP, "xattrs": SKIP, "encryption": SKIP, "space": OK}


@pytest.mark.parametrize(("difference_ms", "level"), [(0, OK), (60_000, OK), (-60_000, OK), (60_001, FIX), (-90_000, FIX)])
def test_clocks_may_differ_by_a_minute(difference_ms, level):
    assert doctor.judge_clock(difference_ms).level == level


@pytest.mark.parametrize(
    ("facts", "level", "place", "says"),
    [
        (doctor.QueueFacts("etl", True), OK, CLUSTER, "etl takes applications of me"),
        (doctor.QueueFacts("no", False, others=("etl", "default")), FIX, MACHINE, "there is no queue no; there are default, etl"),
        (doctor.QueueFacts("etl", True, running=False), FIX, CLUSTER, "is stopped"),
        (doctor.QueueFacts("etl", True, may_submit=False), FIX, CLUSTER, "me may not submit"),
        (doctor.QueueFacts("etl", True, may_submit=False, enforced=False), WARN, CLUSTER, "leave me out"),
    ],
)
def test_a_queue_must_exist_run_and_take_us(facts, level, place, says):
    check = doctor.judge_queue(facts, "me")
    assert (check.level, check.place) == (level, place)
    assert says in check.what


@pytest.mark.parametrize(("setting", "level"), [("require", FIX), ("try", WARN), ("ignore", WARN)])
def test_a_refused_owner_weighs_as_much_as_the_site_says(setting, level):
    trials = {"control": "", "owner": "Non-super user cannot change owner", "group": "not a member", "policy": None}
    checks = doctor.judge_trials("d.t", doctor.TrialFacts("hive", "hadoop", trials), setting)
    assert levels_of(checks) == {"control": OK, "owner": level, "group": level, "policy": SKIP}
    assert {check.table for check in checks} == {"d.t"}
    assert all(check.next for check in checks if check.level in (FIX, WARN))


def test_a_scratch_directory_that_stays_is_told():
    checks = doctor.judge_trials("d.t", doctor.TrialFacts("a", "b", {"control": ""}, left="/t/x (denied)"), "try")
    assert [check.what for check in checks if check.level == WARN] == ["the scratch directory could not be removed: /t/x (denied)"]


TIED = {"dt=2": Reason(Code.NOT_FAITHFUL, "it has a quota", "leave it out"), "dt=1": Reason(Code.NOT_FAITHFUL, "no", "ask")}


def test_units_that_cannot_be_renamed_are_named_and_counted_and_others_remain():
    check = doctor.judge_units("d.t", TIED, 5, 5)
    assert (check.level, check.what, check.next) == (WARN, "dt=1: no (and 1 more of 5)", "ask")
    assert doctor.judge_units("d.t", {"": TIED["dt=1"]}, 1, 1).level == FIX
    assert doctor.judge_units("d.t", {}, 500, 900).what.startswith("500 directories of 900 can")


@pytest.mark.parametrize(
    ("facts", "level", "says"),
    [
        ({}, OK, "there is room"),
        ({"disk_left": GIB, "quota_at": "/data"}, WARN, "the quota at /data leaves 1.0 GiB"),
        ({"names_left": 7, "quota_at": "/data"}, WARN, "leaves 7 names"),
        ({"disk_left": 9 * GIB, "names_left": 90}, OK, "there is room"),
        ({"remaining_bytes": GIB}, WARN, "the file system has 1.0 GiB left"),
        ({"disk_bytes": None}, WARN, "cannot be read"),
    ],
)
def test_there_must_be_room_for_the_table_once_more(facts, level, says):
    whole = {"disk_bytes": 3 * GIB, "objects": 30, "remaining_bytes": 9 * GIB, **facts}
    check = doctor.judge_room("d.t", doctor.RoomFacts(**whole))
    assert check.level == level
    assert says in check.what


def test_every_check_has_a_code_and_only_what_is_to_be_done_shows_one():
    checks = {*MACHINE_CHECKS, *doctor.CLUSTER_CHECKS, *doctor.TABLE_CHECKS}
    assert set(doctor.CODES) == checks
    assert {name: f"check-{name}" for name in checks} == {name: Check(name, FIX, "x").code for name in checks}
    assert [Check("space", level, "x").code for level in Level] == ["", "check-space", "check-space", ""]


def test_an_error_behind_a_finding_gives_its_own_code_unless_it_says_no_more_than_the_check():
    assert Check("metastore", FIX, "x", cause=Code.NO_TICKET.code).code == "no-ticket"
    assert Check("metastore", FIX, "x", cause=Code.METASTORE_UNUSABLE.code).code == "check-metastore"
