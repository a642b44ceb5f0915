"""Short-lived cache of Events. Events are not watched, and every open page needs them.

In: namespaces. Out: their Events, and a message if they are stale or missing. Never: raises, because pages work without
Events; drops cached Events while the cluster is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.events import EVENT
from argosy.kube.objects import Manifest
from argosy.web.request import Asked

SECONDS: Final = 4.0  # timeout of one list request
LEAST, LONGEST, OF_THOUSAND = 0.5, 10.0, 2.0  # seconds a list stays valid: longer, the more Events it returned
MOST: Final = 100  # cached namespaces
CLUSTER_WIDE: Final = "default"  # k8s: namespace that holds Events of cluster-scoped objects


@dataclass
class Place:
    events: list[Manifest] = field(default_factory=list)
    asked: float = -LONGEST
    read: datetime | None = None
    fault: str = ""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_good_for(self) -> float:
        return min(LEAST + OF_THOUSAND * len(self.events) / 1000, LONGEST)


class Heard:
    def __init__(self) -> None:
        self.places: dict[str, Place] = {}


@dataclass(frozen=True, slots=True)
class Told:
    events: list[Manifest]
    fault: str = ""


async def everywhere(asked: Asked) -> Told:
    return await _of(asked, "")


async def of_namespaces(asked: Asked, namespaces: Iterable[str], *, is_fresh: bool = False) -> Told:
    """List Events of namespaces; "" means cluster-scoped objects. `is_fresh` bypasses the cache (page load)."""
    wanted = sorted({each or CLUSTER_WIDE for each in namespaces})
    found = await asyncio.gather(*(_of(asked, each, is_fresh=is_fresh) for each in wanted))
    faults = dict.fromkeys(each.fault for each in found if each.fault)
    return Told([event for each in found for event in each.events], "; ".join(faults))


async def _of(asked: Asked, namespace: str, *, is_fresh: bool = False) -> Told:
    places, time = asked.site.part(Heard).places, asyncio.get_running_loop().time
    place = places.pop(namespace, None) or Place()
    places[namespace] = place  # most recently used last; the first is evicted
    while len(places) > MOST:
        del places[next(iter(places))]
    arrived = time()
    async with place.turn:
        if arrived - place.asked >= (0 if is_fresh else place.is_good_for):
            place.asked = time()
            await _ask(asked, namespace, place)
    return Told(place.events, place.fault)


async def _ask(asked: Asked, namespace: str, place: Place) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            place.events = list((await asked.site.desk.cluster.list(EVENT, namespace=namespace)).items)
    except (ClusterError, TransientError, TimeoutError) as error:
        why = "the cluster does not answer" if isinstance(error, TimeoutError) else str(error).partition("; ")[0]
        since = f"showing those read at {place.read:%H:%M:%S}" if place.read else "showing none"
        place.fault = f"cannot read Events ({why}): {since}"
        return
    place.read, place.fault = clock(), ""
