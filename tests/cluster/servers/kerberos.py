"""An MIT KDC with its own database: principals, keytabs, and tickets for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Dict, Iterable, List, Optional

from cluster.servers.artifacts import find_program
from cluster.servers.layout import REALM, SERVICES, USERS, Layout
from cluster.servers.process import Server

KRB5_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  dns_canonicalize_hostname = false
  # Java reads answers over UDP only partly; over TCP it reads all.
  udp_preference_limit = 1
  ticket_lifetime = 24h
  renew_lifetime = 7d
  forwardable = true
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""

KDC_CONF = """\
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {home}/principal
    key_stash_file = {home}/stash
    acl_file = {home}/kadm5.acl
    max_life = 24h
    max_renewable_life = 7d
  }}
[logging]
  kdc = STDERR
  admin_server = STDERR
"""


def kerberos_environment(layout: Layout) -> Dict[str, str]:
    """The environment for MIT Kerberos programs."""
    return {"KRB5_CONFIG": str(layout.krb5_conf), "KRB5_KDC_PROFILE": str(layout.run / "kdc" / "kdc.conf")}


def make_kdc(layout: Layout) -> Server:
    """Create the database and the keytabs; does not start the server."""
    home = layout.run / "kdc"
    home.mkdir(exist_ok=True)
    layout.krb5_conf.write_text(KRB5_CONF.format(realm=REALM, port=layout.ports["kdc"]))
    (home / "kdc.conf").write_text(KDC_CONF.format(realm=REALM, port=layout.ports["kdc"], home=home))
    (home / "kadm5.acl").write_text("")
    _run(layout, [find_program("kdb5_util"), "create", "-s", "-r", REALM, "-P", "not-a-secret"])
    add_principals(layout, [*SERVICES, *USERS])
    return Server("kdc", [find_program("krb5kdc"), "-n"], r"commencing operation", kerberos_environment(layout))


def add_principals(layout: Layout, names: Iterable[str], max_life: Optional[str] = None) -> None:
    """Create principals, each with a keytab; services get HTTP's key in it too. `max_life`: such as `2m`."""
    commands: List[str] = []
    for name in names:
        life = f'-maxlife "{max_life}" -maxrenewlife "{max_life}" ' if max_life else ""
        commands.append(f"addprinc -randkey {life}{name}")
        commands.append(f"ktadd -norandkey -k {layout.keytab(name)} {name}")
    # SPNEGO for each server's web pages uses HTTP/localhost from that server's own keytab.
    for name in SERVICES:
        if "HTTP/localhost" in names and not name.startswith("HTTP"):
            commands.append(f"ktadd -norandkey -k {layout.keytab(name)} HTTP/localhost")
    _run(layout, [find_program("kadmin.local"), "-r", REALM], "\n".join(commands) + "\n")
    for name in names:
        if not layout.keytab(name).exists():
            raise RuntimeError(f"kadmin.local made no keytab for {name}")


def get_ticket(layout: Layout, principal: str, cache: Path, lifetime: Optional[str] = None) -> None:
    """kinit from the principal's keytab into a cache file. `lifetime`: such as `90s`, after which nobody can renew it."""
    # Hadoop renews a renewable ticket by itself, before it expires.
    words = ["-l", lifetime, "-r", lifetime] if lifetime else []
    _run(layout, [find_program("kinit"), *words, "-c", str(cache), "-k", "-t", str(layout.keytab(principal)), f"{principal}@{REALM}"])


def _run(layout: Layout, command: List[str], text: str = "") -> None:
    result = subprocess.run(
        command, check=False, input=text, text=True, capture_output=True, env={**os.environ, **kerberos_environment(layout)}
    )
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {result.stderr.strip()}")
