"""The account on a cluster: what it may, and what is taken away when it is to do less."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from argosy.errors import ClusterError, UserError
from argosy.features.clusters.cluster_account import (
    BINDING,
    MANAGER,
    OF_ACCOUNT,
    RBAC,
    ROLE,
    WHOLE,
    left_behind,
    make_manager,
    surplus,
    take_away,
)
from argosy.kube.names import ResourceKey
from argosy.sandbox.apiserver.control_plane import Plane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

SYSTEM = "kube-system"
OF_ALL = ResourceKey(RBAC, "ClusterRoleBinding", "", BINDING)


@pytest.fixture
async def there() -> AsyncIterator[EmbeddedCluster]:
    async with Plane.open() as plane:
        cluster = EmbeddedCluster(plane)
        for name in ("web", "ml"):
            await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield cluster


async def narrowed(there: EmbeddedCluster, places: Sequence[str], had: Sequence[str] = ()) -> list[str]:
    said: list[str] = []
    wider = await surplus(there, SYSTEM, places, had, "own", said.append)
    await make_manager(there, SYSTEM, places, lambda _: None)
    await take_away(there, wider, said.append)
    return said


async def test_what_was_given_before_is_taken_away(there: EmbeddedCluster) -> None:
    await make_manager(there, SYSTEM, WHOLE, lambda _: None)
    assert await narrowed(there, WHOLE) == []
    gone = [f'ClusterRoleBinding "{BINDING}" deleted', f'ClusterRole "{ROLE}" deleted']
    assert await narrowed(there, ["web", "ml"]) == gone
    assert await there.get(OF_ALL) is None and await left_behind(there, SYSTEM) == ["ml", "web"]
    inside = [f'{kind} "{name}" deleted in namespace "ml"' for kind, name in (("RoleBinding", BINDING), ("Role", ROLE))]
    assert await narrowed(there, ["web"], ["web", "ml"]) == inside
    assert len(await narrowed(there, WHOLE, ["web"])) == 2
    assert await there.get(OF_ALL) is not None and await left_behind(there, SYSTEM) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"metadata": {"labels": None}}, "argosy did not create it"),
        ({"subjects": [{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM} for name in (MANAGER, "other")]},
         "it has other subjects"),
        (None, "the account has other tokens: theirs"),
    ],
)  # fmt: skip
async def test_what_others_may_need_stays_and_is_told(there: EmbeddedCluster, change: Any, why: str) -> None:
    await make_manager(there, SYSTEM, WHOLE, lambda _: None)
    if change:
        await there.patch(OF_ALL, change)
    for name in ("own", "theirs") if change is None else ("own",):
        metadata = {"name": name, "namespace": SYSTEM, "annotations": {OF_ACCOUNT: MANAGER}}
        await there.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    with pytest.raises(UserError) as caught:
        await narrowed(there, ["web"])
    assert f"({why})" in str(caught.value) and f"kubectl delete clusterrolebinding/{BINDING};" in str(caught.value)
    assert await there.get(OF_ALL) is not None and await left_behind(there, SYSTEM) == []


async def test_a_binding_of_another_account_is_none_of_ours(there: EmbeddedCluster) -> None:
    await make_manager(there, "ml", WHOLE, lambda _: None)
    assert await narrowed(there, ["web"]) == [] and await there.get(OF_ALL) is not None


async def test_nothing_is_made_where_not_all_can_be(there: EmbeddedCluster) -> None:
    with pytest.raises(ClusterError, match="nowhere"):
        await make_manager(there, SYSTEM, ["web", "nowhere"], lambda _: None)
    assert await there.get(ResourceKey("", "ServiceAccount", SYSTEM, MANAGER)) is None
