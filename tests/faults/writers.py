"""Other programs that write to a table while we work on it, each split into steps between which anything may happen.

Committers are Hadoop's own; the others make the calls of Spark, Hive and streaming jobs through their own client.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Dict, List

from py4j.protocol import Py4JJavaError

from hivekeeper import names
from support.real_world import RealWorld, parquet_of

Step = Callable[[], Any]


@dataclass
class Place:
    """A unit that is written to, and the prefix for the writer's rows and files."""

    world: RealWorld
    unit: str
    tag: str

    @property
    def live(self) -> str:
        return self.world.live(self.unit)

    @property
    def file(self) -> str:
        return f"{self.tag}.parquet"

    def done(self) -> None:
        """The writer has been told that its row is committed."""
        self.world.written[self.tag] += 1


def append(place: Place) -> List[Step]:
    return [lambda: place.world.add_file(f"{place.live}/{place.file}", [place.tag])]


def keep_open(place: Place, pieces: int = 2) -> List[Step]:
    """A file that flushes a piece at each step; the last step closes it."""
    content, opened = parquet_of([place.tag]), []
    size = len(content) // pieces + 1

    def write(nth: int) -> None:
        if nth == 0:
            opened.append(place.world.storage.open(f"{place.live}/{place.file}"))
        opened[0].write(bytearray(content[nth * size : (nth + 1) * size]))
        opened[0].hflush()
        if nth == pieces - 1:
            opened[0].close()
            place.done()

    return [lambda nth=nth: write(nth) for nth in range(pieces)]


def stream(place: Place) -> List[Step]:
    return keep_open(place, 4)


def commit_in_unit(place: Place) -> List[Step]:
    return _commit(place, place.live, "")


def commit_in_root(place: Place) -> List[Step]:
    """A job over several partitions: its `_temporary` is in the table's root."""
    return _commit(place, place.world.live(""), place.unit)


def _commit(place: Place, directory: str, below: str) -> List[Step]:
    """FileOutputCommitter version 1 with two tasks. A job that fails stops there."""
    jvm = place.world.spark._jvm
    mapreduce = jvm.org.apache.hadoop.mapreduce
    conf = jvm.org.apache.hadoop.conf.Configuration(place.world.spark.sparkContext._jsc.hadoopConfiguration())
    conf.setInt("mapreduce.fileoutputcommitter.algorithm.version", 1)
    output = jvm.org.apache.hadoop.fs.Path(directory)
    rows = [f"{place.tag}-{task}" for task in (0, 1)]

    def context(task: int) -> Any:
        attempt = mapreduce.TaskAttemptID(place.tag.replace("_", ""), 1, mapreduce.TaskType.MAP, task, 0)
        return mapreduce.task.TaskAttemptContextImpl(conf, attempt)

    def committer(task: int) -> Any:
        return mapreduce.lib.output.FileOutputCommitter(output, context(task))

    def commit_task(task: int) -> None:
        ours = committer(task)
        ours.setupTask(context(task))
        name = names.join(ours.getWorkPath().toString(), below, f"{rows[task]}.parquet")
        place.world.storage.write(name, parquet_of([rows[task]]))
        ours.commitTask(context(task))

    def commit_job() -> None:
        committer(0).commitJob(context(0))
        place.world.written.update(rows)

    def attempt(step: Step) -> Step:
        def act() -> None:
            try:
                if rows[0] not in place.world.unpromised:
                    step()
            except Py4JJavaError:
                place.world.unpromised.update(rows)

        return act

    steps = [lambda: committer(0).setupJob(context(0)), lambda: commit_task(0), lambda: commit_task(1), commit_job]
    return [attempt(step) for step in steps]


def rename_directory(place: Place) -> List[Step]:
    """How Hive moves a query's output: the whole directory if the target is absent when it looks, else file by file."""
    storage, private = place.world.storage, f"{place.world.place}/private/{place.tag}"
    absent: List[bool] = []

    def look() -> None:
        storage.write(f"{private}/{place.file}", parquet_of([place.tag]))
        absent.append(not storage.exists(place.live))

    def move() -> None:
        source, target = (private, place.live) if absent[0] else (f"{private}/{place.file}", f"{place.live}/{place.file}")
        storage.make_directory(names.parent(target))
        storage.rename_as_committers_do(source, target)
        place.done()

    return [look, move]


APPENDERS: Dict[str, Callable[[Place], List[Step]]] = {
    "appends a file": append,
    "keeps a file open": keep_open,
    "streams": stream,
    "commits in the unit": commit_in_unit,
    "commits in the root": commit_in_root,
    "renames a directory": rename_directory,
}


# Two jobs of this kind in one directory damage each other's output, with or without us.
COMMITTERS = ("commits in the unit", "commits in the root")


def overwrite_files(place: Place) -> List[Step]:
    """INSERT OVERWRITE of a static partition: its files are deleted, the directory stays."""
    return [lambda: _replace(place, lambda: [place.world.storage.delete(file.location) for file in _listed(place)])]


def overwrite_directory(place: Place) -> List[Step]:
    return [lambda: _replace(place, lambda: place.world.storage.delete(place.live))]


def overwrite_dynamically(place: Place) -> List[Step]:
    """Spark's dynamic overwrite: written aside in the root, then a rename replaces the directory."""
    storage = place.world.storage
    aside = f"{place.world.live('')}/.spark-staging-{place.tag}/{place.unit}"

    def replace() -> None:
        _forget_if_seen(place, lambda: storage.delete(place.live))
        storage.make_directory(names.parent(place.live))
        storage.rename_as_committers_do(aside, place.live)
        with suppress(AssertionError):
            storage.delete(names.parent(aside))
        place.done()

    return [lambda: storage.write(f"{aside}/{place.file}", parquet_of([place.tag])), replace]


def _listed(place: Place) -> List[Any]:
    return [found for found in place.world.storage.listing(place.live) if not found.is_dir]


def _replace(place: Place, delete: Step) -> None:
    _forget_if_seen(place, delete)
    place.world.add_file(f"{place.live}/{place.file}", [place.tag])


def _forget_if_seen(place: Place, delete: Step) -> None:
    """An overwriter replaces what it finds; in the gap it finds nothing."""
    if place.world.storage.exists(place.live):
        delete()
        for row in [row for row in place.world.written if row.startswith(f"events/{place.unit}/")]:
            del place.world.written[row]


OVERWRITERS: Dict[str, Callable[[Place], List[Step]]] = {
    "replaces the files": overwrite_files,
    "replaces the directory": overwrite_directory,
    "replaces it dynamically": overwrite_dynamically,
}
