"""A cluster client that crashes the caller before or after its n-th call, like kill -9.

All later calls crash too, because a dead process makes no calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from argosy.errors import TransientError
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import WRITE_METHODS, Call, ForwardingCluster, Send
from argosy.kube.objects import Manifest

T = TypeVar("T")


class Crash(BaseException):
    """Not an Exception, so that the product cannot catch it."""


class CrashingCluster(ForwardingCluster):
    """`point` counts calls from 0. That call crashes before it is sent, or after it is done, and its response is lost.

    If the crash is not fatal, the call fails like a network error and the caller continues.
    """

    def __init__(
        self,
        inner: Cluster,
        point: int | None = None,
        *,
        after: bool = False,
        created: list[Manifest] | None = None,
        is_fatal: bool = True,
    ) -> None:
        super().__init__(inner)
        self._point, self._after, self._is_fatal = point, after, is_fatal
        self.calls: list[str] = []
        self.created = [] if created is None else created  # everything that was created, even if the response was lost
        self.is_dead = False

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if call.partition(" ")[0] in WRITE_METHODS]

    async def _send(self, call: Call, send: Send[T]) -> T:
        index = self._meet()
        self.calls.append(f"{call.method} {_about(call)}")
        answer = await send()
        if call.method == "create" and isinstance(answer, dict):
            self.created.append(answer)
        if index == self._point and self._after:
            self._die()
        return answer

    async def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        self._meet()
        async for item in open_stream():
            yield item

    def _meet(self) -> int:
        if self.is_dead:
            raise Crash
        index = len(self.calls)
        if index == self._point and not self._after:
            self.calls.append("")  # it must count, otherwise the next call would crash again
            self._die()
        return index

    def _die(self) -> None:
        if not self._is_fatal:
            raise TransientError("connection lost")
        self.is_dead = True
        raise Crash


def _about(call: Call) -> str:
    return f"{call.kind.kind}/{call.key.name if call.key else '*'}" if call.kind.kind else ""
