"""Tables the Java engine wrote, kept here: every snapshot reads as Java read it, whole, filtered and in part."""

import random

import pytest

from tests.conformance.compare import same
from tests.conformance.filters import draw
from tests.conformance.values import rows
from tests.golden.reading import CASES, NAMES, Golden


@pytest.mark.parametrize("name", NAMES)
def test_every_snapshot_has_rows_that_java_read(name):
    Golden(CASES / name).check()


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_filters_and_columns(name):
    golden, rng = Golden(CASES / name), random.Random(name)
    last = max(map(int, golden.told["snapshots"]))
    fields, expected = golden.fields_at(last), golden.expected(last)
    by_name = [{f.name: v for f, v in zip(fields, row, strict=True)} for row in expected]
    for _ in range(25):
        text, says = draw(rng, fields, by_name)
        some = rng.sample(fields, rng.randint(1, 4))
        wanted = [[row[f.name] for f in some] for row in by_name if says(row) is True]
        found = rows(golden.table.to_arrow([f.name for f in some], text), some)
        same(found, wanted, f"{name} select {[f.name for f in some]} where {text}")


def test_catalogue_names_every_case():
    catalogue = (CASES.parent / "README.md").read_text(encoding="utf-8")
    assert NAMES
    for name in NAMES:
        assert f"`{name}`" in catalogue, f"say in README.md what {name} is for"
