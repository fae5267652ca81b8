"""The public surface: what `paimon_core` exports is there, documented, and nothing else; errors print and travel."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
import typing
from functools import cache
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_core
import paimon_spark
from paimon_core import engine, errors
from tests.support.lazy_imports import type_checking_imports

TABLE = {
    "add_files", "advice", "alter", "arrow_schema", "branches", "changes", "committer", "compact", "consumers",
    "create", "delete", "delete_counted", "drop_partitions", "explain", "get", "health", "location", "maintenance",
    "merge", "open", "operation_metrics", "overwrite", "page", "path", "read_optimized", "reader", "repair", "restore",
    "rollback_to",
    "scan", "schema", "snapshot", "snapshots", "store", "stream", "system_table", "tags", "to_arrow",
    "to_arrow_batch_reader", "to_batches", "to_duckdb", "to_pandas", "to_polars", "truncate", "update",
    "update_columns", "upsert", "verify", "with_options", "with_store", "write", "writer",
}  # fmt: skip
BUILT_IN = {"InvalidInputError": ValueError, "NotFoundError": LookupError, "UnsupportedError": NotImplementedError,
            "MissingDependencyError": ImportError,
            "TableChangedError": paimon_core.CommitConflictError}  # fmt: skip


def test_all_names_public_api():
    unlisted = {"TYPE_CHECKING", "lazy_names"}
    names = {n for n, v in vars(paimon_core).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert names - unlisted <= set(paimon_core.__all__)
    assert all(hasattr(paimon_core, name) for name in paimon_core.__all__)
    assert sorted(paimon_core.__all__) == paimon_core.__all__
    assert set(errors.__all__) <= set(paimon_core.__all__)


@pytest.mark.parametrize("facade", [paimon_core, engine, paimon_spark, paimon_core.table], ids=lambda f: f.__name__)
def test_lazy_names_are_like_imported_ones(facade):
    assert dir(facade) == sorted(facade.__all__)
    names = {}
    exec(f"from {facade.__name__} import *", names)
    assert set(facade.__all__) <= set(names)
    assert all(names[name] is getattr(facade, name) for name in facade.__all__)
    assert not [name for name in facade.__all__ if inspect.ismodule(names[name])], "a module of the same name hides it"
    with pytest.raises(AttributeError, match=f"module '{facade.__name__}' has no attribute 'no_such_name'"):
        _ = facade.no_such_name
    with pytest.raises(ImportError):
        exec(f"from {facade.__name__} import no_such_name", {})


@pytest.mark.parametrize("value", [paimon_core.col, paimon_core.Table, paimon_spark.upsert_batch])
def test_lazy_names_pickle(value):
    assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("name", paimon_core.__all__)
def test_every_public_name_is_documented(name):
    member = getattr(paimon_core, name)
    assert inspect.getdoc(member), name
    if inspect.isclass(member):
        for method, value in vars(member).items():
            if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | staticmethod)):
                assert inspect.getdoc(value), f"{name}.{method}"


def test_table_methods_are_reviewed():
    assert {name for name in dir(paimon_core.Table) if not name.startswith("_")} == TABLE


@cache
def namespace(module):
    """Return the names of a module, including the names that only type checkers import."""
    typed = type_checking_imports(ast.parse(inspect.getsource(module)))
    lazy = {name: getattr(import_module(owner), original) for name, (owner, original) in typed.items()
            if owner.startswith("paimon_")}  # fmt: skip
    return {**vars(module), **lazy}


def owned_types(annotation, module):
    """Yield the classes of the engine in an annotation, which may be text."""
    if isinstance(annotation, str):
        for word in re.findall(r"\w+", annotation):
            if word in namespace(module):
                yield from owned_types(namespace(module)[word], module)
    elif inspect.isclass(annotation) and not typing.get_args(annotation):
        if annotation.__module__.startswith("paimon_core."):
            yield annotation
    else:
        for argument in typing.get_args(annotation):
            yield from owned_types(argument, module)


def returned_types(owner):
    """Return the classes of the engine that public methods and properties of a class return."""
    found = set()
    for base in owner.__mro__:
        for name, member in vars(base).items():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if base.__module__.startswith("paimon_core.") and name[0] != "_" and inspect.isfunction(function):
                found |= set(owned_types(function.__annotations__.get("return"), sys.modules[base.__module__]))
    return found


def test_returned_types_are_public():
    """The classes of engine.py, such as a store, need not return public types."""
    waiting, seen = [getattr(paimon_core, name) for name in paimon_core.__all__], set()
    while waiting:
        owner = waiting.pop()
        if not inspect.isclass(owner) or owner in seen:
            continue
        seen.add(owner)
        for kind in returned_types(owner):
            assert kind.__name__ in {*paimon_core.__all__, *engine.__all__}, f"{owner.__name__} returns {kind}"
            if kind.__name__ in paimon_core.__all__:
                waiting.append(kind)
    assert len(seen) > 40


def test_engine_names_exist_once():
    assert len(set(engine.__all__)) == len(engine.__all__)
    assert not set(engine.__all__) & set(paimon_core.__all__)
    assert all(hasattr(engine, name) for name in engine.__all__)


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_print_and_travel(name):
    kind = getattr(errors, name)
    error = kind("option 'a' is 'b': say 'c'")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error) == "option 'a' is 'b': say 'c'"
    assert isinstance(error, errors.PaimonError)
    assert isinstance(error, BUILT_IN.get(name, Exception))


def test_tree_of_errors_has_every_error():
    drawn = {line.split("── ")[1].split()[0] for line in errors.__doc__.splitlines() if "── " in line}
    assert drawn | {"PaimonError"} == set(errors.__all__)
    for name, base in BUILT_IN.items():
        assert f"{name} ({base.__name__})" in errors.__doc__


def test_page_of_errors_lists_every_error():
    page = (Path(__file__).parent.parent / "docs" / "guides" / "troubleshooting.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)`(?: \(an? `(\w+)`\))? \|", page, re.MULTILINE))
    assert {kind for kind in told if kind.endswith("Error")} | {"PaimonError"} == set(errors.__all__)
    assert {kind: base for kind, base in told.items() if base} == {k: b.__name__ for k, b in BUILT_IN.items()}


def test_table_is_equal_after_pickling(tmp_path):
    schema = paimon_core.Schema(
        pa.schema([pa.field("id", pa.int64(), nullable=False)]), ["id"], options={"bucket": "1"}
    )
    table = paimon_core.Table.create(str(tmp_path / "t"), schema)
    table.write(pa.table({"id": [1, 2]}, schema=table.arrow_schema))
    assert table.get({"id": 2}) == {"id": 2}
    again = pickle.loads(pickle.dumps(table.with_options({"read.batch-size": "7"})))
    assert again.schema.options["read.batch-size"] == "7"
    assert again.get({"id": 1}) == {"id": 1}


def test_connector_without_pyspark_names_missing_package():
    """`pyspark-client` has no py4j and no `SparkContext`."""
    code = "import sys; sys.modules['py4j'] = None; import paimon_spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingDependencyError: paimon_spark needs all of PySpark" in done.stderr
