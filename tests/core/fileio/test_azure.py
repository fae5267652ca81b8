"""Azure: options of Hadoop and Paimon as arguments of adlfs, for one account or for all, and accounts of paths."""

import asyncio
from types import SimpleNamespace

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.azure import azure_arguments
from paimon_core.fileio.fileio import FileIO

azure_client = pytest.importorskip("paimon_core.fileio.azure_client", reason="the extra azure is not installed")
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError  # noqa: E402 - after the check

PLAIN = {"use_listings_cache": False}
HADOOP = "org.apache.hadoop.fs.azurebfs.oauth2."
CONNECTION = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VzYW1l;BlobEndpoint=http://127.0.0.1:9/a;"


@pytest.mark.parametrize("prefix", ["azure.", "fs.azure.", "fs.wasb.", "spark.hadoop.fs.azure.", "abfss."])
def test_every_prefix_means_same(prefix):
    assert azure_arguments({f"{prefix}account.key": "k"}) == {"account_key": "k", **PLAIN}


def test_options_of_one_account():
    options = {
        "fs.azure.account.key.first.dfs.core.windows.net": "k1",
        "fs.azure.account.key.second.blob.core.windows.net": "k2",
        "azure.sas.fixed.token": "s",
    }
    got = azure_arguments(options)
    assert got["sas_token"] == "s"
    assert got["accounts"]["first"] == {"account_key": "k1", "sas_token": "s"}
    assert got["accounts"]["second"]["account_key"] == "k2"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"auth.type": "SharedKey", "key": "k"}, {"account_key": "k"}),
        (
            {
                "auth.type": "OAuth",
                "oauth.provider.type": HADOOP + "ClientCredsTokenProvider",
                "oauth2.client.id": "c",
                "oauth2.client.secret": "s",
                "oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            },
            {"client_id": "c", "client_secret": "s", "tenant_id": "t", "identity": "secret"},
        ),
        (
            {"auth.type": "OAuth", "oauth.provider.type": HADOOP + "MsiTokenProvider", "oauth2.client.id": "c"},
            {"client_id": "c", "identity": "managed"},
        ),
        (
            {
                "auth.type": "OAuth",
                "oauth.provider.type": HADOOP + "WorkloadIdentityTokenProvider",
                "oauth2.client.id": "c",
                "oauth2.msi.tenant": "t",
                "oauth2.token.file": "/f",
            },
            {"client_id": "c", "tenant_id": "t", "token_file": "/f", "identity": "workload"},
        ),
    ],
)
def test_kinds_of_credentials(options, expected):
    given = {f"fs.azure.account.{name}": text for name, text in options.items()}
    assert azure_arguments(given) == {**expected, **PLAIN}


def test_tuning_of_hadoop_is_ignored():
    assert azure_arguments({"fs.azure.io.retry.max.retries": "1", "fs.azure.read.request.size": "9"}) == PLAIN


@pytest.mark.parametrize(
    "key",
    [
        *("azure.acount.key", "fs.azure.sas.token.provider.type", "key", "azure.account.auth.type"),
        *("fs.azure.account.oauth.provider.type", "fs.azure.encryption.encoded.client-provided-key", "max_concurrency"),
    ],
)
def test_unsupported_settings_are_refused_by_name_without_their_value(key):
    with pytest.raises(InvalidInputError) as caught:
        azure_arguments({key: "sesame"})
    assert key.removeprefix("fs.") in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "key", "account", "host"),
    [
        ("abfss://c@a.dfs.core.windows.net/t/f", "c/t/f", "a", "a.blob.core.windows.net"),
        ("abfs://c@a.dfs.core.chinacloudapi.cn/t#1?", "c/t#1?", "a", "a.blob.core.chinacloudapi.cn"),
        ("wasbs://c@a.blob.core.windows.net/", "c", "a", "a.blob.core.windows.net"),
        ("az://c/t/f", "c/t/f", None, None),
        ("c/t/f", "c/t/f", None, None),
    ],
)
def test_paths_name_container_account_and_host(path, key, account, host):
    assert azure_client.AzureFileSystem._strip_protocol(path) == key
    named = azure_client.AzureFileSystem._get_kwargs_from_urls(path)
    assert (named.get("account_name"), named.get("account_host")) == (account, host)


def test_account_of_path_has_own_credentials():
    options = {"fs.azure.account.key.a.dfs.core.windows.net": "YQ==", "azure.account.key": "Yg=="}
    keys = {}
    for account in ("a", "b"):
        io = FileIO.of(f"abfss://c@{account}.dfs.core.windows.net/t", options)
        filesystem = io._storage(io._url)._fs
        keys[account] = filesystem.account_key
        assert filesystem.account_url == f"https://{account}.blob.core.windows.net"
    assert keys == {"a": "YQ==", "b": "Yg=="}


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("abfss://c@other.dfs.core.windows.net/t", {"connection_string": CONNECTION}, "account other"),
        ("az://c/t", {}, "no account is named"),
    ],
)
def test_path_of_another_account_is_refused(path, options, message, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    with pytest.raises(InvalidInputError, match=message) as caught:
        FileIO.of(path, options).check_can_commit()
    assert "c2VzYW1l" not in str(caught.value)


def test_every_kind_of_failure_is_retried_five_times():
    policy = azure_client.ExponentialRetry(**azure_client._RETRIES)
    assert {getattr(policy, f"{kind}_retries") for kind in ("total", "connect", "read", "status")} == {5}


class Container:
    """Blobs of a container in memory; directories as in a hierarchical namespace."""

    def __init__(self, names, directories, refused=()):
        self.names, self.directories, self.refused = set(names), set(directories), refused
        self.running = self.most = 0

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        pass

    async def list_blobs(self, name_starts_with, include):
        for name in sorted(self.names | self.directories):
            if name.startswith(name_starts_with or ""):
                yield SimpleNamespace(
                    name=name, metadata={"hdi_isfolder": "true"} if name in self.directories else None
                )

    async def delete_blob(self, name):
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if name in self.refused:
            raise HttpResponseError("busy")
        if name not in self.names | self.directories:
            raise ResourceNotFoundError(name)
        assert not any(other.startswith(f"{name}/") for other in self.names | self.directories), "not empty"
        self.names.discard(name)
        self.directories.discard(name)


def client_of(container):
    found = azure_client.AzureFileSystem(connection_string=CONNECTION, skip_instance_cache=True)
    found.service_client = SimpleNamespace(get_container_client=lambda name: container, close=container.__aexit__)
    return found


def test_directory_is_deleted_a_few_blobs_at_a_time():
    files = {f"t/d/f{number}" for number in range(200)}
    container = Container({*files, "t2/f"}, {"t", "t/d", "t/d/e"})
    client_of(container).rm("box/t", recursive=True)
    assert (container.names, container.directories) == ({"t2/f"}, set())
    assert container.most == azure_client._DELETED_AT_ONCE
    client_of(container).rm("box/missing", recursive=True)


def test_refused_deletion_is_not_hidden_by_a_missing_blob():
    container = Container({"t/f", "t/g"}, set(), refused=("t/g",))
    with pytest.raises(HttpResponseError, match="busy"):  # and the directory has no blob of its own
        client_of(container).rm("box/t", recursive=True)
