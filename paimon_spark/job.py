"""One Spark job while it runs: its name on Spark's pages, its progress told, its tasks stopped if nobody waits for it.

Spark says how many tasks of a stage have ended, not which: the largest start first, so those are counted as done.
Classic sessions are asked twice a second, over Connect the server tells.
"""

import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.maintenance.execute import Progress

_SECONDS = 0.5  # between two looks at a classic session
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


class Job:
    """A context around the action that runs it. `sizes`: bytes of the tasks of its last stage, the first started
    first; `progress` is told the bytes done, of how many: never less than before, and all of them once it succeeds."""

    def __init__(self, spark: SparkSession, name: str, sizes: Sequence[int], progress: Progress | None) -> None:
        self._progress = progress
        self._after = [0, *accumulate(sizes)]
        self._told = -1
        self._watch = (_Classic if hasattr(spark, "_jsparkSession") else _Connect)(spark, name, self._tell)

    def __enter__(self) -> "Job":
        self._watch.start(watching=self._progress is not None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.end(cancel=error is not None)
        if error is None:
            self._tell(len(self._after) - 1, len(self._after) - 1)

    def _tell(self, done: int, tasks: int) -> None:
        """`done` of a stage's `tasks` have ended."""
        if tasks != len(self._after) - 1 or done <= self._told or self._progress is None:
            return
        self._told = done
        self._progress(self._after[done], self._after[-1])


class _Classic:
    """The jobs of this thread under a group of their own; another thread asks how far they are."""

    def __init__(self, spark: SparkSession, name: str, tell: Any) -> None:
        self._context, self._name, self._tell = spark.sparkContext, name, tell
        self._group = f"paimon-{uuid.uuid4()}"
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None
        self._before: dict[str, str | None] = {}

    def start(self, *, watching: bool) -> None:
        self._before = {key: self._context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
        self._context.setLocalProperty(_GROUP, self._group)
        self._context.setLocalProperty(_DESCRIPTION, self._name)
        if watching:
            self._watcher = threading.Thread(target=self._look, name="paimon-progress", daemon=True)
            self._watcher.start()

    def end(self, *, cancel: bool) -> None:
        self._over.set()
        if self._watcher is not None:
            self._watcher.join()
        if cancel:
            with suppress(Exception):  # the session itself may be gone
                self._context.cancelJobGroup(self._group)
        for key, value in self._before.items():
            self._context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def _look(self) -> None:
        tracker = self._context.statusTracker()
        while not self._over.wait(_SECONDS):
            with suppress(Exception):  # about progress nothing may fail
                jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
                stages = sorted(stage for job in jobs if job is not None for stage in job.stageIds)
                for info in map(tracker.getStageInfo, stages):
                    if info is not None:
                        self._tell(info.numCompletedTasks, info.numTasks)


class _Connect:
    """The operations of this thread under a tag of their own; the server's messages say how far they are."""

    def __init__(self, spark: SparkSession, name: str, tell: Any) -> None:
        self._spark, self._tell = spark, tell
        self._tag = f"paimon-{uuid.uuid4()}"
        self._thread = threading.get_ident()
        self._watching = False

    def start(self, *, watching: bool) -> None:
        self._watching = watching
        self._spark.addTag(self._tag)
        if watching:
            self._spark.registerProgressHandler(self._heard)  # type: ignore[arg-type]

    def end(self, *, cancel: bool) -> None:
        if self._watching:
            self._spark.removeProgressHandler(self._heard)  # type: ignore[arg-type]
        self._spark.removeTag(self._tag)
        if cancel:
            with suppress(Exception):  # the session itself may be gone
                self._spark.interruptTag(self._tag)

    def _heard(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if threading.get_ident() == self._thread:
            for stage in stages or ():
                self._tell(stage.num_completed_tasks, stage.num_tasks)
