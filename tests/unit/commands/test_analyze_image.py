"""analyze --fsimage on the fakes: the same figures as from listings, what belongs to no table, and what an image cannot tell."""

import gzip
from dataclasses import replace

import pytest

from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.commands.analyze_image import analyze_image
from hivekeeper.config.settings import Settings
from hivekeeper.errors import UsageError
from hivekeeper.model import Selection
from hivekeeper.plan.analysis import predict
from hivekeeper.reasons import Code
from hivekeeper.report import screen
from support.builders import MIB, a_partition, a_table, of_spark
from support.contexts import a_context
from support.desk import Desk
from support.fakes.files import FakeFiles
from support.images import directory_line, file_line, image
from support.world import World

SMALL, BLOCK = MIB, 128 * MIB
HOME = "hdfs://nn"
RUN = "20260101t020304z-0000"


@pytest.fixture
def world():
    world = World()
    units = {"dt=1": [SMALL] * 200, "dt=2": [BLOCK], "dt=3": [], "dt=4": [SMALL], "dt=5": [*range(1, 16)] * 4}
    world.add_table(a_table(["dt"]), units)
    world.add_table(a_table(name="big"), {"": [BLOCK, BLOCK, 5]})
    world.add_table(a_table(name="a_view", kind="VIRTUAL_VIEW", location=""), {})
    return world


def write_image(world, path, more=b""):
    """What oiv would write of the world."""
    entries = world.files.tree(f"{HOME}/")
    files = [(entry.path[len(HOME) :], entry.length) for entry in entries if not entry.is_dir]
    directories = [entry.path[len(HOME) :] for entry in entries if entry.is_dir]
    path.write_bytes(image(files, directories) + more)
    return str(path)


def run(world, path, **selected):
    return analyze_image(a_context(world.cluster, Selection(**selected), RUN), path, is_remote=False)


def figures(result):
    return {
        table.table: (table.observed.status, predict(table.observed), [(u.name, u.status, u.sizes, u.reason) for u in table.observed.units])
        for table in result.tables
    }


def test_the_figures_are_those_of_a_listing_and_no_directory_is_listed(world, tmp_path, monkeypatch):
    path = write_image(world, tmp_path / "image.tsv")
    listed = analyze(a_context(world.cluster, Selection(databases=("sales",)), RUN))
    for method in ("look", "look_hidden", "look_hidden_directories", "stat", "attributes", "ties"):
        monkeypatch.setattr(FakeFiles, method, None)
    seen = run(world, path, databases=("sales",))
    assert figures(seen) == figures(listed)
    assert seen.code is Exit.DONE
    assert world.files.steps == 0


def test_the_exchange_is_chosen_as_by_a_listing(world, tmp_path):
    settings = Settings(exchange="files", read_by_llap=False)
    path = write_image(world, tmp_path / "image.tsv")
    selection = Selection(tables=("sales.events",))
    listed = analyze(a_context(world.cluster, selection, RUN, settings=settings))
    seen = analyze_image(a_context(world.cluster, selection, RUN, settings=settings), path, is_remote=False)
    assert figures(seen) == figures(listed)
    assert [unit.choice.exchange for unit in seen.tables[0].observed.units if unit.choice] == ["files", "files"]


def test_a_unit_with_too_many_markers_is_refused_as_by_a_listing(world, tmp_path):
    for nth in range(101):
        world.add_file(f"{HOME}/warehouse/sales/events/dt=1/_done{nth}", [], 0)
    for nth in range(100):
        world.add_file(f"{HOME}/warehouse/sales/events/dt=5/_done{nth}", [], 0)
    path = write_image(world, tmp_path / "image.tsv")
    seen = run(world, path, tables=("sales.events",))
    assert figures(seen) == figures(analyze(a_context(world.cluster, Selection(tables=("sales.events",)), RUN)))
    assert [unit.reason.code for unit in seen.tables[0].observed.units if unit.reason] == [Code.TOO_MANY_HIDDEN]


def test_text_and_units_are_those_of_a_listing(world, tmp_path):
    path = write_image(world, tmp_path / "image.tsv")
    listed = screen.render(analyze(a_context(world.cluster, Selection(databases=("sales",)), RUN)), partitions=True)
    seen = screen.render(run(world, path, databases=("sales",)), partitions=True)
    assert seen.startswith(listed.partition("\n\nleft alone:")[0])
    assert "orphaned data: none, everything belongs to a table" in seen


def test_backups_are_counted_as_the_log_has_them(world, tmp_path):
    desk = Desk(world)
    desk.compact()
    listed = predict(desk.analyze().tables[0].observed)
    seen = predict(run(world, write_image(world, tmp_path / "image.tsv"), tables=("sales.events",)).tables[0].observed)
    assert listed.backup_objects == (2 * 200 + 1) + (2 * 60 + 1)
    assert seen == listed


def test_a_gzip_is_read_too_and_from_hdfs(world, tmp_path):
    plain = write_image(world, tmp_path / "image.tsv")
    packed = gzip.compress((tmp_path / "image.tsv").read_bytes())
    (tmp_path / "image.tsv.gz").write_bytes(packed)
    found = run(world, str(tmp_path / "image.tsv.gz"), databases=("sales",))
    assert figures(found) == figures(run(world, plain, databases=("sales",)))
    world.files.writer.add(f"{HOME}/tmp/image.gz", packed, len(packed))
    monkey = a_context(world.cluster, Selection(databases=("sales",)), RUN)
    assert figures(analyze_image(monkey, "hdfs:///tmp/image.gz", is_remote=True)) == figures(found)


def test_directories_without_a_table_are_summed_up_the_largest_first(world, tmp_path):
    dropped = [file_line(f"/warehouse/sales/dropped/dt={day}/a", 10 * MIB) for day in range(5)]
    evil = [directory_line("/warehouse/sales/\x1b[2Jgone"), file_line("/warehouse/sales/\x1b[2Jgone/x", 7)]
    path = write_image(world, tmp_path / "image.tsv", "".join([*dropped, *evil, file_line("/user/ann/x", 5)]).encode())
    result = run(world, path, tables=("sales.events",))
    assert [(one.path, one.files, one.total_bytes) for one in result.image.orphans] == [
        ("/warehouse/sales/dropped", 5, 50 * MIB),
        ("/warehouse/sales/\x1b[2Jgone", 1, 7),
        ("/user", 1, 5),
    ]
    assert result.image.orphaned.files == 7
    told = screen.render(result)
    assert "orphaned data: belongs to no table: 7 files, 50.0 MiB" in told
    assert "\\x1b[2Jgone" in told
    assert "\x1b" not in told
    assert "not selected, or refused: 1 table;" in told


def test_a_table_on_another_file_system_is_named_and_not_judged(world, tmp_path):
    world.catalog.add_table(a_table(name="far", location="hdfs://other/warehouse/sales/far"))
    world.catalog.add_table(a_table(name="bucket", location="s3a://b/far"))
    path = write_image(world, tmp_path / "image.tsv", file_line("/warehouse/sales/far/x", 5).encode())
    result = run(world, path, databases=("sales",))
    codes = {table.table: table.problem.code for table in result.tables if table.problem}
    assert codes == {"sales.far": Code.NOT_IN_IMAGE, "sales.bucket": Code.NOT_IN_IMAGE, "sales.a_view": Code.VIEW}
    assert [one.path for one in result.image.orphans] == ["/warehouse/sales/far"]


def test_what_spark_reads_elsewhere_or_by_a_pattern_belongs_to_its_table(world, tmp_path):
    world.catalog.add_table(of_spark(a_table(name="days"), f"{HOME}/data/days"))
    world.catalog.add_table(a_table(name="hours", location=f"{HOME}/data/hours/h*"))
    world.catalog.add_table(a_table(name="all", location=f"{HOME}/*/no-such"))
    lines = [file_line(f"/data/{place}", 5) for place in ("days/x", "hours/h1/x", "weeks/x")]
    result = run(world, write_image(world, tmp_path / "image.tsv", "".join(lines).encode()), tables=("sales.events",))
    assert [one.path for one in result.image.orphans] == ["/data/weeks"]


def test_partitions_elsewhere_belong_to_their_table(world, tmp_path):
    world.catalog.add_partition("sales.events", a_partition("dt=9", f"{HOME}/data/nine"))
    path = write_image(world, tmp_path / "image.tsv", file_line("/data/nine/x", 5).encode() + file_line("/data/ten/x", 6).encode())
    result = run(world, path, tables=("sales.events",), where="dt = '1'")
    assert [one.path for one in result.image.orphans] == ["/data/ten"]
    assert [unit.name for unit in result.tables[0].observed.units] == ["dt=1"]


def test_a_truncated_image_is_one_clear_error_and_nothing_is_shown(world, tmp_path):
    path = write_image(world, tmp_path / "image.tsv")
    whole = (tmp_path / "image.tsv").read_bytes()
    lines = whole.count(b"\n")
    (tmp_path / "image.tsv").write_bytes(whole[:-20])
    with pytest.raises(UsageError) as raised:
        run(world, path, databases=("sales",))
    reason = raised.value.reason
    assert (reason.code, reason.exit) == (Code.UNREADABLE_IMAGE, Exit.USAGE)
    assert f"image.tsv: line {lines} cannot be read: it has no line end" in reason.what
    assert "nothing was changed" in reason.state
    assert "make the text again" in reason.next


@pytest.mark.parametrize("path", ["nowhere.tsv", "."])
def test_a_file_that_cannot_be_opened_is_wrong_usage(world, path, tmp_path):
    with pytest.raises(UsageError, match="--fsimage"):
        run(world, str(tmp_path / path), databases=("sales",))
    with pytest.raises(UsageError, match="--fsimage hdfs:///x: no such file"):
        analyze_image(a_context(world.cluster, Selection(databases=("sales",)), RUN), "hdfs:///x", is_remote=True)


def test_a_cluster_of_mounts_is_refused(world, tmp_path, monkeypatch):
    path = write_image(world, tmp_path / "image.tsv")
    monkeypatch.setattr(FakeFiles, "qualify", lambda _self, path: f"viewfs://all{path}")
    with pytest.raises(UsageError, match="the default file system is viewfs://all"):
        run(world, path, databases=("sales",))


def test_settings_of_a_table_and_missing_directories_count(world, tmp_path):
    path = write_image(World(), tmp_path / "image.tsv")
    context = replace(
        a_context(world.cluster, Selection(tables=("sales.events", "sales.nowhere")), RUN), settings_for=lambda _: Settings(block_bytes=MIB)
    )
    result = analyze_image(context, path, is_remote=False)
    assert [table.problem.code if table.problem else None for table in result.tables] == [Code.NO_SUCH_TABLE, None]
    assert {unit.status.code for unit in result.tables[1].observed.units} == {"missing"}
