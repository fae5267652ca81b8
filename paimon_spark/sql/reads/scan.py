"""The handler of a scan: its description, its statistics, and the source of its rows."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql.types import StructType

from paimon_core import Plan, TableSchema
from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.internals import plans_reads
from paimon_spark.sql.bridge.endpoints import MaskEndpoint, ScanEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.explanation import explanation
from paimon_spark.sql.reads.masks import described_masks, read_masks, with_added_columns
from paimon_spark.sql.reads.native import has_variants, may_be_shredded
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.pushdown import predicate_of
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.source import Source, data_source_scan, tagged_scan
from paimon_spark.sql.reads.strategy import Divided, Masked, Native, ReadRows, Strategy, Tasks, choose, summary
from paimon_spark.sql.session_options import ReadSettings
from paimon_spark.types import spark_schema


@dataclass
class ScanHandler(ScanEndpoint):
    """The handler of a scan, for ``PaimonScan.java``."""

    jvm: Jvm
    schema: TableSchema
    """The schema of the table as Spark sees it."""
    whole: StructType
    """All columns that a query may read."""
    shown: str
    """The table's name in plans."""
    planned: PlannedScan
    settings: ReadSettings
    """The settings of the session."""
    keep_alive: list[object] = field(default_factory=list)
    """Objects of the sources that must live as long as Spark keeps this scan."""

    @property
    def request(self) -> ScanRequest:
        """The request of the query."""
        return self.planned.request

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy that reads the scan."""
        return choose(self.planned, self.jvm, self.settings)

    def to_java(self) -> Any:
        """Return the scan as ``Tagged.java``, with its source if it costs little and no runtime filter changes it."""
        description, source = self.description(), None
        if isinstance(self.strategy, Native | ReadRows) and not self._filter_columns():
            source = self._source(self.strategy, self.planned)
        return tagged_scan(self.jvm, self, description, source)

    def description(self) -> str:
        """Return the properties of the scan that Spark needs for planning, as JSON."""
        return json.dumps(
            {
                "columns": self._read_columns().json(),
                "whole": spark_schema(self.schema.fields).json(),
                "partitions": self._filter_columns(),
                "text": self.text,
                "divided": isinstance(self.strategy, Divided),
                "masked": isinstance(self.strategy, Masked),
                "local": isinstance(self.strategy, ReadRows),
                "shredded": isinstance(self.strategy, Native) and self._has_shredded_variants(),
                "bucketing": self._bucketing(),
            }
        )

    def _filter_columns(self) -> list[str]:
        """Return the columns whose runtime filters may prune files."""
        names = self.request.columns.names
        return [key for key in self.schema.partition_keys if key in names] if self._takes_filters else []

    def _read_columns(self) -> StructType:
        """Return the columns that the source returns."""
        return self.request.columns

    def _has_shredded_variants(self) -> bool:
        """Return True if the files of the scan may have shredded variants among the columns of the query."""
        planned = self.planned
        return has_variants(self.request.columns) and may_be_shredded(planned.scan.store, planned.plan.splits)

    def _bucketing(self) -> dict[str, Any] | None:
        """Return the bucketing of the scan; `None`: Spark reads neither plain files nor tasks of one bucket."""
        bucketing = self.planned.bucketing if isinstance(self.strategy, Native | Tasks) else None
        return None if bucketing is None else bucketing.description(self.planned.plan.splits)

    @property
    def text(self) -> str:
        """The text of the scan in a plan. Within a query, scans with equal texts return equal rows."""
        request, snapshot = self.request, self.planned.scan.snapshot
        options = sorted(request.options.items())  # values are hashed: an option may be a secret
        digest = hashlib.sha256(repr(options).encode()).hexdigest()[:8]
        parts: Mapping[str, Any] = {
            "columns": ", ".join(request.columns.names),
            "filter": request.predicate,
            "limit": request.limit,
            "options": f"{', '.join(key for key, _ in options)} ({digest})" if options else None,
        }
        said = "".join(f", {name}: {value}" for name, value in parts.items() if value is not None)
        number = None if snapshot is None else snapshot.id
        return f"paimon {hide_secrets(self.shown)}, snapshot {number}{said}, {self.strategy.description}"

    def explain(self) -> str | None:
        """Return the explanation of the scan for EXPLAIN, or the reason why it cannot be explained."""
        return self.explain_as(self.strategy.description)

    def explain_as(self, engine: str) -> str:
        """Return the explanation, or the reason why it is impossible. `engine`: the strategy in words."""
        if self.planned.scan.store.is_restricted:  # it would show partitions and counts of hidden rows
            return f"a read {engine}"
        try:
            return str(explanation(self.planned, self.whole, engine))
        except PaimonError as error:
            return str(error)

    @property
    def _takes_filters(self) -> bool:
        """True if runtime filters of a join may prune files: they test what the query shows, not masked values."""
        return not self.planned.scan.store.is_restricted

    def parts(self) -> Any:
        """Return the scan with a filter of deleted rows and `None`, or the two scans of a division; `None`: neither."""
        strategy = self.strategy
        if isinstance(strategy, Masked):
            masked = MaskedScan(self.jvm, self.schema, self.whole, self.shown, self.planned, self.settings, owner=self)
            masked.strategy = strategy.native
            return self.jvm.call("Tagged", "pair", handler_of(self.jvm, masked), masked.description(), None, None)
        if not isinstance(strategy, Divided) or not plans_reads():
            return None
        native = self._part(strategy.native, strategy.native_plan, self)
        rest = self._part(strategy.rest, strategy.rest_plan, None)
        scans = ((handler_of(self.jvm, part), part.description()) for part in (native, rest))
        return self.jvm.call("Tagged", "pair", *itertools.chain.from_iterable(scans))

    def _part(self, strategy: Strategy, plan: Plan, explained: "ScanHandler | None") -> "ScanPart":
        planned = self.planned.of_part(plan)
        part = ScanPart(self.jvm, self.schema, self.whole, self.shown, planned, self.settings, explained=explained)
        part.strategy = strategy
        return part

    def source(self, trees: str) -> Any:
        """Return the source of the rows as ``Tagged.java``, without files that runtime filters of a join exclude."""
        filters = json.loads(trees)
        planned, strategy = self.planned, self.strategy
        if filters:
            planned = planned.narrowed(predicate_of(filters, planned.scan.store.schema))
            strategy = self._narrowed(planned)
        return self._source(strategy, planned).to_java(self.jvm)

    def _source(self, strategy: Strategy, planned: PlannedScan) -> Source:
        """Return the source of the rows, whose objects live as long as this handler."""
        source = strategy.source(planned, self.jvm)
        self.keep_alive.append(source.keep_alive)
        return source

    def _narrowed(self, planned: PlannedScan) -> Strategy:
        """Return the strategy of the scan after runtime filters of a join have narrowed it."""
        return choose(planned, self.jvm, self.settings) if isinstance(self.strategy, Native) else self.strategy

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which supports streams."""
        self.planned.scan.store.check_unrestricted()  # an error of Python's source would hide the reason
        return data_source_scan(self.jvm, self.request, self.planned.source_options())

    def statistics(self) -> str:
        """Return the size of the scan as JSON."""
        return self.planned.statistics()


@dataclass
class ScanPart(ScanHandler):
    """One of the two scans that replace a divided scan, see ``PaimonDivideRule.java``."""

    explained: ScanHandler | None = None
    """The divided scan, if this part explains it; `None`: the other part explains it."""

    @property
    def _takes_filters(self) -> bool:
        return False  # they would select from all files of the divided scan

    def explain(self) -> str | None:
        """Return the explanation of the divided scan; `None`: the other part explains it."""
        divided = self.explained
        if divided is None or not isinstance(divided.strategy, Divided):
            return None
        return divided.explain_as(divided.strategy.summary)


@dataclass
class MaskedScan(ScanHandler, MaskEndpoint):
    """The scan of Spark's own reader whose deleted rows a filter drops, see ``PositionMask.java``."""

    owner: ScanHandler = field(kw_only=True)
    """The scan that this scan replaces, together with the filter."""

    @property
    def native(self) -> Native:
        """The strategy of the scan."""
        assert isinstance(self.strategy, Native)
        return self.strategy

    @property
    def _takes_filters(self) -> bool:
        return self.owner._takes_filters

    def _read_columns(self) -> StructType:
        return with_added_columns(self.request.columns)

    def _narrowed(self, planned: PlannedScan) -> Strategy:
        return self.native.restricted(planned)

    def explain(self) -> str | None:
        """Return the explanation of the scan that this scan replaces."""
        owner = self.owner
        return owner.explain() if isinstance(owner, ScanPart) else owner.explain_as(summary(owner.strategy))

    def masks(self) -> str:
        """Return the keys and the rows of the masks, and the most bytes to cache, as JSON."""
        return described_masks(self.native.masks, self.settings.mask_memory)

    def read_masks(self, numbers: str) -> bytes:
        """Return the masks with these indexes (a JSON array), one after another."""
        masks = [self.native.masks[number] for number in json.loads(numbers)]
        return read_masks(self.jvm.spark, self.planned.scan.store, masks, self.settings.mask_rows)
