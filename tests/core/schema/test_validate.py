from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import check_dynamic, create, validate
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

COLUMNS = {
    "k": "INT", "p": "INT", "v": "STRING", "d": "DOUBLE", "ts": "TIMESTAMP(9)", "b": "BIGINT",
    "a": "ARRAY<INT>", "m": "MAP<STRING, INT>", "r": "ROW<x INT, y ROW<z STRING>>",
}  # fmt: skip


def schema(keys, partitions, columns, given):
    fields = [DataField(-1, name, parse_type(t)) for name, t in columns.items()]
    return Schema(fields, keys, partitions, dict(given))


def made(keys=(), partitions=(), given=(), columns=COLUMNS):
    return create(schema(keys, partitions, columns, given), 7)


def test_columns_are_numbered_as_format_says():
    actual = made()
    assert [(f.name, f.id) for f in actual.fields][-3:] == [("a", 6), ("m", 7), ("r", 8)]
    assert str(actual.field("r").type) == "ROW<`x` INT, `y` ROW<`z` STRING>>"
    row = actual.field("r").type
    assert (row.fields[0].id, row.fields[1].id, row.fields[1].type.fields[0].id) == (9, 11, 10)
    assert actual.highest_field_id == 11
    assert (actual.id, actual.time_millis, actual.version) == (0, 7, 3)


def test_arrow_schema_is_accepted():
    expected = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("s", pa.large_string())])
    actual = create(Schema(expected, ["k"], options={"bucket": "1"}, comment="mine"), 0)
    assert [str(f.type) for f in actual.fields] == ["BIGINT NOT NULL", "STRING"]
    assert actual.comment == "mine"


def test_keys_become_not_null():
    found = made(["k"], [], {"bucket": "1"})
    assert not found.field("k").type.nullable
    assert found.field("p").type.nullable


def test_keys_given_as_options_are_moved():
    actual = made(given={"primary-key": "p, k", "partition": "p", "bucket": "2"})
    assert actual.primary_keys == ("p", "k")
    assert actual.partition_keys == ("p",)
    assert dict(actual.options) == {"bucket": "2"}


PK = ["k"]
REFUSED = [
    # columns
    ([], [], {}, {}, "at least one column"),
    ([], [], {}, {"a": "INT", "A": "INT"}, "'a' and 'A' differ only in case"),
    ([], [], {}, {"_KEY_a": "INT"}, "_KEY_a"),
    ([], [], {}, {"_SEQUENCE_NUMBER": "INT"}, "_SEQUENCE_NUMBER"),
    ([], [], {}, {"rowkind": "STRING"}, "rowkind"),
    ([], [], {}, {" ": "INT"}, "blank"),
    # keys
    (["zz"], [], {}, COLUMNS, "primary key column 'zz'"),
    ([], ["zz"], {}, COLUMNS, "partition column 'zz'"),
    (["k", "k"], [], {}, COLUMNS, "'k' is named more than once"),
    (["a"], [], {}, COLUMNS, "'a' has type ARRAY"),
    ([], ["m"], {}, COLUMNS, "'m' has type MAP"),
    (["p"], ["p"], {}, COLUMNS, "only partition columns"),
    (PK, [], {"primary-key": "k"}, COLUMNS, "given twice"),
    # options as such
    ([], [], {"bukcet": "1"}, COLUMNS, "bukcet.*bucket"),
    ([], [], {"bucket": "many"}, COLUMNS, "'bucket' is 'many'"),
    ([], [], {"auto-create": "true"}, COLUMNS, "auto-create"),
    ([], [], {"parquet.enable.dictionary": "yes"}, COLUMNS, "'parquet.enable.dictionary' is 'yes': must be true or"),
    (
        [],
        [],
        {"file.format": "csv", "csv.include-header": "1"},
        COLUMNS,
        "'csv.include-header' is '1': must be true",
    ),
    ([], [], {"file.format": "csv", "csv.quote-character": ","}, COLUMNS, "three different ASCII characters"),
    ([], [], {"file.format": "json", "json.line-delimiter": "|"}, COLUMNS, "'json.line-delimiter' must be a line feed"),
    ([], [], {"metadata.stats-mode": "truncate"}, COLUMNS, "'metadata.stats-mode': statistics mode 'truncate' is not"),
    ([], [], {"changelog-file.stats-mode": "truncate(0)"}, COLUMNS, "'changelog-file.stats-mode': .* is not one of"),
    ([], [], {"metadata.stats-mode.per.level": "0:none,1:all"}, COLUMNS, "'metadata.stats-mode.per.level': .*'all'"),
    ([], [], {"fields.v.stats-mode": "max"}, COLUMNS, "'fields.v.stats-mode': .*'max'"),
    ([], [], {"fields.zz.stats-mode": "none"}, COLUMNS, "fields.zz.stats-mode.*'zz'"),
    ([], [], {"file-index.bitmap.columns": "k,zz"}, COLUMNS, "'zz'"),
    ([], [], {"file-index.bitmap.columns": "k,a"}, COLUMNS, "'a' cannot have this index: .*ARRAY"),
    # buckets
    ([], [], {"bucket": "0"}, COLUMNS, "'bucket' is 0"),
    (PK, [], {"bucket": "-3"}, COLUMNS, "'bucket' is -3"),
    ([], [], {"bucket": "-2"}, COLUMNS, "needs a primary key"),
    ([], [], {"bucket-key": "k"}, COLUMNS, "bucket-key"),
    ([], [], {"bucket": "2"}, COLUMNS, "needs option 'bucket-key'"),
    ([], [], {"full-compaction.delta-commits": "2"}, COLUMNS, "full-compaction"),
    ([], ["p"], {"bucket": "2", "bucket-key": "p"}, COLUMNS, "partition column"),
    ([], [], {"bucket": "2", "bucket-key": "zz"}, COLUMNS, "'zz'"),
    ([], [], {"bucket": "2", "bucket-key": "a"}, COLUMNS, "ARRAY"),
    (PK, [], {"bucket": "2", "bucket-key": "v"}, COLUMNS, "not in the primary key"),
    ([], [], {"bucket": "2", "bucket-key": "v", "bucket-function.type": "mod"}, COLUMNS, "mod"),
    ([], [], {"bucket": "2", "bucket-key": "k,b", "bucket-function.type": "mod"}, COLUMNS, "mod"),
    ([], [], {"bucket": "2", "bucket-key": "ts", "bucket-function.type": "hive"}, COLUMNS, "hive"),
    ([], [], {"scan.bucket": "1"}, COLUMNS, "scan.bucket"),
    # where to start reading
    ([], [], {"scan.mode": "from-timestamp"}, COLUMNS, "scan.timestamp-millis"),
    ([], [], {"scan.mode": "from-snapshot", "scan.timestamp-millis": "1"}, COLUMNS, "from-snapshot"),
    ([], [], {"scan.mode": "latest", "scan.tag-name": "t"}, COLUMNS, "latest"),
    ([], [], {"scan.snapshot-id": "1", "scan.tag-name": "t"}, COLUMNS, "are mutually exclusive"),
    ([], [], {"incremental-between": "1,2", "scan.timestamp": "2024-01-01"}, COLUMNS, "are mutually exclusive"),
    ([], [], {"scan.fallback-branch": "a", "scan.primary-branch": "b"}, COLUMNS, "are mutually exclusive"),
    # retention
    ([], [], {"snapshot.num-retained.min": "0"}, COLUMNS, "num-retained.min"),
    ([], [], {"snapshot.num-retained.min": "20", "snapshot.num-retained.max": "10"}, COLUMNS, "20, more than"),
    ([], [], {"snapshot.num-retained.max": "9"}, COLUMNS, "more than"),
    ([], [], {"changelog.num-retained.min": "6", "changelog.num-retained.max": "5"}, COLUMNS, "changelog"),
    # merging
    (PK, [], {"bucket": "1", "sequence.field": "zz"}, COLUMNS, "'zz'"),
    (PK, [], {"bucket": "1", "sequence.field": "v,v"}, COLUMNS, "more than once"),
    (PK, [], {"bucket": "1", "sequence.field": "v", "fields.v.aggregate-function": "sum"}, COLUMNS, "aggregate"),
    (PK, ["p"], {"sequence.field": "v"}, COLUMNS, "all partition columns"),
    (PK, [], {"merge-engine": "first-row", "sequence.field": "v"}, COLUMNS, "first-row"),
    (PK, [], {"merge-engine": "first-row", "changelog-producer": "input"}, COLUMNS, "first-row"),
    (PK, [], {"rowkind.field": "zz"}, COLUMNS, "'zz'"),
    (PK, [], {"rowkind.field": "d"}, COLUMNS, "rowkind.field.*DOUBLE"),
    (PK, [], {"fields.b.sequence-group": "v", "fields.d.sequence-group": "v"}, COLUMNS, "two sequence groups"),
    (PK, [], {"fields.k.sequence-group": "v"}, COLUMNS, "primary key column"),
    (PK, [], {"record-level.expire-time": "1 d"}, COLUMNS, "time-field"),
    (PK, [], {"sequence.snapshot-ordering": "true"}, COLUMNS, "write-only"),
    # changelog and deletion vectors
    ([], [], {"changelog-producer": "input"}, COLUMNS, "needs a primary key"),
    (PK, [], {"changelog-producer": "lookup", "full-compaction.delta-commits": "1"}, COLUMNS, "lookup"),
    ([], [], {"streaming-read-overwrite": "true"}, COLUMNS, "streaming-read-overwrite"),
    (PK, [], {"deletion-vectors.enabled": "true", "changelog-producer": "full-compaction"}, COLUMNS, "deletion"),
    (PK, [], {"deletion-vectors.enabled": "true", "merge-engine": "first-row"}, COLUMNS, "first-row"),
    ([], [], {"table-read.sequence-number.enabled": "true"}, COLUMNS, "needs a primary key"),
    # others
    (PK, [], {"row-tracking.enabled": "true"}, COLUMNS, "row-tracking"),
    ([], [], {"data-evolution.enabled": "true"}, COLUMNS, "row-tracking"),
    (PK, [], {"clustering.incremental": "true"}, COLUMNS, "clustering.incremental"),
    ([], [], {"target-file-row-num": "0"}, COLUMNS, "target-file-row-num"),
    ([], [], {"manifest-sort.enabled": "true"}, COLUMNS, "manifest-sort"),
    ([], [], {"file.format": "avro"}, COLUMNS, "'ts' is TIMESTAMP.9"),
    (PK, [], {"file.format.per.level": "0:avro"}, COLUMNS, "'ts' is TIMESTAMP.9"),
    ([], [], {"file.format": "avro"}, {"m": "MAP<INT, ROW<t TIMESTAMP(9)>>"}, "'m.value.t' is TIMESTAMP.9"),
    ([], [], {}, {"k": "INT", "a": "ARRAY<ROW<>>"}, "'a.element' is ROW<>, but parquet files store no rows without"),
]


@pytest.mark.parametrize(("keys", "partitions", "given", "columns", "message"), REFUSED, ids=[r[-1] for r in REFUSED])
def test_schema_that_breaks_a_rule_is_refused(keys, partitions, given, columns, message):
    with pytest.raises(InvalidInputError, match=message):
        made(keys, partitions, given, columns)


ACCEPTED = [
    ([], [], {}),
    ([], ["p"], {}),
    (["k"], ["p"], {}),
    (PK, [], {"bucket": "-2"}),
    (["k", "b"], [], {"bucket": "4", "bucket-key": "b", "bucket-function.type": "mod"}),
    (PK, [], {"bucket": "2", "sequence.field": "k"}),
    ([], [], {"sequence.field": "v", "ignore-delete": "true"}),
    (PK, [], {"rowkind.field": "v", "bucket": "1"}),
    ([], [], {"scan.snapshot-id": "3"}),
    ([], [], {"scan.mode": "from-snapshot", "scan.tag-name": "t"}),
    ([], [], {"file-index.bitmap.columns": "k,m[x]"}),
    ([], [], {"fields.v.stats-mode": "none", "parquet.enable.dictionary": "false"}),
]


@pytest.mark.parametrize(("keys", "partitions", "given"), ACCEPTED)
def test_valid_schema_is_accepted(keys, partitions, given):
    actual = made(keys, partitions, given)
    assert dict(actual.options) == given


@pytest.mark.parametrize(
    ("type_text", "default", "fits"),
    [
        ("INT", "5", True),
        ("INT", "x", False),
        ("STRING", "x", True),
        ("DATE", "2024-01-01", True),
        ("DATE", "no", False),
    ],
)
def test_defaults_must_be_of_column_s_type(type_text, default, fits):
    expected = Schema([DataField(0, "a", parse_type(type_text), None, default)])
    if fits:
        assert create(expected, 0).field("a").default == default
    else:
        with pytest.raises(InvalidInputError, match=r"default.*'a'"):
            create(expected, 0)


def test_unknown_options_of_stored_schema_are_accepted():
    found = made()
    validate(replace(found, options=Options({"of.tomorrow": "1"})))


def stored():
    return made(["k"], [], {"bucket": "2"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bukcet": "1"}, "bucket"),
        ({"bucket": "3"}, "'bucket'"),
        ({"bucket": None}, "'bucket'"),
        ({"merge-engine": "aggregation"}, "merge-engine"),
        ({"bucket-key": "k"}, "bucket-key"),
        ({"primary-key": "v"}, "'primary-key' is 'v', but the table has k"),
        ({"partition": "v"}, "the table has none"),
        ({"read.batch-size": "few"}, "read.batch-size"),
        ({"fields.v.agregate-function": "sum"}, "did you mean 'fields.v.aggregate-function'"),
        ({"fields.vv.stats-mode": "none"}, "names column 'vv', which is not among k, p, .*; did you mean 'v'"),
        ({"scan.snapshot-id": "1", "scan.tag-name": "t"}, "are mutually exclusive"),
        ({"type": "format-table"}, "'type'"),
        ({"ignore-delete": "true"}, "'ignore-delete' cannot be changed for one read or write"),
    ],
)
def test_dynamic_options_that_do_not_fit(given, message):
    with pytest.raises(InvalidInputError, match=message):
        check_dynamic(stored(), given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bucket": "2"},
        {"scan.snapshot-id": "1"},
        {"file.format": "orc", "write-buffer-size": "1 mb"},
        {"primary-key": "k", "path": "/x", "branch": "b"},
        {"file.format": None},
        {"changelog-producer": "lookup"},
    ],
)
def test_dynamic_options_that_do(given):
    check_dynamic(stored(), given)


def test_stored_schema_with_oddities_still_takes_dynamic_options():
    odd = TableSchema(0, (DataField(0, "a", parse_type("INT")), DataField(1, "A", parse_type("INT"))), 1)
    check_dynamic(odd, {"read.batch-size": "10"})
