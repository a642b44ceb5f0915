"""Wires the control plane of the embedded cluster: store, catalog, authorization, registry and controllers.

In: the paths of its files, or None to keep everything in memory. Out: a running control plane.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from argosy.errors import UserError
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.client.private_file_writer import write_private
from argosy.sandbox.apiserver.authentication import TokenAuthenticator
from argosy.sandbox.apiserver.authorization import AccessChecker
from argosy.sandbox.apiserver.cel_rules import CelRuleEvaluator
from argosy.sandbox.apiserver.controllers import bootstrap_objects
from argosy.sandbox.apiserver.controllers.controller import KeyedController
from argosy.sandbox.apiserver.controllers.crd_controller import CrdController
from argosy.sandbox.apiserver.controllers.event_expiry import run_event_expiry
from argosy.sandbox.apiserver.controllers.garbage_collector import GarbageCollector
from argosy.sandbox.apiserver.controllers.namespace_controller import NamespaceController
from argosy.sandbox.apiserver.controllers.token_secret_controller import TokenSecretController
from argosy.sandbox.apiserver.deletion import ObjectDeleter
from argosy.sandbox.apiserver.listing import Lister
from argosy.sandbox.apiserver.metadata import Clock, utc_now
from argosy.sandbox.apiserver.rbac import RbacAuthorizer
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.resource_catalog import ResourceCatalog
from argosy.sandbox.apiserver.service_account_tokens import TOKEN_SECRET_TYPE, ServiceAccountTokens
from argosy.sandbox.apiserver.subresources import SubresourceHandler
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN
from argosy.sandbox.store import Store, StoreEvent, has_store

ENCRYPTED_BUCKETS = frozenset({"secrets"})
SECRET_KEY_BYTES = 32
MAX_WATCHES_PER_USER = 5_000  # several controllers may share an account, each with a watch per kind


@dataclass(frozen=True)
class ControlPlaneFiles:
    """Paths of the control plane's files. The caller creates their folder."""

    database: Path
    secret_key: Path
    token_key: Path
    certificate: Path | None = None


@dataclass(frozen=True)
class ControlPlane:
    store: Store
    registry: Registry
    subresources: SubresourceHandler
    deleter: ObjectDeleter
    lister: Lister
    tokens: ServiceAccountTokens
    authenticator: TokenAuthenticator
    metric_sources: list[Callable[[], str]] = field(default_factory=list)  # further sources of /metrics, as text
    max_watches_per_user: int = MAX_WATCHES_PER_USER

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        files: ControlPlaneFiles | None = None,
        *,
        rbac: bool = False,
        admin_token: str = "",
        in_memory: bool = False,
        max_watches_per_user: int = MAX_WATCHES_PER_USER,
        clock: Clock = utc_now,
    ) -> AsyncIterator[ControlPlane]:
        store = await _open_store(None if in_memory else files)
        rules = CelRuleEvaluator()
        try:
            plane = cls._assemble(store, files, rules, rbac=rbac, admin_token=admin_token, clock=clock)
            plane = replace(plane, max_watches_per_user=max_watches_per_user)
            await bootstrap_objects.create_bootstrap_objects(plane.registry)
            async with _run_controllers(plane.registry, plane.tokens, files):
                yield plane
        finally:
            await rules.close()
            await store.close()

    @classmethod
    def _assemble(
        cls,
        store: Store,
        files: ControlPlaneFiles | None,
        rules: CelRuleEvaluator,
        *,
        rbac: bool,
        admin_token: str,
        clock: Clock,
    ) -> ControlPlane:
        catalog = ResourceCatalog()
        catalog.load_definitions(store)
        registry = Registry(store, catalog, AccessChecker(RbacAuthorizer(store) if rbac else None), rules, clock=clock)
        tokens = ServiceAccountTokens(
            files.token_key if files else None,
            lambda *account: _find_uid(store, "serviceaccounts", *account),
            lambda *secret: _find_uid(store, "secrets", *secret),
            lambda *secret: _find_token(store, *secret),
        )
        authenticator = TokenAuthenticator(store, tokens, ADMIN, admin_token or secrets.token_urlsafe(32), clock)
        subresources = SubresourceHandler(registry, tokens, authenticator.review_token)
        return cls(store, registry, subresources, ObjectDeleter(registry), Lister(store), tokens, authenticator)


async def _open_store(files: ControlPlaneFiles | None) -> Store:
    if files is None:
        return await Store.open(None)
    await asyncio.to_thread(check_private_file, files.database)
    key = await asyncio.to_thread(_load_or_create_secret_key, files.secret_key, files.database)
    await asyncio.to_thread(check_private_file, files.token_key)
    return await Store.open(files.database, key=key, encrypted_buckets=ENCRYPTED_BUCKETS)


def _load_or_create_secret_key(file: Path, database: Path) -> bytes:
    """Load the key that encrypts Secrets at rest. It is created before the store, and only its owner can read it."""
    if not file.exists():
        if has_store(database):
            reset = f"argosy sandbox reset --data-dir {shlex.quote(str(database.parent))}"
            message = f"is missing; restore it (it was created with this store), or remove all objects with: {reset}"
            raise UserError(message, where=str(file))
        write_private(file, secrets.token_bytes(SECRET_KEY_BYTES))
    check_private_file(file)
    key = file.read_bytes()
    if len(key) != SECRET_KEY_BYTES:
        message = f"has {len(key)} bytes instead of {SECRET_KEY_BYTES}; restore the right key, or reset the sandbox"
        raise UserError(message, where=str(file))
    return key


def _find_uid(store: Store, bucket: str, namespace: str, name: str) -> str | None:
    entry = store.get(bucket, namespace, name)
    return str(orjson.loads(entry.body)["metadata"]["uid"]) if entry else None


def _find_token(store: Store, namespace: str, name: str) -> bytes:
    """The token that a Secret contains; empty if the Secret has none, or is being deleted."""
    entry = store.get("secrets", namespace, name)
    secret = orjson.loads(entry.body) if entry else {}
    if secret.get("type") != TOKEN_SECRET_TYPE or "deletionTimestamp" in secret["metadata"]:
        return b""
    return base64.b64decode((secret.get("data") or {}).get("token") or "")


@contextlib.asynccontextmanager
async def _run_controllers(
    registry: Registry, tokens: ServiceAccountTokens, files: ControlPlaneFiles | None
) -> AsyncIterator[None]:
    certificate = files.certificate if files else None
    controllers: list[KeyedController] = [  # type: ignore[type-arg]
        NamespaceController(registry, certificate),
        TokenSecretController(registry, tokens, certificate),
        CrdController(registry),
        GarbageCollector(registry),
    ]

    def on_events(events: Sequence[StoreEvent]) -> None:
        for controller in controllers:
            controller.on_events(events)

    unsubscribe = registry.store.subscribe(on_events)
    tasks = [
        asyncio.create_task(coroutine)
        for coroutine in (*(controller.run() for controller in controllers), run_event_expiry(registry))
    ]
    try:
        yield
    finally:
        unsubscribe()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
