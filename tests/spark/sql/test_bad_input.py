"""Answers that fail: the statement ends with an error, whatever was raised."""

import pytest
from pyspark.errors.exceptions.captured import CapturedException

from paimon_spark.sql.table import TableFunction


class Odd(BaseException):
    """An exception that no handler expects."""


@pytest.mark.parametrize("error", [ZeroDivisionError("z"), SystemExit(3), KeyboardInterrupt("k"), Odd("o")], ids=repr)
def test_any_exception_of_an_answer_ends_the_statement(sql, monkeypatch, error):
    def fail(*_):
        raise error

    sql("CREATE TABLE t (a INT)")
    with monkeypatch.context() as patch:
        patch.setattr(TableFunction, "scan", fail)
        with pytest.raises(CapturedException, match=f"{type(error).__name__}: {error}"):
            sql("SELECT * FROM t")
    assert sql("SELECT * FROM t") == []
