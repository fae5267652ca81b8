"""Entries of Arrow maps that are put together from buffers."""

import pyarrow as pa


def map_entries(keys: pa.Array, items: pa.Array, kind: pa.MapType) -> pa.StructArray:
    """Return the entries of a map column of type ``kind``, to be the child of its offsets.

    Raises ArrowInvalid for a NULL among the keys: Arrow ends the process when it finds one there. Versions of it that
    do not count them then take "not counted yet" for one, so the keys are counted here.
    """
    if keys.null_count:
        raise pa.ArrowInvalid("a map has a NULL among its keys")
    return pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
