"""Copies and digests Parquet and ORC files on executors, as the values that are stored, never as rows.

What Spark would change in a rewrite stays: annotations that no library here knows, nanoseconds, the bits of a NaN, key-value metadata.
It reads the files by name and writes only into a directory of attempts, from which it moves complete outputs to their places.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from hivekeeper.cluster.gateway import Gateway
from hivekeeper.cluster.java_classes import CORE, JavaPackage, compiled
from hivekeeper.model import Digest, FileInfo, expect_values
from hivekeeper.ports import RowsError
from hivekeeper.schemas import ORC, PARQUET

_FOLDER = "copy"
# What opening a file costs, as bytes that are read in the same time.
_OPEN_BYTES = 256 << 10
# A task of a digest gets at least this much.
_LEAST_BYTES = 32 << 20
_TASKS_PER_CORE = 4
# How often a task counts a value that a footer counts once: in Parquet a number has an eighth of what counts as another value; in ORC a
# timestamp is read by its seconds and nanoseconds, too, and 64 bytes of runs of numbers count as one.
_COUNTED = {PARQUET: 1.25, ORC: 3.5}

# The application's id → its jar, which must stay as long as executors may start.
_SHIPPED: Dict[str, tempfile.TemporaryDirectory[str]] = {}


class CopyTask(NamedTuple):
    """One output file. `target` is its final path; the commit makes its directory. `files` are in the order of their rows.

    `codec` is named as in `Form.codec`, `blooms` are dotted column paths; ORC takes them from the first file. Row groups (stripes of
    ORC) get smaller than `row_group_bytes` where an executor's memory is small: a quarter of its heap, divided by its cores.
    A copy that becomes much larger than its files fails, unless it `may_grow`. `block_bytes` and `copies`: what its blocks have at least.
    `bare_values`: so many more than `expect_values` are read.
    """

    target: str
    files: Sequence[FileInfo]
    codec: str
    blooms: Sequence[str] = ()
    row_group_bytes: int = 128 << 20
    format: str = PARQUET
    may_grow: bool = False
    block_bytes: int = 0
    copies: int = 0
    bare_values: int = 0


class Answer(NamedTuple):
    """The digest of the files that were read, and their `Form.identity` ("" if they differ in it).

    `failed` is the path and the reason on one line, "" if it was done.
    """

    digest: Digest
    identity: str = ""
    failed: str = ""


class PhysicalCopy:
    """Raises CALL_ERRORS if a whole job failed, Unusable if the Java sources did not compile."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def copy(self, attempts: str, tasks: Sequence[CopyTask]) -> List[Answer]:
        """Write each output and put it in its place; a failed one costs only itself, and nothing of it stays.

        `attempts` is a directory for this call alone, on the file system of the targets; it is deleted at the end. An answer's digest is
        that of the rows as they were read: compare it with the `digest` of the output.
        """
        order = sorted(range(len(tasks)), key=lambda number: -_cost(tasks[number].files))
        asked = [_asked(tasks[number].files, tasks[number].bare_values, tasks[number]._asdict()) for number in order]
        told = json.loads(self._jobs.copy(attempts, json.dumps(asked))) if asked else []
        by_number = dict(zip(order, map(_answer, told)))
        return [by_number[number] for number in range(len(tasks))]

    def digest(
        self, sets: Sequence[Sequence[FileInfo]], check_claims: bool = False, format: str = PARQUET, bare_values: Sequence[int] = ()
    ) -> List[Answer]:
        """The digest of each set of files, each file read by its own schema.

        With `check_claims` a set also fails if a value lies outside the bounds that the file has for its column chunk, or if the number of
        NULLs is wrong there (the same for stripes of ORC). That is for our own outputs: old writers' bounds are often wrong.
        `bare_values`, for each set: so many more than `expect_values` are read.
        """
        slices = list(_slices(sets, int(self.gateway.context.defaultParallelism)))
        slices.sort(key=lambda one: -_cost(one[1]))
        more = {"format": format, "check_claims": check_claims}
        asked = [_asked(files, bare_values[number] if bare_values else 0, more) for number, files in slices]
        told = json.loads(self._jobs.digest(json.dumps(asked))) if asked else []
        if len(told) != len(slices):
            raise RowsError(f"{len(told)} answers came from {len(slices)} tasks")
        parts: Dict[int, List[Answer]] = {}
        for (number, _), answer in zip(slices, told):
            parts.setdefault(number, []).append(_answer(answer))
        return [_sum(parts.get(number, [])) for number in range(len(sets))]

    def warm_up(self) -> None:
        """Begin to start the application and to compile the classes, without waiting for either."""
        self.gateway.driver.warm_up()
        compiled(self.gateway.java_gateway, _FOLDER)

    def require_started(self) -> None:
        """Wait for the application. Raises Unusable and StopAsked."""
        self.warm_up()
        self.gateway.context  # noqa: B018

    @cached_property
    def _jobs(self) -> Any:
        self.require_started()
        packages = [compiled(self.gateway.java_gateway, folder) for folder in (CORE, _FOLDER)]
        application = str(self.gateway.context.applicationId)
        if application not in _SHIPPED:
            _SHIPPED[application] = ship(self.gateway, packages)
        return self.gateway.helper(f"{_FOLDER}.CopyJobs", self.gateway.context._jsc)


def ship(gateway: Gateway, packages: Sequence[JavaPackage]) -> tempfile.TemporaryDirectory[str]:
    """Give the executors of this application these classes. Returns the directory of their jar, which only its owner may read or write."""
    directory = tempfile.TemporaryDirectory(prefix="hivekeeper-classes-")
    jar = Path(directory.name) / f"{packages[-1].name}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for package in packages:
            for name, content in package.class_bytes().items():
                archive.writestr(f"{name.replace('.', '/')}.class", content)
    gateway.context._jsc.addJar(str(jar))
    return directory


def _asked(files: Sequence[FileInfo], bare_values: int, more: Mapping[str, Any]) -> Mapping[str, Any]:
    values = int(_COUNTED[more["format"]] * (expect_values(files) + bare_values))
    return {**more, "files": list(map(as_asked, files)), "values": values}


def as_asked(file: FileInfo) -> List[object]:
    """As the Java helpers read it (`ListedFile`). The id at the path is 0 if it is not known: that of a file which lies in another one is
    the one that it had by itself.
    """
    return [file.path, file.length, file.begin, 0 if file.begin else file.file_id]


def _answer(told: Mapping[str, Any]) -> Answer:
    if "failed" in told:
        return Answer(Digest(0, 0, 0), failed=f"{told['path']}: {told['failed']}")
    # Java's numbers are unsigned, a digest's are not.
    return Answer(Digest(0, 0, 0) + Digest(int(told["rows"]), int(told["high"]), int(told["low"])), told["identity"])


def _cost(files: Sequence[FileInfo]) -> int:
    return sum(file.length + _OPEN_BYTES for file in files)


def _slices(sets: Sequence[Sequence[FileInfo]], cores: int) -> Iterator[Tuple[int, List[FileInfo]]]:
    """Cut each set into tasks of about the same cost, each with the number of its set; a small set is one task."""
    most = max(_LEAST_BYTES, sum(map(_cost, sets)) // (cores * _TASKS_PER_CORE))
    for number, files in enumerate(sets):
        part: List[FileInfo] = []
        spent = 0
        for file in files:
            cost = _cost([file])
            if part and spent + cost > most:
                yield number, part
                part, spent = [], 0
            part.append(file)
            spent += cost
        if part:
            yield number, part


def _sum(parts: Sequence[Answer]) -> Answer:
    for part in parts:
        if part.failed:
            return part
    identities = {part.identity for part in parts}
    return Answer(sum((part.digest for part in parts), Digest(0, 0, 0)), identities.pop() if len(identities) == 1 else "")
