"""HTML pages that compare."""

import re

_TIMES = re.compile(r"Made [-0-9]+ [:0-9]+|\((?:[0-9]+ \w+ ago|just now)\)")


def without_times(page: str) -> str:
    """Return a page without the time at which it was made, and without ages."""
    return _TIMES.sub("", page)
