"""Tags that share files with expired snapshots."""

import pytest

from paimon_core.operations.history.snapshot_deletion import adjacent_tags
from paimon_core.snapshot.tags import Tag
from tests.support.manifests import snapshot


@pytest.mark.parametrize(
    ("tagged", "adjacent"),
    [
        ([], []),
        ([3, 7, 12], [3, 7]),
        ([1, 2, 3], [3]),
        ([5, 9], [5, 9]),
        ([10, 11], []),
    ],
)
def test_tags_in_range_and_nearest_before_it(tagged, adjacent):
    """The snapshots 5 to 9 expire."""
    tags = [Tag(f"t{number}", snapshot(number)) for number in reversed(tagged)]
    assert [actual.id for actual in adjacent_tags(tags, 5, 10)] == adjacent
