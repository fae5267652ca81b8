"""Unknown options that a table stores, such as options of other engines, cause one warning and no error."""

import json
import warnings

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError
from paimon_core.options import warn_once
from paimon_core.schema.change import SetOption

STRAYS = {
    "fields.v.agregate-function": "sum",
    "fields.gone.aggregate-function": "sum",
    "file-index.bloom-filter.v.items": "7",
    "parquet.of.tomorrow": "1",
}


@pytest.fixture
def path(tmp_path):
    warn_once.cache_clear()
    path = str(tmp_path / "t")
    columns = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
    table = Table.create(path, Schema(columns, primary_keys=["k"], options={"bucket": "1"}))
    table.write(pa.table({"k": [1, 2], "v": [1, 2]}))
    stored = tmp_path / "t" / "schema" / "schema-0"
    schema = json.loads(stored.read_text())
    stored.write_text(json.dumps({**schema, "options": {**schema["options"], **STRAYS}}))
    return path


def test_unknown_stored_option_warns_once_and_table_is_read(path):
    with pytest.warns(UserWarning, match=r"no effect") as told:
        table = Table.open(path)
    said = " ".join(str(one.message) for one in told)
    assert len(told) == 3
    assert "did you mean 'fields.v.aggregate-function'" in said
    assert "names an unknown column 'gone'" in said
    assert "parquet.of.tomorrow" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.write(pa.table({"k": [2, 3], "v": [5, 6]}))
        table.compact(full=True)
        assert Table.open(path).to_arrow().sort_by("k").to_pydict() == {"k": [1, 2, 3], "v": [1, 5, 6]}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("fields.v.agregate-function", "did you mean 'fields.v.aggregate-function'"),
        ("fields.w.aggregate-function", "names column 'w'"),
    ],
)
def test_unknown_option_of_user_is_refused(tmp_path, key, message):
    columns = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
    path, wrong = str(tmp_path / "t"), {key: "sum"}
    table = Table.create(path, Schema(columns, primary_keys=["k"], options={"bucket": "1"}))
    for given in (
        lambda: table.with_options(wrong),
        lambda: Table.open(path, options=wrong),
        lambda: table.alter([SetOption(key, "sum")]),
        lambda: Table.create(path + "2", Schema(columns, primary_keys=["k"], options=wrong)),
    ):
        with pytest.raises(InvalidInputError, match=message):
            given()
