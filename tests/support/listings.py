"""What a command lists, and everything below a directory, by a port's own listings."""

from __future__ import annotations

from typing import Any, List

from hivekeeper.model import FileInfo


def tree(files: Any, top: str) -> List[FileInfo]:
    """Everything below a directory, at any depth, parents before children."""
    found = list(files.look([top])[top].entries)
    return found + [below for one in found if one.is_dir for below in tree(files, one.path)]


def listen(files: Any, *methods: str) -> List[str]:
    """The directories that are listed by these methods from now on, in a list that grows."""
    asked: List[str] = []
    for method in methods:
        setattr(files, method, _listened(getattr(files, method), asked))
    return asked


def _listened(call: Any, asked: List[str]) -> Any:
    return lambda places, *most: asked.extend(places) or call(places, *most)
