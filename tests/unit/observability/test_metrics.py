"""Metrics with labels, in the Prometheus text format."""

from __future__ import annotations

import pytest

from argosy.observability.metrics import (
    MAX_SERIES,
    OTHER_LABEL_VALUE,
    Histogram,
    LabeledCounter,
    MetricFamily,
    Sample,
    build_family,
    render_families,
)
from support import prometheus_text


def test_rendered_metrics_can_be_parsed() -> None:
    counts, histogram = LabeledCounter("a_total", "How many."), Histogram("seconds", (0.5, 1.0), "How long.")
    for seconds in (0.25, 0.75, 9.0):
        counts.add({"verb": "get"})
        histogram.observe(seconds, {"verb": "get"})
    samples = prometheus_text.read(
        render_families([counts.to_family(), histogram.to_family(), build_family("b", "gauge", "", 0.5)])
    )
    assert prometheus_text.one(samples, "a_total", verb="get") == 3
    buckets = [prometheus_text.one(samples, "seconds_bucket", le=bound) for bound in ("0.5", "1.0", "+Inf")]
    assert buckets == [1, 2, 3] and prometheus_text.one(samples, "seconds_sum") == 10
    assert prometheus_text.one(samples, "b") == 0.5


@pytest.mark.parametrize("value", ['x"} 1\nb{y="', "\\", "\\n", "\n", '"', "ä€\U0001f511", "a,b={}", ""])
def test_label_value_with_special_characters_is_escaped(value: str) -> None:
    samples = [Sample({"name": value, "other": "1"}, 1), Sample({"name": value, "other": "2"}, 2)]
    parsed_samples = prometheus_text.read(
        render_families([MetricFamily("a", "gauge", "Says\nsomething \\ odd.", samples)])
    )
    assert [sample.labels["name"] for sample in parsed_samples] == [value, value]


def test_number_of_series_is_limited() -> None:
    counts, histogram = LabeledCounter("a_total"), Histogram("b", (1.0,))
    for number in range(MAX_SERIES + 7):
        counts.add({"name": str(number)})
        histogram.observe(1, {"name": str(number)})
    samples = prometheus_text.read(render_families([counts.to_family(), histogram.to_family()]))
    assert len(prometheus_text.some(samples, "a_total")) == MAX_SERIES + 1
    assert (
        prometheus_text.one(samples, "a_total", name=OTHER_LABEL_VALUE)
        == prometheus_text.one(samples, "b_count", name=OTHER_LABEL_VALUE)
        == 7
    )


def test_removed_series_is_not_reported() -> None:
    counts = LabeledCounter("a_total")
    for name in ("web", "db"):
        counts.add({"name": name})
    counts.remove_series(lambda labels: labels["name"] == "db")
    assert counts.to_family().samples == [Sample({"name": "web"}, 1)]
