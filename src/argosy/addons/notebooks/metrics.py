"""Counts and durations in Prometheus' text form, under the original's names.

In: what happens. Out: text. Never: a label that a user may make up at will, but for the namespace and the job's name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "notebookvalidationjob_"
RECONCILING: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
RUNNING: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)
MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES: Final = 2000  # of one name; further ones are counted together

Labels = tuple[tuple[str, str], ...]


@dataclass
class Histogram:
    bounds: tuple[float, ...]
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))

    def observe(self, seconds: float, labels: Labels) -> None:
        counts = self.counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        for number, bound in enumerate(self.bounds):
            counts[number] += seconds <= bound
        counts[-1] += 1
        self.sums[labels] += seconds


class Metrics:
    """One for each process."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter[Labels]] = defaultdict(Counter)
        self._histograms: dict[str, Histogram] = {}
        self._phases: dict[str, tuple[str, str]] = {}  # by the uid of a job: its namespace and phase

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        self._counters[name][_bounded(self._counters[name], labels)] += 1

    def observe(
        self, name: str, seconds: float, labels: Mapping[str, str], bounds: tuple[float, ...] = RECONCILING
    ) -> None:
        found = self._histograms.setdefault(name, Histogram(bounds))
        found.observe(max(seconds, 0.0), _bounded(found.counts, labels))

    def stands(self, uid: str, namespace: str, phase: str) -> None:
        """Where a job is now; an empty phase: it is gone."""
        if phase:
            self._phases[uid] = (namespace, phase)
        else:
            self._phases.pop(uid, None)

    def text(self) -> str:
        return "\n".join([*self._counted(), *self._active(), *self._observed()]) + "\n"

    def _counted(self) -> Iterator[str]:
        for name, series in sorted(self._counters.items()):
            yield f"# TYPE {name} counter"
            for labels, count in sorted(series.items()):
                yield f"{name}{_written(labels)} {count}"

    def _active(self) -> Iterator[str]:
        """Counted anew each time, so that it is right however many jobs there are."""
        yield f"# TYPE {PREFIX}active_pods gauge"
        for (namespace, phase), count in sorted(Counter(self._phases.values()).items()):
            yield f"{PREFIX}active_pods{_written((('namespace', namespace), ('phase', phase)))} {count}"

    def _observed(self) -> Iterator[str]:
        for name, histogram in sorted(self._histograms.items()):
            yield f"# TYPE {name} histogram"
            for labels, counts in sorted(histogram.counts.items()):
                for bound, count in zip((*map(str, histogram.bounds), "+Inf"), counts):
                    yield f"{name}_bucket{_written((*labels, ('le', bound)))} {count}"
                yield f"{name}_sum{_written(labels)} {round(histogram.sums[labels], 6)}"
                yield f"{name}_count{_written(labels)} {counts[-1]}"


def _bounded(series: Mapping[Labels, object], labels: Mapping[str, str]) -> Labels:
    wanted = tuple(sorted(labels.items()))
    if wanted in series or len(series) < MOST_SERIES:
        return wanted
    return tuple((name, "other") for name, _ in wanted)


def _written(labels: Labels) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{shown}}}" if shown else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
