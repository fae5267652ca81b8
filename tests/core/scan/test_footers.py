"""Files of a plan that footers exclude: shredded variants have statistics there and nowhere else."""

import random

import pyarrow as pa
import pytest

from paimon_core.datafile.reader import read_file
from paimon_core.format.conform import conform
from paimon_core.predicate.filter import bound_filter
from paimon_core.scan.footers import prune_by_footers
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types import datatype
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.variants import shredded_column

INFER = {"variant.inferShreddingSchema": "true"}
FIELDS = (DataField(0, "id", parse_type("INT NOT NULL")), DataField(1, "v", parse_type("VARIANT")))


def rows(first, values):
    ids = pa.array(range(first, first + len(values)), pa.int32())
    variants = conform(shredded_column(values, None), to_arrow(datatype.VARIANT), variants=True)
    return pa.table({"id": ids, "v": variants})


def table_of(path, files, **options):
    table = Table.create(str(path), Schema(FIELDS, options={**INFER, **options}))
    for i, values in enumerate(files):
        table.write(rows(100 * i, values))
    return table


def pruned(table, text, **limits):
    """Return the plan of a filter, and the plan that footers have pruned."""
    predicate = bound_filter(text, table.schema.fields)
    plan = table.scan(filter=predicate).plan()
    return plan, prune_by_footers(table.store, plan, predicate, **limits)


def files_of(plan):
    return [file.file_name for split in plan.splits for file in split.files]


def ids_of(table, plan):
    """Return the ids in the files of a plan."""
    return {
        value
        for split in plan.splits
        for file in split.files
        for batch in read_file(table.store, split.bucket_ref, file, table.schema.fields[:1])
        for value in batch.column(0).to_pylist()
    }


def test_files_without_matches_are_left_out(tmp_path):
    table = table_of(tmp_path / "t", [[{"a": 10 * i + k} for k in range(10)] for i in range(5)])
    plan, fewer = pruned(table, "try_variant_get(v, '$.a', 'INT') BETWEEN 15 AND 25")
    assert (len(files_of(plan)), len(files_of(fewer))) == (5, 2)
    assert fewer.steps[-1].name == "footers"
    assert (fewer.steps[-1].before, fewer.steps[-1].after) == (5, 2)
    assert ids_of(table, fewer) == {*range(100, 110), *range(200, 210)}
    assert files_of(pruned(table, "try_variant_get(v, '$.a', 'INT') > 99")[1]) == []
    assert pruned(table, "try_variant_get(v, '$.b', 'INT') > 99")[1].splits == plan.splits
    assert pruned(table, "try_variant_get(v, '$.a', 'INT') > 99", most_files=4)[1] == plan


@pytest.mark.parametrize("odd", [{"a": "text"}, {"a": 1.5}, 7, None, {}])
def test_file_with_other_values_is_kept_unless_they_cannot_match(tmp_path, odd):
    table = table_of(tmp_path / "t", [[*({"a": k} for k in range(10)), odd]])
    assert len(files_of(pruned(table, "try_variant_get(v, '$.a', 'INT') = 5")[1])) == 1
    found = pruned(table, "try_variant_get(v, '$.a', 'INT') > 20")[1]
    assert len(files_of(found)) == (1 if odd in ({"a": "text"}, {"a": 1.5}) else 0 if odd in (None, {}) else 1)


def test_merged_files_and_column_files_are_kept(tmp_path):
    keyed = Table.create(
        str(tmp_path / "k"), Schema(FIELDS, primary_keys=["id"], options={**INFER, "bucket": "1", "write-only": "true"})
    )
    for a in (1, 2):
        keyed.write(rows(0, [{"a": a}]))
    plan, fewer = pruned(keyed, "try_variant_get(v, '$.a', 'INT') = 1")
    assert fewer.splits == plan.splits
    keyed.compact(full=True)
    assert files_of(pruned(keyed, "try_variant_get(v, '$.a', 'INT') = 1")[1]) == []
    tracked = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    columns = table_of(tmp_path / "c", [[{"a": 1}], [{"a": 2}]], **tracked)
    plan, fewer = pruned(columns, "try_variant_get(v, '$.a', 'INT') = 1")
    assert fewer == plan


def test_vectors_of_files_that_are_left_out_are_left_out(tmp_path):
    files = [[{"a": 10 * i + k} for k in range(10)] for i in range(3)]
    table = table_of(tmp_path / "t", files, **{"deletion-vectors.enabled": "true", "bucket": "-1"})
    table.delete("id IN (3, 104)")
    plan, fewer = pruned(table, "try_variant_get(v, '$.a', 'INT') BETWEEN 12 AND 15")
    assert sum(len(split.vectors) for split in plan.splits) == 2
    assert [v.range.data_file for split in fewer.splits for v in split.vectors] == files_of(fewer)


def test_damaged_and_missing_files_are_left_to_the_reader(tmp_path):
    table = table_of(tmp_path / "t", [[{"a": 1}], [{"a": 2}], [{"a": 3}]])
    first, second = sorted((tmp_path / "t").glob("bucket-0/*.parquet"))[:2]
    first.write_bytes(b"PAR1" + b"x" * (first.stat().st_size - 8) + b"PAR1")
    second.unlink()
    found = files_of(pruned(table, "try_variant_get(v, '$.a', 'INT') = 99")[1])
    assert sorted(found) == sorted([first.name, second.name])


@pytest.mark.cases(10)
@pytest.mark.parametrize("case", range(40))
def test_random_filters_lose_no_row(tmp_path, case):
    rng = random.Random(case)
    files = [
        [{"a": rng.randrange(5 * i, 5 * i + 8), "s": rng.choice("xyz"[i % 3 :])} for _ in range(6)] for i in range(6)
    ]
    table = table_of(tmp_path / "t", files)
    column = rng.choice(["try_variant_get(v, '$.a', 'INT')", "try_variant_get(v, '$.a', 'BIGINT')"])
    tests = [
        f"{column} {rng.choice(['=', '<', '>=', '!='])} {rng.randrange(40)}",
        f"try_variant_get(v, '$.s', 'STRING') = '{rng.choice('xyz')}'",
        f"{column} IN ({rng.randrange(40)}, {rng.randrange(40)})",
        f"{column} IS NULL",
    ]
    first, second = rng.sample(tests, 2)
    text = rng.choice([first, f"NOT ({first})", f"({first}) {rng.choice(['AND', 'OR'])} ({second})"])
    found = set(table.to_arrow(filter=text)["id"].to_pylist())
    assert found <= ids_of(table, pruned(table, text)[1]), text
