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

from argosy.gitops.application_client.resource_actions import Log
from argosy.gitops.application_client.stuck_pods import waiting
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.objects import Manifest

HEAD, TAIL = 8, 15  # characters kept of a long name: names differ at the end
LOOKED_AT: Final = 48  # characters of a line searched for a timestamp
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK: Final = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
# Common log formats: ISO 8601 and Python's logging; vLLM (month and day); klog; time only
_TIMES: Final = (
    re.compile(rf"(?<!\d)(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)[T ]{_CLOCK}(?:Z| ?(?P<z>[+-]\d\d:?\d\d))?"),
    re.compile(rf"(?<![\d-])(?P<M>\d\d)-(?P<D>\d\d) {_CLOCK}"),
    re.compile(rf"^[IWEF](?P<M>\d\d)(?P<D>\d\d) {_CLOCK}"),
    re.compile(rf"(?<![\d:]){_CLOCK}(?![\d:])"),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    pod: str = ""  # Pod and container, as far as needed to tell lines apart; shortened in the middle
    whole: str = ""  # the same, not shortened


def labels(logs: Sequence[Log]) -> dict[Log, tuple[str, str]]:
    """Return a short and a full label that distinguish each log; empty if there is only one."""
    many_pods, many_containers = (len({each[part] for each in logs}) > 1 for part in (0, 1))

    def parts(log: Log) -> list[str]:
        return [log.pod.name] * many_pods + [log.container] * many_containers

    return {log: ("/".join(map(_cut, parts(log))), "/".join(parts(log))) for log in logs}


def _cut(name: str) -> str:
    return name if len(name) <= HEAD + TAIL + 1 else f"{name[:HEAD]}…{name[-TAIL:]}"


def started(pod: Manifest | None, container: str) -> datetime:
    """Return the start time of the container from the status of its Pod."""
    status = mapping((pod or {}).get("status"))
    for each in mappings(status.get("containerStatuses")):
        state = mapping(each.get("state"))
        at = mapping(state.get("running") or state.get("terminated")).get("startedAt")
        if each.get("name") == container and at:
            return _read(str(at)) or LONG_AGO
    return LONG_AGO


def _read(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def printed(line: str, near: datetime) -> datetime | None:
    """Find the timestamp at the start of a line; missing parts of the date are those of `reference`."""
    found = next((it for each in _TIMES if (it := each.search(line[:LOOKED_AT]))), None)
    if found is None:
        return None
    parts: Mapping[str, Any] = {"Y": None, "M": None, "D": None, "z": None, **found.groupdict()}
    year, month, day = (int(parts[each]) if parts[each] else None for each in "YMD")
    micro = int((parts["f"] or "0").ljust(6, "0")[:6])
    zone = parts["z"] or "+00:00"
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    clock = (int(parts["h"]), int(parts["m"]), int(parts["s"]), micro)
    try:
        at = datetime(year or near.year, month or near.month, day or near.day, *clock, tzinfo=UTC) - away
    except (ValueError, OverflowError):
        return None
    is_next_day = day is None and near - at > timedelta(hours=12)
    return at + timedelta(days=1) if is_next_day else at


def ordered(found: Sequence[tuple[datetime, Sequence[LogLine]]]) -> list[LogLine]:
    """Merge lines by time; a line without a timestamp follows the line before it."""
    timed = (_timed(place, began, lines) for place, (began, lines) in enumerate(found))
    return [line for *_, line in heapq.merge(*timed, key=lambda each: each[:3])]


def _timed(place: int, began: datetime, lines: Sequence[LogLine]) -> Iterator[tuple[datetime, int, int, LogLine]]:
    at = began
    for number, line in enumerate(lines):
        at = max(at, printed(line.text, at) or at)
        yield at, place, number, line


def not_started(pods: Mapping[str, Manifest]) -> list[str]:
    """Describe why Pods that have not started have no logs."""
    told = []
    for name, pod in pods.items():
        if why := next(iter(waiting(pod)), ""):
            told.append(f"{name} has no logs: {why}")
        elif mapping(pod.get("status")).get("phase") == "Pending":
            told.append(f"{name} has no logs: the Pod has not started yet")
    return told
