"""Hypothesis strategies for column types."""

from hypothesis import strategies as st

from paimon_core.types.datatype import (
    MAX_LENGTH,
    VECTOR_ELEMENT_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
)

lengths = st.one_of(st.integers(1, 50), st.just(MAX_LENGTH))
names = st.one_of(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), st.text(min_size=1, max_size=5))
texts = st.one_of(st.none(), st.text(max_size=8))
no_id = st.just(-1)
nothing = st.none()


@st.composite
def decimals(draw):
    precision = draw(st.integers(1, 38))
    return AtomicType("DECIMAL", draw(st.booleans()), precision=precision, scale=draw(st.integers(0, precision)))


plain = st.builds(
    AtomicType, st.sampled_from(sorted({"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE"})),
    st.booleans(),
)  # fmt: skip
sized = st.builds(
    AtomicType, st.sampled_from(["CHAR", "VARCHAR", "BINARY", "VARBINARY"]), st.booleans(), length=lengths
)
timed = st.builds(
    AtomicType, st.sampled_from(["TIME", "TIMESTAMP", "TIMESTAMP_LTZ"]), st.booleans(), precision=st.integers(0, 9)
)
special = st.builds(AtomicType, st.sampled_from(["VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"]), st.booleans())
scalars = st.one_of(plain, sized, timed, decimals())
vectors = st.builds(
    VectorType,
    st.builds(AtomicType, st.sampled_from(sorted(VECTOR_ELEMENT_ROOTS)), st.booleans()),
    st.integers(1, 4),
    st.booleans(),
)


def rows(types, ids=no_id, descriptions=texts, defaults=nothing):
    fields = st.builds(DataField, ids, names, types, descriptions, defaults)
    return st.builds(
        RowType, st.lists(fields, max_size=4, unique_by=lambda field: field.name).map(tuple), st.booleans()
    )


def nested(leaves, ids=no_id, descriptions=texts, defaults=nothing):
    """Types over these leaves; fields of rows get ids from ``ids``."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(ArrayType, inner, st.booleans()),
            st.builds(MapType, inner, inner, st.booleans()),
            st.builds(MultisetType, inner, st.booleans()),
            rows(inner, ids, descriptions, defaults),
        ),
        max_leaves=6,
    )


any_type = nested(st.one_of(scalars, special, vectors))
