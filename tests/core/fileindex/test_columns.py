"""The indexes that options define, refused options, and indexes of map values."""

import pyarrow as pa
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileindex.hash_table import text_hash, walked
from paimon_core.fileindex.index_file import pack
from paimon_core.fileindex.indexed_columns import FileIndexes, indexed_columns
from tests.support.index_files import unpack
from tests.support.samples import fields_of

FIELDS = fields_of(("INT", "DECIMAL(20,2)", "MAP<STRING,INT>", "MAP<INT,INT>", "TIMESTAMP(9)", "BOOLEAN"))


def test_index_options_name_columns_and_map_keys():
    options = {
        "file-index.bloom-filter.columns": "c0, c2[a b],c0",
        "file-index.bitmap.columns": "c0,c5",
        "file-index.bloom-filter.c0.items": "10",
        "file-index.bloom-filter.c2.fpp": "0.5",
        "file-index.bloom-filter.c2[a b].items": "7",
        "file-index.read.enabled": "true",
        "file-index.in-manifest-threshold": "1 kb",
    }
    result = {(c.item, c.kind): dict(c.options) for c in indexed_columns(options, FIELDS)}
    assert result == {
        ("c0", "bloom-filter"): {"items": "10"},
        ("c2[a b]", "bloom-filter"): {"fpp": "0.5", "items": "7"},
        ("c0", "bitmap"): {},
        ("c5", "bitmap"): {},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"file-index.bloom-filter.columns": "zz"}, "'zz'.*not among"),
        ({"file-index.bloom-filter.columns": "c1"}, "'c1' cannot have this index: DECIMAL"),
        ({"file-index.bloom-filter.columns": "c5"}, "BOOLEAN"),
        ({"file-index.bitmap.columns": "c1"}, "DECIMAL"),
        ({"file-index.bsi.columns": "c1"}, "more than 18 digits"),
        ({"file-index.bsi.columns": "c5"}, "BOOLEAN"),
        ({"file-index.range-bitmap.columns": "c4"}, "more than 6 digits of a second"),
        ({"file-index.bitmap.columns": "c2"}, "MAP.*cannot be indexed"),
        ({"file-index.bitmap.columns": "c0[a]"}, "only a MAP has keys"),
        ({"file-index.bitmap.columns": "c3[a]"}, "only keys of text"),
        ({"file-index.ngram.columns": "c0"}, "unknown kind.*bloom-filter"),
        ({"file-index.bloom-filter.columns": "c0", "file-index.bloom-filter.c0.items": "many"}, "'items' is 'many'"),
        ({"file-index.bloom-filter.columns": "c0", "file-index.bloom-filter.c0.fpp": "1"}, "'fpp' between 0 and 1"),
        ({"file-index.bloom-filter.columns": "c0", "file-index.bloom-filter.c0.items": "2000000000"}, "bits"),
        ({"file-index.bitmap.columns": "c0", "file-index.bitmap.c0.version": "3"}, "'version' is '3'"),
    ],
)
def test_wrong_index_options_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        indexed_columns(options, FIELDS)


def test_map_key_index_covers_values_of_key():
    fields = fields_of(("MAP<STRING,INT>",))
    maps = pa.array([[("a", 1), ("b", 2)], None, [("b", None)], [("a", 3)]], pa.map_(pa.string(), pa.int32()))
    rows = pa.table({"c0": pa.chunked_array([maps, maps.slice(1, 2)])})
    by_key = FileIndexes(indexed_columns({"file-index.bitmap.columns": "c0[a],c0[z]"}, fields))
    by_key.add(rows)
    plain = FileIndexes(indexed_columns({"file-index.bitmap.columns": "c0"}, fields_of(("INT",))))
    plain.add(pa.table({"c0": pa.array([1, None, None, 3, None, None], pa.int32())}))
    result = unpack(by_key.finish(), "here")
    assert set(result) == {"c0[a]", "c0[z]"}
    assert result["c0[a]"] == unpack(plain.finish(), "here")["c0"]


def test_container_round_trips_any_name():
    indexes = {name: {"bitmap": name.encode() or b"-", "x": b"1"} for name in ("a", "é\U0001f600", "m[\0]", "b" * 300)}
    indexes["empty"] = {"bitmap": b""}
    assert unpack(pack(indexes), "here") == indexes
    with pytest.raises(CorruptedError, match=r"here is not a file index of version 1"):
        unpack(b"\0" * 40, "here")


def test_names_are_in_java_hash_map_order():
    assert text_hash("Aa") == text_hash("BB") == 2112
    assert text_hash("bloom-filter") == sum(ord(c) * 31 ** (11 - i) for i, c in enumerate("bloom-filter")) % 2**32
    assert walked(["Aa", "BB", "b", "a"]) == ["Aa", "BB", "a", "b"]
    assert walked(["Aa", "BB", "b", "a"], newest_first=True) == ["BB", "Aa", "a", "b"]
