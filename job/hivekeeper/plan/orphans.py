"""What is left of tables, backups and runs that are not there any more, what each leftover means, and which may be discarded.

Pure. `steps/orphans.py` looks for them. Where it is not certain that a table was dropped, its leftovers stay.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import chain
from typing import Callable, Collection, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.codes import Coded
from hivekeeper.model import Column, Storage, Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import backup_tables, own_place
from hivekeeper.plan.retention import Verdict
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.entries import table_id
from hivekeeper.runlog.history import History
from hivekeeper.runlog.run_files import RunPlan, is_inside


class OrphanKind(Coded):
    """A kind of leftover, and its meaning."""

    RECORDS = "a control directory that belongs to no table, with the backups in it"
    REMOVED = "a control directory whose removal by `cleanup --orphans` or `forget`, or whose making, was interrupted"
    BACKUP_TABLE = "a backup table of a table that is gone"
    BACKUP = "a backup that the log knows and that is not at its place"
    RUN = "a run without an entry in the log: it is at work, or was interrupted"

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning


class OrphanState(Coded):
    """What became of a leftover: whether something was deleted, and the meaning."""

    FOUND = False, "nothing is done to it: `why` and `next` explain it"
    MARKED = False, "its table was dropped; what is in it goes once the mark is older than `min_age`"
    KEPT = False, "its table was dropped, and all backups in it are kept"
    PLANNED = False, "a dry run would discard backups in it, or remove it"
    DISCARDED = True, "backups in it are deleted, the others and the directory stay"
    REMOVED = True, "it is gone"

    def __init__(self, did_something: bool, meaning: str) -> None:
        self.did_something = did_something
        self.meaning = meaning


@dataclass(frozen=True)
class Orphan:
    """A leftover: a directory, or a backup table by its name. `table` and `run` are "" if not known; files and bytes are of its backups, by
    the log; `last_ms` is the time of the last entry. `is_read`: whether its records could be read. `may_go`: whether it lies where
    only tables of this metastore do, so that one that is not there was dropped.
    """

    kind: OrphanKind
    place: str
    table: str
    why: str
    next: str
    run: str = ""
    backups: int = 0
    files: int = 0
    size_bytes: int = 0
    last_ms: Optional[int] = None
    state: OrphanState = OrphanState.FOUND
    is_read: bool = True
    may_go: bool = True

    @property
    def is_unread(self) -> bool:
        """Whether no more than its name is known, by which anybody can make as many as they like."""
        return self.kind is OrphanKind.REMOVED or not self.is_read


def explain_records(
    control: str, table_id: str, tables: Iterable[Table], database: str, is_foreign: Callable[[str], bool], may_go: bool
) -> Tuple[str, str]:
    """Why a control directory belongs to no table, by the last table in its log; and what to do. `tables` are those of the database.

    `is_foreign`: whether nothing can be moved to a location, because its server must not be called, or because it is none. `may_go`: as in
    Orphan.
    """
    name, _, created = table_id.rpartition("@")
    tables = list(tables)
    discard = (
        "its old files are readable there as they are; when nobody needs them: "
        f"hivekeeper cleanup --orphans --database {quoting.shell(database)}"
    )
    if not may_go:
        discard = (
            f"no table of {database} whose log is about it alone lies beside it: it may be of a table that only another metastore knows; "
            "no command discards it; when nobody needs it, remove it by hand"
        )
    for table in tables:
        if created.isdigit() and int(created) == table.create_time != 0:
            where = f"at {table.location}" if table.location else "without a location"
            why = f"{name} was {'moved' if table.full_name == name else 'renamed'}: it is {table.full_name} {where} now"
            if is_foreign(table.location):
                return why, "if its columns and its owner say so too: find out who gave it that location: its server is not configured here"
            home = ControlPaths.of(table.location, table.partitioned).top
            return (
                why,
                "if its columns and its owner say so too: "
                f"hdfs dfs -mv {quoting.hdfs(control)} {quoting.hdfs(home)}, then: "
                f"hivekeeper recover --table {quoting.shell(table.full_name)}",
            )
    if any(table.full_name == name for table in tables):
        return f"{name} was dropped and created again elsewhere", discard
    return f"{name or 'its table'} was dropped, or is in another database now", discard


def explain_backup_table(table: Table, of: str) -> Tuple[str, str]:
    """Why a backup table is left, and what to do. Anybody can give a table the property that marks one."""
    if backup_tables.is_harmless(table):
        # What it is now, its owner may change before somebody drops it by hand.
        return f"its table {of} is gone", (
            f"hivekeeper cleanup --orphans --database {quoting.shell(table.database)} drops it, and no file, once it shows nothing; before "
            "a DROP TABLE, look at its location and its external.table.purge, as it may delete files by then"
        )
    return f"its table {of} is gone", "it is not as Hivekeeper makes them: DROP TABLE may delete its files"


def why_not_ours(table: Table, of: str, prefix: str) -> str:
    """Why a backup table is not exactly as we make them, "" if it is. What is not may be somebody's rescue of rows, or a forgery."""
    if table.backup_of != of:
        return f"it was not made as {table.full_name}"
    if not backup_tables.is_harmless(table):
        return "its files may go with it"
    top, _, below = table.location.rpartition(f"/{names.CONTROL}")
    run = backup_tables.run_of_place(below.partition("/")[2]) if top else None
    if run is None or not (below.startswith(("/", "-"))):
        return "it does not lie in a control directory"
    database, _, base = of.partition(".")
    if table.name not in {names.backup_name(prefix, stem, run).lower() for stem in (base, f"{database}__{base}")}:
        return f"its name is not that of a backup table of run {run}"
    return ""


# ---- may a control directory go?


def ids_of(history: History, plans: Iterable[RunPlan] = ()) -> FrozenSet[str]:
    """The tables that the log, and the plans of interrupted runs, were ever about."""
    return frozenset([*(run.table_id for run in history.runs), *(table_id(plan.table) for plan in plans)])


def names_of(ids: Iterable[str]) -> FrozenSet[str]:
    return frozenset(id.rpartition("@")[0] for id in ids)


class Reading:
    """The tables of all databases as they were read once, by the second of their creation: each former table of each log is looked for
    among them, of which there may be a hundred thousand.
    """

    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = tuple(tables)
        self.undated = next((table for table in self.tables if table.unreadable and not table.create_time), None)
        # Where the first table of each second is, and by place those of each.
        self._first: Dict[int, int] = {}
        self._by_place: Optional[_ByPlace] = None
        for nth, table in enumerate(self.tables):
            self._first.setdefault(table.create_time, nth)

    def find(self, times: Iterable[int]) -> Optional[Table]:
        """The first table that was created in one of these seconds."""
        nth = min((self._first[time] for time in times if time in self._first), default=None)
        return None if nth is None else self.tables[nth]

    def touching(self, directories: Iterable[str]) -> List[Table]:
        """The tables with a place in one of these directories, or their location around one, in their order."""
        return self._in_order(chain.from_iterable(map(self._places.touching, directories)))

    def below(self, directory: str) -> List[Table]:
        """The tables with a place that has the path of a directory, or of something in it, on whatever server, in their order."""
        return self._in_order(self._places.below(directory))

    @property
    def _places(self) -> _ByPlace:
        if self._by_place is None:
            self._by_place = _ByPlace(self.tables)
        return self._by_place

    def _in_order(self, found: Iterable[int]) -> List[Table]:
        return [self.tables[nth] for nth in sorted(set(found))]


class _ByPlace:
    """Where tables are among all, by their places."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._located: Dict[str, List[int]] = {}
        for nth, table in enumerate(tables):
            if table.location:
                self._located.setdefault(names.before_pattern(table.location), []).append(nth)
        self._ordered = sorted((place, nth) for nth, table in enumerate(tables) for place in table.places)
        self._servers = {names.server_of(place) for place, _ in self._ordered}

    def touching(self, directory: str) -> Iterator[int]:
        ends = [len(directory), *(at for at, char in enumerate(directory) if char == "/")]
        yield from chain.from_iterable(self._located.get(directory[:end], ()) for end in ends)
        yield from self._inside(directory)

    def below(self, directory: str) -> Iterator[int]:
        path = directory[len(names.server_of(directory)) :]
        return chain.from_iterable(self._inside(server + path) for server in self._servers)

    def _inside(self, directory: str) -> Iterator[int]:
        """Those at a directory and in it: "0" comes next after "/"."""
        for begin, end in (("", "\0"), ("/", "0")):
            first, last = (bisect_left(self._ordered, (directory + bound, -1)) for bound in (begin, end))
            yield from (nth for _, nth in self._ordered[first:last])


def tables_of(readings: Iterable[Reading]) -> Iterator[Table]:
    return (table for reading in readings for table in reading.tables)


@dataclass(frozen=True)
class Doubt:
    """Why nothing of a control directory may be discarded. `is_sign`: its table is, or may be, there; so a wait since its drop is over.

    Without that, this look only cannot tell: one from another database must not end a wait.
    """

    why: str
    is_sign: bool


def doubt_drop(ids: Collection[str], database: str, readings: Sequence[Reading]) -> Optional[Doubt]:
    """Why it is not certain that each of these tables was dropped, None if it is.

    No statement changes a table's creation time, and none takes it over, so a table that was renamed or moved still has it, under any name
    and in any database.
    """
    if not all(map(_created, ids)):
        return Doubt(UNDATED, is_sign=False)
    why = why_perhaps_there(ids, readings)
    if why:
        # That the metastore does not tell of a table, today, is none.
        return Doubt(why, is_sign=is_of_second(ids, readings))
    others = sorted(name for name in names_of(ids) if name.partition(".")[0] != database)
    return Doubt(f"its log is about {others[0]}, which is not in the database {database}", is_sign=False) if others else None


UNDATED = "its log does not say when its table was created"


def why_perhaps_there(ids: Collection[str], readings: Sequence[Reading]) -> str:
    """Why one of these tables may still be there, under whatever name and in any database; "" if none is."""
    if not all(map(_created, ids)):
        return UNDATED
    if not any(reading.tables for reading in readings):
        # That of a test, or an empty one after a failed restore.
        return "the metastore has no table at all: is it the right one?"
    of_same_second = _find_of_same_second(ids, readings)
    if of_same_second:
        return f"{of_same_second.full_name} was created in the same second: it may be that table, renamed or moved"
    undated = next((reading.undated for reading in readings if reading.undated), None)
    return f"the metastore does not say when {undated.full_name} was created: it may be that table" if undated else ""


def is_of_second(ids: Iterable[str], readings: Iterable[Reading]) -> bool:
    """Whether a table was created in the same second as one of these."""
    return _find_of_same_second(ids, readings) is not None


def _find_of_same_second(ids: Iterable[str], readings: Iterable[Reading]) -> Optional[Table]:
    times = set(map(_created, ids))
    return next(filter(None, (reading.find(times) for reading in readings)), None)


def _created(id: str) -> int:
    """When the table was created, 0 if that is not known."""
    created = id.rpartition("@")[2]
    return int(created) if created.isdigit() else 0


def why_shared(
    ids: Iterable[str], table: Table, control: ControlPaths, readings: Iterable[Reading], homes: own_place.Homes
) -> Optional[Reason]:
    """Why nothing in a control directory may be moved: a table has its files in, around or beside it. Backup tables of it are no reason."""
    own, ours = names_of(ids), (control.top, table.location)
    for one in chain.from_iterable(reading.touching(ours) for reading in readings):
        if one.backup_of not in own:
            return Reason(Code.SHARED_DIRECTORY, f"{one.full_name} lies at {_find_touching(one, ours)}", "find out whose it is")
    return own_place.refuse_home(table, homes)


def _find_touching(one: Table, ours: Sequence[str]) -> str:
    """A place of a table in one of these directories; else its location is around one."""
    inside = (place for place in one.places if any(is_inside(place, directory) for directory in ours))
    return next(inside, names.before_pattern(one.location))


def former_table(history: History, control: ControlPaths, database: str, plan: Optional[RunPlan]) -> Table:
    """The table that the log was about last, with the definition of a plan that was made for it, if there is one.

    `database` is where it was found, for a log without an entry.
    """
    name, _, created = history.table_id.rpartition("@")
    database, _, base = (name or f"{database}.{names.base(control.home)}").partition(".")
    columns = next((run.partition_columns for run in reversed(history.runs) if run.partition_columns is not None), ())
    bare = Table(database, base, "", "", Storage("", "", ""), (), tuple(Column(column, "string") for column in columns))
    known = plan.table if plan else bare
    create_time = int(created) if created.isdigit() else 0
    return replace(known, database=database, name=base, location=control.home, create_time=create_time, unreadable="")


# What lets go of a backup that a rule would keep for ever, because nothing follows in the log of a table that is gone.
_LETS_GO = {
    Code.IN_WINDOW: "--set keep_latest_runs=",
    Code.AMONG_NEWEST: "--set keep_latest_versions=",
    Code.NOT_VERIFIED: "--set cleanup_requires=age",
}


def how_to_let_go(verdicts: Sequence[Verdict]) -> str:
    """What lets the backups go that stay, if not time alone does."""
    reasons = [verdict.reason for verdict in verdicts if verdict.keep] + [why for verdict in verdicts for _, why in verdict.staying]
    codes = list(dict.fromkeys(reason.code for reason in reasons))
    options: List[str] = [_LETS_GO[code] for code in codes if _LETS_GO.get(code)]
    said = [f"the rules of a table that is gone keep them for ever; {' '.join(options)} lets them go"] if options else []
    if Code.PINNED in codes or Code.DATE_UNKNOWN in codes:
        said.append("no command lets go of a pinned or undatable backup of a table that is gone: when nobody needs it, remove it by hand")
    return "; ".join(said)
