"""The real commands as programs of an exploration: each stops before every call to a cluster, and resumes with the answer.

What a command does next depends only on the answers it got so far. So a command's state is that sequence (a Point), and to
continue from a state a second time, the command is run again with the same answers.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ContextManager, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from greenlet import GreenletExit, getcurrent, greenlet

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.commands import cleanup, compact_swap, recover, rollback
from hivekeeper.config.settings import JOINED, Settings
from hivekeeper.model import OWNER_ONLY, Exposed, FileInfo, Guard, Selection, Snapshot
from hivekeeper.ports import ALL, Cluster, FilesError, MetastoreUnavailable, RowsError
from hivekeeper.report.results import CommandResult
from interleavings.world import NOW_MS
from support import step_by_step
from support.contexts import a_context

TABLE = "sales.events"
# What a well-sized file has: it is not joined.
BLOCK_BYTES = 1 << 20
SETTINGS = Settings(min_quiet_ms=0, backup_table=False, hive_lock="off")
# What makes a run write a checkpoint of the log, and remove entries that the one before marks as expired.
SHORT_MEMORY = replace(SETTINGS, checkpoint_interval=1, log_retention_ms=0)
# Files are joined instead of directories exchanged.
JOINS = replace(SETTINGS, exchange=JOINED, fewest_joined=2, block_bytes=BLOCK_BYTES, read_by_llap=False)
SELECTED = Selection(tables=(TABLE,))

FILES_CHANGES = frozenset(
    [
        *("make_directory", "rename_exact", "remove_empty", "delete_tree"),
        *("delete_file", "move_to_trash", "write_new", "hold", "release", "dress"),
        *("concat", "copy_part", "cut"),
    ]
)
CHANGES = {
    "files": FILES_CHANGES,
    "metastore": frozenset(["update_sizes", "add_partition"]),
    "rows": frozenset(["write_stage", "write_ends", "write_restored"]),
}


@dataclass(frozen=True)
class Call:
    """One call of a port, one step of the NameNode or the metastore."""

    port: str
    method: str
    arguments: Tuple[Any, ...]

    @property
    def changes(self) -> bool:
        return self.method in CHANGES[self.port]

    def paths(self) -> List[str]:
        """The paths in a call to the files; none for other calls."""
        found: List[str] = []
        for argument in self.arguments if self.port == "files" else ():
            several = [argument] if isinstance(argument, (str, int, FileInfo)) else argument or ()
            found += [one.path if isinstance(one, FileInfo) else one for one in several if isinstance(one, (str, FileInfo))]
        return [path for path in found if path.startswith("hdfs://")]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, and the message if there is one."""

    code: int
    why: str = ""


@dataclass(frozen=True)
class Answer:
    value: Any = None
    error: Optional[Exception] = None


# So many commands stay stopped in their middle, 20 KB each; what waits longest is dropped, and run again if it is needed.
MOST_STOPPED = 4000

PORT_ERRORS = (FilesError, MetastoreUnavailable, RowsError)


# ---- the ports that a command gets


def _ask(port: str, method: str, *arguments: Any) -> Any:
    """Hand the call to the explorer, which resumes here once it has the answer."""
    here = getcurrent()
    if here in _dropped:
        # What ends a command releases its lock; one that nobody will resume asks for nothing more.
        raise GreenletExit
    answer = here.parent.switch(Call(port, method, arguments))
    if answer.error is not None:
        raise answer.error
    return answer.value


class SteppedFiles:
    """`ports.Files`: inspecting several directories is one pair of steps each, own status first, as in the real implementation."""

    clock_grain_ms = 1

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: _ask("files", method, *arguments)

    def qualify(self, path: str) -> str:
        return path

    def is_foreign(self, location: str) -> bool:  # noqa: ARG002
        return False

    def look(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:  # noqa: ARG002
        return {directory: self._look_at(directory) for directory in directories}

    def look_hidden(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:  # noqa: ARG002
        seen = self.look(directories)
        wanted = {path: tuple(e for e in one.entries if names.is_listed_above_units(e.name)) for path, one in seen.items()}
        return {path: replace(one, entries=wanted[path]) for path, one in seen.items()}

    def look_hidden_directories(self, directories: Sequence[str], most: int = ALL) -> Mapping[str, Snapshot]:
        seen = self.look_hidden(directories, most)
        return {path: replace(one, entries=tuple(e for e in one.entries if e.is_dir)) for path, one in seen.items()}

    def _look_at(self, directory: str) -> Snapshot:
        own: Optional[FileInfo] = _ask("files", "stat", directory)
        if own is None or not own.is_dir:
            return Snapshot(exists=False)
        listed: Optional[Tuple[FileInfo, ...]] = _ask("files", "list", directory)
        return Snapshot(exists=False) if listed is None else Snapshot(True, own.file_id, own.mtime_ms, listed, own.mode)

    def id_around(self, directory: str) -> int:  # noqa: ARG002
        """Only what lies in a directory with a lock is found by its id here (tests/crash/ has the rest)."""
        return 0

    def anchored(self, directories: Mapping[str, int]) -> ContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def exposed(self, top: str, levels: int) -> Tuple[Exposed, ...]:  # noqa: ARG002
        """There is only one user here, so rights are neither checked nor set (see tests/unit/commands/test_whose_records.py)."""
        return ()

    def guard(self, wanted: Mapping[str, Guard]) -> None:
        pass

    def write_new(self, path: str, content: Union[str, bytes, Iterable[str]], mode: int = OWNER_ONLY) -> None:
        """Pieces are joined here: the explorer makes a step again in every order, and an iterator gives them once."""
        _ask("files", "write_new", path, content if isinstance(content, bytes) else "".join(content), mode)

    def exchange(self, live: str, aside: str, incoming: str, mark: Snapshot) -> Optional[FileInfo]:
        return step_by_step.exchange(self, live, aside, incoming, mark)

    def hold(self, path: str, holder: str) -> SteppedLock:
        _ask("files", "hold", path, holder)
        return SteppedLock(path)


class SteppedLock:
    def __init__(self, path: str) -> None:
        self._path = path

    def check(self) -> bool:
        return bool(_ask("files", "check", self._path))

    def release(self) -> None:
        _ask("files", "release", self._path)


class SteppedMetastore:
    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: _ask("metastore", method, *arguments)

    @contextmanager
    def hold(self, table: Any, timeout_s: float) -> Iterator[str]:  # noqa: ARG002
        yield "nobody here takes it"


class SteppedRows:
    def warm_up(self) -> None:
        """No step: it touches nothing that others can see."""

    def require_started(self) -> None:
        """No step either."""

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: _ask("rows", method, *arguments)


class StoppedClock:
    def now_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> float:
        return 0.0


# ---- the commands

VARIANTS = {"": SETTINGS, "short memory": SHORT_MEMORY, "joined": JOINS}


def run_id(actor: int) -> str:
    return f"20260101t0203{actor:02d}z-0000"


def run_command(job: str, actor: int) -> CommandResult:
    cluster = Cluster(SteppedFiles(), SteppedMetastore(), SteppedRows(), None, StoppedClock(), "etl", "edge", lambda: "app", "3.5.9", "UTC")  # type: ignore[arg-type]
    run = run_id(actor)
    job, _, more = job.partition(", ")
    settings = VARIANTS[more]
    if job == "compact":
        return compact_swap.compact_swap(a_context(cluster, SELECTED, run, settings))
    if job == "rollback":
        return rollback.rollback(a_context(cluster, SELECTED, run, settings))
    if job == "cleanup":
        return cleanup.clean_up(a_context(cluster, SELECTED, run, Settings(min_age_ms=0)))
    return recover.recover(a_context(cluster, SELECTED, run, SETTINGS))


def _run_to_end(job: str, actor: int) -> Ended:
    try:
        (table,) = run_command(job, actor).tables
    except Exception as error:  # noqa: BLE001 - a bug, which the promises name
        return Ended(Exit.BUG, repr(error))
    return Ended(table.code, table.problem.what if table.problem else "")


# ---- where a command stands


class Point:
    """A command after some answers: `next` is the call that it waits with, or how it ended."""

    __slots__ = ("_answer", "_children", "_execution", "_job", "_parent", "next")

    def __init__(self, job: Tuple[str, int], parent: Optional[Point], answer: Optional[Answer], execution: greenlet, waits: Any) -> None:
        self._job, self._parent, self._answer = job, parent, answer
        self._execution: Optional[greenlet] = None
        self._children: Dict[Any, Point] = {}
        self.next: Union[Call, Ended] = waits
        if isinstance(waits, Call):
            self._stop(execution)

    def _stop(self, execution: greenlet) -> None:
        self._execution = execution
        _stopped[self] = None
        if len(_stopped) > MOST_STOPPED:
            oldest = next(iter(_stopped))
            _drop(oldest._take_execution())

    @classmethod
    def begin(cls, job: str, actor: int) -> Point:
        execution = greenlet(_run_to_end)
        return cls((job, actor), None, None, execution, execution.switch(job, actor))

    def go_on(self, answer: Answer) -> Point:
        key = _key_of(answer)
        if key not in self._children:
            execution = self._take_execution()
            self._children[key] = Point(self._job, self, answer, execution, execution.switch(answer))
        return self._children[key]

    def _take_execution(self) -> greenlet:
        """The runner that waits here, or another one brought here by the same answers."""
        if self._execution is not None:
            execution, self._execution = self._execution, None
            del _stopped[self]
            return execution
        execution = greenlet(_run_to_end)
        execution.switch(*self._job)
        for answer in self._answers():
            execution.switch(answer)
        return execution

    def _answers(self) -> List[Answer]:
        found: List[Answer] = []
        point: Optional[Point] = self
        while point is not None and point._answer is not None:
            found.append(point._answer)
            point = point._parent
        return found[::-1]


# Points whose command waits there, the longest first.
_stopped: Dict[Point, None] = {}
_dropped: Set[greenlet] = set()


def _drop(execution: greenlet) -> None:
    _dropped.add(execution)
    execution.throw()
    _dropped.remove(execution)


def _key_of(answer: Answer) -> Any:
    """Equal for answers that a command cannot tell apart."""
    if answer.error is not None:
        return type(answer.error), str(answer.error)
    try:
        hash(answer.value)
    except TypeError:
        return repr(answer.value)
    return answer.value


def name_of(path: str) -> str:
    """A path in a schedule, without the common part."""
    return path.replace("hdfs://nn/warehouse/sales/events", "").replace("/.hivekeeper/", "") or names.base(path)
