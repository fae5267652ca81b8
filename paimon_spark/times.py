"""Times in read options: texts become instants in the time zone of the session or of the option ``timeZone``.

Spark's planning processes do not know the session's time zone. So a time without a zone is accepted only where a
session is available (SQL, `PaimonTable`) or with the option; otherwise it is refused.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession

from paimon_core.engine import epoch_millis
from paimon_core.errors import InvalidInputError
from paimon_core.options.scan import INCREMENTAL_BETWEEN_TIMESTAMP, SCAN_TIMESTAMP
from paimon_core.types.calendar import iso_date
from paimon_spark.option_names import canonical, pop

_TIMES = (SCAN_TIMESTAMP.key, INCREMENTAL_BETWEEN_TIMESTAMP.key)
"""Options whose values are one time, or two times separated by a comma."""
_ZONE = "timeZone"
_DAY = 86_400_000_000
"""A day in microseconds."""
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def session_millis(text: str, spark: SparkSession) -> int:
    """Return the epoch milliseconds of a number, or of a date and time in the session's time zone.

    Raises InvalidInputError for any other text.
    """
    if _is_number(text):
        return int(text)
    millis = instant(text, spark)
    return epoch_millis(text) if millis is None else millis  # epoch_millis raises the error


def instant(text: str, spark: SparkSession) -> int | None:
    """Return the epoch milliseconds of a date and time in the session's time zone, as ``TIMESTAMP AS OF`` does.

    `None`: the text is not a date and time.
    """
    query = "SELECT unix_millis(try_cast(:value AS TIMESTAMP_LTZ))"
    millis = spark.sql(query, {"value": text}).collect()[0][0]
    return None if millis is None else int(millis)


def in_utc(text: str, spark: SparkSession) -> str:
    """Return a date and time in the session's time zone as a time in UTC, with its zone; any other text as it is."""
    micros = spark.sql("SELECT unix_micros(try_cast(:value AS TIMESTAMP_LTZ))", {"value": text}).collect()[0][0]
    if micros is None:
        return text
    days, rest = divmod(micros, _DAY)
    return f"{iso_date(days)} {(datetime(1970, 1, 1) + timedelta(microseconds=rest)).time()}Z"


def date_text_sql(date: str) -> str:
    """Return SQL that turns a date, an expression without effects, into ISO text.

    With ``spark.sql.legacy.timeParserPolicy`` = ``LEGACY``, a cast has another result for years before 1 and for the
    days from 1582-10-05 to 1582-10-14.
    """
    sign = f"if(year({date}) > 9999, '+', if(year({date}) < 0, '-', ''))"
    digits = f"format_string('%04d-%02d-%02d', abs(year({date})), month({date}), day({date}))"
    return f"if(({date}) IS NULL, NULL, concat({sign}, {digits}))"


def in_session_zone(options: Mapping[str, str], session: Callable[[], SparkSession]) -> dict[str, str]:
    """Return the options of a read with every time as epoch milliseconds.

    Args:
        options: the options, under any of their names.
        session: returns the session that issued the read; called only if the options contain a time.
    """
    if not any(key in _TIMES for key in canonical(options)):
        return dict(options)
    named = canonical(options)
    if _ZONE.lower() in named:
        zoned_times(named)
    for key in _TIMES:
        if key in named:
            named[key] = ",".join(str(session_millis(text, session())) for text in named[key].split(","))
    return named


def zoned_times(named: dict[str, str]) -> None:
    """Replace times with epoch milliseconds, using the zone of the option ``timeZone``, which is removed.

    Args:
        named: the read options under their canonical names.

    Raises InvalidInputError for a time without a zone if the option is not set.
    """
    zone = pop(named, _ZONE, time_zone, None)
    for key in _TIMES:
        if key in named:
            named[key] = ",".join(_zoned(key, text.strip(), zone) for text in named[key].split(","))


def time_zone(text: str) -> tzinfo:
    """Return the time zone of a name such as Europe/Berlin or an offset such as +01:00. Raise ValueError for others."""
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if distance <= timedelta(hours=18):
            return timezone(-distance if sign == "-" else distance)
    try:
        return timezone.utc if text == "Z" else ZoneInfo(text)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError("must be a time zone, such as Europe/Berlin or +01:00") from None


def _zoned(key: str, text: str, zone: tzinfo | None) -> str:
    if _is_number(text):
        return text
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text  # the engine raises the error
    if time.tzinfo is None and zone is None:
        raise InvalidInputError(
            f"option {key!r}: the time {text!r} has no time zone, and the data source does not know the session's: add "
            f"the offset from UTC, as in {text + '+01:00'!r}, set the option {_ZONE!r}, or read with SQL or "
            "PaimonTable, which use the session's time zone"
        )
    return str(epoch_millis(time, zone))


def _is_number(text: str) -> bool:
    return text.strip().lstrip("-").isdigit()
