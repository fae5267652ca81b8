"""Masks of merged files: the rows of each file that a merge returns, computed without the values of the rows.

An engine that returns stored rows unchanged chooses them by key, sequence and kind. So a merge of these columns and the
positions of the rows determines the positions that another reader, which reads files one by one, must return.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.deletion.vector_files import load_vectors
from paimon_core.errors import UnsupportedError
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.sorted_run import files_by_age
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.merge import IGNORE_DELETE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import restrict
from paimon_core.read.dense_keys import find_newest, key_span, within
from paimon_core.read.sections import ReadFile, by_age, file_reader, run_batches
from paimon_core.read.table_read import TableRead
from paimon_core.scan.split import DataSplit
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.columns import free_prefix
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import Mask
from paimon_core.types.system_fields import ROW_POSITION, VALUE_KIND

FileReaders: TypeAlias = Callable[[Sequence[DataField], Predicate | None], ReadFile]
"""Returns a reader of these columns and of the position of each row, which may leave out rows by the predicate."""


def merged_sections(store: FileStore, split: DataSplit) -> list[DataSplit]:
    """Return the sections of a split that need a mask, each as a split; the other files return all their rows.

    A section needs a mask if its files overlap, or if a file has deletion vectors or rows that delete.

    Args:
        store: the table; without a primary key it has no sections.
        split: a split; a split that needs no merge has no such section.
    """
    if split.raw_convertible or not store.traits.keyed:
        return []
    vectors = {vector.data_file: vector for vector in split.vectors}
    masked: list[DataSplit] = []
    for runs in sections(split.files, store.schema.key_arrow):
        files = tuple(files_by_age(runs))
        stored = tuple(vectors[file.file_name] for file in files if file.file_name in vectors)
        if len(runs) > 1 or stored or any(file.may_delete for file in files):
            masked.append(replace(split, files=files, vectors=stored))
    return masked


def key_condition(store: FileStore, predicate: Predicate | None) -> Predicate | None:
    """Return the condition of a filter on the key, for merges that skip other rows; `None`: no such condition.

    Args:
        store: a table with a primary key.
        predicate: a filter, bound to the table's schema; `None`: no filter.
    """
    return None if predicate is None else restrict(predicate, set(store.schema.trimmed_primary_keys))


def section_digest(store: FileStore, section: DataSplit, condition: Predicate | None = None) -> str:
    """Return a text that identifies the masks of a section: equal texts mean equal masks.

    The text depends on the files, their deletion vectors and the rules of the merge, not on the snapshot.

    Args:
        store: the table.
        section: a split of `merged_sections`.
        condition: as for `merge_masks`.
    """
    traits, order = store.traits, store.traits.merge_order()
    compared = [store.schema.field(name) for name in (*order.key, *order.sequence_fields)]
    rules = traits.engine_type.name, order, traits.reads_high_level, store.options.value(IGNORE_DELETE), compared
    files = [
        (
            f.file_name,
            f.level,
            f.row_count,
            f.delete_row_count,
            f.schema_id,
            f.min_sequence_number,
            f.max_sequence_number,
        )
        for f in section.files
    ]
    vectors = [(vector.path, vector.range) for vector in section.vectors]
    return hashlib.sha256(repr((rules, section.bucket_ref, files, vectors, condition)).encode()).hexdigest()


def merge_masks(store: FileStore, section: DataSplit, condition: Predicate | None = None) -> dict[str, Mask]:
    """Return a mask of the rows of each file, by file name: True for the rows that the merge of the section returns.

    The engine of the table merges the key, sequence and kind columns. Memory: the merge of these columns, as
    `merge_section` describes it, and a bool for each row.

    Args:
        store: a table whose merge engine returns stored rows unchanged.
        section: a split of `merged_sections`.
        condition: a condition on key columns; the masks may be False for rows for which it is not true. `None`: no
            condition.

    Raises UnsupportedError for an engine that combines rows, and the errors of `TableRead.to_batches`.
    """
    store.check_readable()
    if not store.traits.keeps_rows:
        name = store.traits.engine_type.name
        raise UnsupportedError(f"cannot mask rows of {store.root}: merge engine {name} combines rows")
    position = DataField(ROW_POSITION.id, f"{free_prefix('_', store.schema.names)}position", ROW_POSITION.type)
    counts = [file.row_count for file in section.files]
    first = dict(zip((file.file_name for file in section.files), np.cumsum([0, *counts]).tolist(), strict=False))
    live = np.zeros(sum(counts), np.bool_)
    with raise_if_expired(store, section.snapshot_id):
        vectors = load_vectors(store.io, section.vectors)

        def reading(fields: Sequence[DataField], on_keys: Predicate | None) -> ReadFile:
            read = file_reader(store, section.bucket_ref, (*fields, position), on_keys, vectors)
            return _counted_from(read, position.name, first)

        if not _find_newest(store, section, reading, condition, live, first):
            live[:] = False
            for rows in TableRead(store, (), condition).merged(section.files, reading):
                for chunk in rows.column(position.name).chunks:
                    live[chunk.to_numpy()] = True
    return {name: live[start : start + count] for (name, start), count in zip(first.items(), counts, strict=True)}


def _find_newest(
    store: FileStore,
    section: DataSplit,
    readers: FileReaders,
    condition: Predicate | None,
    live: Mask,
    first: Mapping[str, int],
) -> bool:
    """Set ``live`` to True for the rows that the merge returns, without a sort; False: the merge needs one.

    The newest row of a key must win, the runs must not overlap in time, and the keys must be dense integers. Rows of
    the oldest run are not read if their keys are outside of the range of the newer runs, unless rows may be deleted.
    """
    runs, *others = sections(section.files, store.schema.key_arrow)
    mixed = store.traits.reads_high_level and len({file.level for file in section.files if file.level}) > 1
    by_runs = len(runs) > 1 and not others and not mixed and store.traits.merge_engine().newest_wins
    aged = by_age(runs) if by_runs else None
    if aged is None:
        return False
    oldest, *newer = aged
    span = key_span(store, [file for run in newer for file in run.files], section.row_count)
    if span is None:
        return False
    vectors = {vector.data_file for vector in section.vectors}
    deletes = any(file.may_delete or file.file_name in vectors for file in oldest.files)
    only = None if deletes or condition is not None else within(store, span)
    if only is not None:
        for file in oldest.files:
            live[first[file.file_name] :][: file.row_count] = True
    columns = (*store.schema.key_fields, VALUE_KIND)
    return find_newest(
        run_batches(oldest, readers(columns, condition if only is None else only), 1),
        [run_batches(run, readers(columns, condition), 1) for run in newer],
        span,
        live,
    )


def _counted_from(read: ReadFile, name: str, first: dict[str, int]) -> ReadFile:
    """Return ``read`` with the positions of each file increased by a number, so that they differ between files."""

    def moved(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        number = first[file.file_name]
        for batch in read(file, parallel_files):
            index = batch.schema.get_field_index(name)
            positions = pa.array(batch.column(index).to_numpy() + number)
            yield batch.set_column(index, batch.schema.field(index), positions)

    return moved
