"""Numbered directories: hints save listings and never decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.fileio.directory import NumberedDirectory, numbers_in
from paimon_core.fileio.fileio import FileStatus
from tests.support.faulty_io import FaultyIO, MemoryIO


def numbered(ids, **hints):
    files = {f"memory://t/snapshot/snapshot-{number}": b"" for number in ids}
    files |= {f"memory://t/snapshot/{name}": text for name, text in hints.items()}
    return NumberedDirectory(MemoryIO(files), "memory://t/snapshot", "snapshot-")


@pytest.mark.parametrize("hint", [None, b"5", b"5\n", b"4", b"1", b"0", b"-5", b"", b"garbage", b"9", b"99", b"9" * 40])
def test_latest_and_earliest_whatever_hints_say(hint):
    hints = {} if hint is None else {"LATEST": hint}
    assert numbered([3, 4, 5], **hints).latest_id() == 5
    assert numbered([], **hints).latest_id() is None
    assert numbered([3, 4, 5], EARLIEST=b"2").earliest_id() == 3
    assert numbered([3, 4, 5], EARLIEST=b"3").earliest_id() == 3
    assert numbered([3, 4, 5], EARLIEST=b"4").earliest_id() == 3
    assert numbered([]).earliest_id() is None


def test_names_that_no_engine_writes_are_skipped():
    files = [FileStatus("", f"snapshot-{tail}", 0, False, 0) for tail in ("10", "09", "", "9" * 5000, "1_0", "٥", "7")]
    assert numbers_in([*files, FileStatus("", "snapshot-3", 0, True, 0)], "snapshot-") == [7, 10]


@given(st.integers(1, 30), st.integers(0, 10), st.integers(-2, 60))
def test_any_hint_finds_the_newest(first, length, hint):
    ids = range(first, first + length)
    assert numbered(ids, LATEST=b"%d" % hint).latest_id() == max(ids, default=None)


def test_right_hint_saves_listing():
    files = numbered([3, 4, 5], LATEST=b"5", EARLIEST=b"3")
    io = FaultyIO(files.io)
    watched = NumberedDirectory(io, files.directory, files.prefix)
    assert (watched.earliest_id(), watched.latest_id()) == (3, 5)
    assert "list" not in {verb for verb, _ in io.log}


def test_foreign_names_are_skipped():
    files = numbered([10, 9])
    for name in ["snapshot-", "snapshot-x", "snapshot-11abc.tmp", ".snapshot-11.u.tmp", "snapshot-²", "tag-11"]:
        files.io.write(f"{files.directory}/{name}", b"")
    files.io.write(f"{files.directory}/snapshot-12/below", b"")
    assert files.ids() == [9, 10]


def test_write_hint_returns_false_if_write_fails():
    files = numbered([1])
    assert files.write_hint("LATEST", 1)
    assert files.hint("LATEST") == 1
    watched = NumberedDirectory(FaultyIO(files.io, at=0), files.directory, files.prefix)
    assert watched.write_hint("LATEST", 2)  # the second try
    assert files.hint("LATEST") == 2
