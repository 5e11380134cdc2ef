"""Random lives of two tables: one of a tenant who attacks, and one of somebody else, closed to that tenant.

An operator runs commands on both; some are killed, and some of their calls fail or lose their answer. Between any two calls, reads too, the
tenant does whatever HDFS lets them do, mostly to their own table: they rename, exchange, copy and delete directories, records and files,
give them names that others have, and rename and move partitions and tables in the metastore. In other lives they may also rename what lies
in the database's directory, and bring it back after some calls; or there is no attacker, but an administrator exchanges the directories of
the tables by mistake, and back.

What is asked at the end is about the other table only: its rows are there, each once, nobody else can read them, and none of the tenant's
are among them. A tenant may lose their own. After a mistake of an administrator every row of both tables is somewhere, and an exit code has
told where one is not shown.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Set, Tuple

from hypothesis import given
from hypothesis import strategies as st

from hivekeeper import names
from hivekeeper.codes import Exit
from hivekeeper.names import BACKUP_OF
from support.builders import a_partition
from support.desk import Desk
from support.disorder import act_some, choose, rows_inside, rows_of_all_parts
from support.fakes.namespace import Node
from support.fakes.rows import DataFile
from support.hdfs_user import PASS, READ, STICKY, WRITE, HdfsUser
from support.hive_statements import Hive, HiveError
from support.lives import HOME, MINE, TENANT, THEIRS, UNITS, Lives

CONTROL, TAKEN_OVER = ".hivekeeper", re.compile(r"\.t\d+(?=/|$)")
OF_TABLE = ["dt=1", "dt=2", "dt=9", "late.parquet", ".aside", ".mine"]
OF_RECORDS = [".hivekeeper", "runs", "log", "_lock", "plan.json", "retired", "ready", "u00001"]
WORDS = [*OF_TABLE, *OF_RECORDS]
TABLE_NAMES = ["sales.events", "sales.events_old", "sales.orders_old", "sales.__bkp_orders_20250101_020000"]


def is_lasting(path: str, node: Node) -> bool:
    """Not a lock that is held for milliseconds (docs/evidence/exchanged-paths.md), what a run has left for the next command to tidy up,
    and empty directories, such as Hive makes for the locations of a backup table.
    """
    if "/runs" in path:
        return isinstance(node.content, DataFile)
    is_theirs = names.base(path) not in ("_lock", CONTROL) and node.attributes.owner != TENANT
    return is_theirs and bool(node.children or not node.is_dir)


def is_of(full_name: str, row: str) -> bool:
    return row.startswith((f"{full_name} ", f"{full_name.partition('.')[2]}/"))


class TenantLives(Lives):
    """The tenant may write to their own table, and make directories beside the others, which they may not rename (the sticky bit)."""

    home_mode = 0o777 | STICKY

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.user = HdfsUser(self.space, TENANT, [TENANT])
        self.hive = Hive(self.world)
        self.acts = [
            *[self.rename_own] * 3,
            *[self.exchange_own] * 3,
            self.exchange_control,
            self.exchange_control,
            self.take_their_name,
            self.append_theirs,
            self.copy_records,
            self.delete_own,
            self.put_file,
            self.make_directory,
            self.write_over,
            self.give_mode,
            self.rename_partition,
            self.rename_table,
            self.set_location,
            self.drop_partition,
            self.add_partition,
        ]

    def command(self, desk: Desk) -> None:
        before = self.picture(self.theirs)
        super().command(desk)
        if desk is self.mine:
            after = self.picture(self.theirs)
            changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
            assert not changed, f"a command on the tenant's table has changed this of the other one's: {changed}"
        act_some(self.random, 2, self.try_one)
        self.require_closed()

    def disturb(self) -> None:
        act_some(self.random, 2, self.try_one)

    def try_one(self) -> object:
        return self.random.choice(self.acts)()

    # ---- acts, which return whether they could be done

    def table(self) -> Any:
        return self.world.table(self.mine.table)

    def places(self) -> List[str]:
        """What the tenant finds below and beside their own table, the upper levels more often."""
        tops = [path for path in self.beside() if self.user.sees(path)]
        below = [path for top in tops for path, _ in self.user.paths_below(top)]
        return [path for path in [*tops, *below] for _ in range(3 if path.count("/") < 8 else 1)]

    def beside(self) -> List[str]:
        """The names in the directory of the database that are the tenant's, or are like that."""
        theirs = self.tops(self.theirs)
        return [path for path in (names.join(HOME, name) for name in sorted(self.space.directory(HOME).children)) if path not in theirs]

    def some_place(self) -> str:
        return str(choose(self.random, self.places()))

    def some_directory(self) -> str:
        found = [path for path in self.places() if self.is_directory(path)]
        return str(choose(self.random, found))

    def free_name(self) -> str:
        """In a directory of the tenant, or beside the tables; perhaps one that the other table has, or had just now."""
        if self.random.random() < 0.2:
            top = self.random.choice(sorted(self.tops(self.theirs)))
            known = [top, names.join(top, self.random.choice(WORDS)), names.join(HOME, ".aside"), self.mine.control.top, self.mine.live()]
            return str(self.random.choice(known))
        at = self.random.choice([self.mine.live(), self.mine.live(), self.some_directory() or HOME])
        files = [names.base(path) for path in self.places()]
        return names.join(at, self.random.choice([*WORDS, *files[:40], ".x"]))

    def rename_own(self) -> object:
        source, target = self.some_place(), self.free_name()
        return source and self.user.rename(source, target)

    def exchange_own(self) -> object:
        one, other = self.some_place(), self.some_place()
        return one and other and one != other and self.user.exchange(one, other)

    def exchange_control(self) -> object:
        """With whatever else may be one: one that was there before, or a copy."""
        others = [path for path in self.places() if names.base(path).startswith((".mine", ".aside", ".hivekeeper"))]
        other = choose(self.random, [path for path in others if path != self.mine.control.top])
        if not other or self.random.random() < 0.3:
            return self.user.rename(self.mine.control.top, names.join(self.mine.live(), f".aside{self.random.randint(0, 3)}"))
        if self.space.find(self.mine.control.top) is None:
            return self.user.rename(other, self.mine.control.top)
        return self.user.exchange(self.mine.control.top, other)

    def take_their_name(self) -> object:
        """While the other table's directory is away, as in the gap of a swap."""
        missing = [top for top in sorted(self.tops(self.theirs)) if self.space.find(top) is None]
        if not missing:
            return False
        source = self.some_place() if self.random.random() < 0.5 else ""
        if source:
            return self.user.rename(source, missing[0])
        return self.user.make_directory(missing[0], self.random.choice([0o755, 0o777, 0o700]))

    def append_theirs(self) -> object:
        """The other table has a writer, too, while a command works on it."""
        unit = self.random.choice(UNITS[self.world.table(THEIRS).partitioned])
        return self.chance and self.at_work is self.theirs and self.append(self.theirs, unit)

    def copy_records(self) -> object:
        """Of both tables, as if anybody could read all of them."""
        source = self.random.choice([self.mine.control.top, self.mine.control.top, self.theirs.control.top])
        target = names.join(self.mine.live(), f".mine{self.random.randint(0, 3)}")
        return self.user.copy(source, target)

    def delete_own(self) -> object:
        path = self.some_place()
        return path and path not in (self.mine.live(), HOME) and self.user.delete(path)

    def new_content(self) -> DataFile:
        self.count += 1
        return DataFile((f"{MINE} forged {self.count}",))

    def put_file(self) -> object:
        return self.user.add(self.free_name(), self.new_content(), self.random.choice([555, 1000, 128 << 20]))

    def make_directory(self) -> object:
        path = self.free_name()
        made = self.user.make_directory(path, self.random.choice([0o755, 0o777, 0o700]))
        if made and path != self.theirs.live() and self.random.random() < 0.5:
            self.user.add(names.join(path, "part-00000.parquet"), self.new_content(), 1000)
        return made

    def write_over(self) -> object:
        """Of a file of their own: truncated and written again, under the same id."""
        path = self.some_place()
        node = self.space.find(path) if path else None
        if node is None or node.is_dir or node.joined or not isinstance(node.content, DataFile) or not self.user.may(node, WRITE):
            return False
        node.content, node.length = self.new_content(), 999
        node.appends += 1
        self.space.touch(node)
        return True

    def give_mode(self) -> object:
        path = self.some_place()
        return path and path != self.mine.live() and self.user.give_mode(path, self.random.choice([0o755, 0o777, 0o700, 0o770]))

    # ---- statements that the tenant has Hive run

    def statement(self, calls: Any) -> bool:
        try:
            list(calls)
        except HiveError:
            return False
        return True

    def some_partition(self) -> str:
        return str(choose(self.random, sorted(self.world.partitions(self.mine.table))))

    def rename_partition(self) -> object:
        old, new = self.some_partition(), self.random.choice(["dt=1", "dt=2", "dt=9"])
        return old and self.statement(self.hive.rename_partition(self.mine.table, old, new))

    def rename_table(self) -> object:
        """Hive moves the directory of a managed table if that is where such a table is."""
        new, stays = self.random.choice(TABLE_NAMES), names.parent(self.mine.live()) != HOME
        if stays and self.hive.moves_files(self.table()) or not self.statement(self.hive.rename_table(self.mine.table, new)):
            return False
        self.mine.table = new
        return True

    def set_location(self) -> object:
        """Inside the table's own directory, or back."""
        place, partition = self.some_directory(), self.some_partition()
        if not place or not place.startswith(f"{HOME}/events"):
            return False
        if not self.table().partitioned or self.random.random() < 0.2:
            place = self.random.choice([place, f"{HOME}/events", f"{HOME}/events"])
            return self.statement(self.hive.set_location(self.mine.table, "", place))
        place = self.random.choice([place, names.join(self.mine.live(), partition)]) if partition else ""
        return place and self.statement(self.hive.set_location(self.mine.table, partition, place))

    def drop_partition(self) -> object:
        partition = self.some_partition()
        if not partition:
            return False
        self.world.catalog.drop_partition(self.mine.table, partition)
        return True

    def add_partition(self) -> object:
        name = self.random.choice(["dt=1", "dt=2", "dt=9"])
        if not self.table().partitioned or name in self.world.partitions(self.mine.table):
            return False
        place = self.random.choice([names.join(self.mine.live(), name), self.some_directory()])
        if not place.startswith(f"{self.mine.live()}/"):
            return False
        self.world.catalog.add_partition(self.mine.table, a_partition(name, place, self.table().storage))
        return True

    # ---- what is there

    def is_directory(self, path: str) -> bool:
        node = self.space.find(path)
        return node is not None and node.is_dir

    def tops(self, desk: Desk) -> Set[str]:
        return {desk.live(), desk.control.top}

    def picture(self, desk: Desk) -> Dict[str, object]:
        """All that lasts of a table, but for the time of its directories."""
        found: Dict[str, object] = {}
        for top in sorted(self.tops(desk)):
            for path, node in [(top, self.space.find(top)), *self.space.walk(top)]:
                # A control directory that a command on the tenant's table makes in one of the other's that is in the place of its own.
                inner = names.join(top, CONTROL)
                is_stray = inner != desk.control.top and f"{path}/".startswith(f"{inner}/")
                if node is not None and is_lasting(path, node) and not is_stray:
                    found[TAKEN_OVER.sub("", path)] = (node.id, node.attributes, node.content, node.length)
        catalog = self.world.catalog
        for name, table in catalog.tables.items():
            if desk.table in (name, table.parameters.get(BACKUP_OF)):
                found[name] = (table, dict(catalog.partitions[name]))
        return found

    def rows_below(self, *tops: str) -> Set[str]:
        return {row for top in tops for _, node in self.space.walk(top) for row in rows_inside(node.content)}

    # ---- what must hold

    def settle(self) -> None:
        super().settle()
        self.require_rows()
        codes = [self.run(self.theirs, act) for act in (Desk.recover, Desk.verify, Desk.cleanup)]
        assert set(codes) <= {Exit.DONE, Exit.DIFFERENT}, self.codes
        self.require_rows()

    def require_rows(self) -> None:
        assert self.world.rows_of(THEIRS) == self.expected
        # A file that was put in its place while it was away lies aside in its control directory.
        inside = self.rows_below(self.theirs.live()) - self.rows_below(self.theirs.control.runs)
        assert not [row for row in inside if not is_of(THEIRS, row)], "rows of the tenant are in the other table"
        assert not [row for row in self.rows_below(*self.tops(self.mine)) if is_of(THEIRS, row)], "the tenant has rows of the other table"
        self.require_closed()

    def has_theirs(self, content: object) -> bool:
        return any(is_of(THEIRS, row) for row in rows_inside(content))

    def require_closed(self) -> None:
        for path, node in self.space.walk("hdfs://nn"):
            if not node.is_dir and self.has_theirs(node.content):
                assert not self.user.may_read(path), f"the tenant may read {path}"
                around = self.space.directory(names.parent(path))
                assert not any(self.user.may(around, right) for right in (READ, WRITE, PASS)) or not self.user.may_pass(path), path


class MoverLives(TenantLives):
    """The tenant may also rename what lies in the directory of the database, though not read it: each act is undone some calls later."""

    home_mode = 0o777
    # Hive moves the partitions of a managed table with the rights of Hive, whatever lies at their paths.
    kinds = ("EXTERNAL_TABLE",)

    def __init__(self, seed: int) -> None:
        self.lent: Dict[str, Node] = {}
        super().__init__(seed)
        self.acts += [self.borrow] * 8

    def command(self, desk: Desk) -> None:
        """What keeps its id during the command can be told from what is put in its place."""
        table = self.world.table(THEIRS)
        paths = self.tops(self.theirs) if desk is self.mine else {self.theirs.live() if table.partitioned else self.theirs.control.top}
        self.lent = {path: node for path, node in ((path, self.space.find(path)) for path in sorted(paths)) if node is not None}
        super().command(desk)

    def end(self) -> None:
        self.give_back()
        self.lent = {}
        super().end()

    def disturb(self) -> None:
        if self.random.random() < 0.5:
            self.give_back()
        super().disturb()

    def borrow(self) -> object:
        """To the place of one's own directory, of another place of one's own, or away; something of one's own, or nothing, in its place."""
        paths = [path for path, node in self.lent.items() if self.chance and self.space.find(path) is node]
        if not paths:
            return False
        path, mine = self.random.choice(paths), [self.mine.live(), self.mine.control.top, self.some_place()]
        other, is_exchanged = (self.random.choice(mine), True) if self.random.random() < 0.6 else (self.free_name(), False)
        if not other:
            return False
        return self.user.exchange(path, other) if is_exchanged else self.user.rename(path, other)

    def give_back(self) -> None:
        """The control directory that is there by now stays, if rows are in it alone: they are lost with it (docs/permissions.md)."""
        for path, node in sorted(self.lent.items()):
            there = self.space.find(path)
            if there is node:
                continue
            where = next((at for at, found in self.space.walk("hdfs://nn") if found is node), "")
            assert where, f"{path} is nowhere"
            self.count += 1
            # Where the tenant may not rename it.
            aside = names.join(names.parent(HOME), f".aside-{self.count}")
            is_inside = f"{where}/".startswith(f"{path}/")
            is_needed = self.at_work is self.theirs and not is_inside and self.has_rows_alone(path)
            if there is not None and path == self.theirs.control.top and is_needed:
                self.space.rename(where, aside)
                self.lent[path] = there
                continue
            if there is not None:
                self.space.rename(path, aside)
                where = where.replace(path, aside, 1) if is_inside else where
            self.space.rename(where, path)

    def has_rows_alone(self, top: str) -> bool:
        """Whether rows of the other table are below it and nowhere else: a killed run on the tenant's own table may have a copy of some."""
        outside = {
            row for path, node in self.space.walk("hdfs://nn") if not f"{path}/".startswith(f"{top}/") for row in rows_inside(node.content)
        }
        return any(is_of(THEIRS, row) for row in self.rows_below(top) - outside)


class AccidentLives(Lives):
    """No attacker: an administrator exchanges the directories of the tables, or their control directories, and changes them back."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.exchanged: List[Tuple[str, str]] = []

    def write(self, desk: Desk) -> None:
        if not self.exchanged:
            super().write(desk)

    def begin(self, ends: str) -> None:
        super().begin(ends)
        self.chance /= 2

    def disturb(self) -> None:
        if self.exchanged:
            self.change_back()
        else:
            pair = self.random.choice([(self.mine.live(), self.theirs.live()), (self.mine.control.top, self.theirs.control.top)])
            if all(self.space.find(path) is not None for path in pair):
                self.exchange(*pair)
                self.exchanged.append(pair)

    def exchange(self, one: str, other: str) -> None:
        """What is there: the directory of an unpartitioned table may be away."""
        between = names.join(HOME, ".between")
        for source, target in [(one, between), (other, one), (between, other)]:
            if self.space.find(source) is not None:
                self.space.rename(source, target)

    def change_back(self) -> None:
        while self.exchanged:
            self.exchange(*self.exchanged.pop())

    def settle(self) -> None:
        """What a killed run has left is settled before its directory is changed back: it does not know that it was another one."""
        self.end()
        for desk in (self.mine, self.theirs):
            self.run(desk, Desk.recover)
        self.change_back()
        super().settle()
        self.require_rows()

    def require_rows(self) -> None:
        assert self.known <= rows_of_all_parts(self.world), "rows are lost"
        hidden = set(self.known)
        told: List[object] = [code for _, _, code, why in self.codes if why != "killed" and code is not Exit.DONE]
        # A command that is killed after its entry has told it in its log, and no later one does (docs/runbook.md).
        logged = [unit for desk in (self.mine, self.theirs) for run in desk.log().runs for unit in run.units]
        told += [unit for unit in logged if unit.outcome.is_astray]
        for desk in (self.mine, self.theirs):
            shown = self.world.rows_of(desk.table)
            strange = [row for row in shown if not is_of(desk.table, row)]
            assert told or not strange, "rows of one table are shown in the other, and nobody was told"
            assert not [row for row, times in shown.items() if times > 1], "rows are doubled"
            hidden -= set(shown)
        assert told or not hidden, "rows are hidden, and nobody was told"


@given(st.integers(0, 2**32))
def test_who_may_write_to_one_table_costs_another_one_nothing(seed: int) -> None:
    TenantLives(seed).live_on()


@given(st.integers(0, 2**32))
def test_nor_does_who_may_rename_beside_the_tables_as_long_as_all_is_brought_back(seed: int) -> None:
    MoverLives(seed).live_on()


@given(st.integers(0, 2**32))
def test_no_row_is_gone_where_an_administrator_exchanges_directories_by_mistake(seed: int) -> None:
    AccidentLives(seed).live_on()
