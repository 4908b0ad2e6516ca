"""Metrics of HTTP requests for Prometheus: counts by status, and durations."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import Counter

from recollect.tools.telemetry import prometheus_text

TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counts of this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._took: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self.running = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        with self._guard:
            self._requests[route, status] += 1
            took = self._took.setdefault(route, [0] * (len(_BOUNDS) + 1))
            took[bisect.bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """Return the metrics in the Prometheus text format, including tool metrics if telemetry is on."""
        with self._guard:
            lines = ["# TYPE recollect_http_requests_total counter"]
            lines += [
                f'recollect_http_requests_total{{route="{route}",status="{status}"}} {number}'
                for (route, status), number in sorted(self._requests.items())
            ]
            lines.append("# TYPE recollect_http_request_seconds histogram")
            for route, took in sorted(self._took.items()):
                name = f'recollect_http_request_seconds_bucket{{route="{route}",le='
                sums = list(itertools.accumulate(took))
                lines += [f'{name}"{bound}"}} {number}' for bound, number in zip((*_BOUNDS, "+Inf"), sums, strict=True)]
                lines.append(f'recollect_http_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'recollect_http_request_seconds_count{{route="{route}"}} {sums[-1]}')
            lines += ["# TYPE recollect_http_requests_running gauge", f"recollect_http_requests_running {self.running}"]
        return "\n".join(lines) + "\n" + prometheus_text()
