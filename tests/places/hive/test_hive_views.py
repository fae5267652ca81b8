"""Java's HiveCatalog and this engine take turns with the views of one metastore."""

import random

import pytest

from tests.support.places.hive import JavaCatalog
from tests.support.view_turns import KEPT_BY_HIVE, ViewPlayers

pytestmark = pytest.mark.places


@pytest.fixture(scope="module")
def java_views(hive, hive_warehouse, tmp_path_factory):
    options = {"metastore": "hive", "uri": hive, "warehouse": hive_warehouse}
    with JavaCatalog("ViewJudge", tmp_path_factory.mktemp("views") / "log", options) as running:
        yield running


def test_turns_with_views(catalog, java_views, database):
    players, dice = ViewPlayers(catalog, java_views, database, dialects=False, types=KEPT_BY_HIVE), random.Random(7)
    actions = [players.play(dice, turn) for turn in range(100)]
    print(f"{len(actions)} turns with views, no difference")
