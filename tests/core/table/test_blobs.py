"""Columns of blobs are in separate files, through writes, new values, compaction and schema changes."""

import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError, InvalidInputError, UnsupportedError
from paimon_core.lsm.row_ranges import is_blob
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.tables import append_table, files_below

BLOBS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}
COLUMNS = pa.schema([("k", pa.int64()), ("b", pa.large_binary()), ("s", pa.string())])


def rows(*values, start=0, binary=None):
    """Rows (k, b, s) with these blobs, numbered on from ``start``."""
    keys = range(start, start + len(values))
    return pa.table({"k": keys, "b": pa.array(values, binary or pa.binary()), "s": [f"s{k}" for k in keys]})


def made(path, schema=COLUMNS, **options):
    return append_table(path, schema, **BLOBS, **options)


def files(table):
    """Live files in order of their rows, with columns first and blobs after."""
    found = [e.file for e in live_entries(table.store, table.snapshot()).live]
    return sorted(found, key=lambda f: (is_blob(f), f.first_row_id, f.max_sequence_number))


def shown(table):
    return [(f.write_cols, f.first_row_id, f.row_count, f.max_sequence_number) for f in files(table)]


def by_id(table, column="b"):
    return {row["_ROW_ID"]: row[column] for row in table.to_arrow(["_ROW_ID", column]).to_pylist()}


def replaced(table, **columns):
    return table.update_columns(pa.table({("_ROW_ID" if name == "row" else name): c for name, c in columns.items()}))


def test_blob_field_turns_bytes_into_blobs(tmp_path):
    table = made(tmp_path / "t")
    assert [str(f.type) for f in table.schema.fields] == ["BIGINT", "BLOB", "STRING"]
    assert table.to_arrow().schema.field("b").type == pa.binary()


@pytest.mark.parametrize("named", [None, "b"])
def test_columns_of_type_blob_need_no_option(tmp_path, named):
    """A table made through Java's API has no option ``blob-field``, or one that names some of its blobs."""
    fields = [DataField(i, n, parse_type(t)) for i, (n, t) in enumerate([("k", "INT"), ("b", "BLOB"), ("c", "BLOB")])]
    options = {key: value for key, value in BLOBS.items() if key != "blob-field"}
    table = Table.create(
        str(tmp_path / "t"), Schema(fields, options=options if named is None else {**options, "blob-field": named})
    )
    table.write(pa.table({"k": [1, 2], "b": [b"x", None], "c": [None, b"y"]}))
    assert [f[0] for f in shown(table)] == [("k",), ("b",), ("c",)]
    replaced(table, row=[1], c=[b"new"])
    assert table.to_arrow().to_pylist() == [{"k": 1, "b": b"x", "c": None}, {"k": 2, "b": None, "c": b"new"}]


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (COLUMNS, {"blob-field": "s"}, "'s', which is not a column of type BLOB or BYTES"),
        (COLUMNS, {"blob-field": "x"}, "'x', which is not a column"),
        (COLUMNS, {"data-evolution.enabled": "false"}, r"'b' is BLOB, which needs .*data-evolution"),
        (pa.schema([("b", pa.binary())]), {}, "column of another type than BLOB"),
    ],
)
def test_wrong_tables_of_blobs_are_refused(tmp_path, schema, options, said):
    with pytest.raises(InvalidInputError, match=said):
        Table.create(str(tmp_path / "t"), Schema(schema, options={**BLOBS, **options}))


def pointed_to(descriptor):
    """The bytes that a descriptor describes, by its definition."""
    version, magic, length = struct.unpack_from("<bqi", descriptor)
    assert (version, magic) == (2, 0x424C4F4244455343)
    start, size = struct.unpack_from("<qq", descriptor, 13 + length)
    assert len(descriptor) == 29 + length
    return Path(descriptor[13 : 13 + length].decode()).read_bytes()[start : start + size]


def test_blobs_are_read_as_descriptors_and_written_as_copies(tmp_path):
    kinds = {"k": "INT", "b": "BLOB", "a": "ARRAY<BLOB>", "m": "MAP<STRING NOT NULL, BLOB>"}
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(kinds.items())]
    table = Table.create(str(tmp_path / "t"), Schema(fields, options={**BLOBS, "blob-field": "b,a,m"}))
    types = {f.name: f.type for f in table.to_arrow().schema}
    rows = {
        "k": [0, 1, 2, 3],
        "b": [b"x" * 40, None, b"", b"last"],
        "a": [[b"1", None, b"23"], None, [], [b"4"]],
        "m": [[("k", b"5"), ("long", b"678")], None, [("", None)], []],
    }
    table.write(pa.table([pa.array(values, types[name]) for name, values in rows.items()], names=list(rows)))
    described = table.with_options({"blob-as-descriptor": "true"})
    read = described.to_arrow().to_pylist()
    blob = lambda d: None if d is None else pointed_to(d)  # noqa: E731
    assert [blob(row["b"]) for row in read] == rows["b"]
    assert [None if row["a"] is None else [blob(d) for d in row["a"]] for row in read] == rows["a"]
    assert [None if row["m"] is None else [(k, blob(d)) for k, d in row["m"]] for row in read] == rows["m"]
    with pytest.raises(UnsupportedError, match="'blob-as-descriptor' = 'true' is not supported yet"):
        described.write(table.to_arrow())
    blobs_before = table.to_arrow()
    table.overwrite(described.to_arrow())  # copies the blobs
    assert table.to_arrow() == blobs_before
    with pytest.raises(UnsupportedError, match="a blob of column 'b' is a descriptor"):
        replaced(table, row=[4], b=described.to_arrow().column("b").slice(0, 1))


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_blobs_of_any_arrow_type_are_in_separate_files(tmp_path, binary):
    table = made(tmp_path / "t", **{"file.suffix.include.compression": "true"})
    table.write(rows(b"\x00\xff", None, b"", binary=binary))
    assert table.to_arrow() == rows(b"\x00\xff", None, b"").cast(table.to_arrow().schema)
    data, blobs = files(table)
    assert (data.write_cols, blobs.write_cols) == (("k", "s"), ("b",))
    assert (data.file_name.endswith(".zst.parquet"), blobs.file_name.count(".")) == (True, 1)
    assert (data.first_row_id, blobs.first_row_id, blobs.row_count, blobs.file_source, blobs.level) == (0, 0, 3, 0, 0)
    assert (blobs.min_sequence_number, blobs.max_sequence_number, blobs.value_stats_cols) == (1, 1, ())
    snapshot = table.snapshot()
    assert (snapshot.next_row_id, snapshot.total_record_count) == (3, 6)
    assert table.to_arrow(["k"], filter="s = 's1'").to_pylist() == [{"k": 1}]


def test_arrays_and_maps_of_blobs_are_written_replaced_and_projected(tmp_path):
    kinds = {"k": "INT", "a": "ARRAY<BLOB>", "m": "MAP<INT NOT NULL, BLOB>"}
    fields = [DataField(i, name, parse_type(kind)) for i, (name, kind) in enumerate(kinds.items())]
    options = {**BLOBS, "blob-field": "a,m", "blob.target-file-size": "60 b"}
    table = Table.create(str(tmp_path / "t"), Schema(fields, options=options))
    arrays, maps = [[b"x" * 30, None, b""], None, []], [None, [(1, b"y" * 30), (2, None)], []]
    types = {f.name: f.type for f in table.to_arrow().schema}
    data = pa.table({"k": pa.array([0, 1, 2], pa.int32()), "a": arrays, "m": pa.array(maps, types["m"])})
    table.write(data)
    assert table.to_arrow() == data.cast(table.to_arrow().schema)
    assert [f[:3] for f in shown(table) if f[0] == ("a",)] == [(("a",), 0, 1), (("a",), 1, 2)]
    assert all(f.value_stats_cols == () for f in files(table) if is_blob(f))
    replaced(table, row=[1], a=pa.array([[b"new"]], types["a"]))
    table.compact(full=True)
    assert by_id(table, "a") == {0: arrays[0], 1: [b"new"], 2: []}
    assert by_id(table, "m") == dict(enumerate(maps))
    with pytest.raises(InvalidInputError, match=r"'m' cannot be renamed: its type is MAP<INT NOT NULL, BLOB>"):
        table.alter([RenameColumn("m", "n")])


def test_blob_files_roll_separately_and_end_together(tmp_path):
    options = {"blob-field": "b,c", "blob.target-file-size": "100 b", "target-file-size": "1 b"}
    table = Table.create(
        str(tmp_path / "t"), Schema(COLUMNS.append(pa.field("c", pa.binary())), options=BLOBS | options)
    )
    sizes = [0, 84, 83, 1, 500] + [0] * 1495
    data = rows(*(bytes(size) for size in sizes)).append_column("c", pa.array([None] * 1499 + [b"c"], pa.binary()))
    table.write(data)
    assert table.to_arrow() == data.cast(table.to_arrow().schema)
    actual = shown(table)
    assert [f[1:3] for f in actual if f[0] == ("k", "s")] == [(0, 1000), (1000, 500)]
    assert [f[1:3] for f in actual if f[0] == ("c",)] == [(0, 1000), (1000, 500)]
    blobs = [f[1:3] for f in actual if f[0] == ("b",)]
    assert blobs[:5] == [(0, 2), (2, 2), (4, 1), (5, 7), (12, 7)]
    assert (1000, 7) in blobs
    assert sum(count for _, count in blobs) == 1500
    table.write(rows(b"last", start=1500).append_column("c", pa.array([b"d"])))
    assert by_id(table)[1500] == b"last"
    assert by_id(table, "c")[1500] == b"d"


def test_partitions_and_overwrite(tmp_path):
    for grouped in ("true", "false"):
        schema = pa.schema([("p", pa.string()), ("b", pa.binary())])
        options = {**BLOBS, "row-tracking.partition-group-on-commit": grouped}
        table = Table.create(str(tmp_path / grouped), Schema(schema, partition_keys=["p"], options=options))
        for turn in range(2):
            table.write(pa.table({"p": ["x", "y", "x", "z"], "b": [b"%d%d" % (turn, i) for i in range(4)]}, schema))
        actual = {(r["p"], r["b"]) for r in table.to_arrow().to_pylist()}
        assert actual == {(p, b"%d%d" % (turn, i)) for turn in range(2) for i, p in enumerate("xyxz")}
        assert sorted(by_id(table)) == list(range(8))
        table.overwrite(pa.table({"p": ["x"], "b": [b"new"]}, schema), {"p": "x"})
        assert {r["b"] for r in table.to_arrow(filter="p = 'x'").to_pylist()} == {b"new"}
        assert table.to_arrow().num_rows == 5
        table.compact(full=True)
        assert {r["b"] for r in table.to_arrow(filter="p = 'y'").to_pylist()} == {b"01", b"11"}


def test_abort_takes_blobs_along(tmp_path):
    options = {"blob.target-file-size": "1 b", "write-buffer-size": "1 kb", "write-buffer-spillable": "false"}
    table = made(tmp_path / "t", **options)
    before = files_below(table.path)
    writer = table.writer()
    writer.write(rows(*[b"x" * 500] * 5))
    assert any(name.endswith(".blob") for name in files_below(table.path))
    writer.abort()
    assert files_below(table.path) == before
    writer = table.writer()
    writer.write(rows(b"y"))
    table.committer().abort(writer.prepare_commit())
    assert files_below(table.path) == before


def test_prepared_blobs_survive_abort(tmp_path):
    table = made(tmp_path / "t")
    writer = table.writer()
    writer.write(rows(b"x"))
    messages = writer.prepare_commit()
    writer.write(rows(b"y"))
    writer.abort()
    table.committer().commit(messages)
    assert by_id(table) == {0: b"x"}


def test_new_values_rewrite_only_blob_files_of_their_rows(tmp_path):
    table = made(tmp_path / "t", **{"blob.target-file-size": "100 b"})
    table.write(rows(*[b"old" * 10] * 9))  # three a file
    replaced(table, row=[4, 0], b=[b"new", None])
    assert shown(table)[-5:] == [
        *[(("b",), 0, 3, 1), (("b",), 0, 3, 2), (("b",), 3, 3, 1), (("b",), 3, 3, 2)],
        (("b",), 6, 3, 1),
    ]
    expected = dict.fromkeys(range(9), b"old" * 10) | {4: b"new", 0: None}
    assert by_id(table) == expected
    table = table.alter([AddColumn("w", parse_type("INT"))])
    replaced(table, row=[5], b=[b"newer"], s=["both"], w=pa.array([7], pa.int32()))
    assert shown(table)[-1] == (("b",), 6, 3, 1)
    assert (("b",), 0, 9, 3) in shown(table)  # one file of one schema, or Java could not read it
    assert by_id(table) == expected | {5: b"newer"}
    assert by_id(table, "s")[5] == "both"
    replaced(table, row=[5], w=pa.array([8], pa.int32()))
    assert by_id(table, "w") == dict.fromkeys(range(9)) | {5: 8}


def test_compaction_leaves_blobs_where_they_are(tmp_path):
    table = made(tmp_path / "t", **{"blob.target-file-size": "40 b", "target-file-size": "100 kb"})
    for turn in range(3):
        table.write(rows(b"a%d" % turn, None, b"c" * 50, start=3 * turn))
    replaced(table, row=[8], b=[b"x"])
    before, blobs = by_id(table), [f for f in shown(table) if f[0] == ("b",)]
    table.compact(full=True)
    assert shown(table) == [(("k", "s"), 0, 9, 3), *blobs]
    assert table.compact(full=True) is None
    assert by_id(table) == before
    replaced(table, row=[2], b=[b"y"])
    assert by_id(table) == before | {2: b"y"}


def test_range_does_not_end_within_file_of_blobs(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(*[b"x"] * 1500))
    replaced(table, row=[7], s=["new"])
    table.with_options({"target-file-size": "1 b"}).compact(full=True)
    assert [f[1:3] for f in shown(table)] == [(0, 1500), (0, 1500)]
    assert by_id(table) == dict.fromkeys(range(1500), b"x")


def test_rows_with_blobs_of_other_schemas_are_not_joined(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(b"x"))
    table.write(rows(b"y", start=1))
    table = table.alter([AddColumn("w", parse_type("INT"))])
    for start in (2, 3):
        table.write(rows(b"z", start=start))
    table.compact(full=True)
    assert [f[:3] for f in shown(table)[:2]] == [(("k", "s", "w"), 0, 2), (("k", "s", "w"), 2, 2)]
    assert by_id(table) == {0: b"x", 1: b"y", 2: b"z", 3: b"z"}


def test_column_of_blobs_is_dropped_and_comes_again(tmp_path):
    table = made(tmp_path / "t")
    table.write(rows(b"x"))
    with pytest.raises(InvalidInputError, match="cannot be renamed"):
        table.alter([RenameColumn("b", "c")])
    table = table.alter([DropColumn("b")])
    table.write(rows(b"", start=1).drop_columns(["b"]))
    assert by_id(table, "k") == {0: 0, 1: 1}
    table = table.alter([AddColumn("b", parse_type("BLOB"))])
    assert by_id(table) == {0: None, 1: None}
    table.write(rows(b"z", start=2))
    table.compact(full=True)
    replaced(table, row=[1], b=[b"again"])
    assert by_id(table) == {0: None, 1: b"again", 2: b"z"}


@pytest.mark.parametrize("theirs", ["the same file", "all of them"])
def test_late_replacement_of_blobs_is_conflict(tmp_path, monkeypatch, theirs):
    table = made(tmp_path / "t", **{"blob.target-file-size": "1 b"})
    table.write(rows(b"a", b"b", b"c"))
    publish = Publisher.publish

    def late(self, *arguments):
        monkeypatch.setattr(Publisher, "publish", publish)
        if theirs == "all of them":
            newer = table.alter([AddColumn(f"w{table.snapshot().id}", parse_type("INT"))])
            replaced(newer, row=[0], b=[b"theirs"])
        else:
            replaced(table, row=[1], b=[b"theirs"])
        return self.publish(*arguments)

    monkeypatch.setattr(Publisher, "publish", late)
    with pytest.raises(CommitConflictError, match="another commit"):
        replaced(table, row=[1], b=[b"mine"])
    assert b"theirs" in by_id(table).values()
    monkeypatch.setattr(Publisher, "publish", late)
    replaced(Table.open(table.path), row=[2], s=["mine"])  # changes of other columns stay
    assert by_id(table, "s")[2] == "mine"


def test_changes_hold_blobs(tmp_path):
    table = made(tmp_path / "t", **{"blob.target-file-size": "20 b"})
    table.write(rows(b"a", b"b" * 30, None))
    first = table.snapshot().id
    table.write(rows(b"c", None, start=3))
    assert table.changes(first).column("b").to_pylist() == [b"c", None]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.one_of(st.none(), st.binary(max_size=40)), min_size=1, max_size=5)),
        st.tuples(
            st.sampled_from(["b", "s", "both"]), st.lists(st.integers(0, 20), min_size=1, max_size=4, unique=True)
        ),
        st.tuples(st.sampled_from(["compact", "column"]), st.booleans()),
    ),
    min_size=1,
    max_size=9,
)


@draws(25)
@given(steps, st.sampled_from(["1 b", "50 b", "1 mb"]))
def test_random_histories_agree_with_dictionary(tmp_path_factory, history, size):
    table = made(tmp_path_factory.mktemp("w") / "t", **{"blob.target-file-size": size})
    model = {}
    for number, (step, how) in enumerate(history):
        if step == "write":
            table.write(rows(*how, start=len(model)))
            model |= {k: (k, blob, f"s{k}") for k, blob in enumerate(how, len(model))}
        elif step == "compact":
            table.compact(full=how)
        elif step == "column":
            table = table.alter([AddColumn(f"w{number}", parse_type("INT"))])
        elif ids := [r for r in how if r in model]:
            blobs, texts = [b"%d" % number] * len(ids), [f"t{number}"] * len(ids)
            replaced(table, row=ids, **{"b": {"b": blobs}, "s": {"s": texts}, "both": {"b": blobs, "s": texts}}[step])
            for r in ids:
                k, b, s = model[r]
                model[r] = (k, blobs[0] if step != "s" else b, texts[0] if step != "b" else s)
    actual = table.to_arrow(["_ROW_ID", "k", "b", "s"]).to_pylist()
    assert {r["_ROW_ID"]: (r["k"], r["b"], r["s"]) for r in actual} == model
    assert [r["_ROW_ID"] for r in table.to_arrow(["b", "_ROW_ID"]).to_pylist()] == list(model)
