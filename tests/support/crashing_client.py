"""A cluster behind which the caller dies: before or after its n-th call, as by kill -9.

Everything that the caller tries afterwards dies as well: a dead process does nothing any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from argosy.errors import TransientError
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest

WRITES = frozenset({"create", "apply", "replace", "patch", "delete"})


class Crash(BaseException):
    """Not an Exception: nothing in the product may catch it."""


class CrashingCluster:
    """`point` counts calls from 0; a call that is met dies before it is done, or after, with its answer lost.

    Where that is not fatal, the call fails as if the network had, and the caller lives on.
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
        self.created = [] if created is None else created  # all that ever was, whoever saw the answer
        self.is_dead = False

    @property
    def writes(self) -> list[str]:
        return [call for call in self.calls if call.partition(" ")[0] in WRITES]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return found if name in ("acting_as",) or not callable(found) else self._guarded(name, found)

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        if name in ("watch", "logs"):

            async def streamed(*given: Any, **more: Any) -> AsyncIterator[Any]:
                self._meet()
                async for each in call(*given, **more):
                    yield each

            return streamed

        async def guarded(*given: Any, **more: Any) -> Any:
            place = self._meet()
            self.calls.append(f"{name} {_about(given)}")
            answer = await call(*given, **more)
            if name == "create":
                self.created.append(answer)
            if place == self._point and self._after:
                self._die()
            return answer

        return guarded

    def _meet(self) -> int:
        if self.is_dead:
            raise Crash
        place = len(self.calls)
        if place == self._point and not self._after:
            self.calls.append("")  # it counts, or the next one would be met again
            self._die()
        return place

    def _die(self) -> None:
        if not self._is_fatal:
            raise TransientError("connection lost")
        self.is_dead = True
        raise Crash


def _about(given: tuple[Any, ...]) -> str:
    if not given:
        return ""
    first = given[0]
    if isinstance(first, dict):
        return f"{first.get('kind')}/{(first.get('metadata') or {}).get('name')}"
    return f"{first.kind}/{getattr(first, 'name', '*')}"
