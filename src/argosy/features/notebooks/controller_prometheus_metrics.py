"""Counters and histograms in the Prometheus text format, with the names of the original operator.

In: observations. Out: text. Never: uses labels with arbitrary user values, except the namespace and the job name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from argosy.observability.metrics import Histogram, LabeledCounter, MetricFamily, Sample, render_families

PREFIX: Final = "notebookvalidationjob_"
RECONCILE_BUCKETS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
RUN_BUCKETS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)


class NotebookMetrics:
    """One instance per process."""

    def __init__(self) -> None:
        self._counters: dict[str, LabeledCounter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._phases: dict[str, tuple[str, str]] = {}  # by job uid: namespace and phase

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        self._counters.setdefault(name, LabeledCounter(name)).add(labels)

    def observe(
        self, name: str, seconds: float, labels: Mapping[str, str], bounds: tuple[float, ...] = RECONCILE_BUCKETS
    ) -> None:
        self._histograms.setdefault(name, Histogram(name, bounds)).observe(max(seconds, 0.0), labels)

    def set_phase(self, uid: str, namespace: str, phase: str) -> None:
        """Set the current phase of a job; "" if it was deleted."""
        if phase:
            self._phases[uid] = (namespace, phase)
        else:
            self._phases.pop(uid, None)

    def render(self) -> str:
        counter_families = [metric.to_family() for _, metric in sorted(self._counters.items())]
        histogram_families = [metric.to_family() for _, metric in sorted(self._histograms.items())]
        return render_families([*counter_families, self._build_active_family(), *histogram_families])

    def _build_active_family(self) -> MetricFamily:
        """Counted on every scrape, so that it is right for any number of jobs."""
        phase_counts = sorted(Counter(self._phases.values()).items())
        samples = [
            Sample({"namespace": namespace, "phase": phase}, count) for (namespace, phase), count in phase_counts
        ]
        return MetricFamily(f"{PREFIX}active_pods", "gauge", "", samples)
