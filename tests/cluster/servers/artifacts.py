"""The servers' jars and Debian programs: Maven fetches what the poms pin; .cluster/jars keeps them between runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import List, Sequence

from cluster.servers.layout import JARS

POMS = Path(__file__).resolve().parents[1]
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# Debian installs servers outside a user's PATH.
PLACES = ["/usr/sbin", "/usr/local/sbin", *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)]
PROGRAMS = {
    "mvn": "maven",
    "java": "openjdk-17-jdk-headless",
    "keytool": "openjdk-17-jdk-headless",
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
    "initdb": "postgresql",
}


class Missing(Exception):
    """Something the cluster needs is not on this machine and cannot be installed."""


def find_program(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    path = os.pathsep.join([*([f"{home}/bin"] if home else []), os.environ.get("PATH", ""), *PLACES])
    found = shutil.which(name, path=path)
    if found is None:
        raise Missing(f"{name} is not on this machine (Debian: apt-get install {PROGRAMS.get(name, name)})")
    return found


def find_missing_packages() -> List[str]:
    """Debian packages to install before a cluster can start."""
    missing = set()
    for name, package in PROGRAMS.items():
        try:
            find_program(name)
        except Missing:
            missing.add(package)
    return sorted(missing)


def install_programs() -> None:
    """Install what is missing, on a Debian where we have the rights. Raises Missing."""
    packages = find_missing_packages()
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"please install: {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        if subprocess.run(["apt-get", *words], check=False, env=environment, stdout=subprocess.DEVNULL).returncode != 0:
            raise Missing(f"apt-get {' '.join(words)} failed; please install: {' '.join(packages)}")


def fetch_jars(names: Sequence[str] = ("hadoop", "metastore"), poms: Path = POMS, jars: Path = JARS) -> None:
    """Copy the jars of these poms to directories of their names, unless they are there already. Raises Missing."""
    for name in names:
        pom, target = poms / f"pom-{name}.xml", jars / name
        mark, pins = target / "pins", hashlib.sha256(pom.read_bytes()).hexdigest()
        if mark.exists() and mark.read_text() == pins:
            continue
        shutil.rmtree(target, ignore_errors=True)
        _copy_dependencies(pom, target)
        for archive in target.glob("*.tar.gz"):
            _unpack(archive, target / "unpacked")
        mark.write_text(pins)


def _copy_dependencies(pom: Path, target: Path) -> None:
    command = [find_program("mvn"), "-q", "-B", "-f", str(pom), COPY, f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    # Of two slf4j bindings, reload4j stays.
    result = subprocess.run([*command, "-DexcludeArtifactIds=slf4j-log4j12,log4j"], check=False, capture_output=True, text=True)
    if result.returncode != 0:
        reason = "\n".join((result.stdout + result.stderr).splitlines()[-8:])
        raise Missing(f"the servers' jars cannot be fetched ({pom.name}):\n{reason}")


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as bundle:
        bundle.extractall(target)
    archive.unlink()


def unpacked_home(name: str = "metastore") -> Path:
    """The directory into which the archive that a pom names was unpacked."""
    return next((JARS / name / "unpacked").iterdir())
