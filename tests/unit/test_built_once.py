"""The copies of a world belong to whoever asked for them."""

from __future__ import annotations

import pickle

import pytest

from support.built_once import Mould, built_once
from support.desk import Desk, desk_by


def test_a_world_is_made_once_for_the_same_arguments_and_each_copy_is_its_own():
    made = []

    @built_once
    def build(*by: str) -> Desk:
        made.append(by)
        return desk_by(by)

    first, second = build("dt"), build("dt")
    first.compact()
    assert made == [("dt",)]
    assert first.world.picture() != second.world.picture() == desk_by(("dt",)).world.picture()
    assert second.world.cluster.files is second.world.files
    assert build().world.table("sales.events").partitioned is False


def test_what_acts_on_a_world_by_a_function_of_its_own_is_not_copied():
    desk = desk_by(("dt",))
    desk.world.files.before_step = lambda _what: desk.world.files.die_after(0)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        Mould(desk)
