"""Format tables without a catalog: rows in files of each format, partitions in directories, files of other tools."""

import datetime as dt
import pickle
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from paimon_core import FormatTable, Schema
from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format_table.settings import new_format_schema
from paimon_core.format_table.write import FormatTableWriter

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "s": ['a"b', "x,y", None],
        "d": [1.5, None, 2.0],
        "dt": pa.array([dt.date(2024, 1, 1), None, dt.date(2024, 1, 1)]),
        "p": ["x/y", "z", "x/y"],
    }
)
LINES = pa.schema([("id", pa.int32()), ("s", pa.string())])


@pytest.fixture
def make(tmp_path):
    """A function that makes a format table with columns and options."""

    def made(columns, keys=(), **options):
        named = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
        schema = new_format_schema(Schema(columns, partition_keys=keys, options=named), "db.t")
        path = str(tmp_path / "t")
        return FormatTable(FileIO.of(path), path, schema, "db.t")

    return made


def ids(table, **read):
    return sorted(table.to_arrow(["id"], **read)["id"].to_pylist())


def names(table):
    root = Path(table.path)
    return sorted(str(path.parent.relative_to(root)) for path in root.rglob("data-*"))


@pytest.mark.parametrize("only_values", ["false", "true"])
@pytest.mark.parametrize("file_format", ["csv", "json", "orc", "parquet"])
def test_rows_come_back(make, file_format, only_values):
    options = {"file_format": file_format, "format__table_partition__path__only__value": only_values}
    table = pickle.loads(pickle.dumps(make(ROWS.schema, ["dt", "p"], **options)))
    assert (table.write(ROWS), table.format) == (3, file_format)
    rows = table.to_arrow().sort_by("id")
    assert rows.equals(ROWS.cast(rows.schema))
    directory = ["19723/x%2Fy", "__DEFAULT_PARTITION__/z"]
    if only_values == "false":
        directory = ["dt=19723/p=x%2Fy", "dt=__DEFAULT_PARTITION__/p=z"]
    assert names(table) == directory
    assert table.to_arrow(["s"], "p = 'z'").to_pylist() == [{"s": "x,y"}]
    assert ids(table, filter="dt IS NULL OR d = 1.5") == [1, 2]
    assert len(table.read(filter="p = 'z' AND id > 0").plan()) == 1
    assert table.to_arrow(limit=1).num_rows == 1
    assert table.partitions() == [{"dt": dt.date(2024, 1, 1), "p": "x/y"}, {"dt": None, "p": "z"}]


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_names_that_other_readers_reserve_are_columns(make, file_format):
    rows = pa.table({"_corrupt_record": ["a", None, "c"], "_metadata": ["x", "y", None]})
    table = make(rows.schema, file_format=file_format)
    table.write(rows)
    assert table.to_arrow().equals(rows)


def test_overwrites(make):
    table = make(ROWS.schema, ["dt", "p"])
    table.write(ROWS)
    table.overwrite(ROWS.slice(0, 1), "dynamic")
    assert ids(table) == [1, 2]
    table.overwrite(ROWS.slice(2, 1).drop_columns("p"), {"p": "x/y"})
    assert ids(table) == [2, 3]
    with pytest.raises(InvalidInputError, match=r"a row is in the partition .*'z'.*, which the overwrite"):
        table.overwrite(ROWS, {"p": "x/y"})
    with pytest.raises(InvalidInputError, match=r"'q' is not a partition column of db.t; they are"):
        table.overwrite(ROWS, {"q": "x/y"})
    assert ids(table) == [2, 3]
    table.overwrite(ROWS.slice(0, 0), {"dt": "2024-01-01"})
    assert ids(table) == [2]
    table.overwrite(ROWS.slice(0, 2))
    assert ids(table) == [1, 2]
    assert not list((Path(table.path) / "_temporary").iterdir())
    table.truncate()
    assert (ids(table), len(table.partitions())) == ([], 2)


def test_partitions_are_directories(make):
    table = make(ROWS.schema, ["dt", "p"])
    assert table.add_partition({"dt": "2024-01-02", "p": None})
    assert not table.add_partition({"p": None, "dt": dt.date(2024, 1, 2)})
    assert table.partitions() == [{"dt": dt.date(2024, 1, 2), "p": None}]
    table.write(ROWS)
    for name in ("dt=2024-01-01/p=x%2Fy", "dt=20000/p=__HIVE_DEFAULT_PARTITION__", "other/p=a", "_temporary/p=b"):
        Path(table.path, name).mkdir(parents=True)
    assert (len(table.partitions()), table.drop_partitions({"dt": dt.date(2024, 1, 1)})) == (5, 2)
    assert [partition["p"] for partition in table.partitions()] == [None, None, "z"]
    with pytest.raises(InvalidInputError, match=r"no partition of db.t is named"):
        table.drop_partitions({})
    with pytest.raises(InvalidInputError, match=r"has a value for each of the columns \['dt', 'p'\]"):
        table.add_partition({"p": "a"})
    Path(table.path, "dt=yesterday").mkdir()
    with pytest.raises(InvalidInputError, match="dt=yesterday: 'yesterday' is not a value of column 'dt', a DATE"):
        table.to_arrow()


@pytest.mark.parametrize("wrong", [[{"dt": dt.date(2024, 1, 1)}], 7, "dt=2024-01-01"], ids=["list", "number", "text"])
def test_partition_that_is_no_mapping_changes_nothing(make, wrong):
    table = make(ROWS.schema, ["dt", "p"])
    table.write(ROWS)
    before = (ids(table), table.partitions())
    for change in (
        partial(table.overwrite, ROWS),
        table.drop_partitions,
        table.truncate_partitions,
        table.add_partition,
    ):
        with pytest.raises(InvalidInputError, match="must be a mapping"):
            change(wrong)
    assert (ids(table), table.partitions()) == before


@pytest.mark.parametrize(
    ("value", "only_values", "problem"),
    [
        (" ", "false", "a blank text of column 'p' cannot name a partition"),
        ("__DEFAULT_PARTITION__", "false", "it stands for NULL"),
        ("__HIVE_DEFAULT_PARTITION__", "false", "it stands for NULL"),
        ("_a", "true", "a directory with this name is hidden"),
    ],
)
def test_value_that_would_not_come_back(make, value, only_values, problem):
    table = make(
        pa.schema([("id", pa.int32()), ("p", pa.string())]),
        ["p"],
        format__table_partition__path__only__value=only_values,
    )
    with pytest.raises(InvalidInputError, match=problem):
        table.write(pa.table({"id": [1], "p": [value]}))
    assert not list(Path(table.path).rglob("*tmp*"))


def test_failed_publication_leaves_the_old_rows(make, monkeypatch):
    table = make(LINES)
    table.write(pa.table({"id": [1], "s": ["a"]}))
    monkeypatch.setattr(FileIO, "sync", lambda *arguments: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        table.overwrite(pa.table({"id": [2], "s": ["b"]}))
    assert (ids(table), len(names(table))) == ([1], 1)


def test_many_partitions_and_large_files(make, monkeypatch):
    monkeypatch.setattr("paimon_core.format_table.write._OPEN_FILES", 2)
    table = make(pa.schema([("id", pa.int32()), ("p", pa.int32())]), ["p"], target__file__size="1 kb")
    table.write(pa.table({"id": range(3000), "p": [i % 3 for i in range(3000)]}))
    assert (ids(table), len(names(table))) == (list(range(3000)), 3)
    writer = table.writer()
    assert isinstance(writer, FormatTableWriter)
    for part in range(3):
        writer.write(pa.record_batch({"id": [part], "p": [part]}))
    writer.abort()
    assert not list(Path(table.path, "_temporary").iterdir())


def test_overwrites_of_a_table_without_partitions(make):
    table = make(LINES, dynamic__partition__overwrite="true")
    table.write(pa.table({"id": [1], "s": ["a"]}))
    table.overwrite(pa.table({"id": [2], "s": ["b"]}))
    assert ids(table) == [2]
    table.overwrite(LINES.empty_table())
    assert ids(table) == []


def test_text(make):
    table = make(pa.schema([("line", pa.string()), ("p", pa.int32())]), ["p"], file_format="text")
    table.write(pa.table({"line": ["a b", "", "é"], "p": [1, 1, 1]}))
    Path(table.path, "p=1", "more.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert sorted(table.to_arrow()["line"].to_pylist()) == ["", "a b", "one", "two", "é"]
    assert table.to_arrow(["p"]).num_rows == 5
    for value, problem in ((None, "is NULL"), ("a\nb", "has a line break"), ("\ufeffa", "begins with U\\+FEFF")):
        with pytest.raises(InvalidInputError, match=problem):
            table.write(pa.table({"line": [value], "p": [1]}))
    with pytest.raises(UnsupportedError, match=r"text files hold one STRING column .*, but the columns are id INT"):
        make(pa.schema([("id", pa.int32())]), file_format="text")
    with pytest.raises(UnsupportedError, match=r"'text.line-delimiter' must be a line feed"):
        make(pa.schema([("a", pa.string())]), file_format="text", text_line__delimiter=";")


def test_files_of_other_tools(make):
    """Columns in another order, in another case, and missing."""
    table = make(LINES)
    Path(table.path).mkdir()
    pq.write_table(pa.table({"S": ["a"], "more": [1], "ID": pa.array([1], pa.int32())}), f"{table.path}/part-0.parquet")
    pq.write_table(pa.table({"s": ["b"]}), f"{table.path}/part-1.snappy.parquet")
    pq.write_table(pa.table({"s": ["c"]}), f"{table.path}/_hidden.parquet")
    assert table.to_arrow(filter="s >= 'a'").to_pylist() == [{"id": 1, "s": "a"}, {"id": None, "s": "b"}]
    pq.write_table(pa.table({"ID": [1], "Id": [2]}), f"{table.path}/part-2.parquet")
    with pytest.raises(InvalidInputError, match=r"part-2.parquet has several columns .* 'id' may mean: ID, Id"):
        table.to_arrow()
    pq.write_table(pa.table({"_col0": [1], "_col1": ["a"]}), f"{table.path}/part-2.parquet")
    with pytest.raises(UnsupportedError, match=r"part-2.parquet have numbers instead of names"):
        table.to_arrow()
    Path(table.path, "part-2.parquet").write_bytes(b"")
    with pytest.raises(CorruptedError, match=r"part-2\.parquet"):
        table.to_arrow()


CSV = b'\xef\xbb\xbf1,a\nx,b\n3\n4,d,more\n\n"5","e ""q"""\n'


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("permissive", [(1, "a"), (None, "b"), (3, None), (4, "d"), (None, None), (5, 'e "q"')]),
        ("dropmalformed", [(1, "a"), (3, None), (4, "d"), (None, None), (5, 'e "q"')]),
    ],
)
def test_malformed_csv(make, mode, rows):
    table = make(LINES, file_format="csv", csv_mode=mode)
    Path(table.path).mkdir()
    Path(table.path, "a.csv").write_bytes(CSV)
    assert [tuple(row.values()) for row in table.to_arrow().to_pylist()] == rows
    assert table.to_arrow(["s"]).num_rows == len(rows)


def test_csv_that_is_refused(make):
    table = make(LINES, file_format="csv", csv_mode="failfast", csv_include__header="true", delimiter=";")
    Path(table.path).mkdir()
    Path(table.path, "a.csv").write_bytes(b"id;s\n1;a\n")
    assert table.to_arrow().to_pylist() == [{"id": 1, "s": "a"}]
    Path(table.path, "a.csv").write_bytes(b"id;s\nx;a\n")
    with pytest.raises(CorruptedError, match=r"column 'id' of .*a.csv"):
        table.to_arrow()
    Path(table.path, "a.csv").write_bytes(b'id;s;\n1;"a\nb"\n2\n')
    with pytest.raises(CorruptedError, match="a line has a quote without its partner"):
        table.to_arrow()
    for options, problem in (
        ({"csv_mode": "lenient"}, "'csv.mode' is 'lenient', but must be one of permissive, dropmalformed, failfast"),
        ({"csv_line__delimiter": "|"}, "'csv.line-delimiter' must be a line feed"),
    ):
        with pytest.raises(InvalidInputError, match=problem):
            make(LINES, file_format="csv", **options)


def test_csv_is_readable_by_others(make):
    table = make(LINES, file_format="csv", file_compression="gzip")
    table.write(pa.table({"id": [1, 2], "s": ["a", "x,y"]}))
    (file,) = Path(table.path).glob("*.csv.gz")
    read = pacsv.read_csv(file, pacsv.ReadOptions(column_names=["id", "s"]))
    assert read.to_pydict() == {"id": [1, 2], "s": ["a", "x,y"]}


def test_malformed_json(make):
    columns = pa.schema([("id", pa.int32()), ("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int64()))])
    lines = b'{"id": 1, "a": [1, "x"], "m": {"k": 2}}\n{"id": \n[1]\n{"id": "y", "a": 7, "m": 8}\n{"id": [3]}\n'
    table = make(columns, file_format="json", json_ignore__parse__errors="true")
    Path(table.path).mkdir()
    Path(table.path, "a.json").write_bytes(lines)
    nothing = {"id": None, "a": None, "m": None}
    assert table.to_arrow().to_pylist() == [{"id": 1, "a": [1, None], "m": [("k", 2)]}, nothing, nothing]
    with pytest.raises(CorruptedError, match=r"a\.json"):
        make(columns, file_format="json").to_arrow()


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"file_format": "avro"}, UnsupportedError, "db.t has the format 'avro', but this engine knows csv, json"),
        ({"bucket": "4"}, InvalidInputError, "option 'bucket' has no effect on a format table of parquet files"),
        ({"csv_mode": "failfast"}, InvalidInputError, "option 'csv.mode' has no effect on a format table of parquet"),
        ({"format__table_x": "1"}, UnsupportedError, "option 'format-table.x' of format table db.t is not supported"),
        ({"primary__key": "id"}, InvalidInputError, "db.t cannot have a primary key"),
        (
            {"file_format": "csv", "format__table_implementation": "engine"},
            UnsupportedError,
            "Spark's own form of csv files differs",
        ),
        ({"query__auth_enabled": "true"}, UnsupportedError, "rows and columns that a server hides"),
        ({"partition": "id,s"}, InvalidInputError, "needs a column besides its partition columns"),
        ({"partition": "x"}, InvalidInputError, "partition column 'x' is not a column of db.t: id, s"),
        ({"file_compression": "wrong"}, UnsupportedError, "wrong"),
    ],
)
def test_table_that_is_refused(make, options, error, problem):
    with pytest.raises(error, match=problem):
        make(LINES, **options)


def test_time_travel_is_refused(make):
    with pytest.raises(InvalidInputError, match=r"format table db.t has no snapshots: leave out 'snapshot_id'"):
        make(LINES).to_arrow(snapshot_id=1)
    with pytest.raises(InvalidInputError, match=r"has NULL|NOT NULL"):
        make(pa.schema([pa.field("id", pa.int32(), nullable=False)])).write(
            pa.table({"id": pa.array([None], pa.int32())})
        )
