"""Decide what each setting is: layers of entries in, one frozen Config out.

Pure.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from hivekeeper.config import sources
from hivekeeper.config.definitions import Setting, settings_of
from hivekeeper.config.settings import CatalogueSettings, KerberosSettings, RunSettings, Settings, SparkSettings, list_settings
from hivekeeper.config.sources import CARRIED, TABLES, Entry, KeyPath, Source, wrong


@dataclass(frozen=True)
class Config(RunSettings, Settings):
    """The merged configuration. `entries` holds every value given, lowest precedence first."""

    catalogue: CatalogueSettings = field(default_factory=CatalogueSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    kerberos: KerberosSettings = field(default_factory=KerberosSettings)
    entries: Tuple[Entry, ...] = field(default=(), repr=False)

    @property
    def winners(self) -> Mapping[str, Entry]:
        """The effective entry of each key, in the order of the definitions."""
        return {entry.key: entry for entry in self.entries}

    @property
    def origins(self) -> Mapping[str, str]:
        """The origin of each key's value."""
        return {name: entry.origin for name, entry in self.winners.items()}

    def for_table(self, full_name: str) -> Settings:
        """The settings of one table, `database.table`.

        Within a layer a pattern beats the general value, and the last matching pattern wins; a later layer
        beats an earlier one, so that a flag always wins. Hive 4 allows signs of patterns in names, so each also stands for itself.
        """
        asked = full_name.lower()
        attributes = {definition.key: attribute for attribute, definition in settings_of(Settings).items()}
        chosen = {attribute: getattr(self, attribute) for attribute in attributes.values()}
        for entry in sorted(self.entries, key=lambda entry: (entry.layer, len(entry.path))):
            pattern = entry.path[1].lower() if entry.path[0] == TABLES else None
            special = pattern is not None and (asked == pattern or fnmatchcase(asked, pattern))
            if special or entry.key in attributes:
                chosen[attributes[entry.path[-1]]] = entry.value
        return Settings(**chosen)


def load(files: Sequence[Source], environ: Mapping[str, str], flags: Mapping[str, Any], sets: Sequence[str] = ()) -> Config:
    """Merge all layers, lowest precedence first: defaults, files, environment, `--set KEY=VALUE`, named flags.

    `flags` maps keys (`spark.queue`) to values; None means not given. In YARN cluster mode the launcher has
    already merged, and the entries it passes on replace all layers except the defaults.
    """
    defaults = [Entry(tuple(each.key.split(".")), each.default_value(), "defaults") for each in list_settings() if not each.is_map]
    if environ.get(CARRIED):
        return _build([*defaults, *_unpack(environ[CARRIED])])
    layers = [
        *(list(sources.read_yaml(source)) for source in files),
        list(sources.read_environment(environ)),
        [sources.read_assignment(text) for text in sets],
        [sources.read_flag(key, value) for key, value in flags.items() if value is not None],
    ]
    for layer in layers:
        _refuse_alias_beside_key(layer)
    given = [Entry(e.path, e.value, e.origin, number) for number, layer in enumerate(layers, 1) for e in layer]
    return _build([*defaults, *given])


def _refuse_alias_beside_key(layer: Sequence[Entry]) -> None:
    """Raise UsageError if one layer gives both a key and its alias: it is unclear which one is meant."""
    seen: Dict[KeyPath, Entry] = {}
    for entry in layer:
        other = seen.setdefault(entry.path, entry)
        if other.alias != entry.alias:
            raise wrong(f"{entry.origin}: {entry.path[-1]} and {entry.alias or other.alias} are one setting: give one of them")


def carry(config: Config) -> str:
    """The values that differ from the defaults, encoded for CARRIED in letters, digits, `+`, `/` and `=`, which no shell interprets.

    YARN and Spark show it to anyone who may see the application, so it contains no secrets; spark-submit has already set those.
    """
    given = [[e.path, e.value, e.origin, e.layer] for e in (entry.masked for entry in config.entries) if e.layer > 0]
    return base64.b64encode(json.dumps(given).encode()).decode()


def _unpack(text: str) -> List[Entry]:
    given = json.loads(base64.b64decode(text))
    for path, _, origin, _ in given:
        # The launcher may be newer than an archive on the cluster. A rule that keeps old files must not be left out without a word.
        if not isinstance(sources.find(tuple(path), origin), Setting):
            raise wrong(f"{origin}: {'.'.join(path)} takes keys below it, not a value")
    return [Entry(tuple(path), tuple(value) if isinstance(value, list) else value, origin, layer) for path, value, origin, layer in given]


def _build(entries: Sequence[Entry]) -> Config:
    """Build the typed configuration from all entries, later ones winning, and check the rules that span keys."""
    values = {entry.path: entry.value for entry in entries}
    config = Config(
        **_values(Config, values),
        catalogue=CatalogueSettings(**_values(CatalogueSettings, values)),
        spark=SparkSettings(**_values(SparkSettings, values)),
        kerberos=KerberosSettings(**_values(KerberosSettings, values)),
        entries=tuple(entries),
    )
    if (config.kerberos.principal is None) != (config.kerberos.keytab is None):
        raise wrong("kerberos.principal and kerberos.keytab belong together: one of them is missing")
    if config.spark.deploy_mode == "cluster" and config.spark.master != "yarn":
        raise wrong(f"spark.deploy_mode cluster needs spark.master yarn, not {config.spark.master}")
    return config


def _values(settings: type, values: Mapping[KeyPath, Any]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for attribute, definition in settings_of(settings).items():
        path = tuple(definition.key.split("."))
        below = {given[-1]: value for given, value in values.items() if given[:-1] == path}
        found[attribute] = below if definition.is_map else values[path]
    return found
