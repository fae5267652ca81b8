"""Java's RESTCatalog and this engine take turns with views and functions of Paimon's own server."""

import json
import random

import pytest

from paimon_core import CatalogFunction, DataField
from paimon_core.types.parse import parse_type
from tests.support.places.hive import JavaCatalog
from tests.support.view_turns import ViewPlayers

pytestmark = pytest.mark.places
DEFINITIONS = {
    "spark": {"type": "sql", "definition": "x + 1"},
    "flink": {"type": "lambda", "definition": "(Integer x) -> x + 1", "language": "JAVA"},
    "trino": {
        "type": "file",
        "fileResources": [{"resourceType": "jar", "uri": "/f.jar"}],
        "language": "JAVA",
        "className": "com.example.F",
        "functionName": "f",
    },
}


@pytest.fixture(scope="module")
def java(server, tmp_path_factory):
    with JavaCatalog("ViewJudge", tmp_path_factory.mktemp("views") / "log", server.options) as running:
        yield running


def test_turns_with_views(catalog, java):
    catalog.create_database("views")
    players, dice = ViewPlayers(catalog, java, "views", dialects=True), random.Random(7)
    actions = [players.play(dice, turn) for turn in range(100)]
    print(f"{len(actions)} turns with views, no difference")


def test_functions_of_each_engine(catalog, java):
    catalog.create_database("functions")
    parameters = [DataField(0, "x", parse_type("INT"), "a comment", "5"), DataField(1, "y", parse_type("ARRAY<DATE>"))]
    result = [DataField(0, "f", parse_type("BIGINT"))]
    function = CatalogFunction(parameters, result, DEFINITIONS, False, "adds one", {"k": "v"})
    catalog.create_function("functions.ours", function)
    text = json.dumps({"name": "theirs", **function.to_json()})
    java.tell("create_function", "functions.theirs", text)
    assert java.tell("functions", "functions") == "[ours, theirs]"
    assert catalog.list_functions("functions") == ["ours", "theirs"]
    for name in ("ours", "theirs"):
        seen = json.loads(java.tell("function", f"functions.{name}"))
        assert {**seen, "name": None} == {**function.to_json(), "name": None}
        assert catalog.function(f"functions.{name}").to_json() == function.to_json()
    java.tell("drop_function", "functions.ours")
    catalog.drop_function("functions.theirs")
    assert catalog.list_functions("functions") == []
