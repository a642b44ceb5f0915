"""Objects with unprintable names: RBAC allows them, so one tenant must not hide a whole kind from the others."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.kube.client.cluster_client import KubeCluster, connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.lying_cluster import Lie, LyingCluster, Request, http_answer

pytestmark = pytest.mark.anyio
UNPRINTABLE = ("a\u200bb", "a\x1b[2Jb", "a\nb", "a\u202eb")


def build_manifest(name: str, version: str = "5") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml", "uid": "u", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@contextlib.asynccontextmanager
async def connected(lie: Lie) -> AsyncIterator[KubeCluster]:
    async with LyingCluster(lie).serving() as server, await connect(Connection(server.address, token="t")) as cluster:
        yield cluster


def list_of(*names: str, token: str = "") -> bytes:
    metadata = {"resourceVersion": "5", "continue": token}
    return http_answer({"metadata": metadata, "items": [build_manifest(name) for name in names]})


async def test_list_skips_objects_with_unprintable_names(caplog: pytest.LogCaptureFixture) -> None:
    def lie(request: Request) -> bytes | None:
        return list_of("first", *UNPRINTABLE, "last") if request.route.endswith("configmaps") else None

    with caplog.at_level(logging.WARNING):
        async with connected(lie) as cluster:
            listing = await cluster.list(CONFIG_MAP)
    assert [item["metadata"]["name"] for item in listing.items] == ["first", "last"]
    (record,) = (record for record in caplog.records if "cannot be printed" in record.message)
    assert "count=4" in record.message and "kind=ConfigMap" in record.message and record.message.isprintable()


async def test_pages_with_only_unprintable_names_do_not_end_the_list() -> None:
    pages = itertools.count()

    def lie(request: Request) -> bytes | None:
        if not request.route.endswith("configmaps"):
            return None
        page = next(pages)
        return list_of(*UNPRINTABLE, token=f"page-{page}") if page < 30 else list_of("last")

    async with connected(lie) as cluster:
        assert [item["metadata"]["name"] for item in (await cluster.list(CONFIG_MAP)).items] == ["last"]


async def test_watch_skips_objects_with_unprintable_names(caplog: pytest.LogCaptureFixture) -> None:
    names = ("first", *UNPRINTABLE, *UNPRINTABLE, "last")
    events = [{"type": "ADDED", "object": build_manifest(name, str(index))} for index, name in enumerate(names)]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)

    with caplog.at_level(logging.WARNING):
        async with connected(lambda request: http_answer(lines) if request.is_watch else None) as cluster:
            watch_events = [event async for event in cluster.watch(CONFIG_MAP, since="1", namespace="ml")]
    assert [event.manifest["metadata"]["name"] for event in watch_events] == ["first", "last"]
    assert len([record for record in caplog.records if "cannot be printed" in record.message]) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
async def test_list_with_an_invalid_name_is_an_error(name: str) -> None:
    async with connected(lambda request: list_of(name) if request.route.endswith("configmaps") else None) as cluster:
        with pytest.raises(TransientError, match="with an invalid name"):
            await cluster.list(CONFIG_MAP)


async def test_get_of_an_object_with_an_unprintable_name_is_a_printable_error() -> None:
    answer = http_answer(build_manifest(UNPRINTABLE[1]))
    async with connected(lambda request: answer if "/configmaps/" in request.route else None) as cluster:
        with pytest.raises(TransientError, match="with an invalid name") as caught:
            await cluster.get(ResourceKey("", "ConfigMap", "ml", "settings"))
    assert str(caught.value).isprintable()
