"""What tests of random acts share: which rows there are, and how many acts are done of those that can be done."""

from __future__ import annotations

import random
from typing import Any, Callable, Sequence, Set

from hivekeeper.ports import FilesUnavailable
from support.fakes.rows import DataFile
from support.world import World

# A try that finds nothing to do does not count as an act.
MOST_TRIES = 60
NO_ANSWER = FilesUnavailable("no answer")


def rows_in(content: DataFile) -> Set[str]:
    """What a reader finds: nothing where the end of a file tells of other rows than those with which it begins."""
    first, last = content.parts[0], content.parts[-1]
    return set(last.rows) if sorted(first.rows) == sorted(last.rows) else set()


def rows_inside(content: object) -> Set[str]:
    """All rows of a file, also those that no reader finds."""
    return {row for part in content.parts for row in part.rows} if isinstance(content, DataFile) else set()


def rows_of_all_parts(world: World) -> Set[str]:
    return {row for content in world.files.contents().values() for row in rows_inside(content)}


def act_some(chance: random.Random, most: int, try_one: Callable[[], object]) -> None:
    """Up to so many acts, each of which tells whether it could be done."""
    done, wanted = 0, chance.randint(0, most)
    for _ in range(MOST_TRIES):
        if done >= wanted:
            return
        done += bool(try_one())


def choose(chance: random.Random, found: Sequence[Any]) -> Any:
    """One of these, "" if there is none."""
    return chance.choice(found) if found else ""
