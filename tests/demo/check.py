"""Judge the documents that the demo's steps leave: as expected, or one line that says what is wrong.

Reads only JSON files; knows the tables that generate.py creates by default.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Iterator, List

Json = Dict[str, Any]

COMPACTED = {"events_flat", "events_by_date", "events_by_date_ref", "events_by_channel", "events_mixed"}
# Files of Spark's, Impala's and Hive's kinds, which stay apart.
MIXED, KINDS = "events_mixed", 3
FINE = {"well_sized"}
REFUSED = {"bucketed"}
WITHOUT_BACKUP = FINE | REFUSED
DIGESTS = 2**128
MAGICS = (b"PAR1", b"ORC")


def require(truth: bool, message: str) -> None:
    if not truth:
        raise SystemExit(f"demo: not as expected: {message}")


def read_document(path: str) -> Json:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_by_name(path: str) -> Dict[str, Json]:
    """The tables of a result document whose run succeeded; the demo has one database, whatever its name."""
    document = read_document(path)
    require(document["exit_code"] == 0, f"{path} has exit code {document['exit_code']}")
    return {table["table"].partition(".")[2]: table for table in document["tables"]}


def read_tables(path: str) -> Dict[str, Json]:
    tables = read_by_name(path)
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
    refused = tables["bucketed"]["error"]["what"]
    return f"{len(COMPACTED)} tables are worth compacting, {len(FINE)} is fine, and one is refused: {refused}"


def check_compacted(analyzed: str, compacted: str) -> str:
    before, after = read_tables(analyzed), read_tables(compacted)
    for name in COMPACTED:
        wanted = {part["partition"]: part["files_after"] for part in before[name]["analysis"]["partitions"] if part["status"] == "compact"}
        swapped = [unit for unit in after[name]["units"] if unit["outcome"] == "swapped"]
        done = {unit["partition"]: unit["files_after"] for unit in swapped}
        kinds = KINDS if name == MIXED else 1
        require(all(unit["forms"] == kinds for unit in swapped), f"{name}: forms {[unit['forms'] for unit in swapped]}, not {kinds} each")
        wanted = {partition: files * kinds for partition, files in wanted.items()}
        require(done == wanted, f"{name}: {wanted} were to be left, done {done}")
    for name in FINE:
        require(not after[name]["units"], f"{name} was touched")
    totals = read_document(compacted)["totals"]
    require(set(totals["outcomes"]) == {"swapped"}, f"outcomes {totals['outcomes']}")
    return (
        f"{totals['outcomes']['swapped']} units swapped, {totals['files_before']:,} files became {totals['files_after']:,}, "
        f"as predicted ({KINDS} for each partition with files of {KINDS} writers, which stay apart); "
        f"no unit was away for more than {totals['longest_gap_ms']} ms"
    )


def check_converged(first: str, second: str) -> str:
    before, after = read_tables(first), read_tables(second)
    for name in COMPACTED | FINE:
        require(after[name]["analysis"]["status"] == "fine", f"{name} is {after[name]['analysis']['status']} after compaction")
    require(find_locations(before) == find_locations(after), "a table or partition lies elsewhere than before")
    return f"nothing is left to do, and all {len(find_locations(after))} tables and partitions lie where they lay"


def check_verified(compacted: str, verified: str, counted: str) -> str:
    done, proved, counts = read_tables(compacted), read_changed_tables(verified), read_document(counted)
    units = 0
    for name in COMPACTED:
        swapped = {unit["partition"] for unit in done[name]["units"] if unit["outcome"] == "swapped"}
        found = {unit["partition"] for unit in proved[name]["units"] if unit["outcome"] == "verified"}
        require(found == swapped, f"{name}: swapped {sorted(swapped)}, verified {sorted(found)}")
        rows, counted_rows = sum(unit["rows"] for unit in proved[name]["units"]), counts[name]["rows"]
        require(rows == counted_rows, f"{name}: {rows} rows verified, {counted_rows} counted")
        units += len(found)
    return f"{units} units verified, with as many rows as were counted without Spark"


def read_changed_tables(path: str) -> Dict[str, Json]:
    """The tables in the document of a command that works on backups; a table that was never changed has none."""
    tables = read_by_name(path)
    require(set(tables) == COMPACTED | WITHOUT_BACKUP, f"{path} is about {', '.join(sorted(tables))}")
    for name, table in tables.items():
        require(table["error"] is None, f"{name}: {table['error']}")
        require(name in COMPACTED or not (table["units"] or table["backups"]), f"{name} has a backup, but was never compacted")
    return tables


def check_rolled_back(compacted: str, rolled_back: str) -> str:
    done, undone = read_tables(compacted), read_changed_tables(rolled_back)
    steps, late = 0, []
    for name in COMPACTED:
        was = {unit["partition"]: unit["files_before"] for unit in done[name]["units"]}
        now = {unit["partition"]: unit["files_after"] for unit in undone[name]["units"]}
        require(was == now, f"{name}: {was} before the compaction, {now} after its rollback")
        for unit in undone[name]["units"]:
            require(unit["outcome"] == "rolled-back", f"{name}/{unit['partition']}: {unit['outcome']}: {unit['reason']}")
            require(unit["of_run"] == done[name]["run"], f"{name}: run {unit['of_run']} was undone instead of {done[name]['run']}")
            late += unit["late_files"]
            steps += 1
    require(len(late) == 1, f"late files {late}, not one")
    gap = read_document(rolled_back)["totals"]["longest_gap_ms"]
    return f"{steps} units rolled back, the file that came since kept; no unit was away for more than {gap} ms"


def check_compacted_again(first: str, second: str) -> str:
    before, after = read_tables(first), read_tables(second)
    for name in COMPACTED:
        was = {unit["partition"]: unit["files_after"] for unit in before[name]["units"]}
        now = {unit["partition"]: unit["files_after"] for unit in after[name]["units"]}
        require(was == now, f"{name}: {was} files at first, {now} the second time")
    totals = read_document(second)["totals"]
    came = totals["files_before"] - read_document(first)["totals"]["files_before"]
    require(came == 1, f"{came} files more than at first, not one")
    return f"{totals['files_before']:,} files, the one that came among them, became {totals['files_after']:,}, as many as the first time"


def check_policy(planned: str) -> str:
    before = read_changed_tables(planned)
    for name in COMPACTED:
        *older, newest = before[name]["backups"]
        require(bool(older) and all(backup["outcome"] == "planned" for backup in older), f"{name}: {older} were to go")
        require((newest["outcome"], newest["code"]) == ("kept", "among-newest"), f"{name}: {newest} was to stay")
    return "by this rule the newest old files of each partition stay, all older ones go"


def check_cleaned(planned: str, cleaned: str, place: str) -> str:
    before, after = read_changed_tables(planned), read_changed_tables(cleaned)
    backups, files = 0, 0
    for name in COMPACTED:
        expected = {backup["run"] for backup in before[name]["backups"]}
        gone = {backup["run"] for backup in after[name]["backups"] if backup["outcome"] == "discarded"}
        require(bool(gone) and gone == expected, f"{name}: {sorted(expected)} were to go, {sorted(gone)} went")
        require(len(gone) == len(after[name]["backups"]), f"{name}: a backup was kept: {after[name]['backups']}")
        backups += len(gone)
        files += sum(backup["files"] for backup in after[name]["backups"])
    left = list(find_hidden_data(place))
    require(not left, f"{len(left)} data files are left in control directories, such as {left[:1]}")
    return f"{backups} backups are discarded, {files:,} old files with them; no control directory holds a data file any more"


def find_hidden_data(place: str) -> Iterator[str]:
    """Data files in control directories, recognised by their first bytes: a file may have any name."""
    for folder, _, names in os.walk(place):
        if any(step.startswith(".hivekeeper") for step in os.path.relpath(folder, place).split(os.sep)):
            for path in (os.path.join(folder, name) for name in names):
                with open(path, "rb") as file:
                    if file.read(4).startswith(MAGICS):
                        yield path


def check_logged(path: str) -> str:
    (table,) = read_document(path)["tables"]
    operations = [entry["operation"] for entry in table["log"] if entry["finished"]]
    expected = ["compact-swap", "rollback", "compact-swap", "cleanup"]
    require(operations == expected, f"the log of {table['table']} holds {operations}, not {expected}")
    require(not table["backups"], f"{table['table']} still has backups: {table['backups']}")
    return f"all {len(expected)} runs are in the log, and no backup is left"


def check_saved(first: str, second: str, cleaned: str, answer: str) -> str:
    """What SQL says must be what the commands said."""
    told = {row["operation"]: row for row in read_document(answer)}
    saved = sum(totals["files_before"] - totals["files_after"] for totals in (read_document(path)["totals"] for path in (first, second)))
    gone = [backup for table in read_changed_tables(cleaned).values() for backup in table["backups"] if backup["outcome"] == "discarded"]
    discarded = sum(backup["files"] for backup in gone)
    require(told["compact-swap"]["files_saved"] == saved, f"{saved} files were saved, the catalogue says {told['compact-swap']}")
    require(told["cleanup"]["files_discarded"] == discarded, f"{discarded} files were discarded, the catalogue says {told['cleanup']}")
    return f"as the commands said: {saved:,} files fewer by compaction, {discarded:,} old files discarded"


def compare_rows(before: Json, after: Json) -> None:
    require(set(before) == set(after), f"tables {sorted(before)} became {sorted(after)}")
    for name, was in before.items():
        now = after[name]
        require(now["rows"] == was["rows"], f"{name} had {was['rows']} rows and has {now['rows']}")
        require(now["digest"] == was["digest"], f"{name} has the same number of rows, but not the same content")


def compare_files(before: Json, after: Json) -> None:
    for name, was in before.items():
        require(after[name]["files"] == was["files"], f"{name} should have {was['files']} files and has {after[name]['files']}")


def show_counts(before: Json, after: Json) -> str:
    lines: List[str] = [f"{'table':<20} {'rows':>9} {'files':>13} {'MiB':>13}  content"]
    for name, was in sorted(before.items()):
        now = after[name]
        files, sizes = f"{was['files']} > {now['files']}", f"{was['bytes'] / 2**20:.1f} > {now['bytes'] / 2**20:.1f}"
        sign = "=" if was["digest"] == now["digest"] else ">"
        lines.append(f"{name:<20} {now['rows']:>9,} {files:>13} {sizes:>13}  {was['digest'][:12]} {sign} {now['digest'][:12]}")
    return "\n".join(lines)


def check_same(before_path: str, after_path: str) -> str:
    before, after = read_document(before_path), read_document(after_path)
    compare_rows(before, after)
    for name, was in before.items():
        now = after[name]
        shrunk = now["files"] < was["files"] if name in COMPACTED else now["files"] == was["files"]
        require(shrunk, f"{name} had {was['files']} files and has {now['files']}")
    return show_counts(before, after)


def add_counts(counts: Json, more: Json) -> Json:
    """What a reader must find if the files of both are in one place: fingerprints are sums over rows."""
    summed = {name: dict(count) for name, count in counts.items()}
    for name, count in more.items():
        for key in ("rows", "files", "bytes"):
            summed[name][key] += count[key]
        summed[name]["digest"] = f"{(int(summed[name]['digest'], 16) + int(count['digest'], 16)) % DIGESTS:032x}"
    return summed


def check_added(before_path: str, late_path: str, after_path: str) -> str:
    """What was there before plus the late file: no row or file missing or extra."""
    late, after = read_document(late_path), read_document(after_path)
    expected = add_counts(read_document(before_path), late)
    compare_rows(expected, after)
    compare_files(expected, after)
    (name,) = late
    return f"every table holds the rows it held, and {name} the {late[name]['rows']:,} that came, in a file more"


def check_kept(before_path: str, late_path: str, compacted_path: str, after_path: str) -> str:
    before, after = read_document(before_path), read_document(after_path)
    compare_rows(add_counts(before, read_document(late_path)), after)
    compare_files(read_document(compacted_path), after)
    return show_counts(before, after)


CHECKS = {
    "analyzed": check_analyzed,
    "compacted": check_compacted,
    "converged": check_converged,
    "same": check_same,
    "verified": check_verified,
    "added": check_added,
    "rolled-back": check_rolled_back,
    "compacted-again": check_compacted_again,
    "policy": check_policy,
    "cleaned": check_cleaned,
    "logged": check_logged,
    "saved": check_saved,
    "kept": check_kept,
}


if __name__ == "__main__":
    sys.stdout.write(CHECKS[sys.argv[1]](*sys.argv[2:]) + "\n")
