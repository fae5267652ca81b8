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
    actual = schemas(tmp_path)
    assert actual.ids() == []
    assert actual.latest() is None
    with pytest.raises(NotFoundError, match="schema-0"):
        actual.get(0)


def test_ids_are_taken_once_and_listed_in_order(tmp_path):
    actual = schemas(tmp_path)
    for i in (0, 1, 2, 10):
        assert actual.commit(replace(SCHEMA, id=i))
    assert not actual.commit(replace(SCHEMA, id=2, comment="late"))
    assert actual.ids() == [0, 1, 2, 10]
    assert actual.latest() == replace(SCHEMA, id=10)
    assert actual.get(2).comment is None


def test_other_names_in_directory_are_ignored(tmp_path):
    actual = schemas(tmp_path)
    actual.commit(SCHEMA)
    for name in (".schema-1.x.tmp", "schema-1x", "schema-", "schema-²", "other"):
        (tmp_path / "schema" / name).write_text("{}")
    (tmp_path / "schema" / "schema-5").mkdir()
    assert actual.ids() == [0]


def test_cached_schemas_are_not_pickled(tmp_path):
    actual = schemas(tmp_path)
    actual.commit(SCHEMA)
    assert actual.get(0) is actual.get(0)
    assert actual.latest() == SCHEMA
    again = pickle.loads(pickle.dumps(actual))
    assert again == actual
    assert again._known == {}


def test_latest_schema_belongs_to_table_created_again(tmp_path):
    actual = schemas(tmp_path)
    actual.commit(SCHEMA)
    actual.get(0)
    (tmp_path / "schema" / "schema-0").unlink()
    actual.commit(replace(SCHEMA, comment="new"))
    latest = actual.latest()
    assert latest is not None
    assert latest.comment == "new"
    assert actual.get(0).comment == "new"
