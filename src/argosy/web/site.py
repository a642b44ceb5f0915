"""What is served: an installation, who may see it, and under which names.

In: values that `app` puts together. Out: Site. Never: knows how any of it came to be.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from argosy.gitops.application_client.client import Desk

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import Lookout
    from argosy.web.auth.authenticator import Identities

T = TypeVar("T")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class LiveUpdates(Protocol):
    """Streams of changed page fragments, as `web.live_updates.hub.Hub` makes them."""

    @property
    def mark(self) -> str: ...

    def stream(self, request: Any, /) -> AsyncGenerator[bytes, None]: ...


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


@dataclass(frozen=True)
class Site:
    desk: Desk
    lookout: Lookout
    identities: Identities
    hub: LiveUpdates | None = None  # None: nothing is live
    options: ServeOptions = field(default_factory=ServeOptions)
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)

    def part(self, make: Callable[[], T]) -> T:
        """What a part of this server remembers between requests; made when it is first asked for."""
        if make not in self.kept:
            self.kept[make] = make()
        found: T = self.kept[make]
        return found
