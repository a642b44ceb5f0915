"""Applications that several controllers share: whose one is, and the number that each new owner raises.

In: an Application, the members that share the work. Out: the same with a fence of ours. Never: lets a step begin on
what another has, or on an Application that was read before another had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from argosy import annotations as names
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller.sharding.members import Members, Standing
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


def name_of(key: ResourceKey) -> str:
    """What is shared out: not the cluster that it is delivered to, so a large one is everybody's work."""
    return f"{key.namespace}/{key.name}"


class Claims:
    def __init__(self, members: Members) -> None:
        self.members = members
        self._fences: dict[ResourceKey, str] = {}  # what we wrote into those that are ours
        self._ours: set[ResourceKey] = set()  # as of the last change, and what was claimed since

    def has(self, key: ResourceKey) -> bool:
        """Whether it is ours, also where nobody works on it: one that is paused is never claimed."""
        return self.members.standing(name_of(key)) is not Standing.ELSEWHERE

    def forget(self, key: ResourceKey) -> None:
        """It is gone."""
        self._fences.pop(key, None)
        self._ours.discard(key)

    @contextmanager
    def step(self, key: ResourceKey) -> Iterator[Standing]:
        """Where it is ours, whatever the step changes is refused as soon as it is not."""
        with self.members.step(name_of(key)) as standing:
            yield standing

    def changed(self, keys: Iterable[ResourceKey]) -> tuple[set[ResourceKey], set[ResourceKey]]:
        """Of all there are, those that are ours since the last time, and those that are no longer."""
        ours = {key for key in keys if self.has(key)}
        come, gone = ours - self._ours, self._ours - ours
        self._ours = ours
        for key in gone:
            self._fences.pop(key, None)  # it is claimed anew: another may have had it meanwhile
        return come, gone

    async def claim(self, app: Manifest, cluster: Cluster) -> Manifest:
        """The Application with our fence. Raises Conflict where it is not what we read: another had it, or edited it.

        From here on each write with the version that was read shows that nobody has claimed it since.
        """
        key, metadata = key_of(app), app["metadata"]
        held = str((metadata.get("annotations") or {}).get(names.FENCE) or "")
        if held and self._fences.get(key) == held:
            return app
        fence = f"{number_of(held) + 1}/{self.members.identity}"
        version = metadata.get("resourceVersion")
        patch = {"metadata": {"resourceVersion": version, "annotations": {names.FENCE: fence}}}
        claimed = await cluster.patch(key, patch, kind_of_patch=PatchKind.MERGE)
        self._fences[key] = fence
        if self.has(key):  # else it may come back, and is to be told
            self._ours.add(key)
        return claimed


def number_of(fence: str) -> int:
    number = fence.partition("/")[0]
    return int(number) if number.isdecimal() else 0
