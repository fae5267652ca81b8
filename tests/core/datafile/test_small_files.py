"""Small files, read in one call, and cached partition values: the rows equal the rows of the general path."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format import parquet


@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 1000])
@pytest.mark.parametrize("promised", [None, 1, 100, 5000])
def test_small_file_size_from_metadata_is_not_trusted(tmp_path, monkeypatch, length, promised):
    monkeypatch.setattr(parquet, "_WHOLE_FILE", 100)
    path, data = str(tmp_path / "f"), bytes(i % 251 for i in range(length))
    FileIO.of(path).write(path, data)
    with FileIO.of(path).open(path, promised) as source:
        file = parquet._read_ahead(source)
        assert isinstance(file, pa.BufferReader if length <= 100 else pa.OSFile)
        assert (file.size(), file.read()) == (length, data)


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_small_file_rows_equal_partial_reads(tmp_path, monkeypatch, form):
    schema = pa.schema([("p", pa.float64()), ("q", pa.string()), ("v", pa.int64()), ("s", pa.string())])
    options = {"file.format": form, "write-only": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p", "q"], options=options))
    places = [(0.0, "a"), (-0.0, "a"), (0.0, ""), (None, "a"), (1.5, None)]
    for n in range(3):
        made = [{"p": p, "q": q, "v": n * 10 + i, "s": f"{i}" * n} for i, (p, q) in enumerate(places)]
        table.write(pa.Table.from_pylist(made, schema))
    whole = [table.to_arrow(columns, filter) for columns in (None, ["v"], ["q", "p"]) for filter in (None, "v > 7")]
    monkeypatch.setattr(parquet, "_WHOLE_FILE", -1)
    assert whole == [
        table.to_arrow(columns, filter) for columns in (None, ["v"], ["q", "p"]) for filter in (None, "v > 7")
    ]
    result = {row["v"]: (str(row["p"]), row["q"], row["s"]) for row in whole[0].to_pylist()}
    blank = whole[0].filter(pa.compute.equal(whole[0]["v"], 2))["q"][0].as_py()
    expected = {
        n * 10 + i: (str(p), blank if i == 2 else q, f"{i}" * n) for n in range(3) for i, (p, q) in enumerate(places)
    }
    assert result == expected


def test_truncated_small_file_is_refused(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("v", pa.int64())])))
    table.write(pa.table({"v": [1, 2, 3]}))
    (file,) = (tmp_path / "t").rglob("*.parquet")
    for left in (0, 3, 100):
        file.write_bytes(file.read_bytes()[:left])
        with pytest.raises(CorruptedError, match=file.name):
            table.to_arrow()
