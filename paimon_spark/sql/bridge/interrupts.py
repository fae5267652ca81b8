"""Ctrl-C: the jobs of an interrupted statement end with it, and so does a statement between two jobs."""

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
"""Seconds that Ctrl-C waits for the JVM to hear of it."""


def cancel_jobs_on_interrupt(context: SparkContext) -> None:
    """Make Ctrl-C cancel the jobs that run, which PySpark's handler of the signal means to do.

    That handler asks the JVM in the interrupted thread, whose connection waits for the answer of the statement: the
    call fails, and the jobs run on unseen. A handler that is not PySpark's is left alone, and so are threads other than
    the main one, which cannot set a handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if getattr(signal.getsignal(signal.SIGINT), "__module__", "") != SparkContext.__module__:
        return

    def cancel() -> None:
        try:
            context.cancelAllJobs()
        except (Py4JError, OSError, AttributeError):  # the JVM is gone, or the context is stopped: there are no jobs
            _log.debug("Ctrl-C cancelled no jobs", exc_info=True)

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        note_interrupt()
        other = threading.Thread(target=cancel, daemon=True)  # a thread has a connection of its own
        other.start()
        other.join(_SECONDS)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    answer_outside_of_main_thread(context)
