"""Parses the Prometheus text format with the parsers of Prometheus' own Python library.

In: text. Out: the value of each series. Never: accepts a type that argosy does not have, a family or series that occurs
twice, buckets that do not add up, or text that the two parsers read differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus_text

KINDS = {"counter", "gauge", "histogram"}
COUNTER_HEADER = re.compile(r"^(# (?:HELP|TYPE) \w+)_total ", re.MULTILINE)


class Series(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def read(text: str) -> list[Series]:
    """OpenMetrics, whose parser is strict, has other names of counters and an end marker."""
    all_series = _list_series(parse_prometheus_text(text))
    assert _list_series(parse_open_metrics(COUNTER_HEADER.sub(r"\1 ", text) + "# EOF\n")) == all_series
    return all_series


def _list_series(families: Iterable[Metric]) -> list[Series]:
    all_series = []
    for family in families:
        assert family.type in KINDS, f"{family.name} has the type {family.type}"
        all_series += [Series(sample.name, sample.labels, sample.value) for sample in family.samples]
    return all_series


def some(all_series: list[Series], name: str, /, **labels: str) -> list[Series]:
    return [series for series in all_series if series.name == name and labels.items() <= series.labels.items()]


def one(all_series: list[Series], name: str, /, **labels: str) -> float:
    (series,) = some(all_series, name, **labels)
    return series.value
