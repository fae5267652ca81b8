"""Properties of users: stored and shown; a name that could be a misspelt option is refused."""

import warnings

import pyarrow as pa
import pytest

from paimon_core import RemoveOption, Schema, SetOption, Table
from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options import is_known, warn_once
from paimon_core.options.families import NEWER
from paimon_core.schema.properties import check_table_options

COLUMNS = pa.schema([("k", pa.int64())])
PROPERTIES = {
    "owner": "x",
    "note.mine": "hello",
    "dbt_model": "orders",
    "airflow.dag_id": "daily",
    "created_by": "me",
    "user.bucket.count": "7",
    "user.": "",
}


def test_properties_are_stored_changed_and_shown(tmp_path):
    path = str(tmp_path / "t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = Table.create(path, Schema(COLUMNS, options=PROPERTIES))
        table.alter([SetOption("team", "web"), SetOption("owner", "y"), RemoveOption("user.")])
        table.write(pa.table({"k": [1]}))
        table = Table.open(path)
    stored = {**{k: v for k, v in PROPERTIES.items() if k != "user."}, "team": "web", "owner": "y"}
    assert dict(table.schema.options) == stored
    shown = table.system_table("options").to_arrow().to_pylist()
    assert {row["key"]: row["value"] for row in shown} == stored


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("bukcet", "did you mean 'bucket'? A property of your own may be named 'user.bukcet'"),
        ("Bucket", "did you mean 'bucket'"),
        ("bucketing-done-by-me", "names that begin with 'bucket' are options of Paimon"),
        ("snapshot.color", "names that begin with 'snapshot.' are options of Paimon"),
        ("Compaction.color", "names that begin with 'Compaction.' are options of Paimon"),
        ("file.origin", "'user.file.origin'"),
        ("fields.v.color", "'user.fields.v.color'"),
        ("s3.secret-key", "it is an option of the store"),
        ("", "empty, or has blanks"),
        ("owner ", "empty, or has blanks"),
    ],
)
def test_name_like_option_is_refused_at_creation_and_change(tmp_path, key, message):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS))
    for call in (
        lambda: Table.create(str(tmp_path / "u"), Schema(COLUMNS, options={key: "1"})),
        lambda: table.alter([SetOption(key, "1")]),
    ):
        with pytest.raises(InvalidInputError, match="unknown option") as error:
            call()
        assert message in str(error.value)


@pytest.mark.parametrize("name", NEWER)
def test_option_of_newer_engine_is_refused_by_name(name):
    key = name.replace("<column>", "v").replace("<kind>", "btree").replace("<setting>", "size")
    assert not is_known(key)
    for where in (key, "table-default." + key):
        with pytest.raises(UnsupportedError, match="newer than this engine"):
            check_table_options({where: "1"}, "table t")


def test_options_of_other_formats_warn_once():
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match=r"'delta\.appendOnly' in table t is stored and has no effect: .* Delta Lake"):
        check_table_options({"delta.appendOnly": "true"}, "table t")


def test_reads_and_writes_take_no_properties(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS))
    with pytest.raises(InvalidInputError, match="unknown option 'owner' in the options given"):
        table.with_options({"owner": "x"})
    with pytest.raises(InvalidInputError, match=r"'user\.owner' is a property of tables"):
        table.with_options({"user.owner": "x"})


def test_default_properties_of_catalog_reach_new_tables(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path), options={"table-default.owner": "web"})
    catalog.create_database("d")
    catalog.create_table("d.t", Schema(COLUMNS))
    assert catalog.table("d.t").schema.options["owner"] == "web"
