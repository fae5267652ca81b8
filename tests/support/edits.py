"""Edits of the source of functions, with which a test gives the engine a fault that its checks must find.

The text ``old`` becomes ``new``. If the engine changes so that ``old`` is not there any more, the edit says so.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

BROKEN = ("AttributeError", "NameError", "TypeError")
"""Errors of an edit that does not fit the code any more."""


@dataclass(frozen=True)
class Edit:
    """A function, as ``module:name`` or ``module:Class.name``, and a text of its source to replace."""

    function: str
    old: str
    new: str


@contextmanager
def applied(edits: Sequence[Edit]) -> Iterator[None]:
    """Inside, the functions are edited."""
    with ExitStack() as stack:
        for function in dict.fromkeys(edit.function for edit in edits):
            _apply(function, [edit for edit in edits if edit.function == function], stack)
        yield


def _apply(function: str, edits: Sequence[Edit], stack: ExitStack) -> None:
    module_name, _, path = function.partition(":")
    module = importlib.import_module(module_name)
    owner_name, _, name = path.rpartition(".")
    owner = getattr(module, owner_name) if owner_name else module
    original = inspect.unwrap(inspect.getattr_static(owner, name))
    source = textwrap.dedent(inspect.getsource(original))
    for edit in edits:
        assert edit.old in source, f"{function} has no {edit.old!r} any more: change the edit"
        source = source.replace(edit.old, edit.new)
    namespace = dict(vars(module))
    code = compile("from __future__ import annotations\n" + source, module.__file__, "exec")
    exec(code, namespace)
    mutated = namespace[name]
    stack.callback(_forget, name, mutated, original)
    stack.enter_context(mock.patch.object(owner, name, mutated))
    if owner is module:  # modules that have imported the function by its name
        for other in list(sys.modules.values()):
            if (
                getattr(other, "__name__", "").startswith(("paimon_core", "tests.simulation"))
                and vars(other).get(name) is original
            ):
                stack.enter_context(mock.patch.object(other, name, mutated))


def _forget(name: str, mutated: object, original: object) -> None:
    """Give the function itself to modules that were first imported, with the edited one, in the meantime."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is mutated:
            setattr(module, name, original)
