"""What one tenant's definitions may cost the others on the same metastore."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from contract.test_metastore import COLUMNS, let_fail, real  # noqa: F401
from hivekeeper import names
from hivekeeper.cluster import metastore
from hivekeeper.plan import own_place
from hivekeeper.reasons import Code

pytestmark = pytest.mark.jvm

# Spark looks for the property `path` of a SerDe in any case.
PATHS = ["".join(letters) for letters in itertools.product("pP", "aA", "tT", "hH")]


def test_a_table_that_fails_each_request_for_it_fails_no_other_whatever_its_name_is(real):  # noqa: F811
    """As with gigabytes of properties. Nobody can foresee by which name the metastore is asked whether it answers at all."""
    victim, mine = real.add_table("events"), real.add_table("hivekeeper_no_table")
    let_fail(real, lambda _, wanted: mine.name in list(wanted))
    assert real.metastore.locations_below([victim.location])[victim.location] == (victim.full_name,)
    assert real.metastore.tables(real.database, [victim.name, mine.name])[victim.name].columns == COLUMNS


def test_a_database_that_is_closed_while_those_behind_it_are_asked_for_fails_no_other(real):  # noqa: F811
    victim, bad, asked = real.add_table("events"), real.add_database(), []
    real.metastore.make_database("a_tenants", "")

    def fails(name):
        asked.append(name)
        return name == bad or asked.count("a_tenants") > 1

    let_fail(real, fails, "getDatabase")
    homes = real.metastore.database_locations()
    assert (homes[real.database], bad in homes) == (real.root, False)
    assert real.metastore.locations_below([victim.location])[victim.location] == (victim.full_name,)


@pytest.mark.parametrize("uptime_s", [100.0, 100_000.0], ids=["machine-just-started", "long-running"])
def test_directories_of_databases_that_could_not_be_read_once_are_read_again(real, monkeypatch, uptime_s):  # noqa: F811
    """Else a table in the directory of another database, which is refused, is compacted: that nothing is known of databases is no error."""
    failing = [True]
    tenants = replace(real.add_table("events"), database="tenants")
    monkeypatch.setattr(metastore, "time", SimpleNamespace(monotonic=lambda: uptime_s))
    let_fail(real, lambda _: failing[0], "getDatabase")
    with pytest.raises(Exception, match="too large for this metastore"):
        real.metastore.database_locations()
    failing[0] = False
    refused = own_place.refuse_home(tenants, own_place.Homes(real.metastore.database_locations()))
    assert refused is not None
    assert refused.code is Code.SHARED_DIRECTORY


def test_of_many_long_paths_of_one_table_some_are_kept(real):  # noqa: F811
    """All commands keep those of all tables, for as long as they run."""
    table = real.add_table("mine")
    for number, key in enumerate(PATHS):
        real.set_serde_path(table, f"/{number:02d}{'/y' * names.MOST_PATH}"[: names.MOST_PATH], key=key)
    kept = real.metastore.table_places()[table.full_name]
    assert len(kept) > 1
    assert sum(map(len, kept)) <= 2 * names.MOST_PATH
