"""HDFS with Kerberos: keytabs, ticket caches, delegation tokens, and every protection of calls and data."""

import os
import subprocess
import sys

import hdfs_native
import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.fileio.fileio import FileIO
from tests.support.places.hdfs import class_path, client_settings, hdfs_server, secure_settings
from tests.support.places.kerberos import REALM, kerberos

pytestmark = [pytest.mark.places, pytest.mark.more]

SCHEMA = Schema(pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())]), primary_keys=["k"])
ROWS = pa.table({"k": range(100_000), "v": [f"{n}-{n}" for n in range(100_000)]}, SCHEMA.fields)
"""More than one packet of HDFS."""
READ = (
    "import sys; from paimon_core import Table; "
    "print(Table.open(sys.argv[1], dict(pair.split('=', 1) for pair in sys.argv[2:])).to_arrow().num_rows)"
)


@pytest.fixture(scope="module")
def realm(tmp_path_factory):
    with kerberos(tmp_path_factory.mktemp("kerberos")) as found:
        yield found


@pytest.fixture(scope="module", params=["authentication", "integrity", "privacy"])
def protection(request):
    return request.param


@pytest.fixture(scope="module")
def secure(realm, protection, tmp_path_factory):
    """The URL of an HDFS with Kerberos, where anna and berta each have a directory that the other may not enter."""
    directory = tmp_path_factory.mktemp("secure")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KRB5_CONFIG", str(realm.configuration))
        patched.setenv("KRB5CCNAME", str(directory / "no-tickets"))
        with hdfs_server(directory, secure_settings(realm, protection), realm) as (url, _):
            login = {"kerberos_principal": f"hdfs/localhost@{REALM}", "kerberos_keytab": str(realm.keytab("hdfs"))}
            superuser = hdfs_native.Client(url, client_settings(protection), **login)
            for user in ("anna", "berta"):
                superuser.mkdirs(f"/{user}", permission=0o700)
                superuser.set_owner(f"/{user}", user)
            yield url


@pytest.fixture
def by_keytab(realm, protection):
    """A function that returns the storage options of a user with a keytab."""
    return lambda user: {
        **client_settings(protection),
        "security.kerberos.login.principal": f"{user}@{REALM}",
        "security.kerberos.login.keytab": str(realm.keytab(user)),
    }


def until_written(operation, attempts=5):
    """Repeat a write as the guide advises: hdfs-native sometimes fails to write a large file if data is protected."""
    try:
        return operation()
    except OSError as error:
        if attempts == 1 or "All nodes failed for write" not in str(error):
            raise
    return until_written(operation, attempts - 1)


def written(url, user, options):
    catalog = FileSystemCatalog(f"{url}/{user}", storage_options=options)
    catalog.create_database("d", ignore_if_exists=True)
    table = catalog.create_table("d.t", SCHEMA)
    until_written(lambda: table.write(ROWS))
    table.write(ROWS.slice(0, 1))
    until_written(lambda: table.compact(full=True))
    return table


def test_keytabs_of_two_users_in_one_process(secure, by_keytab):
    tables = [written(secure, user, by_keytab(user)) for user in ("anna", "berta")]
    for table in tables:
        assert table.to_arrow().sort_by("k").equals(ROWS)
        assert table.verify().sound
    with pytest.raises(PermissionError, match="user=anna, access=EXECUTE"):
        FileSystemCatalog(f"{secure}/berta", storage_options=by_keytab("anna")).table("d.t")


def test_ticket_cache_and_delegation_token_in_a_child(secure, by_keytab, protection, realm, tmp_path):
    table = Table.create(f"{secure}/anna/u", SCHEMA, by_keytab("anna"))
    until_written(lambda: table.write(ROWS))
    tickets, token = tmp_path / "tickets", tmp_path / "token"
    realm.login("anna", tickets)
    settings = {**client_settings(protection), "fs.defaultFS": secure}

    def child(path, **environment):
        command = [sys.executable, "-c", READ, path, *(f"{name}={value}" for name, value in settings.items())]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})

    found = child(table.path, KRB5CCNAME=str(tickets))
    assert found.stdout == "100000\n", found.stderr
    fetch_token(realm, settings, tickets, token)
    by_address = table.path.replace("localhost", "127.0.0.1")  # the service that Hadoop writes into the token
    found = child(by_address, HADOOP_TOKEN_FILE_LOCATION=str(token))
    assert found.stdout == "100000\n", found.stderr
    found = child(table.path)
    assert found.returncode == 1
    assert "HDFS needs a Kerberos ticket (kinit), a keytab" in found.stderr


def fetch_token(realm, settings, tickets, target):
    """Let Hadoop fetch a delegation token, as Spark does for its executors on YARN."""
    configuration = target.parent / "conf"
    configuration.mkdir()
    fields = {**settings, "dfs.namenode.kerberos.principal": f"hdfs/localhost@{REALM}"}
    lines = [f"<property><name>{name}</name><value>{value}</value></property>" for name, value in fields.items()]
    (configuration / "core-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    program = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"
    command = ["java", "-XX:TieredStopAtLevel=1", f"-Djava.security.krb5.conf={realm.configuration}"]
    command += ["-cp", f"{configuration}:{class_path()}", program, "--renewer", "anna", str(target)]
    environment = {**os.environ, "KRB5CCNAME": str(tickets)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert target.exists(), done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["hadoop.security.authentication", "dfs.data.transfer.protection"])
def test_missing_setting_is_named(secure, by_keytab, protection, missing):
    if protection != "authentication":
        pytest.skip("the protection does not matter")
    path, options = f"{secure}/anna/f", by_keytab("anna")
    FileIO.of(path, options).write(path, b"1")
    del options[missing]
    with pytest.raises(OSError, match=f"; if .* set {missing}"):
        FileIO.of(path, options).read(path)
