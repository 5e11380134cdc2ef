"""Lines of the safe order, each taken away in turn: the exploration must see what it was for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
JOB = TESTS.parent / "job"


@dataclass(frozen=True)
class Mutation:
    """In `file` of the job `line` becomes `instead`; `configuration` then breaks a promise, with so many kills or lost leases."""

    file: str
    line: str
    instead: str
    configuration: str
    most: int = 0


LOOK = "why = look_at_leaving(run, unit, checked, left)"
LOOK_OF_RECOVERY = "why = look.judge(unit.manifest, seen[retired].entries).why"

MUTATIONS = {
    "the look after the first rename": Mutation("steps/moves.py", LOOK, 'why = ""', "append slowly"),
    "the check before it": Mutation("steps/swap.py", "if checked.why:", "if False:", "overwrite files"),
    "carrying over": Mutation("steps/swap.py", "late = carry_over(run, unit, certificate)", "late = ()", "append"),
    "merging what was set aside": Mutation(
        "steps/swap.py",
        "    merge_recreated(run, unit, unit.unit.live)\n    lift_nested(run.files, unit.unit.live)\n    live =",
        "    live =",
        "append",
    ),
    "merging before a put-back": Mutation(
        "steps/moves.py", "                merge_recreated(run, unit, source)\n", "                pass\n", "append, overwrite files"
    ),
    "merging before the put-back of a recovery": Mutation(
        "steps/moves.py", "    merge_recreated(run, unit, aside)\n", "", "append, overwrite files", most=1
    ),
    "the look of the recovery": Mutation("steps/swap.py", LOOK_OF_RECOVERY, 'why = ""', "append slowly", most=1),
    "asking whether a run was taken over where ready is not as proved": Mutation(
        "steps/swap.py", "        require_own_directory(run)\n        raise", "        raise", "pause, recover", most=1
    ),
    "setting aside what was recreated": Mutation("steps/moves.py", "            set_aside(run, unit)\n", "            raise\n", "append"),
    "lifting a nested directory": Mutation(
        "steps/moves.py",
        "        if is_committed_directory(entry):\n            _lift(files, entry, live)\n\n",
        "        pass\n\n",
        "committer beside",
    ),
    "the directory's time before its listing": Mutation(
        "runlog/manifests.py", "same = now.file_id == mark.file_id and", "same =", "overwrite directory"
    ),
    "fencing": Mutation(
        "steps/journal.py", "    for directory in find_runs(files, control):", "    for directory in ():", "pause, recover", most=1
    ),
    "the rollback's look": Mutation("steps/moves.py", LOOK, 'why = ""', "rollback, append slowly"),
    "the rollback's check": Mutation(
        "steps/rollback.py", "why = checked.why or look.judge(unit.expected, checked.incoming).why", 'why = ""', "rollback, overwrite files"
    ),
}


def mutate(mutation: Mutation, directory: Path) -> Path:
    """A copy of the job with the line taken away."""
    copy = directory / "job"
    shutil.copytree(JOB, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "hivekeeper" / mutation.file
    text = file.read_text()
    assert text.count(mutation.line) == 1, f"{mutation.file} has {text.count(mutation.line)} times: {mutation.line}"
    file.write_text(text.replace(mutation.line, mutation.instead))
    return copy


def explore_mutated(mutation: Mutation, directory: Path) -> subprocess.CompletedProcess[str]:
    """Ends with 1 and a schedule where a promise is broken."""
    job = mutate(mutation, directory)
    return subprocess.run(
        [sys.executable, "-m", "interleavings", "--first", "--most", str(mutation.most), mutation.configuration],
        check=False,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": f"{job}{os.pathsep}{TESTS}"},
        capture_output=True,
        text=True,
    )
