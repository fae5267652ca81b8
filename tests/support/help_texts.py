"""Checks of the text that `help()` shows for a method: effect, arguments, result and errors."""

import ast
import inspect
import re
import textwrap

import pytest

NAMED = {"self", "cls", "name", "identifier"}  # the summary says what is named
REFERENCES = (
    r"(?:[Aa]rguments(?:\s+and\s+errors)?(?:\s+as\s+for|\s+are\s+those\s+of|\s+are\s+the\s+same\s+as\s+for|:\s+see)|Raises\s+the\s+errors\s+of)\s+`([\w.]+)`"
    r"|`paimon_core\.([\w.]+)`"
)


def function_of(member):
    return member.__func__ if isinstance(member, staticmethod | classmethod) else member


def public_methods(owners):
    """A parameter for each public method of these classes."""
    return [
        pytest.param(owner, function_of(member), id=f"{owner.__name__}.{name}")
        for owner in owners
        for name, member in vars(owner).items()
        if not name.startswith("_") and inspect.isfunction(function_of(member))
    ]


def text_of(owner, method, named):
    """Return a method's help text with the texts of the methods to which it refers; `named`: objects by name."""
    text = inspect.getdoc(method)
    for found in re.finditer(REFERENCES, text):
        first, *others = (found[1] or found[2]).split(".")
        if first not in named:  # a module, or a method of the same class
            others, target = ([], None) if found[2] else ([first, *others], owner)
        else:
            target = named[first]
        for name in others:
            target = getattr(target, name)
            if isinstance(target, property):  # a group of methods
                group = inspect.signature(target.fget).return_annotation
                target = named[group] if isinstance(group, str) else group
        text += (target and inspect.getdoc(target)) or ""
    return text


def check_help(owner, method, named):
    """Assert that the help of a method is whole."""
    text, signature = text_of(owner, method, named), inspect.signature(method)
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
        says = r"`None`:|\b(returns?|yields?|parse|reads?|open it|copy of|create|apply|make)\b"
        assert re.search(says, text, re.IGNORECASE)
