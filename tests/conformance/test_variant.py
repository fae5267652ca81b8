"""VARIANT columns, alone and inside others, both ways; Spark's own code reads and makes the values on our side."""

import pytest

from paimon_core.errors import UnsupportedError
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


def test_shredded_variants_are_refused(judge, name):
    table = SharedTable(judge, name)
    inner = '{"type":"ROW","fields":[{"id":0,"name":"a","type":"INT"}]}'
    shape = f'{{"type":"ROW","fields":[{{"id":0,"name":"v","type":{inner}}}]}}'
    table.java(
        "create_table", fields=[["k", "INT"], ["v", "VARIANT"]], options={"parquet.variant.shreddingSchema": shape}
    )
    table.java("write", rows=[["+I", {"k": 1, "v": '{"a":1}'}]])
    with pytest.raises(UnsupportedError, match=r"'v' of .*shredded"):
        table.ours().to_arrow()
    assert table.ours().to_arrow(["k"]).to_pylist() == [{"k": 1}]
