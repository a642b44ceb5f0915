"""A complete site on an embedded cluster with real sign-in, in its own thread.

In: a folder. Out: a SignedInWorld: its URL, and `run` for coroutines in its event loop. Never: mocks.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.features.serve.web_application import open_web_application
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Cluster
from argosy.kube.objects import dump_yaml
from argosy.web.auth.account_password_token_store import AccountStore
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.serve_options import ServeOptions
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, embedded, furnish, shared_crew
from support.oidc_provider import CLIENT, CLIENT_SECRET, IdentityProvider

PASSWORD = "correct horse"
T = TypeVar("T")


class SignedInWorld:
    cluster: Cluster
    identities: Authenticator
    port: int

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.codes = LoginCodes(folder / "codes")
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._failed: BaseException | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(HANG_SECONDS)

    async def account(self, name: str, capabilities: str = "apiKey, login") -> None:
        key = ("ConfigMap", "argocd-cm")
        metadata = {"name": key[1], "namespace": CONTROL}
        data = {f"accounts.{name}": capabilities}
        manifest = {"apiVersion": "v1", "kind": key[0], "metadata": metadata, "data": data}
        await self.cluster.apply(manifest, manager=f"test-{name}", force=True)
        await AccountStore(self.cluster, CONTROL, hashing=PasswordHasher(4)).set_password(name, PASSWORD)

    async def provided(self, provider: IdentityProvider) -> None:
        """Configure sign-in with this provider."""
        config = {
            "name": "Sea Passes", "issuer": provider.url, "rootCA": provider.authority,
            "clientID": CLIENT, "clientSecret": "$oidc.clientSecret",
        }  # fmt: skip
        for kind, name, content in (
            ("Secret", "argocd-secret", {"stringData": {"oidc.clientSecret": CLIENT_SECRET}}),
            ("ConfigMap", "argocd-cm", {"data": {"oidc.config": dump_yaml(config)}}),
        ):
            metadata = {"name": name, "namespace": CONTROL}
            manifest = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}
            await self.cluster.apply(manifest, manager="test-provider", force=True)

    def serve(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failed = error
            self._ready.set()
            raise

    async def _serve(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            self.cluster = await stack.enter_async_context(embedded(self.folder))
            await furnish(self.cluster, CONTROL)
            socket = open_listener("127.0.0.1", 0)
            options = ServeOptions(version="1.2.3", port=socket.getsockname()[1])
            repositories = Repositories(self.folder / "mirrors", SourceSettings())
            stack.callback(repositories.close)
            opened = open_web_application(
                self.cluster, "a test", options, self.folder / "codes", CONTROL, repositories, shared_crew()
            )
            entry = await stack.enter_async_context(opened)
            assert isinstance(entry.site.authenticator, Authenticator)
            self.identities = entry.site.authenticator
            self.port = await stack.enter_async_context(serve_application(entry, [socket], on_closing=entry.close))
            self._ready.set()
            await self._over.wait()

    def ready(self) -> None:
        assert self._ready.wait(HANG_SECONDS)
        if self._failed:
            raise self._failed

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self._over.set)


@contextlib.contextmanager
def signed_in_world(folder: Path) -> Iterator[SignedInWorld]:
    world = SignedInWorld(folder)
    thread = threading.Thread(target=world.serve, daemon=True)
    thread.start()
    world.ready()
    try:
        yield world
    finally:
        world.end()
        thread.join(HANG_SECONDS)
