"""Statements of the corpus with a mistake or two: each answers, or ends with an error that names its kind."""

import re
import threading

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import IllegalArgumentException, UnsupportedOperationException

import paimon_spark
from tests.spark.conftest import MODE
from tests.spark.sql.test_corpus import FAST, FILES, VERSION
from tests.support.draws import rounds

pytestmark = [
    pytest.mark.spark,
    pytest.mark.more,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|[\w.$]+|\s+|[^\w\s]")
LEFT_ALONE = re.compile(r"\{warehouse\}|WHILE|LOOP|REPEAT|EXECUTE", re.IGNORECASE)
"""Statements that could write elsewhere, or never end."""
ODD = [
    "NULL",
    "''",
    "-1",
    "0",
    "'x'",
    "X'00'",
    "1e400",
    "DATE'2024-02-30'",
    "array()",
    "t.*",
    "*",
    "`a``b`",
    "ä",
    "::",
    "?",
]
SECONDS = 60
"""A statement that takes longer hangs."""


def mutated(text, rng, words):
    """The text with a few changes of its words."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = [i for i, token in enumerate(tokens) if not token.isspace()]
        i, j = rng.choice(at), rng.choice(at)
        change = rng.choice(("drop", "twice", "swap", "odd", "odd", "word", "word", "letter", "end"))
        if change == "drop":
            tokens[i] = ""
        elif change == "twice":
            tokens[i] += " " + tokens[i]
        elif change == "swap":
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif change == "odd":
            tokens[i] = rng.choice(ODD)
        elif change == "word":
            tokens[i] = rng.choice(words)
        elif change == "letter":
            where = rng.randrange(len(tokens[i]) + 1)
            tokens[i] = tokens[i][:where] + rng.choice("aZ0_.'`(\"") + tokens[i][where:]
        elif rng.random() < 0.3:
            tokens = tokens[: i + 1]
        tokens = [token for token in tokens if token] or [";"]
    return "".join(tokens)


def complaint(error):
    """The reason why an error is wrong, or `None`."""
    said = str(error)
    if "Traceback" in said or "py4j" in said:
        return "shows a trace"
    if not isinstance(error, PySparkException):
        return "is none of Spark"
    condition = error.getCondition()
    if condition is not None:
        return "is internal" if condition.startswith("INTERNAL_ERROR") else None
    return None if isinstance(error, IllegalArgumentException | UnsupportedOperationException) else "has no kind"


def run(session, text):
    """Run a statement; the complaint about its error, None without one."""
    hangs = threading.Timer(SECONDS, session.sparkContext.cancelAllJobs)
    hangs.start()
    try:
        session.sql(text).collect()
    except Exception as error:
        kind = complaint(error)
        return None if kind is None else f"{text}\n  {type(error).__name__} {kind}: {str(error)[:600]}"
    finally:
        alive = hangs.is_alive()
        hangs.cancel()
        assert alive, f"hangs: {text}"
    return None


@pytest.mark.drawn
def test_mistakes_end_with_errors_of_a_kind(spark, tmp_path, rng):
    words = [w for c in FILES for s in c.statements for w in TOKEN.findall(s.text) if not w.isspace() and len(w) < 20]
    wrong = []
    for number, corpus in enumerate(rng.sample(FILES, rounds(4, 2))):
        warehouse = str(tmp_path / str(number))
        session = spark.newSession()
        for key, value in FAST.items():
            session.conf.set(key, value)
        paimon_spark.catalog(session, "paimon", warehouse=warehouse)
        session.sql("CREATE DATABASE paimon.c")
        session.sql("USE paimon.c")
        for statement in corpus.statements:
            if "since" in statement.marks and tuple(map(int, statement.marks["since"].split("."))) > VERSION:
                continue
            text = statement.text.replace("{warehouse}", warehouse)
            wrong.append(run(session, text))
            if not LEFT_ALONE.search(statement.text):
                wrong.append(run(session, mutated(text, rng, words)))
    assert not any(wrong), "\n\n".join(filter(None, wrong))
