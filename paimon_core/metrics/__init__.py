"""Measurements of commits, compactions, scans and reads, as values for listeners, logs and OpenTelemetry."""

from paimon_core.metrics.listeners import OperationMetrics, add_listener, collect, remove_listener
from paimon_core.metrics.values import CommitMetrics, CompactionMetrics, Metrics, ReadMetrics, ScanMetrics

__all__ = [
    "CommitMetrics",
    "CompactionMetrics",
    "Metrics",
    "OperationMetrics",
    "ReadMetrics",
    "ScanMetrics",
    "add_listener",
    "collect",
    "remove_listener",
]
