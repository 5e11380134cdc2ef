"""Give new directories the owner, group, mode, ACLs and policies of those that they will replace.

Touches only directories below a run's own.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Iterable, Mapping

from hivekeeper.errors import Refused
from hivekeeper.model import Attributes
from hivekeeper.seams import Files, NoPermission

log = logging.getLogger(__name__)


def dress(files: Files, wanted: Mapping[str, Attributes], owner: str) -> None:
    """Give directories their attributes. `owner` says how much the owner matters: require, try or ignore.

    Only a superuser may give files to somebody else on HDFS. Raises NoPermission.
    """
    anonymous = {path: replace(attributes, owner="", group="") for path, attributes in wanted.items()}
    if owner == "ignore":
        files.dress(anonymous)
        return
    try:
        files.dress(wanted)
    except NoPermission as error:
        if owner == "require":
            raise
        log.warning("step=dress owner=not-kept reason=%r", str(error))
        files.dress(anonymous)


def rehearse(files: Files, directory: str, wanted: Iterable[Attributes], owner: str) -> None:
    """Try on an empty directory what will have to be allowed later, before anything is written. Raises Refused."""
    for attributes in dict.fromkeys(wanted):
        try:
            dress(files, {directory: attributes}, owner)
        except NoPermission as error:
            raise Refused(
                f"the attributes of its files cannot be kept: {error}",
                next="run as their owner or as the superuser, or set owner: try (keep what is allowed) or owner: ignore",
            ) from error
