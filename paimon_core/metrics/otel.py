"""The exporter to OpenTelemetry, which records the metrics of this process with the instruments of a meter.

It needs ``pip install 'pyspark-paimon[otel]'``. The meter provider of the program decides where the metrics go.
"""

from collections.abc import Mapping
from dataclasses import Field, fields
from threading import Lock
from types import ModuleType
from typing import Any, Final

from paimon_core.errors import MissingDependencyError
from paimon_core.metrics.listeners import add_listener, remove_listener
from paimon_core.metrics.values import MEASURE, Measure, Metrics

SCOPE: Final = "paimon_core"
"""The name of the meter."""
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_ATTRIBUTES: Final = {
    "table": "paimon.table",
    "branch": "paimon.branch",
    "commit_kind": "paimon.commit.kind",
    "error": "error.type",
}
_PHASE: Final = "paimon.phase"
_lock = Lock()
_installed: "_Exporter | None" = None


def install(meter_provider: Any = None) -> None:
    """Record the metrics of all later events of this process with OpenTelemetry; a second call replaces the first.

    ``docs/reference/metrics.md`` lists the instruments. ``meter_provider``: a provider of ``opentelemetry.metrics``;
    `None` selects the global one.
    Raises MissingDependencyError if OpenTelemetry is not installed.
    """
    global _installed
    exporter = _Exporter(_api(), meter_provider)
    with _lock:
        if _installed is not None:
            remove_listener(_installed)
        add_listener(exporter)
        _installed = exporter


def uninstall() -> None:
    """Stop recording metrics. Does nothing without an earlier `install`."""
    global _installed
    with _lock:
        if _installed is not None:
            remove_listener(_installed)
        _installed = None


def _api() -> ModuleType:
    try:
        import opentelemetry.metrics as api  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise MissingDependencyError(
            "metrics for OpenTelemetry need opentelemetry-api; pip install 'pyspark-paimon[otel]'"
        ) from error
    module: ModuleType = api
    return module


class _Exporter:
    """A listener that records counts with counters, durations with histograms, and last values with gauges."""

    def __init__(self, api: ModuleType, provider: Any) -> None:
        self._meter = api.get_meter(SCOPE) if provider is None else provider.get_meter(SCOPE)
        self._instruments: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, metrics: Metrics) -> None:
        measured = [(f, f.metadata[MEASURE]) for f in fields(metrics) if f.metadata]
        values = {f.name: getattr(metrics, f.name) for f, _ in measured}
        attributes = {name: values[key] for key, name in _ATTRIBUTES.items() if values.get(key) is not None}
        for field, measure in measured:
            if measure.kind != "attribute":
                self._record(metrics, field, measure, attributes)

    def _record(self, metrics: Metrics, field: "Field[Any]", measure: Measure, attributes: Mapping[str, Any]) -> None:
        instrument, value = self._instrument(metrics.event, measure), getattr(metrics, field.name)
        parts = value.items() if isinstance(value, Mapping) else [(None, value)]
        for phase, number in parts:
            described = dict(attributes) if phase is None else {**attributes, _PHASE: phase}
            if measure.kind == "histogram":
                instrument.record(number, described)
            elif measure.kind == "gauge":
                instrument.set(number, described)
            elif number:
                instrument.add(number, described)

    def _instrument(self, event: str, measure: Measure) -> Any:
        name = f"paimon.{event}.{measure.name}"
        with self._lock:
            if name not in self._instruments:
                self._instruments[name] = self._created(name, measure)
            return self._instruments[name]

    def _created(self, name: str, measure: Measure) -> Any:
        if measure.kind == "counter":
            return self._meter.create_counter(name, measure.unit, measure.text)
        if measure.kind == "gauge":
            return self._meter.create_gauge(name, measure.unit, measure.text)
        return self._meter.create_histogram(
            name, measure.unit, measure.text, explicit_bucket_boundaries_advisory=_BOUNDS
        )
