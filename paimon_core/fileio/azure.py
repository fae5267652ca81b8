"""Azure Blob Storage and ADLS: options under the names of Hadoop and Paimon, for `azure_client.AzureFileSystem`.

The prefixes ``azure.``, ``fs.azure.``, ``fs.wasb.``, ``abfs.`` and ``abfss.`` are equivalent. An option may name an
account at its end, as ``fs.azure.account.key.ACCOUNT.dfs.core.windows.net`` does; then it is for this account only.
Without credentials, the usual places are searched: the variables AZURE_STORAGE_..., then DefaultAzureCredential
(environment, workload identity, managed identity, command line).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.exclusive import put_if_absent
from paimon_core.fileio.store import Store
from paimon_core.fileio.store_options import OptionNames

_PREFIXES = ("fs.azure.", "fs.wasb.", "azure.", "abfss.", "abfs.")
_NAMES = {
    "account.key": "account_key",
    "account.auth.type": "auth",
    "account.oauth.provider.type": "provider",
    "account.oauth2.client.id": "client_id",
    "account.oauth2.client.secret": "client_secret",
    "account.oauth2.client.endpoint": "token_endpoint",
    "account.oauth2.msi.tenant": "tenant_id",
    "account.oauth2.token.file": "token_file",
    "sas.fixed.token": "sas_token",
    "account.name": "account_name",
    "connection.string": "connection_string",
}
_TUNING = re.compile(
    r"(abfs|always|appendblob|atomic|autothrottling|block|buffered|cache|client\.(?!correlationid|ip)|cluster|create|"
    r"custom\.backoff|disable|enable|fast|flush|http|identity|impl|infinite|io|lease|list|local|max|optimize|page|"
    r"rename|readahead|read|rpc|saskey\.cacheentry|secure\.mode|selfthrottling|shellkeyprovider|skip|tracing|use|"
    r"user\.agent|write|writes)(\.|$)"
)
_ACCOUNT = re.compile(r"(?P<name>.+?)\.(?P<account>[a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.]+$")


class _AzureNames(OptionNames):
    """Names that may end with an account: the setting is then ``setting@account``."""

    def setting_of(self, name: str) -> str | None:
        found = _ACCOUNT.match(name)
        if found is None or found["name"] not in self.names:
            return self.names.get(name)
        return f"{self.names[found['name']]}@{found['account']}"


_OPTIONS: Final = _AzureNames(
    title="Azure",
    prefixes=_PREFIXES,
    shown="azure.",
    names=_NAMES,
    tuning=_TUNING,
    arguments={
        **dict.fromkeys(
            ("account_name", "account_key", "account_host", "connection_string", "sas_token"),
            "text",
        ),
        **dict.fromkeys(("client_id", "client_secret", "tenant_id"), "text"),
        "anon": "flag",
        "max_concurrency": "number",
    },
    client="adlfs",
)
_PROVIDERS = {
    "clientcredstokenprovider": "secret",
    "msitokenprovider": "managed",
    "workloadidentitytokenprovider": "workload",
}
"""The kinds of OAuth credentials by the last part of the name of Hadoop's class."""


def azure_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `azure_client.AzureFileSystem`. InvalidInputError omits the value of a wrong option."""
    own, settings = _OPTIONS.split(options)
    accounts: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        setting, _, account = name.partition("@")
        accounts.setdefault(account, {})[setting] = value
    general = accounts.pop("", {})
    found = {account: _credentials({**general, **given}) for account, given in accounts.items()}
    own = {**_credentials(general), **own}
    return {**own, **({"accounts": found} if found else {}), "use_listings_cache": False}


def _credentials(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the client for the settings of one account."""
    auth = str(settings.pop("auth", "")).lower()
    provider = str(settings.pop("provider", "")).rpartition(".")[2].lower()
    endpoint = settings.pop("token_endpoint", None)
    if auth not in ("", "sharedkey", "oauth", "sas"):
        raise InvalidInputError("azure.account.auth.type must be SharedKey, OAuth or SAS")
    if provider and provider not in _PROVIDERS:
        raise InvalidInputError(
            "azure.account.oauth.provider.type is not supported; accepted: the classes ClientCredsTokenProvider, "
            "MsiTokenProvider and WorkloadIdentityTokenProvider of Hadoop"
        )
    if endpoint is not None and "tenant_id" not in settings:
        settings["tenant_id"] = str(endpoint).partition("://")[2].split("/")[1:2][0] if "/" in str(endpoint) else ""
    kind = _PROVIDERS.get(provider, "secret" if "client_secret" in settings else None)
    chosen = {
        "sharedkey": ("account_key",),
        "sas": ("sas_token",),
        "oauth": ("client_id", "client_secret", "tenant_id", "token_file"),
        "": tuple(settings),
    }[auth]
    general = ("account_name", "connection_string")
    named = {name: settings.pop(name) for name in general if name in settings}
    found = {name: value for name, value in settings.items() if name in chosen}
    if (auth == "sharedkey" and not found) or (auth == "sas" and not found):
        raise InvalidInputError(f"azure.account.auth.type {auth} needs its credential: the key or the fixed token")
    if auth == "oauth" or provider:
        if kind is None:
            raise InvalidInputError("azure.account.auth.type OAuth needs azure.account.oauth.provider.type")
        if kind == "secret" and not {"client_id", "client_secret", "tenant_id"} <= found.keys():
            raise InvalidInputError(
                "ClientCredsTokenProvider needs azure.account.oauth2.client.id, .client.secret and .client.endpoint"
            )
        found["identity"] = kind
    return {**found, **named}


AZURE: Final = Store(
    title="Azure",
    schemes=("abfs", "abfss", "az", "wasb", "wasbs"),
    options=_PREFIXES,
    own_options=True,
    arguments=azure_arguments,
    put_if_absent=put_if_absent,
    flat=True,
    high_latency=True,
    object_store=True,
    package="pyspark-paimon[azure]",
    client="paimon_core.fileio.azure_client:AzureFileSystem",
)
