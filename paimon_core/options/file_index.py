"""Keys of options of file indexes: ``file-index.<kind>.columns`` and ``file-index.<kind>.<item>.<option>``.

An item of the list of columns is a column, or ``m[key]`` for one key of the map ``m``.
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
"""The options of each kind of index."""


def split_index_option(key: str) -> str | None:
    """Return the kind in ``file-index.<kind>.columns``; `None` for any other key."""
    kind = key.removeprefix(_PREFIX).removesuffix(_COLUMNS)
    return kind if key == f"{_PREFIX}{kind}{_COLUMNS}" else None


def index_column(item: str) -> str:
    """Return the column of an item."""
    return item.partition("[")[0] if item.endswith("]") else item


def index_key(item: str) -> str | None:
    """Return the map key of an item; `None` if the item is a column."""
    _, bracket, key = item.partition("[")
    return key[:-1] if bracket and item.endswith("]") else None


def indexed(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield every (kind, item) in the options."""
    for key, text in options.items():
        kind = split_index_option(key)
        if kind is not None:
            yield from ((kind, item) for item in dict.fromkeys(split_list(text)))


def index_options(options: Mapping[str, str], kind: str, item: str) -> dict[str, str]:
    """Return the options of one index; an index on a key of a map also has the options of the map."""
    settings: dict[str, str] = {}
    for target in dict.fromkeys((index_column(item), item)):
        settings |= {name: text for k, named, name, text in _settings(options) if (k, named) == (kind, target)}
    return settings


def stray_option(options: Mapping[str, str]) -> str | None:
    """Return the first key ``file-index.<kind>.<item>.<option>`` whose index is not declared; `None`: no such key."""
    known = {(kind, target) for kind, item in indexed(options) for target in (index_column(item), item)}
    strays = (f"{_PREFIX}{k}.{item}.{name}" for k, item, name, _ in _settings(options) if (k, item) not in known)
    return next(strays, None)


def renamed_setting(key: str, renamed: Callable[[str], str]) -> str:
    """Return ``file-index.<kind>.<item>.<option>`` with the new name of the column; any other key unchanged."""
    setting = next(_settings({key: ""}), None)
    if setting is None:
        return key
    kind, item, name, _ = setting
    column = index_column(item)
    return f"{_PREFIX}{kind}.{renamed(column)}{item[len(column) :]}.{name}"


def _settings(options: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield (kind, item, option, text) of every key ``file-index.<kind>.<item>.<option>``; an item may contain dots."""
    for key, text in options.items():
        kind, _, rest = key.removeprefix(_PREFIX).partition(".")
        item, dot, name = rest.rpartition(".")
        if key.startswith(_PREFIX) and dot and name != "columns":
            yield kind, item, name, text
