"""Simulated OpenShift builds and image streams on the embedded cluster."""

from __future__ import annotations

import asyncio

import pytest

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift.image_streams import add_pushed_image
from support.serving_manifests import (
    BUILD,
    BUILD_CONFIG,
    STREAM,
    STREAM_TAG,
    assess_health,
    build_config,
    modelled,
    stream,
)
from support.simulators import World, fail, key

pytestmark = pytest.mark.anyio
KINDS = (BUILD_CONFIG, BUILD, STREAM)
START = "sandbox.argosy.dev/start-build"


def has_phase(phase: str):  # type: ignore[no-untyped-def]
    return lambda manifest: manifest["status"]["phase"] == phase


async def start(world: World, wish: str) -> None:
    await world.patch(BUILD_CONFIG, {"metadata": {"annotations": {START: wish}}})


async def test_new_build_config_builds_once_and_pushes_a_tag(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config())
        build = await world.becomes(BUILD, has_phase("Complete"), "web-1")
        live = await world.becomes(STREAM, lambda image_stream: image_stream["status"]["tags"][0]["items"], "model")
        tag = await world.becomes(STREAM_TAG, lambda stream_tag: stream_tag["image"], "model:latest")
        before = await world.settled()
        assert await world.settled() == before
        assert len(await world.all(BUILD)) == 1
        assert (await world.get(BUILD_CONFIG))["status"]["lastVersion"] == 1
    assert assess_health(build) == ("Healthy", "Build is Complete")
    digest = build["status"]["output"]["to"]["imageDigest"]
    assert live["status"]["tags"][0]["items"][0]["image"] == digest == tag["image"]["metadata"]["name"]
    assert build["status"]["startTimestamp"] and build["status"]["completionTimestamp"] and build["status"]["duration"]
    assert build["spec"]["strategy"]["type"] == "Docker" and build["spec"]["source"]["type"] == "Git"


async def test_start_build_annotation_starts_one_build_each_time(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(triggers=[]))
        await world.settled()
        assert await world.all(BUILD) == []
        await start(world, "one")
        await world.becomes(BUILD, has_phase("Complete"), "web-1")
        await world.becomes(BUILD_CONFIG, lambda manifest: START not in manifest["metadata"].get("annotations", {}))
        await start(world, "one")
        await world.becomes(BUILD, has_phase("Complete"), "web-2")
        await world.becomes(BUILD_CONFIG, lambda manifest: START not in manifest["metadata"].get("annotations", {}))
        assert len(await world.all(BUILD)) == 2


REQUEST = {"apiVersion": "build.openshift.io/v1", "kind": "BuildRequest", "metadata": {"name": "web"}}


async def test_build_request_creates_the_next_build_with_its_env(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(triggers=[]))
        request = {**REQUEST, "env": [{"name": "LEVEL", "value": "2"}], "triggeredBy": [{"message": "by a test"}]}
        assert (await cluster.create(request, subresource_of=key(BUILD_CONFIG, "web"), dry_run=True))["kind"] == "Build"
        both = await asyncio.gather(
            *(cluster.create(request, subresource_of=key(BUILD_CONFIG, "web")) for _ in range(2))
        )
        assert sorted(created_build["metadata"]["name"] for created_build in both) == ["web-1", "web-2"]
        build = await world.becomes(BUILD, has_phase("Complete"), "web-2")
        await world.becomes(BUILD_CONFIG, lambda manifest: manifest["status"]["lastVersion"] == 2)
    assert build["spec"]["strategy"]["dockerStrategy"]["env"] == request["env"]
    assert build["spec"]["triggeredBy"] == request["triggeredBy"]


async def test_paused_build_config_rejects_build_requests(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS):
        await cluster.create(build_config({"openshift.io/build-config.paused": "true"}))
        with pytest.raises(ClusterError, match="can't instantiate from BuildConfig default/web: BuildConfig is paused"):
            await cluster.create(REQUEST, subresource_of=key(BUILD_CONFIG, "web"))


async def test_build_waits_for_its_output_image_stream(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(build_config())
        build = await world.becomes(
            BUILD, lambda live_build: live_build["status"]["reason"] == "InvalidOutputReference", "web-1"
        )
        assert build["status"]["phase"] == "New" and assess_health(build)[0] == "Progressing"
        assert "ImageStream default/model not found" in assess_health(build)[1]
        await cluster.create(stream())
        await world.becomes(BUILD, has_phase("Complete"), "web-1")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("CrashLoop", "DockerBuildFailed"), ("OOMKilled", "OutOfMemoryKilled"), ("ImagePull", "PullBuilderImageFailed")],
)
async def test_failed_build_is_degraded_with_its_reason(cluster: EmbeddedCluster, fault: str, reason: str) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(fail(fault)))
        build = await world.becomes(BUILD, has_phase("Failed"), "web-1")
        assert build["status"]["reason"] == reason
        assert assess_health(build)[0] == "Degraded" and assess_health(build)[1].endswith("(simulated by argosy)")
        assert not (await world.get(STREAM, "model")).get("status", {}).get("tags")


async def test_builds_of_one_build_config_run_serially(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(fail("NotReady")))
        first = await world.becomes(BUILD, has_phase("Running"), "web-1")
        assert assess_health(first) == ("Progressing", "Build is Running")
        await start(world, "again")
        await world.becomes(BUILD, has_phase("New"), "web-2")
        await world.settled()
        assert (await world.get(BUILD, "web-2"))["status"]["phase"] == "New"
        await world.patch(BUILD_CONFIG, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(BUILD, has_phase("Complete"), "web-1")
        await world.becomes(BUILD, has_phase("Complete"), "web-2")


async def test_cancelled_build_ends_in_phase_cancelled(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(fail("NotReady")))
        await world.becomes(BUILD, has_phase("Running"), "web-1")
        await cluster.patch(key(BUILD, "web-1"), {"status": {"cancelled": True}}, subresource="status")
        build = await world.becomes(BUILD, has_phase("Cancelled"), "web-1")
        assert assess_health(build)[0] == "Degraded"


async def test_paused_build_config_starts_no_builds(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config({"openshift.io/build-config.paused": "true"}))
        await world.settled()
        assert await world.all(BUILD) == []
        assert assess_health(await world.get(BUILD_CONFIG))[0] == "Suspended"


async def test_old_builds_are_pruned_by_the_history_limit(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *KINDS) as world:
        await cluster.create(stream())
        await cluster.create(build_config(successfulBuildsHistoryLimit=1))
        await world.becomes(BUILD, has_phase("Complete"), "web-1")
        await start(world, "again")
        await world.becomes(BUILD, has_phase("Complete"), "web-2")
        await world.becomes(BUILD, lambda live_build: not live_build["metadata"], "web-1")


async def test_tag_of_an_external_image_is_imported(cluster: EmbeddedCluster) -> None:
    tags = [{"name": "v1", "from": {"kind": "DockerImage", "name": "registry.example.com/models/vllm:0.6"}}]
    async with modelled(cluster, STREAM) as world:
        image_stream = await cluster.create(stream(tags=tags))
        assert image_stream["spec"]["tags"][0]["generation"] == 1
        live = await world.becomes(STREAM, lambda manifest: manifest["status"]["tags"][0]["items"], "model")
        assert assess_health(live) == ("Healthy", "ImageStream is ready")
        image = live["status"]["tags"][0]["items"][0]["dockerImageReference"]
        assert image.startswith("registry.example.com/models/vllm@sha256:")
        other = [{**tags[0], "from": {"kind": "DockerImage", "name": "registry.example.com/models/vllm:0.7"}}]
        await world.patch(STREAM, {"spec": {"tags": other}}, "model")
        again = await world.becomes(STREAM, lambda manifest: len(manifest["status"]["tags"][0]["items"]) == 2, "model")
        assert again["spec"]["tags"][0]["generation"] == 2 and assess_health(again)[0] == "Healthy"


async def test_failed_image_import_is_degraded_until_the_fault_is_removed(cluster: EmbeddedCluster) -> None:
    image_stream = stream(tags=[{"name": "v1", "from": {"kind": "DockerImage", "name": "registry.example.com/none:1"}}])
    image_stream["metadata"]["annotations"] = fail("ImagePull")
    async with modelled(cluster, STREAM) as world:
        await cluster.create(image_stream)
        live = await world.becomes(STREAM, lambda manifest: manifest["status"]["tags"][0]["conditions"], "model")
        assert assess_health(live)[0] == "Degraded" and "simulated by argosy" in assess_health(live)[1]
        await world.patch(STREAM, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}}, "model")
        healed = await world.becomes(STREAM, lambda manifest: manifest["status"]["tags"][0]["items"], "model")
        assert assess_health(healed)[0] == "Healthy"


def test_pushing_the_same_image_twice_adds_one_item() -> None:
    live: Manifest = stream()
    once = add_pushed_image(live, "latest", "sha256:1", "2026-01-01T00:00:00Z")
    twice = add_pushed_image({**live, "status": {"tags": once}}, "latest", "sha256:1", "2026-01-01T00:00:01Z")
    assert twice == once and len(once[0]["items"]) == 1
