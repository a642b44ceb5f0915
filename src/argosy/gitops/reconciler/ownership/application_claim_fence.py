"""Claims Applications that several replicas share, with a fencing number that each new owner raises.

In: an Application, the members that share the work. Out: the Application with our fence. Never: starts a pass on an
Application that another member owns, or that was read before another member owned it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from argosy import annotations as names
from argosy.gitops.reconciler.app_memo import OwnershipMemos
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


def build_shard_name(key: ResourceKey) -> str:
    """Return the name to shard by: the Application, not its destination, so that all members share a large cluster."""
    return f"{key.namespace}/{key.name}"


class ApplicationClaims:
    def __init__(self, members: ShardMembership, memos: OwnershipMemos) -> None:
        self.members, self._memos = members, memos

    def is_owned(self, key: ResourceKey) -> bool:
        """True if this member owns it, also if it is never reconciled, such as a paused one."""
        return self.members.find_ownership(build_shard_name(key)) is not KeyOwnership.OTHER_MEMBER

    @contextmanager
    def hold_ownership(self, key: ResourceKey) -> Iterator[KeyOwnership]:
        """While the context is open, writes are refused as soon as ownership is lost."""
        with self.members.begin_step(build_shard_name(key)) as ownership:
            yield ownership

    def update_owned(self, keys: Iterable[ResourceKey]) -> tuple[set[ResourceKey], set[ResourceKey]]:
        """Return the keys that this member gained and those that it lost since the last call."""
        owned, owned_before = {key for key in keys if self.is_owned(key)}, self._memos.list_owned()
        gained, lost = owned - owned_before, owned_before - owned
        for key in gained:
            self._memos[key] = replace(self._memos[key], is_owned=True)
        for key in lost:  # it is claimed again later, because another member may own it meanwhile
            self._memos[key] = replace(self._memos[key], is_owned=False, fence="")
        return gained, lost

    async def claim(self, app: Manifest, cluster: Cluster) -> Manifest:
        """Return the Application with our fence. Raises Conflict if it is not the version that was read.

        Later writes with the version that was read prove that no other member has claimed it since.
        """
        key, metadata = key_of(app), app["metadata"]
        current_fence = str((metadata.get("annotations") or {}).get(names.FENCE) or "")
        if current_fence and self._memos[key].fence == current_fence:
            return app
        fence = f"{read_fence_number(current_fence) + 1}/{self.members.identity}"
        version = metadata.get("resourceVersion")
        patch = {"metadata": {"resourceVersion": version, "annotations": {names.FENCE: fence}}}
        claimed = await cluster.patch(key, patch, kind_of_patch=PatchKind.MERGE)
        memo = replace(self._memos[key], fence=fence)
        # if it is not owned, a later update must report it as gained
        self._memos[key] = replace(memo, is_owned=True) if self.is_owned(key) else memo
        return claimed


def read_fence_number(fence: str) -> int:
    number = fence.partition("/")[0]
    return int(number) if number.isdecimal() else 0
