"""Merged logs of several containers: labels, time order, and Pods without logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.features.applications.logs.log_line_merge import (
    LogLine,
    build_labels,
    describe_silent_pods,
    find_line_time,
    find_start_time,
    merge_by_time,
)
from argosy.gitops.application_client.resource_actions_and_logs import ContainerLog
from argosy.kube.resource_key import ResourceKey

LONG = "staging-qwen25-05b-instruct-predictor-ppvr8pbsr-x1y2z"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def log(pod: str, container: str) -> ContainerLog:
    return ContainerLog(ResourceKey("", "Pod", "ml", pod), container)


def test_log_labels_shorten_long_names_and_omit_common_parts() -> None:
    one, other = log(LONG, "kserve-container"), log(LONG, "modelcar")
    assert list(build_labels([one, other]).values()) == [("kserve-container",) * 2, ("modelcar",) * 2]
    second = log("web-1", "modelcar")
    assert build_labels([other, second]) == {other: (f"staging-…{LONG[-15:]}", LONG), second: ("web-1", "web-1")}
    assert build_labels([one]) == {one: ("", "")}


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-11-15T12:00:01Z ready", "12:00:01"),
        ("2026-11-15T14:00:01.5+02:00 ready", "12:00:01.500000"),
        ("[2026-11-15 12:00:01,250] INFO ready", "12:00:01.250000"),
        ("INFO 11-15 12:00:01 [api_server.py:7] ready", "12:00:01"),
        ("I1115 12:00:01.000002 1 main.go:3] ready", "12:00:01.000002"),
        ("12:00:01 ready", "12:00:01"),
        ("ready", ""),
        ("2026-13-45T12:00:01Z", ""),
        ("took 99:99:99", ""),
    ],
)
def test_timestamps_are_parsed_in_common_log_formats(line: str, at: str) -> None:
    line_time = find_line_time(line, NOON)
    assert (line_time.time().isoformat() if line_time else "") == at


def test_clock_time_after_midnight_belongs_to_the_next_day() -> None:
    line_time = find_line_time("00:00:05 on", datetime(2026, 11, 15, 23, 59, 58, tzinfo=UTC))
    assert line_time is not None and line_time.day == 16


def test_merged_lines_are_ordered_by_time_and_keep_order_per_container() -> None:
    first = [LogLine("12:00:02 a"), LogLine("  more of a"), LogLine("12:00:01 late"), LogLine("12:00:09 b")]
    second = [LogLine("no time at all"), LogLine("12:00:05 c")]
    lines = merge_by_time([(NOON, first), (NOON, second)])
    assert [line.text for line in lines] == [
        "no time at all", "12:00:02 a", "  more of a", "12:00:01 late", "12:00:05 c", "12:00:09 b",
    ]  # fmt: skip


def test_container_start_time_is_read_from_the_pod_status() -> None:
    running = {"running": {"startedAt": "2026-11-15T12:00:00Z"}}
    pod = {"status": {"containerStatuses": [{"name": "main", "state": running}]}}
    assert (find_start_time(pod, "main"), find_start_time(pod, "other").year, find_start_time(None, "main").year) == (
        NOON,
        1970,
        1970,
    )


def test_pending_pods_state_why_they_have_no_logs() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    pods: dict[str, dict[str, Any]] = {
        "stuck": {"status": {"phase": "Pending", "conditions": [condition]}},
        "young": {"status": {"phase": "Pending"}},
        "quiet": {"status": {"phase": "Running"}},
    }
    assert describe_silent_pods(pods) == [
        "stuck has no logs: Unschedulable: 0/1 nodes",
        "young has no logs: the Pod has not started yet",
    ]
