"""Options of file indexes: which columns have which kinds, ``file-index.<kind>.columns``, and what is said of each.

An item of such a list is a column, or ``m[key]`` for one key of the map ``m``.
"""

from collections.abc import Callable, Iterator, Mapping

from paimon_core.options.per_field import split_list

_PREFIX, _COLUMNS = "file-index.", ".columns"

KIND_OPTIONS = {
    "bitmap": ("version", "index-block-size"),
    "bloom-filter": ("items", "fpp"),
    "bsi": (),
    "range-bitmap": ("chunk-size",),
}
"""What may be said of an index, by its kind."""


def split_index_option(key: str) -> str | None:
    """``file-index.<kind>.columns`` as the kind; None for any other key."""
    kind = key.removeprefix(_PREFIX).removesuffix(_COLUMNS)
    return kind if key == f"{_PREFIX}{kind}{_COLUMNS}" else None


def index_column(item: str) -> str:
    """The column of an item."""
    return item.partition("[")[0] if item.endswith("]") else item


def index_key(item: str) -> str | None:
    """The key of a map that an item means; None for one that is a column."""
    _, bracket, key = item.partition("[")
    return key[:-1] if bracket and item.endswith("]") else None


def indexed(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every (kind, item) that the options name."""
    for key, text in options.items():
        kind = split_index_option(key)
        if kind is not None:
            yield from ((kind, item) for item in dict.fromkeys(split_list(text)))


def index_options(options: Mapping[str, str], kind: str, item: str) -> dict[str, str]:
    """What ``file-index.<kind>.<item>.<option>`` say of one index; of a key of a map also what they say of the map."""
    found: dict[str, str] = {}
    for about in dict.fromkeys((index_column(item), item)):
        found |= {name: text for k, named, name, text in _settings(options) if (k, named) == (kind, about)}
    return found


def stray_option(options: Mapping[str, str]) -> str | None:
    """The key of the first setting of an index that is not there; None where all are."""
    known = {(kind, about) for kind, item in indexed(options) for about in (index_column(item), item)}
    strays = (f"{_PREFIX}{k}.{about}.{name}" for k, about, name, _ in _settings(options) if (k, about) not in known)
    return next(strays, None)


def renamed_setting(key: str, renamed: Callable[[str], str]) -> str:
    """``file-index.<kind>.<item>.<option>`` about the column under its new name; any other key as it is."""
    found = next(_settings({key: ""}), None)
    if found is None:
        return key
    kind, item, name, _ = found
    column = index_column(item)
    return f"{_PREFIX}{kind}.{renamed(column)}{item[len(column) :]}.{name}"


def _settings(options: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """(kind, item, name, text) of every key of these parts; an item may hold dots. Others say nothing of an index."""
    for key, text in options.items():
        kind, _, rest = key.removeprefix(_PREFIX).partition(".")
        item, dot, name = rest.rpartition(".")
        if key.startswith(_PREFIX) and dot and name != "columns":
            yield kind, item, name, text
