"""Wires the control plane of the embedded cluster: store, catalog, authorization, registry and controllers.

In: the paths of its files, or None to keep everything in memory. Out: a running control plane.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from argosy.errors import UserError
from argosy.kube.client.file_permissions import check_private
from argosy.kube.client.private_files import write_private
from argosy.sandbox.apiserver.authentication import Identity
from argosy.sandbox.apiserver.authorization import Access
from argosy.sandbox.apiserver.cel_rules import Rules
from argosy.sandbox.apiserver.controllers import bootstrap
from argosy.sandbox.apiserver.controllers.controller import Keeper
from argosy.sandbox.apiserver.controllers.crd_controller import Definitions
from argosy.sandbox.apiserver.controllers.event_expiry import expire
from argosy.sandbox.apiserver.controllers.garbage_collector import Garbage
from argosy.sandbox.apiserver.controllers.namespace_controller import Namespaces
from argosy.sandbox.apiserver.deletion import Deletion
from argosy.sandbox.apiserver.listing import Lister
from argosy.sandbox.apiserver.metadata import Clock, utc_now
from argosy.sandbox.apiserver.rbac import Rbac
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.registry_call import ADMIN
from argosy.sandbox.apiserver.resource_catalog import Catalog
from argosy.sandbox.apiserver.subresources import Actions
from argosy.sandbox.apiserver.tokens import Tokens
from argosy.sandbox.store import Event, Store, holds_store

ENCRYPTED = frozenset({"secrets"})
KEY_BYTES = 32
MAX_WATCHES_PER_USER = 5_000  # several controllers may share an account, each with a watch per kind


@dataclass(frozen=True)
class Folder:
    """Paths of the control plane's files. The caller creates their folder."""

    database: Path
    secret_key: Path
    token_key: Path
    certificate: Path | None = None


@dataclass(frozen=True)
class Plane:
    store: Store
    registry: Registry
    actions: Actions
    deletion: Deletion
    lister: Lister
    tokens: Tokens
    identity: Identity
    measured: list[Callable[[], str]] = field(default_factory=list)  # further sources of /metrics, as text
    max_watches_per_user: int = MAX_WATCHES_PER_USER

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        folder: Folder | None = None,
        *,
        rbac: bool = False,
        admin_token: str = "",
        in_memory: bool = False,
        max_watches_per_user: int = MAX_WATCHES_PER_USER,
        clock: Clock = utc_now,
    ) -> AsyncIterator[Plane]:
        store = await _open_store(None if in_memory else folder)
        rules = Rules()
        try:
            plane = cls._assembled(store, folder, rules, rbac=rbac, admin_token=admin_token, clock=clock)
            plane = replace(plane, max_watches_per_user=max_watches_per_user)
            await bootstrap.furnish(plane.registry)
            async with _upkeep(plane.registry, folder):
                yield plane
        finally:
            await rules.close()
            await store.close()

    @classmethod
    def _assembled(
        cls, store: Store, folder: Folder | None, rules: Rules, *, rbac: bool, admin_token: str, clock: Clock
    ) -> Plane:
        catalog = Catalog()
        catalog.load(store)
        registry = Registry(store, catalog, Access(Rbac(store) if rbac else None), rules, clock=clock)
        tokens = Tokens(
            folder.token_key if folder else None,
            lambda *account: _uid(store, "serviceaccounts", *account),
            lambda *secret: _uid(store, "secrets", *secret),
        )
        identity = Identity(store, tokens, ADMIN, admin_token or secrets.token_urlsafe(32), clock)
        actions = Actions(registry, tokens, identity.reviewed)
        return cls(store, registry, actions, Deletion(registry), Lister(store), tokens, identity)


async def _open_store(folder: Folder | None) -> Store:
    if folder is None:
        return await Store.open(None)
    await asyncio.to_thread(check_private, folder.database)
    key = await asyncio.to_thread(_secret_key, folder.secret_key, folder.database)
    await asyncio.to_thread(check_private, folder.token_key)
    return await Store.open(folder.database, key=key, encrypted_buckets=ENCRYPTED)


def _secret_key(file: Path, database: Path) -> bytes:
    """Load the key that encrypts Secrets at rest. It is created before the store, and only its owner can read it."""
    if not file.exists():
        if holds_store(database):
            reset = f"argosy sandbox reset --data-dir {shlex.quote(str(database.parent))}"
            message = f"is missing; restore it (it was created with this store), or remove all objects with: {reset}"
            raise UserError(message, where=str(file))
        write_private(file, secrets.token_bytes(KEY_BYTES))
    check_private(file)
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        message = f"has {len(key)} bytes instead of {KEY_BYTES}; restore the right key, or reset the sandbox"
        raise UserError(message, where=str(file))
    return key


def _uid(store: Store, bucket: str, namespace: str, name: str) -> str | None:
    entry = store.get(bucket, namespace, name)
    return str(orjson.loads(entry.body)["metadata"]["uid"]) if entry else None


@contextlib.asynccontextmanager
async def _upkeep(registry: Registry, folder: Folder | None) -> AsyncIterator[None]:
    keepers: list[Keeper] = [  # type: ignore[type-arg]
        Namespaces(registry, folder.certificate if folder else None),
        Definitions(registry),
        Garbage(registry),
    ]

    def notice(events: Sequence[Event]) -> None:
        for keeper in keepers:
            keeper.notice(events)

    stop = registry.store.subscribe(notice)
    tasks = [asyncio.create_task(work) for work in (*(keeper.run() for keeper in keepers), expire(registry))]
    try:
        yield
    finally:
        stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
