"""Record-level expiry."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.merge.record_expire import RecordLevelExpire
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

NOW = 1_700_000_000_000
OPTIONS = Options({"record-level.expire-time": "10 s", "record-level.time-field": "t"})


def expiry(kind):
    made = RecordLevelExpire.of(OPTIONS, [DataField(0, "t", parse_type(kind))], NOW)
    assert made is not None
    return made


def left(kind, arrow, values):
    batch = pa.record_batch({"t": pa.array(values, arrow), "row": pa.array(range(len(values)))})
    return [row for kept in expiry(kind).without_expired([batch]) for row in kept.column("row").to_pylist()]


def test_rows_at_cutoff_or_without_time_do_not_expire():
    at = NOW // 1000
    assert left("INT", pa.int32(), [at - 11, at - 10, at - 9, None, at + 60]) == [1, 2, 3, 4]


def test_large_integer_times_are_milliseconds():
    assert left("BIGINT", pa.int64(), [NOW - 11_001, NOW - 10_001, NOW - 10_000, NOW // 1000 - 11, NOW // 1000]) == [
        2,
        4,
    ]


@pytest.mark.parametrize(("kind", "unit", "scale"), [("TIMESTAMP(3)", "ms", 1), ("TIMESTAMP(6)", "us", 1000)])
def test_timestamp_columns_expire_in_any_unit(kind, unit, scale):
    assert left(kind, pa.timestamp(unit), [(NOW - 11_000) * scale, (NOW - 10_000) * scale, None]) == [1, 2]


def test_fully_expired_batches_are_dropped():
    batch = pa.record_batch({"t": pa.array([1, 2], pa.int32())})
    assert list(expiry("INT").without_expired([batch, batch.slice(0, 0)])) == []


def test_file_expiry_uses_smallest_time():
    assert expiry("INT").reaches(NOW // 1000 - 11, pa.int32())
    assert not expiry("INT").reaches(NOW // 1000 - 10, pa.int32())
    assert not expiry("INT").reaches(None, pa.int32())


def test_rows_without_expire_option_do_not_expire():
    assert RecordLevelExpire.of(Options({}), [], NOW) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record-level.expire-time": "1 d"}, "needs 'record-level.time-field'"),
        ({"record-level.expire-time": "1 d", "record-level.time-field": "zz"}, "'zz'"),
        ({"record-level.expire-time": "1 d", "record-level.time-field": "s"}, "STRING.*INT"),
    ],
)
def test_invalid_expire_options_are_refused(options, message):
    fields = [DataField(0, "s", parse_type("STRING"))]
    with pytest.raises(InvalidInputError, match=message):
        RecordLevelExpire.of(Options(options), fields, NOW)
