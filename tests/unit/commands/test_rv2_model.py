"""Random histories of one unit with late files against a simple truth."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from hivekeeper import names
from hivekeeper.reasons import Code
from support.builders import a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.fakes.files import Killed
from support.world import World

SEEDS = range(int(os.environ.get("RV2_FROM", "0")), int(os.environ.get("RV2_TO", "60")))
HOUR = 3_600_000
STEPS = int(os.environ.get("RV2_STEPS", "12"))


class Model:
    def __init__(self, seed):
        self.random = random.Random(seed)
        world = World()
        world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
        self.exchange = self.random.choice(["directory", "directory", "mixed"])
        self.desk = Desk(world, backup_table=False, fewest_joined=2)
        self.world = world
        self.next = 0
        self.truth = set(self.rows())
        # late row -> where (place), and whether overwritten since the backup was made
        self.late = {}
        self.over_since = {}  # place -> overwritten since
        self.trail = []
        self.compact()

    def rows(self):
        return sorted(self.world.rows_below(self.desk.live("dt=1")).elements())

    def fresh(self, letter):
        self.next += 1
        return f"{letter}{self.next}"

    def note(self, *what):
        self.trail.append(what)

    def places(self):
        for effect in self.desk.log().standing:
            if not effect.inside:
                self.over_since.setdefault(effect.place, False)
        return [
            e for e in self.desk.log().standing if not e.inside and self.world.files.contents(names.join(self.desk.control.top, e.place))
        ]

    def compact(self):
        join = self.exchange == "mixed" and self.random.random() < 0.5
        self.desk.settings = replace(self.desk.settings, exchange="files" if join else "directory")
        result = self.desk.compact()
        self.note("compact", "files" if join else "dir", outcomes(result))
        self.absorb()

    def absorb(self):
        """Rows brought from backups with rollback."""
        self.places()

    def append(self):
        for _ in range(self.random.randint(1, 3)):
            row = self.fresh("a")
            fixed = self.random.random() < float(os.environ.get("RV2_FIXED", "0"))
            name = "000000_0.parquet" if fixed else f"{row}.parquet"
            if self.world.files.stat(f"{self.desk.live('dt=1')}/{name}"):
                name = f"{row}.parquet"
            self.world.add_file(f"{self.desk.live('dt=1')}/{name}", [row], 1000 + self.next)
            self.truth.add(row)
        self.world.wait(HOUR)
        self.note("append")

    def overwrite(self):
        for path in list(self.world.files.contents(self.desk.live("dt=1"))):
            self.world.files.writer.delete(path)
        self.truth = set()
        self.places()
        for place in self.over_since:
            self.over_since[place] = True
        self.note("overwrite")
        self.append()

    def add_late(self):
        places = self.places()
        if not places:
            return
        effect = self.random.choice(places)
        row = self.fresh("late")
        self.world.add_file(f"{self.desk.control.top}/{effect.place}/{row}.parquet", [row], 1000 + self.next)
        self.late[row] = effect.place
        self.note("late", effect.run, row)

    def rollback(self):
        run = self.random.choice([None, *self.desk.runs])
        # Rows of late files in backups that come back.
        before = set(self.rows())
        self.places()
        try:
            result = self.desk.rollback(run)
        except Exception as error:
            self.note("rollback", run, repr(error)[:200])
            return
        told = outcomes(result) if result.tables else {}
        self.note("rollback", run, told, [(u.name, u.why and u.why.what) for u in result.tables[0].units] if result.tables else "")
        now = set(self.rows())
        came = {row for row in now - before if row.startswith("late")}
        for row in came:
            self.late.pop(row, None)
            self.truth.add(row)
        self.absorb()

    def cleanup(self):
        self.world.wait(40 * 24 * HOUR)
        rules = EVERYTHING
        expected = {row for row, place in self.late.items() if not self.over_since[place]}
        aside = {row for row, place in self.late.items() if self.over_since[place]}
        possible = self.find_possible()
        result = self.desk.cleanup(rules)
        left = {effect.run for effect in self.desk.log().standing}
        lost = (possible & left) - self.find_possible()
        assert not lost, ("a rollback is not possible any more", lost, self.trail)
        kept = {}
        for b in result.tables[0].backups if result.tables else ():
            if any(w.code is Code.NEEDED_BY_ROLLBACK for _, w in b.kept_units):
                kept[b.backup.run] = True
        why = {w.code.code for b in result.tables[0].backups for _, w in b.kept_units} if result.tables else set()
        self.note("cleanup", result.code, why)
        now = set(self.rows())
        wrong = now & aside
        missing = expected - now
        if os.environ.get("RV2_NEEDED", "1") == "1":
            missing = {row for row in missing if self.late[row].split("/")[1] not in kept}
        stays = {b.backup.run for b in result.tables[0].backups if b.state.name in ("KEPT", "TRIMMED")} if result.tables else set()
        missing = {row for row in missing if self.late[row].split("/")[1] not in stays}
        for row in expected & now:
            self.late.pop(row)
            self.truth.add(row)
        assert not wrong, ("came back", wrong, self.trail)
        assert not (missing and os.environ.get("RV2_STRICT", "1") == "1"), ("stays aside", missing, self.trail)
        anywhere = self.world.rows_anywhere()
        for row in aside | missing:
            assert anywhere[row] == 1, ("lost", row, self.trail)

    def killed(self):
        """A command is killed anywhere, and recovered."""
        what = self.random.choice(["compact", "rollback", "cleanup"])
        join = self.exchange == "mixed" and self.random.random() < 0.5
        self.desk.settings = replace(self.desk.settings, exchange="files" if join else "directory")
        self.places()
        over = dict(self.over_since)
        before = set(self.rows())
        if what == "cleanup":
            self.world.wait(40 * 24 * HOUR)
        run = self.random.choice([None, *self.desk.runs])
        steps = self.random.randint(1, 60)
        self.world.files.die_after(steps)
        died = False
        try:
            {"compact": self.desk.compact, "rollback": lambda: self.desk.rollback(run), "cleanup": self.desk.cleanup}[what]()
        except Killed:
            died = True
        self.world.files.revive()
        self.world.files.expire_locks()
        self.desk.recover()
        self.world.wait(HOUR)
        self.note("killed", what, run, steps, died)
        for row in set(self.rows()) - before:
            if row in self.late:
                assert not (what == "cleanup" and over[self.late[row]]), ("came back", row, self.trail)
                self.late.pop(row)
                self.truth.add(row)
        self.places()

    def check(self):
        assert set(self.rows()) == self.truth, ("rows", sorted(set(self.rows()) ^ self.truth), self.trail)
        assert len(self.rows()) == len(self.truth), ("twice", self.trail)

    def find_possible(self):
        """The runs with a backup that a rollback would undo."""
        standing = sorted({effect.run for effect in self.desk.log().standing})
        told = {run: outcomes(self.desk.rollback(run, dry_run=True)) for run in standing}
        self.possible = told
        return {run for run, found in told.items() if set(found.values()) == {"planned"}}

    def pin(self):
        runs = sorted({e.run for e in self.desk.log().standing})
        if runs:
            run = self.random.choice(runs)
            pinned = run not in self.desk.log().pinned
            self.desk.pin(run, pinned)
            self.note("pin", run, pinned)

    def step(self):
        acts = ["compact", "compact", "append", "append", "late", "rollback", "rollback", "overwrite", "cleanup"]
        if os.environ.get("RV2_PIN"):
            acts.append("pin")
        if os.environ.get("RV2_KILL"):
            acts += ["killed", "killed"]
        act = self.random.choice(acts)
        {"late": self.add_late}.get(act, getattr(self, act, None))()
        self.check()


@pytest.mark.parametrize("seed", SEEDS)
def test_random(seed):
    model = Model(seed)
    for _ in range(STEPS):
        model.step()
    model.cleanup()
    model.check()
