"""The entries of Arrow maps that are built from buffers."""

import pyarrow as pa


def map_entries(keys: pa.Array, items: pa.Array, kind: pa.MapType) -> pa.StructArray:
    """Return the entries of a map column of type ``kind``, to be the child of its offsets.

    Raises ArrowInvalid for a null key, for which Arrow ends the process. Some versions of Arrow also end the process if
    the nulls of the keys are not counted yet, so this function counts the nulls.
    """
    if keys.null_count:
        raise pa.ArrowInvalid("a map has a NULL among its keys")
    return pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
