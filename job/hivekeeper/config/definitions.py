"""The definition of a setting: its key, type, default, meaning and flag, and whether it can be set per table.

Pure. The docs, the help and the program's values all come from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Dict, Optional, Tuple

from hivekeeper.config.value_types import ValueType

# Prefix of Hivekeeper's environment variables.
PREFIX = "HIVEKEEPER_"

EVERY_COMMAND = ()


@dataclass(frozen=True)
class Flag:
    """A command-line option that sets a value. `commands`: which have it, () for all. `bare_unit` is appended to a bare number."""

    name: str
    metavar: str = ""
    commands: Tuple[str, ...] = EVERY_COMMAND
    bare_unit: str = ""

    @property
    def attribute(self) -> str:
        return self.name.lstrip("-").replace("-", "_")

    def complete(self, text: str) -> str:
        return text + self.bare_unit if text.isdecimal() else text

    def belongs_to(self, command: str) -> bool:
        return self.commands == EVERY_COMMAND or command in self.commands


@dataclass(frozen=True)
class Alias:
    """An older key for the same setting; its value may have another format."""

    name: str
    type: ValueType


@dataclass(frozen=True)
class Setting:
    """One setting. `key` is dotted; `default` is text as in a configuration file; `is_map`: any names are allowed below the key."""

    key: str
    type: ValueType
    default: str
    meaning: str
    per_table: bool = False
    flag: Optional[Flag] = None
    alias: Optional[Alias] = None
    is_map: bool = False

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0]

    @property
    def variable(self) -> str:
        """The environment variable; "" for a map, whose names cannot be expressed in one."""
        return "" if self.is_map else PREFIX + self.key.upper().replace(".", "__")

    def default_value(self) -> Any:
        if self.is_map:
            return {}
        return self.type.read(self.default)


def setting(key: str, type: ValueType, default: str, meaning: str, **more: Any) -> Any:
    """A dataclass field with its setting's definition."""
    definition = Setting(key, type, default, meaning, **more)
    return field(default_factory=definition.default_value, metadata={"setting": definition})


def settings_of(settings: type) -> Dict[str, Setting]:
    """The definitions in a settings class, by attribute, in declaration order."""
    return {each.name: each.metadata["setting"] for each in fields(settings) if "setting" in each.metadata}
