"""Every declared option has a mark, and the code keeps to it."""

import ast
import re
import warnings
from pathlib import Path

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options import ALL_OPTIONS, check_known, warn_once
from paimon_core.options.listing import page
from paimon_core.options.option import Options
from paimon_core.options.tasks import TASKS, position
from paimon_core.schema.schema import Schema
from paimon_core.schema.support import LIMITS
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

ROOT = Path(__file__).parents[3]
LISTS_ONLY = {"mutability.py", "references.py", "support.py", "validate.py"}
"""Modules of `schema` that name options by their keys without giving them an effect."""

MARKING = """Mark it where it is declared, in paimon_core/options/:
    mark=without_effect("why it never does anything here"), mark=not_yet("what happens instead"),
    mark=refused("why"), with a Limit in schema/support.py; no mark at all: used.
Then: python -m paimon_core.options.listing > docs/reference/options.md"""
REFUSED_VALUES = {
    "postpone.merge-on-read": {"bucket": "-2", "postpone.merge-on-read": "true"},
    "write.sequence-number-init-mode": {"write.sequence-number-init-mode": "snapshot"},
}


def _read_by_the_code():
    """Keys that a module outside the declarations reads, as the name of the declaration or as the key itself."""
    keys = {re.sub(r"[.-]", "_", key).upper(): key for key in ALL_OPTIONS}
    found = set()
    for path in [*ROOT.glob("paimon_core/**/*.py"), *ROOT.glob("paimon_spark/**/*.py")]:
        if path.parent.name == "options":
            continue
        by_key = not (path.parent.name == "schema" and path.name in LISTS_ONLY)
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in keys:
                    found.add(keys[name])
                case ast.Constant(value=str(text)) if by_key and text in ALL_OPTIONS:
                    found.add(text)
    return found


READ = _read_by_the_code()


@pytest.mark.parametrize("option", ALL_OPTIONS.values(), ids=ALL_OPTIONS)
def test_code_reads_exactly_options_marked_as_used(option):
    used = option.mark.kind == "used"
    if used and option.key not in READ:
        raise AssertionError(f"nothing reads option {option.key!r}, which is marked as used. {MARKING}")
    if not used and option.key in READ and option.mark.kind != "refused":
        raise AssertionError(f"option {option.key!r} is read, and is marked {option.mark.kind!r}. {MARKING}")
    assert used == (not option.mark.reason), f"a mark other than 'used' has a reason: {option.key!r}. {MARKING}"


@pytest.mark.parametrize("key", [key for key, o in ALL_OPTIONS.items() if o.mark.kind == "refused"])
def test_options_marked_as_refused_are_refused(key):
    given = REFUSED_VALUES.get(key, {key: "true" if isinstance(ALL_OPTIONS[key].default, bool) else "1"})
    columns = (DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "v", parse_type("BYTES")))
    for keys in ((), ("k",)):
        schema = TableSchema(0, columns, 1, (), keys, Options(given))
        if any(limit.detect(schema) for limit in LIMITS):
            return
    with pytest.raises(InvalidInputError, match=key):
        create(Schema(columns, options=given), 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sort-engine": "min-heap"}, "'sort-engine' of t has no effect here: runs are merged in one way"),
        ({"manifest-sort.enabled": "true"}, "'manifest-sort.enabled' of t has no effect yet: manifests are"),
        ({"parquet.page.size": "1"}, "'parquet.page.size' of t has no effect here: only other engines use it"),
    ],
)
def test_option_without_effect_warns_once(given, message):
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match=message):
        check_known(given, "t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_known(given, "t")


def test_default_and_option_that_counts_warn_of_nothing():
    warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_known({"sort-engine": "loser-tree", "bucket": "2", "parquet.compression": "zstd"}, "t")


def test_page_of_docs_is_current():
    command = "python -m paimon_core.options.listing > docs/reference/options.md"
    assert (ROOT / "docs/reference/options.md").read_text() == page(), command


def test_every_used_option_has_task_and_every_task_name_has_option():
    used = {position(key) for key, option in ALL_OPTIONS.items() if option.mark.kind == "used"}
    assert used == {(task, index) for task, names in TASKS.items() for index in range(len(names))}


def test_each_option_has_its_own_anchor_on_page_of_docs():
    anchors = re.findall(r'<a id="([^"]+)" href="#([^"]+)">', page())
    assert sorted(anchors) == sorted((key, key) for key in ALL_OPTIONS)
