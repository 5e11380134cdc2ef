"""What `make bench` and `make bench-log` count and say, without a cluster."""

from __future__ import annotations

import argparse
import json
from typing import Any, Callable, Dict, List

import pytest

from bench import log as bench_log
from bench.whole import page
from bench.whole.__main__ import step_seconds_of
from bench.whole.namenode import count_audited
from bench.whole.processes import Cost
from bench.whole.shapes import SHAPES
from support.fakes.files import FakeFiles


def audited(user: str, command: str, path: str, caller: str = "") -> str:
    return (
        f"allowed=true\tugi={user}@A.TEST (auth:KERBEROS)\tip=/127.0.0.1\tcmd={command}\tsrc={path}\tdst=null\tperm=null\tproto=rpc{caller}"
    )


AUDITED = [
    audited("etl", "open", "/t/a", "\tcallerContext=SPARK_TASK_local-1_JId_0_SId_2_0_TId_1_0"),
    audited("etl", "open", "/t/b", "\tcallerContext=SPARK_TASK_local-1_JId_0_SId_2_0_TId_7_0"),
    audited("etl", "open", "/t/b"),
    audited("hive/localhost", "rename (options=[NONE])", "/t"),
    "not a line of the audit log",
]


def test_audited_commands_are_counted_by_path_user_and_stage():
    counted = count_audited(AUDITED, lambda path: path[:2])
    assert counted == {
        ("open /t", "etl", "JId_0_SId_2"): 2,
        ("open /t", "etl", "driver"): 1,
        ("rename (options=[NONE]) /t", "hive", "driver"): 1,
    }


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_as_many_files_as_it_says_and_no_path_twice(name):
    shape = SHAPES[name]
    paths = [path for _, _, path in shape.copies()]
    assert len(set(paths)) == len(paths) == shape.all_files
    assert {path.rpartition("/")[0] for path in paths} == set(shape.directories())


def step(cpu: float, calls: int, is_main: bool = True) -> Dict[str, Any]:
    costs = {f"{part}_{what}": cpu for part in ("start", "work") for what in Cost._fields}
    return {
        "is_main": is_main,
        **costs,
        "peak_mib": 100,
        "step_seconds": {"copy": cpu, "exchange": 1.0},
        "load": [1.0, 1.0, 1.0],
        "calls": {"GetFileInfo": calls, "GetBlockLocations": 100},
    }


def measured(ours: List[float], theirs: List[float], calls: int = 10) -> Dict[str, Any]:
    """100 files in 2 units, with one turn for each figure."""
    files: Dict[str, Any] = {"before": {"files": 100, "bytes": 1 << 20}, "written": {"files": 2, "bytes": 1 << 20}}
    return {
        "about": "a table",
        "files": 100,
        "units": 2,
        "format": "parquet",
        "compared": {"hivekeeper": "this", "lakekeeper": "that"},
        "machine": {"processor": "P", "processors": 2, "memory_gib": 8, "java": "J", "spark": "S"},
        "programs": {
            "hivekeeper": [
                {"turn": turn, **files, "steps": {"compact-swap": step(cpu, calls), "verify": step(cpu / 4, 1, False)}}
                for turn, cpu in enumerate(ours)
            ],
            "lakekeeper": [{"turn": turn, **files, "steps": {"compact": step(cpu, calls)}} for turn, cpu in enumerate(theirs)],
        },
    }


def test_a_ratio_is_the_median_of_the_ratios_of_each_turn():
    # The ratio of the medians is 5.
    assert page.ratio_of(measured([1, 2, 4], [10, 8, 60]), "lakekeeper", "compact", "work_cpu") == 10


@pytest.mark.parametrize(("theirs", "said"), [(8.0, "met"), (7.9, "**missed**")], ids=["met", "missed"])
def test_a_target_says_whether_it_is_met(theirs, said):
    text = page.render({"partitions": measured([1.0], [theirs])})
    assert f"lakekeeper takes at least 8.0 times the CPU time | {theirs:.2f} | {said} |" in text
    assert f"lakekeeper takes at least 8.0 times the wall time | {theirs:.2f} | {said} |" in text


def test_a_program_that_failed_has_no_figures():
    known = measured([1.0], [8.0])
    known["programs"]["lakekeeper"] = [{"turn": 0, "error": "exit 1"}]
    text = page.render({"partitions": known})
    assert "| lakekeeper | failed: exit 1 |" in text
    assert "lakekeeper, compact" not in text
    assert "lakekeeper takes" not in text


def test_calls_for_files_and_for_units_are_bounded_apart():
    text = page.render({"partitions": measured([0.1], [1.0], calls=51)})
    assert "at most 3 NameNode calls a file (GetBlockLocations, GetLocatedFileInfo) | 1.00 | met |" in text
    assert "at most 25 NameNode calls a unit (all others) | 25.50 | **missed** |" in text


def test_the_page_has_the_medians_of_the_steps():
    assert "Wall seconds of compact-swap: copy 2.0, exchange 1.0." in page.shape_text("quick", measured([1, 2, 4], [1, 2, 4]))


def test_the_seconds_of_steps_are_read_from_our_document_only():
    document = {"tables": [{"step_seconds": {"plan": 1.5}}]}
    assert step_seconds_of("a line\n" + json.dumps(document)) == {"plan": 1.5}
    assert step_seconds_of("session 17\n{not ours}") == step_seconds_of("") == step_seconds_of("{}") == {}


class NoMeter:
    def measure(self, what: str, act: Callable[[], Any]) -> Any:  # noqa: ARG002
        return act()


def test_the_benchmark_of_the_log_reads_what_it_writes(capsys):
    bench_log.measure(FakeFiles(), NoMeter(), "hdfs://nn/events", argparse.Namespace(entries=4, files=3, kept=2, own=5))
    said = capsys.readouterr().out
    assert "4 entries of 3 files" in said
    assert "read by entries" in said
    assert "the entry has" in said
