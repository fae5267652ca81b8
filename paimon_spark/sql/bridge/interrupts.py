"""Handling of Ctrl-C: it cancels the running jobs of a statement, and ends a statement between two jobs."""

import logging
import signal
import threading
from types import FrameType
from typing import NoReturn

from py4j.protocol import Py4JError
from pyspark import SparkContext

from paimon_spark.internals import answer_outside_of_main_thread
from paimon_spark.interruption import note_interrupt

_log = logging.getLogger(__name__)
_SECONDS = 10.0
"""The seconds that Ctrl-C waits for the JVM to cancel jobs."""


def cancel_jobs_on_interrupt(context: SparkContext) -> None:
    """Make Ctrl-C cancel running jobs, which PySpark's signal handler attempts without success.

    PySpark's handler calls the JVM from the interrupted thread, whose connection still waits for the statement. So the
    call fails, and the jobs keep running. Signal handlers of other code stay in place. Only the main thread can set a
    signal handler, so a call in another thread changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") != SparkContext.__module__:
        return

    def cancel() -> None:
        try:
            context.cancelAllJobs()
        except (Py4JError, OSError, AttributeError):  # the JVM has ended or the context is stopped, so no jobs run
            _log.debug("Ctrl-C cancelled no jobs", exc_info=True)

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        note_interrupt()
        canceller = threading.Thread(target=cancel, daemon=True)  # each thread has a separate connection
        canceller.start()
        canceller.join(_SECONDS)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    answer_outside_of_main_thread(context)
