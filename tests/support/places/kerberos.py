"""A Kerberos server (MIT) as an ordinary process, with one realm and a keytab for each principal."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers import free_port, listens, server

REALM = "PLACES.TEST"
SERVICE = f"hdfs/localhost@{REALM}"
"""The principal of the name node and of the data node."""
_CLIENTS = """[libdefaults]
 default_realm = {realm}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
_SERVER = """[kdcdefaults]
 kdc_ports = {port}
 kdc_tcp_ports = {port}
[realms]
 {realm} = {{
  database_name = {directory}/principals
  key_stash_file = {directory}/stash
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
"""


@dataclass(frozen=True, slots=True)
class Kerberos:
    """A running server and its files."""

    directory: Path

    @property
    def configuration(self) -> Path:
        """The file for the variable ``KRB5_CONFIG``, and for the system property ``java.security.krb5.conf``."""
        return self.directory / "krb5.conf"

    def keytab(self, user: str) -> Path:
        """Return the file with the key of a user, such as "anna"."""
        return self.directory / f"{user}.keytab"

    def login(self, user: str, tickets: Path) -> None:
        """Get a ticket for a user, into a file for the variable ``KRB5CCNAME``."""
        self._run("kinit", "-c", str(tickets), "-kt", str(self.keytab(user)), f"{user}@{REALM}")

    def add(self, keytab: str, *principals: str) -> None:
        """Add principals with random keys, which one keytab holds."""
        for principal in principals:
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(self.keytab(keytab)), *principals)

    def create_database(self) -> None:
        """Create the database of the realm."""
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def environment(self) -> dict[str, str]:
        """Return the variables that programs of Kerberos need."""
        return {"KRB5_CONFIG": str(self.configuration), "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}

    def _run(self, *command: str) -> None:
        environment = {**os.environ, **self.environment()}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"


@contextmanager
def kerberos(directory: Path) -> Iterator[Kerberos]:
    """Run a server with the principals of HDFS (keytab "hdfs"), and the users anna and berta.

    Skips the test if the programs are missing.
    """
    for program in ("krb5kdc", "kadmin.local", "kinit"):
        if shutil.which(program) is None:
            pytest.skip("Kerberos cannot be installed: install the packages krb5-kdc, krb5-admin-server and krb5-user")
    found, port = Kerberos(directory), free_port()
    found.configuration.write_text(_CLIENTS.format(realm=REALM, port=port))
    (directory / "kdc.conf").write_text(_SERVER.format(realm=REALM, port=port, directory=directory))
    found.create_database()
    found.add("hdfs", SERVICE, f"HTTP/localhost@{REALM}")
    for user in ("anna", "berta"):
        found.add(user, user)
    with server(["krb5kdc", "-n"], directory / "krb5kdc.log", listens(port), environment=found.environment()):
        yield found
