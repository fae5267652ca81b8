"""A descending sequence: rows of one commit are merged in the same order as rows of several commits."""

import pyarrow as pa
import pytest

from tests.support.tables import keyed_table, rows_of

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.int32()), ("v", pa.string())])
ENGINES = {
    "deduplicate": {},
    "partial-update": {},
    "aggregation": {"fields.v.aggregate-function": "last_value"},
}
NEWEST = {"deduplicate": None, "partial-update": "three", "aggregation": None}
ROWS = [(1, 5, "five"), (1, None, "null"), (1, 3, "three"), (1, 3, None), (1, 9, "nine"), (2, 7, "seven"), (2, 8, "x")]


def shown(path, batches, **options):
    """The rows and the changes of a table after these commits."""
    table = keyed_table(path, SCHEMA, bucket="1", **options)
    for batch in batches:
        columns = [pa.array(values, field.type) for values, field in zip(zip(*batch, strict=True), SCHEMA, strict=True)]
        table.write(pa.table(columns, schema=SCHEMA))
    rows = rows_of(table.to_arrow())
    table.compact(full=True)
    compacted = rows_of(table.to_arrow())
    assert rows in ([], compacted)  # deletion vectors: rows are shown once they are compacted
    return compacted


@pytest.mark.cases(5)
@pytest.mark.parametrize("spill", ["true", "false"])
@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction", "deletion vectors"])
@pytest.mark.parametrize("engine", ENGINES)
def test_one_commit_equals_several(tmp_path, engine, producer, spill):
    vectors = producer == "deletion vectors"
    options = {
        "merge-engine": engine, **ENGINES[engine],
        "sequence.field": "s", "sequence.field.sort-order": "descending", "write-buffer-spillable": spill,
        **({"deletion-vectors.enabled": "true"} if vectors else {"changelog-producer": producer}),
    }  # fmt: skip
    several = shown(tmp_path / "several", [[row] for row in ROWS], **options)
    assert shown(tmp_path / "one", [ROWS], **options) == several
    assert several == [{"id": 1, "s": 3, "v": NEWEST[engine]}, {"id": 2, "s": 7, "v": "seven"}]
    if engine == "deduplicate":
        assert shown(tmp_path / "buffers", [ROWS], **{**options, "write-buffer-size": "64 b"}) == several
