"""Claims Applications that several replicas share, with a fencing number that each new owner raises.

In: an Application, the members that share the work. Out: the Application with our fence. Never: starts a pass on an
Application that another member owns, or that was read before another member owned it.
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
    """Return the name to shard by: the Application, not its destination, so that all members share a large cluster."""
    return f"{key.namespace}/{key.name}"


class Claims:
    def __init__(self, members: Members) -> None:
        self.members = members
        self._fences: dict[ResourceKey, str] = {}  # the fences that we wrote
        self._ours: set[ResourceKey] = set()  # as of the last update, plus later claims

    def has(self, key: ResourceKey) -> bool:
        """True if this member owns it, also if it is never reconciled, such as a paused one."""
        return self.members.standing(name_of(key)) is not Standing.ELSEWHERE

    def forget(self, key: ResourceKey) -> None:
        """Drop the state of a deleted Application."""
        self._fences.pop(key, None)
        self._ours.discard(key)

    @contextmanager
    def step(self, key: ResourceKey) -> Iterator[Standing]:
        """While the context is open, writes are refused as soon as ownership is lost."""
        with self.members.step(name_of(key)) as standing:
            yield standing

    def changed(self, keys: Iterable[ResourceKey]) -> tuple[set[ResourceKey], set[ResourceKey]]:
        """Return the keys that this member gained and those that it lost since the last call."""
        ours = {key for key in keys if self.has(key)}
        come, gone = ours - self._ours, self._ours - ours
        self._ours = ours
        for key in gone:
            self._fences.pop(key, None)  # it is claimed again later, because another member may own it meanwhile
        return come, gone

    async def claim(self, app: Manifest, cluster: Cluster) -> Manifest:
        """Return the Application with our fence. Raises Conflict if it is not the version that was read.

        Later writes with the version that was read prove that no other member has claimed it since.
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
        if self.has(key):  # otherwise a later update must report it as gained
            self._ours.add(key)
        return claimed


def number_of(fence: str) -> int:
    number = fence.partition("/")[0]
    return int(number) if number.isdecimal() else 0
