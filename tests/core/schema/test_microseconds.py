"""Timestamps in nanoseconds, cut to microseconds where the finer digits have no effect."""

import pytest

from paimon_core.schema.microseconds import finer_columns, in_microseconds
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

TYPES = {"k": "INT NOT NULL", "a": "TIMESTAMP(9)", "b": "TIMESTAMP(6)", "c": "TIMESTAMP(9)"}
FIELDS = [DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(TYPES.items())]


def schema(keys=(), **options):
    return create(Schema(FIELDS, keys, (), {**({"bucket": "1"} if keys else {}), **options}), 0)


def names(found, given):
    return {field.name for field in given.fields if field.id in found}


@pytest.mark.parametrize(
    ("keys", "options", "finer"),
    [
        ((), {}, {"a", "c"}),
        (("k",), {}, {"a", "c"}),
        (("k",), {"sequence.field": "a"}, {"c"}),
        (("k",), {"fields.c.stats-mode": "none"}, {"a"}),
        (("k",), {"merge-engine": "partial-update"}, set()),
    ],
)
def test_columns_that_decide_nothing_may_lose_digits(keys, options, finer):
    given = schema(keys, **options)
    assert names(finer_columns(given), given) == finer


def test_only_named_columns_change():
    given = schema()
    cut = in_microseconds(given, {given.field("a").id, given.field("b").id})
    assert [str(f.type) for f in cut.fields[1:]] == ["TIMESTAMP(6)", "TIMESTAMP(6)", "TIMESTAMP(9)"]
    assert in_microseconds(given, ()) is given
