"""What is served: an installation, who may see it, and under which names.

In: values that `app` puts together. Out: Site. Never: knows how any of it came to be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from argosy.desk.applications.desk import Desk
from argosy.model.manifest import Manifest

if TYPE_CHECKING:
    from argosy.policy.rbac import Permissions
    from argosy.runtime.cache import Cache
    from argosy.server.asked import Asked
    from argosy.server.identity.caller import Caller, Shown

T = TypeVar("T")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class ServeOptions:
    origin: str = ""  # such as https://argosy.example.com; empty: whatever Host a request names
    hosts: tuple[str, ...] = LOOPBACK_HOSTS  # without a port
    is_loopback: bool = True
    is_tls: bool = False
    is_simulated: bool = False
    repository: Path | None = None  # of promotions
    runs: Path | None = None  # the folder of a cluster that runs here, which keeps the runs of its notebooks
    version: str = ""
    title: str = "argosy"
    port: int = 0  # two servers of one machine must not share a cookie


class Identities(Protocol):
    """Who people are, and what they may."""

    async def identify(self, shown: Shown) -> Caller | None:
        """None: nothing was shown. Raises BadCredential where something was that does not count."""

    def still(self, caller: Caller) -> bool:
        """Would they be let in now? Cheap: streams ask every second."""

    def is_past(self, caller: Caller) -> bool:
        """Whether their time is over: they may have been given more of it meanwhile."""

    def may(self, caller: Caller, resource: str, action: str, thing: str) -> bool:
        """argo: by argocd-rbac-cm and the roles of projects."""

    cookie: str  # the name of a session's

    standing: Any  # what the cluster says of identity now
    signing_in: Any  # there and back, by an identity provider
    book: Any  # changes of accounts

    async def login(self, name: str, password: str, *, is_browser: bool = False) -> str:
        """A token; raises BadLogin."""

    async def enter(self, code: str) -> str:
        """A token for a code that counts once; raises BadLogin."""

    async def verify(self, caller: Caller, password: str) -> bool:
        """Whether it is their own password."""

    async def logout(self, caller: Caller) -> None: ...

    def renewed(self, caller: Caller) -> str | None:
        """A token that takes the place of the one in a browser's cookie, when it is time."""

    def permissions(self, caller: Caller) -> Permissions: ...

    @property
    def key(self) -> bytes:
        """argo: server.secretkey. Never shown; other keys are made from it."""


class Lookout(Protocol):
    """All that lives, kept fresh."""

    @property
    def cache(self) -> Cache: ...

    def listen(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]: ...


class Hub(Protocol):
    """Live pages."""

    @property
    def mark(self) -> str:
        """Which changes it has heard of."""

    def stream(self, asked: Asked) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True)
class Site:
    desk: Desk
    lookout: Any  # Lookout
    identities: Identities
    hub: Any = None
    options: ServeOptions = field(default_factory=ServeOptions)
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    def part(self, make: Callable[[], T]) -> T:
        """What a part of this server remembers between requests; made when it is first asked for."""
        if make not in self.kept:
            self.kept[make] = make()
        found: T = self.kept[make]
        return found
