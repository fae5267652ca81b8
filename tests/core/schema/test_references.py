import pytest

from paimon_core.options.option import Options
from paimon_core.schema.references import columns_in, keep, options_at, rename, rename_inner
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import INT, DataField


@pytest.mark.parametrize(
    ("key", "text", "columns"),
    [
        ("bucket-key", " a , b,", ["a", "b"]),
        ("sequence.field", "a", ["a"]),
        ("fields.a.aggregate-function", "sum", ["a"]),
        ("fields.a.b.aggregate-function", "sum", ["a.b"]),
        ("fields.a,b.sequence-group", "c,d", ["a", "b", "c", "d"]),
        ("fields.a.nested-key", "x,y", ["a"]),
        ("fields.default-aggregate-function", "sum", []),
        ("file-index.bloom-filter.columns", "a,m[k]", ["a", "m"]),
        ("file-index.bloom-filter.a.fpp", "0.1", []),
        ("file.format", "orc", []),
    ],
)
def test_columns_option_names(key, text, columns):
    assert columns_in(key, text) == columns


def test_rename_changes_all_options_that_name_column():
    options = {
        "bucket-key": "a,b",
        "sequence.field": "aa,a",
        "fields.a.stats-mode": "none",
        "fields.x,a.sequence-group": "a,b",
        "file-index.bitmap.columns": "a,a[k],b",
        "file-index.bitmap.a.version": "1",
        "file-index.bitmap.a[k].version": "1",
        "file-index.bitmap.b.version": "1",
        "file-index.read.a": "a",
        "comment": "a",
        "fields.aa.stats-mode": "a",
    }
    assert rename(options, "a", "z") == {
        "bucket-key": "z,b",
        "sequence.field": "aa,z",
        "fields.z.stats-mode": "none",
        "fields.x,z.sequence-group": "z,b",
        "file-index.bitmap.columns": "z,z[k],b",
        "file-index.bitmap.z.version": "1",
        "file-index.bitmap.z[k].version": "1",
        "file-index.bitmap.b.version": "1",
        "file-index.read.a": "a",
        "comment": "a",
        "fields.aa.stats-mode": "a",
    }


def test_untouched_lists_keep_their_spelling():
    assert rename({"sequence.field": "a , b"}, "c", "d") == {"sequence.field": "a , b"}


def test_fields_of_nested_rows_are_renamed_in_nested_keys():
    options = {"fields.a.nested-key": "x,y", "fields.b.nested-key": "x", "fields.a.nested-sequence-field": "x"}
    assert rename_inner(options, "a", "x", "z") == {
        "fields.a.nested-key": "z,y",
        "fields.b.nested-key": "x",
        "fields.a.nested-sequence-field": "z",
    }


def test_unknown_columns_in_options_are_removed():
    options = {"sequence.field": "a,b", "rowkind.field": "b", "fields.b.stats-mode": "none", "file.format": "orc"}
    assert keep(options, ["a"]) == {"sequence.field": "a", "file.format": "orc"}


def test_current_options_for_older_schema():
    then = TableSchema(0, (DataField(0, "old", INT),), 0)
    now = TableSchema(
        2,
        (DataField(0, "new", INT), DataField(1, "late", INT)),
        1,
        options=Options({"sequence.field": "new,late", "fields.late.stats-mode": "none", "file.format": "orc"}),
    )
    assert options_at(now, then) == {"sequence.field": "old", "file.format": "orc"}


def test_swapped_names_swap_back():
    then = TableSchema(0, (DataField(0, "a", INT), DataField(1, "b", INT)), 1)
    now = TableSchema(
        1, (DataField(0, "b", INT), DataField(1, "a", INT)), 1, options=Options({"sequence.field": "b,a"})
    )
    assert options_at(now, then) == {"sequence.field": "a,b"}
