"""``deletion-vectors.modifiable``: the option is turned off once no deleted row would return."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import RemoveOption, SetOption

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64())])
OPTIONS = {"deletion-vectors.enabled": "true", "deletion-vectors.modifiable": "true"}
KINDS = {
    "keyed": (["k"], OPTIONS | {"bucket": "1"}),
    "appended": ([], OPTIONS),
    "appended in order": ([], OPTIONS | {"bucket": "1", "bucket-key": "k"}),
}
OFF = [[SetOption("deletion-vectors.enabled", "false")], [RemoveOption("deletion-vectors.enabled")]]


@pytest.mark.parametrize("changes", OFF, ids=["set", "unset"])
@pytest.mark.parametrize("kind", KINDS)
def test_turned_off_without_vectors(tmp_path, kind, changes):
    keys, options = KINDS[kind]
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, keys, [], options))
    table.write(pa.table([[1, 2, 3], [1, 2, 3]], schema=COLUMNS))
    table.compact(full=True)
    table.delete("k = 2")
    if keys:
        table.compact()
    with pytest.raises(InvalidInputError, match=r"has deletion vectors \(data files: 1\).*compact\(full=True\)"):
        table.alter(changes)
    with pytest.raises(InvalidInputError, match="deletion vectors"):
        table.alter(lambda schema: changes)
    assert Table.open(table.path).schema.options["deletion-vectors.enabled"] == "true"
    table.compact(full=True)
    table = Table.open(table.path).alter(changes)
    table.write(pa.table([[4], [4]], schema=COLUMNS))
    assert sorted(table.to_arrow()["k"].to_pylist()) == [1, 3, 4]
