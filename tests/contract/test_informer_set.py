"""InformerSet on every Cluster implementation: one cache for all kinds, including CRDs that come and go."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable

import pytest

from argosy.gitops.application import Application
from argosy.gitops.live import (
    BY_OWNER,
    ApplicationCachePolicy,
    TrackingSettings,
    add_tracking,
    build_indexes,
    find_managed_resources,
    read_exclusions,
)
from argosy.kube.client import Cluster
from argosy.kube.controller import InformerCache, InformerSet
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import CONFIG_MAP, CRD
from support.contract_manifests import WAIT, config, definition
from support.real_server import REAL

pytestmark = pytest.mark.anyio
TRACKING = TrackingSettings(control_namespace="argocd")
# One of these tests runs over the wire in every run; the others only in tier "all".
MOSTLY_EMBEDDED = pytest.mark.parametrize(
    "flavour", ["embedded", pytest.param("wire", marks=pytest.mark.tier("all")), REAL], indirect=True
)


async def eventually(true: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < until, f"not so within {WAIT} s"
        await asyncio.sleep(0.01)


async def test_informer_set_caches_managed_objects_and_follows_crds_that_come_and_go(
    cluster: Cluster, namespace: str
) -> None:
    group = f"{uuid.uuid4().hex[:8]}.contract.example"
    kind, app = GroupKind(group, "Widget"), Application(name=namespace, namespace="argocd")
    cache, changes = InformerCache(), list[tuple[Manifest | None, Manifest | None]]()
    for name, index in build_indexes(TRACKING).items():
        cache.add_index(name, index)
    everything = InformerSet(
        cluster,
        read_exclusions({}).is_watched,
        cache,
        lambda *change: changes.append(change),
        definition_kinds=[CRD],
    )
    task = asyncio.create_task(everything.run())
    try:
        await asyncio.wait_for(everything.wait_synced(), WAIT)
        assert CONFIG_MAP in everything.watched_kinds and GroupKind("", "Event") not in everything.watched_kinds
        await cluster.create(add_tracking(config(namespace), app, TRACKING))
        created_definition = await cluster.create(definition(group))
        await eventually(lambda: kind in everything.watched_kinds and not everything.errors.get(kind))
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}}
        key = key_of(await cluster.create(add_tracking(widget, app, TRACKING)))
        await eventually(lambda: len(cache.find(BY_OWNER, namespace)) == 2)
        resources_by_key = find_managed_resources(cache, namespace, (), lambda key: True)
        assert {resource_key.kind for resource_key in resources_by_key} == {"ConfigMap", "Widget"}
        await cluster.delete(key_of(created_definition))
        await eventually(lambda: kind not in everything.watched_kinds)
        assert cache.get(key) is None
        assert any(before is not None and key_of(before) == key and after is None for before, after in changes)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@MOSTLY_EMBEDDED
async def test_kind_is_cached_as_metadata_only_until_an_object_is_managed(cluster: Cluster, namespace: str) -> None:
    cache, app = InformerCache(), Application(name=namespace, namespace="argocd")
    everything = InformerSet(
        cluster,
        read_exclusions({}).is_watched,
        cache,
        lambda *change: None,
        cache_policy=ApplicationCachePolicy(lambda: TRACKING),
    )
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }  # fmt: skip
    first = key_of(await cluster.create(role))
    task = asyncio.create_task(everything.run())
    try:
        await asyncio.wait_for(everything.wait_synced(), WAIT)
        assert (cache.get(first) or {}).keys() == {"apiVersion", "kind", "metadata"}
        other = role | {"metadata": {"name": "b", "namespace": namespace}}
        await cluster.create(other)
        await eventually(lambda: cache.get(first._replace(name="b")))  # through the watch
        assert "rules" not in (cache.get(first._replace(name="b")) or {})
        await cluster.create(add_tracking(role | {"metadata": {"name": "c", "namespace": namespace}}, app, TRACKING))
        await eventually(lambda: all("rules" in (cache.get(first._replace(name=name)) or {}) for name in "abc"))
        has_managed_fields = {
            name: "managedFields" in (cache.get(first._replace(name=name)) or {})["metadata"] for name in "abc"
        }
        assert has_managed_fields == {"a": False, "b": False, "c": True}
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@MOSTLY_EMBEDDED
async def test_secret_data_is_cached_once_tracking_change_makes_it_managed(cluster: Cluster, namespace: str) -> None:
    """The cache did not keep the data before; for a Secret it is needed to know what to redact."""
    cache, updates, tracking = InformerCache(), list[Manifest](), [TRACKING]
    everything = InformerSet(
        cluster,
        read_exclusions({}).is_watched,
        cache,
        lambda before, after: updates.append(after or {}),
        cache_policy=ApplicationCachePolicy(lambda: tracking[0]),
    )
    metadata = {"name": "hidden", "namespace": namespace, "labels": {"app.kubernetes.io/instance": "models"}}
    key = key_of(
        await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "eA=="}})
    )
    task = asyncio.create_task(everything.run())
    try:
        await asyncio.wait_for(everything.wait_synced(), WAIT)
        assert "data" not in (cache.get(key) or {})
        tracking[0] = TrackingSettings(control_namespace="argocd", method="label")
        updates.clear()
        everything.rediscover()
        await eventually(lambda: "data" in (cache.get(key) or {}))
        assert any(manifest.get("data") == {"password": "eA=="} for manifest in updates)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
