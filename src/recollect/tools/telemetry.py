"""Metrics and spans of tool calls through OpenTelemetry: names and numbers, nothing of the content, no user.

Off unless MEMORY_TELEMETRY says so. ``otel`` speaks to whatever providers the host has set up; ``otlp`` and
``prometheus:PORT`` set them up, for processes of our own. This module alone names OpenTelemetry.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from recollect.errors import ConfigError, MissingExtraError
from recollect.records import ToolCall
from recollect.tools.tool import Tool

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader

_SCOPE = "recollect"
_guard = threading.Lock()
_begun: set[str] = set()


class OpenTelemetry:
    """Counts calls and times them."""

    def __init__(self) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            raise MissingExtraError("otel", "MEMORY_TELEMETRY") from None
        self._trace = trace
        self._tracer = trace.get_tracer(_SCOPE)
        meter = metrics.get_meter(_SCOPE)
        self._calls = meter.create_counter("memory_tool_calls", description="Calls of memory tools")
        self._success = meter.create_counter("memory_tool_success", description="Calls that were answered")
        self._error = meter.create_counter("memory_tool_error", description="Calls that failed")
        self._patterns = meter.create_counter("memory_tool_pattern", description="What models do before they write")
        self._latency = meter.create_histogram(
            "memory_tool_latency_ms", unit="ms", description="How long calls of memory tools take"
        )

    def called(self, tool: Tool, call: ToolCall, began_ns: int) -> None:
        """A call has been answered."""
        named = {"tool": tool.name, "suite": tool.suite}
        failed = call.status not in ("ok", "refused")
        self._calls.add(1, named | {"status": call.status, "outcome": call.outcome})
        (self._error if failed else self._success).add(1, {"tool": tool.name})
        operation = "db_read" if tool.tier == "read_only" else "db_write"
        self._latency.record(call.latency_ms, {"tool": tool.name, "operation": operation})
        now = time.time_ns()
        span = self._tracer.start_span(
            f"memory_tool {tool.name}",
            start_time=now - (time.perf_counter_ns() - began_ns),
            attributes={
                "memory.tool": tool.name,
                "memory.suite": tool.suite,
                "memory.status": call.status,
                "memory.outcome": call.outcome,
                "memory.call": call.id,
            },
        )
        if failed:
            span.set_status(self._trace.StatusCode.ERROR, call.outcome)
        span.end(now)

    def pattern(self, name: str) -> None:
        """The model behaved in a way that has a name."""
        self._patterns.add(1, {"pattern": name})


def telemetry(setting: str) -> OpenTelemetry | None:
    """What the setting asks for; None for nothing. Exporters are set up once in a process."""
    wanted = [one.strip() for one in setting.split(",") if one.strip() not in ("", "none")]
    if not wanted:
        return None
    with _guard:
        exporters = [one for one in wanted if one != "otel"]
        if exporters and not _begun:
            _set_up(exporters)
            _begun.update(exporters)
        elif new := set(exporters) - _begun:
            raise ConfigError(f"MEMORY_TELEMETRY was set up otherwise in this process already; {min(new)} is new")
    return OpenTelemetry()


def _set_up(exporters: list[str]) -> None:
    readers: list[MetricReader] = []
    for exporter in exporters:
        try:
            readers.append(_otlp() if exporter == "otlp" else _prometheus(exporter))
        except ImportError:
            extra = "otel" if exporter == "otlp" else "prometheus"
            raise MissingExtraError(extra, f"MEMORY_TELEMETRY={exporter}") from None
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider

    metrics.set_meter_provider(MeterProvider(metric_readers=readers))


def _otlp() -> MetricReader:
    """To the collector that the variables of OpenTelemetry itself name (OTEL_EXPORTER_OTLP_ENDPOINT and others)."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracing = TracerProvider()
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracing)
    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _prometheus(exporter: str) -> MetricReader:
    """An endpoint at ``prometheus:PORT``, on this machine only, or at ``prometheus:HOST:PORT``."""
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import start_http_server

    host, _, port = exporter.partition(":")[2].rpartition(":")
    try:
        start_http_server(int(port), addr=host or "127.0.0.1")
    except OSError as error:
        raise ConfigError(f"MEMORY_TELEMETRY={exporter}: cannot listen there ({error.strerror})") from None
    return PrometheusMetricReader()
