"""The check of the names of storage options; each store checks the values, and its own names, when it is opened."""

from collections.abc import Mapping

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.stores import is_storage_option
from paimon_core.options import is_known


def check_storage_options(options: Mapping[str, object]) -> None:
    """Check that options can be for a store: an argument of fsspec, or a name with the prefix of a store.

    Raises InvalidInputError for any other name.
    """
    for key in options:
        if is_storage_option(key.lower()):
            continue
        if is_known(key):
            raise InvalidInputError(
                f"storage option {key!r} is an option of tables: give it in the options, not in the storage options"
            )
        if not key.isidentifier():
            raise InvalidInputError(
                f"unknown storage option {key!r}: names are arguments of fsspec, such as 'key', or begin as options of "
                "a store do, such as 's3.access-key' and 'fs.s3a.endpoint'"
            )
