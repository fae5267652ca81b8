"""Measurements of commits, compactions and scans, as values for listeners, logs and OpenTelemetry."""

from paimon_core.metrics.listeners import OperationMetrics, add_listener, collect, remove_listener
from paimon_core.metrics.values import CommitMetrics, CompactionMetrics, Metrics, ScanMetrics

__all__ = [
    "CommitMetrics",
    "CompactionMetrics",
    "Metrics",
    "OperationMetrics",
    "ScanMetrics",
    "add_listener",
    "collect",
    "remove_listener",
]
