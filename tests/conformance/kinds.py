"""Kinds of tables that both engines write: keys, buckets, row kinds and the options that change the files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.conformance.domain import types_of, value

FORMATS = ("parquet", "orc", "avro")
BASE = (("p", "STRING"), ("k", "INT NOT NULL"), ("s1", "INT"), ("s2", "TIMESTAMP(3)"), ("op", "STRING NOT NULL"))
PARTITIONS = ("x", "y=1/2 %", "zé")
KEYS = 40
FEW = (
    "INT", "STRING", "DOUBLE", "DECIMAL(18, 5)", "BYTES", "DATE", "TIMESTAMP(6)", "ARRAY<INT>", "ROW<a INT, b STRING>",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of table over the columns BASE and a column of every type, or of a few."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    row_kinds: tuple[str, ...] = ("+I",)
    file_format: str = "parquet"
    wide: bool = False

    @property
    def columns(self) -> list[list[str]]:
        """[name, type] of every column, as the judge takes them."""
        base = [[n, t + " NOT NULL" * (n in self.primary_keys and "NOT" not in t)] for n, t in BASE]
        return base + [[f"c{i}", t] for i, t in enumerate(types_of(self.file_format) if self.wide else FEW)]

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns as the engine knows them."""
        return tuple(DataField(-1, name, parse_type(text)) for name, text in self.columns)

    @property
    def definition(self) -> dict[str, Any]:
        """Arguments of the judge's create_table."""
        return {
            "fields": self.columns,
            "primary_keys": list(self.primary_keys),
            "partition_keys": list(self.partition_keys),
            "options": {"file.format": self.file_format, **self.options},
        }

    def rows(self, rng: Random, count: int) -> list[list[Any]]:
        """Random rows [kind, {column: value}], kinds and keys as this kind of table takes them."""
        return [self._row(rng) for _ in range(count)]

    def _row(self, rng: Random) -> list[Any]:
        kind = rng.choice(self.row_kinds)
        row = {f.name: value(rng, f.type, self.file_format) for f in self.fields}
        row.update(p=rng.choice(PARTITIONS if "p" in self.primary_keys else (*PARTITIONS, None, "")), op=kind)
        row.update(k=rng.randrange(KEYS), s1=rng.choice((None, *range(5))))
        return ["+I" if "rowkind.field" in self.options else kind, row]

    def of_format(self, file_format: str) -> "Kind":
        """The same kind of table with data files of another format."""
        return replace(self, file_format=file_format)


ALL = ("+I", "+I", "+U", "-D", "-U")
_KEY = {"primary_keys": ("k",), "row_kinds": ALL}


def keyed(name: str, **options: str) -> Kind:
    """A primary-key table of two buckets, unless the options (with _ for -) say otherwise."""
    return Kind(name, {"bucket": "2", **{k.replace("_", "-"): v for k, v in options.items()}}, **_KEY)


def dotted(name: str, options: Mapping[str, str], base: Kind | None = None) -> Kind:
    """A primary-key table (or another base) with these options."""
    base = base or keyed(name)
    return replace(base, name=name, options={**base.options, **options})


APPEND = Kind("append", wide=True)
KINDS = (
    APPEND,
    Kind("append-buckets", {"bucket": "3", "bucket-key": "k,p"}),
    Kind("append-partitions", partition_keys=("p",)),
    keyed("key-1-bucket", bucket="1"),
    replace(keyed("key-4-buckets", bucket="4"), wide=True),
    Kind("key-partitions", {"bucket": "2"}, ("p", "k"), ("p",), ALL),
    dotted("sequence", {"sequence.field": "s1"}),
    dotted("sequence-several", {"sequence.field": "s1,s2"}),
    dotted("sequence-descending", {"sequence.field": "s1,s2", "sequence.field.sort-order": "descending"}),
    dotted("rowkind-field", {"rowkind.field": "op"}),
    dotted("ignore-delete", {"ignore-delete": "true"}),
)
"""What decides which rows a read shows."""

_EVERY_FORMAT = ("append", "key-4-buckets")
MATRIX = [
    pytest.param(
        kind.of_format(file_format),
        id=f"{kind.name}-{file_format}",
        marks=() if file_format == "parquet" or kind.name in _EVERY_FORMAT else pytest.mark.slow,
    )
    for kind in KINDS
    for file_format in FORMATS
]
"""Kinds by formats; what a format hardly bears on is left to the long run."""

LAYOUTS = (
    dotted("mod-buckets", {"bucket-function.type": "mod"}),
    dotted("hive-buckets", {"bucket-function.type": "hive"}),
    dotted("thin", {"data-file.thin-mode": "true"}),
    replace(dotted("formats-per-level", {"file.format.per.level": "0:avro,3:parquet,5:orc"}), file_format="orc"),
    dotted("stats-none", {"metadata.stats-mode": "none"}),
    dotted("stats-counts", {"metadata.stats-mode": "counts"}),
    dotted("stats-full", {"metadata.stats-mode": "full"}),
    dotted("stats-truncate", {"metadata.stats-mode": "truncate(3)"}),
    dotted("stats-few", {"metadata.stats-keep-first-n-columns": "4"}),
    dotted("stats-sparse-store", {"metadata.stats-dense-store": "false", "metadata.stats-mode": "counts"}),
    dotted("names", {"data-file.prefix": "part-", "file.suffix.include.compression": "true"}),
    dotted("directory", {"data-file.path-directory": "files"}),
    dotted("manifest-null-codec", {"manifest.compression": "null"}),
    dotted("manifest-small", {"manifest.target-file-size": "1 kb", "manifest.merge-min-count": "2"}),
    dotted("levels", {"num-levels": "3", "num-sorted-run.compaction-trigger": "2"}),
    dotted("write-only", {"write-only": "true"}),
    dotted("small-files", {"target-file-size": "1 b", "page-size": "64 kb"}, APPEND),
    dotted("append-stats-full", {"metadata.stats-mode": "full"}, APPEND),
    dotted("append-unordered", {"bucket": "2", "bucket-key": "k", "bucket-append-ordered": "false"}, APPEND),
)
"""What changes the files and metadata, and must not change the rows."""

CODECS = {
    "parquet": ("none", "snappy", "gzip", "zstd", "lz4", "lz4_raw"),
    "orc": ("none", "zlib", "snappy", "lz4", "zstd"),
    "avro": ("null", "deflate", "snappy", "zstandard", "bzip2", "xz"),
}
