"""The names of compression codecs in table options, translated for each library, and the zstd module of this Python."""

from paimon_core.errors import UnsupportedError

try:
    from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14
except ImportError:
    from backports import zstd

__all__ = ["avro_codec", "orc_codec", "parquet_codec", "zstd"]

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
    """Return the container's name of a codec: ``zstd`` is ``zstandard``, ``none`` is ``null``.

    Raises UnsupportedError for an unknown name.
    """
    codec = _AVRO.get(name.lower(), name.lower())
    return codec if codec in _AVRO_KNOWN else _refuse(name, "Avro", (*_AVRO_KNOWN, "zstd", "none"))


def parquet_codec(name: str) -> str:
    """Return pyarrow's name of a Parquet codec. Raises UnsupportedError for an unknown name."""
    return _PARQUET.get(name.lower()) or _refuse(name, "Parquet", tuple(_PARQUET))


def orc_codec(name: str) -> str:
    """Return pyarrow's name of an ORC codec. Raises UnsupportedError for an unknown name."""
    return _ORC.get(name.lower()) or _refuse(name, "ORC", tuple(_ORC))


def _refuse(name: str, kind: str, known: tuple[str, ...]) -> str:
    """Raise UnsupportedError, because ``name`` is not among the ``known`` codecs for this kind of file."""
    raise UnsupportedError(f"compression {name!r} cannot be written in {kind} files; choose one of {', '.join(known)}")
