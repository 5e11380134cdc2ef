"""What the JVM logs while Hivekeeper runs: lines that no name in a message can break, forge or steer a terminal with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CONFIGURATION = Path(__file__).parents[2] / "conf" / "log4j2.properties"


@pytest.fixture
def shown(driver):
    """Returns what is written for a message, by log4j itself."""
    pattern = re.search(r"^appender\.stderr\.layout\.pattern = (.+)$", CONFIGURATION.read_text(), re.MULTILINE)[1].replace("\\\\", "\\")
    log4j = driver.jvm.org.apache.logging.log4j
    layout = log4j.core.layout.PatternLayout.newBuilder().withPattern(pattern).withAlwaysWriteExceptions(False).build()

    def show(text):
        message = log4j.message.SimpleMessage(text)
        event = log4j.core.impl.Log4jLogEvent.newBuilder().setLoggerName("a.B").setLevel(log4j.Level.ERROR).setMessage(message).build()
        return layout.toSerializable(event)

    return show


@pytest.mark.parametrize(
    "character", ["\n", "\r", "\x1b", "\x07", "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\u200f", "\ufeff"]
)
def test_no_character_of_a_name_ends_a_line_or_steers_a_terminal(shown, character):
    assert shown(f"a file {character}31m of a table").endswith(" level=ERROR logger=B a file ?31m of a table \n")


def test_names_in_any_language_stay_as_they_are(shown):
    assert shown("données/città=東京 😀").endswith("B données/città=東京 😀 \n")
