"""Reading of whole containers of file indexes."""

import io

from paimon_core.fileindex.index_file import read


def unpack(data: bytes, where: str) -> dict[str, dict[str, bytes]]:
    """Return all indexes of a container. Raises CorruptedError naming ``where``, the origin of the bytes."""
    return read(io.BytesIO(data), None, where)
