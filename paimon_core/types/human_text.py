"""Short texts for numbers, sizes, times and names."""

import time
from datetime import datetime, timedelta

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_AGES = (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
_EPOCH = datetime(1970, 1, 1)


def count(number: int, one: str = "", many: str = "") -> str:
    """Return a number with commas, and a noun if set: ``1,200 files``. ``many``: the plural, by default with an s."""
    noun = "" if not one else f" {one}" if number == 1 else f" {many or one + 's'}"
    return f"{number:,}{noun}"


def size(number: int) -> str:
    """Return a number of bytes as text, from 1 KiB with three digits or more: ``12.3 MiB``, ``999 B``."""
    if number < 1024:
        return f"{number} B"
    value, power = number / 1024, 0
    while value >= 1023.5 and power < len(_UNITS) - 1:
        value, power = value / 1024, power + 1
    unit = _UNITS[power]
    return f"{value:.{0 if value >= 99.5 else 1}f} {unit}"


def duration(seconds: float) -> str:
    """Return a time span as text: ``3.4 s``, ``2 min 5 s``, ``3 h 20 min``."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    return f"{minutes} min {round(seconds) % 60} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def age(millis: int) -> str:
    """Return an age (ms) in words, in its largest whole unit: ``6 minutes ago``."""
    if millis < 0:
        return "in the future"
    seconds = millis // 1000
    for unit, length in _AGES:
        if seconds >= length:
            return f"{count(seconds // length, unit)} ago"
    return "just now"


def share(part: int, whole: int) -> str:
    """Return a share in percent; a small share is ``< 1 %``, not ``0 %``."""
    if not part or not whole:
        return "0 %"
    percent = 100 * part / whole
    return "< 1 %" if percent < 1 else f"{percent:.0f} %"


def wall_millis(millis: int) -> int:
    """Convert an instant (epoch ms) to this machine's wall-clock time, in milliseconds as if the zone were UTC."""
    try:
        return millis + time.localtime(millis // 1000).tm_gmtoff * 1000
    except (OverflowError, OSError, ValueError):  # a year that the C library does not know
        return millis


def moment(epoch_millis: int) -> str:
    """Return an instant (epoch ms) as text in this machine's time zone: ``2026-01-31 12:00:00``."""
    return wall_clock(wall_millis(epoch_millis))


def wall_clock(local_millis: int) -> str:
    """Return a stored wall-clock time (ms) as text; for years beyond Python's `datetime`, the number."""
    try:
        return (_EPOCH + timedelta(milliseconds=local_millis)).isoformat(" ", "seconds")
    except OverflowError:
        return f"{local_millis} ms"


def short(text: str, most: int = 64) -> str:
    """Shorten a text to at most ``most`` characters by cutting out its middle."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}"


def printable(text: str) -> str:
    """Escape control characters in a text, including characters that change the writing direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
