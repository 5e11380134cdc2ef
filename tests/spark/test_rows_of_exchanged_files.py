"""Spark reads no other files as rows than those that were listed, and no more rows than their footers had when these were judged."""

from __future__ import annotations

import threading

import pytest

from hivekeeper.cluster.rows import SparkRows
from hivekeeper.cluster.sql_rows import Place
from hivekeeper.plan.verify import Proof
from hivekeeper.ports import RowsError
from hivekeeper.steps.verify import ROWS, Prover
from support import decoder_bombs
from support.data_files import batch_of, form_of, listed, write_arrow

# After so long all jobs are ended: the rows of the other file would be read for hours.
MOST_S = 300
ENDLESS = decoder_bombs.ENDLESS["rows of one value"]()
LONGER, TOO_MANY = "live/a: it is longer than the \\d+ bytes that were listed", "more rows were read than the 3 that were counted"


@pytest.fixture(params=[LONGER, TOO_MANY], ids=["another length", "the same length"])
def exchanged(request, gateway, tmp_path):
    """Rows, and a directory with a file in whose place another one is put once our own reader has read it."""
    page = decoder_bombs.page(decoder_bombs.NUMBERS)
    sound = decoder_bombs.file_of(page)
    if request.param is TOO_MANY:
        sound = decoder_bombs.file_of(page + bytes(len(ENDLESS) - len(sound)), length=len(page))
        assert len(sound) == len(ENDLESS)
    place = tmp_path / "live" / "a"
    place.parent.mkdir()
    place.write_bytes(sound)

    class Exchanged(SparkRows):
        def _read(self, *asked, **how):
            found = super()._read(*asked, **how)
            place.unlink()
            place.write_bytes(ENDLESS)
            return found

    timer = threading.Timer(MOST_S, gateway.context.cancelAllJobs)
    timer.daemon = True
    timer.start()
    yield Exchanged(gateway), place.parent, request.param
    timer.cancel()


def test_rows_are_compared_only_of_what_was_judged(exchanged, tmp_path):
    rows, live, why = exchanged
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "a").write_bytes((live / "a").read_bytes())
    base, now = listed(tmp_path / "backup"), listed(live)
    with pytest.raises(RowsError, match=why):
        Prover(rows, "parquet", ROWS).compare({"dt=1": Proof(base, (), base, now)})


@pytest.mark.parametrize("units", [1, 2])
def test_only_what_was_judged_is_sorted(exchanged, tmp_path, units):
    rows, live, why = exchanged
    places = [live, tmp_path / "other"][:units]
    if units == 2:
        why = why.replace("the 3", "the 6")
        places[1].mkdir()
        (places[1] / "a").write_bytes((live / "a").read_bytes())
    with pytest.raises(RowsError, match=why):
        rows.write_stage(batch_of(rows, "parquet", tmp_path / "stage", places, sort_columns=("id",), codec="snappy"))


READS = {
    "all columns": lambda data: data.collect(),
    "no column": lambda data: data.count(),
    "one column and a pushed filter": lambda data: data.where("a >= 0").select("b").groupBy().max().collect(),
    "in one task": lambda data: data.coalesce(1).sortWithinPartitions("a").collect(),
    "a union": lambda data: data.union(data).collect(),
}


@pytest.mark.parametrize(
    ("format", "codegen", "vectorized"),
    [("parquet", True, True), ("parquet", True, False), ("parquet", False, True), ("orc", True, True), ("orc", False, False)],
)
def test_however_rows_are_read_a_task_fails_at_the_first_one_too_many(spark, gateway, tmp_path, format, codegen, vectorized):
    spark.range(0, 20, 1, 1).selectExpr("id a", "id * 2 b").write.format(format).save(f"file:{tmp_path}/u")
    rows, (file,) = SparkRows(gateway), listed(tmp_path / "u")
    form = form_of(rows, format, tmp_path / "u")
    session = rows.sql._session(format, form)
    session.conf.set("spark.sql.codegen.wholeStage", codegen)
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if codegen else "NO_CODEGEN")
    session.conf.set(f"spark.sql.{format}.enableVectorizedReader", vectorized)
    schema, places = rows.sql._schema(session, format, form, file), [Place(file.path, file.length)]
    allowed, one_less = (rows.sql._load(session, format, places, schema, most) for most in (20, 19))
    for name, read in READS.items():
        read(allowed)
        with pytest.raises(Exception, match="more rows were read than the 19"):
            pytest.fail(f"{name}: {read(one_less)}")


def test_each_task_counts_its_own_rows(gateway, tmp_path):
    """A task of many files has all of theirs, and none has more than all."""
    for name in "abc":
        write_arrow(tmp_path / "u" / name, {"a": list(range(10))})
    rows, files = SparkRows(gateway), listed(tmp_path / "u")
    form = form_of(rows, "parquet", tmp_path / "u")
    session = rows.sql._session("parquet", form)
    schema, places = rows.sql._schema(session, "parquet", form, files[0]), [Place(file.path, file.length) for file in files]
    assert rows.sql._load(session, "parquet", places, schema, 30).coalesce(1).count() == 30
    with pytest.raises(Exception, match="more rows were read than the 9"):
        rows.sql._load(session, "parquet", places, schema, 9).coalesce(1).count()


@pytest.mark.parametrize("what", ["a directory", "a longer file"])
def test_what_came_to_the_place_of_a_listed_file_is_not_read(gateway, tmp_path, what):
    for name in ("a", "b"):
        write_arrow(tmp_path / "u" / name, {"a": [1]})
    rows, place = SparkRows(gateway), tmp_path / "u" / "b"
    groups = rows.footers("parquet", {"u": listed(tmp_path / "u")})["u"].groups
    place.unlink()
    write_arrow(place / "f" if what == "a directory" else place, {"a": [1], "longer": [2]})
    with pytest.raises(RowsError, match="u/b.*(none of the files to be read|not the \\d+ that were listed)"):
        rows.differences("parquet", groups, groups, 10)
