"""Java's HiveCatalog and this engine take turns with views of a metastore."""

import random

import pytest

from tests.support.places.hive import JavaCatalog
from tests.support.view_turns import ViewPlayers

pytestmark = pytest.mark.places


def test_turns_with_views(catalog, database, hive, hive_warehouse, tmp_path):
    options = {"metastore": "hive", "uri": hive, "warehouse": hive_warehouse}
    with JavaCatalog("ViewJudge", tmp_path / "log", options) as java:
        players, dice = ViewPlayers(catalog, java, database, dialects=False), random.Random(7)
        actions = [players.play(dice, turn) for turn in range(60)]
    print(f"{len(actions)} turns with views, no difference")
