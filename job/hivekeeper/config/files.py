"""Finds and reads the configuration files on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List, Mapping, Optional, Sequence

from hivekeeper.config.sources import CARRIED, CONF_DIR, Source, wrong

SITE = "site.yaml"
LOG4J2 = "log4j2.properties"


def read_files(environ: Mapping[str, str], named: Sequence[str]) -> List[Source]:
    """The site file in HIVEKEEPER_CONF_DIR, if there is one, then the files named with -c, which must exist."""
    if environ.get(CARRIED):
        return []
    site = find_site(environ)
    return [Source(str(path), _read_text(path)) for path in [*([site] if site else []), *map(Path, named)]]


def find_files(environ: Mapping[str, str], named: Sequence[str]) -> List[str]:
    """All local files that decide how a run is started: the configuration files, and the site's log4j2.properties. Those of the site may
    be missing; who else could put them there counts all the same, as they are looked for again when they are read.
    """
    if environ.get(CARRIED):
        return []
    directory = environ.get(CONF_DIR)
    of_site = [str(Path(directory, name)) for name in (SITE, LOG4J2)] if directory else []
    return [*of_site, *named]


def find_site(environ: Mapping[str, str]) -> Optional[Path]:
    """The site file in HIVEKEEPER_CONF_DIR, if there is one. A link that leads nowhere, or what cannot be looked at, is left to its reader:
    a run without the site's rules would keep fewer backups.
    """
    directory = environ.get(CONF_DIR)
    if not directory:
        return None
    path = Path(directory, SITE)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass
    return path


def find_log4j2(environ: Mapping[str, str]) -> Path:
    """The site's log4j2.properties in HIVEKEEPER_CONF_DIR, else our own."""
    of_site = Path(environ.get(CONF_DIR) or "", LOG4J2)
    return of_site if environ.get(CONF_DIR) and of_site.exists() else _packaged(LOG4J2)


def _packaged(name: str) -> Path:
    """A file shipped with the package; in the source tree it is in conf/."""
    installed = Path(__file__).parents[1] / name
    return installed if installed.exists() else Path(__file__).parents[3] / "conf" / name


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise wrong(f"{path}: not a text in UTF-8") from None
    except OSError as error:
        raise wrong(f"{path}: the configuration file cannot be read: {error.strerror}", "check the path and its permissions") from None
