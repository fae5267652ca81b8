"""Sequence numbers of the rows of a bucket."""

import pytest

from paimon_core.write.sequence import SequenceGenerator


def test_one_writer_numbers_rows_without_gaps():
    one = SequenceGenerator()
    assert one.numbers(10, 0, 3).tolist() == [10, 11, 12]
    assert one.numbers(10, 3, 2).tolist() == [13, 14]
    assert one.after(10, 5) == 15


@pytest.mark.parametrize(("first", "numbers"), [(0, [1, 4, 7]), (3, [4, 7, 10]), (4, [7, 10, 13])])
def test_one_of_three_writers_takes_every_third_number(first, numbers):
    """`first` is rounded up to a multiple of the stride, so the numbers of two writers are never equal."""
    second = SequenceGenerator(offset=1, stride=3)
    assert second.numbers(first, 0, 3).tolist() == numbers


def test_writers_that_read_different_snapshots_use_different_numbers():
    numbers = [SequenceGenerator(i, 3).numbers(first, 0, 50).tolist() for i, first in enumerate((0, 7, 23))]
    assert len(set().union(*numbers)) == 150


def test_the_next_rows_have_larger_numbers():
    last = SequenceGenerator(2, 3)
    assert last.after(5, 0) == 5
    assert last.numbers(5, 0, 4).max() < last.numbers(last.after(5, 4), 0, 1).min()
