"""Metrics of requests and stored objects, in Prometheus' text format and with Kubernetes' names."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator

from argosy.observability.metrics import Family, Sample, one, text
from argosy.sandbox.store import Store


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: Counter[tuple[str, int]] = Counter()

    def answered(self, method: str, code: int) -> None:
        self._answers[method, code] += 1

    def text(self) -> str:
        answered = sorted(self._answers.items())
        answers = [Sample({"verb": method, "code": str(code)}, count) for (method, code), count in answered]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return text([
            Family("apiserver_request_total", "counter", "", answers),
            Family("apiserver_storage_objects", "gauge", "", self._objects()),
            one("argosy_store_revision", "gauge", "", self._store.revision),
            one("process_resident_memory_bytes", "gauge", "", memory),
        ])  # fmt: skip

    def _objects(self) -> Iterator[Sample]:
        for bucket in sorted(self._store.buckets()):
            group, _, plural = bucket.rpartition("/")
            yield Sample({"resource": f"{plural}.{group}" if group else plural}, self._store.count(bucket))
