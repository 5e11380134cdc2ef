"""Random histories of one unit against a simple truth: what comes late to a backup is in live after the next cleanup if nobody has
overwritten the unit since that backup was made, and never otherwise; a cleanup takes no rollback away from a backup that it leaves.

Many more: HKTEST_HISTORIES=3000.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from hivekeeper import names
from support.builders import a_table
from support.desk import EVERYTHING, Desk, outcomes
from support.fakes.files import Killed
from support.world import World

HISTORIES = int(os.environ.get("HKTEST_HISTORIES", "24"))
STEPS = 16
HOUR_MS = 3_600_000


class Model:
    """`truth` has the rows that live must hold; `late` those that wait in backups, each with the place; `overwritten` the places of backups
    from before an overwrite. `trail` is what happened, for whoever looks into a failure.
    """

    def __init__(self, seed, joins, kills):
        self.random = random.Random(seed)
        self.world = World()
        self.world.add_table(a_table(["dt"], create_time=5), {"dt=1": [1000] * 3})
        self.joins, self.kills = joins, kills
        self.desk = Desk(self.world, backup_table=False, fewest_joined=2)
        self.live = self.desk.live("dt=1")
        self.written = 0
        self.truth, self.late, self.overwritten, self.trail = set(self.rows()), {}, set(), []
        self.compact()

    def rows(self):
        return sorted(self.world.rows_below(self.live).elements())

    def write(self, directory, name=""):
        self.written += 1
        row = f"{name or 'late'}{self.written}"
        # Hive gives the first file of each INSERT the same name.
        path = f"{directory}/000000_0" if name and not self.world.files.stat(f"{directory}/000000_0") else f"{directory}/{row}.parquet"
        self.world.add_file(path, [row], 1000 + self.written)
        return row

    def backups(self):
        return [effect for effect in self.desk.log().standing if not effect.inside]

    def choose_exchange(self):
        joins = self.joins and self.random.random() < 0.5
        self.desk.settings = replace(self.desk.settings, exchange="files" if joins else "directory")

    def compact(self):
        self.choose_exchange()
        self.trail.append(("compact", self.desk.settings.exchange, outcomes(self.desk.compact())))

    def append(self):
        self.truth.update(self.write(self.live, "row") for _ in range(self.random.randint(1, 3)))
        self.world.wait(HOUR_MS)
        self.trail.append("append")

    def overwrite(self):
        for path in list(self.world.files.contents(self.live)):
            self.world.files.writer.delete(path)
        self.truth = set()
        self.overwritten.update(effect.place for effect in self.backups())
        self.trail.append("overwrite")
        self.append()

    def come_late(self):
        there = [one for one in self.backups() if self.world.files.contents(names.join(self.desk.control.top, one.place))]
        if there:
            effect = self.random.choice(there)
            row = self.write(names.join(self.desk.control.top, effect.place))
            self.late[row] = effect.place
            self.trail.append(("late", effect.run, row))

    def roll_back(self):
        run = self.random.choice([None, *self.desk.runs])
        before = set(self.rows())
        self.trail.append(("rollback", run, outcomes(self.desk.rollback(run))))
        self.take_late(set(self.rows()) - before)

    def clean_up(self):
        self.world.wait(40 * 24 * HOUR_MS)
        possible = self.find_possible()
        result = self.desk.cleanup(EVERYTHING)
        left = {effect.run for effect in self.desk.log().standing}
        self.trail.append(("cleanup", result.code))
        assert not (possible & left) - self.find_possible(), self.trail
        came = set(self.rows()) & set(self.late)
        assert not self.find_aside() & came, self.trail
        # What a rule keeps is not looked at.
        kept = {one.backup.directory for table in result.tables for one in table.backups if not one.going}
        missing = {row for row, place in self.late.items() if row not in came and not any(place.startswith(f"runs/{one}/") for one in kept)}
        assert missing <= self.find_aside(), self.trail
        self.take_late(came)

    def die(self):
        """A command is killed somewhere, and recovered."""
        what = self.random.choice([self.desk.compact, lambda: self.desk.rollback(run), self.desk.cleanup])
        run = self.random.choice([None, *self.desk.runs])
        self.choose_exchange()
        aside, is_rollback = self.find_aside(), what not in (self.desk.compact, self.desk.cleanup)
        self.trail.append("killed")
        self.world.files.die_after(self.random.randint(1, 60))
        try:
            what()
        except Killed:
            self.trail.append("died")
        self.world.files.revive()
        self.world.files.expire_locks()
        self.desk.recover()
        self.world.wait(HOUR_MS)
        came = set(self.rows()) & set(self.late)
        assert is_rollback or not aside & came, self.trail
        self.take_late(came)

    def take_late(self, came):
        self.truth.update(row for row in came if row in self.late)
        self.late = {row: place for row, place in self.late.items() if row not in came}

    def find_aside(self):
        return {row for row, place in self.late.items() if place in self.overwritten}

    def find_possible(self):
        """The runs with a backup that a rollback would bring back."""
        told = {run: outcomes(self.desk.rollback(run, dry_run=True)) for run in {effect.run for effect in self.desk.log().standing}}
        return {run for run, found in told.items() if set(found.values()) == {"planned"}}

    def step(self):
        often = [self.compact, self.append, self.roll_back]
        acts = [
            *often,
            *often,
            self.come_late,
            self.come_late,
            self.overwrite,
            self.clean_up,
            *([self.die, self.die] if self.kills else []),
        ]
        self.random.choice(acts)()
        self.check()

    def check(self):
        assert self.rows() == sorted(self.truth), self.trail
        anywhere = self.world.rows_anywhere()
        assert all(anywhere[row] == 1 for row in self.late), self.trail


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_each_late_file_is_where_it_belongs(seed):
    model = Model(seed, joins=seed % 3 == 0, kills=seed % 4 == 0)
    for _ in range(STEPS):
        model.step()
    model.clean_up()
    model.check()
