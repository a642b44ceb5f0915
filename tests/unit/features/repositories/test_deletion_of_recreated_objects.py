"""Deleting an object does not delete a new object that was created under the same name in the meantime."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Invalid, UserError
from argosy.features.backup.import_plan import ImportOptions
from argosy.features.backup.import_service import execute_changes, plan_import
from argosy.features.backup.installation_objects import BackupScope
from argosy.features.clusters.cluster_service_account import (
    ACCOUNT_ANNOTATION,
    MANAGED_BY_LABELS,
    MANAGER_ACCOUNT,
    MANAGER_BINDING,
    MANAGER_ROLE,
    RBAC_GROUP,
    WHOLE_CLUSTER,
    delete_bindings_and_roles,
    delete_unless_recreated,
    ensure_manager_account,
)
from argosy.features.clusters.remove import _clean_up
from argosy.features.clusters.service_account_token_lifecycle import ServiceAccountClaims, revoke_old_token
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.appproject_operations import build_project, create_project, delete_project
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.engine import furnish

SYSTEM = "kube-system"
PROJECT = ResourceKey("argoproj.io", "AppProject", "argocd", "shop")
ROLE_KEY = ResourceKey(RBAC_GROUP, "ClusterRole", "", MANAGER_ROLE)
BINDING_KEY = ResourceKey(RBAC_GROUP, "ClusterRoleBinding", "", MANAGER_BINDING)
ACCOUNT_KEY = ResourceKey("", "ServiceAccount", SYSTEM, MANAGER_ACCOUNT)
TOKEN_KEY = ResourceKey("", "Secret", SYSTEM, "manager-token")


class BusyCluster(EmbeddedCluster):
    """An embedded cluster that deletes and recreates `victim` just before a deletion or a patch."""

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
    async with ControlPlane.open() as plane:
        yield BusyCluster(plane)


async def furnished(cluster: Cluster) -> ApplicationService:
    await furnish(cluster, "argocd")
    return ApplicationService(cluster, "here", "argocd", "argocd", acting_user="ann")


async def test_recreated_project_is_not_deleted(busy: BusyCluster) -> None:
    desk = await furnished(busy)
    await create_project(desk, build_project("shop", "argocd", {}), upsert=False)
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
    "pruned", [build_project("shop", "argocd", {}), application(), application_set(), repository()],
    ids=["AppProject", "Application", "ApplicationSet", "Secret"],
)  # fmt: skip
async def test_import_with_prune_keeps_a_recreated_object(busy: BusyCluster, pruned: Manifest) -> None:
    await furnished(busy)
    await busy.create(load_definition("applicationsets.argoproj.io"))
    await busy.create(pruned)
    project = build_project("kept", "argocd", {})
    changes = await plan_import(busy, [project], ImportOptions(BackupScope("argocd", has_secrets=True), prunes=True))
    busy.victim = key_of(pruned)
    with pytest.raises(UserError, match=f"{pruned['kind']} .* was changed in the meantime"):
        await execute_changes(busy, changes, lambda change: None)
    await busy.assert_new_object_is_kept()
    changes = await plan_import(busy, [project], ImportOptions(BackupScope("argocd", has_secrets=True), prunes=True))
    await execute_changes(busy, changes, lambda change: None)
    live = await busy.get(key_of(pruned))
    assert live is None or live["metadata"]["deletionTimestamp"], "without upkeep, the finalizer of orphans stays"


@pytest.mark.parametrize("victim", [BINDING_KEY, ROLE_KEY])
async def test_recreated_cluster_role_or_binding_is_not_deleted(busy: BusyCluster, victim: ResourceKey) -> None:
    await ensure_manager_account(busy, SYSTEM, WHOLE_CLUSTER, lambda _: None)
    busy.victim = victim
    with pytest.raises(UserError, match=f"{victim.kind} {victim.name} was recreated in the meantime"):
        await delete_bindings_and_roles(busy, [BINDING_KEY], lambda _: None)
    await busy.assert_new_object_is_kept()


async def with_token(busy: BusyCluster) -> Manifest:
    await ensure_manager_account(busy, SYSTEM, WHOLE_CLUSTER, lambda _: None)
    metadata = {
        "name": TOKEN_KEY.name,
        "namespace": SYSTEM,
        "labels": MANAGED_BY_LABELS,
        "annotations": {ACCOUNT_ANNOTATION: MANAGER_ACCOUNT},
    }
    return await busy.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


async def test_recreated_token_secret_is_not_deleted(busy: BusyCluster) -> None:
    token = await with_token(busy)
    busy.victim = TOKEN_KEY
    assert not await delete_unless_recreated(busy, token)
    await busy.assert_new_object_is_kept()
    assert await delete_unless_recreated(busy, busy.created or {}) and await busy.get(TOKEN_KEY) is None
    assert await delete_unless_recreated(busy, token), "an object that is gone counts as revoked"


KEPT = "was recreated in the meantime and is kept"


@pytest.mark.parametrize("victim", [ROLE_KEY, BINDING_KEY, ACCOUNT_KEY, TOKEN_KEY])
async def test_cluster_removal_keeps_a_recreated_object(busy: BusyCluster, victim: ResourceKey) -> None:
    await with_token(busy)
    busy.victim = victim
    messages: list[str] = []
    with pytest.raises(UserError, match=f"^{victim.kind} {victim.name}( in namespace .*)? {KEPT}$"):
        await _clean_up(busy, ServiceAccountClaims(SYSTEM, MANAGER_ACCOUNT, TOKEN_KEY), messages.append)
    await busy.assert_new_object_is_kept()
    assert messages == [], "nothing was deleted"


async def test_cluster_removal_raises_an_unrelated_invalid_error_unchanged(busy: BusyCluster) -> None:
    class Strict(EmbeddedCluster):
        async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
            raise Invalid("spec.x: Required value")

    await with_token(busy)
    with pytest.raises(Invalid, match=r"spec\.x: Required value"):
        await _clean_up(Strict(busy.plane), ServiceAccountClaims(SYSTEM, MANAGER_ACCOUNT, TOKEN_KEY), lambda _: None)


async def test_cluster_removal_reports_a_recreated_token_secret(busy: BusyCluster) -> None:
    await with_token(busy)
    busy.victim, messages = TOKEN_KEY, list[str]()
    stays = await _clean_up(busy, ServiceAccountClaims(SYSTEM, "another-account", TOKEN_KEY), messages.append)
    await busy.assert_new_object_is_kept()
    assert messages == [] and stays == f'Secret manager-token in namespace "kube-system" {KEPT}'


async def test_revoking_an_old_token_reports_its_recreated_secret(busy: BusyCluster) -> None:
    await with_token(busy)
    busy.victim, messages = TOKEN_KEY, list[str]()
    claims = {
        "sub": f"system:serviceaccount:{SYSTEM}:{MANAGER_ACCOUNT}",
        "kubernetes.io": {"secret": {"name": TOKEN_KEY.name}},
    }
    token = f"a.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.c"
    await revoke_old_token(busy, DeclaredSecret("far", {"config": json.dumps({"bearerToken": token})}), messages.append)
    await busy.assert_new_object_is_kept()
    assert messages == [f'argosy: Secret manager-token in namespace "kube-system" {KEPT}']
