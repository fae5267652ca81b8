"""Types of variants inferred across files: what one file shows counts for the next one of the same writer."""

import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.schema.validate import create
from paimon_core.table import Table
from paimon_core.types import datatype
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_core.variant.evidence import evidence_of
from tests.core.format.test_variants import objects, plain, typed_part
from tests.support.samples import fields_of

PER_FILE = {"variant.inferShreddingSchema": "true"}
ADAPTIVE = {**PER_FILE, "variant.shredding.inferenceMode": "adaptive"}
SAMPLE = "variant.shredding.adaptive.maxInferBufferRow"
ADMISSION, RETENTION = "variant.shredding.minFieldCardinalityRatio", "variant.shredding.adaptive.retentionRatio"


def series(*files, text="VARIANT", options=ADAPTIVE, **more):
    """Return the stored type of each of the files that one writer writes; check that the variants are read again."""
    fields, types = fields_of([text]), []
    open_writer = ParquetFormat().begin_series(fields, Options({**options, **more}), "zstd")
    for column in files:
        sink = pa.BufferOutputStream()
        writer = open_writer(sink)
        writer.write(pa.table([column], arrow_schema(fields)))
        writer.close()
        source = pa.BufferReader(sink.getvalue())
        types.append(pq.read_schema(source).field(0).type)
        batches = ParquetFormat().read(source, ReadRequest(fields, 1000))
        found = pa.Table.from_batches(batches, arrow_schema(fields))["c0"].combine_chunks()
        assert [objects(part) for part in parts(found, text)] == [objects(part) for part in parts(column, text)]
    return types


def parts(column, text):
    """Return the columns of variants in a column."""
    return [column] if text == "VARIANT" else [pc.struct_field(column, [i]) for i in range(column.type.num_fields)]


def having(name, share, value=1, rows=100):
    """Return variants that all have the field `all`, and a share of them another field."""
    return plain([{"all": k} | ({name: value} if k < share * rows else {}) for k in range(rows)])


def names(stored):
    return [f.name for f in stored.field("typed_value").type]


def test_field_stays_shredded_at_a_lower_ratio_than_it_is_admitted_at():
    limits = {ADMISSION: "0.4", RETENTION: "0.2"}
    files = having("x", 0.5), having("x", 0.1), having("x", 0)
    assert [names(t) for t in series(*files, **limits)] == [["all", "x"], ["all", "x"], ["all"]]  # 0.5, 0.3, 0.15
    assert [names(t) for t in series(*files[1:], having("x", 0.5), **limits)] == [["all"]] * 3
    assert [names(t) for t in series(*files, options=PER_FILE, **limits)] == [["all", "x"], ["all"], ["all"]]


def test_later_files_are_judged_by_fewer_rows():
    first, emerging = plain([{"old": 1}] * 4), [{"new": True}, *({"late": 1} for _ in range(3))]
    limits = {"variant.shredding.maxInferBufferRow": "4", SAMPLE: "1"}
    assert [names(t) for t in series(first, plain(emerging), **limits)] == [["old"], ["new", "old"]]
    found = series(first, plain(emerging), options=PER_FILE, **limits)
    assert [names(t) for t in found] == [["old"], ["late", "new"]]


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ([1, 2], [Decimal("0.5")], "decimal128(18, 1)"),
        ([Decimal("0.25")], [1], "decimal128(18, 2)"),
        ([1 << 60], [Decimal("0.5")], "decimal128(38, 1)"),
        ([Decimal(10**36)], [Decimal("0.001")], "decimal128(18, 3)"),
        ([1], ["text"], "string"),
        (["text"], [1], "int64"),
        ([1], [1, "text"], None),
        ([1, "text"], [1], "int64"),
        ([1], [None], "int64"),
        ([None], [1], "int64"),
        ([[1]], [[Decimal("0.5")]], "decimal128(18, 1)"),
        ([[1]], [1], "int64"),
        ([1], [None, {"b": 1}], "struct"),
    ],
)
def test_types_of_both_files_fit_or_the_later_one_decides(earlier, later, expected):
    stored = series(*(plain([{"a": value} for value in values]) for values in (earlier, later)))[1]
    found = typed_part(stored, "a")
    if found is not None and found.startswith("list"):
        found = typed_part(stored, "a", None)
    assert found == expected or (expected == "struct" and found.startswith("struct<b:"))


def test_nulls_and_files_without_values_change_nothing():
    first, nothing = plain([{"a": 1}] * 3), pa.nulls(5, to_arrow(datatype.VARIANT))
    assert [typed_part(t, "a") for t in series(first, nothing, plain([{}] * 3), first)] == ["int64"] * 4


def test_variants_in_rows_have_their_own_evidence():
    kind = to_arrow(parse_type("ROW<v VARIANT, w VARIANT>"))
    first = pa.array([{"v": v, "w": None} for v in plain([{"a": 1}]).to_pylist()], kind)
    later = pa.array([{"v": None, "w": v} for v in plain(["x"]).to_pylist()], kind)
    one, two = series(first, later, text="ROW<v VARIANT, w VARIANT>")
    assert typed_part(one.field("v").type, "a") == typed_part(two.field("v").type, "a") == "int64"
    assert (typed_part(one.field("w").type), typed_part(two.field("w").type)) == (None, "string")


def test_fields_that_most_rows_have_come_first_in_a_narrow_schema():
    rare_first = plain([{"z": 1} | ({"a": 1} if k < 60 else {}) for k in range(100)])
    wide, narrow = series(rare_first, rare_first, **{"variant.shredding.maxSchemaWidth": "4"})
    assert (names(wide), names(narrow)) == (["a", "z"], ["a", "z"])
    assert (typed_part(wide, "a"), typed_part(wide, "z")) == ("int64", None)
    assert (typed_part(narrow, "a"), typed_part(narrow, "z")) == (None, "int64")


def test_evidence_is_bounded():
    many = [plain([{f"k{i}x{k}": 1 for k in range(900)}]) for i in range(3)]
    evidence = [evidence_of(column, 0.1, 50) for column in many]
    both = evidence[0].added(evidence[1]).added(evidence[2])
    assert len(both.shape) == 1000
    assert both.at_most(1).count == pytest.approx(1)
    assert max(field.count for field in both.at_most(1).shape.values()) == pytest.approx(1 / 3)


def test_random_files_of_one_writer_are_read_again():
    rng = random.Random(5)
    pool = [None, 1, -5, "t", 1.5, Decimal("2.50"), True, [1, "x"], [[2]], {"p": 1}, {"p": {"q": "r"}}, {}]
    files = []
    for _ in range(12):
        keys = rng.sample("abcdef", 3)
        files.append(plain([{k: rng.choice(pool) for k in keys if rng.random() < 0.7} for _ in range(40)]))
    series(*files, **{SAMPLE: "7", RETENTION: "0"})


FIELDS = (DataField(0, "id", parse_type("INT")), DataField(1, "v", parse_type("VARIANT")))


def ids_and_variants(values):
    return pa.table([pa.array(range(len(values)), pa.int32()), plain(values)], arrow_schema(FIELDS))


def test_writer_of_a_table_adapts_its_files(tmp_path):
    options = {**ADAPTIVE, SAMPLE: "10", "target-file-row-num": "100", "metadata.stats-mode": "none"}
    table = Table.create(str(tmp_path / "t"), Schema(FIELDS, options=options))
    values = [{"old": k} for k in range(100)] + [{"new": str(k)} for k in range(200)]
    with table.writer() as writer:
        writer.write(ids_and_variants(values))
        table.committer().commit(writer.prepare_commit())
    files = [f for split in table.scan().plan().splits for f in split.files]
    stored = []
    for file in sorted(files, key=lambda f: f.min_sequence_number):
        (path,) = tmp_path.rglob(file.file_name)
        stored.append(names(pq.read_schema(path).field("v").type))
    assert stored == [["old"], ["new", "old"], ["new", "old"]]
    rows = table.to_arrow().sort_by("id")
    assert objects(rows["v"]) == values


def test_deleted_files_leave_no_evidence(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(FIELDS, options=ADAPTIVE))
    with table.writer() as writer:
        writer.write(ids_and_variants([{"old": 1}] * 20))
        writer.abort()
    with table.writer() as writer:
        writer.write(ids_and_variants([{"new": 1}] * 20))
        table.committer().commit(writer.prepare_commit())
    ((file,),) = (split.files for split in table.scan().plan().splits)
    (path,) = tmp_path.rglob(file.file_name)
    assert names(pq.read_schema(path).field("v").type) == ["new"]
    assert pc.sum(table.to_arrow()["id"]).as_py() == sum(range(20))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({RETENTION: "0.2"}, "'variant.shredding.adaptive.retentionRatio' = 0.2 and .* = 0.1"),
        ({RETENTION: "-0.1"}, "must be between 0 and 1"),
        ({ADMISSION: "1.5"}, "must be between 0 and 1"),
        ({"variant.shredding.inferenceMode": "clever"}, "must be one of per-file, adaptive"),
        ({SAMPLE: "0"}, "must be"),
    ],
)
def test_unfit_options_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        create(Schema(FIELDS, options={**ADAPTIVE, **options}), 0)
