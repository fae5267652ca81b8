"""Options of a session: ``spark.paimon.<option>``, and ``spark.paimon.<catalog>.<database>.<table>.<option>``.

A ``*`` matches any catalog, database or table. Options for a table override options for all tables, and names with
fewer stars override names with more stars. The options of a statement override the options of the session.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paimon_core import options as core_options
from paimon_core.engine import TIME_TRAVEL_OPTIONS
from paimon_core.errors import InvalidInputError, PaimonError, UnsupportedError
from paimon_core.options.parse import boolean, memory_size, number
from paimon_spark.option_names import (
    PROPERTY,
    READ_OPTIONS,
    STREAM_OPTIONS,
    STREAM_STARTS,
    STREAMS_ONLY,
    WRITE_OPTIONS,
    canonical,
    check_known,
)
from paimon_spark.options import is_about_changes, read_request, stream_request

PREFIX = "spark.paimon."
NATIVE_READS = f"{PREFIX}read.native"
"""The setting that keeps Spark's own Parquet scan from reading the files of tables: ``false``."""
MASK_MEMORY = f"{PREFIX}read.mask-memory"
"""The setting that limits the position masks of a scan, with which Spark's own scan reads files with deleted rows."""
DEFAULT_MASK_MEMORY = 16 << 20
MASK_ROWS = f"{PREFIX}read.mask-rows"
"""The setting that limits the rows that the driver merges to compute the position masks of a scan."""
DEFAULT_MASK_ROWS = 50_000_000
_MOST_ROWS = 2**63 - 1
NATIVE_WRITES = f"{PREFIX}write.native"
"""The setting that leaves batch writes by path to the Python data source, and files to Python workers: ``false``."""
_OF_SESSIONS = (NATIVE_READS, MASK_MEMORY, MASK_ROWS, NATIVE_WRITES)
"""Settings of the whole session, not of a table."""
_TABLE_PARTS = 3  # catalog, database, table
_OURS = {**READ_OPTIONS, **STREAM_OPTIONS, **WRITE_OPTIONS}
_NOT_OF_ROW_LEVEL = ("txnappid", "txnversion", "write.unchanged-since")
_OF_READS = {*READ_OPTIONS, *STREAM_OPTIONS, *STREAM_STARTS, *STREAMS_ONLY, *TIME_TRAVEL_OPTIONS}


def session_options(settings: Mapping[str, str], catalog: str, database: str, table: str) -> dict[str, str]:
    """Return the options that the settings of a session contain for a table, by their canonical names.

    Raises InvalidInputError, naming the closest option, for an unknown option, and UnsupportedError for a streaming
    option.
    """
    matches: list[tuple[int, str, str]] = []
    for key, value in settings.items():
        if key in _OF_SESSIONS or not key.startswith(PREFIX):
            continue
        pattern, option = _split(key.removeprefix(PREFIX))
        if not _fits(pattern, (catalog, database, table)):
            continue
        named = canonical({option: value})
        try:
            check_known(named, _OURS, "the settings of the session")
        except PaimonError as error:
            raise type(error)(f"setting {key!r}: {error}") from None
        matches += [(sum(part != "*" for part in pattern), name, text) for name, text in named.items()]
    return {name: text for _, name, text in sorted(matches, key=lambda item: item[0])}


def native_reads(text: str | None) -> bool:
    """Return True if a value of `NATIVE_READS` allows Spark's own scans. `None`: not set, which allows them.

    Raises InvalidInputError for a value that is not true or false.
    """
    return _is_on(NATIVE_READS, text)


def native_writes(text: str | None) -> bool:
    """Return True if a value of `NATIVE_WRITES` allows writes without Python workers. `None`: not set, allows them.

    Raises InvalidInputError for a value that is not true or false.
    """
    return _is_on(NATIVE_WRITES, text)


def _is_on(setting: str, text: str | None) -> bool:
    try:
        return text is None or boolean(text)
    except ValueError as error:
        raise InvalidInputError(f"setting {setting!r} is {text!r}: it {error}") from None


VARIANT_SETTINGS = {
    "spark.sql.variant.allowReadingShredded": "true",
    "spark.sql.parquet.ignoreVariantAnnotation": "false",
}
"""Settings of Spark's Parquet reader, with the values under which the reader accepts every layout of variants."""


@dataclass(frozen=True)
class ReadSettings:
    """The settings of a session about the readers of scans."""

    native: bool = True
    """True if scans may be read without Python's tasks."""
    mask_memory: int = DEFAULT_MASK_MEMORY
    """The most bytes of the position masks of a scan."""
    mask_rows: int = DEFAULT_MASK_ROWS
    """The most rows that the driver merges to compute the position masks of a scan."""
    no_variants: str | None = None
    """The reason why Spark's own scan must not read variants; `None`: it may."""

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> "ReadSettings":
        """Return the settings of a session. Raises InvalidInputError for a value that cannot be parsed."""
        return cls(
            native_reads(settings.get(NATIVE_READS)),
            _parsed(settings, MASK_MEMORY, memory_size, DEFAULT_MASK_MEMORY),
            _parsed(settings, MASK_ROWS, number(0, _MOST_ROWS), DEFAULT_MASK_ROWS),
            _without_variants(settings),
        )


def _without_variants(settings: Mapping[str, str | None]) -> str | None:
    """Return the reason why Spark's own scan must not read variants: with these settings it refuses some layouts."""
    for name, usual in VARIANT_SETTINGS.items():
        value = (settings.get(name) or usual).strip().lower()
        if value != usual:
            return f"{name} is {value}"
    return None


def _parsed(settings: Mapping[str, str | None], name: str, parse: Callable[[str], int], default: int) -> int:
    text = settings.get(name)
    try:
        return default if text is None else parse(text)
    except ValueError as error:
        raise InvalidInputError(f"setting {name!r} is {text!r}: it {error}") from None


def check_read_options(options: Mapping[str, str]) -> None:
    """Raise an error for a read option that is unknown, has a wrong value, or locates a table."""
    named = canonical(options)
    location = next((key for key in ("path", "warehouse", "table") if key in named), None)
    if location is not None:
        raise InvalidInputError(f"option {location!r} is for reads without a catalog: the statement names the table")
    parse = stream_request if is_about_changes(named) else read_request
    parse({**named, "path": "/"})


def read_options(
    session: Mapping[str, str], options: Mapping[str, str], *, time_travel: bool = False
) -> dict[str, str]:
    """Return the read options: the session's read options, overridden by the statement's options.

    If an option of the statement chooses a snapshot, or `time_travel` is True because another clause does, the time
    travel options of the session are ignored.
    """
    statement = canonical(options)
    fixed = time_travel or any(key in TIME_TRAVEL_OPTIONS or key.startswith("incremental-") for key in statement)
    without = {*WRITE_OPTIONS, *(TIME_TRAVEL_OPTIONS if fixed else ())}
    return {key: value for key, value in session.items() if key not in without} | statement


def write_options(session: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return the write options: the session's options without read options, overridden by the statement's options."""
    return {key: value for key, value in session.items() if key not in _OF_READS} | canonical(options)


def table_options(session: Mapping[str, str]) -> dict[str, str]:
    """Return the session's table options, without options of a single read or write."""
    others = {*_OF_READS, *WRITE_OPTIONS}
    return {key: value for key, value in session.items() if key not in others and not key.startswith(PROPERTY)}


def row_level_options(session: Mapping[str, str]) -> dict[str, str]:
    """Return the session's options for the commit of DELETE, UPDATE or MERGE.

    Raises UnsupportedError for an option that these commits do not support.
    """
    refused = next((key for key in session if key in _NOT_OF_ROW_LEVEL), None)
    if refused is not None:
        raise UnsupportedError(
            f"setting {PREFIX + refused!r} is not possible for DELETE, UPDATE and MERGE: unset it, or pass it to "
            "writes as an option"
        )
    return {key: value for key, value in session.items() if key == "commit.user" or key.startswith(PROPERTY)}


def _split(name: str) -> tuple[Sequence[str], str]:
    """Divide the name of a setting into catalog, database and table (or nothing) and the option."""
    parts = name.split(".", _TABLE_PARTS)
    keys = {*canonical({name: ""})}
    if len(parts) <= _TABLE_PARTS or any(core_options.is_known(key) or key in _OURS for key in keys):
        return (), name
    return parts[:_TABLE_PARTS], parts[_TABLE_PARTS]


def _fits(pattern: Sequence[str], names: Sequence[str]) -> bool:
    return all(part in ("*", name) for part, name in zip(pattern, names, strict=False))
