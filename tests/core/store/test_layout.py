import json
import math
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.options.option import Options
from paimon_core.store.layout import (
    branch_directory,
    bucket_directory,
    bucket_name,
    escape,
    partition_path,
    partition_text,
)
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

VECTORS = json.loads((Path(__file__).parent / "partition_vectors.json").read_text(encoding="utf-8"))
"""[type, legacy, [[value, directory], ...]] as the Java engine (1.4.2, in UTC) spells them."""


def internal(type_text, value):
    if value is not None and type_text.startswith("DECIMAL"):
        return Decimal(value)
    if type_text in ("FLOAT", "DOUBLE") and value is not None:
        return float(value)
    return value


@pytest.mark.parametrize(("type_text", "legacy", "values"), VECTORS, ids=[f"{t}-{legacy}" for t, legacy, _ in VECTORS])
def test_directories_are_spelled_as_java_spells_them(type_text, legacy, values):
    field = DataField(0, "k", parse_type(type_text))
    options = Options({"partition.legacy-name": str(legacy).lower()})
    for value, directory in values:
        assert partition_path([internal(type_text, value)], [field], options) == "k=" + directory, (value, type_text)


def test_levels_in_order_and_none_without_partitions():
    fields = [DataField(0, "a b", parse_type("INT")), DataField(1, "c/d", parse_type("STRING"))]
    assert partition_path([1, "x=y"], fields, Options()) == "a b=1/c%2Fd=x%3Dy"
    assert partition_path([], [], Options()) == ""


def test_name_of_null_is_option():
    options = Options({"partition.default-name": "none:at all"})
    assert partition_path([None], [DataField(0, "k", parse_type("INT"))], options) == "k=none%3Aat all"


@given(st.text())
def test_escaping_can_be_undone_and_leaves_no_separator(text):
    escaped = escape(text)
    assert unquote(escaped) == text
    assert not set(escaped) & set('/"#*:=?\\{}[]^')


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value):
    text = partition_text(value, DataField(0, "d", parse_type("DOUBLE")), legacy=True)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)


@given(st.integers(-(10**6), 4 * 10**6))
def test_days_of_every_year_have_a_name(days):
    text = partition_text(days, DataField(0, "d", parse_type("DATE")), legacy=False)
    year, month, day = text.rsplit("-", 2)
    assert 1 <= int(month) <= 12
    assert 1 <= int(day) <= 31
    assert abs(int(year) - (1970 + days / 365.2425)) < 1.1


def test_years_beyond_four_digits_and_before_first():
    field = DataField(0, "d", parse_type("DATE"))
    assert partition_text(2_932_897, field, legacy=False) == "+10000-01-01"
    assert partition_text(-719_163, field, legacy=False) == "0000-12-31"
    assert partition_text(-719_529, field, legacy=False) == "-0001-12-31"


def test_buckets_and_branches():
    assert bucket_name(0) == "bucket-0"
    assert bucket_name(-2) == "bucket-postpone"
    assert bucket_directory("s3://b/t", "p=1", 3, Options()) == "s3://b/t/p=1/bucket-3"
    assert bucket_directory("/t", "", 0, Options()) == "/t/bucket-0"
    assert bucket_directory("/t", "p=1", 0, Options({"data-file.path-directory": "data"})) == "/t/data/p=1/bucket-0"
    assert branch_directory("/t", "main") == "/t"
    assert branch_directory("/t", "b1") == "/t/branch/branch-b1"
