"""The shredding of the variants in the columns of a file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.options.file import (
    VARIANT_INFERSHREDDINGSCHEMA,
    VARIANT_SHREDDINGSCHEMA,
)
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField, DataType, RowType
from paimon_core.variant.infer import Inference
from paimon_core.variant.layout import Layouts, configured_layouts, is_variant
from paimon_core.variant.shred import shredded


class Shredding:
    """The choice of the layouts of the variants in the files that one writer writes, one after another.

    The option `variant.shreddingSchema` gives the layouts. Without it, and with `variant.inferShreddingSchema`, the
    first rows of each file give them. Without both, no variant is shredded.
    """

    def __init__(self, fields: Sequence[DataField], options: Options) -> None:
        """Create the choice for files with these columns. Raises InvalidInputError for an unsuitable option."""
        self._fields = fields
        self._configured = configured_layouts(fields, options)
        infers = not options.has(VARIANT_SHREDDINGSCHEMA) and options.value(VARIANT_INFERSHREDDINGSCHEMA)
        self._inference = Inference(options) if infers and _has_variants(fields) else None

    @property
    def depends_on_rows(self) -> bool:
        """True if the first rows of a file give its layouts."""
        return self._inference is not None

    def layouts(self, first: pa.Table) -> Layouts:
        """Return the layouts of a file. ``first``: its first rows."""
        if self._inference is None:
            return self._configured
        rows = first.slice(0, self._inference.sample_rows)
        self._inference.begin()
        layouts: Layouts = {}
        for field, column in zip(self._fields, rows.columns, strict=True):
            with _naming(field.name):
                layout = self._inference.layout(field, column.combine_chunks())
            if layout is not None:
                layouts[field.name] = layout
        return layouts

    def complete(self) -> None:
        """Note that the file of the last layouts is complete."""
        if self._inference is not None:
            self._inference.complete()


def _has_variants(fields: Sequence[DataField]) -> bool:
    """Return True if a column, or a field of a ROW, is a variant: others are not shredded."""
    return any(is_variant(f.type) or (isinstance(f.type, RowType) and _has_variants(f.type.fields)) for f in fields)


@contextmanager
def _naming(column: str) -> Iterator[None]:
    """Turn the error of bytes that are no variant into an InvalidInputError that names the column."""
    try:
        yield
    except CorruptedError as cause:
        raise InvalidInputError(f"column {column!r} has bytes that are no VARIANT: {cause}") from cause


def shredded_rows(rows: pa.Table, fields: Sequence[DataField], layouts: Layouts) -> pa.Table:
    """Return rows with their variants shredded. ``fields``: the columns of the rows.

    Raises InvalidInputError for bytes that are no variant.
    """
    for i, field in enumerate(fields):
        if field.name in layouts:
            with _naming(field.name):
                column = _shredded(rows.column(i).combine_chunks(), field.type, layouts[field.name])
            rows = rows.set_column(i, field.name, column)
    return rows


def _shredded(array: pa.Array, t: DataType, layout: DataType) -> pa.Array:
    """Return a column of variants, or of rows with variants, shredded by a type; null stays null."""
    if is_variant(t):
        return shredded(array, layout)
    assert isinstance(t, RowType)
    assert isinstance(layout, RowType)
    inner = {f.name: f.type for f in layout.fields}
    parts = [pc.struct_field(array, [i]) for i in range(len(t.fields))]
    parts = [
        _shredded(p, f.type, inner[f.name]) if f.name in inner else p for p, f in zip(parts, t.fields, strict=True)
    ]
    return pa.StructArray.from_arrays(parts, [f.name for f in t.fields], mask=array.is_null())
