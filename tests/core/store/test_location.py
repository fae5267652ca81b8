"""A table's directory, its branch and its view, read from one text."""

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.store.location import TableLocation


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/w/t", TableLocation("/w/t")),
        ("/w/t/", TableLocation("/w/t")),
        ("/", TableLocation("/")),
        ("memory://", TableLocation("memory://")),
        ("t$ro", TableLocation("t", None, "ro")),
        ("s3://b$1/t$BRANCH_B$RO/", TableLocation("s3://b$1/t", "B", "ro")),
        ("/w/t$branch_b$Files", TableLocation("/w/t", "b", "files")),
        ("/w/odd.name of t$branch_b", TableLocation("/w/odd.name of t", "b")),
    ],
)
def test_location_is_parsed(text, expected):
    assert TableLocation.parse(text) == expected


@pytest.mark.parametrize("text", ["/w/t$branch_", "/w/$ro", "/w/t$ro$ro", "/w/t$", "/w/t$branch_.."])
def test_invalid_location_is_refused(text):
    with pytest.raises(InvalidInputError):
        TableLocation.parse(text)
