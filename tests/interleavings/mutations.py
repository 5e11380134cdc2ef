"""Lines of the safe order, removed one at a time: the exploration must notice each."""

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
    """In `file` of the job, replace `line` by `instead`; `configuration` then breaks a promise with this many kills or lost leases."""

    file: str
    line: str
    instead: str
    configuration: str
    most: int = 0


LOOK = "why = look_at_leaving(self.run, self.unit, checked, left)"
LOOK_OF_RECOVERY = "or manifests.judge(unit.manifest, picture.departed).why"
OBJECTION = "why = checked.why or exchange.object_to(checked.incoming)"
MACHINE, DIRECTORIES, JOINS = "steps/exchange.py", "steps/directory_exchange.py", "steps/concat_exchange.py"

MUTATIONS = {
    "the look after the first rename": Mutation(DIRECTORIES, LOOK, 'why = ""', "append slowly"),
    "the check before it": Mutation(MACHINE, OBJECTION, "why = exchange.object_to(checked.incoming)", "overwrite files"),
    "carrying over": Mutation(
        DIRECTORIES, "carried = arrivals.move_late(self.run, self.unit, late, expected, backup)", "carried = CarriedOver()", "append"
    ),
    "looking for late files among those that were checked": Mutation(
        DIRECTORIES, "nothing_late=self._is_long_settled(checked)", "nothing_late=True", "append"
    ),
    "merging what was set aside": Mutation(
        DIRECTORIES, "arrivals.merge_recreated(self.run, self.unit, self.unit.live, expected, is_live=True)", "True", "append"
    ),
    "merging before a put-back": Mutation(
        DIRECTORIES,
        "                    arrivals.merge_recreated(self.run, self.unit, source, self.coming, is_sure=is_sure)\n",
        "                    pass\n",
        "append, overwrite files",
    ),
    "merging before the put-back of a recovery": Mutation(
        DIRECTORIES,
        "            arrivals.merge_recreated(self.run, self.unit, self.left, self.coming, is_sure=is_sure)\n",
        "            pass\n",
        "append, overwrite files",
        most=1,
    ),
    "the look of the recovery": Mutation(MACHINE, LOOK_OF_RECOVERY, "", "append slowly", most=1),
    "putting back what has no room": Mutation(MACHINE, "(move is Move.DECIDE and is_full) or ", "", "full"),
    "the rollback's putting back": Mutation(MACHINE, "(move is Move.DECIDE and is_full) or ", "", "rollback, full"),
    "asking whether a run was taken over where ready is not as proved": Mutation(
        "steps/swap.py", "        require_own_directory(run)\n        raise", "        raise", "pause, recover", most=1
    ),
    "setting aside what was recreated": Mutation(
        DIRECTORIES, "                set_aside(self.run, self.unit)\n", "                raise\n", "append"
    ),
    "telling of a nested directory": Mutation("steps/late_directories.py", "    if not nested:\n", "    if True:\n", "committer beside"),
    "the directory's time before its listing": Mutation(
        "runlog/manifests.py", "same = now.file_id == mark.file_id and", "same =", "overwrite directory"
    ),
    "fencing": Mutation(
        "steps/run_directory.py",
        "    for directory in unfinished:",
        "    for directory in ():",
        "pause, recover",
        most=1,
    ),
    "keeping an entry that the last checkpoint alone marks as expired": Mutation(
        "runlog/store.py",
        "for version in range(former.expired) if version in listed))",
        "for version in range(expired) if version in listed))",
        "checkpoints, expiry",
        most=1,
    ),
    "taking the tail away": Mutation(
        JOINS,
        'self._take(path, "tail")\n            if is_taken and joined.is_aside():',
        "found is not None\n            if is_taken:",
        "joined: pause, recover",
        most=1,
    ),
    "the name of a joined file": Mutation(
        "names.py",
        "            if min(sources) < name < max(sources):\n                yield name",
        '            yield f"z-{run}-{nth}"',
        "joined: readers",
    ),
    "the look after a concat": Mutation(JOINS, "if not joined.is_wrong(own):", "if True:", "joined: replace a file"),
    "the look of a recovery after a concat": Mutation(
        JOINS, "incoming = not left or is_aside or joined.is_wrong(own)", "incoming = not left", "joined: replace a file", most=1
    ),
    "taking a file without rows away": Mutation(
        JOINS, "            self._take(found.path, part)\n", "            pass\n", "joined: alone", most=1
    ),
    "the rollback's look": Mutation(DIRECTORIES, LOOK, 'why = ""', "rollback, append slowly"),
    "the rollback's check": Mutation(MACHINE, OBJECTION, 'why = ""', "rollback, overwrite files"),
}


def mutate(mutation: Mutation, directory: Path) -> Path:
    """A copy of the job with the line removed."""
    copy = directory / "job"
    # What was compiled is copied too, and believed as long as its source has the same time.
    shutil.copytree(JOB, copy)
    file = copy / "hivekeeper" / mutation.file
    text = file.read_text()
    assert text.count(mutation.line) == 1, f"{mutation.file} has {text.count(mutation.line)} times: {mutation.line}"
    file.write_text(text.replace(mutation.line, mutation.instead))
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
        compiled.unlink()
    return copy


def explore_mutated(mutation: Mutation, directory: Path) -> subprocess.CompletedProcess[str]:
    """Exits with 1 and a schedule if a promise is broken."""
    job = mutate(mutation, directory)
    return subprocess.run(
        [sys.executable, "-m", "interleavings", "--first", "--most", str(mutation.most), mutation.configuration],
        check=False,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": f"{job}{os.pathsep}{TESTS}"},
        capture_output=True,
        text=True,
    )
