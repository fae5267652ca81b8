"""Writes of append tables by Spark's own Parquet encoder, without Python workers.

A task of ``NativeWriteTask.java`` encodes its rows into files of the table. The driver names the directories of
partitions, computes the metadata of the files, and commits. If the table or the rows need the engine's writer,
`native_results` returns `None`, and Python workers write the rows.
"""

import json
import logging
import uuid
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.types import StructType

from paimon_core import BucketRef, Table
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
from paimon_spark.sql.bridge.endpoints import DirectoriesEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.native import is_reachable
from paimon_spark.sql.session_options import NATIVE_WRITES, native_writes
from paimon_spark.types import spark_type
from paimon_spark.write_job import TaskWrites

_log = logging.getLogger(__name__)
_CODECS = {"zstd": "ZSTD", "snappy": "SNAPPY", "none": "UNCOMPRESSED"}
"""The codecs of Spark's encoder, by pyarrow's names."""
_INTEGERS = (spark.ByteType(), spark.ShortType(), spark.IntegerType(), spark.LongType())
"""The integer types, from the narrowest to the widest."""
_PAGE_BYTES, _DICTIONARY_BYTES = 64 << 10, 512 << 10  # as in the files of the engine's encoder
_GROUP_BYTES, _GROUP_ROWS = 16 << 20, 1 << 20  # encoded: about 32 MiB of Arrow memory
OPEN_FILES = 32
"""The most partitions of a task whose rows are encoded as they arrive, if they arrive in long runs of one partition.

Rows of other partitions are sorted first. In a task with mixed rows of 24 partitions, a file for each of them takes a
fifth more CPU time than the sort.
"""


class _Directories(DirectoriesEndpoint):
    """The directories of the partitions of one job, for ``NativePartitions.java``. Tasks call it at the same time.

    `buckets`: the buckets of the partitions so far, by the text of their values.
    """

    def __init__(self, plan: EncoderPlan) -> None:
        self.plan = plan
        self.buckets: dict[str, BucketRef] = {}

    def directory(self, values: str) -> str:
        """Return the directory of a partition, in which Java can create files; empty: only the engine can write it."""
        try:
            bucket = self.plan.bucket([None if value is None else b64decode(value) for value in json.loads(values)])
            directory = self.plan.directory(bucket)
            directory.encode()
        except (UnicodeError, PaimonError):  # the engine's writer raises the error
            return ""
        self.buckets[values] = bucket
        return directory


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
    plan = _encoder_plan(session, table, request)
    rows = None if plan is None else _rows_of_table(frame, table)
    if plan is None or rows is None:
        return None
    names = JobNames(uuid.uuid4().hex[:16])
    directories = _Directories(plan)
    try:
        check_interrupted()
        results = _run(Jvm(session), rows, directories, names)
        check_interrupted()
    except BaseException:
        _delete_files(directories, names)
        raise
    if results is not None:
        return results
    _delete_files(directories, names)
    return None


def is_encodable(session: SparkSession, table: Table, request: WriteRequest, columns: StructType) -> bool:
    """Return True if `native_results` passes rows with these columns to Spark's encoder."""
    plan = _encoder_plan(session, table, request)
    return plan is not None and _texts_of_table(columns, table) is not None


def _encoder_plan(session: SparkSession, table: Table, request: WriteRequest) -> EncoderPlan | None:
    """Return the plan of the files; `None`: the session, the table or the options need the engine's writer."""
    if not native_writes(session.conf.get(NATIVE_WRITES, None)):
        return None
    if request.version is not None or request.row_kind_column is not None:
        return None
    try:
        check_writable(table.schema)
        table.store.io.check_can_commit()
        plan = EncoderPlan.of(table.store)
        if plan is None or plan.codec not in _CODECS:
            return None
        return plan if "://" not in plan.root or is_reachable(Jvm(session), plan.root) else None
    except PaimonError:  # the engine's writer raises the error
        return None


def _rows_of_table(frame: DataFrame, table: Table) -> DataFrame | None:
    """Return the rows with the columns of the table, in its order; `None`: a column has another type.

    Missing columns are NULL. Narrower integers become integers of the table's type.
    """
    texts = _texts_of_table(frame.schema, table, pads=pads_writes(frame.sparkSession, table.schema.fields))
    names = _numbered(frame.schema)
    if texts is None or texts == names:
        return None if texts is None else frame
    numbered = renamed(frame, names)
    if None not in texts:
        return select_texts(numbered, [text for text in texts if text is not None])
    return numbered.select(
        *(
            F.lit(None).cast(spark_type(field.type, field.name)).alias(f"m{n}") if text is None else F.expr(text)
            for n, (field, text) in enumerate(zip(table.schema.fields, texts, strict=True))
        )
    )


def _numbered(columns: StructType) -> list[str]:
    """Return names without dots for the columns of a DataFrame."""
    return [f"c{n}" for n in range(len(columns))]


def _texts_of_table(columns: StructType, table: Table, *, pads: bool = False) -> list[str | None] | None:
    """Return the SQL texts of the columns of a table; `None`: a column has another type.

    The text of a missing column is `None`. Texts name the columns of the DataFrame as `_numbered` does. `pads`: True:
    pad CHAR values.
    """
    if EventTime.of(columns) is not None:
        return None
    names = _numbered(columns)
    texts: list[str | None] = []
    for field, position in zip(table.schema.fields, column_positions(columns.names, table.schema), strict=True):
        text = None
        if position is not None:
            text = _stored_text(names[position], columns.fields[position].dataType, field, pads=pads)
        if text is None and (position is not None or not field.type.nullable):
            return None
        texts.append(text)
    return texts


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


def _run(jvm: Jvm, rows: DataFrame, directories: _Directories, names: JobNames) -> list[TaskWrites] | None:
    """Run the tasks, and return their results; `None`: a task has refused a row, or could not write its file."""
    plan = directories.plan
    described = json.dumps(_described(plan, names))
    try:
        handler = handler_of(jvm, directories) if plan.store.schema.partition_keys else None
        text = jvm.call("NativeWrite", "run", java_rows(rows), described, plan.footer, handler)
    except UnsupportedError as error:  # the JVM accepts no classes
        _log.info("Python workers write %s: %s", plan.store.root, error)
        return None
    results = json.loads(text)
    refused = next((result["refused"] for result in results if "refused" in result), None)
    if refused is not None:
        _log.info("Python workers write %s: %s", plan.store.root, refused)
        return None
    buckets = directories.buckets if plan.store.schema.partition_keys else {None: plan.bucket()}
    tasks = (([_encoded_file(file, buckets) for file in result["files"]], result["seconds"]) for result in results)
    try:
        return [TaskWrites(TaskWrite(plan.messages(files, seconds))) for files, seconds in tasks if files]
    except UnicodeDecodeError as error:  # a text that is not UTF-8, which Spark makes from bytes
        _log.info("Python workers write %s: %s", plan.store.root, error)
        return None


def _described(plan: EncoderPlan, names: JobNames) -> dict[str, Any]:
    """Return the plan for ``NativeWriteTask.java``."""
    spec, schema = plan.spec, plan.store.schema
    job = names.job
    return {
        "root": plan.root,
        "directory": "" if schema.partition_keys else plan.directory(plan.bucket()),
        "job": job,
        "partition": [schema.names.index(key) for key in schema.partition_keys],
        "open": OPEN_FILES,
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


def _encoded_file(file: dict[str, Any], buckets: Mapping[Any, BucketRef]) -> EncodedFile:
    columns = tuple(EncodedColumn(nulls, *map(b64decode, bounds)) for nulls, *bounds in file["columns"])
    return EncodedFile(buckets[file["partition"]], file["name"], file["size"], file["rows"], columns)


def _delete_files(directories: _Directories, names: JobNames) -> None:
    """Delete the files of a job that is not committed."""
    plan = directories.plan
    buckets = set(directories.buckets.values()) if plan.store.schema.partition_keys else {plan.bucket()}
    with suppress(OSError, PaimonError):  # report the first error
        delete_job_files(plan.store, buckets, names)
