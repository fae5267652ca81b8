"""Targets of texts: filters, types, names, options, SQL statements, and the arguments of procedures."""

import functools
import json
from contextlib import suppress
from typing import Any

from paimon_core.catalog.identifier import Identifier, split_parts
from paimon_core.errors import PaimonError
from paimon_core.options import ALL_OPTIONS, check_known
from paimon_core.options.option import Options
from paimon_core.predicate.filter import bound_filter
from paimon_core.predicate.parse import parse_predicate
from paimon_core.procedures.procedure import Call, checked_values
from paimon_core.procedures.procedure_registry import PROCEDURES
from paimon_core.schema.partition_spec import partition_specs
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.store.location import TableLocation
from paimon_core.table import Table
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.default import default_value
from paimon_core.types.parse import parse_type, type_to_json
from paimon_spark.sql.statements.statement import FAMILIES
from paimon_spark.sql.statements.tokens import SyntaxMismatch, with_settings
from tests.fuzz.file_targets import INDEXED
from tests.fuzz.table_targets import opened
from tests.fuzz.target import Target


def _text(data: bytes) -> str:
    return (
        data.decode("utf-8", "surrogatepass" if b"\xed" in data else "replace")
        if _is_text(data)
        else data.decode("utf-8", "replace")
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


FILTERS = (
    "c0 = 3 and not (c1 like 'a%' or c3 >= 1.25)",
    "c2 in (1, 2, null) or c4 between 0.5 and 1e3",
    "`c5` is not null",
    "c6 = true",
    "c7 < '2020-01-01 10:00:00'",
    "variant_get(c1, '$.a', 'INT') = 3",
    "c0 <=> null",
    "5 > c0",
    "c5 = '1970-02-01'",
)


def filter_text(data: bytes) -> None:
    text = _text(data)
    parsed = parse_predicate(text)
    assert parse_predicate(str(parsed)) == parsed
    bound_filter(text, INDEXED)


TYPES = (
    "DECIMAL(10, 2) NOT NULL",
    "ROW<a INT, `b c` ARRAY<STRING NOT NULL> 'text'>",
    "MAP<STRING, MULTISET<INT>>",
    "VECTOR<FLOAT, 3>",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "VARCHAR(2147483647)",
    "VARIANT",
    "BLOB",
    "CHAR(1)",
    "TIME(3)",
)


def type_text(data: bytes) -> None:
    parsed = parse_type(_text(data))
    assert parse_type(str(parsed)) == parsed
    assert parse_type(json.loads(json.dumps(type_to_json(parsed)))) == parsed
    to_arrow(parsed)


def default_text(data: bytes) -> None:
    text = _text(data)
    for kind in (
        "INT",
        "DATE",
        "DECIMAL(9, 2)",
        "TIMESTAMP(3)",
        "ARRAY<INT>",
        "MAP<STRING, INT>",
        "BYTES",
        "STRING",
        "ROW<a INT>",
    ):
        with suppress(PaimonError):
            default_value(DataField(0, "c", parse_type(kind), None, text))


def option(data: bytes) -> None:
    key, _, value = _text(data).partition("=")
    found = ALL_OPTIONS.get(key)
    if found is not None:
        Options({key: value}).value(found)
    else:
        check_known([key], "the options")


def option_seeds() -> list[bytes]:
    values = ("true", "2 d", "16 mb", "a,b", "1:zstd", "0.5", "3", "yyyy-MM-dd", "daily", "a->b")
    return [f"{key}={values[number % len(values)]}".encode() for number, key in enumerate(list(ALL_OPTIONS)[::3])]


def name(data: bytes) -> None:
    text = _text(data)
    for parse in (Identifier.parse, TableLocation.parse, split_parts, epoch_millis, partition_specs):
        errors = (
            (PaimonError, ValueError) if parse is partition_specs else (PaimonError,)
        )  # its callers name the argument
        with suppress(*errors):
            parse(text)


STATEMENTS = (
    "ALTER TABLE db.t CREATE OR REPLACE TAG `a` AS OF VERSION 3 RETAIN 2 DAYS",
    "ALTER TABLE t DROP PARTITION (a = 1, b = 'x')",
    "ALTER TABLE t DELETE TAG a",
    "ALTER TABLE t RENAME TAG a TO b",
    "MSCK REPAIR TABLE db.t SYNC PARTITIONS",
    "SHOW TAGS db.t",
    "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b",
    "ANALYZE TABLE t PARTITION (a) COMPUTE STATISTICS NOSCAN",
    "COPY INTO db.t FROM '/a/b' FILE_FORMAT = (TYPE = CSV, SKIP_HEADER = 1) PATTERN = '.*' FORCE = TRUE",
    "COPY INTO '/out' FROM t FILE_FORMAT = (TYPE = PARQUET) OVERWRITE = TRUE",
    "CREATE TABLE IF NOT EXISTS a LIKE b TBLPROPERTIES ('a' = 'b')",
    "SHOW CREATE TABLE a.b.c AS SERDE",
    "SHOW TABLE EXTENDED IN db LIKE 'a*' PARTITION (a = 1)",
    "DROP FUNCTION IF EXISTS f",
    "CREATE OR REPLACE FUNCTION f(a INT DEFAULT 3 COMMENT 'x', b STRING) RETURNS INT DETERMINISTIC RETURN a + 1",
    "DESCRIBE FUNCTION EXTENDED db.f",
    '/* c */ SHOW -- d\n TAGS "t"',
)
_WORDS = tuple(sorted({word for statement in STATEMENTS for word in statement.replace("(", " ").split()}))


def sql(data: bytes) -> None:
    text = _text(data)
    for rewritten in (text, with_settings(text, double_quoted_names=True, plain_strings=True)):
        for family in FAMILIES:
            with suppress(SyntaxMismatch):
                family.parse(rewritten)


class MemoryCall(Call):
    """A call on a golden table in memory."""

    def opened(self, identifier: Identifier) -> Table:
        return opened("keyed_vectors" if identifier.table != "a" else "append_parquet")


_NOT_HERE = {"add_files", "clone", "migrate_database", "migrate_table", "repair", "compact_database"}
_CALLED = {name: one for name, one in PROCEDURES.items() if name not in _NOT_HERE}
_ARGUMENTS: dict[str, Any] = {
    "table": "db.t",
    "tag": "compacted",
    "target_tag": "w",
    "from_branch": "b",
    "to_branch": "c",
    "source_branch": "b",
    "consumerId": "c",
    "nextSnapshotId": 2,
    "snapshot_id": 2,
    "older_than": "2030-01-01 00:00:00",
    "where": "p = 'a'",
    "branch": "b",
    "partitions": "p=a;p=b",
    "options": "target-file-size=1 mb",
    "retain_max": 1,
    "snapshot": 3,
    "version": "2",
    "consumer_id": "c",
    "next_snapshot_id": 2,
    "order_by": "id,n",
    "order_strategy": "zorder",
    "time_retained": "1 d",
    "timestamp": 1_900_000_000_000,
    "watermark": 5,
    "bucket_num": 3,
    "expiration_time": "1 d",
    "timestamp_formatter": "yyyy",
    "dry_run": True,
}


def call_seeds() -> list[bytes]:
    return [
        json.dumps(
            {
                "procedure": name,
                "arguments": {p.name: _ARGUMENTS[p.name] for p in one.parameters if p.name in _ARGUMENTS},
            }
        ).encode()
        for name, one in _CALLED.items()
    ]


def _converted(kind: str, value: Any) -> Any:
    """Return an argument as SQL passes it: converted to the type of the parameter."""
    if value is None:
        return None
    if kind in ("INT", "BIGINT"):
        limit = 2**31 if kind == "INT" else 2**63
        return value if isinstance(value, int) and -limit <= value < limit else None
    return bool(value) if kind == "BOOLEAN" else str(value)


def call(data: bytes) -> None:
    try:
        document = json.loads(data)
        called, given = _CALLED[document["procedure"]], dict(document["arguments"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    kinds = {p.name: p.type for p in called.parameters}
    values = checked_values(called, {k: _converted(kinds.get(k, "STRING"), v) for k, v in given.items()})
    called.run(MemoryCall(None, "paimon", called, values))


def _seeds(texts: tuple[str, ...]) -> Any:
    return functools.partial(lambda given: [text.encode() for text in given], texts)


TARGETS = (
    Target(
        "filter",
        "text",
        _seeds(FILTERS),
        filter_text,
        tokens=(" and ", " or ", "not ", "c0", "c5", "is null", "in (", "like", "'%a_'", "<=>"),
    ),
    Target(
        "type", "text", _seeds(TYPES), type_text, tokens=("ROW<", "ARRAY<", "MAP<", " NOT NULL", "(38, 3)", "VECTOR<")
    ),
    Target(
        "default",
        "text",
        _seeds(("1", "'a'", "array(1, 2)", "map('a', 1)", "DATE '2020-01-01'", "[1, 2]", "{a -> 1}", "X'00'")),
        default_text,
    ),
    Target("option", "text", option_seeds, option, tokens=(" d", " mb", ",", ":", "=", "true")),
    Target(
        "name",
        "text",
        _seeds(("db.t$branch_b", "/w/db.db/t$branch_x$files", "`a.b`.c", "2020-01-01 10:00:00", "p=1,q='a';p=2")),
        name,
    ),
    Target("sql", "text", _seeds(STATEMENTS), sql, tokens=_WORDS),
    Target("call", "json", call_seeds, call),
)
