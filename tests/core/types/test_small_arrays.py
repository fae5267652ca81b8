import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core.types.small_arrays import mask_of, small_array, small_scalar


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int32()),
        ([-128, 127], pa.int8()),
        ([1 << 62, -(1 << 63)], pa.int64()),
        ([1, None], pa.int64()),
        ([True, False] * 5, pa.bool_()),
        ([None, True], pa.bool_()),
        (["", "é", "\0x"], pa.string()),
        ([], pa.string()),
        (["a", None], pa.string()),
        ([1.5], pa.float64()),
        ([b"x"], pa.binary()),
    ],
)
def test_small_arrays_equal_those_of_arrow(values, kind):
    array = small_array(values, kind)
    array.validate(full=True)
    assert array == pa.array(values, kind)
    assert [small_scalar(value, kind) for value in values] == list(array)


@pytest.mark.parametrize(
    ("value", "kind"), [(128, pa.int8()), ("1", pa.int32()), (True, pa.int32()), ("\ud800", pa.string())]
)
def test_unfit_value_raises_error_of_arrow(value, kind):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError)):
        small_array([value], kind)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_masks_of_slices(count):
    truths = np.arange(200) % 3 == 0
    for offset in (0, 3, 8):
        array = pa.array(truths).slice(offset, count)
        assert mask_of(array).tolist() == array.to_pylist()
    assert mask_of(pc.is_null(pa.nulls(count))).tolist() == [True] * count
