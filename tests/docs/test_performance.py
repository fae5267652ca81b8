"""The page about performance shows the figures of performance.json, and its pictures are drawn from them."""

import json
from xml.etree import ElementTree

import pytest

from benchmarks import pictures

KEPT = json.loads((pictures.DOCS / pictures.FIGURES).read_text())


def test_pictures_agree_with_figures():
    drawn = dict(pictures.drawn(KEPT))
    assert {path.name for path in pictures.DOCS.glob("performance-*.svg")} == set(drawn)
    for name, text in drawn.items():
        assert (pictures.DOCS / name).read_text() == text
        bars = [e for e in ElementTree.fromstring(text).iter() if e.tag.endswith("rect") and e.get("x")]
        assert len(bars) >= 4


def test_page_has_figures_and_every_picture():
    text = (pictures.DOCS / pictures.PAGE).read_text()
    assert pictures.page_with(text, KEPT) == text
    assert all(f"({name})" in text for name, _ in pictures.drawn(KEPT))
    assert all(sitting["machine"] in text for sitting in KEPT.values())


def test_figure_is_least_time_of_each_contestant():
    timing = {"wall": 2.0, "cpu": 3.0, "rows": 5}
    better = {"wall": 1.5, "cpu": 3.5, "rows": 5}
    row = {"name": "append read", "rows": 10, "timings": {"ours": [timing, better], "java": [timing], "bare": [timing]}}
    alone = {**row, "timings": {"ours": [timing]}}
    kept = pictures.figures({"machine": "m", "rows": [row, {**row, "name": "Spark: append"}, alone]})
    assert kept == {
        "reads": {
            "machine": "m",
            "rows": [
                {
                    "name": "append read",
                    "rows": 10,
                    "seconds": {
                        "ours": {"wall": 1.5, "cpu": 3.0},
                        "java": {"wall": 2.0, "cpu": 3.0},
                        "bare": {"wall": 2.0, "cpu": 3.0},
                    },
                }
            ],
        }
    }
    assert "| append read | 3.00 s | 1.50 s | java | 1.00 | 0.75 |" in pictures.table(kept)


def test_groups_without_new_results_keep_their_figures():
    timing = {"wall": 2.0, "cpu": 3.0, "rows": 5}
    row = {"name": "start: catalog()", "rows": 0, "timings": {"ours": [timing], "without": [timing]}}
    kept = pictures.figures({"machine": "new", "rows": [row]}, {"start": {}, "sql": {"machine": "old", "rows": []}})
    assert {group: sitting["machine"] for group, sitting in kept.items()} == {"sql": "old", "start": "new"}
    assert "2.00 s  ours, first session" in dict(pictures.drawn(kept))["performance-start.svg"]


def test_writes_have_no_java_figure_because_java_generates_rows():
    timings = {who: [{"wall": 1.0, "cpu": 1.0, "rows": 5}] for who in ("ours", "pyarrow", "java")}
    names = ("append write", "keyed write, int key, 1 bucket")
    rows = [{"name": name, "rows": 10, "timings": timings} for name in names]
    kept = pictures.figures({"machine": "m", "rows": rows})
    assert [set(row["seconds"]) for row in kept["writes"]["rows"]] == [{"ours", "pyarrow"}] * 2


def test_summary_is_range_of_ratios():
    rows = [
        {"name": f"merge read, {runs} runs", "seconds": {"ours": {"cpu": cost}, "pyarrow": {"cpu": 1.0}}}
        for runs, cost in ((1, 0.84), (5, 1.26))
    ]
    assert "| merged read | 0.8 to 1.3 times |" in pictures.summary({"reads": {"rows": rows}})


@pytest.mark.parametrize(("load", "busy"), [("1.2", False), ("14.0", True)])
def test_busy_machine_is_named(load, busy):
    assert ("kept it busy" in pictures.table({"sql": {"machine": f"2 cores, load {load}/1/1", "rows": []}})) == busy


def test_page_without_its_comments_is_refused():
    with pytest.raises(AssertionError, match="lacks the comments of its summary"):
        pictures.page_with("# Performance", KEPT)
