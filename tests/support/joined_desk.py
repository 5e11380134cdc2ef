"""A desk on a table with two partitions whose small files are joined, and what disturbs that."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple

from hivekeeper import names
from support.builders import a_table
from support.built_once import built_once
from support.desk import Desk
from support.fakes.files import Killed
from support.fakes.rows import DataFile
from support.world import World

SMALL = [f"events/dt=1/{nth}" for nth in range(3)]
ALL = [*SMALL, "large"]

# Steps of a put-back before T leaves live.
BEFORE_TAKEN = [["copy_part"], ["dress", "/ready/"], [".back-"], ["rename_exact", "/taken/u00001.file"]]


@built_once
def a_desk(files: int = 3, **settings: Any) -> Desk:
    """`dt=1` has the rows of ALL, one in each file, or more small files; `dt=2` has four small ones."""
    world = World()
    world.add_table(a_table(["dt"], create_time=1_767_200_000), {"dt=1": [1000] * files, "dt=2": [1000] * 4})
    world.add_file("hdfs://nn/warehouse/sales/events/dt=1/large.parquet", ["large"], 100 << 20)
    world.files.namespace.advance(3_600_000)
    return Desk(world, **{"exchange": "files", "fewest_joined": 2, "backup_table": False, **settings})


def files_of(desk: Desk, unit: str = "dt=1") -> Dict[str, Tuple[int, Sequence[str]]]:
    """Length and rows by name of each file at live's place, also while a run goes by the ids of directories that are elsewhere."""
    namespace = desk.world.files.namespace
    found = namespace.walk(desk.world.files.qualify(desk.live(unit)))
    return {names.base(path): (node.length, node.content.rows) for path, node in found if not node.is_dir}


def rows_by_file(desk: Desk, unit: str = "dt=1") -> Dict[str, Sequence[str]]:
    return {name: of_file for name, (_, of_file) in files_of(desk, unit).items()}


def rows(desk: Desk, unit: str = "dt=1") -> List[str]:
    """What readers see, who leave out hidden files."""
    return sorted(row for name, of_file in rows_by_file(desk, unit).items() if not names.is_hidden(name) for row in of_file)


def rows_anywhere(desk: Desk) -> List[str]:
    return sorted(desk.world.rows_anywhere().elements())


def rows_aside(desk: Desk) -> Set[str]:
    """Those of all backups."""
    found: Set[str] = set()
    for effect in desk.log().standing:
        for content in desk.world.files.contents(names.join(desk.control.top, effect.place)).values():
            found.update(content.rows)
    return found


def joined_path(desk: Desk) -> str:
    (name,) = (name for name in files_of(desk) if name != "large.parquet")
    return names.join(desk.live("dt=1"), name)


def at(desk: Desk, words: Sequence[str], act: Callable[[], object]) -> None:
    """Act once, just before the first step of a run with all these words."""
    waiting = [act]

    def watch(what: str) -> None:
        if waiting and all(word in what for word in words):
            waiting.pop()()

    desk.world.files.before_step = watch


def replace_one(desk: Desk, name: str = "part-00001.parquet", row: str = "new") -> None:
    path = names.join(desk.live("dt=1"), name)
    desk.world.files.writer.delete(path)
    desk.world.files.writer.add(path, DataFile((row,)), 777)


def kill_in_put_back(desk: Desk, words: Sequence[str], command: Callable[[], object], name: str = "part-00001.parquet") -> None:
    """Replace a source just before a concat, and kill the command just before the next step with these words."""

    def replace_then_wait() -> None:
        replace_one(desk, name)
        at(desk, words, lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], replace_then_wait)
    with suppress(Killed):
        command()
        raise AssertionError(f"no step names {words}")
    survive(desk)


def joined_name(desk: Desk) -> str:
    """Of the newest run; that of a file beside it ends in `_.parquet`."""
    return max(name for name in files_of(desk) if names.may_be_joined(name) and not names.is_hidden(name) and "_." not in name)


def put_strange(desk: Desk, name: str) -> None:
    desk.world.files.writer.add(desk.live(f"dt=1/{name}"), DataFile(("strange",)), 128 << 20)


def delete_then_put(desk: Desk) -> None:
    name = joined_name(desk)
    desk.world.files.writer.delete(desk.live(f"dt=1/{name}"))
    put_strange(desk, name)


def kill_after_strange_concat(desk: Desk, put: Callable[[Desk], None], command: Callable[[], object]) -> None:
    """Somebody puts a file in the place of the joined one just before a concat, which joins that; the command is killed."""

    def put_then_wait() -> None:
        put(desk)
        at(desk, ["copy_part"], lambda: desk.world.files.die_after(0))

    at(desk, ["concat", "/dt=1/part"], put_then_wait)
    with suppress(Killed):
        command()
        raise AssertionError("nothing was copied out")
    survive(desk)


def survive(desk: Desk) -> None:
    """The outage of a killed command is over."""
    desk.world.files.before_step = None
    desk.world.files.revive()
    desk.world.files.expire_locks()


def create_again(desk: Desk) -> None:
    """Drop an external table and create it again over the same files."""
    table, partitions = desk.world.table(desk.table), desk.world.partitions(desk.table)
    desk.world.catalog.drop_table(desk.table)
    desk.world.catalog.add_table(replace(table, create_time=table.create_time + 99), partitions.values())


def manage(desk: Desk) -> None:
    """Hive moves and deletes the files of a managed table."""
    desk.world.catalog.put_table(replace(desk.world.table(desk.table), kind="MANAGED_TABLE"))


def rename_partition(desk: Desk) -> None:
    """ALTER TABLE … PARTITION (dt=1) RENAME TO PARTITION (dt=9): of a managed table, with its directory."""
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("dt=9"))
    desk.world.catalog.drop_partition(desk.table, "dt=1")
    desk.world.catalog.add_partition(desk.table, replace(partition, name="dt=9", values=("9",), location=desk.live("dt=9")))


def move_partition(desk: Desk) -> None:
    """`hdfs dfs -mv`, and ALTER TABLE … SET LOCATION."""
    partition = desk.world.partitions(desk.table)["dt=1"]
    desk.world.files.writer.rename_into(desk.live("dt=1"), desk.live("moved"))
    desk.world.catalog.put_partition(desk.table, replace(partition, location=desk.live("moved")))


def drop_partition(desk: Desk) -> None:
    """Of an external table: its files stay."""
    desk.world.catalog.drop_partition(desk.table, "dt=1")


def trash_files(desk: Desk, unit: str) -> None:
    """INSERT OVERWRITE of a table without `auto.purge`: the former files go to the trash, and still exist."""
    desk.world.files.writer.make_directory("hdfs://nn/trash")
    for path in desk.world.files.contents(desk.live(unit)):
        desk.world.files.writer.rename_into(path, f"hdfs://nn/trash/{unit}.{names.base(path)}")
    desk.world.add_file(f"{desk.live(unit)}/new.parquet", [f"new of {unit}"])
