"""A tenant may rename another one's directory, which is closed (700, of the user of the runs) and has files that are not (644), but
neither list it nor move a file out of it. A run moves single files, by their paths, after it has looked at the directory that they are in:
no file of the closed directory may get into the tenant's own one, where they can read it, and where it is missing for its owner.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hivekeeper import names
from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.late_directories import act_before_live_is_settled
from support.world import World

THEIRS = "hdfs://nn/warehouse/sales/salaries"
# As Hive calls its first file.
NAME = "000000_0"


def set_up(partitioned=True):
    world = World()
    world.add_table(a_table(["dt"] if partitioned else []), {"dt=1" if partitioned else "": [1000] * 3})
    world.add_table(a_table((), name="salaries"), {"": []})
    world.files.writer.add(f"{THEIRS}/{NAME}", DataFile(("secret",)), 10)
    node = world.files.namespace.directory(THEIRS)
    node.attributes = replace(node.attributes, mode=0o700)
    world.files.namespace.advance(3_600_000)
    return Desk(world, backup_table=False), node


def exchange_control(desk, words, seen):
    """Just before the step with these words the tenant puts another control directory in the place, in which the closed one
    has this path.
    """
    writer = desk.world.files.writer

    def act(what):
        if not seen and all(word in what for word in words):
            source = what.split()[1]
            seen.append(source)
            writer.rename_into(desk.control.top, f"{names.parent(desk.control.top)}/.aside")
            writer.make_directory(names.parent(names.parent(source)))
            writer.rename_into(THEIRS, names.parent(source))

    return act


def come_in_the_gap(desk, exchange):
    """What the tenant has prepared in `.moved` comes to live's place while that is away; then they go on."""
    live, moved = desk.live("dt=1"), f"{desk.live()}/.moved"

    def act(what):
        if f"/ready/u00001 {live}" in what and desk.world.files.namespace.find(moved):
            desk.world.files.writer.rename_into(moved, live)
        exchange(what)

    return act


def require_it_stays(desk, closed, act, command, seen, children=(NAME,)):
    """No file of the closed directory leaves it while these acts meet a command."""
    desk.world.files.before_step = act
    command()
    desk.world.files.before_step = None
    assert seen, "no such step"
    assert sorted(closed.children) == list(children)
    where = [path for path, node in desk.world.files.namespace.walk("hdfs://nn") if node is closed]
    holders = [path for path, one in desk.world.files.contents().items() if getattr(one, "rows", ()) == ("secret",)]
    assert all(path.startswith(f"{where[0]}/") for path in holders)


@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
def test_a_file_of_a_closed_directory_does_not_leave_it_in_the_place_of_a_late_one(partitioned):
    desk, closed = set_up(partitioned)
    live, seen = desk.live("dt=1") if partitioned else desk.live(), []
    exchange = exchange_control(desk, ["rename_exact", f"/retired/u00001/{NAME} {live}/"], seen)

    def act(what):
        if "/retired/u00001" in what and f"{live} " in what and desk.world.files.namespace.find(f"{live}/{NAME}") is None:
            desk.world.files.writer.add(f"{live}/{NAME}", DataFile(("forged",)), 7)
        exchange(what)

    require_it_stays(desk, closed, act, desk.compact, seen)


def test_a_file_of_a_closed_directory_does_not_leave_it_in_the_place_of_a_late_one_of_a_backup():
    desk, closed = set_up()
    desk.compact()
    place = next(path for path, _ in desk.world.files.namespace.walk(desk.live()) if path.endswith("/retired/u00001"))
    desk.world.files.writer.add(f"{place}/{NAME}", DataFile(("forged",)), 7)
    desk.world.files.namespace.advance(30 * 86_400_000)
    seen = []
    act = exchange_control(desk, ["rename_exact", f"/held/u00001/{NAME} "], seen)
    require_it_stays(desk, closed, act, desk.cleanup, seen)


def test_a_file_of_a_closed_directory_does_not_leave_it_in_the_place_of_one_that_is_merged():
    """What came to live's place in the gap is compared with live's rights before its files are moved."""
    desk, closed = set_up()
    seen = []
    desk.world.files.writer.add(f"{desk.live()}/.moved/{NAME}", DataFile(("forged",)), 7)
    desk.world.files.namespace.advance(3_600_000)
    act = come_in_the_gap(desk, exchange_control(desk, ["rename_exact", f"/recreated/u00001.0/{NAME} "], seen))
    require_it_stays(desk, closed, act, desk.compact, seen)


def test_a_partition_of_a_closed_table_does_not_leave_it_in_the_place_of_a_directory_that_is_merged():
    """Its name can be known, and it is as open as its own mode says, once it is not below the closed directory any more."""
    desk, closed = set_up()
    desk.world.files.writer.add(f"{THEIRS}/year=2026/{NAME}", DataFile(("secret",)), 10)
    seen = []
    for inner in ("a", "year=2026"):
        desk.world.files.writer.add(f"{desk.live()}/.moved/{inner}/{NAME}", DataFile(("forged",)), 7)
    desk.world.files.namespace.advance(3_600_000)
    act = come_in_the_gap(desk, exchange_control(desk, ["rename_exact", "/recreated/u00001.0/year=2026 "], seen))
    require_it_stays(desk, closed, act, desk.compact, seen, [NAME, "year=2026"])


def test_a_file_of_a_closed_directory_does_not_leave_it_in_the_place_of_one_that_is_moved_up(monkeypatch):
    """A committer's directory in live is compared with live's rights, and looked into by its id, before its files are moved."""
    desk, closed = set_up()
    inner, seen = f"{desk.live('dt=1')}/job", []
    act_before_live_is_settled(desk, lambda desk: desk.world.files.writer.add(f"{inner}/{NAME}", DataFile(("forged",)), 7), monkeypatch)

    def act(what):
        if not seen and what.startswith(f"rename_exact {inner}/{NAME} "):
            seen.append(what)
            desk.world.files.writer.rename_into(inner, f"{desk.live()}/.aside")
            desk.world.files.writer.rename_into(THEIRS, inner)

    require_it_stays(desk, closed, act, desk.compact, seen)
