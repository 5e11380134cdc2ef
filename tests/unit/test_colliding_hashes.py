"""Numbers that somebody chose so that all tuples with them have one hash: what is looked up is compared with few others, not with all."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from hivekeeper.cluster.files import _snapshot
from hivekeeper.commands import verify as verify_command
from hivekeeper.model import Attributes, ColumnFacts, Content, Digest, FileInfo, UnitFooters
from hivekeeper.plan import retention, settled, sizing
from hivekeeper.plan.analysis import Status
from hivekeeper.plan.chain import Chain
from hivekeeper.plan.compaction import Candidate, Shared
from hivekeeper.plan.rollback import Stack
from hivekeeper.plan.verify import Proof
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.history import Effect, History, LoggedRun
from hivekeeper.runlog.joins import Inside
from hivekeeper.runlog.manifests import ManifestFile, key_of
from hivekeeper.runlog.run_files import BACKUP, COMPACT_SWAP, PlannedUnit, RunPlan
from hivekeeper.steps import backup_tables, late_directories
from hivekeeper.steps.verify import Prover
from support.builders import FORM, ROOT, a_group, a_snapshot, a_table, a_unit
from support.colliding import Counted, choose, solve

# Each compared with all others, they would take 45,000.
FILES, MOST_COMPARED = 300, 3000
# Of a FileInfo, behind its time.
REST = (False, 7, 0, 1, "", "", 0, False, 0, "")
RUN, JOINED_NAME = "20260101t020300z-0000", "a-20260101t020300z-0000-1{:08d}.parquet"


@pytest.fixture(autouse=True)
def few_are_compared():
    Counted.compared = 0
    yield
    assert Counted.compared <= MOST_COMPARED


def files_of_one_time(directory=f"{ROOT}/dt=1"):
    chosen = choose(FILES, lambda path: ((path, 100), REST), f"{directory}/f{{:08d}}.parquet")
    return tuple(FileInfo(path, 100, time, *REST) for path, time in chosen)


def recorded(known=True):
    """With times that give all of them one hash, with their ids or, where these are not known, without."""

    def id_of(name):
        return int(name[1:9]) + 1

    chosen = choose(FILES, lambda name: ((name, 100), (id_of(name),) if known else ()))
    return tuple(ManifestFile(name, 100, time, id_of(name) if known else 0) for name, time in chosen)


def with_lengths(name="f{:08d}.parquet", file_id=0):
    """With lengths that give all tuples of name and length one hash."""
    return tuple(ManifestFile(each, length, 1, file_id) for each, length in choose(FILES, lambda name: ((name,), ()), name))


def listed(files, directory=f"{ROOT}/dt=1"):
    """As entries with names that count."""
    return tuple(
        FileInfo(f"{directory}/{file.name}", file.length, file.mtime_ms, False, file.file_id or nth, inner=file.name)
        for nth, file in enumerate(files, start=1)
    )


def an_effect(run, before, after=(), number=1, version=0, inside=None):
    about = run, number, version, COMPACT_SWAP, 5, "sales.events@0", "dt=1", "dt=1", f"runs/{run}/retired/u{number:05d}"
    return Effect(*about, tuple(before), tuple(after), inside=inside)


def a_history(*effects):
    def a_run(version, effect):
        return LoggedRun(version, effect.run, effect.run, COMPACT_SWAP, 5, "", "", "", None, True, "", effect.table_id, {}, (), (effect,))

    return History(tuple(a_run(version, effect) for version, effect in enumerate(effects)))


def a_chain(effects, live, manifest=()):
    return Chain(manifest, effects, live, dict.fromkeys((one.place for one in effects), a_snapshot()), str, {})


@pytest.mark.parametrize(
    ("files", "numbers"),
    [
        (files_of_one_time(), tuple),
        (recorded(), tuple),
        (recorded(known=False), lambda file: tuple(file[:3])),
        (with_lengths(), lambda file: tuple(file[:2])),
    ],
)
def test_the_tuples_have_one_hash_and_their_keys_have_not(files, numbers):
    assert len({hash(numbers(file)) for file in files}) == 1
    assert len({hash(file) for file in files}) == FILES
    assert len({hash(key_of(*file[:3])) for file in files}) == FILES


def test_the_files_of_each_unit_are_verified():
    class Rows:
        def warm_up(self):
            pass

        def footers(self, _, sets):
            return {key: UnitFooters((a_group({}),)) for key in sets}

        def digests(self, _, sets):
            return {key: Content(Digest(1, 0, 0)) for key in sets}

    why = Reason(Code.OVERWRITTEN_SINCE, "it was changed")
    proofs = {str(file.path): Proof(None, (), (file,), broken=why) for file in files_of_one_time()}
    assert len(Prover(Rows(), "parquet", "digest").compare(proofs)) == FILES


def test_a_record_describes_the_files_of_a_plan():
    plan = RunPlan(RUN, BACKUP, a_table(["dt"]), (PlannedUnit(1, a_unit("dt=1"), recorded()),))
    assert backup_tables.describes(plan, replace(plan, units=(replace(plan.units[0], manifest=plan.units[0].manifest[::-1]),)))


def test_moved_files_are_followed_by_their_ids():
    files = recorded()
    chain = a_chain([an_effect("A", ())], a_snapshot(*listed(files)))
    assert len(chain.find_carried(files, 0)) == FILES


def test_moved_files_are_followed_by_their_names_and_times():
    files = recorded(known=False)
    chain = a_chain([an_effect("A", (), files), an_effect("B", ())], a_snapshot(*listed(files)))
    assert len(chain.find_carried(files, 1)) == FILES


def test_a_run_found_the_files_that_are_expected():
    files = with_lengths()
    chain = a_chain([an_effect("A", files, files)], a_snapshot(), manifest=files)
    assert chain.why_replaced(files, 0) is None


def test_the_backup_that_has_a_joined_file_is_found():
    files = with_lengths(JOINED_NAME, file_id=7)
    inside = Inside(files[0].name, files[0].length, 7, 1, 0, "")
    join = an_effect("A", (), files[:1], inside=inside)
    assert retention.find_holders(a_history(join, an_effect("B", files, version=1)))


def test_the_files_of_the_last_run_are_known():
    files = with_lengths()
    unit = SimpleNamespace(status=Status.COMPACT, files=listed(files)[:-1])
    assert settled._judge(unit, an_effect("A", (), files)) is unit


def test_copies_in_a_late_directory_are_known():
    files = with_lengths()
    assert late_directories.are_copies(listed(files), files)


def test_the_runs_since_a_record_are_known():
    files = with_lengths()
    effect = an_effect("A", files, version=1)
    unit = PlannedUnit(1, a_unit("dt=1"), files)
    assert verify_command._find_since(unit, 0, a_history(effect), Stack([effect])) == (effect,)


def refuse_to_hash(_):
    raise AssertionError("it is looked up")


def test_sizes_of_blocks_are_not_looked_up_and_the_same_is_one_object():
    """An int's hash is the int: they can be chosen so that in a dict of them each lies behind many others."""
    size = type("Size", (int,), {"__hash__": refuse_to_hash})
    about = {"length": 1, "mtime_ms": 1, "is_dir": False, "file_id": 7, "replication": 1, "owner": "a", "group": "a", "mode": 0o644}
    entries = [{**about, "name": name, "block_size": size(2**40)} for name in "ab"]
    found = _snapshot({"exists": True, "asked": ROOT, "path": ROOT, "file_id": 1, "mtime_ms": 1, "mode": 0, "entries": entries}, ROOT)
    assert found.entries[0].block_size is found.entries[1].block_size


def test_lengths_are_counted_without_looking_them_up():
    length = type("Length", (int,), {"__hash__": refuse_to_hash})
    counted = sizing.count(map(length, [7, 2**60, 7]))
    assert (counted, sizing.merge([counted, [(7, 1)]])) == ([(7, 2), (2**60, 1)], [(7, 3), (2**60, 1)])
    assert (sizing.measure_counts(counted, 1).files, sizing.find_small(counted, 8, 1)) == (3, [(7, 2)])


def test_facts_of_columns_are_not_shared():
    unhashable = type("Facts", (ColumnFacts,), {"__hash__": refuse_to_hash})
    facts = unhashable(1, solve((1,), (hash(None), hash(None))))
    unit = Candidate(SimpleNamespace(), UnitFooters((a_group({"f": 1}, FORM, {"id": facts}),)), Attributes("", "", 0, 0))
    shared = Shared().of(unit)
    assert shared.footers.groups[0].columns["id"] is facts
