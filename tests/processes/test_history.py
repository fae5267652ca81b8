"""The checks of a run find every kind of wrong history, and accept the right ones."""

import pyarrow as pa
import pytest

from tests.processes.history import histories, read_notes, violations
from tests.processes.tables import TornError, arrow_rows, check_touched, counts_of

WRITES = (("a", 0, 1, 2), ("b", 0, 3, 6), ("a", 1, 4, 5), ("a", 2, 7, None))
"""Writer, number, begin and end: b's first write runs at the same time as a's second; the last one was killed."""


def history(*reads):
    """Return the history of `WRITES` and of reads: begin, end and the number of writes of a and b."""
    notes = []
    for writer, number, begin, end in WRITES:
        notes.append({"do": "begin", "table": "t", "writer": writer, "number": number, "at": begin})
        if end is not None:
            notes.append({"do": "end", "table": "t", "writer": writer, "number": number, "at": end})
    for begin, end, a, b in reads:
        counts = {"a": a, "b": b}
        notes.append({"do": "read", "table": "t", "reader": "r", "begin": begin, "at": end, "counts": counts})
    return histories(notes)["t"]


@pytest.mark.parametrize(
    "reads",
    [
        [(0, 1.5, 0, 0), (0, 1.5, 1, 0), (8, 9, 2, 1), (8, 9, 3, 1)],
        [(4.5, 4.6, 1, 1), (5.5, 5.7, 2, 1)],
        [(4.5, 4.6, 2, 0), (6.5, 6.6, 2, 1), (7.5, 20, 3, 1)],
        [(8, 9, 2, 1), (10, 11, 3, 1), (12, 13, 3, 1)],
    ],
)
def test_linearisable_histories(reads):
    assert violations(history(*reads)) == []


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ([(8, 9, 1, 1)], "missed write 1 of a, acknowledged at 5.000, before it began"),
        ([(4.5, 4.6, 1, 1), (4.5, 4.6, 2, 0)], "neither has all of the other"),
        ([(8, 9, 3, 1), (10, 11, 2, 1)], "saw less than"),
        ([(0, 0.5, 1, 0)], "saw write 0 of a, which began after its end"),
        ([(8, 9, 4, 1)], "saw write 3 of a, which nobody began"),
        ([(1, 9, 0, 1)], "missed write 0 of a, acknowledged at 2.000, before a write began that it saw"),
    ],
)
def test_other_histories(reads, reason):
    found = violations(history(*reads))
    assert any(reason in one for one in found), found


def test_write_that_begins_again_began_the_first_time():
    notes = [{"do": "begin", "table": "t", "writer": "a", "number": 0, "at": at} for at in (5, 1)]
    assert histories(notes)["t"].writes["a", 0].begin == 1


def test_cut_line_of_killed_process_is_left_out(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"do": "begin"}\n{"do": "e')
    assert read_notes([file]) == [{"do": "begin"}]


@pytest.mark.parametrize("table", ["log", "keyed", "sums"])
def test_rows_of_whole_writes(table):
    def writes(*numbers):
        return pa.concat_tables([arrow_rows(table, "a", number) for number in numbers])

    def stored(rows):
        if table != "sums":
            return rows
        added = rows.group_by(["writer", "part"]).aggregate([("n", "sum"), ("newest", "max")])
        return added.rename_columns(["writer", "part", "n", "newest"])

    assert counts_of(table, stored(writes(0, 1, 2))) == {"a": 3}
    assert counts_of(table, writes(0).slice(0, 0)) == {}
    for wrong in (writes(0, 2), writes(0, 1, 1), writes(1), pa.concat_tables([writes(0), writes(1).slice(1)])):
        with pytest.raises(TornError, match=table):
            counts_of(table, stored(wrong))


def test_updates_of_each_row():
    rows = pa.concat_tables([arrow_rows("log", "a", number) for number in (0, 1)])
    touched = rows.set_column(3, "touched", pa.array([2, 2, 2, 1, 1, 1], pa.int64()))
    assert check_touched(touched, [("a", 1, True), ("a", 2, True)]) == 2
    assert check_touched(touched, [("a", 1, True), ("a", 2, False)]) == 1
    for wrong in ([("a", 1, True)], [("a", 1, True), ("a", 2, True), ("a", 2, True)], [("b", 1, True), ("a", 2, True)]):
        with pytest.raises(TornError):
            check_touched(touched, wrong)
