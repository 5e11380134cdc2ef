"""Decide what each setting is: layers of text in, one frozen Config out.

Reads configuration files and nothing else; never the cluster. The key decides how a text is read, not YAML:
`hive_lock: off` is the word off, and a Spark property stays as it was written.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from hivekeeper.config import value_types
from hivekeeper.config.value_types import Kind
from hivekeeper.errors import UsageError

PREFIX = "HIVEKEEPER_"
CONF_DIR = "HIVEKEEPER_CONF_DIR"
CARRIED = "HIVEKEEPER_CARRIED"
ANSWER = "HIVEKEEPER_ANSWER"

# Variables with our prefix that are no settings: they say where things are, or are meant for a scheduler's script around us.
SCRIPTS = ("HIVEKEEPER_HOME", "HIVEKEEPER_DELAY", "HIVEKEEPER_TRIES", "HIVEKEEPER_PAUSE")
RESERVED = frozenset([CONF_DIR, CARRIED, ANSWER, "HIVEKEEPER_PYTHON", *SCRIPTS])

DEFAULTS = "defaults.yaml"
SITE = "site.yaml"
LOG4J2 = "log4j2.properties"

# In a tree of keys: any name is allowed here.
ANY = "*"

KeyPath = Tuple[str, ...]
KeyTree = Mapping[str, Any]


def part(repr: bool = True) -> Any:
    """A field of the configuration that is not one setting."""
    return field(repr=repr)


def key(kind: Union[Kind, KeyTree], name: str = "") -> Any:
    """A field of the configuration: how its text is read and, if the field is called otherwise, its key."""
    return field(metadata={"kind": kind, "name": name})


@dataclass(frozen=True)
class TableSettings:
    """What each table may have of its own, under `tables:`."""

    block_size_mb: int = key(value_types.COUNT)
    ratio_threshold: float = key(value_types.RATIO)
    min_quiet_s: int = key(value_types.DURATION, "min_quiet")
    max_units: Optional[int] = key(value_types.optional(value_types.COUNT))
    max_bytes: Optional[int] = key(value_types.optional(value_types.SIZE))
    quarantine_after: int = key(value_types.WHOLE)
    quarantine_for_s: int = key(value_types.DURATION, "quarantine_for")
    max_backup_bytes: Optional[int] = key(value_types.optional(value_types.SIZE))
    max_backup_objects: Optional[int] = key(value_types.optional(value_types.COUNT))
    compression: str = key(value_types.CODEC)
    sort_columns: Tuple[str, ...] = key(value_types.WORDS)
    analyze_stats: bool = key(value_types.FLAG)
    hive_lock: str = key(value_types.choice("try", "off"))
    owner: str = key(value_types.choice("require", "try", "ignore"))
    backup_table: bool = key(value_types.FLAG)
    backup_database: Optional[str] = key(value_types.optional(value_types.NAME))
    min_age_s: int = key(value_types.DURATION, "min_age")
    older_than_s: Optional[int] = key(value_types.optional(value_types.DURATION), "older_than")
    keep_last: Optional[int] = key(value_types.optional(value_types.COUNT))
    discard: str = key(value_types.choice("delete", "trash"))

    @property
    def block_size_bytes(self) -> int:
        return self.block_size_mb * 2**20


@dataclass(frozen=True)
class SparkSettings:
    """How spark-submit is called."""

    master: str = key(value_types.MASTER)
    deploy_mode: str = key(value_types.choice("client", "cluster"))
    queue: Optional[str] = key(value_types.optional(value_types.TEXT))
    num_executors: Optional[int] = key(value_types.optional(value_types.COUNT))
    executor_memory: Optional[str] = key(value_types.optional(value_types.MEMORY))
    executor_cores: Optional[int] = key(value_types.optional(value_types.COUNT))
    executor_memory_overhead: Optional[str] = key(value_types.optional(value_types.MEMORY))
    driver_memory: Optional[str] = key(value_types.optional(value_types.MEMORY))
    driver_cores: Optional[int] = key(value_types.optional(value_types.COUNT))
    driver_memory_overhead: Optional[str] = key(value_types.optional(value_types.MEMORY))
    extra_conf: Mapping[str, str] = key({ANY: value_types.PROPERTY})
    archives: Tuple[str, ...] = key(value_types.WORDS)
    python_env: Optional[str] = key(value_types.optional(value_types.TEXT))
    py_files: Tuple[str, ...] = key(value_types.WORDS)
    extra_files: Tuple[str, ...] = key(value_types.WORDS)
    archive: Optional[str] = key(value_types.optional(value_types.TEXT))
    answer_dir: str = key(value_types.TEXT)
    submit_command: Optional[str] = key(value_types.optional(value_types.TEXT))
    home: Optional[str] = key(value_types.optional(value_types.TEXT))
    java_home: Optional[str] = key(value_types.optional(value_types.TEXT))


@dataclass(frozen=True)
class KerberosSettings:
    """Whose ticket the launcher gets."""

    principal: Optional[str] = key(value_types.optional(value_types.TEXT))
    keytab: Optional[str] = key(value_types.optional(value_types.TEXT))
    proxy_user: Optional[str] = key(value_types.optional(value_types.TEXT))


@dataclass(frozen=True)
class Source:
    """A configuration file: its name for messages, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One value and who gave it. `layer` counts up from the defaults, which are 0."""

    path: KeyPath
    value: Any
    origin: str
    layer: int = 0

    @property
    def key(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True)
class Config(TableSettings):
    """The merged configuration. `entries` holds everything that was given, weakest first."""

    batch_bytes: int = key(value_types.SIZE)
    batch_units: int = key(value_types.COUNT)
    quota_directories: Tuple[str, ...] = key(value_types.WORDS)
    backup_prefix: str = key(value_types.NAME)
    dry_run: bool = key(value_types.FLAG)
    max_duration_s: Optional[int] = key(value_types.optional(value_types.DURATION), "max_duration")
    stop_file: Optional[str] = key(value_types.optional(value_types.TEXT))
    pause_file: Optional[str] = key(value_types.optional(value_types.TEXT))
    log_level: str = key(value_types.choice("debug", "info", "warning", "error"))
    log_dir: Optional[str] = key(value_types.optional(value_types.TEXT))
    log_keep: int = key(value_types.COUNT)
    spark: SparkSettings = part()
    kerberos: KerberosSettings = part()
    entries: Tuple[Entry, ...] = part(repr=False)

    @property
    def winners(self) -> Mapping[str, Entry]:
        """By key, the entry that counts, in the order of defaults.yaml."""
        return {entry.key: entry for entry in self.entries}

    @property
    def origins(self) -> Mapping[str, str]:
        """By key, where the value comes from."""
        return {name: entry.origin for name, entry in self.winners.items()}

    def for_table(self, full_name: str) -> TableSettings:
        """The settings of one table, `database.table`.

        Within a layer a pattern beats the general value, and the last pattern that fits beats the others; a
        later layer beats an earlier one, so that a flag always wins.
        """
        attributes = {name: f.name for name, f in _fields(TableSettings).items()}
        chosen = {attribute: getattr(self, attribute) for attribute in attributes.values()}
        for entry in sorted(self.entries, key=lambda entry: (entry.layer, len(entry.path))):
            special = entry.path[0] == "tables" and fnmatchcase(full_name.lower(), entry.path[1].lower())
            if special or entry.key in attributes:
                chosen[attributes[entry.path[-1]]] = entry.value
        return TableSettings(**chosen)


def load(files: Sequence[Source], environ: Mapping[str, str], flags: Mapping[str, Any], sets: Sequence[str] = ()) -> Config:
    """Merge all layers, weakest first: defaults, files, environment, `--set KEY=VALUE`, named flags.

    `flags` maps keys (`spark.queue`) to values; None was not given. In YARN cluster mode the launcher has
    merged already, and what it carried over stands for all layers but the defaults.
    """
    defaults = list(_read_yaml(Source(DEFAULTS, resource(DEFAULTS).read_text("utf-8")), "defaults"))
    if environ.get(CARRIED):
        return _build([*defaults, *_unpack(environ[CARRIED])])
    layers = [
        *(list(_read_yaml(source)) for source in files),
        list(_read_environment(environ)),
        [_read_set(text) for text in sets],
        [_entry(_split_key(name), _as_raw(value), "command line") for name, value in flags.items() if value is not None],
    ]
    given = [Entry(e.path, e.value, e.origin, number) for number, layer in enumerate(layers, 1) for e in layer]
    return _build([*defaults, *given])


def read_files(environ: Mapping[str, str], named: Sequence[str]) -> List[Source]:
    """The site file in HIVEKEEPER_CONF_DIR, if there is one, then the files named with -c, which must be there."""
    if environ.get(CARRIED):
        return []
    site = find_site(environ)
    return [Source(str(path), _read_text(path)) for path in [*([site] if site else []), *map(Path, named)]]


def find_site(environ: Mapping[str, str]) -> Optional[Path]:
    """The site file in HIVEKEEPER_CONF_DIR, if there is one."""
    directory = environ.get(CONF_DIR)
    return Path(directory, SITE) if directory and Path(directory, SITE).exists() else None


def resource(name: str) -> Path:
    """A file that belongs to the package; in the source tree it lies in conf/."""
    installed = Path(__file__).parents[1] / name
    return installed if installed.exists() else Path(__file__).parents[3] / "conf" / name


def find_log4j2(environ: Mapping[str, str]) -> Path:
    """The site's log4j2.properties in HIVEKEEPER_CONF_DIR, else our own."""
    own = Path(environ.get(CONF_DIR) or "", LOG4J2)
    return own if environ.get(CONF_DIR) and own.exists() else resource(LOG4J2)


def template() -> str:
    """Every key with its comment, each commented out: the file changes nothing until a line is uncommented."""
    return "".join(_comment_out(line) + "\n" for line in resource(DEFAULTS).read_text("utf-8").splitlines())


def _comment_out(line: str) -> str:
    bare = line.lstrip()
    if not bare or bare.startswith("#") or line in ("spark:", "kerberos:"):
        return line
    return f"{line[: len(line) - len(bare)]}#{bare}"


def carry(config: Config) -> str:
    """What was given beside the defaults, for CARRIED: letters, digits, `+`, `/` and `=`, so that no shell minds."""
    given = [[e.path, e.value, e.origin, e.layer] for e in config.entries if e.layer > 0]
    return base64.b64encode(json.dumps(given).encode()).decode()


def _unpack(text: str) -> List[Entry]:
    given = json.loads(base64.b64decode(text))
    return [Entry(tuple(path), tuple(value) if isinstance(value, list) else value, origin, layer) for path, value, origin, layer in given]


def _fields(settings: type) -> Dict[str, Any]:
    return {f.metadata["name"] or f.name: f for f in fields(settings) if "kind" in f.metadata}


def _kinds(settings: type) -> Dict[str, Any]:
    return {name: f.metadata["kind"] for name, f in _fields(settings).items()}


# Every key there is: a name leads to a kind or to the keys below it.
ROOT: KeyTree = {
    **_kinds(Config),
    "spark": _kinds(SparkSettings),
    "kerberos": _kinds(KerberosSettings),
    "tables": {ANY: _kinds(TableSettings)},
}


def _find(path: KeyPath, where: str) -> Union[Kind, KeyTree]:
    """What a path leads to. Refuses a key that nothing reads, and names the nearest one that is read."""
    node: Union[Kind, KeyTree] = ROOT
    for depth, name in enumerate(path):
        above = ".".join(path[:depth])
        if isinstance(node, Kind):
            raise _wrong(f"{where}: {above} takes {node.allowed}, not keys below it")
        if name not in node and ANY not in node:
            raise _wrong(f"{where}: there is no key {name}{f' below {above}' if above else ''}{_suggest(name, node)}")
        node = node[name] if name in node else node[ANY]
    return node


def _suggest(name: str, allowed: KeyTree) -> str:
    from difflib import get_close_matches  # costs 10 ms, and only a mistake needs it

    near = get_close_matches(name, [*allowed], 1)
    return f"; did you mean {near[0]}?" if near else ""


def _entry(path: KeyPath, raw: Union[str, List[str]], origin: str) -> Entry:
    """Read the text of one setting. ValueError becomes a line that says where, what and what is allowed."""
    kind = _find(path, origin)
    if not isinstance(kind, Kind):
        raise _wrong(f"{origin}: {'.'.join(path)} takes keys below it, not a value")
    try:
        return Entry(path, kind.read(raw), origin)
    except ValueError:
        shown = json.dumps(raw if isinstance(raw, str) else ", ".join(raw), ensure_ascii=False)
        raise _wrong(f"{origin}: {'.'.join(path)} is {shown}; allowed: {kind.allowed}") from None


def _as_raw(value: Any) -> Union[str, List[str]]:
    if isinstance(value, (list, tuple)):
        return [str(part) for part in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_set(text: str) -> Entry:
    name, sign, value = text.partition("=")
    if not sign:
        raise _wrong(f'--set takes KEY=VALUE, not "{text}"')
    return _entry(_split_key(name.strip()), value, f"--set {name.strip()}")


def _split_key(name: str) -> KeyPath:
    """A dotted key; the names of Spark properties and the patterns of tables contain dots themselves."""
    if name.startswith("spark.extra_conf."):
        return ("spark", "extra_conf", name[len("spark.extra_conf.") :])
    if name.startswith("tables."):
        pattern, _, last = name[len("tables.") :].rpartition(".")
        return ("tables", pattern, last)
    return tuple(name.split("."))


def _read_environment(environ: Mapping[str, str]) -> Iterator[Entry]:
    """HIVEKEEPER_BLOCK_SIZE_MB, HIVEKEEPER_SPARK__QUEUE: a double underscore goes one level down."""
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in RESERVED:
            yield _entry(tuple(name[len(PREFIX) :].lower().split("__")), environ[name], f"environment {name}")


def _read_yaml(source: Source, origin: str = "") -> Iterator[Entry]:
    """The values of a file. Only the structure is YAML's; the texts are read by their kinds.

    A key without a value was not given; with the defaults, where an `origin` is named, it is None.
    """
    import yaml  # 30 ms, which a plain --version does not need

    try:
        root = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise _wrong(f"{source.name}{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise _wrong(f"{source.name}: not valid YAML: {' '.join(str(error).split())}") from None
    if root is not None:
        yield from _walk(root, (), source.name, origin)


def _walk(node: Any, path: KeyPath, file: str, origin: str) -> Iterator[Entry]:
    where = f"{file} line {node.start_mark.line + 1}"
    found = _find(path, where)
    if node.id == "mapping" and not isinstance(found, Kind):
        seen = set()
        for name, below in node.value:
            line = f"{file} line {name.start_mark.line + 1}"
            if name.id != "scalar" or name.value in seen:
                raise _wrong(f"{line}: {'the key ' + name.value + ' is there twice' if name.id == 'scalar' else 'a key must be a word'}")
            seen.add(name.value)
            _find((*path, name.value), line)
            yield from _walk(below, (*path, name.value), file, origin)
    elif node.tag == "tag:yaml.org,2002:null":
        if isinstance(found, Kind) and origin:
            yield Entry(path, None, origin)
    elif not path:
        raise _wrong(f"{where}: not a map of settings")
    else:
        yield _entry(path, _texts(node, path, where), origin or where)


def _texts(node: Any, path: KeyPath, where: str) -> Union[str, List[str]]:
    if node.id == "scalar":
        return str(node.value)
    if node.id == "mapping" or any(part.id != "scalar" for part in node.value):
        raise _wrong(f"{where}: {'.'.join(path)} takes a plain value or a list of them")
    return [part.value for part in node.value]


def _build(entries: Sequence[Entry]) -> Config:
    """The typed configuration from all entries, later ones over earlier ones, and what must hold across keys."""
    values = {entry.path: entry.value for entry in entries}
    config = Config(
        **_values(Config, (), values),
        spark=SparkSettings(**_values(SparkSettings, ("spark",), values)),
        kerberos=KerberosSettings(**_values(KerberosSettings, ("kerberos",), values)),
        entries=tuple(entries),
    )
    if (config.kerberos.principal is None) != (config.kerberos.keytab is None):
        raise _wrong("kerberos.principal and kerberos.keytab belong together: one of them is missing")
    if config.spark.deploy_mode == "cluster" and config.spark.master != "yarn":
        raise _wrong(f"spark.deploy_mode cluster needs spark.master yarn, not {config.spark.master}")
    return config


def _values(settings: type, above: KeyPath, values: Mapping[KeyPath, Any]) -> Dict[str, Any]:
    return {f.name: _value(f.metadata["kind"], (*above, name), values) for name, f in _fields(settings).items()}


def _value(kind: Union[Kind, KeyTree], path: KeyPath, values: Mapping[KeyPath, Any]) -> Any:
    if isinstance(kind, Kind):
        return values[path]
    return {below[-1]: value for below, value in values.items() if below[:-1] == path}


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise _wrong(f"{path}: not a text in UTF-8") from None
    except OSError as error:
        raise _wrong(f"{path}: the configuration file cannot be read: {error.strerror}", "check the path and its permissions") from None


def _wrong(what: str, next: str = "correct it; `hivekeeper config --template` shows every key") -> UsageError:
    return UsageError("".join(char if char.isprintable() else repr(char)[1:-1] for char in what), next=next)
