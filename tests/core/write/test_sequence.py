"""Sequence numbers of the rows of a bucket."""

import pytest

from paimon_core.write.sequence import RowSequence


def test_one_writer_numbers_rows_without_gaps():
    sequence = RowSequence(10)
    assert sequence.take(3).tolist() == [10, 11, 12]
    assert sequence.take(0).tolist() == []
    assert sequence.take(2).tolist() == [13, 14]


@pytest.mark.parametrize(("first", "numbers"), [(0, [1, 4, 7]), (3, [4, 7, 10]), (4, [7, 10, 13])])
def test_one_of_three_writers_takes_every_third_number(first, numbers):
    """`first` is rounded up to a multiple of the stride, so the numbers of two writers are never equal."""
    assert RowSequence(first, 1, 3).take(3).tolist() == numbers


def test_writers_that_read_different_snapshots_use_different_numbers():
    numbers = [RowSequence(first, i, 3).take(50).tolist() for i, first in enumerate((0, 7, 23))]
    assert len(set().union(*numbers)) == 150


@pytest.mark.parametrize(("newest", "number"), [(4, 14), (9, 14), (14, 17), (20, 23)])
def test_next_rows_have_larger_numbers_than_bucket(newest, number):
    """The next row gets a number of its writer above `newest` of the bucket and above the rows before."""
    sequence = RowSequence(5, 2, 3)
    assert sequence.take(2).tolist() == [8, 11]
    sequence.continue_above(newest)
    assert sequence.take(1).tolist() == [number]
