"""Layers, types and messages of the configuration."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hivekeeper.codes import Exit
from hivekeeper.config import files, layers, value_types
from hivekeeper.config.layers import Config, load
from hivekeeper.config.settings import Settings
from hivekeeper.config.sources import CARRIED, Source
from hivekeeper.config.value_types import MIB
from hivekeeper.errors import UsageError

DEFAULTS = Path(__file__).parents[3] / "conf" / "defaults.yaml"
EXAMPLES = sorted(DEFAULTS.parent.glob("*.example.yaml"))


def merged(*texts: str, env: Mapping[str, str] = {}, flags: Mapping[str, Any] = {}, sets: Sequence[str] = ()) -> Config:
    return load([Source(f"file{number}.yaml", text) for number, text in enumerate(texts, 1)], env, flags, sets)


def refusal(*texts: str, **given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        merged(*texts, **given)
    assert caught.value.reason.exit is Exit.USAGE
    assert "\n" not in caught.value.reason.what
    return caught.value.reason.what


# -- layers -------------------------------------------------------------------------------------------------


def test_without_any_layer_the_defaults_hold():
    config = merged()
    assert config.block_bytes == 128 * 2**20
    assert config.ratio_threshold == 10
    assert config.min_quiet_ms == 900_000
    assert config.max_units is None
    assert config.batch_bytes == 8 * 2**30
    assert config.backup_prefix == "__bkp_"
    assert (config.analyze_stats, config.dry_run) == (False, False)
    assert config.spark.master == "local[*]"
    assert set(config.origins.values()) == {"defaults"}
    assert config.for_table("a.b") == Settings()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_file_is_accepted(example):
    assert merged(example.read_text("utf-8")).entries[-1].layer == 1


def test_there_are_examples():
    assert [path.name for path in EXAMPLES] == ["site.example.yaml", "tables.example.yaml"]


def test_each_layer_beats_the_ones_below_it():
    texts, env = ("block_size: 1m", "block_size: 2m"), {"HIVEKEEPER_BLOCK_SIZE": "3m"}
    assert merged(texts[0]).block_bytes == MIB
    assert merged(*texts).block_bytes == 2 * MIB
    assert merged(*texts, env=env).block_bytes == 3 * MIB
    assert merged(*texts, env=env, sets=["block_size=4m"]).block_bytes == 4 * MIB
    assert merged(*texts, env=env, sets=["block_size=4m"], flags={"block_size": "5m"}).block_bytes == 5 * MIB


def test_an_older_key_is_read_in_its_own_unit_and_takes_part_in_the_layers_as_the_key_itself():
    config = merged("block_size: 1g\ntables: {'a.*': {block_size_mb: 64}}", env={"HIVEKEEPER_BLOCK_SIZE_MB": "256"})
    assert config.block_bytes == 256 * MIB
    assert config.origins["block_size"] == "environment HIVEKEEPER_BLOCK_SIZE_MB"
    assert merged("tables: {'a.*': {block_size_mb: 64}}").for_table("a.b").block_bytes == 64 * MIB
    assert merged("block_size_mb: 64", sets=["block_size=1g"]).block_bytes == 2**30


@pytest.mark.parametrize(
    "given",
    [
        {"texts": ("block_size: 1g\nblock_size_mb: 64",)},
        {"texts": ("tables: {'a.*': {block_size_mb: 64, block_size: 64m}}",)},
        {"env": {"HIVEKEEPER_BLOCK_SIZE_MB": "256", "HIVEKEEPER_BLOCK_SIZE": "1g"}},
        {"sets": ["block_size=1g", "block_size_mb=64"]},
    ],
    ids=["file", "pattern", "environment", "set"],
)
def test_a_key_and_its_older_name_in_one_layer_are_refused(given):
    what = refusal(*given.pop("texts", ()), **given)
    assert "block_size_mb" in what and "are one setting: give one of them" in what


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
    config = merged("block_size: 1m\nmin_quiet: 1h", env=env, sets=["owner=try"], flags={"log_level": "debug"})
    assert config.origins["block_size"] == "file1.yaml line 1"
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
    (tmp_path / "site.yaml").write_text("block_size: 1m\nowner: try\n")
    named = tmp_path / "mine.yaml"
    named.write_text("block_size: 2m\n")
    config = load(files.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [str(named)]), {}, {})
    assert (config.block_bytes, config.owner) == (2 * MIB, "try")


def test_a_directory_without_a_site_file_is_fine(tmp_path):
    assert files.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, []) == []


def test_a_site_file_that_is_a_link_to_nothing_is_not_left_out(tmp_path):
    """As while a server is away, or while a deployment replaces it: its rules may keep backups that the defaults let go."""
    (tmp_path / "site.yaml").symlink_to(tmp_path / "mounted" / "site.yaml")
    with pytest.raises(UsageError, match="site.yaml: the configuration file cannot be read: No such file"):
        files.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [])


def test_nor_is_one_that_may_not_be_looked_at(tmp_path, monkeypatch):
    def deny(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "lstat", deny)
    monkeypatch.setattr(os, "stat", deny)
    monkeypatch.setattr(Path, "read_text", deny)
    with pytest.raises(UsageError, match="site.yaml: the configuration file cannot be read: Permission denied"):
        files.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [])


def test_a_named_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="absent.yaml: the configuration file cannot be read: No such file"):
        files.read_files({}, [str(tmp_path / "absent.yaml")])


def test_a_file_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "site.yaml").write_bytes(b"owner: \xff\xfe")
    with pytest.raises(UsageError, match="not a text in UTF-8"):
        files.read_files({"HIVEKEEPER_CONF_DIR": str(tmp_path)}, [])


def test_an_empty_file_gives_nothing():
    assert merged("", "# only a comment\n") == merged()


def test_what_the_launcher_carries_to_the_cluster_is_the_whole_configuration():
    config = merged(
        "sort_columns: [a, b]\ntables: {'x.*': {min_quiet: 1d, max_units: ''}}",
        env={"HIVEKEEPER_ANALYZE_STATS": "true"},
        sets=["spark.extra_conf.k=ä $x 'q'\n"],
        flags={"block_size": "64m"},
    )
    carried = layers.carry(config)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", carried)
    environ = {CARRIED: carried, "HIVEKEEPER_CONF_DIR": "/absent"}
    assert files.read_files(environ, ["/absent/too.yaml"]) == []
    assert load([], environ, {"block_size": "64m"}) == config


@pytest.mark.parametrize("path", [["keep_for_ever"], ["tables", "sales.*", "keep_for_ever"], ["catalogue", "keep_for_ever"], ["catalogue"]])
def test_a_setting_that_an_older_archive_on_the_cluster_does_not_know_is_refused_there(path):
    """An upgrade may forget the one on HDFS: a rule that keeps old files must not be left out without a word."""
    carried = base64.b64encode(json.dumps([[path, True, "site.yaml line 3", 1]]).encode()).decode()
    assert path[-1] in refusal(env={CARRIED: carried})


def test_the_sites_log4j2_file_comes_first(tmp_path):
    assert files.find_log4j2({"HIVEKEEPER_CONF_DIR": str(tmp_path)}) == DEFAULTS.with_name("log4j2.properties")
    (tmp_path / "log4j2.properties").write_text("")
    assert files.find_log4j2({"HIVEKEEPER_CONF_DIR": str(tmp_path)}) == tmp_path / "log4j2.properties"
    assert files.find_log4j2({}).exists()


# -- tables -------------------------------------------------------------------------------------------------


def test_a_table_gets_the_exchange_of_its_pattern_and_all_others_that_of_directories():
    config = merged("tables: {sales.*: {exchange: Auto}, '*.events': {exchange: files}}")
    assert {name: config.for_table(name).exchange for name in ("hr.people", "sales.orders", "sales.events")} == {
        "hr.people": "directory",
        "sales.orders": "auto",
        "sales.events": "files",
    }


def test_a_table_gets_the_settings_of_its_patterns_the_last_one_winning():
    config = merged("block_size: 256m\ntables:\n  sales.*: {block_size: 64m, owner: try}\n  '*.events': {block_size: 32m}\n")
    assert config.for_table("hr.people").block_bytes == 256 * MIB
    assert config.for_table("sales.orders").block_bytes == 64 * MIB
    assert (config.for_table("SALES.Events").block_bytes, config.for_table("sales.events").owner) == (32 * MIB, "try")


def test_a_pattern_is_matched_whole():
    assert merged("tables: {sales.events: {owner: try}}").for_table("sales.events_archive").owner == "require"


def test_a_pattern_is_also_the_table_of_exactly_that_name():
    """Hive 4 allows signs of patterns in names: else its backups went by the general rules."""
    config = merged("tables: {'sales.Odd[1]': {keep_for: 400d}}")
    assert config.for_table("sales.odd[1]").keep_for_ms == 400 * 86_400_000
    assert config.for_table("sales.odd1").keep_for_ms == 400 * 86_400_000
    assert config.for_table("sales.odd[2]").keep_for_ms is None


def test_a_flag_beats_a_pattern_of_a_file():
    text = "tables: {sales.*: {block_size: 64m, owner: try}}"
    of_table = merged(text, flags={"block_size": "512m"}).for_table("sales.events")
    assert (of_table.block_bytes, of_table.owner) == (512 * MIB, "try")


def test_a_pattern_beats_the_general_value_of_its_own_file_wherever_it_stands():
    assert merged("tables: {a.*: {owner: try}}\nowner: ignore").for_table("a.b").owner == "try"


def test_a_table_may_take_a_limit_away():
    assert merged("max_units: 5\ntables: {a.*: {max_units: ''}}").for_table("a.b").max_units is None


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        ("blok_size: 1", "file1.yaml line 1: there is no key blok_size; did you mean block_size?"),
        ("spark:\n  qeue: x", "file1.yaml line 2: there is no key qeue below spark; did you mean queue?"),
        ("tables:\n  a.b:\n    dry_run: true", "file1.yaml line 3: there is no key dry_run below tables.a.b"),
        (
            "tables:\n  orders:\n    owner: try",
            "file1.yaml line 2: tables.orders matches no table: a pattern is of database.table, such as *.orders",
        ),
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
        ("block_size", "256", "a size of 1m or more, such as 128m"),
        ("block_size", "1023k", "a size of 1m or more, such as 128m"),
        ("block_size_mb", "-1", "a whole number of MiB, 1 or more"),
        ("block_size_mb", "0", "a whole number of MiB, 1 or more"),
        ("block_size_mb", "1.5", "a whole number of MiB, 1 or more"),
        ("block_size_mb", "", "a whole number of MiB, 1 or more"),
        ("log_keep", "१२", "a whole number, 1 or more"),
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
        ("exchange", "concat", "directory, files, auto"),
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
    assert refusal(env={"HIVEKEEPER_BLOK_SIZE": "1"}) == (
        "environment HIVEKEEPER_BLOK_SIZE: there is no key blok_size; did you mean block_size?"
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
def test_times_are_read_into_milliseconds(text, seconds):
    assert value_types.parse_duration(text) == 1000 * seconds


@pytest.mark.parametrize(
    "text, found",
    [("500ms", 500), ("2 h", 7_200_000), ("30d", 2_592_000_000), ("0", None), ("0s", None), ("-7d", None), ("-1", None), ("", None)],
)
def test_an_expiry_of_nothing_zero_or_less_is_never(text, found):
    assert merged(sets=[f"catalogue.expire_after={text}"]).catalogue.expire_after_ms == found


@pytest.mark.parametrize("text", ["7", "1.5d", "7w", "never", "1d 2h"])
def test_an_expiry_of_another_form_is_refused(text):
    with pytest.raises(UsageError):
        merged(sets=[f"catalogue.expire_after={text}"])


@pytest.mark.parametrize("text, size", [("1", 1), ("512m", 2**29), ("8 GB", 2**33), ("2TB", 2**41), ("1KiB", 1024), ("3b", 3)])
def test_sizes_are_read_into_bytes(text, size):
    assert value_types.parse_size(text) == size


@pytest.mark.parametrize("text", ["max_bytes: 9007199254740992g", "min_quiet: 106751991168d", "max_units: 9223372036854775808"])
def test_a_number_that_java_cannot_hold_is_refused(text):
    with pytest.raises(UsageError):
        merged(text)


@given(st.integers(0, 2**53))
def test_a_size_and_a_time_are_read_back_as_they_are_written(number):
    assert value_types.parse_size(value_types.write_size(number)) == number
    assert value_types.parse_duration(value_types.write_duration(number * 1000)) == number * 1000
    assert value_types.parse_expiry(value_types.write_expiry(number + 1)) == number + 1


@given(st.text())
def test_any_text_is_read_or_refused_with_one_kind_of_error(text):
    for each in (
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
            each.read(text)
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
    assert load([], {CARRIED: layers.carry(config)}, {}) == config
