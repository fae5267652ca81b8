"""Table traits: the facts that follow from a table's keys and options, as scans, writes and commits read them."""

from dataclasses import dataclass

from paimon_core.merge import EngineType, MergeEngine, engine_type, merge_engine, needs_lookup
from paimon_core.merge.order import MergeOrder
from paimon_core.options.file import DATA_EVOLUTION_ENABLED, PRIMARY_KEY_NULLABLE
from paimon_core.options.merge import (
    CHANGELOG_PRODUCER,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MERGE_ON_READ,
    SEQUENCE_FIELD,
    SEQUENCE_FIELD_SORT_ORDER,
)
from paimon_core.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class TableTraits:
    """The facts about a table with this schema. Each property raises InvalidInputError for a bad option it reads."""

    schema: TableSchema

    @property
    def keyed(self) -> bool:
        """True for a table with a primary key."""
        return bool(self.schema.primary_keys)

    @property
    def data_evolution(self) -> bool:
        """True if columns of the same rows may be in several files."""
        return self.schema.options.value(DATA_EVOLUTION_ENABLED)

    @property
    def changelog_producer(self) -> str:
        """The source of the changelog: ``none``, ``input``, ``full-compaction`` or ``lookup``."""
        return self.schema.options.value(CHANGELOG_PRODUCER)

    @property
    def deletion_vectors(self) -> bool:
        """True if deletion vectors hold the positions of deleted rows."""
        return self.schema.options.value(DELETION_VECTORS_ENABLED)

    @property
    def disjoint_levels(self) -> bool:
        """True if each key has at most one row above level 0, because deletion vectors remove the others."""
        return self.keyed and self.deletion_vectors

    @property
    def hides_level_0(self) -> bool:
        """True if batch reads show only compacted rows."""
        merged = self.schema.options.value(DELETION_VECTORS_MERGE_ON_READ)
        return self.keyed and ((self.deletion_vectors and not merged) or self.engine_type.skips_level_0)

    @property
    def needs_lookup(self) -> bool:
        """True for a table with lookups: see `needs_lookup`."""
        return needs_lookup(self.schema.options)

    @property
    def reads_high_level(self) -> bool:
        """True if above level 0 only a key's row of the smallest level is merged: see `read_high_level`."""
        return self.needs_lookup and not self.engine_type.skips_level_0

    @property
    def engine_type(self) -> EngineType:
        """The facts of the merge engine."""
        return engine_type(self.schema.options)

    @property
    def keeps_rows(self) -> bool:
        """True if every row that is read is one of the stored rows, value for value."""
        return not self.keyed or self.engine_type.keeps_rows

    def merge_engine(self) -> MergeEngine:
        """Return the merge engine. REQUIRES: a primary key."""
        return merge_engine(self.schema.options, self.schema.fields, self.schema.primary_keys)

    def merge_order(self) -> MergeOrder:
        """Return the order in which rows of one key are merged. REQUIRES: a primary key."""
        options = self.schema.options
        descending = options.value(SEQUENCE_FIELD_SORT_ORDER) == "descending"
        key = tuple(self.schema.trimmed_primary_keys)
        return MergeOrder(key, options.value(SEQUENCE_FIELD), descending, nullable=self.nullable_keys)

    @property
    def nullable_keys(self) -> bool:
        """True if key columns may contain NULL, which equals NULL."""
        return self.keyed and self.schema.options.value(PRIMARY_KEY_NULLABLE)
