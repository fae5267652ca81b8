"""`STORES`: every kind of store with special properties. Other schemes are read through fsspec, without commits."""

from collections.abc import Mapping
from typing import Any, Final

from paimon_core.fileio.azure import AZURE
from paimon_core.fileio.gcs import GCS
from paimon_core.fileio.hdfs import HDFS
from paimon_core.fileio.local import LOCAL
from paimon_core.fileio.oss import OSS
from paimon_core.fileio.paths import scheme_of
from paimon_core.fileio.s3 import S3
from paimon_core.fileio.store import Store

STORES: Final[tuple[Store, ...]] = (
    LOCAL,
    S3,
    HDFS,
    GCS,
    AZURE,
    OSS,
    Store(title="Azure Data Lake", schemes=("adl",), object_store=True),
    Store(title="Oracle Cloud", schemes=("oci",), flat=True, object_store=True),
    Store(title="Huawei OBS", schemes=("obs",), flat=True, object_store=True),
    Store(title="Tencent COS", schemes=("cos", "cosn"), flat=True, object_store=True),
    Store(title="HTTP", schemes=("http", "https"), flat=True),
)

_GENERAL_PREFIXES: Final = ("spark.hadoop.", "hadoop.", "fs.", "storage.")
"""The prefixes of options that Hadoop and Paimon use for any store."""


def store_of(path: str) -> Store:
    """Return the store of a path; for an unknown scheme, a store with the defaults of `Store`."""
    scheme = scheme_of(path)
    found = next((store for store in STORES if scheme in store.schemes), None)
    return found or Store(title=scheme, schemes=(scheme,))


def canonical_scheme(path: str) -> str:
    """Return the scheme of a path, or the store's first scheme if all locate the same files: ``s3`` for ``s3a``."""
    store = store_of(path)
    return store.schemes[0] if store.same_files else scheme_of(path)


def is_storage_option(key: str) -> bool:
    """Return True if an option, in lower case, has a prefix of a store, or a general prefix such as ``fs.``."""
    return key.startswith(_GENERAL_PREFIXES) or any(key.startswith(store.options) for store in STORES)


def options_for(store: Store, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the storage options without the specific options of other stores."""
    foreign = tuple(prefix for other in STORES if other.own_options and other is not store for prefix in other.options)
    return {k: v for k, v in options.items() if not k.lower().removeprefix("spark.hadoop.").startswith(foreign)}


def committing_stores() -> str:
    """Return the titles of the stores that support commits, as text for a message."""
    *others, last = (store.title for store in STORES if store.commits)
    return f"{', '.join(others)} and {last}"
