"""The Spark session that the tests of a process share: a test leaves it as it found it."""

import re

from pyspark.sql import SparkSession

# The catalog of a test may stay: each has a name or a warehouse of its own. All tests share Spark's own catalog.
_MAY_STAY = re.compile(r"spark\.sql\.catalog\.(?!spark_catalog\b)|spark\.app\.")
_known: dict[str, str] = {}
"""The settings at the start of the session, or after the last test."""


def remember() -> None:
    """Remember the settings of the session, which was just started."""
    _known.update(_settings())


def changed_settings() -> list[str]:
    """Return a line for each setting that has changed since the last call, or since `remember`."""
    now = _settings() if _known else {}
    before = dict(_known) if now else {}
    _known.update(now)
    for key in before.keys() - now.keys():
        del _known[key]
    keys = sorted(before.keys() | now.keys())
    return [f"{key}: {before.get(key)}, now {now.get(key)}" for key in keys if before.get(key) != now.get(key)]


def drop_temporary_views() -> None:
    """Drop the temporary views of the session: their names hide the tables of later tests."""
    session = SparkSession._instantiatedSession
    if session is not None and session._sc._jsc is not None:
        session._jsparkSession.sessionState().catalog().clearTempTables()


def _settings() -> dict[str, str]:
    """Return the settings of the running session and of its context; empty: the context has stopped."""
    session = SparkSession._instantiatedSession
    if session is None or session._sc._jsc is None:
        return {}
    texts = {
        "session": session._jsparkSession.sessionState().conf().getAllConfs().mkString("\n"),
        "context": session._sc._jsc.sc().conf().toDebugString().replace("=", " -> "),
    }
    found = {}
    for owner, text in texts.items():
        for line in text.splitlines():
            key, separator, value = line.partition(" -> ")
            if separator and not _MAY_STAY.match(key):
                found[f"{key} of the {owner}"] = value
    return found
