import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, PaimonError
from paimon_core.options.option import Options
from paimon_core.schema.change import (
    FIRST,
    LAST,
    AddColumn,
    DropColumn,
    DropPrimaryKey,
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
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.table import Table
from paimon_core.types.datatype import ArrayType, DataField, MapType, RowType
from paimon_core.types.parse import parse_type

COLUMNS = {
    "k": "INT", "p": "INT", "v": "STRING", "r": "ROW<x INT, y ROW<z STRING>>",
    "ar": "ARRAY<ROW<q INT>>", "m": "MAP<INT, ROW<w INT>>", "ai": "ARRAY<INT>",
}  # fmt: skip
PRIMARY = create(
    Schema(
        [DataField(-1, n, parse_type(t)) for n, t in COLUMNS.items()],
        ["k", "p"],
        ["p"],
        {"bucket": "2", "sequence.field": "v", "fields.v.stats-mode": "none"},
    ),
    0,
)
APPEND = create(
    Schema([DataField(-1, n, parse_type(t)) for n, t in COLUMNS.items()], options={"bucket": "2", "bucket-key": "k"}),
    0,
)


def change(*changes, base=PRIMARY, has_snapshots=False):
    return apply(base, changes, has_snapshots)


def ids(fields):
    found = {}
    for field in fields:
        found[field.name] = field.id
        found |= {f"{field.name}.{name}": i for name, i in nested_ids(field.type).items()}
    return found


def nested_ids(t):
    match t:
        case RowType():
            return ids(t.fields)
        case ArrayType():
            return nested_ids(t.element)
        case MapType():
            return nested_ids(t.value)
    return {}


# ---- adding


def test_new_column_comes_last_with_next_id():
    changed = change(AddColumn("n", "INT", comment="c", default="5"))
    assert changed.fields[-1] == DataField(12, "n", parse_type("INT"), "c", "5")
    assert (changed.id, changed.highest_field_id) == (1, 12)


def test_nested_fields_of_new_column_are_numbered_after_it_and_never_again():
    changed = change(AddColumn("n", "ROW<a INT, b ROW<c INT>>"), DropColumn("n"), AddColumn("n", "INT"))
    assert changed.field("n").id == 16
    first = change(AddColumn("n", "ROW<a INT, b ROW<c INT>>"))
    assert {name: i for name, i in ids(first.fields).items() if name.startswith("n")} == {
        "n": 12, "n.a": 13, "n.b": 15, "n.b.c": 14,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "type_text", "expected"),
    [
        (["r", "y", "n"], "INT", {"r.y.n": 12}),
        (["ar", "element", "n"], "ROW<a INT, b INT>", {"ar.n": 12, "ar.n.a": 13, "ar.n.b": 14}),
        (["m", "value", "n"], "INT", {"m.n": 12}),
    ],
)
def test_columns_are_added_at_any_depth(path, type_text, expected):
    actual = ids(change(AddColumn(path, type_text)).fields)
    assert expected.items() <= actual.items()
    assert ids(PRIMARY.fields).items() <= actual.items()


@pytest.mark.parametrize(
    ("position", "names"),
    [
        (None, "k p v r ar m ai n"),
        (LAST, "k p v r ar m ai n"),
        (FIRST, "n k p v r ar m ai"),
        (Position("after", "k"), "k n p v r ar m ai"),
        (Position("before", "k"), "n k p v r ar m ai"),
        (Position("after", "ai"), "k p v r ar m ai n"),
    ],
)
def test_new_column_is_added_at_its_position(position, names):
    assert " ".join(change(AddColumn("n", "INT", position=position)).names) == names


def test_option_adds_column_before_partition_columns():
    base = change(SetOption("add-column-before-partition", "true"))
    assert change(AddColumn("n", "INT"), base=base).names[:3] == ("k", "n", "p")


# ---- dropping, renaming, moving


def test_dropped_column_and_nested_field_are_removed():
    assert change(DropColumn("r")).names == ("k", "p", "v", "ar", "m", "ai")
    assert "r.y" not in ids(change(DropColumn(["r", "y"])).fields)
    assert change(DropColumn("ai")).highest_field_id == PRIMARY.highest_field_id


def test_renamed_column_keeps_its_id_and_options_follow():
    changed = change(RenameColumn("v", "vv"), RenameColumn("k", "kk"))
    assert changed.field("vv").id == PRIMARY.field("v").id
    assert changed.primary_keys == ("kk", "p")
    assert dict(changed.options) == {"bucket": "2", "sequence.field": "vv", "fields.vv.stats-mode": "none"}
    assert change(RenameColumn("k", "kk"), base=APPEND).options["bucket-key"] == "kk"


def test_nested_fields_are_renamed_by_their_path():
    actual = ids(change(RenameColumn(["r", "y"], "yy"), RenameColumn(["ar", "element", "q"], "qq")).fields)
    assert actual["r.yy.z"] == ids(PRIMARY.fields)["r.y.z"]
    assert actual["ar.qq"] == ids(PRIMARY.fields)["ar.q"]


def test_rename_can_change_case_of_column():
    assert "V" in change(RenameColumn("v", "V")).names


def test_column_moves_to_each_position():
    assert change(MoveColumn("v", FIRST)).names[0] == "v"
    assert change(MoveColumn("k", Position("after", "v"))).names[:3] == ("p", "v", "k")
    nested = change(MoveColumn(["r", "y"], FIRST)).field("r").type
    assert [f.name for f in nested.fields] == ["y", "x"]


# ---- types, nullability, comments, defaults


def test_types_change_where_values_survive():
    changed = change(
        UpdateType(["r", "x"], "BIGINT"),
        UpdateType(["ai", "element"], "BIGINT"),
        UpdateType(["m", "value", "w"], "STRING"),
    )
    assert str(changed.field("r").type) == "ROW<`x` BIGINT, `y` ROW<`z` STRING>>"
    assert str(changed.field("ai").type) == "ARRAY<BIGINT>"
    assert str(changed.field("m").type) == "MAP<INT, ROW<`w` STRING>>"
    assert ids(changed.fields) == ids(PRIMARY.fields)


def test_nullability_stays_unless_it_is_meant():
    base = change(AddColumn("n", "INT"), SetOption("alter-column-null-to-not-null.disabled", "false"))
    base = change(UpdateNullability("n", False), base=base)
    assert str(change(UpdateType("n", "BIGINT"), base=base).field("n").type) == "BIGINT NOT NULL"
    assert str(change(UpdateType("n", "BIGINT", keep_nullability=False), base=base).field("n").type) == "BIGINT"
    assert str(change(UpdateNullability("n", True), base=base).field("n").type) == "INT"


def test_same_type_is_not_change():
    assert change(UpdateType("r", "ROW<x INT, y ROW<z STRING>>")).fields == PRIMARY.fields


def test_explicit_casts_can_be_switched_off():
    base = change(AddColumn("n", "BIGINT"))
    assert str(change(UpdateType("n", "INT"), base=base).field("n").type) == "INT"
    strict = change(SetOption("disable-explicit-type-casting", "true"), base=base)
    with pytest.raises(InvalidInputError, match="BIGINT to INT"):
        change(UpdateType("n", "INT"), base=strict)
    change(UpdateType("n", "DOUBLE"), base=strict)


def test_comments_and_defaults():
    changed = change(
        UpdateComment("v", "c"), UpdateComment(["r", "x"], "d"), UpdateDefault("v", "z"), UpdateTableComment("t")
    )
    assert (changed.field("v").description, changed.field("v").default, changed.comment) == ("c", "z", "t")
    assert changed.field("r").type.fields[0].description == "d"
    again = change(UpdateComment("v", None), UpdateDefault("v", None), UpdateTableComment(None), base=changed)
    assert (again.field("v").description, again.field("v").default, again.comment) == (None, None, None)


# ---- what is refused

REFUSED = [
    (AddColumn("n", "INT NOT NULL"), InvalidInputError, "NOT NULL"),
    (AddColumn("v", "INT"), AlreadyExistsError, "'v'"),
    (AddColumn("V", "INT"), AlreadyExistsError, "'v'"),
    (AddColumn("_KEY_x", "INT"), InvalidInputError, "_KEY_x"),
    (AddColumn("n", "INT", default="x"), InvalidInputError, "default"),
    (AddColumn("n", "INT", position=Position("after", "zz")), NotFoundError, "'zz'"),
    (AddColumn("n", "NONSENSE"), InvalidInputError, "NONSENSE"),
    (AddColumn(["v", "n"], "INT"), InvalidInputError, "'v' is STRING"),
    (AddColumn(["ar", "n"], "INT"), InvalidInputError, "'element'"),
    (AddColumn(["ai", "element"], "INT"), InvalidInputError, "ai.element"),
    (AddColumn(["zz", "n"], "INT"), NotFoundError, "'zz'"),
    (AddColumn([], "INT"), InvalidInputError, "no column"),
    (DropColumn("k"), InvalidInputError, "primary key"),
    (DropColumn("p"), InvalidInputError, "partition"),
    (DropColumn("v"), InvalidInputError, "sequence.field|fields.v"),
    (DropColumn("zz"), NotFoundError, "'zz'"),
    (DropColumn(["r", "zz"]), NotFoundError, "zz"),
    (DropColumn(["m", "value", "w"]), InvalidInputError, "only column"),
    (DropColumn(["ai", "element"]), InvalidInputError, "only column"),
    (RenameColumn("p", "pp"), InvalidInputError, "partition"),
    (RenameColumn("v", "k"), AlreadyExistsError, "'k'"),
    (RenameColumn("v", "v"), AlreadyExistsError, "needs another"),
    (RenameColumn("v", "rowkind"), InvalidInputError, "rowkind"),
    (RenameColumn("v", " "), InvalidInputError, "blank"),
    (RenameColumn("zz", "a"), NotFoundError, "'zz'"),
    (RenameColumn(["m", "value"], "a"), InvalidInputError, "no name"),
    (RenameColumn(["m", "key"], "a"), InvalidInputError, "keys cannot"),
    (MoveColumn("v", Position("after", "v")), InvalidInputError, "itself"),
    (MoveColumn("v", Position("after", "zz")), NotFoundError, "'zz'"),
    (MoveColumn("v", Position("after")), InvalidInputError, "needs the name"),
    (UpdateType("k", "BIGINT"), InvalidInputError, "primary key"),
    (UpdateType("p", "BIGINT"), InvalidInputError, "partition"),
    (UpdateType("r", "ROW<x BIGINT>"), InvalidInputError, "by their paths"),
    (UpdateType("ai", "ARRAY<BIGINT>"), InvalidInputError, "by their paths"),
    (UpdateType(["m", "key"], "BIGINT"), InvalidInputError, "keys cannot"),
    (UpdateType("v", "ARRAY<INT>"), InvalidInputError, "cannot change"),
    (UpdateType(["r", "x"], "BIGINT NOT NULL", keep_nullability=False), InvalidInputError, "NOT NULL"),
    (UpdateNullability("k", True), InvalidInputError, "primary key"),
    (UpdateNullability("v", False), InvalidInputError, "alter-column-null-to-not-null"),
    (UpdateDefault("k", "x"), InvalidInputError, "default"),
    (UpdateDefault(["r", "x"], "1"), InvalidInputError, "nested"),
    (SetOption("bukcet", "1"), InvalidInputError, "bucket"),
    (SetOption("path", "/x"), InvalidInputError, "is fixed"),
    (SetOption("type", "format-table"), InvalidInputError, "type"),
    (SetOption("primary-key", "v"), InvalidInputError, "primary-key"),
    (SetOption("sequence.field", "zz"), InvalidInputError, "'zz'"),
    (SetOption("bucket", "many"), InvalidInputError, "many"),
]


@pytest.mark.parametrize(("one", "error", "message"), REFUSED, ids=[str(r[0])[:60] for r in REFUSED])
def test_change_that_breaks_rule_is_refused(one, error, message):
    with pytest.raises(error, match=message):
        change(one)


def test_bucket_key_of_append_table_keeps_its_type_and_stays():
    with pytest.raises(InvalidInputError, match="buckets"):
        change(UpdateType("k", "STRING"), base=APPEND)
    with pytest.raises(InvalidInputError, match="bucket-key"):
        change(DropColumn("k"), base=APPEND)


def test_last_column_stays():
    base = create(Schema([DataField(0, "a", parse_type("INT"))]), 0)
    with pytest.raises(InvalidInputError, match="only column"):
        change(DropColumn("a"), base=base)


def test_failed_change_changes_nothing():
    with pytest.raises(NotFoundError):
        change(AddColumn("n", "INT"), DropColumn("zz"))


# ---- options once there is data


@pytest.mark.parametrize(
    ("options", "one", "refused"),
    [
        ({}, SetOption("merge-engine", "aggregation"), True),
        ({}, SetOption("bucket-key", "k"), True),
        ({}, SetOption("rowkind.field", "v"), True),
        ({}, SetOption("bucket", "4"), False),
        ({}, SetOption("bucket", "-1"), True),
        ({}, RemoveOption("bucket"), True),
        ({"bucket": "-1"}, SetOption("bucket", "4"), True),
        ({"bucket": "-1"}, SetOption("bucket", "-2"), True),
        ({"bucket": "-2"}, SetOption("bucket", "4"), True),
        ({}, SetOption("bucket", "-2"), True),
        ({}, SetOption("ignore-delete", "true"), False),
        ({"ignore-delete": "true"}, SetOption("ignore-delete", "false"), True),
        ({"ignore-delete": "true"}, RemoveOption("ignore-delete"), True),
        ({}, SetOption("deletion-vectors.enabled", "true"), True),
        ({"deletion-vectors.modifiable": "true"}, SetOption("deletion-vectors.enabled", "true"), False),
        ({}, SetOption("file.format", "orc"), False),
        ({}, RemoveOption("sequence.field"), False),
        ({}, RemoveOption("not.there"), False),
        ({"merge-engine": "deduplicate"}, SetOption("merge-engine", "deduplicate"), False),
        ({}, DropPrimaryKey(), True),
    ],
)
def test_changes_of_options_on_table_with_data(options, one, refused):
    base = replace(PRIMARY, options=PRIMARY.options.merged(options))
    if refused:
        with pytest.raises(InvalidInputError):
            change(one, base=base, has_snapshots=True)
    else:
        change(one, base=base, has_snapshots=True)


def test_empty_table_may_change_every_option():
    changed = change(SetOption("merge-engine", "first-row"), RemoveOption("sequence.field"))
    assert changed.options["merge-engine"] == "first-row"
    free = change(SetOption("bucket", "-1"), RemoveOption("sequence.field"), DropPrimaryKey())
    assert free.primary_keys == ()


def test_defaults_of_old_versions_survive_change():
    old = replace(PRIMARY, version=1, options=Options({"bucket": "1", "file.format": "orc"}))
    changed = change(AddColumn("n", "INT"), base=old)
    assert (changed.version, dict(changed.options)) == (3, dict(old.options))


# ---- a law

NAMES = st.sampled_from(["a", "b", "c", "d", "r"])
CHANGES = st.one_of(
    st.builds(
        AddColumn, NAMES, st.sampled_from(["INT", "ROW<x INT, y ROW<z INT>>"]), position=st.sampled_from([None, FIRST])
    ),
    st.builds(DropColumn, NAMES),
    st.builds(RenameColumn, NAMES, NAMES),
    st.builds(MoveColumn, NAMES, st.sampled_from([FIRST, LAST])),
)


@given(st.lists(CHANGES, max_size=12))
def test_no_id_is_ever_used_twice(changes):
    schema = create(Schema([DataField(0, "k", parse_type("INT"))]), 0)
    owner = {i: name for name, i in ids(schema.fields).items()}
    for one in changes:
        before = {f.id: f for f in schema.fields}
        try:
            schema = apply(schema, [one], has_snapshots=True)
        except PaimonError:
            continue
        used = list(ids(schema.fields).values())
        assert len(set(used)) == len(used)
        assert max(used) <= schema.highest_field_id
        for field in schema.fields:
            assert field.id in before or field.id not in owner, "an id came back to life"
            assert field.id not in before or field.type == before[field.id].type
        owner |= {i: name for name, i in ids(schema.fields).items()}


# ---- the Java engine (1.4.2) made the same changes to the same table

BY_JAVA = [
    AddColumn(["r", "y", "n"], "INT"),
    AddColumn(["ar", "element", "n"], "ROW<a INT, b ROW<c INT>>"),
    AddColumn("nn", "MAP<INT, ROW<a INT, b ROW<c INT>>>", position=FIRST),
    RenameColumn(["r", "y"], "yy"),
    UpdateType(["r", "x"], "BIGINT"),
    RenameColumn("k", "kk"),
    RenameColumn("v", "vv"),
    DropColumn("nn"),
    DropColumn(["ar", "element", "q"]),
    AddColumn("z", "INT"),
    UpdateDefault("z", "5"),
    UpdateComment("z", "hi"),
    UpdateTableComment("tc"),
    MoveColumn("z", Position("after", "p")),
    UpdateType("de", "DECIMAL(12, 4)"),
    UpdateType("vv", "INT"),
    UpdateType("z", "STRING"),
]


def test_result_equals_result_of_java():
    path = Path(__file__).parent / "altered_by_java.json"
    first, last = (TableSchema.from_json(json.dumps(one).encode(), str(path)) for one in json.loads(path.read_text()))
    ours = apply(first, BY_JAVA, has_snapshots=True)
    assert replace(ours, id=last.id, time_millis=last.time_millis) == last


@pytest.mark.parametrize("changes", [AddColumn("b", "INT"), "b", ["b"], 5])
def test_changes_that_are_no_list_are_refused(tmp_path, changes):
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("a", pa.int32())])))
    with pytest.raises(InvalidInputError, match=r"pass a list such as \[SetOption\(key, value\)\]"):
        table.alter(changes)
