"""Token rotation with an unanswered write: a token is revoked only if it is known to be unused."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.features.clusters import service
from argosy.features.clusters.service_account_token_lifecycle import rotate_token
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.argocd_secrets_and_config_maps import create_declared_secret
from argosy.kube.client import Cluster
from argosy.kube.resource_key import GroupKind, ResourceKey

pytestmark = pytest.mark.anyio
SERVER = "https://far.example.com"


def token(secret: str) -> str:
    claims = {"sub": "system:serviceaccount:kube-system:manager", "kubernetes.io": {"secret": {"name": secret}}}
    return f"a.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.c"


class Near:
    """A cluster that executes a replace or not, and never answers it; if `is_away`, later lists fail too.

    It fills in tokens as a control plane does.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.writes, self.is_away = True, False
        self.recreates = ""  # name of a Secret that is deleted and recreated just before its deletion
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def create(self, manifest: Any, **flags: Any) -> Any:
        if manifest.get("type") == "kubernetes.io/service-account-token":
            text = token(manifest["metadata"]["name"])
            manifest = {**manifest, "data": {"token": base64.b64encode(text.encode()).decode()}}
        return await self.cluster.create(manifest, **flags)

    async def list(self, kind: GroupKind, **flags: Any) -> Any:
        if self.is_away and self.begun.is_set():
            raise TransientError("it is away")
        return await self.cluster.list(kind, **flags)

    async def delete(self, key: ResourceKey, **flags: Any) -> None:
        if key.name == self.recreates:
            await self.cluster.delete(key)
            metadata = {"name": key.name, "namespace": key.namespace}
            await self.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        await self.cluster.delete(key, **flags)

    async def replace(self, manifest: Any, **flags: Any) -> Any:
        self.begun.set()
        await self.goes_on.wait()
        if self.writes:
            await self.cluster.replace(manifest, **flags)
        raise TransientError("no answer")


class Scene:
    def __init__(self, near: Near) -> None:
        self.near, self.told = near, list[str]()
        self.desk = ApplicationService(near, "here", "argocd", "argocd")  # type: ignore[arg-type]

    async def rotate(self) -> None:
        declared = await service.get_cluster(self.desk, SERVER)
        opener = lambda _: contextlib.nullcontext(self.near)  # noqa: E731
        await rotate_token(self.desk, declared, opener, self.told.append)  # type: ignore[arg-type]

    async def is_let_in(self) -> bool:
        """Return whether the Secret of the stored token still exists."""
        written = service.read_config(await service.get_cluster(self.desk, SERVER))["bearerToken"]
        return any(token(name) == written for name in await self.tokens())

    async def tokens(self) -> list[str]:
        listing = await self.near.cluster.list(GroupKind("", "Secret"), namespace="kube-system")
        return [secret["metadata"]["name"] for secret in listing.items]


@pytest.fixture
async def scene(cluster: Cluster) -> AsyncIterator[Scene]:
    new_scene = Scene(Near(cluster))
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    account = {"name": "manager", "namespace": "kube-system"}
    await cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    old = {"name": "old", "namespace": "kube-system"}
    await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": old})
    values = {"server": SERVER, "name": "far", "config": json.dumps({"bearerToken": token("old")})}
    await create_declared_secret(new_scene.desk, service.SECRET_TYPE_CLUSTER, "cluster-far", values)
    yield new_scene


async def test_executed_write_without_an_answer_completes_the_rotation(scene: Scene) -> None:
    await scene.rotate()
    (left,) = await scene.tokens()
    assert left != "old" and await scene.is_let_in()
    assert scene.told == []


async def test_rotation_reports_a_recreated_secret_of_the_old_token(scene: Scene) -> None:
    scene.near.recreates = "old"
    await scene.rotate()
    assert "old" in await scene.tokens() and await scene.is_let_in()
    (sentence,) = scene.told
    assert sentence == ('argosy: Secret old in namespace "kube-system" was recreated in the meantime and is kept')


async def test_write_that_was_not_executed_keeps_the_old_token(scene: Scene) -> None:
    scene.near.writes = False
    with pytest.raises(TransientError, match="no answer"):
        await scene.rotate()
    assert await scene.tokens() == ["old"] and await scene.is_let_in()


async def test_cancellation_during_the_write_keeps_both_tokens(scene: Scene) -> None:
    scene.near.goes_on.clear()
    rotating = asyncio.create_task(scene.rotate())
    await scene.near.begun.wait()
    rotating.cancel()
    await asyncio.sleep(0)
    scene.near.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await rotating
    assert await scene.is_let_in() and len(await scene.tokens()) == 2


async def test_token_that_may_be_in_use_is_kept_and_named_in_the_error(scene: Scene) -> None:
    scene.near.is_away = True
    with pytest.raises(TransientError) as caught:
        await scene.rotate()
    (new_token,) = {*await scene.tokens()} - {"old"}
    assert str(caught.value).startswith("no answer; the new token may be in use")
    assert str(caught.value).endswith(f"kubectl delete -n kube-system secret/{new_token}")
    scene.near.is_away = False
    assert await scene.is_let_in()
