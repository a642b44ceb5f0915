"""A deletion decided for one object spares the object that was created again under its name meanwhile."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Invalid, UserError
from argosy.features.backup.import_plan import Wish
from argosy.features.backup.import_service import carry_out, plan_import
from argosy.features.backup.installation_objects import Scope
from argosy.features.clusters.add import Claims, _forget_token
from argosy.features.clusters.cluster_account import (
    BINDING,
    MADE,
    MANAGER,
    OF_ACCOUNT,
    RBAC,
    ROLE,
    WHOLE,
    make_manager,
    revoke,
    take_away,
)
from argosy.features.clusters.remove import _clear
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.declared_objects import Declared
from argosy.gitops.application_client.projects import create_project, delete_project, new_project
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.bundled_crds import definition
from argosy.sandbox.apiserver.control_plane import Plane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.engine import furnish

SYSTEM = "kube-system"
PROJECT = ResourceKey("argoproj.io", "AppProject", "argocd", "shop")
ROLE_KEY = ResourceKey(RBAC, "ClusterRole", "", ROLE)
BINDING_KEY = ResourceKey(RBAC, "ClusterRoleBinding", "", BINDING)
ACCOUNT_KEY = ResourceKey("", "ServiceAccount", SYSTEM, MANAGER)
TOKEN_KEY = ResourceKey("", "Secret", SYSTEM, "manager-token")


class BusyCluster(EmbeddedCluster):
    """An embedded cluster on which somebody deletes and creates `victim` again, just before a deletion or a patch."""

    victim: ResourceKey | None = None
    created: Manifest | None = None

    async def recreate(self) -> None:
        if (key := self.victim) is None:
            return
        self.victim = None
        live = await super().get(key)
        assert live is not None
        await super().patch(key, {"metadata": {"finalizers": None}})
        await super().delete(key)
        dropped = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "finalizers")
        metadata = {name: value for name, value in live["metadata"].items() if name not in dropped}
        self.created = await super().create({**live, "metadata": metadata})

    async def delete(self, key: ResourceKey, **terms: Any) -> None:
        if key == self.victim:
            await self.recreate()
        await super().delete(key, **terms)

    async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
        if key == self.victim:
            await self.recreate()
        return await super().patch(key, patch, **terms)

    async def assert_new_object_is_kept(self) -> None:
        assert self.created is not None, "nothing was created again"
        live = await self.get(key_of(self.created))
        assert live is not None and live["metadata"]["uid"] == self.created["metadata"]["uid"]
        assert not live["metadata"].get("ownerReferences"), "the garbage collector would delete it"


@pytest.fixture
async def busy() -> AsyncIterator[BusyCluster]:
    async with Plane.open() as plane:
        yield BusyCluster(plane)


async def furnished(cluster: Cluster) -> Desk:
    await furnish(cluster, "argocd")
    return Desk(cluster, "here", "argocd", "argocd", signer="ann")


async def test_a_project_that_was_created_again_is_not_deleted(busy: BusyCluster) -> None:
    desk = await furnished(busy)
    await create_project(desk, new_project("shop", "argocd", {}), replaces=False)
    busy.victim = PROJECT
    with pytest.raises(UserError, match="project shop was deleted and recreated in the meantime"):
        await delete_project(desk, "shop")
    await busy.assert_new_object_is_kept()
    await delete_project(desk, "shop")
    assert await busy.get(PROJECT) is None


def application() -> Manifest:
    source = {"repoURL": "https://git.example.com/app.git", "path": "app"}
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": source, "destination": {"name": "in-cluster"}},
    }  # fmt: skip


def application_set() -> Manifest:
    spec = {"generators": [{"list": {"elements": []}}], "template": {"metadata": {"name": "x"}, "spec": {}}}
    metadata = {"name": "many", "namespace": "argocd"}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata, "spec": spec}


def repository() -> Manifest:
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    metadata = {"name": "code", "namespace": "argocd", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


@pytest.mark.parametrize(
    "pruned", [new_project("shop", "argocd", {}), application(), application_set(), repository()],
    ids=["AppProject", "Application", "ApplicationSet", "Secret"],
)  # fmt: skip
async def test_an_import_with_prune_keeps_an_object_that_was_created_again(busy: BusyCluster, pruned: Manifest) -> None:
    await furnished(busy)
    await busy.create(definition("applicationsets.argoproj.io"))
    await busy.create(pruned)
    wanted = new_project("kept", "argocd", {})
    changes = await plan_import(busy, [wanted], Wish(Scope("argocd", has_secrets=True), prunes=True))
    busy.victim = key_of(pruned)
    with pytest.raises(UserError, match=f"{pruned['kind']} .* was changed in the meantime"):
        await carry_out(busy, changes, lambda change: None)
    await busy.assert_new_object_is_kept()
    changes = await plan_import(busy, [wanted], Wish(Scope("argocd", has_secrets=True), prunes=True))
    await carry_out(busy, changes, lambda change: None)
    live = await busy.get(key_of(pruned))
    assert live is None or live["metadata"]["deletionTimestamp"], "without upkeep, the finalizer of orphans stays"


@pytest.mark.parametrize("victim", [BINDING_KEY, ROLE_KEY])
async def test_rights_that_were_given_again_are_not_taken_away(busy: BusyCluster, victim: ResourceKey) -> None:
    await make_manager(busy, SYSTEM, WHOLE, lambda _: None)
    busy.victim = victim
    with pytest.raises(UserError, match=f"{victim.kind} {victim.name} was recreated in the meantime"):
        await take_away(busy, [BINDING_KEY], lambda _: None)
    await busy.assert_new_object_is_kept()


async def with_token(busy: BusyCluster) -> Manifest:
    await make_manager(busy, SYSTEM, WHOLE, lambda _: None)
    metadata = {"name": TOKEN_KEY.name, "namespace": SYSTEM, "labels": MADE, "annotations": {OF_ACCOUNT: MANAGER}}
    return await busy.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


async def test_a_secret_that_was_created_again_is_not_revoked(busy: BusyCluster) -> None:
    token = await with_token(busy)
    busy.victim = TOKEN_KEY
    assert not await revoke(busy, token)
    await busy.assert_new_object_is_kept()
    assert await revoke(busy, busy.created or {}) and await busy.get(TOKEN_KEY) is None
    assert await revoke(busy, token), "an object that is gone counts as revoked"


KEPT = "was recreated in the meantime and is kept"


@pytest.mark.parametrize("victim", [ROLE_KEY, BINDING_KEY, ACCOUNT_KEY, TOKEN_KEY])
async def test_a_removed_cluster_loses_nothing_that_was_created_again(busy: BusyCluster, victim: ResourceKey) -> None:
    await with_token(busy)
    busy.victim = victim
    told: list[str] = []
    with pytest.raises(UserError, match=f"^{victim.kind} {victim.name}( in namespace .*)? {KEPT}$"):
        await _clear(busy, Claims(SYSTEM, MANAGER, TOKEN_KEY), told.append)
    await busy.assert_new_object_is_kept()
    assert told == [], "nothing was deleted"


async def test_a_patch_that_is_invalid_for_another_reason_is_told_as_it_is(busy: BusyCluster) -> None:
    class Strict(EmbeddedCluster):
        async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
            raise Invalid("spec.x: Required value")

    await with_token(busy)
    with pytest.raises(Invalid, match=r"spec\.x: Required value"):
        await _clear(Strict(busy.plane), Claims(SYSTEM, MANAGER, TOKEN_KEY), lambda _: None)


async def test_a_removed_cluster_says_that_the_secret_of_its_token_was_created_again(busy: BusyCluster) -> None:
    await with_token(busy)
    busy.victim, told = TOKEN_KEY, list[str]()
    stays = await _clear(busy, Claims(SYSTEM, "another-account", TOKEN_KEY), told.append)
    await busy.assert_new_object_is_kept()
    assert told == [] and stays == f'Secret manager-token in namespace "kube-system" {KEPT}'


async def test_an_added_cluster_says_that_the_secret_of_its_old_token_was_created_again(busy: BusyCluster) -> None:
    await with_token(busy)
    busy.victim, told = TOKEN_KEY, list[str]()
    claims = {"sub": f"system:serviceaccount:{SYSTEM}:{MANAGER}", "kubernetes.io": {"secret": {"name": TOKEN_KEY.name}}}
    token = f"a.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.c"
    await _forget_token(busy, Declared("far", {"config": json.dumps({"bearerToken": token})}), told.append)
    await busy.assert_new_object_is_kept()
    assert told == [f'argosy: Secret manager-token in namespace "kube-system" {KEPT}']
