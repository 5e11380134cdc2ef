"""What builds the archive is pinned by digests, with all that it brings along."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Dict, Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[2]
PINS = {name: (CHECKOUT / "packaging" / name).read_text("utf-8").splitlines() for name in ("build.txt", "runtime.txt")}
PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)( ; [^-]+)?( --hash=sha256:[0-9a-f]{64})+")
# What packaging/build-zipapp starts, besides pip, which comes with Python, and the backend of pyproject.toml.
STARTED = ("shiv", "setuptools", "wheel", "PyYAML")


def pinned() -> Dict[str, str]:
    found = [PIN.fullmatch(line) for lines in PINS.values() for line in lines if line[:1] != "#"]
    assert all(found)
    return {canonicalize_name(match["name"]): match["version"] for match in found if match}


def needed(name: str, python: str) -> Iterator[str]:
    yield canonicalize_name(name)
    try:
        wanted = [Requirement(text) for text in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        # Of an older Python than this one.
        return
    for one in wanted:
        if one.marker is None or one.marker.evaluate({"python_version": python, "platform_system": "Linux", "extra": ""}):
            yield from needed(one.name, python)


@pytest.mark.parametrize("python", ["3.9", "3.13"])
def test_whatever_builds_the_archive_has_a_digest(python):
    backend = re.findall(r'^requires = \["([\w-]+)==([\w.]+)"\]$', (CHECKOUT / "pyproject.toml").read_text("utf-8"), re.M)
    pins = pinned()
    assert all(pins[name] == version for name, version in backend)
    assert {found for name in (*STARTED, *dict(backend)) for found in needed(name, python)} <= {*pins, "pip"}
