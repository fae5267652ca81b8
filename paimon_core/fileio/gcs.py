"""Google Cloud Storage: options under the names of Hadoop and Paimon, translated to arguments of gcsfs.

The prefixes ``gs.``, ``gcs.`` and ``fs.gs.`` are equivalent. Without credentials, gcsfs searches the usual places: the
default of gcloud and ``GOOGLE_APPLICATION_CREDENTIALS``, the metadata service, and at last anonymous access.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.exclusive import put_if_absent
from paimon_core.fileio.store import Store
from paimon_core.fileio.store_options import OptionNames, flag

_PREFIXES = ("fs.gs.", "gcs.", "gs.")
_NAMES = {
    "project.id": "project",
    "project": "project",
    "storage.root.url": "endpoint",
    "endpoint": "endpoint",
    "auth.type": "auth",
    "auth.service.account.enable": "service_account",
    "auth.service.account.json.keyfile": "keyfile",
    "auth.service.account.email": "client_email",
    "auth.service.account.private.key.id": "private_key_id",
    "auth.service.account.private.key": "private_key",
    "auth.client.id": "client_id",
    "auth.client.secret": "client_secret",
    "auth.refresh.token": "refresh_token",
    "auth.null.enable": "anonymous",
    "requester.pays.mode": "payer_mode",
    "requester.pays.project.id": "payer",
}
_TUNING = re.compile(
    r"(application|batch|block|bucket\.delete|client\.type|cooperative|copy|create|delegation|fadvise|fast|filesystem|"
    r"generation|glob|grpc|hierarchical|http|impl|implicit|inputstream|io|lazy|list|marker|max|metadata\.cache|metrics|"
    r"operation|outputstream|performance|reported|rewrite|status|storage\.http\.headers|storage\.service|token\.server|"
    r"trace|tracelog|working)(\.|$)"
)
_OPTIONS: Final = OptionNames(
    title="Google Cloud Storage",
    prefixes=_PREFIXES,
    shown="gs.",
    names=_NAMES,
    tuning=_TUNING,
    arguments={
        "project": "text",
        "token": "text",
        "access": "text",
        "endpoint_url": "text",
        "requester_pays": "text",
        "session_kwargs": "object",
    },
    client="gcsfs",
)
_TOKENS = {
    "APPLICATION_DEFAULT": "google_default",
    "COMPUTE_ENGINE": "cloud",
    "UNAUTHENTICATED": "anon",
}
"""The tokens of gcsfs by the values of ``fs.gs.auth.type`` that need no other option."""
_TOKEN_URI = "https://oauth2.googleapis.com/token"


def gcs_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``gcsfs.core.GCSFileSystem``. InvalidInputError omits the value of a wrong option."""
    own, settings = _OPTIONS.split(options)
    if "project" in settings:
        own.setdefault("project", settings["project"])
    if "endpoint" in settings:
        own.setdefault("endpoint_url", str(settings["endpoint"]).rstrip("/"))
    token = _token(settings)
    if token is not None:
        own.setdefault("token", token)
    elif str(own.get("token", "")).startswith("{"):
        own["token"] = json.loads(own["token"])
    payer = _payer(settings)
    if payer is not None:
        own.setdefault("requester_pays", payer)
    if str(own.get("requester_pays", "")).lower() in ("true", "false"):
        own["requester_pays"] = flag(own["requester_pays"], "requester_pays")
    return {**own, "use_listings_cache": False}


def _token(settings: Mapping[str, Any]) -> Any:
    """Return the token of gcsfs: a name, a file or credentials; `None`: the settings name none."""
    kind = str(settings.get("auth", "")).upper()
    if kind in _TOKENS:
        return _TOKENS[kind]
    if kind == "USER_CREDENTIALS":
        names = ("client_id", "client_secret", "refresh_token")
        _require(settings, names, "gs.auth.type USER_CREDENTIALS")
        return {"type": "authorized_user", **{name: settings[name] for name in names}}
    if kind not in ("", "SERVICE_ACCOUNT_JSON_KEYFILE"):
        accepted = ", ".join([*_TOKENS, "SERVICE_ACCOUNT_JSON_KEYFILE", "USER_CREDENTIALS"])
        raise InvalidInputError(f"gs.auth.type {kind} is not supported; accepted: {accepted}")
    if kind or "keyfile" in settings:
        _require(settings, ("keyfile",), "gs.auth.type SERVICE_ACCOUNT_JSON_KEYFILE")
        return settings["keyfile"]
    if "private_key" in settings or "client_email" in settings:
        names = ("client_email", "private_key_id", "private_key")
        _require(settings, names, "a service account")
        account = {name: str(settings[name]).replace("\\n", "\n") for name in names}
        return {"type": "service_account", "token_uri": _TOKEN_URI, **account}
    return "anon" if flag(settings.get("anonymous", "false"), "gs.auth.null.enable") else None


def _payer(settings: Mapping[str, Any]) -> Any:
    """Return the project that pays for requests, or True; `None`: the owner of the bucket pays."""
    mode = str(settings.get("payer_mode", "AUTO" if "payer" in settings else "DISABLED")).upper()
    if mode not in ("AUTO", "ENABLED", "DISABLED"):
        raise InvalidInputError(f"gs.requester.pays.mode {mode} is not supported; accepted: AUTO, ENABLED, DISABLED")
    return None if mode == "DISABLED" else settings.get("payer", True)


def _require(settings: Mapping[str, Any], names: tuple[str, ...], user: str) -> None:
    missing = [name for name in names if name not in settings]
    if missing:
        shown = [next(f"gs.{key}" for key, name in _NAMES.items() if name == lacked) for lacked in missing]
        raise InvalidInputError(f"{user} needs {', '.join(shown)}")


def create_object(filesystem: Any, path: str, data: bytes) -> bool:
    """Create an object with ``ifGenerationMatch=0``; return False if the key is taken, as `exclusive.put_if_absent`.

    Older versions of gcsfs raise an error of their own for 412, which is not an OSError.
    """
    try:
        return put_if_absent(filesystem, path, data)
    except Exception as error:
        if str(getattr(error, "code", "")) == "412":
            return False
        raise


GCS: Final = Store(
    title="Google Cloud Storage",
    schemes=("gs", "gcs"),
    same_files=True,
    options=_PREFIXES,
    own_options=True,
    arguments=gcs_arguments,
    put_if_absent=create_object,
    one_client=True,
    flat=True,
    high_latency=True,
    object_store=True,
    package="pyspark-paimon[gcs]",
    client="paimon_core.fileio.gcs_client:GcsFileSystem",
)
