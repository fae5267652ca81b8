"""The measure of growth: exponents, its page, and one operation on a small table."""

import math

import pytest

from benchmarks import scale
from benchmarks.engine import Arena
from benchmarks.scale import Cost, Line, cost, page_table, page_with, subjects, table_of_columns


@pytest.mark.parametrize(
    ("seconds", "exponent"),
    [((0.1, 1.0), 1.0), ((0.1, 0.1), 0.0), ((5.0, 0.1, 10.0), 2.0), ((0.1, 0.01), math.nan), ((1.0,), math.nan)],
)
def test_exponent_is_of_two_largest_sizes(seconds, exponent):
    costs = {10 ** (n + 1): Cost(each, 100, 7) for n, each in enumerate(seconds)}
    assert Line("files", "plan", costs).exponent == pytest.approx(exponent, nan_ok=True)


def test_page_shows_each_size():
    plan = Line("files", "plan", {1_000: Cost(0.1, 90, 8), 10_000: Cost(1.0, 120, 8)})
    short = Line("files", "tag", {1_000: Cost(0.01, 90, 8), 10_000: Cost(0.01, 90, 80)})
    assert page_table([plan, short]).splitlines() == [
        "| operation | 1,000 files | 10,000 files | exponent | peak memory | calls |",
        "|---|---|---|---|---|---|",
        "| plan | 0.10 s | 1.00 s | 1.0 | 90, 120 MB | 8 |",
        "| tag | 0.01 s | 0.01 s | - | 90 MB | 8, 80 |",
    ]
    text = page_with("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter", [plan], "2 cores")
    assert "old" not in text
    assert text.startswith("before\n<!-- figures -->\n\nMachine: 2 cores.\n\n| operation |")
    assert text.endswith("<!-- end of figures -->\nafter")


def test_page_has_a_place_for_figures():
    text = scale.PAGE.read_text(encoding="utf-8")
    shown = {subject.of for subject in subjects(1_000_000)}
    assert page_with(text, [], "2 cores") != text
    assert all(f" {of} |" in text for of in shown)


def test_operation_is_measured_in_processes_of_its_own(tmp_path):
    table = table_of_columns(Arena(tmp_path, 0, 0, {}), 3)
    found = cost(table, ("read",))
    assert found.seconds > 0
    assert found.peak_mb > 50
    assert found.calls > 5
    assert [subject.of for subject in subjects(1_000) if subject.sizes] == [
        "files",
        "partitions",
        "snapshots",
        "columns",
    ]
