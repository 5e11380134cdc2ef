"""Reads a Hadoop configuration file as Hadoop does, without Java: comments, `<final>`, XInclude of local files.

Variables (`${…}`) are not expanded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Set
from xml.etree import ElementInclude, ElementTree

from hivekeeper.plan.edge_node import HadoopFile


def read_hadoop_file(path: Path) -> HadoopFile:
    """The properties of a file, or the error if it cannot be read."""
    try:
        root = ElementTree.parse(path).getroot()
        ElementInclude.include(root, base_url=str(path))
    except (OSError, SyntaxError) as error:
        return HadoopFile(str(path), error=str(error))
    return HadoopFile(str(path), _read_properties(root))


def _read_properties(root: ElementTree.Element) -> Dict[str, str]:
    """The last value of a name counts, unless an earlier one is final."""
    properties: Dict[str, str] = {}
    finals: Set[str] = set()
    for element in root.iter("property"):
        name = _text(element, "name")
        if name in finals:
            continue
        properties[name] = _text(element, "value")
        if _text(element, "final") == "true":
            finals.add(name)
    return properties


def _text(element: ElementTree.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()
