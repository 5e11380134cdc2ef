"""The default table for command tests, unless a test module builds its own."""

from __future__ import annotations

import pytest

from support.builders import a_table
from support.desk import Desk
from support.world import World


@pytest.fixture
def world():
    world = World()
    world.add_table(a_table(["dt"]), {f"dt={day}": [1000] * 3 for day in (1, 2, 3)})
    return world


@pytest.fixture
def desk(world):
    return Desk(world)
