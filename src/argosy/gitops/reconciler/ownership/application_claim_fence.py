"""Claims Applications that several replicas share, with a fencing number that each new owner raises.

In: an Application, the members that share the work. Out: the Application with our fence. Never: starts a pass on an
Application that another member owns, or that was read before another member owned it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from argosy import annotations as names
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


def build_shard_name(key: ResourceKey) -> str:
    """Return the name to shard by: the Application, not its destination, so that all members share a large cluster."""
    return f"{key.namespace}/{key.name}"


class ApplicationClaims:
    def __init__(self, members: ShardMembership) -> None:
        self.members = members
        self._fences: dict[ResourceKey, str] = {}  # the fences that we wrote
        self._owned: set[ResourceKey] = set()  # as of the last update, plus later claims

    def is_owned(self, key: ResourceKey) -> bool:
        """True if this member owns it, also if it is never reconciled, such as a paused one."""
        return self.members.find_ownership(build_shard_name(key)) is not KeyOwnership.OTHER_MEMBER

    def forget(self, key: ResourceKey) -> None:
        """Drop the state of a deleted Application."""
        self._fences.pop(key, None)
        self._owned.discard(key)

    @contextmanager
    def hold_ownership(self, key: ResourceKey) -> Iterator[KeyOwnership]:
        """While the context is open, writes are refused as soon as ownership is lost."""
        with self.members.begin_step(build_shard_name(key)) as ownership:
            yield ownership

    def update_owned(self, keys: Iterable[ResourceKey]) -> tuple[set[ResourceKey], set[ResourceKey]]:
        """Return the keys that this member gained and those that it lost since the last call."""
        owned = {key for key in keys if self.is_owned(key)}
        gained, lost = owned - self._owned, self._owned - owned
        self._owned = owned
        for key in lost:
            self._fences.pop(key, None)  # it is claimed again later, because another member may own it meanwhile
        return gained, lost

    async def claim(self, app: Manifest, cluster: Cluster) -> Manifest:
        """Return the Application with our fence. Raises Conflict if it is not the version that was read.

        Later writes with the version that was read prove that no other member has claimed it since.
        """
        key, metadata = key_of(app), app["metadata"]
        current_fence = str((metadata.get("annotations") or {}).get(names.FENCE) or "")
        if current_fence and self._fences.get(key) == current_fence:
            return app
        fence = f"{read_fence_number(current_fence) + 1}/{self.members.identity}"
        version = metadata.get("resourceVersion")
        patch = {"metadata": {"resourceVersion": version, "annotations": {names.FENCE: fence}}}
        claimed = await cluster.patch(key, patch, kind_of_patch=PatchKind.MERGE)
        self._fences[key] = fence
        if self.is_owned(key):  # otherwise a later update must report it as gained
            self._owned.add(key)
        return claimed


def read_fence_number(fence: str) -> int:
    number = fence.partition("/")[0]
    return int(number) if number.isdecimal() else 0
