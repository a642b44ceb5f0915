"""Parses the Prometheus text format, slightly more strictly than Prometheus.

In: text. Out: the value of each series. Never: accepts invalid text, or a duplicate family or series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
LINE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|NaN)")
KINDS = ("counter", "gauge", "histogram")
SUFFIXES = ("_bucket", "_sum", "_count")

Labels = frozenset[tuple[str, str]]


class Series(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def read(text: str) -> list[Series]:
    assert text.endswith("\n") or not text
    all_series: list[Series] = []
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    seen_keys: set[tuple[str, Labels]] = set()
    current = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, about = line.removeprefix("# HELP ").partition(" ")
            assert name not in helped | kinds.keys() and about, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            current, _, kind = line.removeprefix("# TYPE ").partition(" ")
            assert kind in KINDS and current not in kinds and re.fullmatch(NAME, current), line
            kinds[current] = kind
        else:
            series = _series(line)
            family = series.name if kinds.get(current) != "histogram" else _base(series.name)
            assert family == current, f"{line} is not below its own type"
            key = series.name, frozenset(series.labels.items())
            assert key not in seen_keys, f"{line} is told twice"
            seen_keys.add(key)
            all_series.append(series)
    _check_histograms(all_series, [name for name, kind in kinds.items() if kind == "histogram"])
    return all_series


def _series(line: str) -> Series:
    match = LINE.fullmatch(line)
    assert match, line
    labels = dict(_labels(match[2] or "", line))
    return Series(match[1], labels, float(match[3].replace("+Inf", "inf")))


def _labels(text: str, line: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, line
        yield match[1], re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], match[2])
        at = match.end()


def _base(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def _check_histograms(all_series: list[Series], names: list[str]) -> None:
    """Check that buckets are sorted and cumulative, and that the +Inf bucket equals the count."""
    values = {(series.name, frozenset(series.labels.items())): series.value for series in all_series}
    for name in names:
        rows: dict[Labels, list[Series]] = {}
        for series in all_series:
            if series.name == f"{name}_bucket":
                other_labels = frozenset((label, value) for label, value in series.labels.items() if label != "le")
                rows.setdefault(other_labels, []).append(series)
        for other_labels, buckets in rows.items():
            bounds = [float(series.labels["le"].replace("+Inf", "inf")) for series in buckets]
            counts = [series.value for series in buckets]
            assert bounds == sorted(bounds) and counts == sorted(counts) and bounds[-1] == float("inf"), name
            assert values[f"{name}_count", other_labels] == counts[-1] and values[f"{name}_sum", other_labels] >= 0


def some(all_series: list[Series], name: str, /, **labels: str) -> list[Series]:
    return [series for series in all_series if series.name == name and labels.items() <= series.labels.items()]


def one(all_series: list[Series], name: str, /, **labels: str) -> float:
    (series,) = some(all_series, name, **labels)
    return series.value
