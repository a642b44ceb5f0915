"""A cluster client that crashes the caller before or after its n-th call, like kill -9.

All later calls crash too, because a dead process makes no calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from argosy.errors import TransientError
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest

WRITES = frozenset({"create", "apply", "replace", "patch", "delete"})


class Crash(BaseException):
    """Not an Exception, so that the product cannot catch it."""


class CrashingCluster:
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
        self._inner, self._point, self._after, self._is_fatal = inner, point, after, is_fatal
        self.calls: list[str] = []
        self.created = [] if created is None else created  # everything that was created, even if the response was lost
        self.is_dead = False

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if call.partition(" ")[0] in WRITES]

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        return attribute if name in ("acting_as",) or not callable(attribute) else self._guarded(name, attribute)

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        if name in ("watch", "logs"):

            async def streamed(*args: Any, **more: Any) -> AsyncIterator[Any]:
                self._meet()
                async for item in call(*args, **more):
                    yield item

            return streamed

        async def guarded(*args: Any, **more: Any) -> Any:
            index = self._meet()
            self.calls.append(f"{name} {_about(args)}")
            answer = await call(*args, **more)
            if name == "create":
                self.created.append(answer)
            if index == self._point and self._after:
                self._die()
            return answer

        return guarded

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


def _about(args: tuple[Any, ...]) -> str:
    if not args:
        return ""
    first = args[0]
    if isinstance(first, dict):
        return f"{first.get('kind')}/{(first.get('metadata') or {}).get('name')}"
    return f"{first.kind}/{getattr(first, 'name', '*')}"
