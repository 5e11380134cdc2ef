"""Reads settings from YAML files, the environment, `KEY=VALUE` and flags.

Every text becomes an Entry or a UsageError that says where, what and what is allowed. The key, not YAML, decides how a text is
read: `hive_lock: off` is the word off, and a Spark property stays as written.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from hivekeeper.config.definitions import PREFIX, Setting
from hivekeeper.config.settings import list_settings
from hivekeeper.errors import UsageError
from hivekeeper.reasons import Code

CONF_DIR = "HIVEKEEPER_CONF_DIR"
CARRIED = "HIVEKEEPER_CARRIED"
DRIVER_OUTPUT = "HIVEKEEPER_DRIVER_OUTPUT"
# Users besides root whose local files are trusted. Not a setting, because it decides which settings are read.
RELEASE_OWNERS = "HIVEKEEPER_RELEASE_OWNERS"

# Variables with our prefix that are not settings: they give locations, or belong to a scheduler's script that calls Hivekeeper.
SCRIPTS = ("HIVEKEEPER_HOME", "HIVEKEEPER_DELAY", "HIVEKEEPER_TRIES", "HIVEKEEPER_PAUSE")
RESERVED = frozenset([CONF_DIR, CARRIED, DRIVER_OUTPUT, RELEASE_OWNERS, "HIVEKEEPER_PYTHON", *SCRIPTS])

# What Spark hides by default in its logs and pages (spark.redaction.regex), in the name or value of a property.
SECRET = re.compile(r"secret|password|token|access[.]?key|account[.]?key", re.IGNORECASE)
MASK = "*********(redacted)"

# In a key tree: any name is allowed here.
ANY = "*"

TABLES = "tables"
# What a pattern needs to match the dot in database.table.
_MAY_MATCH = re.compile(r"[.*?\[]")

KeyPath = Tuple[str, ...]
KeyTree = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """A configuration file: its name for messages, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One value and its origin. `layer` counts up from the defaults, which are 0; `alias` is the older key that was used."""

    path: KeyPath
    value: Any
    origin: str
    layer: int = 0
    alias: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def text(self) -> str:
        """The value as written in a configuration file; a secret is masked."""
        return self._setting.type.write(self.masked.value)

    @property
    def plain(self) -> Any:
        """The value for a document: a size or a time with its unit, everything else as it is."""
        return self.text if self._setting.type.unit and self.value is not None else self.masked.value

    @property
    def masked(self) -> Entry:
        """The entry with a secret masked. Only Spark properties can hold one: a keytab is a path."""
        secret = self._setting.is_map and (SECRET.search(self.path[-1]) or SECRET.search(str(self.value)))
        return replace(self, value=MASK) if secret else self

    @property
    def _setting(self) -> Setting:
        found = find(self.path, self.origin)
        assert isinstance(found, Setting)
        return found


def _leaves(settings: Sequence[Setting]) -> Dict[str, Any]:
    """The settings by name, with their aliases, which have a type of their own."""
    leaves: Dict[str, Any] = {}
    for each in settings:
        leaves[each.name] = {ANY: each} if each.is_map else each
        if each.alias:
            leaves[each.alias.name] = replace(each, type=each.alias.type)
    return leaves


def _grow_tree() -> KeyTree:
    every = list_settings()
    sections = {each.section: [other for other in every if other.section == each.section] for each in every if each.section}
    return {
        **_leaves([each for each in every if not each.section]),
        **{name: _leaves(inside) for name, inside in sections.items()},
        TABLES: {ANY: _leaves([each for each in every if each.per_table])},
    }


# All keys: a name leads to a setting or to the keys below it.
ROOT: KeyTree = _grow_tree()


def find(path: KeyPath, where: str) -> Union[Setting, KeyTree]:
    """The setting or subtree at a path. Refuses an unknown key and suggests the nearest known one, and a pattern that matches no table."""
    if path[:1] == (TABLES,) and len(path) > 1 and not _MAY_MATCH.search(path[1]):
        raise wrong(f"{where}: {TABLES}.{path[1]} matches no table: a pattern is of database.table, such as *.{path[1]}")
    node: Union[Setting, KeyTree] = ROOT
    for depth, name in enumerate(path):
        above = ".".join(path[:depth])
        if isinstance(node, Setting):
            raise wrong(f"{where}: {above} takes {node.type.allowed}, not keys below it")
        if name not in node and ANY not in node:
            raise wrong(f"{where}: there is no key {name}{f' below {above}' if above else ''}{_suggest(name, node)}")
        node = node[name] if name in node else node[ANY]
    return node


def _suggest(name: str, allowed: KeyTree) -> str:
    from difflib import get_close_matches  # costs 10 ms; needed only for a mistake

    near = get_close_matches(name, [*allowed], 1)
    return f"; did you mean {near[0]}?" if near else ""


def read_entry(path: KeyPath, raw: Union[str, List[str]], origin: str) -> Entry:
    """Read the text of one setting. ValueError becomes a UsageError that says where, what and what is allowed."""
    found = find(path, origin)
    if not isinstance(found, Setting):
        raise wrong(f"{origin}: {'.'.join(path)} takes keys below it, not a value")
    try:
        value = found.type.read(raw)
    except ValueError:
        shown = json.dumps(raw if isinstance(raw, str) else ", ".join(raw), ensure_ascii=False)
        raise wrong(f"{origin}: {'.'.join(path)} is {shown}; allowed: {found.type.allowed}") from None
    if found.is_map or path[-1] == found.name:
        return Entry(path, value, origin)
    return Entry((*path[:-1], found.name), value, origin, alias=path[-1])


def read_flag(key: str, value: Any) -> Entry:
    """The entry of a named command-line option."""
    raw = [str(part) for part in value] if isinstance(value, (list, tuple)) else str(value)
    found = find(split_key(key), "command line")
    origin = "command line"
    if isinstance(found, Setting) and found.flag and found.flag.attribute != found.name:
        origin += f" {found.flag.name}"
    return read_entry(split_key(key), raw.lower() if isinstance(value, bool) and isinstance(raw, str) else raw, origin)


def read_assignment(text: str) -> Entry:
    """The entry of `--set KEY=VALUE`."""
    name, sign, value = text.partition("=")
    if not sign:
        raise wrong(f'--set takes KEY=VALUE, not "{text}"')
    return read_entry(split_key(name.strip()), value, f"--set {name.strip()}")


def split_key(name: str) -> KeyPath:
    """Split a dotted key; Spark property names and table patterns contain dots themselves."""
    if name.startswith("spark.extra_conf."):
        return ("spark", "extra_conf", name[len("spark.extra_conf.") :])
    if name.startswith(f"{TABLES}."):
        pattern, _, last = name[len(TABLES) + 1 :].rpartition(".")
        return (TABLES, pattern, last)
    return tuple(name.split("."))


def read_environment(environ: Mapping[str, str]) -> Iterator[Entry]:
    """HIVEKEEPER_BLOCK_SIZE, HIVEKEEPER_SPARK__QUEUE: a double underscore goes one level down."""
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in RESERVED:
            yield read_entry(tuple(name[len(PREFIX) :].lower().split("__")), environ[name], f"environment {name}")


def read_yaml(source: Source) -> Iterator[Entry]:
    """The values of a file. YAML gives only the structure; each type reads its own text. A key without a value counts as not given."""
    import yaml  # 30 ms, not needed for a plain --version

    try:
        root = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise wrong(f"{source.name}{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise wrong(f"{source.name}: not valid YAML: {' '.join(str(error).split())}") from None
    if root is not None:
        yield from _walk(root, (), source.name)


def _walk(node: Any, path: KeyPath, file: str) -> Iterator[Entry]:
    where = f"{file} line {node.start_mark.line + 1}"
    if node.id == "mapping" and not isinstance(find(path, where), Setting):
        seen = set()
        for name, below in node.value:
            line = f"{file} line {name.start_mark.line + 1}"
            if name.id != "scalar" or name.value in seen:
                raise wrong(f"{line}: {'the key ' + name.value + ' is there twice' if name.id == 'scalar' else 'a key must be a word'}")
            seen.add(name.value)
            find((*path, name.value), line)
            yield from _walk(below, (*path, name.value), file)
    elif node.tag == "tag:yaml.org,2002:null":
        return
    elif not path:
        raise wrong(f"{where}: not a map of settings")
    else:
        yield read_entry(path, _texts(node, path, where), where)


def _texts(node: Any, path: KeyPath, where: str) -> Union[str, List[str]]:
    if node.id == "scalar":
        return str(node.value)
    if node.id == "mapping" or any(part.id != "scalar" for part in node.value):
        raise wrong(f"{where}: {'.'.join(path)} takes a plain value or a list of them")
    return [part.value for part in node.value]


def wrong(what: str, next: str = "correct it; `hivekeeper config --template` shows every key") -> UsageError:
    return UsageError("".join(char if char.isprintable() else repr(char)[1:-1] for char in what), code=Code.WRONG_CONFIGURATION, next=next)
