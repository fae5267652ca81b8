"""`help()` of the public classes says what a method does, takes, returns and raises."""

import ast
import inspect
import pydoc
import re
import textwrap

import pytest

import paimon_core

PUBLIC = [value for name in paimon_core.__all__ if inspect.isclass(value := getattr(paimon_core, name))]
GROUPS = [
    inspect.signature(vars(paimon_core.Table)[name].fget).return_annotation
    for name in ("maintenance", "tags", "branches", "consumers")
]
OWNERS = {owner.__name__: owner for owner in [*PUBLIC, *GROUPS]}
NAMED = {"self", "name", "identifier"}  # the summary says what is named


def function_of(member):
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member


METHODS = [
    pytest.param(owner, function_of(member), id=f"{owner.__name__}.{name}")
    for owner in OWNERS.values()
    for name, member in vars(owner).items()
    if not name.startswith("_") and inspect.isfunction(function_of(member))
]


def text_of(owner, method):
    """The text of a method's help, with that of the method whose arguments it takes."""
    text = inspect.getdoc(method)
    for reference in re.findall(r"Arguments\s+are\s+those\s+of\s+`([\w.]+)`", text):
        *other, name = reference.split(".")
        text += inspect.getdoc(getattr(OWNERS[other[0]] if other else owner, name))
    return text


@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_help_names_what_a_method_takes_returns_and_raises(owner, method):
    text, signature = text_of(owner, method), inspect.signature(method)
    assert re.match(r"[A-Z].*[.:]\n?", text)
    silent = [name for name in signature.parameters if name not in NAMED and not re.search(rf"\b{name}\b", text)]
    assert not silent
    raised = {
        node.exc.func.id
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method))))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    assert not [name for name in raised if name.endswith("Error") and name not in text]
    if signature.return_annotation not in (None, "None"):
        says = r"`None`:|\b(returns?|reads?|open it|copy of|create|apply|make)\b"
        assert re.search(says, text, re.IGNORECASE)


def test_methods_are_looked_at():
    assert {"Table", "FileSystemCatalog", "TableMaintenance", "TableTags", "DataSplit"} <= {
        m.values[0].__name__ for m in METHODS
    }
    assert len(METHODS) > 90


def test_the_help_of_a_table_shows_signatures_and_texts():
    shown = pydoc.render_doc(paimon_core.Table, renderer=pydoc.plaintext)
    assert re.search(r"^ \|  write\(\s*(\|\s*)?self,\s*(\|\s*)?data: ", shown, re.MULTILINE)
    assert "Add rows (with a primary key: upsert rows) in one commit." in shown
