"""The exporter to OpenTelemetry, with a reader of what it recorded."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from paimon_core.metrics import otel


@pytest.fixture
def reader():
    reader = InMemoryMetricReader()
    otel.install(MeterProvider([reader]))
    yield reader
    otel.uninstall()
