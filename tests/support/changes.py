"""Names for the changes that last, in the words of docs/on-disk.md, derived from the calls that make them.

The program does not use these names: tests inject faults where they wrap a port. Fakes and real ports yield the same names.
"""

from __future__ import annotations

import re
from typing import Any, Optional, Sequence, Tuple

from hivekeeper import names

FILES = (
    *("make_directory", "rename_exact", "remove_empty", "delete_tree"),
    *("delete_file", "move_to_trash", "write_new", "hold", "dress", "guard"),
    *("concat", "cut", "copy_part"),
)
METASTORE = (
    "update_sizes",
    "add_partition",
    "make_backup_table",
    "point_backup_table",
    "trim_backup_table",
    "drop_backup_table",
    "make_database",
    "make_catalogue_table",
    "make_catalogue_view",
    "point_catalogue_table",
)
ROWS = ("write_stage", "write_ends", "write_restored")
ROW_FILES = ("write",)

# Below `.hivekeeper`: a run's directory and its contents.
OF_RUN = re.compile(rf"/{re.escape(names.CONTROL)}[^/]*/runs/(?P<run>[^/]+)(?:/(?P<rest>.+))?")
OF_CONTROL = re.compile(rf"/{re.escape(names.CONTROL)}[^/]*/(?P<rest>[^/]+)(?:/(?P<file>[^/]+))?")
FILES_OF_CONTROL = {names.LOCK: "lock", names.SEAL: "seal"}
IN_STATE = re.compile(rf"(?P<state>\w+)/(?:u\d+(?:\.\d+)?|b\d+/{names.UNIT_COLUMN}=\d+)(?P<file>/.+)?")


def name_change(method: str, paths: Sequence[str], root: str) -> str:
    """`live → retired`, `write clock`: what a call does to a table whose location is `root`."""
    if method == "rename_exact":
        source, target = (name_place(path, root) for path in paths)
        # Written aside first: counts once it has its final name.
        return target if source == target + ".part" else f"{source} → {target.partition('/')[0]}"
    if method in METASTORE:
        return method.replace("_", " ")
    if method in ROWS:
        return "write ends" if method == "write_ends" else "write stage"
    if method == "guard":
        return "give rights"
    place = name_place(paths[0], root)
    if method in ("delete_tree", "delete_file"):
        return f"{place} → nothing"
    if method == "move_to_trash":
        return f"{place} → trash"
    if method in ("concat", "cut"):
        return f"{method} {place}"
    verbs = {"make_directory": "make", "remove_empty": "remove empty", "write_new": "write", "copy_part": "write"}
    return f"{verbs.get(method, method)} {place}"


def name_place(path: str, root: str) -> str:
    """Where a path is, without numbers, ids and file names."""
    of_run = OF_RUN.search(path)
    if of_run:
        return _name_in_run(of_run["run"], of_run["rest"] or "")
    of_control = OF_CONTROL.search(path)
    if of_control:
        file = of_control["file"] or ""
        if names.checkpoint_version(file) is not None:
            return "log checkpoint"
        is_entry = names.log_version(file) is not None
        return "log" if is_entry else FILES_OF_CONTROL.get(of_control["rest"], f"{of_control['rest']} directory")
    below = path[len(root) :].strip("/") if names.join(path, "").startswith(names.join(root, "")) else ""
    return "live" if all("=" in part for part in below.split("/") if part) else "live/FILE"


def _name_in_run(run: str, rest: str) -> str:
    if not rest:
        return "run.tN" if ".t" in run else "run directory"
    in_state = IN_STATE.fullmatch(rest)
    if in_state:
        return in_state["state"] + ("/FILE" if in_state["file"] else "")
    if re.fullmatch(r"stage/b\d+", rest):
        return "stage/BATCH"
    return re.sub(r"-\d+\.jsonl", "-N.jsonl", rest) if "." in rest or rest == "clock" else f"{rest} directory"


def paths_of(method: str, arguments: Sequence[Any]) -> Tuple[str, ...]:
    """The paths among the arguments of a real call."""
    if method in METASTORE or method in ROWS:
        return ()
    if method in ("dress", "guard"):
        return tuple(arguments[0])[:1]
    if method == "cut":
        return (arguments[0].path,)
    if method == "copy_part":
        return (arguments[3],)
    return tuple(arguments[: 2 if method == "rename_exact" else 1])


def name_step(step: str, root: str) -> Optional[str]:
    """The same for a step of the fakes. None for half of a change, and for a change that does not last, such as a released lock."""
    method, *paths = step.split(" ")
    method = {"put": "write_stage", "write_new": "", "write_new.close": "write_new"}.get(method, method)
    method = "" if method == "metastore.hold" else method.rpartition("metastore.")[2]
    return name_change(method, paths, root) if method in (*FILES, *METASTORE, *ROWS) else None
