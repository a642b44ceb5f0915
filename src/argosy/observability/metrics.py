"""Counters and histograms in the Prometheus text format.

In: numbers with labels. Out: metric families, and their text. Never: keeps more than MAX_SERIES series of one name
(further ones are counted together); writes a label with a line break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_SERIES: Final = 2000  # per metric name
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER_LABEL_VALUE: Final = "other"

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""  # appended to the name; only in histograms


@dataclass(frozen=True)
class MetricFamily:
    """All series of one metric name. `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    description: str
    samples: Iterable[Sample] = ()


def render_families(families: Iterable[MetricFamily]) -> str:
    return "".join(f"{line}\n" for family in families for line in _render_family(family))


def build_family(name: str, kind: str, description: str, value: float, /, **labels: str) -> MetricFamily:
    return MetricFamily(name, kind, description, [Sample(labels, value)])


def _render_family(family: MetricFamily) -> Iterator[str]:
    if family.description:
        yield f"# HELP {family.name} {_escape(family.description, quotes=False)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        labels_text = ",".join(f'{label}="{_escape(value)}"' for label, value in sample.labels.items())
        yield (
            f"{family.name}{sample.suffix}{f'{{{labels_text}}}' if labels_text else ''} {_format_number(sample.value)}"
        )


def _format_number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(round(value, 6))


def _escape(value: str, *, quotes: bool = True) -> str:
    escaped = value.replace("\\", r"\\").replace("\n", r"\n")
    return escaped.replace('"', r"\"") if quotes else escaped


@dataclass
class LabeledCounter:
    """A counter with labels."""

    name: str
    description: str = ""
    sums: dict[Labels, float] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], amount: float = 1) -> None:
        series = _limit_series(self.sums, labels)
        self.sums[series] = self.sums.get(series, 0) + amount

    def remove_series(self, is_gone: Callable[[Mapping[str, str]], bool]) -> None:
        """Remove series of objects that no longer exist."""
        self.sums = {labels: value for labels, value in self.sums.items() if not is_gone(dict(labels))}

    def to_family(self) -> MetricFamily:
        samples = [Sample(dict(labels), value) for labels, value in sorted(self.sums.items())]
        return MetricFamily(self.name, "counter", self.description, samples)


@dataclass
class Histogram:
    """A histogram with labels; `bounds` are the upper bounds of its buckets."""

    name: str
    bounds: tuple[float, ...]
    description: str = ""
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def observe(self, value: float, labels: Mapping[str, str]) -> None:
        series = _limit_series(self.counts, labels)
        counts = self.counts.setdefault(series, [0] * (len(self.bounds) + 1))
        for index, bound in enumerate(self.bounds):
            counts[index] += value <= bound
        counts[-1] += 1
        self.sums[series] = self.sums.get(series, 0.0) + max(value, 0.0)

    def to_family(self) -> MetricFamily:
        return MetricFamily(self.name, "histogram", self.description, self._samples())

    def _samples(self) -> Iterator[Sample]:
        for labels, counts in sorted(self.counts.items()):
            for bound, count in zip((*map(str, self.bounds), "+Inf"), counts):
                yield Sample({**dict(labels), "le": bound}, count, "_bucket")
            yield Sample(dict(labels), self.sums[labels], "_sum")
            yield Sample(dict(labels), counts[-1], "_count")


def _limit_series(series: Mapping[Labels, object], labels: Mapping[str, str]) -> Labels:
    key = tuple(sorted(labels.items()))
    if key in series or len(series) < MAX_SERIES:
        return key
    return tuple((name, OTHER_LABEL_VALUE) for name, _ in key)
