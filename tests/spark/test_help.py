"""`help()` of the public classes and functions of the connector says what each does, takes, returns and raises."""

import inspect

import pytest

import paimon_core
import paimon_spark
from paimon_spark.maintained_table import MaintainedTable
from paimon_spark.row_level.merge_builder import MergeBuilder
from tests.support.help_texts import check_help, public_methods

PUBLIC = [getattr(paimon_spark, name) for name in paimon_spark.__all__]
NAMED = {name: getattr(paimon_core, name) for name in paimon_core.__all__}
METHODS = public_methods([paimon_spark.PaimonTable, MaintainedTable, MergeBuilder])
FUNCTIONS = [pytest.param(None, one, id=one.__name__) for one in PUBLIC if inspect.isfunction(one)]


@pytest.mark.parametrize(("owner", "member"), [*METHODS, *FUNCTIONS])
def test_help_names_arguments_result_and_errors(owner, member):
    check_help(owner, member, NAMED)


def test_members_are_looked_at():
    assert len(METHODS) > 25
    assert "catalog" in {one.id for one in FUNCTIONS}
