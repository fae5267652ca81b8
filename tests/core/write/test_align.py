"""Batches brought to the columns of a table: the cases of `align.txt`."""

import json

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, PaimonError
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_core.write.align import align, column_positions
from tests.support.text_cases import text_cases


def aligned(text: str) -> str:
    keys, fields, names, arrays = (), [], [], []
    for line in text.splitlines():
        word, name, rest = line.split(" ", 2)
        if word == "data":
            kind, _, values = rest.partition(" ")
            names.append(name)
            arrow_type = pa.timestamp("ms", "UTC") if kind == "instant" else pa.type_for_alias(kind)
            arrays.append(pa.array(json.loads(values), arrow_type))
        else:
            keys = (*keys, name) if word == "key" else keys
            kind, _, default = rest.partition(" DEFAULT ")
            fields.append(DataField(len(fields), name, parse_type(kind), default=default or None))
    schema = create(Schema(fields, keys, (), {"bucket": "1"} if keys else {}), 0)
    data = pa.RecordBatch.from_arrays(arrays, names)
    try:
        found = align(data, schema, column_positions(names, schema))
    except PaimonError as error:
        return f"{type(error).__name__}: {error}"
    return "\n".join(
        f"{field.name} {field.type} {json.dumps(column.to_pylist(), default=str)}"
        for field, column in zip(found.schema, found.columns, strict=True)
    )


@text_cases(__file__, "align.txt")
def test_data_as_columns_of_table(case, check_case):
    check_case(case, aligned)


def test_column_of_data_fills_one_column_of_table():
    fields = tuple(DataField(i, name, parse_type("INT")) for i, name in enumerate(("ab", "AB")))
    schema = TableSchema(0, fields, 1, (), (), Options({}))  # the Java engine makes such tables
    assert column_positions(["AB"], schema) == (None, 0)
    with pytest.raises(InvalidInputError, match="'Ab' of the data could be the table's 'ab' or its 'AB'"):
        column_positions(["Ab"], schema)
