"""doctor on an in-memory cluster: what it checks, what it skips, and what operators and programs read of it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Dict, Optional, Tuple

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.doctor import Subject, check_up
from hivekeeper.errors import Refused, Unusable, UsageError
from hivekeeper.model import Selection, Ties
from hivekeeper.plan import doctor
from hivekeeper.plan.doctor import CLUSTER, CLUSTER_CHECKS, FIX, MACHINE, OK, SKIP, TABLE_CHECKS, WARN, Check, ProbeFailed
from hivekeeper.ports import FilesUnavailable, MetastoreUnavailable
from hivekeeper.reasons import Code
from hivekeeper.report import document, screen
from hivekeeper.report.results import CommandResult
from support.builders import a_partition, a_table
from support.contexts import PREFIX, QUIET
from support.world import World

RUN = "20260101t020304z-0000"
TRIED = ("control", "write", "rename", "owner", "group", "set-acl", "set-xattr", "policy")


@dataclass
class HealthyProbes:
    """A healthy cluster, except for what a test puts into `broken`: name of a probe → its error."""

    world: World
    broken: Dict[str, Exception] = field(default_factory=dict)
    on_yarn: bool = True
    session: str = "Spark 3.5.9"
    metastore: str = "thrift://hms:9083"
    facts: doctor.FileSystemFacts = doctor.FileSystemFacts("hdfs://nn", True, remaining_bytes=2**40)
    queue_facts: Optional[doctor.QueueFacts] = None
    asked: Dict[str, Tuple[object, ...]] = field(default_factory=dict)

    def _answer(self, name, answer, *asked):
        self.asked[name] = asked
        if name in self.broken:
            raise self.broken[name]
        return answer

    def files(self):
        return self.world.files

    def cluster(self):
        return self._answer("cluster", self.world.cluster)

    def login(self):
        return self._answer("login", doctor.LoginFacts("etl", "KERBEROS", True, True))

    def file_system(self):
        return self._answer("file_system", self.facts)

    def staging(self, scratch):
        return self._answer("staging", doctor.StagingFacts(f"/user/etl/{scratch}", 5), scratch)

    def queue(self, name):
        return self._answer("queue", self.queue_facts, name)

    def missing(self, paths):
        return self._answer("missing", tuple(path for path in paths if "gone" in path))

    def try_rights(self, root, control, scratch):
        return self._answer("try_rights", doctor.TrialFacts("hive", "hive", dict.fromkeys(TRIED, "")), root, control, scratch)

    def room(self, root):
        return self._answer("room", doctor.RoomFacts(disk_bytes=1, objects=1, remaining_bytes=2**40), root)


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1], "dt=2": [1]})
    return world


def examine(probes, *tables, **more):
    @contextmanager
    def open_probes():
        yield probes

    return run(open_probes, *tables, **more)


def run(open_probes, *tables, **more):
    subject = Subject(Selection(tables=tables), lambda _table: QUIET, PREFIX, RUN, **more)
    return check_up(open_probes, World().clock, subject)


def levels_of(result):
    return {check.name: check.level for check in result.checks}


def test_where_all_is_well_every_check_is_made_and_is_ok(world):
    result = examine(HealthyProbes(world), "sales.events")
    assert [check.name for check in result.checks] == [*CLUSTER_CHECKS, *TABLE_CHECKS]
    assert set(levels_of(result).values()) == {OK}
    assert result.code is Exit.DONE


def test_a_table_on_a_foreign_server_is_a_finding_and_nothing_is_tried_there(world):
    world.add_table(a_table(name="gone", location="ftp://silent/x"), {})
    probes = HealthyProbes(world)
    result = examine(probes, "sales.gone", "sales.events")
    (finding,) = [check for check in result.checks if check.table == "sales.gone"]
    assert (finding.name, finding.level, finding.cause) == ("table", FIX, "foreign-server")
    assert "ftp" not in str(probes.asked)
    assert len([check for check in result.checks if check.table == "sales.events"]) == len(TABLE_CHECKS)


def test_partitions_on_foreign_servers_are_not_called(world):
    world.catalog.add_partition("sales.events", a_partition("dt=3", "ftp://silent/x"))
    (units,) = [check for check in examine(HealthyProbes(world), "sales.events").checks if check.name == "units"]
    assert (units.level, units.what) == (OK, "2 directories of 3 can be renamed, and lose nothing by it")


def test_a_session_that_does_not_start_is_a_finding_and_the_rest_is_skipped():
    @contextmanager
    def open_probes():
        raise Unusable("Spark did not start: there is no valid Kerberos ticket", next="run kinit")
        yield

    result = run(open_probes, "sales.events")
    assert result.checks[0] == Check("session", FIX, "Spark did not start: there is no valid Kerberos ticket", "run kinit", CLUSTER)
    assert levels_of(result) == {"session": FIX, **dict.fromkeys(CLUSTER_CHECKS[1:], SKIP)}
    assert result.code is Exit.UNUSABLE


def test_a_session_that_the_configuration_makes_impossible_is_mended_there():
    @contextmanager
    def open_probes():
        raise UsageError("Spark did not start: there is no YARN queue x", next="correct spark.queue")
        yield

    result = run(open_probes)
    assert (result.checks[0].place, result.code) == (MACHINE, Exit.USAGE)


@pytest.mark.parametrize(
    ("probe", "error", "wrong", "skipped"),
    [
        ("login", ProbeFailed("no", "do"), "login", set()),
        ("file_system", ProbeFailed("no", "do"), "file-system", {*CLUSTER_CHECKS[3:11], "table"}),
        ("staging", ProbeFailed("no", "do"), "staging", {"clock"}),
        ("missing", ProbeFailed("no", "do"), "shipped-files", set()),
        ("cluster", Unusable("no", next="do"), "metastore", {"table"}),
        ("cluster", MetastoreUnavailable("no"), "metastore", {"table"}),
        ("try_rights", ProbeFailed("no", "do"), "control", set()),
        ("room", ProbeFailed("no", "do"), "room", set()),
    ],
)
def test_a_probe_without_an_answer_stops_only_what_needs_it(world, probe, error, wrong, skipped):
    result = examine(HealthyProbes(world, {probe: error}), "sales.events")
    found = levels_of(result)
    assert {name for name, level in found.items() if level == FIX} == {wrong}
    assert {name for name, level in found.items() if level == SKIP} == skipped
    assert all(check.next for check in result.checks if check.level == FIX)
    assert result.code is Exit.UNUSABLE


def test_in_safe_mode_nothing_is_tried(world):
    probes = HealthyProbes(world, facts=doctor.FileSystemFacts("hdfs://nn", True, safe_mode=True, remaining_bytes=1))
    found = levels_of(examine(probes, "sales.events"))
    assert (found["safe-mode"], found["staging"], found["clock"], found["table"]) == (FIX, SKIP, SKIP, SKIP)
    assert "control" not in found


def test_a_metastore_of_another_protocol_version_is_found_though_it_lists_its_databases(world):
    def refuse(*_arguments):
        raise MetastoreUnavailable("the metastore speaks another protocol version than this Spark's Hive client")

    world.metastore.tables = refuse
    assert levels_of(examine(HealthyProbes(world)))["metastore"] == FIX


def test_a_table_that_is_not_there_is_a_wrong_configuration(world):
    result = examine(HealthyProbes(world), "sales.evnts")
    assert [(check.table, check.level, check.place) for check in result.checks if check.name == "table"] == [("sales.evnts", FIX, MACHINE)]
    assert result.code is Exit.USAGE


def test_a_database_that_is_not_there_is_told_and_the_rest_stands(world):
    subject = Subject(Selection(databases=("nowhere",)), lambda _table: QUIET, PREFIX, RUN)

    @contextmanager
    def open_probes():
        yield HealthyProbes(world)

    result = check_up(open_probes, world.clock, subject)
    assert [check.what for check in result.checks if check.level == FIX] == ["the database nowhere does not exist"]


def test_a_view_has_nothing_to_be_tried(world):
    world.add_table(a_table(name="view", kind="VIRTUAL_VIEW", location=""), {})
    result = examine(HealthyProbes(world), "sales.view")
    assert [check.level for check in result.checks if check.table == "sales.view"] == [WARN]


@pytest.mark.parametrize("error", [FilesUnavailable("No FileSystem for scheme nosuch"), ValueError("a bug of ours")])
def test_a_location_that_cannot_be_asked_about_costs_only_its_own_table(world, error):
    world.add_table(a_table(name="evil", location="hdfs://nn/warehouse/sales/evil"), {})

    def fail(path):
        if "evil" in path:
            raise error

    world.files.require_lockable = fail
    result = examine(HealthyProbes(world), "sales.evil", "sales.events")
    assert [(check.table, check.name) for check in result.checks if check.level is FIX] == [("sales.evil", "table")]
    assert [check.name for check in result.checks if check.table == "sales.events"] == list(TABLE_CHECKS)


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("/events/x", Code.SHARED_DIRECTORY),
        ("", Code.SHARED_DIRECTORY),
        ("/.hivekeeper-orders/runs/20260101t020304z-0000/retired/u00001", Code.IN_CONTROL_DIRECTORY),
        ("/.reserved/.inodes/16392", Code.RESERVED_NAME),
        ("/local", Code.LOCAL_TABLE),
        ("/stolen", Code.RECORDS_OF_ANOTHER),
    ],
)
def test_nothing_is_tried_where_a_run_would_make_nothing(world, location, code):
    sales = world.table("sales.events").location.rpartition("/")[0]
    world.add_table(a_table(["dt"], name="evil", location=f"{sales}{location}"), {})
    world.files.writer.make_directory(f"{sales}/stolen/.hivekeeper")
    stolen = world.files.namespace.find(f"{sales}/stolen/.hivekeeper")
    stolen.attributes = replace(stolen.attributes, owner="tenant")

    def refuse(path):
        if "/local/" in path:
            raise Refused("it is on the local file system", code=Code.LOCAL_TABLE, next="leave it out")

    world.files.require_lockable = refuse
    probes = HealthyProbes(world)
    found = [check for check in examine(probes, "sales.evil").checks if check.table]
    # Tables of snapshots are nobody's mistake.
    level = WARN if code is Code.RESERVED_NAME else FIX
    assert [(check.name, check.level, check.code) for check in found] == [("table", level, code.code)]
    assert not {"try_rights", "room"} & set(probes.asked)


def test_rights_are_tried_below_the_control_directory(world):
    probes = HealthyProbes(world)
    examine(probes, "sales.events")
    root = next(iter(world.metastore.tables("sales", ["events"]).values())).location
    assert probes.asked["try_rights"] == (root, f"{root}/.hivekeeper", f".hivekeeper.doctor-{RUN}")
    assert probes.asked["room"] == (root,)


def test_rights_of_an_unpartitioned_table_are_tried_beside_it(world):
    world.add_table(a_table(name="orders"), {"": [1]})
    probes = HealthyProbes(world)
    examine(probes, "sales.orders")
    root = next(iter(world.metastore.tables("sales", ["orders"]).values())).location
    parent, _, name = root.rpartition("/")
    assert probes.asked["try_rights"][1] == f"{parent}/.hivekeeper-{name}"


def test_a_unit_that_must_not_be_renamed_is_told(world):
    root = next(iter(world.metastore.tables("sales", ["events"]).values())).location
    world.files.namespace.ties[f"{root}/dt=1"] = Ties(quota=True)
    (units,) = (check for check in examine(HealthyProbes(world), "sales.events").checks if check.name == "units")
    assert units.what.startswith("dt=1: its directory has a quota of its own")


@pytest.mark.parametrize(
    ("facts", "level", "code"),
    [
        (None, SKIP, Exit.DONE),
        (doctor.QueueFacts("etl", True), OK, Exit.DONE),
        (doctor.QueueFacts("etl", False), FIX, Exit.USAGE),
        (doctor.QueueFacts("etl", True, may_submit=False), FIX, Exit.UNUSABLE),
    ],
)
def test_off_yarn_the_resource_manager_is_asked_about_the_queue(world, facts, level, code):
    probes = HealthyProbes(world, on_yarn=False, queue_facts=facts)
    result = examine(probes, queue="etl")
    assert (levels_of(result)["queue"], result.code) == (level, code)
    assert probes.asked["queue"] == ("etl",)


def test_files_on_the_cluster_that_are_not_there_are_named(world):
    result = examine(HealthyProbes(world), shipped=("hdfs:///a/env.tar.gz", "hdfs:///gone.tar.gz"))
    check = next(check for check in result.checks if check.name == "shipped-files")
    assert (check.level, check.what) == (FIX, "not there: hdfs:///gone.tar.gz")


def test_files_on_the_cluster_that_others_may_change_are_a_finding(world):
    world.files.writer.add("/apps/hivekeeper.py", "")
    node = world.files.namespace.find("hdfs://nn/apps/hivekeeper.py")
    node.attributes = replace(node.attributes, owner="mallory")
    for trusted, level, cause in (((), FIX, "untrusted-file"), (("mallory",), OK, "")):
        result = examine(HealthyProbes(world), shipped=("hdfs:///apps/hivekeeper.py",), trusted=trusted)
        check = next(check for check in result.checks if check.name == "shipped-files")
        assert (check.level, check.cause) == (level, cause)


def test_the_findings_on_this_machine_come_first_and_count_for_more(world):
    keytab = Check("keytab", FIX, "/k is open", "chmod 600 /k", MACHINE)
    result = examine(HealthyProbes(world, {"login": ProbeFailed("no", "do")}), found=(keytab,))
    assert [check.name for check in result.checks] == ["keytab", *CLUSTER_CHECKS]
    assert result.code is Exit.USAGE


def test_a_person_reads_one_line_a_finding_and_what_to_do_below():
    checks = (Check("bash", OK, "5.2"), Check("hadoop-conf", FIX, "it is a file", "set it"), Check("write", OK, "allowed", table="d.t"))
    shown = screen.render(CommandResult("doctor", RUN, 0, 1.0, named=False, checks=checks))
    assert shown.splitlines() == [
        "ok    bash             5.2",
        "fix   hadoop-conf      it is a file",
        "      → set it",
        "ok    write            d.t: allowed",
    ]


def test_findings_that_are_handed_over_are_read_back_whole():
    checks = (Check("keytab", FIX, "/k ü → x", "chmod 600 /k", MACHINE), Check("write", SKIP, "not tried", table="d.t"))
    assert document.read_checks(document.build_checks(checks)) == checks


def test_a_program_reads_every_finding_with_its_place(world):
    written = json.loads(document.to_json(document.build(examine(HealthyProbes(world), "sales.evnts"))))
    assert written["exit_code"] == 2
    assert written["command"] == "doctor"
    wrong = [check for check in written["checks"] if check["level"] == "fix"]
    assert [(check["name"], check["table"], check["place"]) for check in wrong] == [("table", "sales.evnts", "machine")]


def test_the_definitions_of_a_database_are_read_when_those_of_the_one_before_are_checked(world, monkeypatch):
    """Each may have as many as fit into memory."""
    world.catalog.databases.add("web")
    world.add_table(replace(a_table(name="clicks", location="hdfs://nn/warehouse/web/clicks"), database="web"), {"": [1]})
    probes, read, tables = HealthyProbes(world), [], type(world.metastore).tables

    def note(self, database, names):
        read.append((database, probes.asked.get("room")))
        return tables(self, database, names)

    monkeypatch.setattr(type(world.metastore), "tables", note)
    result = examine(probes, "sales.events", "web.clicks")
    assert ("web", ("hdfs://nn/warehouse/sales/events",)) in read
    assert ("web", None) not in read
    assert [check.table for check in result.checks if check.name == "table"] == ["sales.events", "web.clicks"]
