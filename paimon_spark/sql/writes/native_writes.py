"""Writes of append tables by Spark's own Parquet encoder, without Python workers.

A task of ``NativeWriteTask.java`` encodes its rows into files of the table. The driver computes their metadata and
commits. If the table or the rows need the engine's writer, `native_results` returns `None`, and Python workers write
the rows.
"""

import json
import logging
import re
import uuid
from base64 import b64decode
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from paimon_core import Table
from paimon_core.engine import EncodedColumn, EncodedFile, EncoderPlan, TaskWrite, check_writable, column_positions
from paimon_core.errors import PaimonError, UnsupportedError
from paimon_core.options.file import FILE_COMPRESSION_ZSTD_LEVEL
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, RowType
from paimon_spark.char_columns import padded_text, pads_writes
from paimon_spark.distribute import JobNames, delete_job_files
from paimon_spark.event_time import EventTime
from paimon_spark.internals import java_rows, renamed, select_texts
from paimon_spark.interruption import check_interrupted
from paimon_spark.options import WriteRequest
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.session_options import NATIVE_WRITES, native_writes
from paimon_spark.types import spark_type
from paimon_spark.write_job import TaskWrites

_log = logging.getLogger(__name__)
_LOCAL = re.compile(r"local(\[.*\])?")
"""The masters whose tasks run in the driver, which has the connector's Java classes."""
_CODECS = {"zstd": "ZSTD", "snappy": "SNAPPY", "none": "UNCOMPRESSED"}
"""The codecs of Spark's encoder, by pyarrow's names."""
_INTEGERS = (spark.ByteType(), spark.ShortType(), spark.IntegerType(), spark.LongType())
"""The integer types, from the narrowest to the widest."""
_PAGE_BYTES, _DICTIONARY_BYTES = 64 << 10, 512 << 10  # as in the files of the engine's encoder
_GROUP_BYTES, _GROUP_ROWS = 16 << 20, 1 << 20  # encoded: about 32 MiB of Arrow memory


def native_results(frame: DataFrame, table: Table, request: WriteRequest) -> list[TaskWrites] | None:
    """Write the rows of a DataFrame of a classic session without Python; return the results of its tasks.

    Args:
        frame: the rows to write.
        table: the table to write.
        request: the write options.

    Returns `None`, without files, if Python workers must write the rows, or must report the row that is refused. Raises
    the errors of the Spark query.
    """
    session = frame.sparkSession
    allowed = native_writes(session.conf.get(NATIVE_WRITES, None))
    if not allowed or not _LOCAL.fullmatch(session.sparkContext.master or ""):
        return None
    plan = _encoder_plan(table, request)
    rows = None if plan is None else _rows_of_table(frame, table)
    if plan is None or rows is None:
        return None
    names = JobNames(uuid.uuid4().hex[:16])
    try:
        check_interrupted()
        results = _run(Jvm(session), rows, plan, names)
        check_interrupted()
    except BaseException:
        _delete_files(plan, names)
        raise
    if results is not None:
        return results
    _delete_files(plan, names)
    return None


def _encoder_plan(table: Table, request: WriteRequest) -> EncoderPlan | None:
    """Return the plan of the files; `None`: the table or the options need the engine's writer."""
    if request.version is not None or request.row_kind_column is not None:
        return None
    try:
        check_writable(table.schema)
        table.store.io.check_can_commit()
        plan = EncoderPlan.of(table.store)
        return plan if plan is not None and plan.codec in _CODECS else None
    except PaimonError:  # the engine's writer raises the error
        return None


def _rows_of_table(frame: DataFrame, table: Table) -> DataFrame | None:
    """Return the rows with the columns of the table, in its order; `None`: a column has another type.

    Missing columns are NULL. Narrower integers become integers of the table's type.
    """
    positions = column_positions(frame.columns, table.schema)
    fields, columns = table.schema.fields, frame.schema.fields
    if EventTime.of(frame.schema) is not None:
        return None
    names = [f"c{n}" for n in range(len(columns))]
    pads = pads_writes(frame.sparkSession, table.schema.fields)
    texts: list[str | None] = []
    for field, position in zip(fields, positions, strict=True):
        text = None if position is None else _stored_text(names[position], columns[position].dataType, field, pads=pads)
        if text is None and (position is not None or not field.type.nullable):
            return None
        texts.append(text)
    if texts == names:
        return frame
    numbered = renamed(frame, names)
    if None not in positions:
        return select_texts(numbered, [text for text in texts if text is not None])
    return numbered.select(
        *(
            F.lit(None).cast(spark_type(field.type, field.name)).alias(f"m{n}") if text is None else F.expr(text)
            for n, (field, text) in enumerate(zip(fields, texts, strict=True))
        )
    )


def _stored_text(name: str, t: spark.DataType, field: DataField, *, pads: bool) -> str | None:
    """Return the SQL text of a column of Spark type `t` as values of a table's column; `None`: the types differ.

    `pads`: True: pad CHAR values.
    """
    stored = spark_type(field.type, field.name)
    if t in _INTEGERS and stored in _INTEGERS and _INTEGERS.index(t) < _INTEGERS.index(stored):
        return f"CAST({name} AS {stored.simpleString()})"
    return (padded_text(name, field.type) if pads else name) if _is_stored_as(t, field.type, field.name) else None


def _is_stored_as(t: spark.DataType, stored: DataType, path: str) -> bool:
    """Return True if values of a Spark type are values of a column type, without a conversion. NULLs do not count."""
    match stored:
        case ArrayType(element):
            return isinstance(t, spark.ArrayType) and _is_stored_as(t.elementType, element, path)
        case MapType(key, value):
            return (
                isinstance(t, spark.MapType)
                and _is_stored_as(t.keyType, key, path)
                and _is_stored_as(t.valueType, value, path)
            )
        case RowType(fields):
            return (
                isinstance(t, spark.StructType)
                and t.names == [field.name for field in fields]
                and all(
                    _is_stored_as(part.dataType, field.type, path) for part, field in zip(t.fields, fields, strict=True)
                )
            )
    return t == spark_type(stored, path)


def _run(jvm: Jvm, rows: DataFrame, plan: EncoderPlan, names: JobNames) -> list[TaskWrites] | None:
    """Run the tasks, and return their results; `None`: a task has refused a row, or could not write its file."""
    try:
        text = jvm.call("NativeWrite", "run", java_rows(rows), json.dumps(_described(plan, names)), plan.footer)
    except UnsupportedError as error:  # the JVM accepts no classes
        _log.info("Python workers write %s: %s", plan.store.root, error)
        return None
    results = json.loads(text)
    refused = next((result["refused"] for result in results if "refused" in result), None)
    if refused is not None:
        _log.info("Python workers write %s: %s", plan.store.root, refused)
        return None
    tasks = (([_encoded_file(file) for file in result["files"]], result["seconds"]) for result in results)
    try:
        return [TaskWrites(TaskWrite((plan.message(files, seconds),))) for files, seconds in tasks if files]
    except UnicodeDecodeError as error:  # a text that is not UTF-8, which Spark makes from bytes
        _log.info("Python workers write %s: %s", plan.store.root, error)
        return None


def _described(plan: EncoderPlan, names: JobNames) -> dict[str, Any]:
    """Return the plan for ``NativeWriteTask.java``."""
    spec = plan.spec
    job = names.job
    return {
        "directory": plan.directory,
        "prefix": f"{spec.prefix}{job[:8]}-{job[8:12]}-{job[12:]}-",
        "suffix": f"-0{plan.extension}",
        "codec": _CODECS[plan.codec],
        "level": str(plan.store.options.value(FILE_COMPRESSION_ZSTD_LEVEL)),
        "page": _PAGE_BYTES,
        "dictionary": _DICTIONARY_BYTES,
        "group": _GROUP_BYTES,
        "group_rows": _GROUP_ROWS,
        "size": spec.target_size,
        "rows": spec.target_rows,
        "plain": [f.name for f, c in zip(spec.fields, plan.columns, strict=True) if not c.dictionary],
        "columns": [asdict(column) for column in plan.columns],
    }


def _encoded_file(file: dict[str, Any]) -> EncodedFile:
    columns = tuple(EncodedColumn(nulls, *map(b64decode, bounds)) for nulls, *bounds in file["columns"])
    return EncodedFile(file["name"], file["size"], file["rows"], columns)


def _delete_files(plan: EncoderPlan, names: JobNames) -> None:
    """Delete the files of a job that is not committed."""
    with suppress(OSError, PaimonError):  # report the first error
        delete_job_files(plan.store, {plan.bucket}, names)
