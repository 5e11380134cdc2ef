"""A port that counts its calls, for tests about how much a command asks."""

from __future__ import annotations

from collections import Counter
from typing import Any

# Methods that only note or tell what is known, perhaps since the first call.
ASK_NO_SERVER = frozenset(["id_around", "anchored", "why_no_backup_tables"])


class Counting:
    """A port, and how often it was called; and how many paths it was asked to look at."""

    def __init__(self, port: Any) -> None:
        self.port = port
        self.calls: Counter[str] = Counter()
        self.looked_at = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.port, name)
        if name in ASK_NO_SERVER:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            self.looked_at += len(arguments[0]) if name == "look" else 0
            return found(*arguments, **named)

        return call if callable(found) else found
