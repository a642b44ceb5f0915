"""Counters and histograms in the Prometheus text format.

In: numbers with labels. Out: metric families, and their text. Never: keeps more than MAX_SERIES series of one name
(further ones are counted together); writes a label with a line break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_SERIES: Final = 2000  # per metric name
MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"

Labels = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""  # appended to the name; only in histograms


@dataclass(frozen=True)
class Family:
    """All series of one metric name. `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    about: str
    samples: Iterable[Sample] = ()


def text(families: Iterable[Family]) -> str:
    return "".join(f"{line}\n" for each in families for line in _lines(each))


def one(name: str, kind: str, about: str, value: float, /, **labels: str) -> Family:
    return Family(name, kind, about, [Sample(labels, value)])


def _lines(family: Family) -> Iterator[str]:
    if family.about:
        yield f"# HELP {family.name} {_escaped(family.about, quotes=False)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        told = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
        yield f"{family.name}{sample.suffix}{f'{{{told}}}' if told else ''} {_number(sample.value)}"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(round(value, 6))


def _escaped(value: str, *, quotes: bool = True) -> str:
    shown = value.replace("\\", r"\\").replace("\n", r"\n")
    return shown.replace('"', r"\"") if quotes else shown


@dataclass
class Counts:
    """A counter with labels."""

    name: str
    about: str = ""
    sums: dict[Labels, float] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], by: float = 1) -> None:
        known = _bounded(self.sums, labels)
        self.sums[known] = self.sums.get(known, 0) + by

    def forget(self, is_gone: Callable[[Mapping[str, str]], bool]) -> None:
        """Remove series of objects that no longer exist."""
        self.sums = {labels: value for labels, value in self.sums.items() if not is_gone(dict(labels))}

    def family(self) -> Family:
        found = [Sample(dict(labels), value) for labels, value in sorted(self.sums.items())]
        return Family(self.name, "counter", self.about, found)


@dataclass
class Histogram:
    """A histogram with labels; `bounds` are the upper bounds of its buckets."""

    name: str
    bounds: tuple[float, ...]
    about: str = ""
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def observe(self, value: float, labels: Mapping[str, str]) -> None:
        known = _bounded(self.counts, labels)
        counts = self.counts.setdefault(known, [0] * (len(self.bounds) + 1))
        for number, bound in enumerate(self.bounds):
            counts[number] += value <= bound
        counts[-1] += 1
        self.sums[known] = self.sums.get(known, 0.0) + max(value, 0.0)

    def family(self) -> Family:
        return Family(self.name, "histogram", self.about, self._samples())

    def _samples(self) -> Iterator[Sample]:
        for labels, counts in sorted(self.counts.items()):
            for bound, count in zip((*map(str, self.bounds), "+Inf"), counts):
                yield Sample({**dict(labels), "le": bound}, count, "_bucket")
            yield Sample(dict(labels), self.sums[labels], "_sum")
            yield Sample(dict(labels), counts[-1], "_count")


def _bounded(series: Mapping[Labels, object], labels: Mapping[str, str]) -> Labels:
    wanted = tuple(sorted(labels.items()))
    if wanted in series or len(series) < MOST_SERIES:
        return wanted
    return tuple((name, OTHER) for name, _ in wanted)
