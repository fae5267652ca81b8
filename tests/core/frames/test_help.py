"""`help()` of the public classes says what a method does, takes, returns and raises."""

import inspect
import pydoc
import re

import pytest

import paimon_core
from tests.support.help_texts import check_help, public_methods

PUBLIC = [value for name in paimon_core.__all__ if inspect.isclass(value := getattr(paimon_core, name))]
GROUPS = [
    getattr(paimon_core, inspect.signature(vars(paimon_core.Table)[name].fget).return_annotation)
    for name in ("maintenance", "tags", "branches", "consumers")
]
BASES = [base for owner in PUBLIC for base in owner.__mro__ if base.__module__.startswith("paimon_core.")]
OWNERS = {owner.__name__: owner for owner in [*PUBLIC, *BASES, *GROUPS]}
METHODS = public_methods(OWNERS.values())


@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_help_names_arguments_results_and_errors(owner, method):
    check_help(owner, method, OWNERS)


def test_methods_are_looked_at():
    assert {"Table", "FileSystemCatalog", "TableMaintenance", "TableTags", "DataSplit"} <= {
        m.values[0].__name__ for m in METHODS
    }
    assert len(METHODS) > 90


def test_help_of_table_shows_signatures_and_texts():
    shown = pydoc.render_doc(paimon_core.Table, renderer=pydoc.plaintext)
    assert re.search(r"^ \|  write\(\s*(\|\s*)?self,\s*(\|\s*)?data: ", shown, re.MULTILINE)
    assert "Add rows (with a primary key: upsert rows) in one commit." in shown
