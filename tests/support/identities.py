"""Fixture for authentication tests: an embedded cluster, a manually refreshed cluster view, and an adjustable clock.

In: a folder. Out: a Room. Never: mocks a cluster.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from argosy.errors import ClusterError
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.kube.client import Cluster
from argosy.kube.controller.cache import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.web.auth.accounts import decode_secret_data
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.caller import BadCredential, Caller, RequestCredentials
from argosy.web.auth.login_codes import LoginCodes
from argosy.web.auth.passwords import PasswordHasher
from support.engine import LeapingClock, embedded, furnish

NAMESPACE = "argocd"
CHEAP = 4  # cost of a password hash
KINDS = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("argoproj.io", "AppProject"))
Callback = Callable[[Manifest | None, Manifest | None], None]


@dataclass
class Glance:
    """A cluster view for authentication: a cache with change callbacks that is refreshed only by `look`."""

    cluster: Cluster
    cache: InformerCache = field(default_factory=InformerCache)
    callbacks: list[Callback] = field(default_factory=list)
    render_cache: RenderCache = field(default_factory=lambda: RenderCache(cast(Any, None), AppMemos()))  # never renders

    def add_listener(self, callback: Callback) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    async def look(self) -> None:
        for kind in KINDS:
            live = {
                key_of(manifest): manifest for manifest in (await self.cluster.list(kind, namespace=NAMESPACE)).items
            }
            for key in [key for key in self.cache.keys(kind) if key not in live]:
                self._tell(self.cache.drop(key), None)
            for manifest in live.values():
                self._tell(self.cache.put(manifest), manifest)

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        if before != after:
            for callback in self.callbacks:
                callback(before, after)


@dataclass
class Room:
    cluster: Cluster
    folder: Path
    clock: LeapingClock = field(default_factory=LeapingClock)

    def __post_init__(self) -> None:
        self.glance = Glance(self.cluster)
        self.codes = LoginCodes(self.folder, lambda: self.clock.now().timestamp())
        self.identities = self.server(self.glance)

    def server(self, glance: Glance | None = None, hashing: PasswordHasher | None = None) -> Authenticator:
        """Create another authenticator without the in-memory state of the first."""
        return Authenticator(
            self.cluster, glance or Glance(self.cluster), NAMESPACE, cookie="argosy-1", codes=self.codes,
            clock=self.clock, hashing=hashing or PasswordHasher(CHEAP), min_login_seconds=0.0,
        )  # fmt: skip

    async def settings(self, name: str = "argocd-cm", **data: str | None) -> None:
        """Write a settings ConfigMap; two underscores in a key become a dot."""
        settings = {key.replace("__", "."): value for key, value in data.items()}
        await self._put("ConfigMap", name, settings)

    async def secrets(self, **data: str | None) -> None:
        values = {key.replace("__", "."): value for key, value in data.items()}
        await self._put("Secret", "argocd-secret", {
            key: None if value is None else base64.b64encode(value.encode()).decode() for key, value in values.items()
        })  # fmt: skip

    async def _put(self, kind: str, name: str, data: Mapping[str, Any]) -> None:
        key = ResourceKey("", kind, NAMESPACE, name)
        try:
            await self.cluster.patch(key, {"data": data})
        except ClusterError as error:
            if error.code != 404:
                raise
            metadata = {"name": name, "namespace": NAMESPACE}
            await self.cluster.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": dict(data)})
        await self.glance.look()

    async def secret(self, name: str = "argocd-secret") -> dict[str, bytes]:
        return decode_secret_data(await self.cluster.get(ResourceKey("", "Secret", NAMESPACE, name)))

    async def account(self, name: str, password: str = "", capabilities: str = "apiKey, login") -> None:
        await self.settings(**{f"accounts__{name}": capabilities})
        if password:
            await self.identities.account_store.set_password(name, password)
            await self.glance.look()
            self.clock.leap(2)

    async def who(self, token: str, how: str = "bearer") -> Caller | None:
        credentials = RequestCredentials(bearer=token) if how == "bearer" else RequestCredentials(cookies={how: token})
        return await self.identities.identify(credentials)

    async def is_refused(self, token: str, how: str = "bearer") -> bool:
        try:
            return await self.who(token, how) is None
        except BadCredential:
            return True


@asynccontextmanager
async def identity_room(folder: Path) -> AsyncIterator[Room]:
    folder.mkdir(parents=True, exist_ok=True)
    async with embedded(folder) as cluster:
        await furnish(cluster, NAMESPACE)
        room = Room(cluster, folder / "codes")
        await room.settings()
        await room.identities.prepare()
        await room.glance.look()
        room.clock.leap(2)
        yield room


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with identity_room(tmp_path) as test_room:
        yield test_room
