"""The statements that repair or improve a table, for a shell, in SQL and in Python."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from paimon_core.errors import hide_secrets
from paimon_core.inspect.advice.report import Remedy
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.schema.partition_spec import partition_text as spec_text
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH, is_blank, partition_text
from paimon_core.store.location import TableLocation
from paimon_core.types.datatype import BINARY_ROOTS, INTEGER_ROOTS, AtomicType

_DATABASE = re.compile(r"/([^/]+)\.db/([^/]+)/?$")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBERS = {*INTEGER_ROOTS, "BOOLEAN"}
_WITHOUT_LITERAL = {"FLOAT", "DOUBLE", "DECIMAL", "BINARY", "VARBINARY"}


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition in the notations of statements.

    ``name``: ``k1=v1/k2=v2``, with the default name for NULL and blank; ``spec``: ``k1=v1,k2='v/2'``; ``values``: a
    Python expression {column: value}, or `None` if a value cannot be written as a literal.
    """

    name: str
    spec: str
    values: str | None


def partition_of(store: FileStore, partition: bytes) -> Partition:
    """Return a serialised partition in the notations of statements."""
    default = store.options.value(PARTITION_DEFAULT_NAME)
    texts, specs, literal, values = list[str](), list[str](), True, dict[str, object]()
    for field, value in zip(store.schema.partition_fields, store.partition_values(partition), strict=True):
        text = None if value is None else partition_text(value, field, legacy=False)
        root = field.type.root if isinstance(field.type, AtomicType) else ""
        if root == "TIMESTAMP_LTZ" and text is not None:
            text += "Z"  # directory names are in UTC
        binary = root in BINARY_ROOTS and value is not None
        specs.append(f"{_quoted(field.name)}=X'{value.hex()}'" if binary else spec_text(field.name, text, default))
        texts.append(f"{field.name}={default if text is None or is_blank(text) else text}")
        values[field.name] = value if root in _NUMBERS else text
        literal &= root not in _WITHOUT_LITERAL
    return Partition("/".join(texts), ",".join(specs), repr(values) if literal else None)


@dataclass(frozen=True, slots=True)
class Remedies:
    """The remedies for one table. ``where``: the partition that a remedy is limited to; `None`: the whole table.

    If a partition's values have no Python literals, the Python remedy covers the whole table.
    """

    store: FileStore

    @property
    def location(self) -> str:
        """The path of the table, with its branch, as the command takes it."""
        branch = None if self.store.branch == MAIN_BRANCH else self.store.branch
        return hide_secrets(str(TableLocation(self.store.root, branch)))

    @property
    def name(self) -> str | None:
        """The name ``database.table`` from the path, with backticks where needed; `None` without a database."""
        match = _DATABASE.search(self.location)
        return None if match is None else ".".join(map(_quoted, match.groups()))

    def compact(self, where: Partition | None = None) -> Remedy:
        """Compact all files of each bucket."""
        spec, keywords = _spec(where), ["full=True", *_keywords(where)]
        return Remedy(
            self._command("compact", "--full", *(() if spec is None else ("--partition", spec))),
            self._call("compact", compact_strategy="full", partitions=spec),
            f"table.compact({', '.join(keywords)})",
        )

    def materialize(self, where: Partition | None = None) -> Remedy:
        """Rewrite the files that have deletion vectors."""
        spec, procedure = _spec(where), "materialize_deletion_vectors"
        return Remedy(
            self._procedure(procedure, *(() if spec is None else (f"partitions={spec}",))),
            self._call(procedure, partitions=spec),
            f"table.maintenance.{procedure}({', '.join(_keywords(where))})",
        )

    def rewrite_indexes(self) -> Remedy:
        """Write the missing file indexes."""
        procedure = "rewrite_file_index"
        return Remedy(self._procedure(procedure), self._call(procedure), f"table.maintenance.{procedure}()")

    def compact_manifests(self) -> Remedy:
        """Merge manifests into a few large ones."""
        procedure = "compact_manifest"
        return Remedy(self._procedure(procedure), self._call(procedure), "table.maintenance.compact_manifests()")

    def rescale(self, buckets: int | None = None) -> Remedy:
        """Give the table another number of buckets; `None`: the number of its option ``bucket``."""
        arguments = [] if buckets is None else [f"bucket_num={buckets}"]
        return Remedy(
            self._procedure("rescale", *arguments),
            self._call("rescale", bucket_num=buckets),
            f"table.maintenance.rescale({'' if buckets is None else buckets})",
        )

    def expire(self) -> Remedy:
        """Expire the snapshots that are due."""
        return Remedy(self._command("expire"), self._call("expire_snapshots"), "table.maintenance.expire_snapshots()")

    def delete_consumer(self, consumer: str) -> Remedy:
        """Delete a consumer that keeps snapshots from expiring."""
        return Remedy(
            self._command("consumers", "--reset", consumer),
            self._call("reset_consumer", consumerId=consumer),
            f"table.consumers.reset({consumer!r})",
        )

    def delete_tag(self, tag: str) -> Remedy:
        """Delete a tag, and the files that only the tag needs."""
        sql = None if "," in tag else self._call("delete_tag", tag=tag)
        return Remedy(self._command("tag", tag, "--delete"), sql, f"table.tags.delete({tag!r})")

    def set_options(self, options: Mapping[str, str]) -> Remedy:
        """Store options with the table."""
        pairs = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in options.items())
        changes = ", ".join(f"SetOption({key!r}, {value!r})" for key, value in options.items())
        return Remedy(None, self._alter(f"SET TBLPROPERTIES ({pairs})"), f"table.alter([{changes}])")

    def remove_option(self, key: str) -> Remedy:
        """Remove an option from the table."""
        sql = self._alter(f"UNSET TBLPROPERTIES ({_literal(key)})")
        return Remedy(None, sql, f"table.alter([RemoveOption({key!r})])")

    def analyze(self) -> Remedy:
        """Compute the statistics of the table and of its columns."""
        name = self.name
        return Remedy(None, None if name is None else f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")

    def _command(self, name: str, *arguments: str) -> str:
        return shlex.join(["paimon-spark", name, self.location, *arguments])

    def _procedure(self, name: str, *arguments: str) -> str:
        return shlex.join(["paimon-spark", "call", name, f"table={self.location}", *arguments])

    def _call(self, procedure: str, **arguments: str | int | None) -> str | None:
        name = self.name
        if name is None:
            return None
        named = {"table": name, **{key: value for key, value in arguments.items() if value is not None}}
        texts = [f"{key} => {value if isinstance(value, int) else _literal(value)}" for key, value in named.items()]
        return f"CALL sys.{procedure}({', '.join(texts)})"

    def _alter(self, change: str) -> str | None:
        name = self.name
        return None if name is None else f"ALTER TABLE {name} {change}"


def _spec(where: Partition | None) -> str | None:
    return None if where is None else where.spec


def _keywords(where: Partition | None) -> list[str]:
    return [] if where is None or where.values is None else [f"partitions=[{where.values}]"]


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
