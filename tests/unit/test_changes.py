"""The names that tests give to changes that last."""

from __future__ import annotations

import inspect

import pytest

from hivekeeper import ports
from support import changes

ROOT = "hdfs://nn/w/events"
RUN = f"{ROOT}/.hivekeeper/runs/20260101t020304z-0000"
# Tests make its steps one by one (tests/support/step_by_step.py).
MADE_OF_OTHERS = {ports.Files: {"exchange"}}
# The metastore's `hold` is Hive's own lock, and `analyze` sets numbers that our code never reads.
CHANGE_NOTHING = {
    ports.Files: {
        *("qualify", "is_foreign", "look", "look_hidden", "look_hidden_directories", "stat", "read_pieces", "read_bytes", "read_texts"),
        *("attributes", "file_rights", "ties", "room", "exposed", "way_to", "require_lockable", "blocks", "is_anywhere", "find_paths"),
        *("id_around", "anchored", "user_at"),
    },
    ports.Metastore: {
        *(
            "databases",
            "table_names",
            "tables",
            "partitions",
            "partitions_named",
            "locations_below",
            "read_places_again",
            "read_newer_places",
            "paths_around",
            "database_locations",
            "table_locations",
            "table_places",
            "why_no_backup_tables",
            "hold",
        ),
    },
    ports.RowFiles: {"read"},
    ports.Rows: {
        *("warm_up", "require_started", "footers", "read_stage", "digests", "differences", "hazards"),
        *("find_starts", "find_unlike", "ends_like_whole"),
    },
}
CHANGE = {ports.Files: changes.FILES, ports.Metastore: changes.METASTORE, ports.Rows: changes.ROWS, ports.RowFiles: changes.ROW_FILES}


@pytest.mark.parametrize("port", CHANGE)
def test_every_method_of_a_port_is_known_to_change_something_or_not(port):
    methods = {name for name, _ in inspect.getmembers(port, inspect.isfunction) if not name.startswith("_")}
    assert methods == {*CHANGE[port], *CHANGE_NOTHING[port], *MADE_OF_OTHERS.get(port, ())}


@pytest.mark.parametrize(
    ("method", "paths", "name"),
    [
        ("rename_exact", [f"{ROOT}/dt=1", f"{RUN}/retired/u00001"], "live → retired"),
        ("rename_exact", [f"{RUN}/retired/u00001/a.parquet", f"{ROOT}/dt=1/a.parquet"], "retired/FILE → live"),
        ("rename_exact", [f"{RUN}/plan.json.part", f"{RUN}/plan.json"], "plan.json"),
        ("rename_exact", [f"{RUN}/entry.json", f"{ROOT}/.hivekeeper/log/{0:020d}.json"], "entry.json → log"),
        ("rename_exact", [RUN, f"{RUN}.t1"], "run directory → run.tN"),
        ("rename_exact", [ROOT, "hdfs://nn/w/.hivekeeper-events/runs/20260101t020304z-0000/retired/u00001"], "live → retired"),
        ("write_new", [f"{RUN}/certificates-3.jsonl.part"], "write certificates-N.jsonl.part"),
        ("delete_tree", [f"{RUN}/ready/u00012"], "ready → nothing"),
        ("delete_file", [f"{RUN}/clock"], "clock → nothing"),
        ("make_directory", [f"{RUN}/stage/b00001"], "make stage/BATCH"),
        ("remove_empty", [f"{RUN}/recreated/u00001.0"], "remove empty recreated"),
        ("hold", [f"{ROOT}/.hivekeeper/_lock"], "hold lock"),
        ("concat", [f"{ROOT}/dt=1/a.parquet", f"{ROOT}/dt=1/b.parquet"], "concat live/FILE"),
        ("cut", [f"{ROOT}/dt=1/a.parquet"], "cut live/FILE"),
        ("guard", [f"{ROOT}/.hivekeeper", RUN], "give rights"),
        ("make_backup_table", [], "make backup table"),
    ],
)
def test_a_change_is_named_by_what_it_does(method, paths, name):
    assert changes.name_change(method, paths, ROOT) == name


@pytest.mark.parametrize(
    "step", ["write_new hdfs://nn/w/events/.hivekeeper/_lock", "metastore.hold sales.events", "release hdfs://nn/w/_lock"]
)
def test_half_a_change_of_the_fakes_and_what_does_not_last_have_no_name(step):
    assert changes.name_step(step, ROOT) is None
