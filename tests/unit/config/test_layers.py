"""Layers, kinds and messages of the configuration."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.config import layers as configuration
from hivekeeper.config import value_types
from hivekeeper.config.layers import CARRIED, Config, Source, load
from hivekeeper.errors import Exit, UsageError

DEFAULTS = Path(__file__).parents[3] / "conf" / "defaults.yaml"
EXAMPLES = sorted(DEFAULTS.parent.glob("*.example.yaml"))


def merged(*texts: str, env: Mapping[str, str] = {}, flags: Mapping[str, Any] = {}, sets: Sequence[str] = ()) -> Config:
    return load([Source(f"file{number}.yaml", text) for number, text in enumerate(texts, 1)], env, flags, sets)


def refusal(*texts: str, **layers: Any) -> str:
    with pytest.raises(UsageError) as caught:
        merged(*texts, **layers)
    assert caught.value.code == Exit.USAGE
    assert "\n" not in caught.value.what
    return caught.value.what


def leaves(tree: Mapping[str, Any], above: str = "") -> set:
    """The dotted keys of a YAML tree or of our key tree; an empty map is a leaf."""
    found = set()
    for name, below in tree.items():
        if isinstance(below, Mapping) and below and configuration.ANY not in below:
            found |= leaves(below, f"{above}{name}.")
        else:
            found.add(f"{above}{name}")
    return found


# -- the reference ------------------------------------------------------------------------------------------


def test_defaults_yaml_holds_exactly_the_keys_that_the_code_reads():
    assert leaves(yaml.safe_load(DEFAULTS.read_text("utf-8"))) == leaves(configuration.ROOT)


def test_every_setting_is_read_somewhere_in_the_program():
    package = DEFAULTS.parents[1] / "job" / "hivekeeper"
    program = "\n".join(path.read_text("utf-8") for path in package.rglob("*.py") if path.parent.name != "config")
    assert "def main" in program
    classes = [configuration.Config, configuration.SparkSettings, configuration.KerberosSettings]
    attributes = {field.name for each in classes for field in dataclasses.fields(each) if "kind" in field.metadata}
    attributes = attributes - {"block_size_mb"} | {"block_size_bytes"}
    unread = {name for name in attributes if not re.search(rf"\.{name}\b", program)}
    assert not unread


def test_every_key_of_defaults_yaml_has_a_comment_line_above_it():
    lines = DEFAULTS.read_text("utf-8").splitlines()
    bare = [line for above, line in zip(lines, lines[1:]) if ":" in line and "#" not in line and not above.lstrip().startswith("#")]
    assert bare == []


def test_without_any_layer_the_defaults_hold():
    config = merged()
    assert (config.block_size_mb, config.block_size_bytes) == (128, 128 * 2**20)
    assert config.ratio_threshold == 10
    assert config.min_quiet_s == 900
    assert config.max_units is None
    assert config.batch_bytes == 8 * 2**30
    assert config.backup_prefix == "__bkp_"
    assert (config.analyze_stats, config.dry_run) == (False, False)
    assert config.spark.master == "local[*]"
    assert set(config.origins.values()) == {"defaults"}


def test_the_template_changes_nothing_and_becomes_the_defaults_when_uncommented():
    template = configuration.template()
    as_is = merged(template)
    assert {entry.layer for entry in as_is.entries} == {0}
    uncommented = re.sub(r"(?m)^( *)#(?! )", r"\1", template)
    assert yaml.safe_load(uncommented) == yaml.safe_load(DEFAULTS.read_text("utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_file_is_accepted(example):
    assert merged(example.read_text("utf-8")).entries[-1].layer == 1


def test_there_are_examples():
    assert [path.name for path in EXAMPLES] == ["site.example.yaml", "tables.example.yaml"]


# -- layers -------------------------------------------------------------------------------------------------


def test_each_layer_beats_the_ones_below_it():
    texts, env = ("block_size_mb: 1", "block_size_mb: 2"), {"HIVEKEEPER_BLOCK_SIZE_MB": "3"}
    assert merged(texts[0]).block_size_mb == 1
    assert merged(*texts).block_size_mb == 2
    assert merged(*texts, env=env).block_size_mb == 3
    assert merged(*texts, env=env, sets=["block_size_mb=4"]).block_size_mb == 4
    assert merged(*texts, env=env, sets=["block_size_mb=4"], flags={"block_size_mb": 5}).block_size_mb == 5


def test_a_later_false_beats_an_earlier_true():
    assert merged("analyze_stats: true", "analyze_stats: false").analyze_stats is False
    assert merged("analyze_stats: true", flags={"analyze_stats": False}).analyze_stats is False
    assert merged("dry_run: true", env={"HIVEKEEPER_DRY_RUN": "no"}).dry_run is False


def test_only_none_means_not_given():
    assert merged("max_units: 7", "max_units:", flags={"max_units": None}).max_units == 7
    assert merged("max_units: 7", "max_units: ''").max_units is None
    assert merged("sort_columns: [a]", "sort_columns: []").sort_columns == ()


def test_maps_are_merged_key_by_key_and_lists_are_replaced():
    config = merged("spark: {queue: a, extra_conf: {x.y: 1, z: 2}}\nsort_columns: [a, b]", "spark: {extra_conf: {z: 3}}\nsort_columns: [c]")
    assert config.spark.queue == "a"
    assert config.spark.extra_conf == {"x.y": "1", "z": "3"}
    assert config.sort_columns == ("c",)


def test_each_value_knows_its_origin():
    env = {"HIVEKEEPER_SPARK__QUEUE": "q"}
    config = merged("block_size_mb: 1\nmin_quiet: 1h", env=env, sets=["owner=try"], flags={"log_level": "debug"})
    assert config.origins["block_size_mb"] == "file1.yaml line 1"
    assert config.origins["min_quiet"] == "file1.yaml line 2"
    assert config.origins["spark.queue"] == "environment HIVEKEEPER_SPARK__QUEUE"
    assert config.origins["owner"] == "--set owner"
    assert config.origins["log_level"] == "command line"
    assert config.origins["compression"] == "defaults"


def test_set_reaches_nested_keys_properties_and_tables():
    config = merged(sets=["spark.queue=a b", "spark.extra_conf.spark.x.y=p=q", "tables.sales.*.owner=ignore"])
    assert config.spark.queue == "a b"
    assert config.spark.extra_conf == {"spark.x.y": "p=q"}
    assert config.for_table("sales.events").owner == "ignore"


def test_the_site_file_comes_before_the_named_files(tmp_path):
    (tmp_path / "site.yaml").write_text("block_size_mb: 1\nowner: try\n")
    named = tmp_path / "mine.yaml"
    named.write_text("block_size_mb: 2\n")
    config = load(configuration.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [str(named)]), {}, {})
    assert (config.block_size_mb, config.owner) == (2, "try")


def test_a_directory_without_a_site_file_is_fine(tmp_path):
    assert configuration.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, []) == []


def test_a_named_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="absent.yaml: the configuration file cannot be read: No such file"):
        configuration.read_files({}, [str(tmp_path / "absent.yaml")])


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "site.yaml").write_bytes(b"owner: \xff\xfe")
    with pytest.raises(UsageError, match="not a text in UTF-8"):
        configuration.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [])


def test_an_empty_file_gives_nothing():
    assert merged("", "# only a comment\n") == merged()


def test_what_the_launcher_carries_to_the_cluster_is_the_whole_configuration():
    config = merged(
        "sort_columns: [a, b]\ntables: {'x.*': {min_quiet: 1d, max_units: ''}}",
        env={"HIVEKEEPER_ANALYZE_STATS": "true"},
        sets=["spark.extra_conf.k=ä $x 'q'\n"],
        flags={"block_size_mb": 64},
    )
    carried = configuration.carry(config)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", carried)
    environ = {CARRIED: carried, "HIVEKEEPER_CONF_DIR": "/absent"}
    assert configuration.read_files(environ, ["/absent/too.yaml"]) == []
    assert load([], environ, {"block_size_mb": 64}) == config


def test_the_sites_log4j2_file_comes_first(tmp_path):
    assert configuration.find_log4j2({"HIVEKEEPER_CONF_DIR": str(tmp_path)}) == configuration.resource("log4j2.properties")
    (tmp_path / "log4j2.properties").write_text("")
    assert configuration.find_log4j2({"HIVEKEEPER_CONF_DIR": str(tmp_path)}) == tmp_path / "log4j2.properties"
    assert configuration.find_log4j2({}).exists()


# -- tables -------------------------------------------------------------------------------------------------


def test_a_table_gets_the_settings_of_its_patterns_the_last_one_winning():
    config = merged("block_size_mb: 256\ntables:\n  sales.*: {block_size_mb: 64, owner: try}\n  '*.events': {block_size_mb: 32}\n")
    assert config.for_table("hr.people").block_size_mb == 256
    assert config.for_table("sales.orders").block_size_mb == 64
    assert (config.for_table("SALES.Events").block_size_mb, config.for_table("sales.events").owner) == (32, "try")


def test_a_pattern_is_matched_whole():
    assert merged("tables: {sales.events: {owner: try}}").for_table("sales.events_archive").owner == "require"


def test_a_flag_beats_a_pattern_of_a_file():
    text = "tables: {sales.*: {block_size_mb: 64, owner: try}}"
    of_table = merged(text, flags={"block_size_mb": 512}).for_table("sales.events")
    assert (of_table.block_size_mb, of_table.owner) == (512, "try")


def test_a_pattern_beats_the_general_value_of_its_own_file_wherever_it_stands():
    assert merged("tables: {a.*: {owner: try}}\nowner: ignore").for_table("a.b").owner == "try"


def test_a_table_may_take_a_limit_away():
    assert merged("max_units: 5\ntables: {a.*: {max_units: ''}}").for_table("a.b").max_units is None


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("block_size: 1", "file1.yaml line 1: there is no key block_size; did you mean block_size_mb?"),
        ("spark:\n  qeue: x", "file1.yaml line 2: there is no key qeue below spark; did you mean queue?"),
        ("tables:\n  a.b:\n    dry_run: true", "file1.yaml line 3: there is no key dry_run below tables.a.b"),
        ("zzzzzz: 1", "file1.yaml line 1: there is no key zzzzzz"),
        ("owner: try\nowner: try", "file1.yaml line 2: the key owner is there twice"),
        ("spark:\n  home: a\n  queue: b\n  home: c", "file1.yaml line 4: the key home is there twice"),
        ("a: 1\nowner: [", "file1.yaml line 2: not valid YAML: expected the node content, but found '<stream end>'"),
        ("owner: try\n\tx: 1", "file1.yaml line 2: not valid YAML: found character '\\t' that cannot start any token"),
        ("owner: \x01", "file1.yaml: not valid YAML"),
        ("- a\n- b", "file1.yaml line 1: not a map of settings"),
        ("just text", "file1.yaml line 1: not a map of settings"),
        ("spark: yarn", "file1.yaml line 1: spark takes keys below it, not a value"),
        ("owner: {a: b}", "file1.yaml line 1: owner takes a plain value or a list of them"),
        ("sort_columns: [[a]]", "file1.yaml line 1: sort_columns takes a plain value or a list of them"),
        ("? [a]\n: b", "file1.yaml line 1: a key must be a word"),
        ("<<: {owner: try}", "file1.yaml line 1: there is no key <<"),
        ("a: 1\n---\nb: 2", "file1.yaml line 2: not valid YAML"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line_with_its_place(text, message):
    assert refusal(text).startswith(message)


@pytest.mark.parametrize(
    "key, value, allowed",
    [
        ("block_size_mb", "-1", "a whole number, 1 or more"),
        ("block_size_mb", "0", "a whole number, 1 or more"),
        ("block_size_mb", "1.5", "a whole number, 1 or more"),
        ("block_size_mb", "", "a whole number, 1 or more"),
        ("block_size_mb", "१२", "a whole number, 1 or more"),
        ("ratio_threshold", "-2", "a number, 1 or more"),
        ("ratio_threshold", "0.5", "a number, 1 or more"),
        ("ratio_threshold", "nan", "a number, 1 or more"),
        ("min_quiet", "15", "a time such as 90s, 15m, 4h or 7d"),
        ("min_quiet", "-15m", "a time such as 90s, 15m, 4h or 7d"),
        ("min_quiet", "15 minutes", "a time such as 90s, 15m, 4h or 7d"),
        ("batch_bytes", "0", "a size such as 512m, 8g or 2TB"),
        ("batch_bytes", "8x", "a size such as 512m, 8g or 2TB"),
        ("dry_run", "maybe", "true or false"),
        ("hive_lock", "on", "try, off"),
        ("owner", "keep", "require, try, ignore"),
        ("backup_prefix", "a-b", "letters, digits and _"),
        ("backup_prefix", "", "letters, digits and _"),
        ("compression", "lzo", "source, table, none"),
        ("log_level", "loud", "debug, info, warning, error"),
        ("spark.master", "mesos", "local, local[N], local[*] or yarn"),
        ("spark.executor_memory", "4", "a size as Spark writes it"),
        ("spark.queue", "a\nb", "a text of one line"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(key, value, allowed):
    message = refusal(flags={key: value})
    assert message.startswith("command line: ")
    assert key in message
    assert f"allowed: {allowed}" in message


def test_a_wrong_environment_variable_is_named():
    assert refusal(env={"HIVEKEEPER_BLOK_SIZE_MB": "1"}) == (
        "environment HIVEKEEPER_BLOK_SIZE_MB: there is no key blok_size_mb; did you mean block_size_mb?"
    )
    assert refusal(env={"HIVEKEEPER_SPARK__MASTER": "x"}).startswith('environment HIVEKEEPER_SPARK__MASTER: spark.master is "x"; allowed:')


def test_variables_that_say_where_things_are_are_no_settings():
    env = {"HIVEKEEPER_PYTHON": "p", "HIVEKEEPER_CONF_DIR": "/c", "OTHER": "1"}
    assert merged(env=env) == merged()


def test_set_without_a_value_is_refused():
    assert refusal(sets=["owner"]) == '--set takes KEY=VALUE, not "owner"'
    assert refusal(sets=["owner.x=1"]) == "--set owner.x: owner takes require, try, ignore, not keys below it"


def test_principal_and_keytab_belong_together():
    assert "belong together" in refusal("kerberos: {principal: a@B}")
    assert "belong together" in refusal("kerberos: {keytab: /k}")
    assert merged("kerberos: {principal: a@B, keytab: /k}").kerberos.principal == "a@B"


def test_cluster_mode_needs_yarn():
    assert refusal(sets=["spark.deploy_mode=cluster"]) == "spark.deploy_mode cluster needs spark.master yarn, not local[*]"


# -- texts --------------------------------------------------------------------------------------------------


def test_the_key_decides_how_a_text_is_read_not_yaml():
    config = merged("hive_lock: off\nspark: {queue: 010, extra_conf: {a: true, b: 1e3, c: 2020-01-01, d: 0x10}}\nsort_columns: [no, 1]")
    assert config.hive_lock == "off"
    assert config.spark.queue == "010"
    assert config.spark.extra_conf == {"a": "true", "b": "1e3", "c": "2020-01-01", "d": "0x10"}
    assert config.sort_columns == ("no", "1")


def test_a_list_may_be_written_with_commas():
    assert merged(sets=["sort_columns=a, b"]).sort_columns == merged("sort_columns: [a, b]").sort_columns == ("a", "b")


@pytest.mark.parametrize("text, seconds", [("0", 0), ("90s", 90), ("15m", 900), ("4 h", 14400), ("7D", 604800)])
def test_times_are_read_into_seconds(text, seconds):
    assert value_types.parse_duration(text) == seconds


@pytest.mark.parametrize("text, size", [("1", 1), ("512m", 2**29), ("8 GB", 2**33), ("2TB", 2**41), ("1KiB", 1024), ("3b", 3)])
def test_sizes_are_read_into_bytes(text, size):
    assert value_types.parse_size(text) == size


@given(st.text())
def test_any_text_is_read_or_refused_with_one_kind_of_error(text):
    for kind in (
        value_types.COUNT,
        value_types.RATIO,
        value_types.SIZE,
        value_types.DURATION,
        value_types.FLAG,
        value_types.NAME,
        value_types.MEMORY,
        value_types.CODEC,
    ):
        try:
            kind.read(text)
        except ValueError:
            continue


@given(st.text())
def test_any_file_is_read_or_refused_with_a_usage_error(text):
    try:
        merged(text)
    except UsageError:
        return


@given(st.dictionaries(st.text(min_size=1), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_property_survives_yaml_and_the_way_to_the_cluster(properties):
    config = merged(yaml.safe_dump({"spark": {"extra_conf": properties}}))
    wanted = {name: value.strip() for name, value in properties.items()}
    assert config.spark.extra_conf == wanted
    assert load([], {CARRIED: configuration.carry(config)}, {}) == config
