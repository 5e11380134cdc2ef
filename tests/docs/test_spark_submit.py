"""docs/spark-submit.md: the program accepts its command lines and settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import List

import pytest
import yaml

from hivekeeper.cli import parser
from hivekeeper.config import layers
from hivekeeper.config.sources import Source
from hivekeeper.launch import spark_submit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spark-submit.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [block for language, block in BLOCKS if not language]


def words_of(command: str) -> List[str]:
    return shlex.split(command.replace("\\\n", " "))


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "cluster"])
def test_a_command_by_hand_is_one_that_the_job_takes(command):
    words = words_of(command)
    (script,) = (at for at, word in enumerate(words) if word.endswith("hivekeeper.py"))
    assert parser.build_parser().parse_args(words[script + 1 :]).command == "compact-swap"


@pytest.mark.parametrize("command", COMMANDS, ids=["client", "cluster"])
def test_a_command_by_hand_has_only_settings_that_the_launcher_gives_too(command):
    given = dict(word.split("=", 1) for word in words_of(command) if re.match(r"spark\.[\w.]+=", word))
    fixed = {name: value for name, value in given.items() if "appMasterEnv" not in name}
    assert fixed
    assert fixed.items() <= spark_submit.FIXED.items()


def test_the_settings_of_the_page_are_read_as_they_are_written():
    (block,) = (block for language, block in BLOCKS if language == "yaml")
    read = layers.load([Source("page", block)], {}, {})
    assert read.spark.archive == yaml.safe_load(block)["spark"]["archive"]
    assert read.spark.python_env == yaml.safe_load(block)["spark"]["python_env"]


def test_every_key_that_the_page_names_is_one_of_the_configuration():
    named = set(re.findall(r"`((?:spark|kerberos)\.[a-z_]+|log_\w+)`", PAGE))
    assert {"spark.driver_output_dir", "kerberos.proxy_user", "log_dir", "log_keep"} <= named
    assert named <= set(layers.load([], {}, {}).winners)
