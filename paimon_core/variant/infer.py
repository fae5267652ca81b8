"""Types to shred variants by, inferred from the first rows of each file.

A field is shredded if enough rows have it and all its values fit one type. The other parts of a variant stay whole.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.options.file import (
    VARIANT_SHREDDING_ADAPTIVE_MAXINFERBUFFERROW,
    VARIANT_SHREDDING_ADAPTIVE_RETENTIONRATIO,
    VARIANT_SHREDDING_INFERENCEMODE,
    VARIANT_SHREDDING_MAXINFERBUFFERROW,
    VARIANT_SHREDDING_MAXSCHEMADEPTH,
    VARIANT_SHREDDING_MAXSCHEMAWIDTH,
    VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO,
)
from paimon_core.options.option import Options
from paimon_core.types.datatype import NO_ID, VARIANT, ArrayType, DataField, DataType, RowType
from paimon_core.variant.evidence import Digits, Evidence, evidence_of
from paimon_core.variant.layout import is_variant

_Path = tuple[str, ...]


def adapts(options: Options) -> bool:
    """Return True if the types of a file also depend on the file before. Raises InvalidInputError for unfit ratios."""
    if options.value(VARIANT_SHREDDING_INFERENCEMODE) != "adaptive":
        return False
    admission, retention = VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO, VARIANT_SHREDDING_ADAPTIVE_RETENTIONRATIO
    if not 0 <= options.value(retention) <= options.value(admission) <= 1:
        raise InvalidInputError(
            f"option {retention.key!r} = {options.value(retention)} and {admission.key!r} = {options.value(admission)}:"
            f" with {VARIANT_SHREDDING_INFERENCEMODE.key!r} = 'adaptive' they must be between 0 and 1, and the former "
            f"must not be larger: fields would be dropped that the next file shreds again"
        )
    return True


class Inference:
    """The inference for the files that one writer writes, one after another.

    With `variant.shredding.inferenceMode` = `adaptive`, the evidence of a file counts for the next one, too. Then fewer
    rows suffice, and a field that was shredded stays so at a lower ratio than the one at which a new field is.
    """

    def __init__(self, options: Options) -> None:
        """Create the inference. Raises InvalidInputError for unfit ratios."""
        self._options, self._adapts = options, adapts(options)
        self._ratio = options.value(VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO)
        self._retention = options.value(VARIANT_SHREDDING_ADAPTIVE_RETENTIONRATIO) if self._adapts else self._ratio
        self._later_rows = options.value(VARIANT_SHREDDING_ADAPTIVE_MAXINFERBUFFERROW)
        self._before: dict[_Path, _Column] | None = None  # the columns of the last complete file
        self.begin()

    @property
    def sample_rows(self) -> int:
        """The number of first rows of the next file that give its types."""
        return self._options.value(VARIANT_SHREDDING_MAXINFERBUFFERROW) if self._before is None else self._later_rows

    def begin(self) -> None:
        """Begin a file. What was seen of a file that is not complete is forgotten."""
        self._begun: dict[_Path, _Column] = {}
        self._width = _Width(self._options.value(VARIANT_SHREDDING_MAXSCHEMAWIDTH))

    def layout(self, field: DataField, column: pa.Array) -> DataType | None:
        """Return the type to shred a column by; `None`: nothing is shredded.

        Args:
            field: a column of the file, VARIANT or a ROW with variants; others are not shredded.
            column: its values in the first rows.

        Raises CorruptedError for bytes that are no variant.
        """
        return self._layout((field.name,), column, field.type)

    def complete(self) -> None:
        """Note that the file is complete: its evidence counts for the next one. Other files leave none."""
        if self._adapts:
            self._before = self._begun

    def _layout(self, path: _Path, array: pa.Array, t: DataType) -> DataType | None:
        """Return the type to shred by of a VARIANT column or of a ROW with variants; `None`: nothing is shredded."""
        if is_variant(t):
            layout = self._of_variants(path, array.drop_null())
            return None if layout == VARIANT else layout
        if not isinstance(t, RowType):
            return None
        inner = [
            (f.name, self._layout((*path, f.name), pc.struct_field(array, [i]), f.type)) for i, f in enumerate(t.fields)
        ]
        chosen = tuple(DataField(NO_ID, name, layout) for name, layout in inner if layout is not None)
        return RowType(chosen) if chosen else None

    def _of_variants(self, path: _Path, variants: pa.StructArray) -> DataType:
        depth = self._options.value(VARIANT_SHREDDING_MAXSCHEMADEPTH)
        evidence = evidence_of(variants, min(self._ratio, self._retention), depth)
        before = None if self._before is None else self._before.get(path)
        if before is not None:
            evidence = before.evidence.added(evidence)
        rule = _Rule(evidence.count * self._ratio, evidence.count * self._retention, self._width)
        layout = rule.layout(evidence, None if before is None else before.layout) if evidence.count else VARIANT
        self._begun[path] = _Column(evidence.at_most(self._later_rows), layout)
        return layout


@dataclass(frozen=True)
class _Column:
    """The evidence of one column of a complete file, and the type that shredded it."""

    evidence: Evidence
    layout: DataType


@dataclass
class _Width:
    """The number of stored columns that may still be added to a file."""

    left: int


@dataclass(frozen=True)
class _Rule:
    """The choice of the types by evidence.

    Args:
        admission: the least count of a field that was not shredded in the file before.
        retention: the least count of a field that was.
        width: the limit of the stored columns, which becomes smaller.
    """

    admission: float
    retention: float
    width: _Width

    def layout(self, evidence: Evidence, before: DataType | None) -> DataType:
        """Return the type to shred by. ``before``: the type in the file before; `None` for the first file."""
        self.width.left -= 1  # the column of values in the binary encoding
        shape = evidence.shape
        if self.width.left <= 0 or shape is None or shape == VARIANT:
            return VARIANT
        if isinstance(shape, Evidence):
            return ArrayType(self.layout(shape, before.element if isinstance(before, ArrayType) else None))
        if isinstance(shape, (Digits, DataType)):
            scalar = shape.type() if isinstance(shape, Digits) else shape
            self.width.left -= scalar != VARIANT
            return scalar
        types = {f.name: f.type for f in before.fields} if isinstance(before, RowType) else {}
        chosen = {n: f for n, f in shape.items() if f.count >= (self.retention if n in types else self.admission)}
        # if not all fit in the width: first the fields of most rows, then the fields that the file before has
        order = chosen if before is None else sorted(chosen, key=lambda n: (-chosen[n].count, n not in types))
        layouts: dict[str, DataType] = {}
        for name in order:
            if self.width.left <= 0:
                break
            layouts[name] = self.layout(chosen[name], types.get(name, VARIANT))
        fields = tuple(DataField(i, n, layouts[n]) for i, n in enumerate(n for n in shape if n in layouts))
        return RowType(fields) if fields else VARIANT
