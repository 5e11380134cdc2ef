"""A backup table, read by Spark's and by Hive's reader, while its files are in live directories and then in hidden ones."""

from __future__ import annotations

import pytest

from hivekeeper.cluster.metastore import HiveMetastore
from hivekeeper.names import ControlPaths
from hivekeeper.quoting import HIVE_NULL, literal

RUN = "20260101t020304z-0000"
MARKS = {"hivekeeper.backup-of": "d.events"}
VALUES = ("2026-01-01", "it's 5%/x", HIVE_NULL)
DEFINITIONS = {
    "hive": "CREATE EXTERNAL TABLE {name} (id INT, v STRING) {by} STORED AS PARQUET LOCATION '{at}'",
    "spark": "CREATE TABLE {name} (id INT, v STRING) USING parquet {by} LOCATION '{at}'",
    "spark managed": "CREATE TABLE {name} (id INT, v STRING) USING parquet {by}",
}


@pytest.fixture
def session(spark):
    found = spark.newSession()
    found.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    return found


@pytest.fixture
def database(spark, storage):
    name = f"b{abs(hash(storage.root)) % 10**8}"
    spark.sql(f"CREATE DATABASE {name} LOCATION '{storage.root}/{name}.db'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def metastore(gateway):
    return HiveMetastore(gateway)


class World:
    """A table of the database, its backup table, and the hidden directories that its units are swapped into."""

    def __init__(self, session, metastore, database, definition, partitioned, storage):
        self.session, self.metastore, self.storage, self.partitioned = session, metastore, storage, partitioned
        self.name, self.backup = f"{database}.events", f"{database}.__bkp_events_20260101_020304"
        by = "" if not partitioned else "PARTITIONED BY (dt STRING)" if definition.startswith("hive") else "PARTITIONED BY (dt)"
        statement = DEFINITIONS[definition].replace(" STRING) USING", f" STRING{', dt STRING' if partitioned else ''}) USING")
        session.sql(statement.format(name=self.name, by=by, at=f"{storage.root}/events"))
        self.insert("old")
        self.table = metastore.tables(database, ["events"])["events"]
        self.paths = ControlPaths.of(self.table.location, partitioned).run(RUN)

    def insert(self, text):
        """Two rows for each partition, in one job."""
        rows = []
        for number, value in enumerate(VALUES if self.partitioned else [""]):
            dt = f", {'NULL' if value == HIVE_NULL else literal(value)}" if self.partitioned else ""
            rows += [f"({number}, '{text}'{dt})", f"({number + 10}, '{text}'{dt})"]
        self.session.sql(f"INSERT INTO {self.name} VALUES {', '.join(rows)}")

    def lives(self):
        if not self.partitioned:
            return {"": self.table.location}
        return {partition.name: partition.location for partition in self.metastore.partitions(self.table)}

    def make_backup(self):
        shown = self.paths.state("backup_table")
        self.storage.make_directory(shown)
        self.metastore.make_backup_table(self.table, self.backup, shown, MARKS, list(self.lives()))
        self.metastore.point_backup_table(self.backup, MARKS, self.lives())

    def swap(self, text):
        """Retire every live directory as a swap does, then write different rows there."""
        places = {name: self.paths.unit("retired", number) for number, name in enumerate(self.lives(), start=1)}
        for name, live in self.lives().items():
            self.storage.rename(live, places[name])
            self.storage.make_directory(live)
        self.session.sql(f"REFRESH TABLE {self.name}")
        self.insert(text)
        return places

    def rows(self, name, where="true"):
        """Through Hive's reader Spark returns the text of the NULL partition for any table."""
        self.session.sql(f"REFRESH TABLE {name}")
        found = self.session.sql(f"SELECT * FROM {name} WHERE {where}").collect()
        return sorted((tuple(None if value == HIVE_NULL else value for value in row) for row in found), key=repr)

    def expected(self, text, values=VALUES):
        found = []
        for number, value in enumerate(VALUES if self.partitioned else [""]):
            if not self.partitioned or value in values:
                dt = (None if value == HIVE_NULL else value,) if self.partitioned else ()
                found += [(number, text, *dt), (number + 10, text, *dt)]
        return sorted(found, key=repr)


@pytest.fixture(params=["flat", "partitioned"])
def world(request, session, metastore, database, definition, storage):
    return World(session, metastore, database, definition, request.param == "partitioned", storage)


# Spark reads its own tables only with its own reader.
@pytest.mark.parametrize(
    ("definition", "reader"),
    [("hive", "spark"), ("hive", "hive"), ("spark", "spark"), pytest.param("spark managed", "spark", marks=pytest.mark.thorough)],
)
def test_a_backup_table_shows_the_files_before_and_after_a_swap_and_its_table_never_changes(world, reader, storage):
    world.session.conf.set("spark.sql.hive.convertMetastoreParquet", reader == "spark")
    world.make_backup()
    assert world.rows(world.backup) == world.rows(world.name) == world.expected("old")
    places = world.swap("new")
    assert world.rows(world.backup) == world.rows(world.name) == world.expected("new")

    world.metastore.point_backup_table(world.backup, MARKS, places)

    assert world.rows(world.backup) == world.expected("old")
    assert world.rows(world.name) == world.expected("new")
    if world.partitioned:
        assert world.rows(world.backup, f"dt = {literal(VALUES[1])}") == world.expected("old", VALUES[1:2])
        world.metastore.trim_backup_table(world.backup, MARKS, list(places)[:1])
        assert len(world.rows(world.backup)) == 4
    before = storage.tree(storage.root)
    assert world.metastore.drop_backup_table(world.backup, MARKS)
    assert storage.tree(storage.root) == before
    assert world.rows(world.name) == world.expected("new")


@pytest.mark.parametrize("definition", ["spark managed"])
def test_dropping_a_backup_table_by_sql_deletes_no_file(world, storage):
    world.make_backup()
    world.metastore.point_backup_table(world.backup, MARKS, world.swap("new"))
    before = storage.tree(storage.root)
    world.session.sql(f"DROP TABLE {world.backup} PURGE")
    assert storage.tree(storage.root) == before
    assert world.rows(world.name) == world.expected("new")


@pytest.mark.parametrize("definition", ["spark"])
def test_a_backup_table_whose_files_are_gone_can_be_dropped(world, storage):
    world.make_backup()
    places = world.swap("new")
    world.metastore.point_backup_table(world.backup, MARKS, places)
    storage.delete(world.paths.top)
    if world.partitioned:
        assert world.rows(world.backup) == []
    assert world.metastore.drop_backup_table(world.backup, MARKS)
    assert world.rows(world.name) == world.expected("new")
    assert not storage.exists(world.paths.top)
