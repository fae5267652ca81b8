"""Options for S3 under the names of Hadoop and Paimon, translated to arguments of s3fs.

The prefixes ``s3.``, ``s3a.`` and ``fs.s3a.`` are equivalent. After the prefix, dots and dashes are equivalent, as in
Paimon's Java engine: ``s3.access-key`` is ``fs.s3a.access.key``. A leading ``spark.hadoop.`` is dropped. Names of s3fs
(``key``, ``endpoint_url``, ``client_kwargs`` ...) are passed on. Without credentials, s3fs searches the usual places:
environment, profile, container, instance.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

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
}
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
    if "Anonymous" in str(settings.get("provider", "")):
        own.setdefault("anon", True)
    if "requester_pays" in settings:
        own.setdefault("requester_pays", flag(settings["requester_pays"], "requester.pays.enabled"))
    for name in ("key", "secret", "token"):
        if name in settings:
            own.setdefault(name, settings[name])
    if client:
        own["client_kwargs"] = client
    if config:
        own["config_kwargs"] = config
    return {**own, "use_listings_cache": False}


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
    object_store=True,
    package="pyspark-paimon[s3]",
)
