"""The option ``memory-limit``: the shares of the consumers, and options that win over them."""

from dataclasses import fields

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.memory import MemoryShares
from paimon_core.operations.compaction.external_sort import SortLimits
from paimon_core.options.option import Options
from tests.support.tables import keyed_table, orders

MIB = 1 << 20
OF_CACHES = ("key_cache", "key_index")


def shares(limit=None, **options):
    options = {key.replace("_", "-"): value for key, value in options.items()}
    return MemoryShares.of(Options(options if limit is None else {"memory-limit": limit, **options}))


def test_without_limit_every_share_has_its_default():
    assert shares() == MemoryShares()
    assert SortLimits.of(Options()).bytes == 64 * MIB


@pytest.mark.parametrize("limit", ["64 mb", "256 mb"])
def test_shares_of_a_merge_and_of_a_write_fit_the_limit(limit):
    """A merge has its batches about six times; a writer its buffer about four times, and row groups of two encoders."""
    found, most = shares(limit), MemoryShares.of(Options({"memory-limit": limit}))
    assert found == most
    size = int(limit.split()[0]) * MIB
    assert 6 * found.batches + found.decoders + 3 * found.part <= size
    assert 4 * found.write_buffer + 4 * found.row_group <= size
    assert 4 * found.sort + found.sample <= size
    assert found.threads == 1


def test_large_limit_grows_only_shares_of_options():
    default, found = MemoryShares(), shares("16 gb")
    assert (found.write_buffer, found.key_cache, found.key_index) == (2 << 30, 4 << 30, 4 << 30)
    grown = {"write_buffer", "threads", "decoders", "footer", *OF_CACHES}
    assert all(getattr(found, f.name) == getattr(default, f.name) for f in fields(found) if f.name not in grown)


def test_option_of_one_share_wins():
    found = shares("256 mb", write_buffer_size="7 mb", **{"lookup.cache-max-memory-size": "9 mb"})
    assert (found.write_buffer, found.sort) == (7 * MIB, 7 * MIB // 4)
    assert (found.key_cache, found.key_index) == (9 * MIB, 9 * MIB)


def test_limit_is_refused_if_it_is_too_small(tmp_path):
    table = keyed_table(tmp_path / "t")
    with pytest.raises(InvalidInputError, match=r"option 'memory-limit' is '63 mb': must be at least 64 mb"):
        table.with_options({"memory-limit": "63 mb"}).write(orders((1, "a", 1)))
