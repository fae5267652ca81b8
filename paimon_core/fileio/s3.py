"""S3 and its like: what users write for Hadoop or Paimon, said in s3fs's words.

``s3.``, ``s3a.`` and ``fs.s3a.`` mean the same, and so do dots and dashes behind the prefix, as with Paimon's
Java engine: ``s3.access-key`` is ``fs.s3a.access.key``. ``spark.hadoop.`` in front is dropped. s3fs's own names
(``key``, ``endpoint_url``, ``client_kwargs`` ...) pass through. Without any credentials the usual chain is
asked: environment, profile, container, instance.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from paimon_core.errors import InvalidInputError

SCHEMES = frozenset({"s3", "s3a", "s3n"})

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
# How hard Hadoop works, not what it does: without meaning here, harmless to accept.
_TUNING = re.compile(
    r"(attempts|block\.size|buffer|change|committer|connection|create|directory|downgrade|etag|executor|experimental|"
    r"fast|impl|input|list|max|multiobjectdelete|multipart|optimized|paging|performance|readahead|retry|socket|threads|"
    r"user\.agent|vectored)(\.|$)"
)
_FLAGS = ("anon", "use_ssl", "requester_pays", "version_aware", "cache_regions", "default_fill_cache")
_NUMBERS = ("default_block_size", "max_concurrency")
_OBJECTS = ("client_kwargs", "config_kwargs", "s3_additional_kwargs")


def s3_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``s3fs.S3FileSystem``; InvalidInputError names the option it cannot honour (never its value)."""
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


def is_proven(arguments: Mapping[str, Any]) -> bool:
    """Whether the store is Amazon's, known to honour conditional puts; any other endpoint must show it."""
    endpoint = arguments.get("endpoint_url") or (arguments.get("client_kwargs") or {}).get("endpoint_url")
    host = str(endpoint or "").partition("://")[2].partition("/")[0].partition(":")[0]
    return not endpoint or host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def is_s3_option(key: str) -> bool:
    """Whether the option speaks of S3 by its prefix, and so means nothing to other stores."""
    return key.lower().removeprefix("spark.hadoop.").startswith(_PREFIXES)


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments in s3fs's own words, settings in ours)."""
    own: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, value in options.items():
        plain = key.lower().removeprefix("spark.hadoop.")
        prefix = next((one for one in _PREFIXES if plain.startswith(one)), None)
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
    """Options often arrive as text; s3fs wants flags, numbers and dictionaries."""
    if not isinstance(value, str):
        return value
    if key in _FLAGS:
        return _flag(value, key)
    try:
        if key in _NUMBERS:
            return int(value)
        return json.loads(value) if key in _OBJECTS else value
    except ValueError:
        wanted = "a number" if key in _NUMBERS else "a JSON object"
        raise InvalidInputError(f"storage option {key!r} must be {wanted}") from None


def _flag(value: Any, key: str) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidInputError(f"storage option {key!r} must be true or false")
    return text == "true"


def _endpoint(text: str, ssl: bool) -> str:
    return text if "://" in text else f"{'https' if ssl else 'http'}://{text}"


def _accepted() -> str:
    return ", ".join(f"s3.{name}" for name in _NAMES) + ", or s3fs's own argument names"
