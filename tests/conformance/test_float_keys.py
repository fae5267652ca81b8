"""FLOAT and DOUBLE keys with both zeros and NaN, as Java writes them."""

import pytest

from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_zeros_and_nan_that_java_wrote_are_read_and_found(judge, name, kind):
    """One key a commit: Java's own merge would lose some."""
    shared = SharedTable(judge, name)
    fields = [["k", f"{kind} NOT NULL"], ["v", "STRING"]]
    shared.java("create_table", fields=fields, primary_keys=["k"], options={"bucket": "2", "write-only": "true"})
    keys = ["-Infinity", -1.5, "-0.0", 0.0, 1.5, "Infinity", "NaN"]
    for key in keys:
        for value in ("old", "new"):
            shared.java("write", rows=[["+I", {"k": key, "v": f"{value} {key}"}]])
    expected = {repr(float(key)): f"new {key}" for key in keys}
    table = shared.ours()
    for _ in range(2):
        actual = table.to_arrow()
        assert dict(zip(map(repr, actual["k"].to_pylist()), actual["v"].to_pylist(), strict=True)) == expected
        assert actual.num_rows == len(keys)
        for key in keys:
            assert table.get({"k": float(key)})["v"] == f"new {key}"
        table.compact(full=True)
