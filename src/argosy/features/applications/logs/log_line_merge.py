"""Merge the lines of several logs by time, with short labels, and describe Pods without logs.

In: lines by container, Pods. Out: LogLine values, sentences. Never: reorders the lines of one container.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from argosy.gitops.application_client.resource_actions_and_logs import ContainerLog
from argosy.gitops.application_client.stuck_pods import list_waiting_reasons
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest

NAME_HEAD_LENGTH, NAME_TAIL_LENGTH = 8, 15  # characters kept of a long name: names differ at the end
MAX_TIMESTAMP_OFFSET: Final = 48  # characters of a line searched for a timestamp
UNKNOWN_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_PATTERN: Final = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
# Common log formats: ISO 8601 and Python's logging; vLLM (month and day); klog; time only
_TIMESTAMP_PATTERNS: Final = (
    re.compile(rf"(?<!\d)(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)[T ]{_CLOCK_PATTERN}(?:Z| ?(?P<z>[+-]\d\d:?\d\d))?"),
    re.compile(rf"(?<![\d-])(?P<M>\d\d)-(?P<D>\d\d) {_CLOCK_PATTERN}"),
    re.compile(rf"^[IWEF](?P<M>\d\d)(?P<D>\d\d) {_CLOCK_PATTERN}"),
    re.compile(rf"(?<![\d:]){_CLOCK_PATTERN}(?![\d:])"),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    pod: str = ""  # Pod and container, as far as needed to tell lines apart; shortened in the middle
    whole: str = ""  # the same, not shortened


def build_labels(logs: Sequence[ContainerLog]) -> dict[ContainerLog, tuple[str, str]]:
    """Return a short and a full label that distinguish each log; empty if there is only one."""
    many_pods, many_containers = (len({item[part] for item in logs}) > 1 for part in (0, 1))

    def list_label_parts(log: ContainerLog) -> list[str]:
        return [log.pod.name] * many_pods + [log.container] * many_containers

    return {log: ("/".join(map(_shorten_name, list_label_parts(log))), "/".join(list_label_parts(log))) for log in logs}


def _shorten_name(name: str) -> str:
    return (
        name
        if len(name) <= NAME_HEAD_LENGTH + NAME_TAIL_LENGTH + 1
        else f"{name[:NAME_HEAD_LENGTH]}…{name[-NAME_TAIL_LENGTH:]}"
    )


def find_start_time(pod: Manifest | None, container: str) -> datetime:
    """Return the start time of the container from the status of its Pod."""
    status = as_mapping((pod or {}).get("status"))
    for container_status in as_mappings(status.get("containerStatuses")):
        state = as_mapping(container_status.get("state"))
        started_at = as_mapping(state.get("running") or state.get("terminated")).get("startedAt")
        if container_status.get("name") == container and started_at:
            return _parse_time(str(started_at)) or UNKNOWN_START
    return UNKNOWN_START


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def find_line_time(line: str, reference: datetime) -> datetime | None:
    """Find the timestamp at the start of a line; missing parts of the date are those of `reference`."""
    time_match = next(
        (match for candidate in _TIMESTAMP_PATTERNS if (match := candidate.search(line[:MAX_TIMESTAMP_OFFSET]))), None
    )
    if time_match is None:
        return None
    parts: Mapping[str, Any] = {"Y": None, "M": None, "D": None, "z": None, **time_match.groupdict()}
    year, month, day = (int(parts[candidate]) if parts[candidate] else None for candidate in "YMD")
    microseconds = int((parts["f"] or "0").ljust(6, "0")[:6])
    zone = parts["z"] or "+00:00"
    utc_offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    clock = (int(parts["h"]), int(parts["m"]), int(parts["s"]), microseconds)
    try:
        moment = (
            datetime(year or reference.year, month or reference.month, day or reference.day, *clock, tzinfo=UTC)
            - utc_offset
        )
    except (ValueError, OverflowError):
        return None
    is_next_day = day is None and reference - moment > timedelta(hours=12)
    return moment + timedelta(days=1) if is_next_day else moment


def merge_by_time(lines_by_start: Sequence[tuple[datetime, Sequence[LogLine]]]) -> list[LogLine]:
    """Merge lines by time; a line without a timestamp follows the line before it."""
    timed_lines = (
        _add_times(log_index, started_at, lines) for log_index, (started_at, lines) in enumerate(lines_by_start)
    )
    return [line for *_, line in heapq.merge(*timed_lines, key=lambda entry: entry[:3])]


def _add_times(
    log_index: int, started_at: datetime, lines: Sequence[LogLine]
) -> Iterator[tuple[datetime, int, int, LogLine]]:
    moment = started_at
    for number, line in enumerate(lines):
        moment = max(moment, find_line_time(line.text, moment) or moment)
        yield moment, log_index, number, line


def describe_silent_pods(pods: Mapping[str, Manifest]) -> list[str]:
    """Describe why Pods that have not started have no logs."""
    sentences = []
    for name, pod in pods.items():
        if reason := next(iter(list_waiting_reasons(pod)), ""):
            sentences.append(f"{name} has no logs: {reason}")
        elif as_mapping(pod.get("status")).get("phase") == "Pending":
            sentences.append(f"{name} has no logs: the Pod has not started yet")
    return sentences
