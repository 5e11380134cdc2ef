"""A table with backups, which the tests here drop."""

from __future__ import annotations

import pytest

from support.leftovers import SHAPES, build


@pytest.fixture(params=list(SHAPES))
def desk(request):
    return build(request.param)


@pytest.fixture
def top(desk):
    return desk.control.top
