"""Other programs as found in the field: appenders, committers, overwriters, the metastore's own discovery.

They know nothing of Hivekeeper. Each step is one call to the NameNode. They leave facts for the promises: which rows a writer was
told are in ("told"), which it meant to replace ("may go"), and which of its steps met the unit between its two places ("window").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, Generator, List, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.ports import FilesError
from interleavings.runners import TABLE
from interleavings.world import World, add_file
from support.builders import a_partition
from support.fakes.rows import DataFile

ROOT = "hdfs://nn/warehouse/sales/events"
UNIT = "dt=1"
LIVE = f"{ROOT}/{UNIT}"
# Where live is after somebody has moved the partition.
MOVED = f"{ROOT}/moved"
RUNS = f"{ROOT}/.hivekeeper/runs"
PRIVATE = "hdfs://nn/private"
ORIGINAL = ("s1", "s2")
# The row of a well-sized file, where there is one.
BIG = "big"

Fact = Tuple[Any, ...]
# A step: its name in a schedule, and its action. A program gets the step's result, None if it failed, and ends with facts.
Step = Tuple[str, Callable[[World], Any]]
Program = Generator[Step, Any, Sequence[Fact]]


# ---- what a reader sees


def rows_below(world: World, directory: str) -> Counter:
    """Rows in a directory's own data files, with their multiplicity."""
    node = world.namespace.find(directory)
    found: Counter = Counter()
    for name, child in node.children.items() if node is not None else ():
        if not child.is_dir and not names.is_hidden(name) and isinstance(child.content, DataFile):
            found.update(child.content.rows)
    return found


def rows_in_live(world: World) -> Counter:
    return rows_below(world, LIVE) + rows_below(world, MOVED)


# ---- facts


def tell_window(world: World, what: str) -> None:
    """This step met the unit between its two places: no order of our steps can prevent that."""
    when = "after the swap" if rows_in_live(world)[ORIGINAL[0]] else "in an outage" if ("killed",) in world.facts else "in the gap"
    world.facts.add(("window", f"{what} {when}"))


def begin_overwrite(world: World) -> None:
    """All rows that exist at this moment may be replaced; a told row that cannot be seen at this moment is a window."""
    seen = rows_in_live(world)
    for row in (*ORIGINAL, *(fact[1] for fact in world.facts if fact[0] == "told")):
        world.facts.add(("may go", row))
        if not seen[row]:
            tell_window(world, "overwriter lists")


# ---- steps


def attempt(change: Callable[[World], Any]) -> Callable[[World], Any]:
    """None if the NameNode refuses."""

    def step(world: World) -> Any:
        try:
            change(world)
        except FilesError:
            return None
        return True

    return step


def make_file(path: str, row: str, is_open: bool = False) -> Step:
    def make(world: World) -> Any:
        if is_open:
            return world.namespace.create(path, DataFile((row,)), 100, is_open=True)
        return add_file(world, path, DataFile((row,)))

    return f"create {path}", attempt(make)


def make_directory(path: str) -> Step:
    return f"mkdirs {path}", attempt(lambda world: world.namespace.make_directory(path))


def rename(source: str, target: str) -> Step:
    return f"rename {source} {target}", attempt(lambda world: world.namespace.rename(source, target))


def rename_into(source: str, target: str) -> Step:
    """FileSystem.rename: moves below the target if that is a directory."""

    def move(world: World) -> Any:
        there = world.namespace.find(target)
        if there is None or not there.is_dir:
            return world.namespace.rename(source, target)
        done = world.namespace.rename(source, names.join(target, names.base(source)))
        world.facts.add(("nested",))
        return done

    return f"rename {source} into {target}", attempt(move)


def delete(path: str) -> Step:
    return f"delete {path}", attempt(lambda world: world.namespace.delete(path))


def ask_whether(path: str) -> Step:
    return f"exists {path}", lambda world: world.exists(path)


def close_row(row: str, more: str = "") -> Step:
    """A stream follows its inode, wherever the file is by then."""

    def close(world: World) -> Any:
        for _, node in world.files_below("hdfs://nn"):
            if isinstance(node.content, DataFile) and node.content.rows == (row,) and node.is_open:
                node.content = DataFile((row, more)) if more else node.content
                node.length += 1
                world.namespace.close(node)
                return True
        return None

    return f"close {row}", close


# ---- programs


def _told(*rows: str) -> Sequence[Fact]:
    """The writer's job is done: its rows must be in the table from this moment."""
    return [("told", row) for row in rows]


def append(row: str) -> Program:
    return _told(row) if (yield make_file(f"{LIVE}/{row}.parquet", row)) else ()


def append_slowly(row: str) -> Program:
    """A stream that stays open for a while."""
    opened = yield make_file(f"{LIVE}/{row}.parquet", row, is_open=True)
    return _told(row) if opened and (yield close_row(row)) else ()


def append_hive(row: str) -> Program:
    """mkdirs, then a rename of one file: Hive's copyFiles, committer version 2."""
    yield make_directory(LIVE)
    return _told(row) if (yield rename(f"{PRIVATE}/{row}", f"{LIVE}/{row}.parquet")) else ()


def impala(row: str) -> Program:
    """An executor writes below the unit's staging directory; the coordinator moves the file and removes the query's directory."""
    query = names.join(LIVE, names.IMPALA_STAGING, row)
    opened = yield make_file(f"{query}/{row}.parquet", row, is_open=True)
    closed = opened and (yield close_row(row))
    if not (closed and (yield rename(f"{query}/{row}.parquet", f"{LIVE}/{row}.parquet"))):
        return ()
    yield delete(query)
    return _told(row)


def append_to_old(row: str) -> Program:
    """A stream opened before the swap, for append to a file of the snapshot."""
    return [("kept", row)] if (yield close_row(ORIGINAL[0], row)) else ()


def _commit_task(temporary: str, number: str) -> Step:
    """Without an attempt directory there is no output: FileOutputCommitter continues silently."""
    source = f"{temporary}/x{number}"

    def commit(world: World) -> Any:
        if not world.exists(source):
            tell_window(world, "committer commits a task")
            return "no output"
        return attempt(lambda space: space.namespace.rename(source, f"{temporary}/T{number}"))(world)

    return f"rename {source} {temporary}/T{number}", commit


def _list_committed(temporary: str) -> Step:
    def look(world: World) -> Optional[Tuple[str, ...]]:
        world.facts.add(("the job commits",))
        node = world.namespace.find(temporary)
        if node is None:
            return None
        if len([path for path, _ in world.files_below(temporary)]) < 2:
            tell_window(world, "committer commits the job")
        return tuple(sorted(name for name in node.children if name.startswith("T")))

    return f"list {temporary}", look


def committer_inside() -> Program:
    """FileOutputCommitter version 1, its _temporary inside the unit, two tasks."""
    temporary = f"{LIVE}/_temporary"
    yield make_directory(temporary)
    for number in "12":
        if not (yield make_file(f"{temporary}/x{number}/t{number}.parquet", f"t{number}")):
            return ()
        if not (yield _commit_task(temporary, number)):
            return ()
    tasks = yield _list_committed(temporary)
    if tasks is None:
        return ()
    for task in tasks:
        done = yield from _publish(f"{temporary}/{task}", f"t{task[1:]}.parquet")
        if not done:
            yield delete(temporary)
            return ()
    yield delete(temporary)
    return _told("t1", "t2")


def _publish(directory: str, name: str) -> Generator[Step, Any, Any]:
    """mergePaths: file by file into an existing target; otherwise the directory becomes the target."""
    if (yield ask_whether(LIVE)):
        return (yield rename(f"{directory}/{name}", f"{LIVE}/{name}"))
    return (yield rename_into(directory, LIVE))


def committer_beside(row: str) -> Program:
    """FileOutputCommitter version 1, its _temporary in the table's root."""
    temporary = f"{ROOT}/_temporary"
    yield make_file(f"{temporary}/d/{row}.parquet", row)
    done = yield from _publish(f"{temporary}/d", f"{row}.parquet")
    yield delete(temporary)
    return _told(row) if done else ()


def _overwrote(row: str) -> Sequence[Fact]:
    return [("told", row), ("overwrote",)]


def _delete_listed(path: str) -> Step:
    def remove(world: World) -> Any:
        if not world.exists(path):
            tell_window(world, "overwriter deletes what it listed")
        return world.namespace.delete(path)

    return f"delete {path}", remove


def overwrite_files(row: str) -> Program:
    """Lists, deletes what it listed, adds its own files: Hive's replaceFiles."""

    def look(world: World) -> Tuple[str, ...]:
        begin_overwrite(world)
        return tuple(path for path, _ in world.files_below(LIVE))

    for path in (yield f"list {LIVE}", look):
        yield _delete_listed(path)
    return _overwrote(row) if (yield make_file(f"{LIVE}/{row}.parquet", row)) else ()


def overwrite_with_old_names(row: str) -> Program:
    """Hive's names are the same each time, 000000_0: deletes what it listed, adds its own files under the old names."""

    def look(world: World) -> Tuple[str, ...]:
        begin_overwrite(world)
        return tuple(path for path, _ in world.files_below(LIVE))

    for path in (yield f"list {LIVE}", look):
        yield _delete_listed(path)
    told: List[Fact] = []
    for name in ORIGINAL:
        if not (yield make_file(f"{LIVE}/{name}.parquet", f"{row}{name}")):
            return ()
        told += _overwrote(f"{row}{name}")
    return told


def replace_a_file(row: str) -> Program:
    """Puts a new file at the place of an old one, which is meant to be gone."""
    path = f"{LIVE}/{ORIGINAL[0]}.parquet"

    def exchange(world: World) -> Any:
        if not world.exists(path):
            return None
        world.facts.add(("may go", ORIGINAL[0]))
        world.namespace.delete(path)
        return add_file(world, path, DataFile((row,)))

    return _told(row) if (yield f"replace {path}", exchange) else ()


def read(order: str) -> Program:
    """Lists, then opens file after file in the order of names, or against it; what is gone is an error. Tells which rows it got."""

    def look(world: World) -> Tuple[str, ...]:
        paths = sorted(path for path, _ in world.files_below(LIVE) if not names.is_hidden(names.base(path)))
        return tuple(paths if order == "up" else reversed(paths))

    rows: List[str] = []
    for path in (yield f"list {LIVE}", look):
        found = yield f"open {path}", lambda world, path=path: open_file(world, path)
        if found is None:
            return ()
        rows += found
    return [("read", tuple(sorted(rows)))]


def open_file(world: World, path: str) -> Optional[Tuple[str, ...]]:
    node = world.namespace.find(path)
    return node.content.rows if node is not None else None


def _delete_live() -> Step:
    def remove(world: World) -> Any:
        begin_overwrite(world)
        return world.namespace.delete(LIVE)

    return f"delete {LIVE}", remove


def overwrite_directory(row: str) -> Program:
    """Deletes the directory, then writes: Spark's static overwrite."""
    yield _delete_live()
    return _overwrote(row) if (yield make_file(f"{LIVE}/{row}.parquet", row)) else ()


def overwrite_dynamic(row: str) -> Program:
    """Deletes the directory, then renames its own into place: Spark's dynamic overwrite."""
    staging = f"{ROOT}/.spark-staging-1"
    yield make_file(f"{staging}/d/{row}.parquet", row)
    yield _delete_live()
    done = yield rename_into(f"{staging}/d", LIVE)
    yield delete(staging)
    return _overwrote(row) if done else ()


def drop(purge: bool) -> Program:
    def drop_partition(world: World) -> None:
        if _is_in_a_swap(world):
            tell_window(world, "drop")
        begin_overwrite(world)
        world.catalog.partitions[TABLE].pop(UNIT, None)
        world.facts.add(("dropped",))

    yield "drop the partition", drop_partition
    if purge:
        yield delete(LIVE)
    return ()


def move() -> Program:
    """`hdfs dfs -mv`, then ALTER TABLE … SET LOCATION. Who looks at live's old place in between finds nothing."""

    def set_location(world: World) -> None:
        partition = world.catalog.partitions[TABLE][UNIT]
        world.catalog.partitions[TABLE][UNIT] = replace(partition, location=MOVED)

    def move_directory(world: World) -> Any:
        world.facts.add(("moved",))
        return attempt(lambda space: space.namespace.rename(LIVE, MOVED))(world)

    if (yield f"rename {LIVE} {MOVED}", move_directory):
        yield "set the location", set_location
    return ()


def _is_in_a_swap(world: World) -> bool:
    """A run that is not in the log has set a copy of the unit aside."""
    finished = "".join(node.content for path, node in world.files_below(f"{ROOT}/.hivekeeper/log"))
    copies = [path for path, node in world.files_below(RUNS) if "/ready/u" in path or "/retired/u" in path]
    return any(path[len(RUNS) + 1 :].partition("/")[0].partition(".")[0] not in finished for path in copies)


def discovery() -> Program:
    """The metastore's own task: drops a partition without a directory, adds a directory without a partition."""
    there = yield ask_whether(LIVE)
    known = yield "ask for the partition", lambda world: UNIT in world.catalog.partitions[TABLE]
    if there and not known:
        yield "add the partition", lambda world: world.catalog.add_partition(TABLE, a_partition(UNIT, LIVE))
    if known and not there:
        yield "drop the partition", _drop_undiscovered
    return ()


def _drop_undiscovered(world: World) -> None:
    if world.exists(LIVE):
        tell_window(world, "discovery")
    world.catalog.partitions[TABLE].pop(UNIT, None)


def ticks(times: int) -> Program:
    """A coarse clock advances."""

    def tick(world: World) -> None:
        assert world.namespace.coarse_ms is not None
        world.namespace.coarse_ms += 10

    for _ in range(times):
        yield "the clock ticks", tick
    return ()


PROGRAMS: Dict[str, Callable[..., Program]] = {
    program.__name__: program
    for program in (
        append,
        append_slowly,
        append_hive,
        impala,
        append_to_old,
        committer_inside,
        committer_beside,
        overwrite_files,
        overwrite_with_old_names,
        overwrite_directory,
        overwrite_dynamic,
        replace_a_file,
        read,
        drop,
        move,
        discovery,
        ticks,
    )
}
TOUCH_METASTORE = frozenset(["drop", "move", "discovery"])
