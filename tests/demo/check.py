"""Judge the documents that the demo's steps leave behind: as expected, or one line that says what is not.

Reads JSON files only; knows the tables that generate.py makes by default.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List

Json = Dict[str, Any]

COMPACTED = {"demo.events_flat", "demo.events_by_date", "demo.events_by_date_ref", "demo.events_by_channel"}
FINE = {"demo.well_sized"}
REFUSED = {"demo.bucketed"}


def require(truth: bool, message: str) -> None:
    if not truth:
        raise SystemExit(f"demo: not as expected: {message}")


def read_document(path: str) -> Json:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_tables(path: str) -> Dict[str, Json]:
    """The tables of a result document whose run ended well."""
    document = read_document(path)
    require(document["exit_code"] == 0, f"{path} has exit code {document['exit_code']}")
    tables = {table["table"]: table for table in document["tables"]}
    require(set(tables) == COMPACTED | FINE | REFUSED, f"{path} is about {', '.join(sorted(tables))}")
    for name in REFUSED:
        error = tables[name]["error"]
        require(error is not None and error["exit_code"] == 3, f"{name} was not refused in {path}")
    for name in COMPACTED | FINE:
        require(tables[name]["error"] is None, f"{name}: {tables[name]['error']}")
    return tables


def find_locations(tables: Dict[str, Json]) -> Dict[str, str]:
    analyses = {name: table["analysis"] for name, table in tables.items() if table["analysis"]}
    places = {name: analysis["location"] for name, analysis in analyses.items()}
    for name, analysis in analyses.items():
        places.update({f"{name}/{part['partition']}": part["location"] for part in analysis["partitions"]})
    return places


def check_analyzed(path: str) -> str:
    tables = read_tables(path)
    for name in COMPACTED | FINE:
        expected = "compact" if name in COMPACTED else "fine"
        require(tables[name]["analysis"]["status"] == expected, f"{name} is {tables[name]['analysis']['status']}, not {expected}")
    refused = tables["demo.bucketed"]["error"]["what"]
    return f"{len(COMPACTED)} tables are worth compacting, {len(FINE)} is fine, and one is refused: {refused}"


def check_compacted(analyzed: str, compacted: str) -> str:
    before, after = read_tables(analyzed), read_tables(compacted)
    for name in COMPACTED:
        wanted = {part["partition"]: part["files_after"] for part in before[name]["analysis"]["partitions"] if part["status"] == "compact"}
        done = {unit["partition"]: unit["files_after"] for unit in after[name]["units"] if unit["outcome"] == "swapped"}
        require(done == wanted, f"{name}: predicted {wanted}, done {done}")
    for name in FINE:
        require(not after[name]["units"], f"{name} was touched")
    totals = read_document(compacted)["totals"]
    require(set(totals["outcomes"]) == {"swapped"}, f"outcomes {totals['outcomes']}")
    return (
        f"{totals['outcomes']['swapped']} units swapped, {totals['files_before']:,} files became {totals['files_after']:,}, "
        f"as predicted; no unit was away for more than {totals['longest_gap_ms']} ms"
    )


def check_converged(first: str, second: str) -> str:
    before, after = read_tables(first), read_tables(second)
    for name in COMPACTED | FINE:
        require(after[name]["analysis"]["status"] == "fine", f"{name} is {after[name]['analysis']['status']} after compaction")
    require(find_locations(before) == find_locations(after), "a table or partition lies elsewhere than before")
    return f"nothing is left to do, and all {len(find_locations(after))} tables and partitions lie where they lay"


def check_same(before_path: str, after_path: str) -> str:
    before, after = read_document(before_path), read_document(after_path)
    require(set(before) == set(after), f"tables {sorted(before)} became {sorted(after)}")
    lines: List[str] = [f"{'table':<20} {'rows':>9} {'files':>13} {'MiB':>13}  content"]
    for name, was in sorted(before.items()):
        now = after[name]
        require(now["rows"] == was["rows"], f"demo.{name} had {was['rows']} rows and has {now['rows']}")
        require(now["digest"] == was["digest"], f"demo.{name} has the same number of rows, but not the same content")
        shrunk = now["files"] < was["files"] if f"demo.{name}" in COMPACTED else now["files"] == was["files"]
        require(shrunk, f"demo.{name} had {was['files']} files and has {now['files']}")
        files, sizes = f"{was['files']} > {now['files']}", f"{was['bytes'] / 2**20:.1f} > {now['bytes'] / 2**20:.1f}"
        lines.append(f"{name:<20} {was['rows']:>9,} {files:>13} {sizes:>13}  {was['digest'][:12]} = {now['digest'][:12]}")
    return "\n".join(lines)


CHECKS = {"analyzed": check_analyzed, "compacted": check_compacted, "converged": check_converged, "same": check_same}


if __name__ == "__main__":
    sys.stdout.write(CHECKS[sys.argv[1]](*sys.argv[2:]) + "\n")
