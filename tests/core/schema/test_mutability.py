"""Changes of options on a table with data."""

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.schema.mutability import check_change


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({}, "snapshot.num-retained.min", "5"),
        ({"merge-engine": "first-row"}, "merge-engine", "first-row"),
        ({"bucket": "2"}, "bucket", "4"),
        ({"deletion-vectors.modifiable": "true"}, "deletion-vectors.enabled", "true"),
        ({"ignore-delete": "false"}, "ignore-delete", "true"),
        ({"ignore-delete": "true"}, "ignore-delete", " TRUE "),
    ],
)
def test_option_may_change(options, key, value):
    check_change(options, key, value)


@pytest.mark.parametrize(
    ("options", "key", "value", "error"),
    [
        ({}, "type", "format-table", "the type of a table is fixed"),
        ({}, "merge-engine", "first-row", "once the table has data"),
        ({}, "partition.default-name", "none", "the meaning or the paths of its files"),
        ({"partition.legacy-name": "false"}, "partition.legacy-name", None, "the meaning or the paths of its files"),
        ({"bucket": "2"}, "bucket", "-1", "cannot be changed from 2 to -1"),
        ({}, "bucket", "2", "cannot be changed from -1 to 2"),
        ({"bucket": "2"}, "bucket", None, "cannot be removed"),
        ({}, "deletion-vectors.enabled", "true", "'deletion-vectors.modifiable' is true"),
        ({"ignore-delete": "true"}, "ignore-delete", None, "cannot change from true"),
        ({"pk-clustering-override": "true"}, "clustering.columns", "a", "these columns order the rows"),
    ],
)
def test_option_must_not_change(options, key, value, error):
    with pytest.raises(InvalidInputError, match=error):
        check_change(options, key, value)
