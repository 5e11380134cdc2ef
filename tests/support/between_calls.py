"""Others who act between any two calls of a command, also between those that only read.

The fakes report each change themselves; here each read of theirs is reported, too, in the pieces in which HDFS answers: a look at many
directories is one request for each.
"""

from __future__ import annotations

from typing import Any, Callable

from support.world import World

READS = [
    *("stat", "blocks", "is_anywhere", "find_paths", "read_pieces", "read_bytes", "read_texts", "content", "part"),
    *("exposed", "way_to", "ties"),
]
OF_EACH = ["look", "look_hidden_directories", "attributes", "file_rights"]
OF_METASTORE = [
    *("tables", "partitions", "partitions_named", "locations_below", "read_places_again", "read_newer_places", "paths_around"),
    *("table_locations", "table_places"),
]


def report_calls(world: World, tell: Callable[[str], None]) -> None:
    """Call `tell` just before each request of the commands of this world, with the words of a step or the name of the method."""
    files: Any = world.files
    files.before_step = tell
    for method in READS:
        setattr(files, method, _reported(getattr(files, method), method, tell))
    for method in OF_EACH:
        setattr(files, method, _one_by_one(getattr(files, method), method, tell))
    world.metastore.before_request = tell
    for method in OF_METASTORE:
        setattr(world.metastore, method, _reported(getattr(world.metastore, method), method, tell))


def _reported(call: Callable[..., Any], method: str, tell: Callable[[str], None]) -> Callable[..., Any]:
    def called(*asked: Any, **more: Any) -> Any:
        tell(method)
        return call(*asked, **more)

    return called


def _one_by_one(call: Callable[..., Any], method: str, tell: Callable[[str], None]) -> Callable[..., Any]:
    """Of a mapping or a sequence of directories. A limit of all together is not reached by tests that use this."""

    def called(directories: Any, *more: Any) -> Any:
        found = {}
        for directory in directories:
            tell(method)
            one = {directory: directories[directory]} if isinstance(directories, dict) else [directory]
            found.update(call(one, *more))
        return found

    return called
