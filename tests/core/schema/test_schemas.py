import pickle
from dataclasses import replace

import pytest

from paimon_core.errors import NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import AtomicType, DataField

SCHEMA = TableSchema(0, (DataField(0, "a", AtomicType("INT")),), 0)


def schemas(tmp_path):
    return Schemas(FileIO.of(str(tmp_path)), str(tmp_path))


def test_missing_table_has_no_schema(tmp_path):
    found = schemas(tmp_path)
    assert found.ids() == []
    assert found.latest() is None
    with pytest.raises(NotFoundError, match="schema-0"):
        found.get(0)


def test_ids_are_taken_once_and_listed_in_order(tmp_path):
    found = schemas(tmp_path)
    for i in (0, 1, 2, 10):
        assert found.commit(replace(SCHEMA, id=i))
    assert not found.commit(replace(SCHEMA, id=2, comment="late"))
    assert found.ids() == [0, 1, 2, 10]
    assert found.latest() == replace(SCHEMA, id=10)
    assert found.get(2).comment is None


def test_other_names_in_directory_are_ignored(tmp_path):
    found = schemas(tmp_path)
    found.commit(SCHEMA)
    for name in (".schema-1.x.tmp", "schema-1x", "schema-", "schema-²", "other"):
        (tmp_path / "schema" / name).write_text("{}")
    (tmp_path / "schema" / "schema-5").mkdir()
    assert found.ids() == [0]


def test_cached_schemas_are_not_pickled(tmp_path):
    found = schemas(tmp_path)
    found.commit(SCHEMA)
    assert found.get(0) is found.get(0)
    assert found.latest() == SCHEMA
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again._known == {}


def test_latest_schema_belongs_to_table_created_again(tmp_path):
    found = schemas(tmp_path)
    found.commit(SCHEMA)
    found.get(0)
    (tmp_path / "schema" / "schema-0").unlink()
    found.commit(replace(SCHEMA, comment="new"))
    latest = found.latest()
    assert latest is not None
    assert latest.comment == "new"
    assert found.get(0).comment == "new"
