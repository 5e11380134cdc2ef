"""The jail: every change by any port is inside the table's own places, or is refused before it reaches the port."""

from __future__ import annotations

import inspect
import posixpath
from dataclasses import replace
from typing import Any, Callable, Dict, List, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import ports
from hivekeeper.codes import Exit
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.jail import NOWHERE, Jail, JailedFiles, JailedMetastore, JailedRowFiles, JailedRows, confine, confine_files
from hivekeeper.model import CatalogueTable, Ends, FileInfo, Partition, Snapshot, StageBatch
from hivekeeper.names import backup_marks
from hivekeeper.reasons import Code
from support import changes
from support.builders import PARQUET, a_table
from support.world import World

TABLE = a_table(["dt"])
ROOT = TABLE.location
INSIDE = f"{ROOT}/dt=1"
FILE = FileInfo(INSIDE, 9, 0, False, 7)
CONTROL = f"{ROOT}/.hivekeeper"
OURS = backup_marks("b.t", TABLE.full_name)
JAIL = Jail.of(World().files, TABLE)
CATALOGUE = Jail("the catalogue", (ROOT,), "seen")

OUTSIDE = [
    "hdfs://nn/warehouse/fin/salaries",
    f"{ROOT}-archive",
    f"{ROOT}/../salaries",
    f"{ROOT}/dt=1/../../salaries",
    f"{ROOT}/./dt=1",
    f"{ROOT}//dt=1",
    f"{ROOT}/",
    f"{ROOT}/dt=1/",
    ROOT.replace("hdfs://nn/", "/"),
    ROOT.replace("hdfs://nn/", "hdfs://NN/"),
    ROOT.replace("hdfs://nn/", "hdfs://nn:8020/"),
    ROOT.replace("hdfs://nn/", "hdfs:/"),
    ROOT.replace("hdfs://nn/", "file:/"),
    f"{ROOT}/.snapshot/s1/dt=1",
    "hdfs://nn/.reserved/.inodes/16386",
    "hdfs://nn/.reserved/raw" + ROOT[len("hdfs://nn") :],
    ROOT.rpartition("/")[0],
    "hdfs://nn/",
    "hdfs://nn",
    "",
    ".",
    "dt=1",
]


class Witness:
    """A port that only counts the calls that reach it."""

    clock_grain_ms = 1

    def __init__(self) -> None:
        self.reached: List[str] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *_arguments: self.reached.append(method)


def a_batch(target: str) -> StageBatch:
    fields: Dict[str, Any] = dict.fromkeys(StageBatch.__dataclass_fields__)
    return StageBatch(**{**fields, "target": target})


# Each changing call with one path chosen by the caller and the others valid.
SEEN = CatalogueTable("seen.t", INSIDE, {}, "day", {})

CALLS: List[Tuple[str, str, Callable[[Any, str], Any]]] = [
    ("files", "make_directory", lambda port, path: port.make_directory(path)),
    ("files", "rename_exact", lambda port, path: port.rename_exact(path, INSIDE)),
    ("files", "rename_exact", lambda port, path: port.rename_exact(INSIDE, path)),
    ("files", "concat", lambda port, path: port.concat(path, [INSIDE])),
    ("files", "concat", lambda port, path: port.concat(INSIDE, [INSIDE, path])),
    ("files", "copy_part", lambda port, path: port.copy_part(FileInfo(INSIDE, 9, 0, False, 7), 0, 3, path)),
    ("files", "cut", lambda port, path: port.cut(FileInfo(path, 9, 0, False, 7), 3, ())),
    ("files", "exchange", lambda port, path: port.exchange(path, CONTROL, INSIDE, Snapshot(True))),
    ("files", "exchange", lambda port, path: port.exchange(INSIDE, path, INSIDE, Snapshot(True))),
    ("files", "exchange", lambda port, path: port.exchange(INSIDE, CONTROL, path, Snapshot(True))),
    ("files", "remove_empty", lambda port, path: port.remove_empty(path)),
    ("files", "delete_tree", lambda port, path: port.delete_tree(path)),
    ("files", "delete_file", lambda port, path: port.delete_file(path)),
    ("files", "move_to_trash", lambda port, path: port.move_to_trash(path)),
    ("files", "write_new", lambda port, path: port.write_new(path, "x")),
    ("files", "hold", lambda port, path: port.hold(path, "us")),
    ("files", "dress", lambda port, path: port.dress({INSIDE: None, path: None})),
    ("files", "guard", lambda port, path: port.guard({INSIDE: None, path: None})),
    ("metastore", "add_partition", lambda port, path: port.add_partition(TABLE, Partition("dt=1", ("1",), path, PARQUET, {}))),
    ("metastore", "make_backup_table", lambda port, path: port.make_backup_table(TABLE, "b.t", path, OURS, [])),
    ("metastore", "point_backup_table", lambda port, path: port.point_backup_table("b.t", OURS, {"dt=1": path})),
    ("metastore", "make_catalogue_table", lambda port, path: port.make_catalogue_table(CatalogueTable("seen.t", path, {}, "day", {}))),
    ("metastore", "point_catalogue_table", lambda port, path: port.point_catalogue_table(SEEN, {"1": INSIDE, "2": path})),
    ("rows", "write_ends", lambda port, path: port.write_ends("parquet", {1: Ends(FILE, INSIDE, INSIDE), 2: Ends(FILE, path, INSIDE)})),
    ("rows", "write_ends", lambda port, path: port.write_ends("parquet", {1: Ends(FILE, INSIDE, path)})),
    ("rows", "write_ends", lambda port, path: port.write_ends("parquet", {1: Ends(FILE, INSIDE, INSIDE, path)})),
    ("rows", "write_restored", lambda port, path: port.write_restored("parquet", FileInfo(INSIDE, 9, 0, False, 7), 1, [8], path)),
    ("rows", "write_stage", lambda port, path: port.write_stage(a_batch(path))),
    ("row_files", "write", lambda port, path: port.write(path, {}, ())),
]
JAILED = {"files": JailedFiles, "metastore": JailedMetastore, "rows": JailedRows, "row_files": JailedRowFiles}
WORDS = [f"{port}.{method}-{number}" for number, (port, method, _) in enumerate(CALLS)]


@pytest.mark.parametrize(("port", "method", "call"), CALLS, ids=WORDS)
def test_a_change_reaches_its_port_inside_and_nowhere_else(port, method, call):
    witness = Witness()
    jailed = JAILED[port](witness, replace(JAIL, database="seen"))
    for path in (INSIDE, f"{CONTROL}/runs/x/retired/u00001"):
        call(jailed, path)
    assert witness.reached == [method] * 2
    for path in OUTSIDE:
        with pytest.raises(NeedsInvestigation) as refused:
            call(jailed, path)
        assert refused.value.reason.code is Code.NOT_OUR_OWN
        assert refused.value.reason.exit is Exit.INVESTIGATE
    assert witness.reached == [method] * 2


OTHER = a_table(["dt"], name="salaries")
OF_OTHER = backup_marks("b.t", OTHER.full_name)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("update_sizes", (OTHER, {"": (1, 1)})),
        ("add_partition", (OTHER, Partition("dt=1", ("1",), INSIDE, PARQUET, {}))),
        ("make_backup_table", (OTHER, "b.t", INSIDE, OF_OTHER, [])),
        ("make_backup_table", (TABLE, "b.t", INSIDE, OF_OTHER, [])),
        ("make_backup_table", (TABLE, "b.t", INSIDE, {}, [])),
        ("point_backup_table", ("b.t", OF_OTHER, {})),
        ("trim_backup_table", ("b.t", OF_OTHER, [])),
        ("trim_backup_table", ("b.t", {}, [])),
        ("drop_backup_table", ("b.t", OF_OTHER)),
        ("drop_backup_table", ("b.t", {})),
        ("drop_backup_table", ("b.renamed", OURS)),
        ("hold", (OTHER, 1.0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_table_of_the_metastore_is_never_changed(method, arguments):
    witness = Witness()
    with pytest.raises(NeedsInvestigation):
        getattr(JailedMetastore(witness, JAIL), method)(*arguments)
    assert not witness.reached


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("make_database", ("sales", "")),
        ("make_catalogue_table", (replace(SEEN, name="sales.t"),)),
        ("make_catalogue_view", ("sales.v", "SELECT 1", {}, {}, ())),
        ("point_catalogue_table", (replace(SEEN, name="sales.t"), {})),
    ],
)
def test_the_catalogue_changes_only_its_own_database_and_a_table_none(method, arguments):
    witness = Witness()
    for jail in (CATALOGUE, Jail(TABLE.full_name, (ROOT,)), NOWHERE):
        with pytest.raises(NeedsInvestigation):
            getattr(JailedMetastore(witness, jail), method)(*arguments)
    assert not witness.reached
    own = SEEN if isinstance(arguments[0], CatalogueTable) else arguments[0].replace("sales", "seen")
    getattr(JailedMetastore(witness, CATALOGUE), method)(own, *arguments[1:])


@pytest.mark.parametrize("port", [ports.Files, ports.Metastore, ports.Rows, ports.RowFiles])
def test_every_change_that_a_port_knows_is_tried_above(port):
    known = {
        ports.Files: {*changes.FILES, "exchange"},
        ports.Metastore: set(changes.METASTORE),
        ports.Rows: set(changes.ROWS),
        ports.RowFiles: set(changes.ROW_FILES),
    }[port]
    tried = {method for _, method, _ in CALLS} | {"update_sizes", "trim_backup_table", "drop_backup_table"}
    assert known <= tried | {"make_database", "make_catalogue_view"}


@pytest.mark.parametrize(
    ("port", "jailed"),
    [
        (ports.Files, JailedFiles),
        (ports.Metastore, JailedMetastore),
        (ports.Rows, JailedRows),
        (ports.RowFiles, JailedRowFiles),
    ],
)
def test_a_jail_has_each_method_of_its_port_itself(port, jailed):
    def methods(kind: type) -> set:
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert methods(port) <= methods(jailed)


PIECES = [
    "..",
    ".",
    "",
    "dt=1",
    ".hivekeeper",
    "runs",
    ".reserved",
    ".inodes",
    ".snapshot",
    "warehouse",
    "sales",
    "events",
    "%2e",
    "a b",
    "\n",
]
STARTS = [ROOT, f"{ROOT}/", CONTROL, "hdfs://nn", "hdfs://nn/", "hdfs:", "file:", "", "/", "HDFS://nn", f"{ROOT}x"]


@given(st.sampled_from(STARTS), st.lists(st.sampled_from(PIECES), max_size=8))
def test_what_the_jail_lets_through_lies_inside_however_it_is_read(start, pieces):
    path = start + "/".join(pieces) if start.endswith("/") else "/".join([start, *pieces])
    try:
        JAIL.require(path)
    except NeedsInvestigation:
        return
    scheme, _, rest = path.partition("//nn")
    assert scheme == "hdfs:"
    assert posixpath.normpath(rest) == rest
    assert f"hdfs://nn{rest}" == ROOT or f"hdfs://nn{rest}".startswith(ROOT + "/")


def test_a_view_and_a_table_on_the_root_may_change_nothing():
    for location in ("", "hdfs://nn/", "hdfs://nn"):
        jail = Jail.of(World().files, a_table(location=location))
        for path in ("hdfs://nn", "hdfs://nn/", "hdfs://nn/x", "hdfs://nn/.hivekeeper-nn"):
            with pytest.raises(NeedsInvestigation):
                jail.require(path)


def test_who_is_confined_twice_is_in_the_second_jail_alone():
    world = World()
    world.add_table(TABLE, {"dt=1": [1000]})
    nowhere = confine(world.cluster, NOWHERE)
    with pytest.raises(NeedsInvestigation):
        nowhere.files.delete_tree(INSIDE)
    confine(nowhere, JAIL).files.make_directory(f"{CONTROL}/runs")
    assert world.files.stat(f"{CONTROL}/runs")
    with pytest.raises(NeedsInvestigation):
        confine_files(nowhere.files, "hdfs://nn/reports/r.json").write_new("hdfs://nn/reports/other.json", "")
    world.files.make_directory("hdfs://nn/reports")
    confine_files(nowhere.files, "hdfs://nn/reports/r.json").write_new("hdfs://nn/reports/r.json", "{}")
    assert world.files.content("hdfs://nn/reports/r.json") == "{}"


def test_records_in_the_root_of_a_file_system_are_nobodys():
    assert Jail.of_records("sales.events", "hdfs://nn/.hivekeeper-x", f"{ROOT}/.hivekeeper").places == (f"{ROOT}/.hivekeeper",)
