"""The figures as tables: medians over the turns, ratios pair by pair, and the targets met or missed. Pure."""

from __future__ import annotations

import statistics
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from bench.whole.shapes import SHAPES

Json = Dict[str, Any]
OURS = "hivekeeper"
MAIN = "compact-swap"

# What compact-swap may take for each source file and for each unit.
MS_A_FILE, MS_A_UNIT = 3, 10
CALLS_A_FILE, CALLS_A_UNIT = 3, 25
# The calls that open a source file, by its path or by its id; all others are made for a unit, or once.
OPENS = ("GetBlockLocations", "GetLocatedFileInfo")
# Cost per file may not grow from one of these shapes to the next, by more than measuring it again may add.
GROWING = ("quick", "partitions", "many")
TOLERATED = 1.1
# What programs are compared by, after the start.
MEASURES = {"work_cpu": "CPU time", "work_wall": "wall time"}

HEAD = """# How fast, and what it asks of the NameNode

`make bench` wrote this page from [bench.json](bench.json).

Each program ran as its users run it, in processes of its own, on a copy of the same table: Spark {spark} with `local[2]`, a Kerberized
HDFS 3.3.6 with one DataNode and a metastore 3.1.3, all on one machine ({processors} × {processor}, {memory_gib} GiB, {java}).
The cluster runs without YARN, whose ResourceManager would use half a processor (YARN-11178). All programs have the setting without
which a client of a single DataNode sleeps 400 ms for each file that it writes
(`dfs.client.block.write.locateFollowingBlock.initial.delay.ms`).

Figures are medians over the turns; each turn begins with another program. *Start* is the time until the Spark session was there; the
other columns begin there. CPU seconds are those of the program's own processes. Ratios are medians of the ratios of each turn. The
machine was shared: the load is given with each step. Wall times under load mean little; CPU seconds and calls mean more.

| program | what ran |
| --- | --- |
"""


class Figures(NamedTuple):
    """The medians of one step."""

    start_cpu: float
    wall: float
    cpu: float
    peak_mib: float
    calls: float


def render(known: Json) -> str:
    """The whole page."""
    order = [name for name in SHAPES if name in known]
    compared = {name: about for measured in known.values() for name, about in measured["compared"].items()}
    head = HEAD.format(**known[order[-1]]["machine"]) + "".join(f"| {name} | {about} |\n" for name, about in compared.items())
    known = {name: known[name] for name in order}
    return "\n".join([head, targets_text(known), *(shape_text(name, known[name]) for name in order)])


def shape_text(name: str, measured: Json) -> str:
    lines = [
        f"## {measured['about']}",
        "",
        f"`SHAPES={name}`: {size_text(measured)}, {measured['format']}, turns: {len(measured['programs'][OURS])}.",
        "",
        "| program, step | start, CPU s | CPU s | wall s | ms CPU a file | peak MiB | calls a file | calls a unit | files written"
        " | load | CPU : ours |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for program in measured["programs"]:
        lines += [_row(measured, program, step) for step in steps_of(measured, program)]
        if not measured["programs"][program]:
            lines.append(f"| {program} | not measured |")
        lines += [f"| {program} | failed: {turn['error']} |" for turn in measured["programs"][program] if "error" in turn]
    return "\n".join([*lines, "", *profile_text(measured), *calls_text(measured)])


def profile_text(measured: Json) -> List[str]:
    """The seconds of each step of each of our commands; starting Spark happens beside others."""
    lines = []
    for command in steps_of(measured, OURS):
        turns = [turn["steps"][command].get("step_seconds", {}) for turn in _good(measured, OURS)]
        names = list(dict.fromkeys(name for spent in turns for name in spent))
        said = [f"{name} {statistics.median(spent.get(name, 0.0) for spent in turns):.1f}" for name in names]
        lines += [f"Wall seconds of {command}: {', '.join(said)}.", ""] if said else []
    return lines


def size_text(measured: Json) -> str:
    sizes = [turn["before"]["bytes"] for turn in _good(measured, OURS)]
    return f"{measured['files']:,} files, {sizes[0] >> 20:,} MiB" if sizes else f"{measured['files']:,} files"


def _row(measured: Json, program: str, step: str) -> str:
    it = figures(measured, program, step)
    ratio = ratio_of(measured, program, step, "work_cpu")
    written = statistics.median(turn["written"].get("files", 0) for turn in _good(measured, program))
    cells = [
        f"{program}, {step}",
        f"{it.start_cpu:.1f}",
        f"{it.cpu:.1f}",
        f"{it.wall:.1f}",
        f"{it.cpu * 1000 / measured['files']:.2f}",
        f"{it.peak_mib:,.0f}",
        f"{it.calls / measured['files']:.2f}",
        f"{it.calls / measured['units']:.1f}",
        f"{written:,.0f}" if step == main_step(measured, program) else "",
        f"{statistics.median(turn['steps'][step]['load'][0] for turn in _good(measured, program)):.0f}",
        "" if ratio is None else f"{ratio:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def calls_text(measured: Json) -> List[str]:
    """The calls of the programs' main steps by name, a source file and a unit."""
    found = {program: _median_calls(measured, program) for program in measured["programs"] if main_step(measured, program)}
    names = sorted(
        {name for calls in found.values() for name in calls}, key=lambda name: -sum(calls.get(name, 0) for calls in found.values())
    )
    head = ["NameNode calls of the main step, a file (a unit):", "", f"| call | {' | '.join(found)} |", f"| --- {'| --- ' * len(found)}|"]
    return [
        *head,
        *(f"| {name} | {' | '.join(_call_cell(measured, calls.get(name, 0)) for calls in found.values())} |" for name in names),
        "",
    ]


def _call_cell(measured: Json, count: float) -> str:
    return f"{count / measured['files']:.3f} ({count / measured['units']:.1f})" if count else ""


def _median_calls(measured: Json, program: str) -> Dict[str, float]:
    turns = [turn["steps"][main_step(measured, program)]["calls"] for turn in _good(measured, program)]
    return {name: statistics.median(calls.get(name, 0) for calls in turns) for name in {name for calls in turns for name in calls}}


def _good(measured: Json, program: str) -> List[Json]:
    return [turn for turn in measured["programs"].get(program, []) if "error" not in turn]


def steps_of(measured: Json, program: str) -> Sequence[str]:
    good = _good(measured, program)
    return list(good[0]["steps"]) if good else []


def main_step(measured: Json, program: str) -> Optional[str]:
    good = _good(measured, program)
    return next((name for name, step in good[0]["steps"].items() if step["is_main"]), None) if good else None


def figures(measured: Json, program: str, step: str) -> Figures:
    turns = [turn["steps"][step] for turn in _good(measured, program)]

    def middle(what: str) -> float:
        return statistics.median(turn[what] for turn in turns)

    calls = statistics.median(sum(turn["calls"].values()) for turn in turns)
    return Figures(middle("start_cpu"), middle("work_wall"), middle("work_cpu"), middle("peak_mib"), calls)


def ratio_of(measured: Json, program: str, step: str, what: str, our_step: str = MAIN) -> Optional[float]:
    """How many times what compact-swap takes, turn by turn; None if no turn has both."""
    ours = {turn["turn"]: turn["steps"][our_step][what] for turn in _good(measured, OURS)}
    ratios = [turn["steps"][step][what] / ours[turn["turn"]] for turn in _good(measured, program) if ours.get(turn["turn"])]
    return statistics.median(ratios) if ratios else None


def targets_text(known: Json) -> str:
    lines = [
        "## Targets",
        "",
        "After the start.",
        "",
        "| target | measured | |",
        "| --- | --- | --- |",
    ]
    return "\n".join([*lines, *(row for rows in (_against_peers(known), _for_verify(known), _for_costs(known)) for row in rows), ""])


def _against_peers(known: Json) -> Iterable[str]:
    for shape, peer, at_least in (
        ("partitions", "lakekeeper", 8.0),
        ("many", "lakekeeper", 8.0),
        ("directory", "lakekeeper", 4.0),
        ("partitions", "iceberg", 1 / 0.7),
        ("many", "iceberg", 1 / 0.7),
    ):
        measured = known.get(shape)
        step = main_step(measured, peer) if measured else None
        for what, name in MEASURES.items() if measured and step else ():
            text = f"{measured['about']}: {peer} takes at least {at_least:.1f} times the {name}"
            yield _target(text, ratio_of(measured, peer, step, what), "", _at_least(at_least))


def _for_verify(known: Json) -> Iterable[str]:
    for measured in known.values():
        for what, name in MEASURES.items():
            text = f"{measured['about']}: verify takes at most a third of compact-swap's {name}"
            yield _target(text, ratio_of(measured, OURS, "verify", what), "", _at_most(1 / 3))


def _for_costs(known: Json) -> Iterable[str]:
    before: Optional[float] = None
    for shape, measured in known.items():
        if not _good(measured, OURS):
            continue
        it, about = figures(measured, OURS, MAIN), measured["about"]
        allowed_ms = MS_A_FILE * measured["files"] + MS_A_UNIT * measured["units"]
        text = f"{about}: at most {MS_A_FILE} ms of CPU a file and {MS_A_UNIT} ms a unit"
        yield _target(text, it.cpu * 1000 / allowed_ms, f" of {allowed_ms / 1000:.1f} s", _at_most(1))
        calls = _median_calls(measured, OURS)
        opens = sum(calls.get(name, 0) for name in OPENS)
        text = f"{about}: at most {CALLS_A_FILE} NameNode calls a file ({', '.join(OPENS)})"
        yield _target(text, opens / measured["files"], "", _at_most(CALLS_A_FILE))
        text = f"{about}: at most {CALLS_A_UNIT} NameNode calls a unit (all others)"
        yield _target(text, (it.calls - opens) / measured["units"], "", _at_most(CALLS_A_UNIT))
        if shape in GROWING:
            each = it.cpu * 1000 / measured["files"]
            if before is not None:
                yield _target(
                    f"{about}: CPU a file no more than with fewer files",
                    each / before,
                    f" ({each:.2f} ms, was {before:.2f} ms)",
                    _at_most(TOLERATED),
                )
            before = each


def _at_least(bound: float) -> Callable[[float], bool]:
    return lambda value: value >= bound


def _at_most(bound: float) -> Callable[[float], bool]:
    return lambda value: value <= bound


def _target(what: str, value: Optional[float], more: str, is_met: Callable[[float], bool]) -> str:
    if value is None:
        return f"| {what} | not measured | |"
    return f"| {what} | {value:.2f}{more} | {'met' if is_met(value) else '**missed**'} |"
