"""A quota of a directory between a table's and a unit's: `region=eu`."""

from __future__ import annotations

from support.desk import Desk
from support.fakes.namespace import COPIES


def make_copies_longer(desk: Desk, times: float) -> None:
    """Or shorter, as with another codec."""
    rows = desk.world.rows
    put = rows._put
    rows._put = lambda path, content, length: put(path, content, int(length * times))


def limit(desk: Desk, more: int = 0) -> None:
    """The quota has room for what is there now, and so many bytes more."""
    namespace, above = desk.world.files.namespace, desk.live("region=eu")
    namespace.quotas[above] = (None, (sum(node.length for _, node in namespace.walk(above)) + more) * COPIES)
