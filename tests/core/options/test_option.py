import pickle

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options.bucket import BUCKET, BUCKET_KEY
from paimon_core.options.lsm import WRITE_BUFFER_SIZE, WRITE_ONLY
from paimon_core.options.merge import IGNORE_DELETE
from paimon_core.options.option import Options


def test_values_are_typed_and_have_defaults():
    options = Options({"bucket": "4", "write-buffer-size": "1 mb"})
    assert options.value(BUCKET) == 4
    assert options.value(WRITE_BUFFER_SIZE) == 1 << 20
    assert options.value(BUCKET_KEY) == ()
    assert options.has(BUCKET)
    assert not options.has(BUCKET_KEY)


def test_older_keys_are_asked_in_order_after_key():
    assert Options({"write.compaction-skip": "true"}).value(WRITE_ONLY)
    assert Options({"deduplicate.ignore-delete": "true"}).has(IGNORE_DELETE)
    both = Options({"write.compaction-skip": "true", "write-only": "false"})
    assert not both.value(WRITE_ONLY)


def test_bad_value_names_key_value_and_accepted_values():
    options = Options({"write.compaction-skip": "maybe"})
    with pytest.raises(InvalidInputError, match=r"option 'write.compaction-skip' is 'maybe': must be true or false"):
        options.value(WRITE_ONLY)


def test_values_that_are_not_strings_are_refused():
    with pytest.raises(InvalidInputError, match="'bucket' is 4"):
        Options({"bucket": 4})


def test_merging_overlays_and_removes():
    options = Options({"a": "1", "b": "2"})
    assert options.merged({"b": None, "c": "3"}) == {"a": "1", "c": "3"}
    assert options.merged({"a": "1", "x": None}) is options
    assert dict(options) == {"a": "1", "b": "2"}


def test_equal_options_hash_equally_whatever_order():
    first, second = Options({"a": "1", "b": "2"}), Options({"b": "2", "a": "1"})
    assert first == second
    assert hash(first) == hash(second)
    assert first != Options()
    assert pickle.loads(pickle.dumps(first)) == first
    assert repr(first) == "Options({'a': '1', 'b': '2'})"


def test_options_do_not_change():
    source = {"a": "1"}
    options = Options(source)
    source["a"] = "2"
    assert options["a"] == "1"
    with pytest.raises(TypeError):
        options["a"] = "2"
