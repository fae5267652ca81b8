"""Tables of TIMESTAMP(9) with years that nanoseconds of 64 bits cannot hold."""

import datetime as dt
from pathlib import Path

import pyarrow as pa

from paimon_core.schema.schema import Schema
from paimon_core.table import Table

FAR = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), None, dt.datetime(9999, 12, 31, 23, 59)]


def far_table(path, kind="TIMESTAMP", **options):
    """A table whose schema says nine digits, though its rows were written with six: so others store far years."""
    zone = "UTC" if kind == "TIMESTAMP_LTZ" else None
    keys = [key for key in options.pop("keys", "").split(",") if key]
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("ts", pa.timestamp("us", tz=zone))])
    table = Table.create(str(path), Schema(schema, keys, options={k.replace("_", "."): v for k, v in options.items()}))
    table.write(pa.table({"n": range(4), "ts": pa.array(FAR, pa.timestamp("us")).cast(schema.field("ts").type)}))
    file = Path(table.path) / "schema" / "schema-0"
    six = "TIMESTAMP(6) WITH LOCAL TIME ZONE" if zone else "TIMESTAMP(6)"
    text = file.read_text()
    assert six in text
    file.write_text(text.replace(six, six.replace("6", "9")))
    return Table.open(table.path)
