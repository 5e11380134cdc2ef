"""Compiles the Java sources of `cluster/java/` in the driver's JVM, once per JVM, and loads the classes.

The compiler is Janino, which comes with every Spark for its own code generator, so the archive holds nothing binary.
Janino supports Java 7 without lambdas, try-with-resources and multi-catch; a generic read needs a cast.
"""

from __future__ import annotations

import re
import threading
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from py4j.protocol import Py4JError

from hivekeeper.cluster.java_errors import first_line, java_causes
from hivekeeper.errors import Unusable

# The folder of helpers that every command needs. Helpers of one command have a folder of their own, compiled on first use.
CORE = ""
PACKAGE = "hivekeeper"

_COMPILED: Dict[Tuple[Any, str], JavaPackage] = {}
_IMPORT = re.compile(r"import ([\w.]+)\.(\w+);")


class JavaSource(NamedTuple):
    name: str
    text: str


class MergedSource(NamedTuple):
    """Several sources as one compilation unit, which every version of Janino compiles; `lines` gives the origin of each line."""

    text: str
    lines: Sequence[Tuple[str, int]]

    def locate(self, message: str) -> str:
        """The compiler's message with file and line instead of the line in the merged text."""

        def name(match: re.Match[str]) -> str:
            file, line = self.lines[int(match[1]) - 1]
            return f"{file}, line {line}"

        return re.sub(r"Line (\d+)", name, message)


@cache
def read_sources(folder: str) -> Tuple[JavaSource, ...]:
    """The sources of `cluster/java/FOLDER`, ordered by name."""
    top = files(__package__).joinpath("java")
    place = top.joinpath(folder) if folder else top
    found = sorted((one for one in place.iterdir() if one.name.endswith(".java")), key=lambda one: one.name)
    return tuple(JavaSource(one.name, one.read_text("utf-8")) for one in found)


def keep_sources() -> None:
    """Read those of all folders now: the archive's unpacked files may be swept from /tmp while a command is at work."""
    top = files(__package__).joinpath("java")
    for folder in (CORE, *(one.name for one in top.iterdir() if one.is_dir())):
        read_sources(folder)


def merge(package: str, sources: Sequence[JavaSource]) -> MergedSource:
    """Merge sources: package and imports once, then the rest of each. A simple name must mean the same class in all of them."""
    imports: Dict[str, str] = {}
    body: List[Tuple[str, Tuple[str, int]]] = []
    for source in sources:
        for number, line in enumerate(source.text.splitlines(), 1):
            match = _IMPORT.fullmatch(line)
            if match and imports.setdefault(match[2], line) != line:
                raise ValueError(f"{source.name}: {line} but {imports[match[2]]} elsewhere; write one of them out in full")
            if not match and not line.startswith("package "):
                body.append((line, (source.name, number)))
    head = [f"package {package};", *sorted(imports.values())]
    return MergedSource("\n".join([*head, *(line for line, _ in body)]), [("imports", 0)] * len(head) + [origin for _, origin in body])


class JavaPackage:
    """The classes of some sources, compiled in a thread. A failure is raised when a class is first requested."""

    def __init__(self, jvm: Any, name: str, sources: Sequence[JavaSource], parent_loader: Any) -> None:
        self.name = name
        self._source = merge(name, sources)
        self._loader: Any = None
        self._failure: Optional[Exception] = None
        self._classes: Dict[str, Any] = {}
        # A thread has its own connection to the JVM. As a daemon it does not hold up a command that fails early.
        self._thread = threading.Thread(target=self._compile, args=(jvm, parent_loader), name="hivekeeper-compile", daemon=True)
        self._thread.start()

    def _compile(self, jvm: Any, parent_loader: Any) -> None:
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(parent_loader)
            compiler.cook(self._source.text)
            self._loader = compiler.getClassLoader()
        except (Py4JError, OSError, TypeError) as error:
            # TypeError: Py4J treats a missing class as a package, which cannot be called.
            self._failure = error

    @property
    def loader(self) -> Any:
        """The class loader; waits for the compilation. Raises Unusable."""
        self._thread.join()
        if self._loader is None:
            error = self._failure or RuntimeError("the compilation ended with the error above")
            told = self._source.locate(first_line(java_causes(error)) or str(error))
            raise Unusable(
                f"this Spark's own compiler (Janino) does not compile Hivekeeper's Java sources: {told}",
                next="use a Spark from 3.3 to 4.0 with its own jars first on the class path",
            ) from error
        return self._loader

    def find(self, name: str) -> Any:
        """The class, as a java.lang.Class."""
        if name not in self._classes:
            self._classes[name] = self.loader.loadClass(f"{self.name}.{name}")
        return self._classes[name]

    @cached_property
    def factory(self) -> Any:
        """The object that creates instances, so that reflection is needed only once."""
        return self.find("Factory").getDeclaredConstructors()[0].newInstance(None)

    def class_bytes(self) -> Mapping[str, bytes]:
        """The class file of every class by its full name, nested ones included, for a jar for executors."""
        # All versions of Janino's loader keep them in a field of this name; newer ones also have a method.
        field = self.loader.getClass().getDeclaredField("classes")
        field.setAccessible(True)
        found = field.get(self.loader)
        return {str(name): bytes(found[name]) for name in found}


def compiled(java_gateway: Any, folder: str = CORE) -> JavaPackage:
    """The classes of one folder; the first call in a JVM starts their compilation without waiting for it.

    Py4J finds methods by the name of their class, so each name must be loaded only once per JVM.
    """
    key = (java_gateway._gateway_client, folder)
    if key not in _COMPILED:
        jvm = java_gateway.jvm
        keep_sources()
        parent = compiled(java_gateway).loader if folder else jvm.java.lang.Thread.currentThread().getContextClassLoader()
        _COMPILED[key] = JavaPackage(jvm, f"{PACKAGE}.{folder}" if folder else PACKAGE, read_sources(folder), parent)
    return _COMPILED[key]
