"""The check of the options that a user stores in a table, which include properties of their own.

A property is any name that this engine does not know, such as ``owner`` or ``note.mine``. It is stored without effect.
A name that could be a misspelt option is refused, unless it begins with ``user.``.
"""

from collections.abc import Mapping
from typing import Final

from paimon_core.errors import InvalidInputError
from paimon_core.fileio.stores import is_storage_option
from paimon_core.options import begins_like_known, check_known, check_not_newer, is_known, nearest, warn_once
from paimon_core.options.families import USER_PREFIX

_OTHER_FORMATS: Final = {"delta.": "Delta Lake", "hoodie.": "Apache Hudi"}


def check_table_options(options: Mapping[str, str], where: str) -> None:
    """Check the options of a new table, or new options of a table, and warn once about each option without effect.

    Args:
        options: keys and values.
        where: the receiver of the options, for messages.

    Raises InvalidInputError for a key that is close to an option, begins like options, or belongs to a store;
    UnsupportedError for an option of newer releases of the Java engine.
    """
    check_known({key: value for key, value in options.items() if is_known(key)}, where)
    for key in options:
        if not is_known(key) and not key.startswith(USER_PREFIX):
            _check_property(key, where)


def _check_property(key: str, where: str) -> None:
    check_not_newer(key, where)
    if key != key.strip() or not key:
        raise InvalidInputError(f"unknown option {key!r} in {where}; the name is empty, or has blanks around it")
    if is_storage_option(key.lower()):
        raise InvalidInputError(
            f"unknown option {key!r} in {where}; it is an option of the store: give it to the catalog or to the call"
        )
    close = nearest(key)
    if close or begins_like_known(key):
        first = key.partition(".")[0] + "." if "." in key else "bucket"
        advice = f"did you mean {close!r}?" if close else f"names that begin with {first!r} are options of Paimon."
        raise InvalidInputError(
            f"unknown option {key!r} in {where}; {advice} A property of your own may be named '{USER_PREFIX}{key}'"
        )
    for prefix, product in _OTHER_FORMATS.items():
        if key.startswith(prefix):
            warn_once(f"property {key!r} in {where} is stored and has no effect: it is an option of {product}")
