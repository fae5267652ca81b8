"""Compression by the names users write, translated for each library."""

from paimon_core.errors import UnsupportedError

_NONE = ("none", "null", "uncompressed")
_AVRO = {"zstd": "zstandard", "gzip": "deflate", "zlib": "deflate", **dict.fromkeys(_NONE, "null")}
_AVRO_KNOWN = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_PARQUET = {**{c: c for c in ("zstd", "snappy", "gzip", "lz4")}, "lz4_raw": "lz4", **dict.fromkeys(_NONE, "none")}
_ORC = {
    **{c: c for c in ("zstd", "snappy", "lz4", "zlib")},
    "zstandard": "zstd",
    "gzip": "zlib",
    "deflate": "zlib",
    **dict.fromkeys(_NONE, "uncompressed"),
}


def avro_codec(name: str) -> str:
    """The container's name of a codec: ``zstd`` is ``zstandard``, ``none`` is ``null``."""
    codec = _AVRO.get(name.lower(), name.lower())
    return codec if codec in _AVRO_KNOWN else _refuse(name, "Avro", (*_AVRO_KNOWN, "zstd", "none"))


def parquet_codec(name: str) -> str:
    """pyarrow's name of a Parquet codec."""
    return _PARQUET.get(name.lower()) or _refuse(name, "Parquet", tuple(_PARQUET))


def orc_codec(name: str) -> str:
    """pyarrow's name of an ORC codec."""
    return _ORC.get(name.lower()) or _refuse(name, "ORC", tuple(_ORC))


def _refuse(name: str, where: str, known: tuple[str, ...]) -> str:
    raise UnsupportedError(f"compression {name!r} cannot be written in {where} files; choose one of {', '.join(known)}")
