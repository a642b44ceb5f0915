"""What every Cluster implementation must do, continued: lists and watches."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import ClusterError, Gone
from argosy.kube.client import Cluster, Listing, WatchEvent
from argosy.kube.objects import key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.contract_manifests import config, event
from support.deadlines import HANG_SECONDS
from support.loop_clock import turns

pytestmark = pytest.mark.anyio


def names(listing: Listing) -> list[str]:
    """Names without the cluster's own ConfigMap, which a controller may create in any namespace."""
    all_names = (manifest["metadata"]["name"] for manifest in listing.items)
    return sorted(name for name in all_names if name != "kube-root-ca.crt")


@contextlib.asynccontextmanager
async def watching(
    cluster: Cluster, since: str, namespace: str, **selectors: Any
) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    events = cluster.watch(CONFIG_MAP, since=since, namespace=namespace, **selectors)
    try:
        yield events
    finally:
        await events.aclose()  # type: ignore[attr-defined]


async def seen(events: AsyncIterator[WatchEvent], count: int) -> list[tuple[str, str]]:
    changes: list[tuple[str, str]] = []
    async with asyncio.timeout(HANG_SECONDS):
        async for change in events:
            name = change.manifest["metadata"].get("name")
            if change.type != "BOOKMARK" and name != "kube-root-ca.crt":
                changes.append((change.type, name))
            if len(changes) == count:
                break
    return changes


async def test_list_returns_complete_objects_of_a_namespace(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    assert config_map in listing.items
    assert listing.version
    assert names(await cluster.list(CONFIG_MAP, namespace="no-such-namespace")) == []
    assert config_map in (await cluster.list(CONFIG_MAP)).items


async def test_list_is_filtered_by_label_and_field_selectors(cluster: Cluster, namespace: str) -> None:
    for name, colour in (("a", "red"), ("b", "blue"), ("c", "blue")):
        await cluster.create(config(namespace, name, labels={"colour": colour}))

    async def found(**selectors: str) -> list[str]:
        return names(await cluster.list(CONFIG_MAP, namespace=namespace, **selectors))

    assert await found(labels="colour=blue") == ["b", "c"]
    assert await found(labels="colour in (red,green)") == ["a"]
    assert await found(labels="colour!=blue,colour") == ["a"]
    assert await found(labels="!colour") == []
    assert await found(fields="metadata.name=b") == ["b"]
    assert await found(labels="colour=blue", fields="metadata.name!=b") == ["c"]


async def test_invalid_selector_is_400(cluster: Cluster, namespace: str) -> None:
    for selectors in ({"labels": "a in b"}, {"fields": "spec.nothing=1"}):
        with pytest.raises(ClusterError) as caught:
            await cluster.list(CONFIG_MAP, namespace=namespace, **selectors)
        assert caught.value.code == 400


async def test_metadata_only_list_returns_only_kind_and_metadata(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace, labels={"a": "b"}))
    listing = await cluster.list(CONFIG_MAP, namespace=namespace, labels="a=b", metadata_only=True)
    assert listing.items == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": config_map["metadata"]}]


async def test_list_longer_than_a_page_is_complete(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.kube.client.list_pages.PAGE_SIZE", 10)
    await asyncio.gather(*(cluster.create(config(namespace, f"many-{number}", {})) for number in range(25)))
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    assert names(listing) == sorted(f"many-{number}" for number in range(25))


async def test_watch_continues_from_the_list_version(cluster: Cluster, namespace: str) -> None:
    await cluster.create(config(namespace, "before"))
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    await cluster.create(config(namespace, "after"))
    await cluster.patch(ResourceKey("", "ConfigMap", namespace, "after"), {"data": {"x": "2"}})
    await cluster.delete(ResourceKey("", "ConfigMap", namespace, "before"))
    async with watching(cluster, listing.version, namespace) as events:
        assert await seen(events, 3) == [("ADDED", "after"), ("MODIFIED", "after"), ("DELETED", "before")]


async def test_open_watch_delivers_new_events(cluster: Cluster, namespace: str) -> None:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    async with watching(cluster, listing.version, namespace) as events:
        await cluster.create(config(namespace, "first"))
        assert await seen(events, 1) == [("ADDED", "first")]  # from here on, the watch is open
        waiting = asyncio.create_task(seen(events, 1))
        await turns()
        await cluster.create(config(namespace, "live"))
        assert await waiting == [("ADDED", "live")]


async def test_watch_resumes_after_the_given_version(cluster: Cluster, namespace: str) -> None:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    config_maps = [await cluster.create(config(namespace, name)) for name in "abc"]
    async with watching(cluster, config_maps[0]["metadata"]["resourceVersion"], namespace) as events:
        assert await seen(events, 2) == [("ADDED", "b"), ("ADDED", "c")]
    async with watching(cluster, listing.version, namespace) as events:
        assert await seen(events, 3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_object_enters_and_leaves_a_watch_when_its_labels_change(cluster: Cluster, namespace: str) -> None:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    config_map = await cluster.create(config(namespace))
    for colour in ("red", "blue", "red"):
        await cluster.patch(key_of(config_map), {"metadata": {"labels": {"colour": colour}}})
    async with watching(cluster, listing.version, namespace, labels="colour=red") as events:
        assert await seen(events, 3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_metadata_only_watch_returns_only_kind_and_metadata(cluster: Cluster, namespace: str) -> None:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    config_map = await cluster.create(config(namespace))
    async with watching(cluster, listing.version, namespace, metadata_only=True) as events:
        async for change in events:
            if change.manifest["metadata"].get("name") == "a":
                break
    assert change == ("ADDED", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": config_map["metadata"]})


async def test_watch_event_of_a_megabyte_arrives_complete(cluster: Cluster, namespace: str) -> None:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    text = "0123456789abcdef" * 60_000
    await cluster.create(config(namespace, "large", {"text": text}))
    async with asyncio.timeout(HANG_SECONDS), watching(cluster, listing.version, namespace) as events:
        async for change in events:
            if change.manifest["metadata"].get("name") == "large":
                break
    assert change.manifest["data"]["text"] == text


async def test_watch_from_before_a_compaction_raises_gone(flavour: Any, namespace: str) -> None:
    """Uses Events, because a real server keeps the history of other kinds in a cache."""
    if flavour.compact is None:
        pytest.skip(f"{flavour.name}: its history cannot be cut from here")
    kind = GroupKind("", "Event")
    before = (await flavour.cluster.list(kind, namespace=namespace)).version
    for number in range(3):
        await flavour.cluster.create(event(namespace, f"e{number}"))
    done = flavour.compact()
    if inspect.isawaitable(done):
        await done
    with pytest.raises(Gone) as caught:
        async with asyncio.timeout(HANG_SECONDS):
            async for _ in flavour.cluster.watch(kind, since=before, namespace=namespace):
                pass
    assert caught.value.code == 410
