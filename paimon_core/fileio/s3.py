"""Options for S3 under the names of Hadoop and Paimon, translated to arguments of s3fs.

The prefixes ``s3.``, ``s3a.`` and ``fs.s3a.`` are equivalent. After the prefix, dots and dashes are equivalent, as in
Paimon's Java engine: ``s3.access-key`` is ``fs.s3a.access.key``. A leading ``spark.hadoop.`` is dropped. Names of s3fs
(``key``, ``endpoint_url``, ``client_kwargs`` ...) are passed on. Without credentials, s3fs searches the usual places:
environment, profile, container, instance.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.exclusive import put_if_absent
from paimon_core.fileio.store import Store

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
_FLAGS = ("anon", "use_ssl", "requester_pays", "version_aware", "cache_regions", "default_fill_cache")
_NUMBERS = ("default_block_size", "max_concurrency")
_OBJECTS = ("client_kwargs", "config_kwargs", "s3_additional_kwargs")


def s3_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``s3fs.S3FileSystem``. InvalidInputError omits the value of a wrong option."""
    own, settings = _split(options)
    client = dict(own.pop("client_kwargs", None) or {})
    config = dict(own.pop("config_kwargs", None) or {})
    if "endpoint" in settings:
        own.setdefault("endpoint_url", _endpoint(settings["endpoint"], _flag(settings.get("ssl", "true"), "ssl")))
    if "region" in settings:
        client.setdefault("region_name", settings["region"])
    if _flag(settings.get("path_style", "false"), "path.style.access"):
        config["s3"] = {"addressing_style": "path", **config.get("s3", {})}
    if "Anonymous" in str(settings.get("provider", "")):
        own.setdefault("anon", True)
    if "requester_pays" in settings:
        own.setdefault("requester_pays", _flag(settings["requester_pays"], "requester.pays.enabled"))
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


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into arguments of s3fs, and settings under the names in `_NAMES`."""
    own: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, value in options.items():
        plain = key.lower().removeprefix("spark.hadoop.")
        prefix = next((prefix for prefix in _PREFIXES if plain.startswith(prefix)), None)
        if prefix is None:
            if "." in key or "-" in key:
                raise InvalidInputError(f"storage option {key!r} is not known for S3; accepted: {_accepted()}")
            own[key] = _own_value(key, value)
            continue
        name = plain.removeprefix(prefix).replace("-", ".")
        if name in _NAMES:
            settings[_NAMES[name]] = value
        elif not _TUNING.match(name):
            raise InvalidInputError(f"S3 option {key!r} is not supported; accepted: {_accepted()}")
    return own, settings


def _own_value(key: str, value: Any) -> Any:
    """Return a value in the type that s3fs requires; options are often texts. InvalidInputError names the option."""
    if not isinstance(value, str):
        return value
    if key in _FLAGS:
        return _flag(value, key)
    try:
        if key in _NUMBERS:
            return int(value)
        return json.loads(value) if key in _OBJECTS else value
    except ValueError:
        kind = "a number" if key in _NUMBERS else "a JSON object"
        raise InvalidInputError(f"storage option {key!r} must be {kind}") from None


def _flag(value: Any, key: str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidInputError(f"storage option {key!r} must be true or false")
    return text == "true"


def _endpoint(text: str, ssl: bool) -> str:
    return text if "://" in text else f"{'https' if ssl else 'http'}://{text}"


def _accepted() -> str:
    return ", ".join(f"s3.{name}" for name in _NAMES) + ", or s3fs's own argument names"


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
