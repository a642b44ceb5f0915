"""Manager service account on a cluster: its bindings, and deletion of bindings that it no longer needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from argosy.errors import ClusterError, UserError
from argosy.features.clusters.cluster_service_account import (
    ACCOUNT_ANNOTATION,
    MANAGER_ACCOUNT,
    MANAGER_BINDING,
    MANAGER_ROLE,
    RBAC_GROUP,
    WHOLE_CLUSTER,
    delete_bindings_and_roles,
    ensure_manager_account,
    find_surplus_bindings,
    list_leftover_namespaces,
)
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

SYSTEM = "kube-system"
OF_ALL = ResourceKey(RBAC_GROUP, "ClusterRoleBinding", "", MANAGER_BINDING)


@pytest.fixture
async def there() -> AsyncIterator[EmbeddedCluster]:
    async with ControlPlane.open() as plane:
        cluster = EmbeddedCluster(plane)
        for name in ("web", "ml"):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield cluster


async def narrowed(there: EmbeddedCluster, namespaces: Sequence[str], had: Sequence[str] = ()) -> list[str]:
    messages: list[str] = []
    wider = await find_surplus_bindings(there, SYSTEM, namespaces, had, "own", messages.append)
    await ensure_manager_account(there, SYSTEM, namespaces, lambda _: None)
    await delete_bindings_and_roles(there, wider, messages.append)
    return messages


async def test_surplus_bindings_are_deleted_when_the_scope_changes(there: EmbeddedCluster) -> None:
    await ensure_manager_account(there, SYSTEM, WHOLE_CLUSTER, lambda _: None)
    assert await narrowed(there, WHOLE_CLUSTER) == []
    gone = [f'ClusterRoleBinding "{MANAGER_BINDING}" deleted', f'ClusterRole "{MANAGER_ROLE}" deleted']
    assert await narrowed(there, ["web", "ml"]) == gone
    assert await there.get(OF_ALL) is None and await list_leftover_namespaces(there, SYSTEM) == ["ml", "web"]
    inside = [
        f'{kind} "{name}" deleted in namespace "ml"'
        for kind, name in (("RoleBinding", MANAGER_BINDING), ("Role", MANAGER_ROLE))
    ]
    assert await narrowed(there, ["web"], ["web", "ml"]) == inside
    assert len(await narrowed(there, WHOLE_CLUSTER, ["web"])) == 2
    assert await there.get(OF_ALL) is not None and await list_leftover_namespaces(there, SYSTEM) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"metadata": {"labels": None}}, "argosy did not create it"),
        (
            {
                "subjects": [
                    {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM} for name in (MANAGER_ACCOUNT, "other")
                ]
            },
            "it has other subjects",
        ),
        (None, "the account has other tokens: theirs"),
    ],
)
async def test_bindings_used_by_others_are_kept_with_an_error(there: EmbeddedCluster, change: Any, why: str) -> None:
    await ensure_manager_account(there, SYSTEM, WHOLE_CLUSTER, lambda _: None)
    if change:
        await there.patch(OF_ALL, change)
    for name in ("own", "theirs") if change is None else ("own",):
        metadata = {"name": name, "namespace": SYSTEM, "annotations": {ACCOUNT_ANNOTATION: MANAGER_ACCOUNT}}
        await there.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    with pytest.raises(UserError) as caught:
        await narrowed(there, ["web"])
    assert f"({why})" in str(caught.value) and f"kubectl delete clusterrolebinding/{MANAGER_BINDING};" in str(
        caught.value
    )
    assert await there.get(OF_ALL) is not None and await list_leftover_namespaces(there, SYSTEM) == []


async def test_binding_of_another_account_is_left_alone(there: EmbeddedCluster) -> None:
    await ensure_manager_account(there, "ml", WHOLE_CLUSTER, lambda _: None)
    assert await narrowed(there, ["web"]) == [] and await there.get(OF_ALL) is not None


async def test_missing_namespace_creates_no_service_account(there: EmbeddedCluster) -> None:
    with pytest.raises(ClusterError, match="nowhere"):
        await ensure_manager_account(there, SYSTEM, ["web", "nowhere"], lambda _: None)
    assert await there.get(ResourceKey("", "ServiceAccount", SYSTEM, MANAGER_ACCOUNT)) is None
