"""Prints the configuration: for the operator (`config`), and as spark-submit options for bin/hivekeeper.

Contacts no cluster.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from typing import List, Sequence, Tuple

from hivekeeper.cli import command_line, output
from hivekeeper.codes import Exit
from hivekeeper.config import files, reference
from hivekeeper.config.layers import Config
from hivekeeper.launch import spark_submit
from hivekeeper.launch.edge_node import ThisMachine
from hivekeeper.launch.shipped_files import find_shipped, require_trusted_shipped


def print_config(parsed: argparse.Namespace) -> Exit:
    if parsed.template:
        output.print_answer(reference.render_template().rstrip("\n"))
        return Exit.DONE
    from hivekeeper.report import document, screen

    config, site = command_line.load_config(parsed), files.find_site(os.environ)
    output.print_answer(document.to_json(document.build_config(config, site)) if parsed.json else screen.render_config(config, site))
    return Exit.DONE


def print_submit_options(words: Sequence[str]) -> Exit:
    """Print what bin/hivekeeper needs to know, each word terminated by NUL so that nothing needs quoting."""
    config, shipped = load_for_launch(words)
    require_trusted_shipped(config, os.environ)
    run_name = f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{secrets.token_hex(8)}"
    own_ticket = ThisMachine(os.environ, time.time).needs_own_ticket(config.kerberos.keytab)
    launch = spark_submit.launch_words(config, sys.executable, files.find_log4j2(os.environ), run_name, shipped, own_ticket, words)
    with output.despite_closed_stdout():
        sys.stdout.buffer.write(b"".join(os.fsencode(word) + b"\0" for word in launch))
    return Exit.DONE


def load_for_launch(words: Sequence[str]) -> Tuple[Config, List[str]]:
    """The configuration of a run, and the local files to ship with it. Raises UsageError for anything that prevents a launch."""
    parsed = command_line.parse(words)
    config = command_line.load_config(parsed)
    if parsed.command != "config":
        # Removed here as well as in the run: if the launcher finds no ticket, the run never starts.
        output.forget_properties(parsed.properties_out)
        command_line.read_selection(parsed)
        output.require_writable_outputs(parsed)
    return config, find_shipped(getattr(parsed, "tables_file", None), config, os.environ)
