"""The cache of the values that were used last."""

from paimon_core.memory import LruCache


def test_values_used_longest_ago_leave():
    cache = LruCache[str, bytes](10, len)
    for key in "abc":
        cache.put(key, b"123")
    assert cache.get("a") == b"123"
    cache.put("d", b"1234")
    assert [cache.get(key) is not None for key in "abcd"] == [True, False, True, True]
    assert cache.size == 10


def test_new_value_of_key_replaces_its_size():
    cache = LruCache[str, bytes](10, len)
    cache.put("a", b"12345678")
    cache.put("a", b"12")
    cache.put("b", b"12345678")
    assert (cache.get("a"), cache.size) == (b"12", 10)
    cache.forget("a")
    cache.forget("a")
    assert (cache.get("a"), cache.size) == (None, 8)


def test_large_value_is_not_cached_and_removes_none():
    cache = LruCache[str, bytes](10, len, most_of_one=4)
    cache.put("a", b"1234")
    cache.put("b", b"12345")
    assert (cache.get("a"), cache.get("b"), cache.size) == (b"1234", None, 4)
