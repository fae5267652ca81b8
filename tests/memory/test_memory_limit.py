"""Operations stay within ``memory-limit``, on tables of many times its size."""

import pytest

from tests.memory.cases import CASES
from tests.memory.limited import measure


def check(name, path, limit, times):
    result = measure(name, path, limit, times)
    assert result.error is None, result.error
    assert result.megabytes >= 0.1 * times * limit
    assert result.peak <= limit


@pytest.mark.parametrize("name", ["upsert", pytest.param("compact-sums", marks=pytest.mark.more)])
def test_operation_stays_in_smallest_limit(tmp_path, name):
    check(name, tmp_path, limit=64, times=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_operation_on_ten_times_the_limit(tmp_path, name):
    check(name, tmp_path, limit=256, times=10)
