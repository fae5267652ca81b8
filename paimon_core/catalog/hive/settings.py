"""The address of a Hive metastore and what a catalog stores there, from its options and the file hive-site.xml."""

import getpass
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from xml.etree import ElementTree

from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.options.parse import boolean, duration, enum

T = TypeVar("T")

_CLIENT_CLASS: Final = "org.apache.hadoop.hive.metastore.HiveMetaStoreClient"
_SITE: Final = "hive-site.xml"
_REFUSED: Final = {
    "metastore.sasl.enabled": "Kerberos: no maintained Python library speaks SASL for Thrift",
    "metastore.use.SSL": "TLS to the metastore",
    "metastore.client.auth.mode": "passwords, tokens and Kerberos for the metastore",
}
"""Properties, without the prefix ``hive.`` that Hive also accepts, and what they would switch on."""
_OFF: Final = {"", "false", "noauth"}
_PORT: Final = 9083


@dataclass(frozen=True, slots=True)
class LockSettings:
    """The time to wait for the lock of a table, in seconds. ``most_sleep``: the longest pause between two looks."""

    acquire_timeout: float = 480.0
    most_sleep: float = 8.0


@dataclass(frozen=True, slots=True)
class HiveSettings:
    """The metastore of a catalog, and what the catalog stores in it.

    ``addresses``: hosts and ports, in the order in which they are tried; ``timeout``: seconds to wait for a connection
    or an answer; ``lock_enabled``: `None`: only on object stores; ``options``: the options of the catalog; ``site``:
    the properties of hive-site.xml and the options with the prefix ``hive.``. The repr shows neither of them.
    """

    addresses: tuple[tuple[str, int], ...]
    user: str
    timeout: float = 60.0
    lock_enabled: bool | None = None
    lock: LockSettings = LockSettings()
    sync_all: bool = True
    external: bool = False
    location_in_properties: bool = False
    cascade: bool = True
    skip_statistics: bool = False
    warehouse: str = ""
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    site: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def shown(self) -> str:
        """The addresses as the text of a message."""
        return ",".join(f"thrift://{host}:{port}" for host, port in self.addresses)


def hive_settings(options: Mapping[str, str], warehouse: str = "") -> HiveSettings:
    """Return the settings that the options of a catalog choose. ``warehouse``: its directory.

    Without ``hive-conf-dir``, the environment variable HIVE_CONF_DIR names the directory of hive-site.xml. An option of
    the catalog comes before a property of the file. Raises InvalidInputError for a missing or wrong value,
    UnsupportedError for Kerberos, TLS and other classes of clients.
    """
    directory = options.get("hive-conf-dir") or os.environ.get("HIVE_CONF_DIR")
    site = {} if not directory else _read_site(directory)
    site |= {key: value for key, value in options.items() if key.startswith("hive.")}
    for name, what in _REFUSED.items():
        for key in (f"hive.{name}", name):
            if site.get(key, "").strip().lower() not in _OFF:
                raise UnsupportedError(f"property {key!r} is {site[key]!r}, but this engine does not support {what}")
    if options.get("metastore.client.class", _CLIENT_CLASS) != _CLIENT_CLASS:
        raise UnsupportedError(
            f"option 'metastore.client.class' is {options['metastore.client.class']!r}: this engine speaks Thrift to a "
            "Hive metastore, and runs no Java classes; leave it out"
        )
    if _value(options, "case-sensitive", boolean, False):
        raise UnsupportedError("option 'case-sensitive' must be 'false' here: a Hive metastore stores lower-case names")
    if options.get("lock.type", "hive") != "hive":
        raise UnsupportedError(
            f"option 'lock.type' is {options['lock.type']!r}, but a Hive catalog has the lock 'hive'"
        )
    lock = LockSettings(
        _value(options, "lock-acquire-timeout", _seconds, LockSettings().acquire_timeout),
        _value(options, "lock-check-max-sleep", _seconds, LockSettings().most_sleep),
    )
    return HiveSettings(
        addresses=_addresses(
            options.get("uri") or site.get("hive.metastore.uris") or site.get("metastore.thrift.uris")
        ),
        user=os.environ.get("HADOOP_USER_NAME") or getpass.getuser(),
        timeout=_value(site, "hive.metastore.client.socket.timeout", _seconds_by_default, 60.0),
        lock_enabled=_value(options, "lock.enabled", boolean, None),
        lock=lock,
        sync_all=_value(options, "sync-all-properties", boolean, True),
        external=_value(options, "table.type", enum("managed", "external"), "managed") == "external",
        location_in_properties=_value(options, "location-in-properties", boolean, False),
        cascade=_value(options, "alter-table-cascade", boolean, True),
        skip_statistics=_value(options, "hive.skip-update-stats", boolean, False),
        warehouse=warehouse,
        options=dict(options),
        site=site,
    )


def site_warehouse(options: Mapping[str, str]) -> str | None:
    """Return the warehouse in hive-site.xml; `None` if there is no such file or property."""
    directory = options.get("hive-conf-dir") or os.environ.get("HIVE_CONF_DIR")
    return None if not directory else _read_site(directory).get("hive.metastore.warehouse.dir")


def _read_site(directory: str) -> dict[str, str]:
    path = Path(directory) / _SITE
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}; option 'hive-conf-dir' is its directory") from error
    found = ((p.findtext("name"), p.findtext("value")) for p in root.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in found if name}


def _addresses(uris: str | None) -> tuple[tuple[str, int], ...]:
    """Parse ``thrift://a:9083,thrift://b:9083``; a URI without a port has 9083."""
    texts = [text.strip() for text in (uris or "").split(",") if text.strip()]
    if not texts:
        raise InvalidInputError(
            "a Hive catalog needs a metastore: give the option 'uri', such as 'thrift://host:9083', or "
            "'hive.metastore.uris' in hive-site.xml"
        )
    return tuple(_address(text) for text in texts)


def _address(text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port, parts = None, _PORT, urlsplit("")
    if parts.scheme != "thrift" or not host:
        raise InvalidInputError(
            f"{hide_secrets(text)!r} is no address of a Hive metastore: it must be like 'thrift://host:9083', several "
            "joined by commas"
        )
    return host, port


def _value(options: Mapping[str, str], key: str, parse: Callable[[str], Any], default: T) -> T:
    if key not in options:
        return default
    try:
        value: T = parse(str(options[key]))
        return value
    except ValueError as error:
        raise InvalidInputError(f"option {key!r} of the catalog is {options[key]!r}, which {error}") from error


def _seconds(text: str) -> float:
    return duration(text).total_seconds()


def _seconds_by_default(text: str) -> float:
    """Parse a duration of Hive, whose numbers without a unit are seconds."""
    return float(text) if text.strip().isdigit() else _seconds(text)
