"""Which runs meet which writers, and how often a run may be killed, lose its lease, or have a rename fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Dict, Tuple

from hivekeeper import names
from interleavings.explorer import CONTROL, FULL, Budget, Explorer, Runner, State, Writer
from interleavings.promises import judge_end, judge_now
from interleavings.runners import BLOCK_BYTES
from interleavings.world import World, add_file
from interleavings.writers import BIG, LIVE, ORIGINAL, PRIVATE, ROOT, RUNS, UNIT
from support.builders import a_partition, a_table
from support.fakes.rows import DataFile

COMPACT, RECOVER, ROLLBACK, CLEANUP = "compact", "recover", "rollback", "cleanup"
COMPACT_SHORTLY, ROLLBACK_SHORTLY = "compact, short memory", "rollback, short memory"
COMPACT_JOINED = "compact, joined"


@dataclass(frozen=True)
class Configuration:
    """`swapped`: an earlier run has compacted the unit; `joined`: by joining its small files. `discarded`: long ago, a cleanup has
    discarded its backup. `appended`: files have come since, so that there is something to compact.
    `coarse`: the clock advances only when told to. `full`: a quota around live has room for the files that leave it, and not for new ones.
    """

    jobs: Tuple[str, ...]
    writers: Tuple[Tuple[Any, ...], ...] = ()
    kills: int = 2
    lapses: int = 0
    errors: int = 0
    switches: int = 3
    swapped: bool = False
    joined: bool = False
    discarded: bool = False
    appended: Tuple[str, ...] = ()
    coarse: bool = False
    full: bool = False

    def limited(self, most: int) -> Configuration:
        """The same with fewer kills, and fewer recoveries to kill in turn."""
        jobs = list(self.jobs)
        while jobs.count(RECOVER) > max(most, 1) and self.kills > most:
            jobs.remove(RECOVER)
        kills, lapses, errors = (min(most, times) for times in (self.kills, self.lapses, self.errors))
        return replace(self, jobs=tuple(jobs), kills=kills, lapses=lapses, errors=errors, switches=min(self.switches, most + 1))


def one(*words: Any) -> Tuple[Tuple[Any, ...], ...]:
    return (words,)


APPEND, APPEND_SLOWLY, BESIDE = one("append", "a1"), one("append_slowly", "a1"), one("committer_beside", "a1")
REPLACE_FILES, REPLACE_DIRECTORY = one("overwrite_files", "o1"), one("overwrite_directory", "o1")
ONCE, TWICE, THRICE = (COMPACT, RECOVER), (COMPACT, RECOVER, RECOVER), (COMPACT, RECOVER, RECOVER, RECOVER)
BACK = (ROLLBACK, RECOVER)

JOIN_ONCE, JOIN_TWICE, JOIN_THRICE = ((COMPACT_JOINED, *[RECOVER] * recoveries) for recoveries in (1, 2, 3))
AFTER_JOIN = Configuration((), swapped=True, joined=True)
# The exchange by concat, beside the same writers.
JOINED: Dict[str, Configuration] = {
    "alone": Configuration((*JOIN_THRICE, RECOVER), kills=4),
    "append": Configuration(JOIN_TWICE, (*APPEND, ("append", "a2"))),
    "append slowly": Configuration(JOIN_TWICE, APPEND_SLOWLY),
    "append to old": Configuration(JOIN_TWICE, one("append_to_old", "b1")),
    "append as Hive": Configuration(JOIN_TWICE, one("append_hive", "h1")),
    "committer inside": Configuration(JOIN_ONCE, one("committer_inside"), kills=1),
    "committer beside": Configuration(JOIN_TWICE, BESIDE),
    "overwrite files": Configuration(JOIN_TWICE, REPLACE_FILES),
    "overwrite with old names": Configuration(JOIN_TWICE, one("overwrite_with_old_names", "o")),
    "replace a file": Configuration(JOIN_ONCE, one("replace_a_file", "r1"), kills=1),
    "replace a file, append": Configuration(JOIN_ONCE, one("replace_a_file", "r1") + APPEND, kills=1),
    "replace a file, overwrite directory": Configuration(JOIN_ONCE, one("replace_a_file", "r1") + REPLACE_DIRECTORY, kills=1),
    "replace a file, pause": Configuration((COMPACT_JOINED, RECOVER), one("replace_a_file", "r1"), kills=0, lapses=1),
    "overwrite directory": Configuration(JOIN_TWICE, REPLACE_DIRECTORY),
    "overwrite dynamic": Configuration(JOIN_TWICE, one("overwrite_dynamic", "o1")),
    "append, overwrite files": Configuration(JOIN_ONCE, APPEND + REPLACE_FILES, kills=1),
    "replace a file, move": Configuration(JOIN_ONCE, one("replace_a_file", "r1") + one("move"), kills=1),
    "move": Configuration(JOIN_TWICE, one("move")),
    "drop": Configuration(JOIN_ONCE, one("drop", False)),
    "drop, purge": Configuration(JOIN_ONCE, one("drop", True)),
    "discovery": Configuration(JOIN_ONCE, one("discovery") + APPEND, kills=1),
    "errors": Configuration(JOIN_ONCE, APPEND, kills=1, errors=2),
    "pause": Configuration((COMPACT_JOINED, COMPACT_JOINED), APPEND, kills=0, lapses=1),
    "pause, recover": Configuration((COMPACT_JOINED, RECOVER), kills=0, lapses=1),
    "pause, kill": Configuration((COMPACT_JOINED, RECOVER, COMPACT_JOINED), kills=1, lapses=1),
    "pause twice": Configuration((COMPACT_JOINED, RECOVER, COMPACT_JOINED), kills=0, lapses=2),
    "pause, overwrite directory": Configuration((COMPACT_JOINED, COMPACT_JOINED), REPLACE_DIRECTORY, kills=0, lapses=1),
    "readers": Configuration(JOIN_ONCE, (("read", "up"), ("read", "down")), kills=1),
    "rollback": replace(AFTER_JOIN, jobs=(*BACK, RECOVER), writers=APPEND),
    "rollback, overwrite files": replace(AFTER_JOIN, jobs=BACK, writers=REPLACE_FILES, kills=1),
    "rollback, overwrite directory": replace(AFTER_JOIN, jobs=BACK, writers=REPLACE_DIRECTORY, kills=1),
    "rollback, move": replace(AFTER_JOIN, jobs=BACK, writers=one("move"), kills=1),
    "rollback, errors": replace(AFTER_JOIN, jobs=BACK, kills=1, errors=2),
    "rollback, readers": replace(AFTER_JOIN, jobs=BACK, writers=(("read", "up"), ("read", "down")), kills=1),
    "rollback, rollback": replace(AFTER_JOIN, jobs=(ROLLBACK, ROLLBACK), writers=APPEND, kills=1),
    "rollback, pause, kill": replace(AFTER_JOIN, jobs=(*BACK, COMPACT_JOINED), kills=1, lapses=1, appended=("n1", "n2")),
    "cleanup": replace(AFTER_JOIN, jobs=(CLEANUP, RECOVER), writers=APPEND),
    "cleanup, overwrite files": replace(AFTER_JOIN, jobs=(CLEANUP, RECOVER), writers=REPLACE_FILES, kills=1),
    "cleanup, move": replace(AFTER_JOIN, jobs=(CLEANUP, RECOVER), writers=one("move"), kills=1),
    "cleanup, errors": replace(AFTER_JOIN, jobs=(CLEANUP, RECOVER), kills=1, errors=2),
    "cleanup, pause, rollback": replace(AFTER_JOIN, jobs=(CLEANUP, ROLLBACK), writers=APPEND, kills=1, lapses=1),
}

CONFIGURATIONS: Dict[str, Configuration] = {
    "alone": Configuration((*THRICE, RECOVER), kills=4),
    "append": Configuration(THRICE, APPEND, kills=3),
    "append twice": Configuration(TWICE, (*APPEND, ("append", "a2"))),
    "append slowly": Configuration(THRICE, APPEND_SLOWLY, kills=3),
    "append as Hive": Configuration(THRICE, one("append_hive", "h1"), kills=3),
    "impala": Configuration(ONCE, one("impala", "i1"), kills=1),
    "rollback, impala": Configuration(BACK, one("impala", "i1"), kills=1, swapped=True),
    "committer inside": Configuration(ONCE, one("committer_inside"), kills=1),
    "committer beside": Configuration(THRICE, BESIDE, kills=3),
    "committer beside, append": Configuration(ONCE, (*BESIDE, ("append", "a2")), kills=1),
    "overwrite files": Configuration(THRICE, REPLACE_FILES, kills=3),
    "overwrite directory": Configuration(THRICE, REPLACE_DIRECTORY, kills=3),
    "overwrite dynamic": Configuration(THRICE, one("overwrite_dynamic", "o1"), kills=3),
    "append, overwrite files": Configuration(ONCE, APPEND + REPLACE_FILES, kills=1),
    "append, overwrite directory": Configuration(ONCE, APPEND + REPLACE_DIRECTORY, kills=1),
    "drop": Configuration(ONCE, one("drop", False)),
    "drop, purge": Configuration(ONCE, one("drop", True)),
    "discovery": Configuration(ONCE, one("discovery") + APPEND, kills=1),
    "coarse clock": Configuration((COMPACT,), REPLACE_FILES + one("ticks", 2), kills=0, coarse=True),
    "errors": Configuration(ONCE, APPEND, kills=1, errors=2),
    "full": Configuration(THRICE, APPEND, kills=3, full=True),
    "full, overwrite directory": Configuration(TWICE, REPLACE_DIRECTORY, full=True),
    "full, errors": Configuration(ONCE, APPEND, kills=1, errors=2, full=True),
    "full, pause, recover": Configuration((COMPACT, RECOVER), kills=0, lapses=1, full=True),
    "pause, recover": Configuration((COMPACT, RECOVER), kills=0, lapses=1),
    "pause": Configuration((COMPACT, COMPACT), APPEND, kills=0, lapses=1),
    "pause, overwrite directory": Configuration((COMPACT, COMPACT), REPLACE_DIRECTORY, kills=0, lapses=1),
    "pause, kill": Configuration((COMPACT, RECOVER, COMPACT), kills=1, lapses=1),
    "pause, kill, append": Configuration((COMPACT, RECOVER, RECOVER), APPEND, kills=1, lapses=1),
    "pause twice": Configuration((COMPACT, RECOVER, COMPACT), kills=0, lapses=2),
    "rollback": Configuration((*BACK, RECOVER, RECOVER), APPEND, kills=3, swapped=True),
    "rollback, append slowly": Configuration(BACK, APPEND_SLOWLY, kills=1, swapped=True),
    "rollback, overwrite files": Configuration(BACK, REPLACE_FILES, kills=1, swapped=True),
    "rollback, overwrite directory": Configuration(BACK, REPLACE_DIRECTORY, kills=1, swapped=True),
    "rollback, committer beside": Configuration(BACK, BESIDE, kills=1, swapped=True),
    "rollback, errors": Configuration(BACK, APPEND, kills=1, errors=2, swapped=True),
    "rollback, full": Configuration(BACK, APPEND, kills=1, swapped=True, full=True),
    "rollback, pause, compact": Configuration((ROLLBACK, COMPACT), APPEND, kills=0, lapses=1, swapped=True),
    "rollback, pause, kill": Configuration((*BACK, COMPACT), kills=1, lapses=1, swapped=True),
    "compact, rollback, rollback": Configuration((COMPACT, ROLLBACK, ROLLBACK), APPEND, kills=1, swapped=True),
    "rollback, rollback": Configuration((ROLLBACK, ROLLBACK), APPEND, kills=1, swapped=True),
    "checkpoints": Configuration((COMPACT_SHORTLY, ROLLBACK_SHORTLY, RECOVER), kills=1, swapped=True, appended=("n1",)),
    "checkpoints, pause": Configuration((ROLLBACK_SHORTLY, COMPACT_SHORTLY), kills=0, lapses=1, swapped=True),
    "checkpoints, expiry": Configuration(
        (COMPACT_SHORTLY, ROLLBACK_SHORTLY, RECOVER), kills=1, swapped=True, discarded=True, appended=("n1",)
    ),
    **{f"joined: {name}": configuration for name, configuration in JOINED.items()},
    "cleanup, open stream": Configuration((CLEANUP, RECOVER), one("append_to_old", "b1"), kills=1, swapped=True),
    "cleanup, errors": Configuration((CLEANUP, RECOVER), kills=1, errors=2, swapped=True),
    "cleanup, pause, rollback": Configuration((CLEANUP, ROLLBACK), APPEND, kills=1, lapses=1, swapped=True),
}


def begin(configuration: Configuration) -> Tuple[Explorer, State]:
    """An explorer, and the state before anybody has acted."""
    explorer, world = Explorer(judge_now, judge_end), World()
    discovered = any(writer[0] == "discovery" for writer in configuration.writers)
    parameters = {"discover.partitions": "true"} if discovered else {}
    world.catalog.add_table(a_table(["dt"], parameters=parameters), [a_partition(UNIT, LIVE)])
    world.catalog.events.clear()
    add_file(world, f"{PRIVATE}/h1", DataFile(("h1",)))
    for row in ORIGINAL:
        add_file(world, f"{LIVE}/{row}.parquet", DataFile((row,)))
    if COMPACT_JOINED in configuration.jobs or configuration.joined:
        world.namespace.create(f"{LIVE}/big.parquet", DataFile((BIG,)), BLOCK_BYTES)
    if any(writer[0] == "impala" for writer in configuration.writers):
        world.namespace.make_directory(names.join(LIVE, names.IMPALA_STAGING))
    frozen = explorer.freezer.freeze(world)
    if configuration.swapped:
        world = explorer.freezer.thaw(explorer.run_alone(frozen, COMPACT_JOINED if configuration.joined else COMPACT, 80))
        assert not world.exists(f"{LIVE}/s1.parquet"), "the unit is not compacted"
        world.namespace.made.clear()
        if any(writer[0] == "append_to_old" for writer in configuration.writers):
            (old,) = (node for path, node in world.files_below(RUNS) if path.endswith("/s1.parquet"))
            old.is_open = True
    if configuration.discarded:
        world = discard_long_ago(explorer, world)
    for row in configuration.appended:
        add_file(world, f"{LIVE}/{row}.parquet", DataFile((row,)))
        world.facts.add(("told", row))
    if configuration.full:
        world.facts.add(FULL)
    if configuration.coarse:
        world.namespace.coarse_ms = 0
        for _, node in world.namespace.walk(ROOT):
            node.mtime_ms = 0
    runners = tuple(Runner(number, job) for number, job in enumerate(configuration.jobs, start=1))
    writers = tuple(
        Writer(number, name, arguments) for number, (name, *rest) in enumerate(configuration.writers) for arguments in [tuple(rest)]
    )
    budget = Budget(configuration.kills, configuration.lapses, configuration.errors, configuration.switches)
    return explorer, explorer.first(explorer.freezer.freeze(world), (*runners, *writers), budget)


def discard_long_ago(explorer: Explorer, world: World) -> World:
    """The backup is discarded, and all entries of the log are older than any to come."""
    world = explorer.freezer.thaw(explorer.run_alone(explorer.freezer.freeze(world), CLEANUP, 81))
    for _, node in world.files_below(CONTROL.log):
        node.mtime_ms = 0
    assert not any(path.endswith(f"{ORIGINAL[0]}.parquet") for path, _ in world.files_below(RUNS)), "the backup is not discarded"
    world.namespace.made.clear()
    return world


__all__ = ["CONFIGURATIONS", "CONTROL", "Configuration", "begin"]
