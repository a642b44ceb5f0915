"""Lines of several logs as one: short names, in the order of the times that are known, and who prints nothing.

In: lines by container, Pods. Out: LogLine values, sentences. Never: turns lines of one container around.
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

HEAD, TAIL = 8, 15  # letters of a long name that stay: what differs is at the end
LOOKED_AT: Final = 48  # letters of a line in which its time stands
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK: Final = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?"
# By what programs print: ISO 8601 and Python's logging; vLLM (month and day); klog; a clock alone
_TIMES: Final = (
    re.compile(rf"(?<!\d)(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)[T ]{_CLOCK}(?:Z| ?(?P<z>[+-]\d\d:?\d\d))?"),
    re.compile(rf"(?<![\d-])(?P<M>\d\d)-(?P<D>\d\d) {_CLOCK}"),
    re.compile(rf"^[IWEF](?P<M>\d\d)(?P<D>\d\d) {_CLOCK}"),
    re.compile(rf"(?<![\d:]){_CLOCK}(?![\d:])"),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    pod: str = ""  # and container, as far as they tell lines apart; cut in the middle
    whole: str = ""  # the same, not cut


def labels(logs: Sequence[Log]) -> dict[Log, tuple[str, str]]:
    """What tells each from the others, short and whole; nothing where there is only one."""
    many_pods, many_containers = (len({each[part] for each in logs}) > 1 for part in (0, 1))

    def parts(log: Log) -> list[str]:
        return [log.pod.name] * many_pods + [log.container] * many_containers

    return {log: ("/".join(map(_cut, parts(log))), "/".join(parts(log))) for log in logs}


def _cut(name: str) -> str:
    return name if len(name) <= HEAD + TAIL + 1 else f"{name[:HEAD]}…{name[-TAIL:]}"


def started(pod: Manifest | None, container: str) -> datetime:
    """When it began to print, as far as its Pod tells."""
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
    """The time at the head of a line; what it leaves out of a date is that of `near`."""
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
    """By time; a line without one stands behind the one before it."""
    timed = (_timed(place, began, lines) for place, (began, lines) in enumerate(found))
    return [line for *_, line in heapq.merge(*timed, key=lambda each: each[:3])]


def _timed(place: int, began: datetime, lines: Sequence[LogLine]) -> Iterator[tuple[datetime, int, int, LogLine]]:
    at = began
    for number, line in enumerate(lines):
        at = max(at, printed(line.text, at) or at)
        yield at, place, number, line


def not_started(pods: Mapping[str, Manifest]) -> list[str]:
    """Why Pods print nothing that have not begun."""
    told = []
    for name, pod in pods.items():
        if why := next(iter(waiting(pod)), ""):
            told.append(f"{name} has printed nothing: {why}")
        elif mapping(pod.get("status")).get("phase") == "Pending":
            told.append(f"{name} has printed nothing: it has not started yet")
    return told
