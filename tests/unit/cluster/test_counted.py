"""Every call is told to who counts; and when a cluster was heard last is known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.cluster.counted import Asked, Counted
from argosy.model.errors import Conflict
from argosy.model.names import GroupKind, ResourceKey

pytestmark = pytest.mark.anyio
KIND = GroupKind("", "ConfigMap")
KEY = ResourceKey(*KIND, "default", "a")
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def embedded() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as found:
        yield found


async def test_each_call_is_told_with_its_verb_its_kind_and_its_code(embedded: EmbeddedCluster) -> None:
    told: list[Asked] = []
    cluster = Counted(embedded, told.append)
    await cluster.create(MANIFEST, dry_run=True)
    await cluster.create(MANIFEST)
    with pytest.raises(Conflict):
        await cluster.create(MANIFEST)
    await cluster.apply(MANIFEST, manager="m")
    await cluster.patch(KEY, {"data": {"a": "1"}})
    await cluster.replace(await cluster.get(KEY) or {})
    await cluster.delete(KEY)
    words = [(each.verb, each.code, each.is_dry) for each in told]
    assert words == [
        ("create", 200, True), ("create", 200, False), ("create", 409, False), ("patch", 200, False),
        ("patch", 200, False), ("get", 200, False), ("update", 200, False), ("delete", 200, False),
    ]  # fmt: skip
    assert {each.kind for each in told} == {"ConfigMap"}


async def test_it_is_known_when_a_cluster_was_heard_last(embedded: EmbeddedCluster) -> None:
    told: list[Asked] = []
    now = 100.0
    cluster = Counted(embedded, told.append, lambda: now)
    now = 110.0
    await cluster.get(KEY)
    assert cluster.heard_at == 100.0  # no cache is filled by that
    await cluster.kinds()
    assert cluster.heard_at == 110.0
    now = 120.0
    version = (await cluster.list(KIND)).version
    assert cluster.fed == {KIND: 120.0}
    async with aclosing(cluster.watch(KIND, since=version)) as events:  # type: ignore[type-var]
        now = 130.0
        await embedded.create(MANIFEST)
        assert (await anext(aiter(events))).manifest["metadata"]["name"] == "a"
    assert cluster.heard_at == cluster.fed[KIND] == 130.0
    assert told[-1] == Asked("watch", "ConfigMap", 200)
