"""What `--exclude` leaves out of a command on the catalogue: docs/catalogue.md says that it chooses tables as everywhere."""

from __future__ import annotations

import pytest

from hivekeeper.catalogue.columns import RUNS, TABLES
from hivekeeper.commands import analyze, catalogue
from hivekeeper.commands.catalogue import Request
from hivekeeper.model import Selection
from support.builders import a_table
from support.catalogues import ROOT, SETTINGS, rows_in
from support.contexts import QUIET, a_context
from support.world import World


@pytest.fixture
def world():
    world = World()
    world.files.writer.make_directory(ROOT)
    for name in ("events", "plain"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3})
    context = a_context(world.cluster, Selection(databases=("sales",)), "20260201t000000z-0000", QUIET)
    catalogue.record(world.cluster, SETTINGS, (), analyze.analyze(context))
    return world


@pytest.mark.parametrize("pattern", ["events", "ev*", "sales.events"])
def test_rows_of_a_table_that_is_left_out_are_not_deleted(world, pattern):
    context = a_context(world.cluster, Selection(databases=("sales",), exclude=(pattern,)), "20260301t000000z-0000")
    catalogue.run_catalogue(context, SETTINGS, (), Request("delete"))
    for component in (TABLES, RUNS):
        assert {name for (name,) in rows_in(world.cluster, component, ("table_name",))} == {"events"}
