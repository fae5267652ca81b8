"""VARIANT columns, alone and inside others, both ways; Spark's own code reads and makes the values on our side."""

import json

import pytest

from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
VALUES = (
    "1", "-7", "true", "null", '"x"', '"é"', "1.5", "12345678901", "[]", "{}", '[1,"a",null,[2]]',
    '{"a":1,"b":{"c":[true,false]},"long":"' + "y" * 80 + '"}', None,
)  # fmt: skip
TYPES = ("VARIANT", "ARRAY<VARIANT>", "MAP<STRING, VARIANT>", "ROW<a VARIANT, b INT>")


def row(rng, k):
    one = lambda: rng.choice(VALUES)  # noqa: E731
    return {"k": k, "c0": one(), "c1": [one(), one()], "c2": [["p", one()]], "c3": {"a": one(), "b": k}}


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_variants_are_the_same(judge, name, rng, keys):
    table = SharedTable(judge, name)
    table.java(
        "create_table",
        fields=[["k", "INT NOT NULL"], *([f"c{i}", t] for i, t in enumerate(TYPES))],
        primary_keys=keys,
        options={"bucket": "1"} if keys else {},
    )
    for turn in range(4):
        rows = [["+I", row(rng, rng.randrange(20))] for _ in range(12)]
        table.we_write(rows) if turn % 2 else table.java("write", rows=rows)
        table.agree()
    table.ours().compact(full=True)
    table.agree()
    table.java("compact", kind="full")
    table.we_write([["+I", row(rng, 3)]])
    table.agree_everywhere()


def shape(**columns):
    """Return the text of a shredding schema. A type is a text, a dict of types, or a list of the type of elements."""

    def described(t):
        if isinstance(t, dict):
            fields = [{"id": i, "name": name, "type": described(inner)} for i, (name, inner) in enumerate(t.items())]
            return {"type": "ROW", "fields": fields}
        return {"type": "ARRAY", "element": described(t[0])} if isinstance(t, list) else t

    return json.dumps(described(columns))


SHAPE = shape(c0={"a": "INT", "b": {"c": ["BOOLEAN"]}, "long": "STRING"})


@pytest.mark.parametrize("column", [SHAPE, shape(c0=["BIGINT"]), shape(c0="DECIMAL(5, 1)")])
def test_shredded_variants_of_java_are_read(judge, name, rng, column):
    table = SharedTable(judge, name)
    fields = [["k", "INT"], *([f"c{i}", t] for i, t in enumerate(TYPES))]
    table.java("create_table", fields=fields, options={"variant.shreddingSchema": column})
    for _ in range(3):
        table.java("write", rows=[["+I", row(rng, k)] for k in range(40)])
        table.agree()
    assert table.ours().to_arrow(["k"]).num_rows == 120


@pytest.mark.parametrize("keys", [[], ["k"]])
@pytest.mark.parametrize("column", [SHAPE, shape(c0=["BIGINT"]), shape(c0="DECIMAL(5, 1)"), None])
def test_java_reads_our_shredded_variants(judge, name, rng, column, keys):
    table = SharedTable(judge, name)
    options = {"variant.inferShreddingSchema": "true"} if column is None else {"variant.shreddingSchema": column}
    if keys:
        options["bucket"] = "1"
    fields = [["k", "INT NOT NULL"], *([f"c{i}", t] for i, t in enumerate(TYPES))]
    table.java("create_table", fields=fields, primary_keys=keys, options=options)
    for turn in range(3):
        rows = [["+I", row(rng, rng.randrange(40))] for _ in range(30)]
        table.java("write", rows=rows) if turn == 1 else table.we_write(rows)
        table.agree()
    table.ours().compact(full=True)
    table.agree_everywhere()
