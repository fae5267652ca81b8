import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

FIELDS = [DataField(0, "k", parse_type("INT")), DataField(1, "v", parse_type("ROW<x INT>"))]


def create(root, options=None, keys=("k",)):
    return create_table(FileIO.of(root), root, Schema(FIELDS, keys, (), options or {"bucket": "2"}), lambda: 42)


def test_new_table_has_only_its_first_schema(tmp_path):
    root = tmp_path / "t"
    table = create(str(root))
    assert [str(p.relative_to(root)) for p in root.rglob("*")] == ["schema", "schema/schema-0"]
    assert json.loads((root / "schema" / "schema-0").read_text()) == {
        "version": 3,
        "id": 0,
        "fields": [
            {"id": 0, "name": "k", "type": "INT NOT NULL"},
            {"id": 1, "name": "v", "type": {"type": "ROW", "fields": [{"id": 2, "name": "x", "type": "INT"}]}},
        ],
        "highestFieldId": 2,
        "partitionKeys": [],
        "primaryKeys": ["k"],
        "options": {"bucket": "2"},
        "timeMillis": 42,
    }
    assert table.time_millis == 42


def test_table_is_made_once(tmp_path):
    root = str(tmp_path / "t")
    create(root)
    with pytest.raises(AlreadyExistsError, match="/t"):
        create(root)


def test_one_of_many_creators_wins(tmp_path):
    root = str(tmp_path / "t")

    def attempt(_):
        try:
            return create(root)
        except AlreadyExistsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        made = [one for one in pool.map(attempt, range(16)) if one is not None]
    assert len(made) == 1
    assert not list(Path(root, "schema").glob(".*"))


def test_refused_schema_leaves_no_file(tmp_path):
    root = tmp_path / "t"
    for options, error in (
        ({"bucket": "0"}, InvalidInputError),
        ({"bukcet": "1"}, InvalidInputError),
        ({"bucket": "2", "path": "/elsewhere"}, InvalidInputError),
        ({"bucket": "2", "pk-clustering-override": "true"}, UnsupportedError),
        ({"bucket": "2", "manifest.format": "orc"}, UnsupportedError),
    ):
        with pytest.raises(error):
            create(str(root), options)
        assert not root.exists()


def test_option_path_may_name_table_itself(tmp_path):
    root = str(tmp_path / "t")
    assert "path" not in create(root, {"bucket": "1", "path": root + "/"}).options
