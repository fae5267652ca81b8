"""A scan of a table: its statistics, and the scan of Spark that reads the rows."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

from paimon_core import Explanation, Plan, TableScan, TableSchema
from paimon_core.engine import branch_splits, conjunction, reads_branches
from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.sql.bridge.endpoints import ScanEndpoint
from paimon_spark.sql.reads.expired_reads import NativeRead, native_read
from paimon_spark.sql.reads.native import NativeChoice, scan_text
from paimon_spark.sql.reads.pushdown import predicate_of
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.statistics import scan_statistics
from paimon_spark.types import spark_schema


@dataclass
class MatchingFiles:
    """The files that a request reads, planned once."""

    scan: TableScan
    """The scan of the moment of the request, in microseconds, with its predicate."""
    request: ScanRequest
    part: Plan | None = None
    """The plan if it is known already: a part of that of another scan."""

    @cached_property
    def plan(self) -> Plan:
        """The plan of the scan; of two branches their splits."""
        if self.part is not None:
            return self.part
        if reads_branches(self.scan.store) and not self.request.moment:
            splits = [split for _, several in branch_splits(self.scan) for split in several]
            return Plan(self.scan.snapshot, splits)
        return self.scan.plan()


@dataclass
class ScanHandler(ScanEndpoint):
    """The handler of a scan, for ``PaimonScan.java``."""

    schema: TableSchema
    """The schema of the table as Spark knows it."""
    shown: str
    """The table in plans."""
    matching: MatchingFiles
    plan_tasks: Callable[[ScanRequest], Any]
    """Plans the tasks of the Python data source for a request: see ``PlannedTasks.java``."""
    plan_part: Callable[[MatchingFiles, Plan], bytes | None]
    """Plans the tasks for a part of a plan; `None`: they cannot be planned so."""
    stream: Callable[[ScanRequest], Any]
    """Makes the scan of the Python data source for a request, which has streams."""
    read_small: Callable[[MatchingFiles], Any]
    """Reads the few rows of a scan and returns them as a Java Dataset; `None`: they are many."""
    choose: Callable[[MatchingFiles], NativeChoice]
    """Finds the native path for files, or why there is none."""
    explained: Callable[[MatchingFiles, NativeChoice], Explanation]
    """Explains a read of files in the way that was chosen."""
    pair: Callable[[Sequence[object]], Any]
    """Makes a Java array of the handlers of some objects."""
    reads: list[NativeRead] = field(default_factory=list)
    """The reads by Spark's own scan, whose errors are translated as long as Spark has this scan."""

    @property
    def request(self) -> ScanRequest:
        """The request of the query."""
        return self.matching.request

    @cached_property
    def choice(self) -> NativeChoice:
        """The native path for the request, or why there is none."""
        return self.choose(self.matching)

    def description(self) -> str:
        """Return what Spark knows of the scan before it runs, as JSON."""
        columns = self.request.columns
        found = {
            "columns": columns.json(),
            "whole": spark_schema(self.schema.fields).json(),
            "partitions": [key for key in self.schema.partition_keys if key in columns.names and self._takes_filters],
            "text": self.text,
            "divided": self.choice.division is not None,
        }
        return json.dumps(found)

    @property
    def text(self) -> str:
        """The text of the scan in a plan. Scans of one query with equal texts read equal rows."""
        request, snapshot = self.request, self.matching.scan.snapshot
        given = sorted(request.options.items())  # values are hashed: an option may be a secret
        digest = hashlib.sha256(repr(given).encode()).hexdigest()[:8]
        parts: Mapping[str, Any] = {
            "columns": ", ".join(request.columns.names),
            "filter": request.predicate,
            "limit": request.limit,
            "options": f"{', '.join(key for key, _ in given)} ({digest})" if given else None,
        }
        said = "".join(f", {name}: {value}" for name, value in parts.items() if value is not None)
        number = None if snapshot is None else snapshot.id
        return f"paimon {hide_secrets(self.shown)}, snapshot {number}{said}, {self.choice.description}"

    def explain(self) -> str | None:
        """Return the explanation of the scan for EXPLAIN; of one that has none, the reason."""
        return self._explanation(self.choice)

    def _explanation(self, choice: NativeChoice) -> str:
        try:
            return str(self.explained(self.matching, choice))
        except PaimonError as error:
            return str(error)

    @property
    def _takes_filters(self) -> bool:
        """True if filters of a running join may leave out files."""
        return True

    def parts(self) -> Any:
        """Return the scan of the files that Spark's own scan reads, and that of the others; `None`: it stays whole."""
        division = self.choice.division
        if division is None or self._tasks_of_part is None:
            return None
        whole = partial(self._explanation, NativeChoice(None, str(division)))
        native = self._part(division.choices[0], division.native, None, whole)
        return self.pair([native, self._part(division.choices[1], division.others, self._tasks_of_part, None)])

    @cached_property
    def _tasks_of_part(self) -> bytes | None:
        division = self.choice.division
        return None if division is None else self.plan_part(self.matching, division.others)

    def _part(
        self, choice: NativeChoice, plan: Plan, tasks: bytes | None, explanation: Callable[[], str] | None
    ) -> "ScanPart":
        matching = replace(self.matching, part=plan)
        own = {one.name: getattr(self, one.name) for one in fields(ScanHandler)}
        own |= {"reads": [], "matching": matching, "choose": lambda _: choice, "plan_tasks": lambda _: tasks}
        return ScanPart(**own, explanation=explanation)

    def source(self, trees: str) -> Any:
        """Return the scan of Spark that reads the rows, without files that filters of a running join exclude.

        A text describes one of the native path: see `scan_text`; a Dataset has the rows that the driver has read; bytes
        are tasks of the Python data source, see ``PlannedTasks.java``.
        """
        filters = json.loads(trees)
        matching, choice = self.matching, self.choice
        if filters:
            scan, request = matching.scan, matching.request
            parts = (request.predicate, predicate_of(filters, scan.store.schema))
            predicate = conjunction([part for part in parts if part is not None])
            matching = MatchingFiles(replace(scan, predicate=predicate), replace(request, predicate=predicate))
            choice = choice if choice.files is None else self.choose(matching)
        if choice.files is None:
            small = self.read_small(matching) if choice.by_driver else None
            return self.plan_tasks(matching.request) if small is None else small
        store, snapshot = matching.scan.store, matching.scan.snapshot
        if snapshot is not None:
            self.reads.append(native_read(store, snapshot, choice.files.sizes))
        return scan_text(store.schema, choice.files, matching.request.columns)

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which has streams."""
        return self.stream(self.request)

    def statistics(self) -> str:
        """Return the size of the scan as JSON."""
        return scan_statistics(self.matching.scan, self.matching.plan.splits)


@dataclass
class ScanPart(ScanHandler):
    """The answers of one of the two scans that take the place of a whole one, see ``PaimonDivideRule.java``."""

    explanation: Callable[[], str] | None = None
    """Explains the whole scan, for which one part answers."""

    @property
    def _takes_filters(self) -> bool:
        return False  # they would choose among all files again

    def explain(self) -> str | None:
        """Return the explanation of the whole scan; `None`: the other part does."""
        return None if self.explanation is None else self.explanation()
