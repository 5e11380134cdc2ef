"""Worlds that many cases begin with: made once, by the commands themselves, and then copied, which takes a tenth of that."""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import threading
from types import FunctionType
from typing import Any, Callable, Dict, List, Optional, TypeVar

Build = TypeVar("Build", bound=Callable[..., Any])


def built_once(build: Build) -> Build:
    """Call it once for the same arguments; everybody gets a copy of its own of what it returned, with all that belongs to it."""
    made: Dict[Any, Mould] = {}

    @functools.wraps(build)
    def copy(*words: Any, **more: Any) -> Any:
        key = words, tuple(sorted(more.items()))
        if key not in made:
            made[key] = Mould(build(*words, **more))
        return made[key].copy()

    return copy  # type: ignore[return-value]


class Mould:
    """A value to be copied. Functions are not copied, and so may not hold on to anything that is."""

    def __init__(self, value: Any) -> None:
        self._functions: List[Any] = []
        packed = io.BytesIO()
        packer = _Packer(packed, pickle.HIGHEST_PROTOCOL)
        packer.functions = self._functions
        packer.dump(value)
        self._packed = packed.getvalue()

    def copy(self) -> Any:
        unpacker = _Unpacker(io.BytesIO(self._packed))
        unpacker.functions = self._functions
        return unpacker.load()


class _Packer(pickle.Pickler):
    # No lock is held between two calls, so a new one is as good.
    dispatch_table = {**copyreg.dispatch_table, type(threading.RLock()): lambda _: (threading.RLock, ())}
    functions: List[Any]

    def persistent_id(self, value: Any) -> Optional[int]:
        if not isinstance(value, FunctionType) or value.__closure__:
            return None
        self.functions.append(value)
        return len(self.functions) - 1


class _Unpacker(pickle.Unpickler):
    functions: List[Any]

    def persistent_load(self, number: int) -> Any:
        return self.functions[number]
