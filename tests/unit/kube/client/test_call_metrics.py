"""RecordingCluster: records verb, kind and status code of every call, and when the cluster last answered."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from argosy.errors import Conflict
from argosy.kube.client import Cluster
from argosy.kube.client.call_metrics import RecordedCall, RecordingCluster
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

pytestmark = pytest.mark.anyio
KEY = ResourceKey(*CONFIG_MAP, "default", "a")
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


async def test_each_call_is_recorded_with_verb_kind_and_status_code(cluster: Cluster) -> None:
    calls: list[RecordedCall] = []
    counted = RecordingCluster(cluster, calls.append)
    await counted.create(MANIFEST, dry_run=True)
    await counted.create(MANIFEST)
    with pytest.raises(Conflict):
        await counted.create(MANIFEST)
    await counted.apply(MANIFEST, manager="m")
    await counted.patch(KEY, {"data": {"a": "1"}})
    await counted.replace(await counted.get(KEY) or {})
    await counted.delete(KEY)
    words = [(call.verb, call.code, call.is_dry_run) for call in calls]
    assert words == [
        ("create", 200, True), ("create", 200, False), ("create", 409, False), ("patch", 200, False),
        ("patch", 200, False), ("get", 200, False), ("update", 200, False), ("delete", 200, False),
    ]  # fmt: skip
    assert {call.kind for call in calls} == {"ConfigMap"}


async def test_last_update_and_read_times_follow_discovery_lists_and_watch_events(cluster: Cluster) -> None:
    calls: list[RecordedCall] = []
    now = 100.0
    counted = RecordingCluster(cluster, calls.append, lambda: now)
    now = 110.0
    await counted.get(KEY)
    assert counted.last_update_at == 100.0  # a get fills no cache
    await counted.kinds()
    assert counted.last_update_at == 110.0
    now = 120.0
    version = (await counted.list(CONFIG_MAP)).version
    assert counted.last_read_at == {CONFIG_MAP: 120.0}
    async with aclosing(counted.watch(CONFIG_MAP, since=version)) as events:  # type: ignore[type-var]
        now = 130.0
        await cluster.create(MANIFEST)
        assert (await anext(aiter(events))).manifest["metadata"]["name"] == "a"
    assert counted.last_update_at == counted.last_read_at[CONFIG_MAP] == 130.0
    assert calls[-1] == RecordedCall("watch", "ConfigMap", 200)
