"""Telemetry with its real parts: the SDK of OpenTelemetry, its exporters, HTTP. Providers can be set once in a process,
so each test has processes of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.config import Config
from recollect.errors import ConfigError
from tests.volume import volume

MARK = "zanzibar"
"""It is in everything a person or a model says; it must not be in anything that is exported."""

CALLS = f"""
import asyncio, json, sys
import recollect
from recollect.errors import ConfigError

def use(app, who="{MARK}-user"):
    suite = app.tools(who, "notes", "files", session="{MARK}-session", chat="{MARK}-chat", agent="{MARK}-agent")
    suite.call("memory_save", {{"content": "Went to {MARK} before looking"}})
    suite.call("memory_search", {{"query": "{MARK}"}})
    saved = suite.call("memory_save", {{"content": "The {MARK} trip was long"}})
    assert saved.status == "ok", saved
    suite.call("memory_save", {{"content": "password: {MARK}Hunter2!x9 sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"}})
    suite.call("memory_delete", {{"note_id": "{MARK}"}})
    suite.call("{MARK}_tool", {{"{MARK}": 1}})
    suite.call("memory_save", {{"{MARK}": "x"}})
    suite.call("memory", {{"command": "view", "path": "/memories/{MARK}.md"}})
    suite.call("memory", {{"command": "view", "path": "/memories"}})
    suite.call("memory", {{"command": "create", "path": "/memories/{MARK}.md", "file_text": "Of {MARK} again"}})
    asyncio.run(suite.acall("memory_search", {{"query": "{MARK} trip"}}))
    return suite
"""

IN_MEMORY = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

reader, spans = InMemoryMetricReader(), InMemorySpanExporter()
metrics.set_meter_provider(MeterProvider([reader]))
tracing = TracerProvider()
tracing.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(tracing)
"""


def run(script: str, folder: Path, *arguments: str, **environment: str) -> str:
    """What a script says that succeeds and complains of nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CALLS + script, str(folder), *arguments],
        env=_clean() | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "MEMORY_"))}


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    return number


# what is measured


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All that a host with providers of its own gets to know."""
    script = (
        IN_MEMORY
        + """
with trace.get_tracer("host").start_as_current_span("host"):
    use(recollect.open(sys.argv[1], telemetry="otel"))
    use(recollect.open(sys.argv[1] + "2", telemetry="otel"))  # another app in the same process
said = {"metrics": json.loads(reader.get_metrics_data().to_json())}
said["spans"] = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
print(json.dumps(said))
"""
    )
    found: dict[str, Any] = json.loads(run(script, tmp_path_factory.mktemp("data")))
    return found


def points(told: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    (resource,) = told["metrics"]["resource_metrics"]
    (scope,) = resource["scope_metrics"]
    assert scope["scope"]["name"] == "recollect"
    return {metric["name"]: metric["data"]["data_points"] for metric in scope["metrics"]}


def test_U7_the_metrics_are_those_of_the_seed(told: dict[str, Any]) -> None:
    found = points(told)
    assert found.keys() == {
        "memory_tool_calls", "memory_tool_success", "memory_tool_error", "memory_tool_latency_ms", "memory_tool_pattern",
    }  # fmt: skip
    calls = {
        tuple(point["attributes"][name] for name in ("tool", "suite", "status", "outcome")): point["value"]
        for point in found["memory_tool_calls"]
    }
    assert calls == {
        ("memory_save", "notes", "success", "written"): 4,
        ("memory_search", "notes", "success", "found"): 4,
        ("memory_save", "notes", "refused", "refused:secret"): 2,
        ("memory_delete", "notes", "error", "NotFoundError"): 2,
        ("unknown", "", "invalid", "unknown tool"): 2,
        ("memory_save", "notes", "invalid", "bad arguments"): 2,
        ("memory", "files", "error", "path"): 2,
        ("memory", "files", "success", "found"): 2,
        ("memory", "files", "success", "written"): 2,
    }
    by_tool = {name: {p["attributes"]["tool"]: p["value"] for p in found[name]} for name in found if "pattern" not in name and "latency" not in name and "calls" not in name}  # fmt: skip
    assert by_tool == {
        "memory_tool_success": {"memory_save": 6, "memory_search": 4, "memory": 4},
        "memory_tool_error": {"memory_save": 2, "memory_delete": 2, "memory": 2, "unknown": 2},
    }
    patterns = {point["attributes"]["pattern"]: point["value"] for point in found["memory_tool_pattern"]}
    assert patterns["recall_before_remember"] >= 2 and patterns["remember_without_recall"] == 2


def test_U7_latency_says_what_kind_of_work_it_was(told: dict[str, Any]) -> None:
    found = points(told)["memory_tool_latency_ms"]
    counts = {(point["attributes"]["tool"], point["attributes"]["operation"]): point["count"] for point in found}
    assert counts == {
        ("memory_save", "db_write"): 8,
        ("memory_search", "db_read"): 4,
        ("memory_delete", "db_write"): 2,
        ("unknown", "db_read"): 2,
        ("memory", "db_read"): 2,
        ("memory", "db_write"): 4,
    }
    assert all(200 in point["explicit_bounds"] and point["explicit_bounds"][0] < 1 for point in found)


def test_U7_spans_stand_below_the_hosts_own(told: dict[str, Any]) -> None:
    (host,) = (span for span in told["spans"] if span["name"] == "host")
    spans = [span for span in told["spans"] if span is not host]
    assert len(spans) == 22
    for span in spans:
        assert span["parent_id"] == host["context"]["span_id"]
        assert span["context"]["trace_id"] == host["context"]["trace_id"]
        assert host["start_time"] <= span["start_time"] <= span["end_time"] <= host["end_time"]
        assert span["attributes"].keys() - {"memory.call"} == {
            "memory.tool", "memory.suite", "memory.status", "memory.outcome",
        }  # fmt: skip
        assert span["name"] == f"memory_tool {span['attributes']['memory.tool']}"
        failed = span["attributes"]["memory.status"] not in ("success", "refused")
        assert span["status"]["status_code"] == ("ERROR" if failed else "UNSET")
        assert span["status"].get("description") == (span["attributes"]["memory.outcome"] if failed else None)
    ids = [span["attributes"].get("memory.call", "") for span in spans]
    assert all(one.startswith("call-") for one in ids) and len(set(ids)) == 22


def test_U7_P5_nothing_of_the_content_is_in_it(told: dict[str, Any]) -> None:
    said = json.dumps(told).casefold()
    assert MARK not in said and "hunter2" not in said and "sk-ant" not in said and "/memories" not in said


@pytest.mark.slow
def test_U7_a_host_that_sets_up_later_is_heard_too(tmp_path: Path) -> None:
    script = (
        "app = recollect.open(sys.argv[1], telemetry='otel')\nsuite = use(app)\n"
        + IN_MEMORY
        + """
suite.call("memory_search", {"query": "trip"})
(scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
print(len(scope.metrics), len(spans.get_finished_spans()))
"""
    )
    assert run(script, tmp_path) == "3 1\n"


def test_U7_a_failing_exporter_disturbs_no_call(tmp_path: Path) -> None:
    script = """
import logging
logging.disable()
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

class Broken(SpanProcessor):
    met = 0
    def on_end(self, span):
        Broken.met += 1
        raise RuntimeError("the exporter is broken")

tracing = TracerProvider()
tracing.add_span_processor(Broken())
trace.set_tracer_provider(tracing)
metrics.set_meter_provider(MeterProvider([InMemoryMetricReader()]))
app = recollect.open(sys.argv[1], telemetry="otel")
suite = use(app)
print(Broken.met, suite.call("memory_search", {"query": "trip"}).status, len(app.user("zanzibar-user").calls()))
"""
    assert run(script, tmp_path) == "11 ok 12\n"


# off


def test_U7_off_by_default_nothing_is_imported_and_nobody_is_called(tmp_path: Path) -> None:
    script = """
met = []
sys.addaudithook(lambda event, args: met.append(event) if event.startswith("socket.") else None)
app = recollect.open(sys.argv[1], **json.loads(sys.argv[2]))
suite = app.tools("u1", session="s")
suite.call("memory_save", {"content": "Likes tea"})
suite.call("memory_search", {"query": "tea"})
app.close()
print(met, sorted(name for name in sys.modules if name.startswith(("opentelemetry", "prometheus", "requests"))))
"""
    for settings in ({}, {"telemetry": ""}, {"telemetry": "none"})[: volume(1, 3)]:
        assert run(script, tmp_path, json.dumps(settings)) == "[] []\n"


@pytest.mark.parametrize(
    "wrong",
    ["statsd", "prometheus", "prometheus:", "prometheus:abc", "otel;otlp", "OTLP", "otlp:4318", "prometheus:-1"],
)
def test_U7_a_wrong_setting_is_refused_at_the_start(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="MEMORY_TELEMETRY"):
        recollect.open(tmp_path, telemetry=wrong)
    with pytest.raises(ConfigError, match="MEMORY_TELEMETRY"):
        Config.load({"MEMORY_TELEMETRY": wrong})


BLOCKED = """
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[3] or name.startswith(sys.argv[3] + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
try:
    recollect.open(sys.argv[1], telemetry=sys.argv[2]).tools("u1")
except recollect.RecollectError as error:
    print(error)
"""


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    ("setting", "absent", "extra"),
    [
        ("otel", "opentelemetry", "otel"),
        ("otlp", "opentelemetry", "otel"),
        ("otlp", "opentelemetry.exporter", "otel"),
        ("otlp", "opentelemetry.sdk", "otel"),
        ("prometheus:1", "opentelemetry", "prometheus"),
        ("prometheus:1", "opentelemetry.sdk", "prometheus"),
        ("prometheus:1", "prometheus_client", "prometheus"),
        ("otlp,prometheus:1", "opentelemetry.exporter.prometheus", "prometheus"),
        ("otlp,prometheus:1", "opentelemetry.exporter.otlp", "otel"),
    ],
)
def test_U7_a_package_that_is_missing_is_named_in_one_line(
    setting: str, absent: str, extra: str, tmp_path: Path
) -> None:
    said = run(BLOCKED, tmp_path, setting, absent)
    assert said.count("\n") == 1 and "MEMORY_TELEMETRY" in said and f"'recollect[{extra}]'" in said


# prometheus


def test_U7_prometheus_reads_it(tmp_path: Path, port: int) -> None:
    script = """
app = recollect.open(sys.argv[1])
use(app)
use(recollect.open(sys.argv[1] + "2"))
print("ready", flush=True)
sys.stdin.readline()
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CALLS + script, str(tmp_path / "data")],
        env=_clean() | {"MEMORY_TELEMETRY": f"prometheus:{port}"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
    finally:
        _, complaints = process.communicate("\n", timeout=60)
    assert process.returncode == 0 and complaints == ""
    values = {line.split("{")[0]: line for line in text.splitlines() if not line.startswith("#")}
    assert values.keys() == {
        "memory_tool_calls_total", "memory_tool_success_total", "memory_tool_error_total", "memory_tool_pattern_total",
        "memory_tool_latency_ms_bucket", "memory_tool_latency_ms_count", "memory_tool_latency_ms_sum", "target_info",
    }  # fmt: skip
    (saved,) = [line for line in text.splitlines() if line.startswith("memory_tool_calls_total{") and 'outcome="written"' in line and 'suite="notes"' in line]  # fmt: skip
    assert 'tool="memory_save"' in saved and saved.endswith(" 4.0")
    assert 'pattern="recall_before_remember"' in text and 'service_name="recollect"' in text
    assert MARK not in text.casefold()


def test_U7_a_port_in_use_is_told_and_nothing_is_half_set_up(tmp_path: Path, port: int) -> None:
    script = """
from opentelemetry import metrics, trace
for setting in json.loads(sys.argv[2]):
    try:
        recollect.open(sys.argv[1], telemetry=setting).tools("u1")
    except ConfigError as error:
        print(error)
    print(type(metrics.get_meter_provider()).__name__, type(trace.get_tracer_provider()).__name__)
"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        settings = [f"prometheus:{busy}", f"otlp,prometheus:{port},prometheus:{busy}", "prometheus:99999", "prometheus:nowhere.invalid:1", f"prometheus:{port}"]  # fmt: skip
        said = run(script, tmp_path, json.dumps(settings)).splitlines()
    none = "_ProxyMeterProvider ProxyTracerProvider"
    assert said[0].startswith(f"MEMORY_TELEMETRY=prometheus:{busy}: cannot listen there (") and "in use" in said[0]
    assert said[2].startswith(f"MEMORY_TELEMETRY=prometheus:{busy}: cannot listen there (")
    assert said[4].startswith("MEMORY_TELEMETRY=prometheus:99999: cannot listen there (")
    assert said[6].startswith("MEMORY_TELEMETRY=prometheus:nowhere.invalid:1: cannot listen there (")
    assert said[1] == said[3] == said[5] == said[7] == none
    assert said[8:] == ["MeterProvider ProxyTracerProvider"]  # the port that was opened for nothing is free again


@pytest.mark.slow
def test_U7_it_is_set_up_once_in_a_process(tmp_path: Path, port: int) -> None:
    script = """
for setting in json.loads(sys.argv[2]):
    try:
        recollect.open(sys.argv[1], telemetry=setting).tools("u1")
        print("fine")
    except ConfigError as error:
        print(error)
"""
    one = f"prometheus:{port}"
    settings = [f" {one} , {one},none", one, "otel", "none", f"{one},otel", f"otlp,{one}"]
    said = run(script, tmp_path, json.dumps(settings)).splitlines()
    assert said == ["fine"] * 5 + ["MEMORY_TELEMETRY was already set up differently in this process; otlp is new"]


@pytest.mark.everyday(1)
@pytest.mark.parametrize("setting", ["otlp", "prometheus:1"])
def test_U7_a_host_that_has_providers_is_told_to_use_them(setting: str, tmp_path: Path) -> None:
    script = (
        IN_MEMORY
        + """
try:
    recollect.open(sys.argv[1], telemetry=sys.argv[2]).tools("u1")
except ConfigError as error:
    print(error)
"""
    )
    said = run(script, tmp_path, setting)
    assert said.startswith(f"MEMORY_TELEMETRY={setting} sets up") and "use MEMORY_TELEMETRY=otel" in said


# otlp


class Collector(ThreadingHTTPServer):
    """Takes what is sent to it, and says that it is fine."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), _Receive)


class _Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.everyday(1)
@pytest.mark.parametrize("ending", ["", "app.close()", "sys.exit(0)"])
def test_U7_otlp_sends_all_before_the_process_ends(collector: Collector, tmp_path: Path, ending: str) -> None:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    where = f"http://127.0.0.1:{collector.server_port}"
    run(f"app = recollect.open(sys.argv[1])\nuse(app)\n{ending}", tmp_path, MEMORY_TELEMETRY="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=where)  # fmt: skip
    spans: Counter[str] = Counter()
    names: set[str] = set()
    for path, body in collector.received:
        assert MARK.encode() not in body.lower() and b"hunter2" not in body.lower()
        if path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                assert _attributes(traced.resource.attributes)["service.name"] == "recollect"
                spans.update(span.name for scope in traced.scope_spans for span in scope.spans)
        else:
            assert path == "/v1/metrics"
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                names |= {metric.name for scope in measured.scope_metrics for metric in scope.metrics}
    assert spans == {
        "memory_tool memory_save": 4, "memory_tool memory_search": 2, "memory_tool memory": 3,
        "memory_tool memory_delete": 1, "memory_tool unknown": 1,
    }  # fmt: skip
    assert names == {
        "memory_tool_calls", "memory_tool_success", "memory_tool_error", "memory_tool_latency_ms", "memory_tool_pattern",
    }  # fmt: skip


def _attributes(pairs: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in pairs}


@pytest.mark.slow
def test_U7_the_name_of_the_service_is_the_operators_to_choose(collector: Collector, tmp_path: Path) -> None:
    where = f"http://127.0.0.1:{collector.server_port}"
    run("use(recollect.open(sys.argv[1]))", tmp_path, MEMORY_TELEMETRY="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=where, OTEL_SERVICE_NAME="our-bot")  # fmt: skip
    assert collector.received and all(b"our-bot" in body for _, body in collector.received)


@pytest.mark.slow
def test_U7_a_collector_that_is_not_there_disturbs_nobody(tmp_path: Path, port: int) -> None:
    script = """
import logging
logging.disable()
app = recollect.open(sys.argv[1])
suite = use(app)
print(suite.call("memory_search", {"query": "trip"}).status, app.user("zanzibar-user").verify())
"""
    said = run(script, tmp_path, MEMORY_TELEMETRY="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}", OTEL_EXPORTER_OTLP_TIMEOUT="2")  # fmt: skip
    assert said == "ok []\n"
