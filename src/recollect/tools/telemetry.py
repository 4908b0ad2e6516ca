"""Metrics and spans of tool calls through OpenTelemetry: names and numbers, never content or users.

Off unless MEMORY_TELEMETRY is set. ``otel`` uses the providers that the host has set up; ``otlp`` and
``prometheus:PORT`` set them up, for our own processes. Only this module imports OpenTelemetry.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from recollect.errors import ConfigError, MissingExtraError
from recollect.records import ToolCall
from recollect.tools.tool import Tool

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from prometheus_client import CollectorRegistry

_SCOPE = "recollect"
_BOUNDS = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000]
"""The bucket boundaries of the histogram, in milliseconds."""
_READ = frozenset({"found", "empty"})
"""Outcomes that mean that a tool which can read and write has read."""

_guard = threading.Lock()
_begun: set[str] = set()


class OpenTelemetry:
    """Counts and times calls."""

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
        # no unit: the name has it already, as in the seed, and Prometheus would append it again
        self._latency = meter.create_histogram(
            "memory_tool_latency_ms",
            description="How long calls of memory tools take, in milliseconds",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )

    def called(self, tool: Tool, call: ToolCall, began_ns: int) -> None:
        """Record a finished call."""
        took = time.perf_counter_ns() - began_ns
        now = time.time_ns()
        named = {"tool": tool.name, "suite": tool.suite}
        failed = call.status not in ("ok", "refused")
        status = "success" if call.status == "ok" else call.status
        self._calls.add(1, named | {"status": status, "outcome": call.outcome})
        (self._error if failed else self._success).add(1, {"tool": tool.name})
        reads = tool.tier == "read_only" or call.outcome in _READ
        self._latency.record(call.latency_ms, {"tool": tool.name, "operation": "db_read" if reads else "db_write"})
        attributes = {
            "memory.tool": tool.name,
            "memory.suite": tool.suite,
            "memory.status": status,
            "memory.outcome": call.outcome,
            "memory.call": call.id,
        }
        span = self._tracer.start_span(f"memory_tool {tool.name}", start_time=now - took, attributes=attributes)
        if failed:
            span.set_status(self._trace.StatusCode.ERROR, call.outcome)
        span.end(now)

    def pattern(self, name: str) -> None:
        """Count a behaviour of the model."""
        self._patterns.add(1, {"pattern": name})


def telemetry(setting: str) -> OpenTelemetry | None:
    """Return the telemetry of a setting, or None if it is off. Exporters are set up once per process."""
    wanted = [one for one in dict.fromkeys(setting.replace(" ", "").split(",")) if one not in ("", "none")]
    if not wanted:
        return None
    exporters = [one for one in wanted if one != "otel"]
    with _guard:
        if exporters and not _begun:
            _set_up(exporters)
            _begun.update(exporters)
        elif new := set(exporters) - _begun:
            raise ConfigError(f"MEMORY_TELEMETRY was already set up differently in this process; {min(new)} is new")
    return OpenTelemetry()


_served: list[CollectorRegistry] = []
"""The registry for Prometheus, if it is on."""


def prometheus_text() -> str:
    """Return the metrics of tool calls in the Prometheus format; empty if it is off."""
    if not _served:
        return ""
    from prometheus_client import generate_latest

    return generate_latest(_served[-1]).decode()


def _set_up(exporters: list[str]) -> None:
    """Set up exporters, all or none. The providers come last, because they can be set only once."""
    serving = [one for one in exporters if one != "otlp"]
    readers: list[MetricReader] = []
    tracing: TracerProvider | None = None
    missing = "prometheus" if serving else "otel"
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider

        _check_unclaimed(metrics.get_meter_provider(), exporters)
        if "otlp" in exporters:
            _check_unclaimed(trace.get_tracer_provider(), exporters)
            missing = "otel"
            _import_otlp()
            missing = "prometheus"
        if serving:
            readers.append(_start_endpoints(serving))
    except ImportError:
        raise MissingExtraError(missing, f"MEMORY_TELEMETRY={','.join(exporters)}") from None
    resource = _resource()
    if "otlp" in exporters:
        reader, tracing = _otlp(resource)
        readers.append(reader)
    metrics.set_meter_provider(MeterProvider(metric_readers=readers, resource=resource))
    if tracing is not None:
        trace.set_tracer_provider(tracing)


def _check_unclaimed(provider: object, exporters: list[str]) -> None:
    """Raise an error if the host has already set up providers, because they cannot be replaced."""
    if not type(provider).__name__.lstrip("_").startswith("Proxy"):
        raise ConfigError(
            f"MEMORY_TELEMETRY={','.join(exporters)} sets up OpenTelemetry, but this process has already done so;"
            " use MEMORY_TELEMETRY=otel instead"
        )


def _resource() -> Resource:
    """Return the resource from OpenTelemetry's own variables, with the default service name recollect."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: _SCOPE}))
    return found


def _import_otlp() -> None:
    import opentelemetry.exporter.otlp.proto.http.metric_exporter
    import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401


def _otlp(resource: Resource) -> tuple[MetricReader, TracerProvider]:
    """Return the exporters to the collector that OpenTelemetry's own variables name (OTEL_EXPORTER_OTLP_ENDPOINT …)."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return PeriodicExportingMetricReader(OTLPMetricExporter()), tracing


def _start_endpoints(exporters: list[str]) -> MetricReader:
    """Serve our metrics, and nothing else of the process, at ``prometheus:PORT`` (this machine only) or
    ``prometheus:HOST:PORT``."""
    from opentelemetry.exporter.prometheus import PrometheusMetricReader
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    _served.append(registry)
    begun: list[WSGIServer] = []
    for exporter in exporters:
        host, _, port = exporter.partition(":")[2].rpartition(":")
        try:
            begun.append(start_http_server(int(port), addr=host or "127.0.0.1", registry=registry)[0])
        except (OSError, OverflowError, ValueError) as error:
            for server in begun:
                server.shutdown()
                server.server_close()
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"MEMORY_TELEMETRY={exporter}: cannot listen there ({why})") from None
    return PrometheusMetricReader(registry=registry)
