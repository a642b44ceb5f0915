"""Counts of what was answered and what is stored, in Prometheus' text form and with Kubernetes' names."""

from __future__ import annotations

import resource
from collections import Counter

from argosy.apiserver.store import Store

MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: Counter[tuple[str, int]] = Counter()

    def answered(self, method: str, code: int) -> None:
        self._answers[method, code] += 1

    def text(self) -> str:
        lines = ["# TYPE apiserver_request_total counter"]
        for (method, code), count in sorted(self._answers.items()):
            lines.append(f'apiserver_request_total{{verb="{method}",code="{code}"}} {count}')
        lines.append("# TYPE apiserver_storage_objects gauge")
        for bucket in sorted(self._store.buckets()):
            group, _, plural = bucket.rpartition("/")
            name, count = f"{plural}.{group}" if group else plural, self._store.count(bucket)
            lines.append(f'apiserver_storage_objects{{resource="{name}"}} {count}')
        lines.append("# TYPE argosy_store_revision gauge")
        lines.append(f"argosy_store_revision {self._store.revision}")
        lines.append("# TYPE process_resident_memory_bytes gauge")
        lines.append(f"process_resident_memory_bytes {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")
        return "\n".join(lines) + "\n"
