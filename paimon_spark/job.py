"""A running Spark job: its name in the Spark UI, its progress, and its cancellation if the caller stops waiting.

Spark reports how many tasks of a stage have finished, but not which. The largest tasks start first, so progress assumes
that they finish first. A classic session is polled twice a second; a Connect server sends its progress.
"""

import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from types import TracebackType
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.engine import Progress
from paimon_spark.internals import is_classic

_SECONDS = 0.5  # between two polls of a classic session
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


class Job:
    """A context manager around the action of one job.

    Args:
        spark: the session.
        name: the name of the job in the Spark UI.
        sizes: bytes of each task of the last stage, in the order in which the tasks start.
        progress: called with the bytes done and the total bytes. The bytes done never decrease, and equal the total
            when the job succeeds. `None`: no reports.
    """

    def __init__(self, spark: SparkSession, name: str, sizes: Sequence[int], progress: Progress | None) -> None:
        self._progress = progress
        self._after = [0, *accumulate(sizes)]
        self._reported = -1
        self._watch = (_Classic if is_classic(spark) else _Connect)(spark, name, self._report)

    def __enter__(self) -> "Job":
        self._watch.start(watching=self._progress is not None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.end(cancel=error is not None)
        if error is None:
            self._report(len(self._after) - 1, len(self._after) - 1)

    def _report(self, done: int, tasks: int) -> None:
        """Report that `done` of the `tasks` of a stage have finished."""
        if tasks != len(self._after) - 1 or done <= self._reported or self._progress is None:
            return
        self._reported = done
        self._progress(self._after[done], self._after[-1])


class _Classic:
    """A job group for the jobs of this thread; another thread polls Spark for their progress."""

    def __init__(self, spark: SparkSession, name: str, report: Any) -> None:
        self._context, self._name, self._report = spark.sparkContext, name, report
        self._group = f"paimon-{uuid.uuid4()}"
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._before: dict[str, str | None] = {}

    def start(self, *, watching: bool) -> None:
        self._before = {key: self._context.getLocalProperty(key) for key in (_GROUP, _DESCRIPTION)}
        self._context.setLocalProperty(_GROUP, self._group)
        self._context.setLocalProperty(_DESCRIPTION, self._name)
        if watching:
            self._watcher = threading.Thread(target=self._watch_stages, name="paimon-progress", daemon=True)
            self._watcher.start()

    def end(self, *, cancel: bool) -> None:
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()
        if cancel:
            with suppress(Exception):  # the session itself may have ended
                self._context.cancelJobGroup(self._group)
        for key, value in self._before.items():
            self._context.setLocalProperty(key, value)  # type: ignore[arg-type]

    def _watch_stages(self) -> None:
        tracker = self._context.statusTracker()
        while not self._ended.wait(_SECONDS):
            with suppress(Exception):  # a failed poll must not fail the job
                jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
                stages = sorted(stage for job in jobs if job is not None for stage in job.stageIds)
                for info in map(tracker.getStageInfo, stages):
                    if info is not None:
                        self._report(info.numCompletedTasks, info.numTasks)


class _Connect:
    """A tag for the operations of this thread; the server's messages report their progress."""

    def __init__(self, spark: SparkSession, name: str, report: Any) -> None:
        self._spark, self._report = spark, report
        self._tag = f"paimon-{uuid.uuid4()}"
        self._thread = threading.get_ident()
        self._watching = False

    def start(self, *, watching: bool) -> None:
        self._watching = watching
        self._spark.addTag(self._tag)
        if watching:
            self._spark.registerProgressHandler(self._on_progress)  # type: ignore[arg-type]

    def end(self, *, cancel: bool) -> None:
        if self._watching:
            self._spark.removeProgressHandler(self._on_progress)  # type: ignore[arg-type]
        self._spark.removeTag(self._tag)
        if cancel:
            with suppress(Exception):  # the session itself may have ended
                self._spark.interruptTag(self._tag)

    def _on_progress(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if threading.get_ident() == self._thread:
            for stage in stages or ():
                self._report(stage.num_completed_tasks, stage.num_tasks)
