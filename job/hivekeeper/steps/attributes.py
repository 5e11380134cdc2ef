"""Give new directories the owner, group, mode, ACLs and policies of those they will replace.

Touches only directories below the run's own.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Iterable, Mapping

from hivekeeper.errors import Refused
from hivekeeper.model import Attributes
from hivekeeper.plan import file_rights
from hivekeeper.ports import Files, NoPermission
from hivekeeper.reasons import Code

log = logging.getLogger(__name__)


def dress(files: Files, wanted: Mapping[str, Attributes], owner: str) -> None:
    """Give directories their attributes. `owner` says how much the owner matters: require, try or ignore.

    On HDFS only a superuser may change a file's owner, but the owner may change its group to any group they belong to, and
    group-based readers of the table depend on that. Raises NoPermission.
    """
    keepable = {"require": (keep_all,), "try": (keep_all, keep_group, keep_neither), "ignore": (keep_neither,)}[owner]
    for keep in keepable:
        try:
            files.dress({path: keep(attributes) for path, attributes in wanted.items()})
            return
        except NoPermission as error:
            if keep is keepable[-1]:
                raise
            log.warning("step=dress owner=not-kept reason=%r", str(error))


def keep_all(wanted: Attributes) -> Attributes:
    return wanted


def keep_group(wanted: Attributes) -> Attributes:
    return replace(wanted, owner="", file_owner="")


def keep_neither(wanted: Attributes) -> Attributes:
    return replace(wanted, owner="", group="", file_owner="", file_group="")


def rehearse(files: Files, directory: str, wanted: Iterable[Attributes], owner: str) -> None:
    """Set the attributes on an empty directory, to find missing rights before anything is written. Raises Refused."""
    for attributes in dict.fromkeys(wanted):
        try:
            of_files = file_rights.with_owner_of_files(attributes)
            if of_files is not None:
                dress(files, {directory: of_files}, owner)
            dress(files, {directory: attributes}, owner)
        except NoPermission as error:
            raise Refused(
                f"the attributes of its files cannot be kept: {error}",
                code=Code.ATTRIBUTES_NOT_KEPT,
                next="run as their owner or as the superuser, or set owner: try (keep what is allowed) or owner: ignore",
            ) from error
