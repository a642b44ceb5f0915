"""Metrics of requests and stored objects, in Prometheus' text format and with Kubernetes' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from argosy.observability.metrics import MetricFamily, Sample, build_family, render_families
from argosy.observability.process_memory import read_resident_bytes
from argosy.sandbox.store import Store


class ApiServerMetrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._responses: Counter[tuple[str, int]] = Counter()

    def count_response(self, method: str, code: int) -> None:
        self._responses[method, code] += 1

    def render(self) -> str:
        counts = sorted(self._responses.items())
        samples = [Sample({"verb": method, "code": str(code)}, count) for (method, code), count in counts]
        return render_families([
            MetricFamily("apiserver_request_total", "counter", "", samples),
            MetricFamily("apiserver_storage_objects", "gauge", "", self._object_count_samples()),
            build_family("argosy_store_revision", "gauge", "", self._store.revision),
            build_family("process_resident_memory_bytes", "gauge", "", read_resident_bytes()),
        ])  # fmt: skip

    def _object_count_samples(self) -> Iterator[Sample]:
        for bucket in sorted(self._store.list_buckets()):
            group, _, plural = bucket.rpartition("/")
            yield Sample({"resource": f"{plural}.{group}" if group else plural}, self._store.count(bucket))
