"""CompactionRequest: one value for every interface."""

import pytest

from paimon_core import CompactionArguments, CompactionRequest, InvalidInputError
from tests.support.tables import append_table


def test_arguments_are_fields_of_request():
    assert set(CompactionArguments.__annotations__) == set(CompactionRequest.__dataclass_fields__)


def test_unknown_argument_is_refused_with_nearest_name(tmp_path):
    with pytest.raises(InvalidInputError, match=r"unknown argument 'order_bye'.*did you mean 'order_by'"):
        append_table(tmp_path / "t").compact(order_bye=["v"])


@pytest.mark.parametrize("order", [{"order_by": ["v"]}, {"order_strategy": "zorder"}])
def test_order_with_buckets_is_refused(order):
    with pytest.raises(InvalidInputError, match="only a table without buckets can be sorted"):
        CompactionRequest(buckets=[0], **order)


def test_order_strategy_none_sorts_nothing():
    assert not CompactionRequest(order_strategy="none", buckets=[0]).sorts
