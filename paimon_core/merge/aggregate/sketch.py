"""The aggregate functions hll_sketch and theta_sketch: unions of Apache DataSketches.

Null has no effect; a single value is unchanged.

Each step unites the result with the next value in the order and precision of the Java engine. So the estimates are
equal, and the bytes too, except for the HIP accumulator of HLL, which a union does not use. A Python loop unites the
values, because each is a data structure of its own.
"""

from functools import partial
from types import ModuleType

from paimon_core.errors import MissingDependencyError
from paimon_core.merge.aggregate.bitmap import unions
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate

_NOMINAL_ENTRIES = 12  # as a power of two
_ALL_SAMPLED = bytes.fromhex("0000803f")  # the probability 1.0
_SINGLE_ITEM = 0x20


def hll_sketch(field: FieldOptions) -> Aggregate:
    """Make hll_sketch: union of HLL sketches; the result is compact, HLL_4, and as precise as the least precise."""
    field.check_root("hll_sketch", "VARBINARY")
    sketches = _datasketches(field, "hll_sketch")

    def union(left: bytes, right: bytes) -> bytes:
        so_far, new = (sketches.hll_sketch.deserialize(data) for data in (left, right))
        both = sketches.hll_union(new.lg_config_k)
        both.update(new)
        both.update(so_far)
        return bytes(both.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact())

    return partial(unions, field, "hll_sketch", union)


def theta_sketch(field: FieldOptions) -> Aggregate:
    """Make theta_sketch: union of theta sketches of up to 4096 entries; the result is compact and ordered."""
    field.check_root("theta_sketch", "VARBINARY")
    sketches = _datasketches(field, "theta_sketch")

    def union(left: bytes, right: bytes) -> bytes:
        both = sketches.theta_union(_NOMINAL_ENTRIES)
        for data in (left, right):
            both.update(sketches.compact_theta_sketch.deserialize(data))
        return _as_java(bytes(both.get_result().serialize()))

    return partial(unions, field, "theta_sketch", union)


def _as_java(theta: bytes) -> bytes:
    """Return a compact sketch in Java's layout, which differs in fields that readers ignore."""
    if len(theta) == 8:  # empty: no hash of the seed
        return theta[:6] + bytes(2)
    if len(theta) == 16:  # one entry: marked by a flag
        return theta[:5] + bytes([theta[5] | _SINGLE_ITEM]) + theta[6:]
    return theta[:12] + _ALL_SAMPLED + theta[16:]


def _datasketches(field: FieldOptions, function: str) -> ModuleType:
    try:
        import datasketches  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise MissingDependencyError(
            f"column {field.name!r}: the aggregate function {function} needs datasketches; "
            f"pip install 'pyspark-paimon[sketches]'"
        ) from error
    module: ModuleType = datasketches
    return module
