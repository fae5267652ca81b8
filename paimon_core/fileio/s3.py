"""Options for S3 under the names of Hadoop and Paimon, translated to arguments of s3fs.

The prefixes ``s3.``, ``s3a.`` and ``fs.s3a.`` are equivalent. After the prefix, dots and dashes are equivalent, as in
Paimon's Java engine: ``s3.access-key`` is ``fs.s3a.access.key``. A leading ``spark.hadoop.`` is dropped. Names of s3fs
(``key``, ``endpoint_url``, ``client_kwargs`` ...) are passed on. Without credentials, s3fs searches the usual places:
environment, profile, container, instance.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.exclusive import put_if_absent
from paimon_core.fileio.store import Store
from paimon_core.fileio.store_options import Kind, OptionNames, converted, flag, url_of

_PREFIXES = ("fs.s3a.", "fs.s3n.", "fs.s3.", "s3a.", "s3n.", "s3.")
_NAMES = {
    "endpoint": "endpoint",
    "endpoint.region": "region",
    "region": "region",
    "access.key": "key",
    "access.key.id": "key",
    "accesskeyid": "key",
    "secret.key": "secret",
    "secret.access.key": "secret",
    "accesskeysecret": "secret",
    "session.token": "token",
    "securitytoken": "token",
    "path.style.access": "path_style",
    "connection.ssl.enabled": "ssl",
    "aws.credentials.provider": "provider",
    "requester.pays.enabled": "requester_pays",
    "assumed.role.arn": "role_arn",
    "assumed.role.session.name": "role_session",
    "assumed.role.session.duration": "role_duration",
    "assumed.role.external.id": "role_external_id",
    "assumed.role.policy": "role_policy",
    "assumed.role.sts.endpoint": "sts_endpoint",
    "assumed.role.sts.endpoint.region": "sts_region",
    "encryption.algorithm": "encryption",
    "encryption.key": "encryption_key",
    "server.side.encryption.algorithm": "encryption",
    "server.side.encryption.key": "encryption_key",
}
_PROVIDERS = (
    *("Anonymous", "SimpleAWS", "TemporaryAWS", "EnvironmentVariable", "Profile", "InstanceProfile", "IAMInstance"),
    *("Container", "WebIdentity", "DefaultAWS", "DefaultCredentials", "StaticCredentials", "AssumedRole"),
)
"""Parts of the names of providers of credentials that s3fs replaces: the usual places, and those of options."""
_ENCRYPTIONS = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
_SESSION = "paimon"
# Options that only tune Hadoop: accepted without effect.
_TUNING = re.compile(
    r"(attempts|block\.size|buffer|change|committer|connection|create|directory|downgrade|etag|executor|experimental|"
    r"fast|impl|input|list|max|multiobjectdelete|multipart|optimized|paging|performance|readahead|retry|socket|threads|"
    r"user\.agent|vectored)(\.|$)"
)
_OPTIONS: Final = OptionNames(
    title="S3",
    prefixes=_PREFIXES,
    shown="s3.",
    names=_NAMES,
    tuning=_TUNING,
    arguments=None,
    client="s3fs",
)
_ARGUMENTS: Final[dict[str, Kind]] = {
    **dict.fromkeys(
        ("anon", "use_ssl", "requester_pays", "version_aware", "cache_regions", "default_fill_cache"), "flag"
    ),
    **dict.fromkeys(("default_block_size", "max_concurrency"), "number"),
    **dict.fromkeys(("client_kwargs", "config_kwargs", "s3_additional_kwargs"), "object"),
}
"""The arguments of s3fs that are no texts."""


def s3_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``s3fs.S3FileSystem``. InvalidInputError omits the value of a wrong option."""
    own, settings = _OPTIONS.split(options)
    own = {key: converted(key, value, _ARGUMENTS.get(key, "text")) for key, value in own.items()}
    client = dict(own.pop("client_kwargs", None) or {})
    config = dict(own.pop("config_kwargs", None) or {})
    if "endpoint" in settings:
        own.setdefault("endpoint_url", url_of(settings["endpoint"], flag(settings.get("ssl", "true"), "ssl")))
    if "region" in settings:
        client.setdefault("region_name", settings["region"])
    if flag(settings.get("path_style", "false"), "path.style.access"):
        config["s3"] = {"addressing_style": "path", **config.get("s3", {})}
    own |= {name: value for name, value in _credentials(settings).items() if name not in own}
    encryption = _encryption(settings)
    if encryption:
        own["s3_additional_kwargs"] = {**encryption, **(own.get("s3_additional_kwargs") or {})}
    if "requester_pays" in settings:
        own.setdefault("requester_pays", flag(settings["requester_pays"], "requester.pays.enabled"))
    if client:
        own["client_kwargs"] = client
    if config:
        own["config_kwargs"] = config
    return {**own, "use_listings_cache": False}


def _credentials(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for the credentials that the settings name."""
    provider = str(settings.get("provider", ""))
    unknown = [name for name in provider.split(",") if name.strip() and not any(part in name for part in _PROVIDERS)]
    if unknown:
        raise InvalidInputError(
            f"the providers of fs.s3a.aws.credentials.provider are not all supported; accepted: names with one of "
            f"{', '.join(_PROVIDERS)}"
        )
    found = {name: settings[name] for name in ("key", "secret", "token") if name in settings}
    if "Anonymous" in provider:
        found["anon"] = True
    if "role_arn" in settings and (not provider or "AssumedRole" in provider):
        found |= _role(settings)
    return found


def _role(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `s3_client.RoleFileSystem` that assume a role."""
    role = {"RoleArn": settings["role_arn"], "RoleSessionName": settings.get("role_session", _SESSION)}
    if "role_duration" in settings:
        role["DurationSeconds"] = _seconds(str(settings["role_duration"]))
    for setting, name in (("role_external_id", "ExternalId"), ("role_policy", "Policy")):
        if setting in settings:
            role[name] = settings[setting]
    sts = {"region_name": settings.get("sts_region", settings.get("region"))}
    if "sts_endpoint" in settings:
        sts["endpoint_url"] = url_of(str(settings["sts_endpoint"]), True)
    return {"role": role, "sts": {name: value for name, value in sts.items() if value is not None}}


def _seconds(text: str) -> int:
    """Return the seconds of a duration of Hadoop, such as ``30m``."""
    found = re.fullmatch(r"(\d+)([smh]?)", text.strip())
    if found is None:
        raise InvalidInputError("s3.assumed.role.session.duration must be a number with s, m or h")
    return int(found[1]) * {"s": 1, "": 1, "m": 60, "h": 3600}[found[2]]


def _encryption(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of S3's requests that encrypt new objects, and decrypt objects of SSE-C."""
    algorithm, key = str(settings.get("encryption", "")).strip(), str(settings.get("encryption_key", "")).strip()
    if not algorithm:
        if key:
            raise InvalidInputError("fs.s3a.encryption.key needs fs.s3a.encryption.algorithm")
        return {}
    if algorithm == "SSE-C":
        try:
            customer = base64.b64decode(key, validate=True)
        except ValueError:
            customer = b""
        if len(customer) != 32:
            raise InvalidInputError("fs.s3a.encryption.key must be 32 bytes in base64 for SSE-C")
        names = ("SSECustomer", "CopySourceSSECustomer")
        return {
            f"{name}{part}": value for name in names for part, value in (("Algorithm", "AES256"), ("Key", customer))
        }
    if algorithm not in _ENCRYPTIONS:
        accepted = ", ".join([*_ENCRYPTIONS, "SSE-C"])
        raise InvalidInputError(f"fs.s3a.encryption.algorithm is not supported; accepted: {accepted}")
    found = {"ServerSideEncryption": _ENCRYPTIONS[algorithm]}
    return {**found, "SSEKMSKeyId": key} if key and "KMS" in algorithm else found


def is_amazon(arguments: Mapping[str, Any]) -> bool:
    """Return True if the store is Amazon S3, which honours conditional puts; other stores are tested first."""
    endpoint = arguments.get("endpoint_url") or (arguments.get("client_kwargs") or {}).get("endpoint_url")
    host = str(endpoint or "").partition("://")[2].partition("/")[0].partition(":")[0]
    return not endpoint or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


S3: Final = Store(
    title="S3",
    schemes=("s3", "s3a", "s3n"),
    same_files=True,
    options=_PREFIXES,
    own_options=True,
    arguments=s3_arguments,
    put_if_absent=put_if_absent,
    is_proven=is_amazon,
    one_client=True,
    flat=True,
    high_latency=True,
    object_store=True,
    package="pyspark-paimon[s3]",
    client="paimon_core.fileio.s3_client:RoleFileSystem",
)
