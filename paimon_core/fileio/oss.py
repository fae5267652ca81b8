"""Alibaba OSS: options under the names of Hadoop and Paimon, translated to arguments of `oss_client.OssFileSystem`.

The prefixes ``oss.`` and ``fs.oss.`` are equivalent. Without credentials, the environment variables OSS_ACCESS_KEY_ID,
OSS_ACCESS_KEY_SECRET and OSS_SESSION_TOKEN are read.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.exclusive import put_if_absent
from paimon_core.fileio.store import Store
from paimon_core.fileio.store_options import OptionNames, flag, url_of

_PREFIXES = ("fs.oss.", "oss.")
_NAMES = {
    "endpoint": "endpoint",
    "accesskeyid": "key",
    "accesskeysecret": "secret",
    "securitytoken": "token",
    "region": "region",
    "connection.secure.enabled": "ssl",
    "sld.enabled": "path_style",
    "cname.enabled": "cname",
    "ram.role.url": "ram_role_url",
    "server.side.encryption": "method",
    "server.side.encryption.algorithm": "algorithm",
    "server.side.encryption.key.id": "kms_key",
    "server.side.data.encryption": "data_encryption",
}
_TUNING = re.compile(
    r"(attempts|block|buffer|connection|copy|fast|impl|max|multipart|paging|proxy\.(?!host)|threads|"
    r"upload|user\.agent)(\.|$)"
)
_OPTIONS: Final = OptionNames(
    title="Alibaba OSS",
    prefixes=_PREFIXES,
    shown="oss.",
    names=_NAMES,
    tuning=_TUNING,
    arguments={
        "endpoint": "text",
        "key": "text",
        "secret": "text",
        "token": "text",
        "region": "text",
        "ram_role_url": "text",
        "path_style": "flag",
        "cname": "flag",
    },
    client="this engine",
)
_METHODS = ("AES256", "KMS", "SM4")
_SSE = "x-oss-server-side-encryption"


def oss_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `oss_client.OssFileSystem`. InvalidInputError omits the value of a wrong option."""
    own, settings = _OPTIONS.split(options)
    endpoint = own.get("endpoint") or settings.get("endpoint") or os.environ.get("OSS_ENDPOINT")
    if not endpoint:
        raise InvalidInputError("Alibaba OSS needs the option oss.endpoint, such as oss-cn-hangzhou.aliyuncs.com")
    own["endpoint"] = url_of(str(endpoint), flag(settings.get("ssl", "true"), "oss.connection.secure.enabled"))
    for name in ("key", "secret", "token", "region", "ram_role_url"):
        if name in settings:
            own.setdefault(name, settings[name])
    for name in ("path_style", "cname"):
        if name in settings:
            own.setdefault(name, flag(settings[name], f"oss.{'sld' if name == 'path_style' else name}.enabled"))
    headers = _encryption(settings)
    return {**own, "headers": headers} if headers else own


def _encryption(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers with which OSS encrypts new objects."""
    given = {name: str(settings[name]).strip() for name in ("method", "kms_key", "data_encryption") if name in settings}
    if not given:
        algorithm = str(settings.get("algorithm", "")).strip()
        return {_SSE: algorithm} if algorithm else {}
    if not all(given.values()):
        raise InvalidInputError("an option oss.server-side-encryption is blank")
    method = given.get("method", "KMS").upper()
    if method not in _METHODS:
        raise InvalidInputError(f"oss.server-side-encryption must be one of {', '.join(_METHODS)}")
    if method != "KMS" and len(given) > 1:
        raise InvalidInputError("a key id and oss.server-side-data-encryption require oss.server-side-encryption KMS")
    if given.get("data_encryption", "SM4").upper() != "SM4":
        raise InvalidInputError("oss.server-side-data-encryption must be SM4")
    headers = {_SSE: method}
    if "kms_key" in given:
        headers[f"{_SSE}-key-id"] = given["kms_key"]
    if "data_encryption" in given:
        headers["x-oss-server-side-data-encryption"] = "SM4"
    return headers


def _is_proven(arguments: Mapping[str, Any]) -> bool:
    """Return False: OSS ignores the condition in buckets with versioning, so the first commit tests the bucket."""
    return False


OSS: Final = Store(
    title="Alibaba OSS",
    schemes=("oss",),
    options=_PREFIXES,
    own_options=True,
    arguments=oss_arguments,
    put_if_absent=put_if_absent,
    is_proven=_is_proven,
    one_client=True,
    flat=True,
    high_latency=True,
    object_store=True,
    package="pyspark-paimon[oss]",
    client="paimon_core.fileio.oss_client:OssFileSystem",
)
