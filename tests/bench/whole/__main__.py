"""Measure whole commands, beside other programs on copies of the same table, on a real HDFS.

  make bench [SHAPES="quick partitions"] [PEERS="joins lakekeeper iceberg delta floor"] [TURNS=3]

Needs a cluster for measuring (`BENCH=yes tests/cluster/with`). Writes docs/evidence/bench.json, to which each run adds its shapes, and
from it docs/evidence/bench.md; with `--shapes` and no name only the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Sequence

from bench.whole import machine, page
from bench.whole.bench_table import BenchTable, Tables
from bench.whole.namenode import Calls
from bench.whole.processes import Failed, cpu_of
from bench.whole.programs import PROGRAMS, Program, Step
from bench.whole.shapes import SHAPES
from cluster.edge import Edge
from cluster.servers import process
from cluster.servers.artifacts import Missing
from cluster.servers.layout import CHECKOUT, Layout, choose_run, read_layout

EVIDENCE = CHECKOUT / "docs" / "evidence"
SERVERS = ("namenode", "datanode", "metastore")
Json = Dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=["quick"], metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--peers", nargs="*", choices=PROGRAMS, default=list(PROGRAMS), metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path, default=EVIDENCE / "bench.json")
    parser.add_argument("--page", type=Path, default=EVIDENCE / "bench.md")
    asked = parser.parse_args()
    if asked.shapes:
        measure(asked.shapes, fetch(["hivekeeper", *asked.peers]), asked.turns, asked.json)
    asked.page.write_text(page.render(json.loads(asked.json.read_text())))
    return 0


def measure(shapes: Sequence[str], programs: Dict[str, Program], turns: int, file: Path) -> None:
    layout = read_layout(choose_run())
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        edge = Edge(layout, Path(home))
        edge.login("etl")
        for name in shapes:
            for measured in Bench(layout, Tables(edge), name, programs).measure(turns):
                save(file, name, measured)
            print(page.shape_text(name, measured), flush=True)


def fetch(names: Sequence[str]) -> Dict[str, Program]:
    """Those that can be had."""
    found = {}
    for name in dict.fromkeys(names):
        try:
            PROGRAMS[name].fetch()
        except Missing as error:
            say(f"LEFT OUT, because it cannot be had: {name}: {error}")
            continue
        found[name] = PROGRAMS[name]
    return found


def step_seconds_of(output: str) -> Dict[str, float]:
    """What the document of a command on one table says of its steps; {} for other programs."""
    begin = output.find("{")
    try:
        document = json.loads(output[begin:]) if begin >= 0 else {}
    except ValueError:
        return {}
    return dict(document["tables"][0]["step_seconds"]) if document.get("tables") else {}


def save(file: Path, shape: str, measured: Json) -> None:
    known = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**known, shape: measured}, indent=1) + "\n")


class Bench:
    """One shape, measured with every program in turn."""

    def __init__(self, layout: Layout, tables: Tables, name: str, programs: Dict[str, Program]) -> None:
        self.layout, self.tables, self.shape = layout, tables, SHAPES[name]
        self.database = f"bench_{name}"
        fitting = {name: each for name, each in programs.items() if self.shape.seeds.format in each.formats}
        self.programs = {name: each for name, each in fitting.items() if self.shape.large or not each.leaves_large}

    def measure(self, turns: int) -> Iterator[Json]:
        """What is known after each program. Each turn begins with another one, so that none is always the first."""
        for seeds in filter(None, [self.shape.seeds, self.shape.large]):
            self.tables.make_seeds(seeds)
        names = list(self.programs)
        hive = [self._table(name, turn) for turn in range(turns) for name in names if self.programs[name].in_metastore]
        self.tables.define(self.database, hive)
        known = self._describe()
        for turn in range(turns):
            for name in [*names[turn % len(names) :], *names[: turn % len(names)]]:
                known["programs"][name].append(self._measure_program(name, turn))
                yield known
        self.tables.drop(self.database)

    def _describe(self) -> Json:
        return {
            "about": self.shape.about,
            "files": self.shape.all_files,
            "units": self.shape.units,
            "format": self.shape.seeds.format,
            "machine": machine.describe(),
            "compared": {name: each.about for name, each in self.programs.items()},
            "programs": {name: [] for name in self.programs},
        }

    def _table(self, program: str, turn: int) -> BenchTable:
        return BenchTable(self.shape, self.database, f"{program}_{turn}")

    def _measure_program(self, name: str, turn: int) -> Json:
        """The steps' figures, and what the main step wrote. A program that fails has an `error` and no figures."""
        program, table = self.programs[name], self._table(name, turn)
        self.tables.fill(table)
        before = self.tables.count(table.root)
        steps, written = {}, {}
        try:
            for step in program.steps(self.tables, table):
                begun_ms = time.time_ns() // 1_000_000
                steps[step.name] = self._measure_step(step, table)
                say(f"{table.name} {step.name}: {json.dumps({**steps[step.name], 'audited': '…'})}")
                if step.is_main:
                    written = self.tables.count(program.result(table), begun_ms)
        except Failed as error:
            say(f"FAILED, left out: {name} on {table.full_name}: {error}")
            return {"turn": turn, "error": str(error).splitlines()[0]}
        finally:
            self.tables.empty(table)
        return {"turn": turn, "before": before, "written": written, "steps": steps}

    def _measure_step(self, step: Step, table: BenchTable) -> Json:
        calls, servers = Calls(self.layout), self._server_cpu()
        done = step.act()
        spent = {name: round(cpu - servers[name], 1) for name, cpu in self._server_cpu().items()}
        names, audited = calls.stop(lambda path: kind_of(path, table))
        return {
            "is_main": step.is_main,
            **{f"start_{what}": round(seconds, 1) for what, seconds in done.start._asdict().items()},
            **{f"work_{what}": round(seconds, 1) for what, seconds in done.work._asdict().items()},
            "peak_mib": done.peak_mib,
            "step_seconds": step_seconds_of(done.output),
            "server_cpu": spent,
            "load": machine.load(),
            "calls": dict(names.most_common()),
            "audited": [[*key, count] for key, count in audited.most_common(40)],
        }

    def _server_cpu(self) -> Dict[str, float]:
        return {name: cpu_of(process.find_pid(name, self.layout.run) or 0) for name in SERVERS}


def kind_of(path: str, table: BenchTable) -> str:
    """What a path of the audit log is: its place below the table, with * for what is one of many."""
    if not path.startswith(table.root):
        return path if path.count("/") < 4 else "/".join([*path.split("/")[:4], "…"])
    parts = path[len(table.root) :].split("/")
    return "TABLE" + "/".join(generic(part) for part in parts)


def generic(part: str) -> str:
    head = part.partition("=")[0] if "=" in part else part
    digits = sum(character.isdigit() for character in part)
    return f"{head}=*" if "=" in part else "*" + Path(part).suffix if digits > 1 else part


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
