"""The options of a catalog, and the check of the names and values that a user gives.

An option that selects other tables, or asks for a guarantee that this engine does not give, is refused. An option that
only tunes the Java engine is accepted and warns once, so that both engines can use the same options.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeVar

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.stores import is_storage_option
from paimon_core.manifest.remembered import RememberedFiles
from paimon_core.options import is_known, warn_once
from paimon_core.options.families import DEFAULTS_PREFIX
from paimon_core.options.file import OF_OPENING
from paimon_core.options.parse import boolean, memory_size
from paimon_core.schema.properties import check_table_options

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Fixed:
    """An option that supports a single value. ``reason``: why other values are refused, and what to do."""

    value: str | None
    reason: str


FILESYSTEM: Final = "filesystem"
HIVE: Final = "hive"
METASTORE: Final = "metastore"
"""The option that chooses the kind of a catalog."""
REST: Final = "rest"
_NO_SERVICE = "leave it out, or choose the kind of catalog that it belongs to with 'metastore': jdbc, hive or rest"
_OF_SERVICES: Final = ("uri", "token", "token.provider", "catalog-key", "prefix", "data-token.enabled")
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    FILESYSTEM: (),
    "jdbc": (
        METASTORE, "uri", "catalog-key", "lock.enabled", "lock-acquire-timeout", "lock-check-max-sleep",
        "lock-key-max-length", "sync-all-properties", "client-pool-size", "jdbc.",
    ),
    HIVE: (
        METASTORE, "uri", "hive-conf-dir", "location-in-properties", "sync-all-properties", "table.type",
        "lock.enabled", "lock.type", "lock-acquire-timeout", "lock-check-max-sleep", "case-sensitive",
        "alter-table-cascade", "metastore.client.class", "hive.",
    ),
    REST: (METASTORE, "uri", "token", "token.provider", "dlf.", "header.", "prefix", "data-token.enabled"),
}  # fmt: skip
"""For each kind of catalog the options that it uses; a name that ends with a dot is a prefix."""
_FIXED: Final = {
    "lock.enabled": _Fixed("false", "commits take no lock; leave it out if no other writer relies on the lock"),
    "case-sensitive": _Fixed("true", "names are case sensitive; leave it out, and write names as they are stored"),
    "allow-upper-case": _Fixed("true", "names are case sensitive; leave it out, and write names as they are stored"),
    "table.type": _Fixed("managed", "dropping a table deletes its files; leave it out"),
    "defaultDatabase": _Fixed("default", "leave it out, and choose a database with USE or in the names of tables"),
    "warehouse": _Fixed(None, "the warehouse is a separate argument; leave out the option"),
}
_SERVICE_PREFIXES: Final = ("dlf.", "jdbc.", "header.")
_WITHOUT_EFFECT: Final = (
    "cache.deletion-vectors.max-num", "cache.expiration-interval", "cache.expire-after-access",
    "cache.expire-after-write", "cache.manifest.max-memory", "cache.manifest.soft-values", "cache.partition.max-num",
    "cache.snapshot.max-num-per-table", "catalog-options-table.enabled", "catalog.create-underlying-session-catalog",
    "client-pool-cache.eviction-interval-ms", "client-pool-cache.keys", "client-pool-size", "file-io.allow-cache",
    "format-table.enabled", "hadoop-conf-dir", "hive-conf-dir", "local-cache.block-size", "local-cache.dir",
    "local-cache.enabled", "local-cache.max-size", "local-cache.whitelist", "location-in-properties",
    "lock-acquire-timeout", "lock-check-max-sleep", "lock-key-max-length", "lock.type", "metastore.client.class",
    "resolving-file-io.enabled", "sync-all-properties", "v1Function.enabled",
)  # fmt: skip
"""Options of Java's catalogs that neither select tables nor change rows."""
_CACHE: Final = "cache-enabled"
_CACHE_MEMORY: Final = "cache.manifest.small-file-memory"
_CACHE_THRESHOLD: Final = "cache.manifest.small-file-threshold"
_DEFAULT_CACHE_MEMORY: Final = 128 << 20
_DEFAULT_CACHE_THRESHOLD: Final = 1 << 20
_EFFECTIVE: Final = (*(option.key for option in OF_OPENING), _CACHE, _CACHE_MEMORY, _CACHE_THRESHOLD)
KNOWN: Final = (*_EFFECTIVE, METASTORE, *_OF_SERVICES, *_FIXED, *_WITHOUT_EFFECT)
"""All names outside of families. The families are ``table-default.<option>``, and the refused options of services."""


def is_catalog_option(key: str) -> bool:
    """Return True for the name of an option of catalogs that are not directories, such as ``metastore`` and ``uri``."""
    used = {name for names in _OF_KIND.values() for name in names}
    return key in used | {METASTORE, *_OF_SERVICES} or key.startswith(_SERVICE_PREFIXES)


def kind_of(options: Mapping[str, str]) -> str:
    """Return the kind of catalog that the option ``metastore`` chooses. Raises UnsupportedError for an unknown one."""
    kind = str(options.get(METASTORE, FILESYSTEM)).strip().lower()
    if kind not in _OF_KIND:
        raise UnsupportedError(f"option {METASTORE!r} of the catalog is not supported: {_NO_SERVICE}")
    return kind


def check_catalog_options(options: Mapping[str, str], kind: str = FILESYSTEM) -> None:
    """Check the options of a catalog of a kind, and warn once of each name without effect.

    Raises InvalidInputError for an unknown name, with the nearest known name, and for a name that belongs to another
    argument; UnsupportedError for an option of another kind of catalog.
    """
    check_table_options(table_defaults(options), "the catalog's table defaults")
    used, prefixes = _OF_KIND[kind], tuple(name for name in _OF_KIND[kind] if name.endswith("."))
    if kind_of(options) != kind:
        raise InvalidInputError(
            f"option {METASTORE!r} of the catalog is {options.get(METASTORE)!r}, but this is a {kind} catalog: use "
            "open_catalog"
        )
    for key, value in options.items():
        fixed = _FIXED.get(key)
        if key in used or (prefixes and key.startswith(prefixes)):
            continue
        if fixed is not None and str(value).strip().lower() != fixed.value:
            raise UnsupportedError(f"option {key!r} of the catalog is not supported: {fixed.reason}")
        if key in _OF_SERVICES or key.startswith(_SERVICE_PREFIXES):
            raise UnsupportedError(f"option {key!r} of the catalog is not supported: {_NO_SERVICE}")
        if key in _WITHOUT_EFFECT:
            warn_once(f"option {key!r} of the catalog has no effect here: it tunes catalogs of the Java engine")
        elif key not in KNOWN and not key.startswith(DEFAULTS_PREFIX):
            raise InvalidInputError(f"unknown option {key!r} in the options of the catalog; {_advice(key)}")


def table_defaults(options: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a catalog's options ``table-default.<option>``, by ``<option>``."""
    return {k.removeprefix(DEFAULTS_PREFIX): v for k, v in options.items() if k.startswith(DEFAULTS_PREFIX)}


def allowed_paths(of_catalog: Mapping[str, str], of_table: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a catalog that allow paths, except for names that the options of a table have, too."""
    keys = [option.key for option in OF_OPENING]
    return {key: of_catalog[key] for key in keys if key in of_catalog and key not in of_table}


def manifest_cache(options: Mapping[str, str]) -> RememberedFiles | None:
    """Return the manifests and manifest lists that queries of a catalog share; `None`: ``cache-enabled`` is false.

    Names and defaults of the options are as in the Java engine: files up to 1 MB, in 128 MB of memory.

    Raises InvalidInputError for a value that cannot be parsed.
    """
    if not _parsed(options, _CACHE, boolean, True):
        return None
    return RememberedFiles(
        _parsed(options, _CACHE_MEMORY, memory_size, _DEFAULT_CACHE_MEMORY),
        _parsed(options, _CACHE_THRESHOLD, memory_size, _DEFAULT_CACHE_THRESHOLD),
    )


def _parsed(options: Mapping[str, str], key: str, parse: Callable[[str], T], default: T) -> T:
    try:
        return parse(str(options[key])) if key in options else default
    except ValueError as error:
        raise InvalidInputError(f"option {key!r} of the catalog is {options[key]!r}: it {error}") from None


def _advice(key: str) -> str:
    if is_storage_option(key.lower()):
        return "it is an option of the store: give it as a storage option"
    if is_known(key):
        return f"did you mean {DEFAULTS_PREFIX + key!r}, the default of new tables?"
    first, _, option = key.partition(".")
    if option and get_close_matches(first, [DEFAULTS_PREFIX.removesuffix(".")], cutoff=0.8):
        return f"did you mean {DEFAULTS_PREFIX + option!r}?"
    close = get_close_matches(key.strip().lower().replace("_", "-"), KNOWN, n=1, cutoff=0.7)
    return f"did you mean {close[0]!r}?" if close else f"known are {_EFFECTIVE[0]!r} and '{DEFAULTS_PREFIX}<option>'"
