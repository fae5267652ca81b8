"""A scan of a table: its statistics, and the scan of Spark that reads the rows."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from paimon_core.errors import hide_secrets
from paimon_core.predicate.expr import Predicate, conjunction
from paimon_core.scan.table_scan import TableScan
from paimon_core.table import Table
from paimon_spark.sql.native import NativeChoice
from paimon_spark.sql.pushdown import predicate_of
from paimon_spark.sql.scan_request import ScanRequest
from paimon_spark.sql.statistics import scan_statistics


@dataclass
class ScanFunction:
    """The answers to what Spark asks a scan: a method for each question of ``PaimonScan.java``."""

    table: Table
    request: ScanRequest
    make: Callable[[ScanRequest], Any]
    """Makes the scan of the Python data source for a request."""
    choose: Callable[[ScanRequest], NativeChoice]
    """Makes a scan of the native path for a request."""

    @cached_property
    def choice(self) -> NativeChoice:
        """The native path for the request, or why there is none."""
        return self.choose(self.request)

    def source(self, trees: str) -> Any:
        """Return the scan of Spark that reads the rows, without files that filters of a running join exclude."""
        filters = json.loads(trees)
        request, choice = self.request, self.choice
        if filters:
            parts = (request.predicate, predicate_of(filters, self._scan(None).store.schema))
            request = replace(request, predicate=conjunction([p for p in parts if p is not None]))
            choice = choice if choice.scan is None else self.choose(request)
        return self.make(request) if choice.scan is None else choice.scan

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which has streams."""
        return self.make(self.request)

    def statistics(self) -> str:
        """Return the size of the scan as JSON."""
        return scan_statistics(self._scan(self.request.predicate))

    def _scan(self, predicate: Predicate | None) -> TableScan:
        scan = self.table.scan(filter=predicate, **self.request.moment)
        return replace(scan, store=scan.store.in_microseconds())


def describe(table: Table, request: ScanRequest, choice: NativeChoice) -> str:
    """Return the text of a scan in a plan. Scans of one query with equal texts read equal rows."""
    snapshot = table.snapshot(**request.moment)
    given = sorted(request.options.items())  # values are hashed: an option may be a secret
    digest = hashlib.sha256(repr(given).encode()).hexdigest()[:8]
    parts = {
        "columns": ", ".join(request.columns.names),
        "filter": request.predicate,
        "limit": request.limit,
        "options": f"{', '.join(key for key, _ in given)} ({digest})" if given else None,
    }
    said = "".join(f", {name}: {value}" for name, value in parts.items() if value is not None)
    number = None if snapshot is None else snapshot.id
    return f"paimon {hide_secrets(str(table.location))}, snapshot {number}{said}, {choice.description}"
