"""The bridge: what Java calls is what the endpoints promise, and handlers implement no less."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import paimon_spark.sql.bridge
import paimon_spark.sql.catalog
from paimon_spark.sql.bridge.endpoints import ENDPOINTS, TableEndpoint, endpoint_methods
from paimon_spark.sql.table import TableHandler

SOURCES = {path.name: path.read_text() for path in (Path(paimon_spark.sql.bridge.__file__).parent / "java").iterdir()}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CLASS = re.compile(r"^(?:public )?(?:abstract )?class (\w+)", re.MULTILINE)
_CALL = re.compile(r'\bcall\((?:[^();]|\([^();]*\))*?"(\w+)",\s*', re.DOTALL)
_COMMAND = re.compile(r"(?:new PaimonCommand|\breturn command)\(([^;]*);", re.DOTALL)
_METHOD_NAME = re.compile(r'"([a-z_]+)"')
_FORWARDED = "Bridge.call(handler, method, "
ANY = -1
"""The number of arguments of a call whose array Java fills in a loop."""


def _items(text: str) -> int:
    """Return the number of items of an array initialiser that begins behind its brace."""
    depth, items = 0, 1
    for character in text:
        if character in "({[":
            depth += 1
        elif character in ")}]":
            if depth == 0:
                return items
            depth -= 1
        elif character == "," and depth == 0:
            items += 1
    raise AssertionError(f"no end of {text[:60]!r}")


def _number_of_arguments(arguments: str, before: str, source: str) -> int:
    """Return the number of items of the array that an expression is."""
    if arguments.startswith("new Object[0]"):
        return 0
    if arguments.startswith("new Object[] {"):
        return _items(arguments.removeprefix("new Object[] {"))
    name = re.match(r"\w+", arguments)[0]
    if arguments[len(name)] == "(":
        body = source[source.index(f"Object[] {name}(") :]
        return _items(body[body.index("return new Object[] {") + len("return new Object[] {") :])
    start = before.rindex(f"Object[] {name} = new Object[") + len(f"Object[] {name} = new Object[")
    return _items(before[start + 3 :]) if before[start:].startswith("] {") else ANY


def calls(sources: dict[str, str]) -> Iterator[tuple[str, str, int]]:
    """Yield class, method and number of arguments of each call of Python in Java sources."""
    for text in sources.values():
        source = _COMMENT.sub("", text)
        classes = [(match.start(), match[1]) for match in _CLASS.finditer(source)]
        for match in _CALL.finditer(source):
            owner = next(name for start, name in reversed(classes) if start < match.start())
            yield owner, match[1], _number_of_arguments(source[match.end() :], source[: match.start()], source)
        for match in _COMMAND.finditer(source):
            owner = next(name for start, name in reversed(classes) if start < match.start())
            yield from ((owner, name, 2) for name in _METHOD_NAME.findall(match[1]))


def _accepts(method: object, number: int) -> bool:
    """Return True if a method takes this number of arguments besides `self`."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    return len(required) <= number <= len(parameters)


def broken_calls(sources: dict[str, str]) -> list[str]:
    """Return a line for each call that the endpoints of its class do not have, or not with these arguments."""
    lines = []
    for owner, name, number in calls(sources):
        methods = [vars(endpoint)[name] for endpoint in ENDPOINTS.get(owner, ()) if name in vars(endpoint)]
        if not methods:
            lines.append(f"{owner} calls {name}, which no endpoint of it has")
        elif not any(_accepts(method, number) for method in methods):
            lines.append(f"{owner} calls {name} with {number} arguments")
    return lines


def test_each_call_of_java_fits_endpoint():
    assert broken_calls(SOURCES) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("PaimonTable.java", '"truncate"', '"truncated"', "PaimonTable calls truncated, which no endpoint of it has"),
        ("PaimonTable.java", '"truncate"', '"insert"', "PaimonTable calls insert, which no endpoint of it has"),
        ("PaimonScan.java", "{trees}", "{trees, trees}", "PaimonScan calls source with 2 arguments"),
        ("PaimonScanBuilder.java", "{required, ", "{", "PaimonScanBuilder calls scan with 5 arguments"),
        ("Catalog.java", "{table, info.columns(), ", "{table, ", "Catalog calls stage_create with 4 arguments"),
        ("PaimonRowLevelRule.java", '"merge_rows"', '"merge"', "PaimonRowLevelRule calls merge, which no"),
    ],
)
def test_call_that_fits_no_endpoint_is_found(file, old, new, message):
    assert old in SOURCES[file]
    lines = broken_calls({**SOURCES, file: SOURCES[file].replace(old, new)})
    assert any(line.startswith(message) for line in lines), lines


def test_each_method_of_endpoint_is_called():
    called = {(owner, name) for owner, name, _ in calls(SOURCES)}
    promised = {
        endpoint: {name for name in vars(endpoint) if not name.startswith("_")}
        for several in ENDPOINTS.values()
        for endpoint in several
    }
    unused = {
        endpoint.__name__: left
        for endpoint, names in promised.items()
        if (left := names - {name for owner, name in called if endpoint in ENDPOINTS[owner]})
    }
    assert unused == {}


def test_each_call_in_java_is_read():
    for name, text in SOURCES.items():
        source = _COMMENT.sub("", text)
        forwarded = source.count(_FORWARDED)
        literal = sum(source[: match.start()].endswith("Bridge.") for match in _CALL.finditer(source))
        assert source.count("Bridge.call(") == forwarded + literal, name


def _handlers(endpoint: type) -> Iterator[type]:
    """Yield the classes that derive from an endpoint."""
    for kind in endpoint.__subclasses__():
        yield kind
        yield from _handlers(kind)


@pytest.mark.parametrize(
    "endpoint", sorted({e for several in ENDPOINTS.values() for e in several}, key=lambda e: e.__name__)
)
def test_handlers_implement_each_method_of_their_endpoint(endpoint):
    handlers = list(_handlers(endpoint))
    assert handlers
    for handler in handlers:
        for name, promised in vars(endpoint).items():
            if not name.startswith("_"):
                method = getattr(handler, name)
                number = len(inspect.signature(promised).parameters) - 1
                assert method is not promised, f"{handler.__name__} lacks {name}"
                assert _accepts(method, number), f"{handler.__name__}.{name} does not take {number} arguments"


def test_java_reaches_methods_of_endpoints_only():
    methods = endpoint_methods(TableHandler)
    assert {name for name in vars(TableEndpoint) if not name.startswith("_")} <= methods
    assert methods.isdisjoint({"whole", "explanation", "jvm", "table", "__class__", "publish"})
