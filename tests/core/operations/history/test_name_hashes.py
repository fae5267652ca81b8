"""Hashes of names: the same however many names are hashed together, and different for names that differ."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.operations.history import referenced_names
from paimon_core.operations.history.referenced_names import contains, name_hashes, union
from tests.support.draws import draws

NAMES = st.text(st.characters(exclude_characters="\0/"), min_size=1, max_size=30)


@draws(100)
@given(st.lists(NAMES, max_size=20))
def test_hash_of_name_does_not_depend_on_other_names(names):
    together = name_hashes(names)
    assert together.tolist() == [int(name_hashes([name])[0]) for name in names]
    assert len({*together.tolist()}) == len({*names})


def test_names_that_no_encoding_holds_and_names_without_end():
    names = ["a", "ä", "\udcff", "x" * 5000, "x" * 4999, "a" * 8, "a" * 16]
    hashes = name_hashes(names)
    assert hashes.tolist() == [int(name_hashes([name])[0]) for name in names]
    assert len({*hashes.tolist()}) == len(names)
    assert name_hashes([]).tolist() == []


def test_names_of_a_large_table_have_different_hashes(monkeypatch):
    """Counters, and names that differ in the last bytes of two groups of eight."""
    names = [f"data-0b6e3ad4-0000-4a3a-9bb0-1234567890ab-{i}.parquet" for i in range(200_000)]
    names += [f"{a:07}{chr(97 + b)}{a:07}{chr(97 + c)}" for a in range(100) for b in range(26) for c in range(26)]
    hashes = name_hashes(names)
    assert len(np.unique(hashes)) == len(names)
    monkeypatch.setattr(referenced_names, "_NAMES_AT_ONCE", 1000)
    assert (name_hashes(names) == hashes).all()
    half = union([hashes[::4], hashes[2::4]])
    assert (half == np.unique(hashes[::2])).all()
    assert contains(half, hashes).tolist() == [True, False] * (len(names) // 2)


def test_tasks_in_other_processes_have_the_same_hashes():
    program = (
        "from paimon_core.operations.history.referenced_names import name_hashes; print(*name_hashes(['a', 'ab']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(value) for value in name_hashes(["a", "ab"])]
