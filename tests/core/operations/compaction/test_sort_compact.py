import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.manifest.data_file import FileSource
from paimon_core.operations.compaction.cluster_key import STRATEGIES, ClusterKey
from paimon_core.operations.compaction.sort_compact import cluster_key, join_parts, plan_sort, run
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.tables import append_table, files_below, keyed_table, orders

POINTS = pa.schema([("p", pa.string()), ("x", pa.int64()), ("y", pa.float64()), ("name", pa.string())])
SMALL = {"target-file-size": "40 kb", "source.split.open-file-cost": "1 b", "file.compression": "none"}


def points(count, seed=0, partitions=("a",)):
    random = np.random.default_rng(seed)
    x, y = random.integers(0, 1 << 40, count), random.normal(size=count)
    return pa.table(
        {
            "p": random.choice(partitions, count),
            "x": pa.array(x, mask=random.random(count) < 0.01),
            "y": y,
            "name": [f"a name that takes some space {i:06d}" for i in random.integers(0, 10**6, count)],
        },
        schema=POINTS,
    )


def clustered(path, count=20_000, partition_keys=(), **options):
    table = Table.create(str(path), Schema(POINTS, partition_keys=list(partition_keys), options={**SMALL, **options}))
    table.write(points(count, partitions=("a", "b") if partition_keys else ("a",)))
    return table


def bag(table):
    return sorted(map(repr, table.to_pylist()))


def files_for(table, box):
    return sum(len(split.files) for split in table.scan(filter=box).plan().splits)


def ordered_by(rows, *columns):
    found = list(zip(*(rows.column(c).to_pylist() for c in columns), strict=True))
    return found == sorted(found, key=lambda values: [(v is not None, v) for v in values])


def test_order_sorts_table(tmp_path):
    table = clustered(tmp_path / "t")
    before = table.to_arrow()
    snapshot = table.compact(order_by=["x", "name"])
    assert (snapshot.commit_kind, snapshot.total_record_count, snapshot.delta_record_count) == ("COMPACT", 20_000, 0)
    after = table.to_arrow()
    assert ordered_by(after, "x", "name")
    assert bag(after) == bag(before)
    files = [f for split in table.scan().plan().splits for f in split.files]
    assert len(files) > 3
    assert {(f.level, f.file_source) for f in files} == {(0, FileSource.COMPACT)}
    middle = 1 << 39
    assert files_for(table, f"x = {middle}") == 1


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_box_of_values_is_in_fewer_files(tmp_path, strategy):
    table = clustered(tmp_path / "t", 40_000)
    boxes = [
        f"x BETWEEN {i << 37} AND {(i << 37) + (1 << 36)} AND y BETWEEN {y} AND {y + 0.2}"
        for i in range(0, 8, 2)
        for y in (-1.5, -0.3, 0.8)
    ]
    before, rows = sum(files_for(table, box) for box in boxes), table.to_arrow()
    counts = [table.to_arrow(filter=box).num_rows for box in boxes]
    table.compact(order_by=["x", "y"], order_strategy=strategy)
    after = sum(files_for(table, box) for box in boxes)
    assert after * 3 < before, (after, before)
    assert [table.to_arrow(filter=box).num_rows for box in boxes] == counts
    table_bag, rows_bag = bag(table.to_arrow()), bag(rows)
    assert table_bag == rows_bag


@given(
    st.lists(st.tuples(st.none() | st.integers(-5, 5), st.sampled_from(["", "é", "xx"])), max_size=40),
    st.sampled_from(STRATEGIES),
    st.permutations(["n", "v"]),
    st.integers(1, 4),
)
@draws(25)
def test_rows_stay_the_same(tmp_path_factory, found, strategy, columns, parts):
    table = append_table(tmp_path_factory.mktemp("t") / "t")
    for at in range(0, len(found), 15):
        table.write(orders(*((at + i, v, n) for i, (n, v) in enumerate(found[at : at + 15]))))
    before = table.to_arrow()
    tasks = plan_sort(table.store, ClusterKey.over(table.schema, columns, strategy), parts=parts)
    messages = [run(table.store, pickle.loads(pickle.dumps(task))) for task in tasks]
    result = table.committer().commit(join_parts(messages))
    assert (result is None) == (not found)
    assert bag(table.to_arrow()) == bag(before)
    if strategy == "order":
        assert ordered_by(table.to_arrow(), *columns)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_memory_is_bounded_and_does_not_matter(tmp_path, strategy):
    table = clustered(tmp_path / "t", 30_000, **{"read.batch-size": "1000"})
    key = cluster_key(table.store, ["x", "y"], strategy)
    (task,) = plan_sort(table.store, key)
    contents = []
    for limit in ("256 mb", "1 mb"):
        store = table.with_options({"write-buffer-size": limit}).store
        message = run(store, task)
        read = table.reader()
        split = table.scan().plan().splits[0]
        rows = [
            pa.Table.from_batches(read.to_batches(type(split)(1, split.partition, 0, -1, (file,), True)))
            for file in message.compact_after
        ]
        contents.append(pa.concat_tables(rows))
        table.committer().abort([message])
    assert contents[0].equals(contents[1])


def test_parts_of_partition(tmp_path):
    table = clustered(tmp_path / "t", 10_000, partition_keys=["p"])
    before = table.to_arrow()
    tasks = plan_sort(table.store, cluster_key(table.store, ["x"], "order"), parts=3)
    assert len(tasks) == 6
    messages = [run(table.store, task) for task in tasks]
    assert all(message.compact_after for message in messages)
    with pytest.raises(CorruptedError, match="commit the messages of all tasks"):
        join_parts(messages[:-1])
    table.committer().commit(join_parts(messages))
    assert bag(table.to_arrow()) == bag(before)
    for p in "ab":
        assert ordered_by(table.to_arrow(filter=f"p = '{p}'"), "x")


def test_partitions_and_filters_choose(tmp_path):
    table = clustered(tmp_path / "t", 2_000, partition_keys=["p"])
    for chosen in ({"partitions": [{"p": "b"}]}, {"filter": "p > 'a'"}):
        assert table.compact(order_by=["x"], **chosen).commit_kind == "COMPACT"
    assert ordered_by(table.to_arrow(filter="p = 'b'"), "x")
    assert not ordered_by(table.to_arrow(filter="p = 'a'"), "x")
    assert table.compact(order_by=["x"], partitions=[{"p": "zz"}]) is None
    with pytest.raises(InvalidInputError, match="'x' is no partition column"):
        table.compact(order_by=["x"], filter="x > 3")


def test_options_replace_missing_arguments(tmp_path):
    table = clustered(tmp_path / "t", 100, **{"clustering.columns": "y,x", "clustering.strategy": "auto"})
    assert cluster_key(table.store, None, None) == ClusterKey("zorder", ("y", "x"))
    assert cluster_key(table.store, None, "auto").strategy == "zorder"
    assert cluster_key(table.store, ["x", "y"], None).strategy == "order"
    assert cluster_key(table.store, ["x"], "HILBERT").strategy == "hilbert"
    assert cluster_key(table.store, None, "order").columns == ("y", "x")
    with pytest.raises(InvalidInputError, match="no columns to sort by"):
        cluster_key(append_table(tmp_path / "u").store, None, "order")


def test_files_of_older_schemas_are_sorted(tmp_path):
    table = clustered(tmp_path / "t", 500).alter([AddColumn("z", parse_type("INT"))])
    table.write(points(500, seed=1).append_column("z", pa.array(range(500), pa.int32())))
    before = table.to_arrow()
    table.compact(order_by=["z", "x"])
    assert ordered_by(table.to_arrow(), "z", "x")
    assert bag(table.to_arrow()) == bag(before)


def test_only_tables_without_order_can_be_sorted(tmp_path):
    for table in (keyed_table(tmp_path / "k"), append_table(tmp_path / "b", bucket="2", bucket_key="id")):
        with pytest.raises(InvalidInputError, match="other tables determine the order of rows"):
            table.compact(order_by=["n"])
    with pytest.raises(UnsupportedError, match="read-optimized"):
        append_table(tmp_path / "a").read_optimized().compact(order_by=["n"])


def test_concurrent_append_stays(tmp_path):
    table = clustered(tmp_path / "t", 300)

    def write_once(done, total):
        assert 0 < done <= total
        table.write(points(7, seed=2))

    table.compact(order_by=["x"], progress=write_once)
    assert table.to_arrow().num_rows == 307


def test_partition_that_another_job_overwrote_is_sorted_again(tmp_path):
    table = clustered(tmp_path / "t", 300, partition_keys=["p"])
    overwritten = []

    def overwrite_once(done, total):
        if not overwritten:
            overwritten.append(table.overwrite(points(50, seed=3), {"p": "a"}))

    result = table.compact(order_by=["x"], progress=overwrite_once)
    assert result.id == overwritten[0].id + 2, "one commit for what held, one for the partition that did not"
    assert table.to_arrow(filter="p = 'a'").num_rows == 50
    for p in "ab":
        assert ordered_by(table.to_arrow(filter=f"p = '{p}'"), "x")


def test_repeated_overwrites_are_conflict(tmp_path):
    table = clustered(tmp_path / "t", 300)
    with pytest.raises(CommitConflictError, match="other commits rewrote it in every attempt"):
        table.compact(order_by=["x"], progress=lambda done, total: table.overwrite(points(5)))
    written = {name for name in files_below(tmp_path) if "/bucket-" in name}
    assert len(written) == 6, "the first write and five that overwrite"
    assert table.to_arrow().num_rows == 5


def test_interrupted_run_leaves_table_as_it_was(tmp_path):
    table = clustered(tmp_path / "t", 3_000, partition_keys=["p"])
    before, rows = files_below(tmp_path), table.to_arrow()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.compact(order_by=["x"], progress=stop)
    assert files_below(tmp_path) == before
    assert table.to_arrow().equals(rows)
