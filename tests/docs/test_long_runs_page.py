"""docs/long-runs.md: its settings reach Spark as written, and its messages are the program's."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from hivekeeper.cluster.java_errors import KEEP_TICKET
from hivekeeper.config import layers
from hivekeeper.config.sources import Source
from hivekeeper.launch import spark_submit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "long-runs.md").read_text("utf-8")


def test_the_settings_of_the_page_reach_spark_as_they_are_written():
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    wanted = yaml.safe_load(block)["spark"]["extra_conf"]
    words = spark_submit.submit_options(layers.load([Source("page", block)], {}, {}), "python3", Path("/log4j2.properties"))
    given = dict(word.split("=", 1) for option, word in zip(words, words[1:]) if option == "--conf")
    assert wanted
    assert wanted.items() <= given.items()


def test_every_setting_of_the_yaml_is_explained_in_a_table():
    for name in re.findall(r"^    spark\.hadoop\.([\w.]+):", PAGE, re.MULTILINE):
        assert f"| `{name}` |" in PAGE or f"`{name}` (" in PAGE


def test_the_message_about_a_ticket_is_the_one_that_the_job_gives():
    assert f"there is no valid Kerberos ticket: {KEEP_TICKET}`" in PAGE
