"""Continuity of schema versions: altered schemas continue an earlier version, replacements do not."""

from dataclasses import replace

import pytest

from paimon_core.catalog.staged import _next_version
from paimon_core.options.option import Options
from paimon_core.schema.change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdateTableComment,
    UpdateType,
    apply,
)
from paimon_core.schema.continuity import continues, why_not_continued
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

COLUMNS = {"k": "INT", "p": "INT", "v": "STRING", "n": "INT", "r": "ROW<x INT, y STRING>", "a": "ARRAY<ROW<q INT>>"}
TO_NOT_NULL = SetOption("alter-column-null-to-not-null.disabled", "false")


def table(columns=COLUMNS, **given):
    fields = [DataField(-1, name, parse_type(kind)) for name, kind in columns.items()]
    return create(Schema(fields, **given), 1)


PRIMARY = table(
    primary_keys=["k", "p"], partition_keys=["p"], options={"bucket": "2", "deletion-vectors.modifiable": "true"}
)
APPEND = table(options={"bucket": "4", "bucket-key": "k"})


def altered(base, *changes):
    """Apply each change in a version of its own."""
    for change in changes:
        base = apply(base, [change], has_snapshots=False)
    return base


def replaced(base, columns, **given):
    return _next_version(table(columns, **given), base, "/t")


@pytest.mark.parametrize("base", [PRIMARY, APPEND], ids=["primary", "append"])
@pytest.mark.parametrize(
    "changes",
    [
        (),
        (AddColumn("new", "BIGINT"),),
        (DropColumn("v"), DropColumn("r")),
        (DropColumn("v"), AddColumn("v", "STRING")),
        (RenameColumn("v", "w"), MoveColumn("w", Position("first"))),
        (UpdateType("n", "BIGINT"), UpdateComment("n", "wider"), UpdateDefault("n", "1")),
        (RenameColumn("k", "key"),),
        (SetOption("bucket", "8"), UpdateTableComment("more")),
        (SetOption("write-only", "true"), RemoveOption("write-only")),
        (AddColumn(("r", "z"), "INT"), DropColumn(("r", "x"))),
        (UpdateType(("r", "x"), "BIGINT"),),
    ],
    ids=lambda changes: "-".join(type(change).__name__ for change in changes) or "same",
)
def test_altered_schema_continues_its_base(base, changes):
    assert why_not_continued(base, altered(base, *changes)) is None
    assert continues(base, altered(base, *changes))


@pytest.mark.parametrize(
    ("base", "changes", "reason"),
    [
        (APPEND, (TO_NOT_NULL, UpdateNullability("v", False)), "column 'v', or a field in it, became NOT NULL"),
        (APPEND, (TO_NOT_NULL, UpdateNullability(("r", "x"), False)), "column 'r', or a field in it, became NOT NULL"),
        (
            APPEND,
            (TO_NOT_NULL, UpdateNullability(("a", "element", "q"), False)),
            "column 'a', or a field in it, became NOT NULL",
        ),
        (APPEND, (TO_NOT_NULL, AddColumn("z", "INT"), UpdateNullability("z", False)), "'z' was added and is NOT NULL"),
        (PRIMARY, (SetOption("deletion-vectors.enabled", "true"),), "option 'deletion-vectors.enabled' changed"),
        (PRIMARY, (SetOption("merge-engine", "first-row"),), "option 'merge-engine' changed from 'deduplicate'"),
        (PRIMARY, (SetOption("bucket", "-1"),), "option 'bucket' changed from 2 to -1"),
        (APPEND, (SetOption("bucket-key", "n"),), "the bucket key changed from (k) to (n)"),
    ],
)
def test_alters_that_do_not_continue(base, changes, reason):
    changed = altered(base, *changes)
    assert reason in why_not_continued(base, changed)
    assert not continues(base, changed)


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (COLUMNS, {"primary_keys": ["k", "p"], "partition_keys": ["p"], "options": {"bucket": "2"}}),
        ({"k": "INT", "p": "INT"}, {"primary_keys": ["k", "p"], "partition_keys": ["p"], "options": {"bucket": "2"}}),
        ({"other": "INT", "p": "INT"}, {"partition_keys": ["p"]}),
    ],
    ids=["same columns", "some columns", "other columns"],
)
def test_replacements_do_not_continue(columns, given):
    new = replaced(PRIMARY, columns, **given)
    assert "the table was replaced, or all of its columns were" in why_not_continued(PRIMARY, new)
    assert not continues(PRIMARY, altered(new, AddColumn("later", "INT")))
    assert not continues(new, replaced(new, columns, **given))
    assert continues(new, altered(new, AddColumn("later", "INT")))


def test_replaced_schema_published_once_more_continues():
    new = replaced(PRIMARY, COLUMNS, partition_keys=["p"])
    again = replace(PRIMARY, id=new.id + 1)
    assert continues(PRIMARY, again)
    assert not continues(new, again)


def test_columns_that_all_changed_their_names_may_be_replacement():
    base = table({"a": "INT", "b": "INT"})
    assert continues(base, altered(base, RenameColumn("a", "c")))
    assert not continues(base, altered(base, RenameColumn("a", "c"), RenameColumn("b", "d")))
    assert not continues(base, altered(base, AddColumn("c", "INT"), DropColumn("a"), DropColumn("b")))


def test_table_created_again_does_not_continue():
    reason = "the table was dropped and created again"
    assert why_not_continued(APPEND, replace(APPEND, time_millis=2)) == reason
    assert why_not_continued(altered(APPEND, AddColumn("c", "INT")), APPEND) == reason
    fewer = replace(table({"k": "INT"}), id=3)
    assert why_not_continued(APPEND, fewer) == reason


def test_replacement_with_column_ids_from_zero_is_seen_by_its_types():
    base = table({"a": "INT", "b": "ROW<x INT>"})
    for columns in (
        {"a": "ARRAY<INT>", "b": "ROW<x INT>"},
        {"a": "INT", "b": "MAP<INT, INT>"},
        {"a": "DATE", "b": "INT"},
    ):
        assert not continues(base, replace(table(columns), id=1, highest_field_id=9))


def test_option_at_its_default_equals_default():
    explicit = replace(PRIMARY, id=1, options=Options({**PRIMARY.options, "merge-engine": "deduplicate"}))
    assert continues(PRIMARY, explicit)
