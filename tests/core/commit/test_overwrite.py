"""The partitions that an overwrite replaces."""

import pytest

from paimon_core.commit.overwrite import (
    check_inside,
    contents,
    distinct_partitions,
    indexed_buckets,
    partition_predicate,
)
from paimon_core.errors import InvalidInputError
from paimon_core.row.binary_row import serialize
from tests.support.text_tables import TextTable


@pytest.fixture
def table():
    return TextTable("table append partitioned bucket=2 bucket-key=k")


def partition(table, value):
    return serialize((value,), table.store.schema.partition_arrow)


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        ([{"p": "x"}], "p = 'x'"),
        ([{"p": "x"}, {"p": "y"}], "p = 'x' OR p = 'y'"),
        ([{"p": None}], "p IS NULL"),
    ],
)
def test_partitions_become_predicate(table, specs, text):
    assert str(partition_predicate(table.store, specs)) == text


@pytest.mark.parametrize(
    ("specs", "error"),
    [
        ([], "list of partitions is empty"),
        ([{}], r"{} is not a partition of .*: its partition columns are p"),
        ([{"p": "x"}, {"v": 1}], r"{'v': 1} is not a partition"),
    ],
)
def test_columns_outside_partition_key_are_refused(table, specs, error):
    with pytest.raises(InvalidInputError, match=error):
        partition_predicate(table.store, specs)


def test_messages_of_other_partitions_are_refused(table):
    messages = table.messages("write +a(in x) +b(in y)")
    check_inside(table.store, messages, {partition(table, "x"), partition(table, "y")}, {"p": "x"})
    with pytest.raises(InvalidInputError, match=r"partition {'p': 'x'} cannot write rows of p=y"):
        check_inside(table.store, messages, {partition(table, "x")}, {"p": "x"})


def test_dynamic_overwrite_replaces_partitions_with_new_files(table):
    table.commit("write +a(in x)")
    assert distinct_partitions(table.messages("write -a +b(in y) +c(in z)")) == {
        partition(table, "y"),
        partition(table, "z"),
    }


def test_contents_are_live_files_of_partitions(table):
    newest = table.commit("write +a(in x) +b(in y)")
    where = partition_predicate(table.store, [{"p": "y"}])
    identities, vector_files = contents(table.store, newest, where)
    assert [identity[3] for identity in identities] == ["b"]
    assert not vector_files
    assert len(contents(table.store, newest, None)[0]) == 2
    assert contents(table.store, None, None) == (set(), set())


def test_table_without_index_manifest_has_no_indexed_buckets(table):
    assert indexed_buckets(table.store, None, None, ()) == frozenset()
    assert indexed_buckets(table.store, table.commit("write +a"), None, ()) == frozenset()
