"""A cluster client that records the RBAC attributes of each call.

In: any cluster client. Out: the same interface, and (verb, group, resource) of each call. Never: refuses a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send

T = TypeVar("T")
Right = tuple[str, str, str]
RBAC_VERBS = {"apply": "patch", "replace": "update"}


class RecordedCluster(ForwardingCluster):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.used: set[Right] = set()

    async def _note(self, call: Call) -> None:
        kind, subresource = call.kind, call.subresource
        if call.subresource_of is not None:
            kind, subresource = call.subresource_of.group_kind, call.kind.kind.lower()
        info = (await self._cluster.kinds()).get(kind)
        plural = info.plural if info else f"{kind.kind.lower()}s"
        verb = RBAC_VERBS.get(call.method, call.method)
        self.used.add((verb, kind.group, f"{plural}/{subresource}" if subresource else plural))

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method != "kinds":
            await self._note(call)
        return await send()

    async def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        if call.method == "watch":
            await self._note(call)
        async for item in open_stream():
            yield item
