"""Consumers: small files that store the progress of streams."""

import os

import pytest

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.fileio import FileIO
from paimon_core.snapshot.consumers import Consumers


@pytest.fixture
def consumers(tmp_path):
    return Consumers(FileIO.of(str(tmp_path)), str(tmp_path))


def test_oldest_consumer_counts(consumers):
    assert consumers.list() == {}
    assert consumers.min_next() is None
    for name, following in (("b", 7), ("a", 9), ("b", 8)):
        consumers.record(name, following)
    assert consumers.list() == {"a": 9, "b": 8}
    assert consumers.min_next() == consumers.get("b") == 8
    consumers.delete("b")
    consumers.delete("b")
    assert consumers.get("b") is None
    assert consumers.min_next() == 9


def test_file_as_others_write_it(consumers, tmp_path):
    consumers.record("mine", 5)
    assert (tmp_path / "consumer" / "consumer-mine").read_bytes() == b'{\n  "nextSnapshot" : 5\n}'
    (tmp_path / "consumer" / "consumer-theirs").write_text('{"nextSnapshot":3,"more":1}')
    assert consumers.list() == {"mine": 5, "theirs": 3}


def test_inactive_consumers_expire(consumers):
    for name in ("old", "new"):
        consumers.record(name, 1)
    os.utime(consumers.path("old"), (1, 1))
    assert consumers.expire(2_000) == ["old"]
    assert consumers.list() == {"new": 1}


@pytest.mark.parametrize("text", ['{"nextSnapshot": "5"}', '{"nextSnapshot": true}', "{}", "[]", "{"])
def test_corruption_is_named(consumers, text):
    consumers.record("x", 1)
    consumers.io.write(consumers.path("x"), text.encode())
    with pytest.raises(CorruptedError, match="consumer-x"):
        consumers.min_next()


@pytest.mark.parametrize("name", ["", " ", "a/b", "../x"])
def test_wrong_names_are_refused(consumers, name):
    with pytest.raises(InvalidInputError, match="consumer"):
        consumers.record(name, 1)
