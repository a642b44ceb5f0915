"""Site: the services of one installation that the web server uses, and its serving options.

In: values that the start-up code builds. Out: Site. Never: knows how they were built.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from argosy.gitops.application_client.client import ApplicationService

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import ClusterView
    from argosy.web.auth.authenticator import Authenticator

T = TypeVar("T")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


class LiveUpdates(Protocol):
    """Streams of changed page fragments; implemented by `web.live_updates.hub.LivePageHub`."""

    @property
    def position(self) -> str: ...

    def stream(self, request: Any, /) -> AsyncGenerator[bytes, None]: ...


@dataclass(frozen=True)
class ServeOptions:
    origin: str = ""  # such as https://argosy.example.com; empty: derived from the Host header
    hosts: tuple[str, ...] = LOOPBACK_HOSTS  # without a port
    is_loopback: bool = True
    is_tls: bool = False
    is_simulated: bool = False
    repository: Path | None = None  # delivery repository, for promotions
    notebook_runs_folder: Path | None = None  # data folder of a local cluster, which stores its notebook runs
    version: str = ""
    title: str = "argosy"
    port: int = 0  # part of the cookie name, so that two servers on one machine do not share a cookie


@dataclass(frozen=True)
class Site:
    service: ApplicationService
    cluster_view: ClusterView
    authenticator: Authenticator
    hub: LiveUpdates | None = None  # None: no live updates
    options: ServeOptions = field(default_factory=ServeOptions)
    module_state: dict[Any, Any] = field(default_factory=dict, repr=False)

    def get_module_state(self, factory: Callable[[], T]) -> T:
        """Return the state that a module keeps between requests; created on first use."""
        if factory not in self.module_state:
            self.module_state[factory] = factory()
        state: T = self.module_state[factory]
        return state
