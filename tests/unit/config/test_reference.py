"""The definitions of all settings, and what is generated from them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml

from hivekeeper.config import reference, sources
from hivekeeper.config.definitions import Setting, settings_of
from hivekeeper.config.layers import Config, load
from hivekeeper.config.settings import KerberosSettings, RunSettings, Settings, SparkSettings, list_settings
from hivekeeper.config.sources import Source

JOB = Path(__file__).parents[3] / "job" / "hivekeeper"
EVERY = list_settings()


def leaves(tree: Mapping[str, Any], above: str = "") -> set:
    """The dotted keys of a YAML tree; an empty map is a leaf."""
    found = set()
    for name, below in tree.items():
        found |= leaves(below, f"{above}{name}.") if isinstance(below, Mapping) and below else {f"{above}{name}"}
    return found


def by_id(setting: Setting) -> str:
    return setting.key


def test_the_defaults_hold_every_key_and_change_nothing():
    text = reference.render_defaults()
    assert leaves(yaml.safe_load(text)) == {each.key for each in EVERY} | {"tables"}
    config = load([Source("defaults.yaml", text)], {}, {})
    assert dataclasses.replace(config, entries=()) == Config()


def test_every_key_of_the_defaults_has_a_comment_line_above_it():
    lines = reference.render_defaults().splitlines()
    bare = [line for above, line in zip(lines, lines[1:]) if ":" in line and "#" not in line and not above.lstrip().startswith("#")]
    assert bare == []


def test_the_template_gives_nothing_and_becomes_the_defaults_when_uncommented():
    template = reference.render_template()
    assert {entry.layer for entry in load([Source("template", template)], {}, {}).entries} == {0}
    uncommented = re.sub(r"(?m)^( *)#(?! )", r"\1", template)
    assert yaml.safe_load(uncommented) == yaml.safe_load(reference.render_defaults())


@pytest.mark.parametrize("setting", EVERY, ids=by_id)
def test_a_meaning_is_one_or_two_sentences(setting):
    assert setting.meaning.endswith(".")
    assert len(re.findall(r"[.:;] ", setting.meaning)) <= 2


@pytest.mark.parametrize("setting", [each for each in EVERY if not each.is_map], ids=by_id)
def test_a_default_is_written_as_its_type_writes_it(setting):
    assert setting.type.write(setting.default_value()) == setting.default


# What operators know these rules by from other programs for backups.
WORDS_OF_OTHERS = {"keep_for": "older_than", "keep_latest_versions": "keep_last"}


@pytest.mark.parametrize("setting", [each for each in EVERY if each.flag], ids=by_id)
def test_a_key_with_a_flag_bears_its_name(setting):
    assert setting.flag.attribute == WORDS_OF_OTHERS.get(setting.name, setting.name)


@pytest.mark.parametrize("setting", [each for each in EVERY if each.variable], ids=by_id)
def test_a_setting_is_read_from_the_environment_variable_that_the_page_names(setting):
    (entry,) = sources.read_environment({setting.variable: setting.default or _some_value(setting)})
    assert entry.key == setting.key


def _some_value(setting: Setting) -> str:
    for text in ("1", "1h", "1m", "word"):
        try:
            setting.type.read(text)
        except ValueError:
            continue
        return text
    raise AssertionError(setting.key)


def test_what_a_table_may_have_of_its_own_is_what_its_patterns_take():
    taken = set(sources.ROOT[sources.TABLES][sources.ANY])
    assert taken == {each.name for each in EVERY if each.per_table} | {"block_size_mb"}


def test_every_setting_is_read_somewhere_in_the_program():
    program = "\n".join(path.read_text("utf-8") for path in JOB.rglob("*.py") if path.parent.name != "config")
    assert "def main" in program
    attributes = {name for each in (Settings, RunSettings, SparkSettings, KerberosSettings) for name in settings_of(each)}
    assert not {name for name in attributes if not re.search(rf"\.{name}\b", program)}
