"""A command's context for tests: the same settings for all tables, no confirmation prompt."""

from __future__ import annotations

from typing import Any

from hivekeeper.commands.context import Context
from hivekeeper.config.settings import Settings
from hivekeeper.model import Selection
from hivekeeper.ports import Cluster

PREFIX = Settings().backup_prefix
QUIET = Settings(min_quiet_ms=0)


def a_context(cluster: Cluster, selection: Selection, run: str, settings: Settings = QUIET, **more: Any) -> Context:
    return Context(cluster, selection, lambda _table: settings, PREFIX, run, **more)
