"""Events that the simulators emit, and the Pod status of faults, as a kubelet would write them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import missing_images
from support.deadlines import HANG_SECONDS
from support.simulators import (
    CLAIM,
    DEPLOYMENT,
    POD,
    build_manifest,
    condition,
    deployment,
    fail,
    health,
    leaping,
    pod,
    simulated,
)
from support.tiers import in_test_all

pytestmark = pytest.mark.anyio
BACK_OFF = "ImagePullBackOff"
END = " (simulated by argosy)"


def container(live_pod: Manifest, index: int = 0) -> Any:
    return live_pod["status"]["containerStatuses"][index]


async def test_pod_lifecycle_events_are_emitted_in_order(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod())
        messages = await world.told("Started")
        await cluster.delete(ResourceKey("", "Pod", "default", "web"))
        messages = await world.told("Killing")
    assert messages == [
        f"Scheduled: Successfully assigned default/web to sandbox{END}",
        f'Pulling: Pulling image "example:1"{END}',
        f'Pulled: Successfully pulled image "example:1" in 1ms (1ms including waiting). Image size: 0 bytes.{END}',
        f"Created: Created container: main{END}",
        f"Started: Started container main{END}",
        f"Killing: Stopping container main{END}",
    ]


async def test_event_names_its_object_container_and_source(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod())
        await world.told("Started")
        live_pod = await world.get(POD)
        events = {event["reason"]: event for event in (await world.all_events())}
    assert events["Started"]["involvedObject"]["uid"] == live_pod["metadata"]["uid"]
    assert events["Started"]["involvedObject"]["fieldPath"] == "spec.containers{main}"
    assert events["Scheduled"]["source"] == {"component": "default-scheduler"}
    assert (events["Started"]["source"]["component"], events["Started"]["type"]) == ("kubelet", "Normal")


@pytest.mark.parametrize("image", ["example:does-not-exist", in_test_all("registry.example.com/team/does-not-exist:1")])
async def test_image_named_does_not_exist_cannot_be_pulled(cluster: EmbeddedCluster, image: str) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(containers=[{"name": "good", "image": "example:1"}, {"name": "bad", "image": image}]))
        live_pod = await world.becomes(
            POD, lambda manifest: container(manifest, 1)["state"]["waiting"]["reason"] == BACK_OFF
        )
        await world.told(f"Failed: Error: ErrImagePull{END}", f"Failed: Error: {BACK_OFF}{END}")
        assert container(live_pod)["state"]["waiting"]["reason"] == "ContainerCreating"
        assert health(live_pod)[0] == "Degraded" and f'Back-off pulling image "{image}"' in health(live_pod)[1]
        containers = [{"name": "good", "image": "example:1"}, {"name": "bad", "image": "example:2"}]
        await world.patch(POD, {"spec": {"containers": containers}})
        await world.becomes(POD, lambda manifest: condition(manifest, "Ready")["status"] == "True")


def test_only_a_does_not_exist_tag_or_image_name_means_a_missing_image() -> None:
    missing = ["a:does-not-exist", "r.example.com:5000/b/does-not-exist", "does-not-exist@sha256:1"]
    there = ["a:1", "does-not-exist.example.com/a:1", "r.example.com:5000/does-not-exist-1", "does-not-exist/a"]
    assert all(map(missing_images.is_missing, missing)) and not any(map(missing_images.is_missing, there))


async def test_missing_init_container_image_blocks_the_other_containers(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(initContainers=[{"name": "first", "image": "example:does-not-exist"}]))
        live_pod = await world.becomes(
            POD,
            lambda manifest: manifest["status"]["initContainerStatuses"][0]["state"]["waiting"]["reason"] == BACK_OFF,
        )
    assert container(live_pod)["state"]["waiting"]["reason"] == "PodInitializing"
    assert condition(live_pod, "Initialized")["reason"] == "ContainersNotInitialized"


async def test_init_container_completes_before_a_main_image_pull_fails(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("ImagePull"), initContainers=[{"name": "first", "image": "example:1"}]))
        live_pod = await world.becomes(
            POD, lambda manifest: container(manifest)["state"]["waiting"]["reason"] == BACK_OFF
        )
    assert live_pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert condition(live_pod, "Initialized")["status"] == "True"


async def test_crash_loop_reports_restarts_and_growing_back_off(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod(fail("CrashLoop")))
        live_pod = await world.becomes(POD, lambda manifest: container(manifest)["restartCount"] == 1)
        message = container(live_pod)["state"]["waiting"]["message"]
        subject = f"web_default({live_pod['metadata']['uid']})"
        assert message.startswith(f"back-off 10s restarting failed container=main pod={subject}")
        clock.leap(11)
        live_pod = await world.becomes(POD, lambda manifest: container(manifest)["restartCount"] == 2)
        assert container(live_pod)["state"]["waiting"]["message"].startswith("back-off 20s")
        subject = f"main in pod web_default({live_pod['metadata']['uid']})"
        await world.told(
            f"BackOff: Back-off restarting failed container {subject}{END}",
            f'Pulled: Container image "example:1" already present on machine{END}',
        )


async def test_unmountable_volume_keeps_a_pod_from_starting(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(1, progressDeadlineSeconds=1))
        await world.becomes(DEPLOYMENT, lambda manifest: health(manifest)[0] == "Healthy")
        volumes = [{"name": "data", "emptyDir": {}}]
        patch = {"metadata": {"annotations": fail("Storage")}, "spec": {"template": {"spec": {"volumes": volumes}}}}
        await world.patch(DEPLOYMENT, patch)
        messages = await world.told("FailedMount")
        assert 'FailedMount: MountVolume.SetUp failed for volume "data" : ' in "\n".join(messages)
        (waits,) = await world.pods_become(
            lambda pods: [live_pod for live_pod in pods if health(live_pod)[0] == "Progressing"] and len(pods) == 2
        ) and [live_pod for live_pod in await world.pods() if live_pod["status"]["phase"] == "Pending"]
        assert container(waits)["state"]["waiting"]["reason"] == "ContainerCreating"
        await world.becomes(DEPLOYMENT, lambda manifest: health(manifest)[0] == "Degraded")
        await world.patch(DEPLOYMENT, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(DEPLOYMENT, lambda manifest: health(manifest)[0] == "Healthy")


async def test_evicted_pod_gets_the_status_a_kubelet_sets(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Evicted", **{"run-for": "10ms"})))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Failed")
        messages = await world.told("Evicted", "Killing")
    assert live_pod["status"]["reason"] == "Evicted"
    assert live_pod["status"]["message"].startswith("The node was low on resource: memory. Threshold quantity: ")
    assert condition(live_pod, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    assert condition(live_pod, "Ready")["status"] == "False" and health(live_pod)[0] == "Degraded"
    assert messages[-2].startswith("Evicted: The node was low on resource: memory.")


async def test_not_ready_pod_emits_a_failed_readiness_probe_event(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("NotReady")))
        messages = await world.told("Unhealthy")
    assert messages[-1] == f"Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503{END}"


async def test_repeated_events_are_counted(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod(fail("CrashLoop")))
        await world.becomes(POD, lambda manifest: container(manifest)["restartCount"] == 1)
        for count in (2, 3):
            clock.leap(60)
            await world.becomes(POD, lambda manifest, count=count: container(manifest)["restartCount"] == count)  # type: ignore[misc]
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                started = [event for event in await world.all_events() if event["reason"] == "Created"]
                if [event["count"] for event in started] == [4]:
                    break
                await asyncio.sleep(0.01)


async def test_success_events_are_rate_limited_and_faults_are_not(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(60))
        await world.becomes(DEPLOYMENT, lambda manifest: health(manifest)[0] == "Healthy")
        await cluster.create(pod(fail("Unschedulable")))
        await world.told("FailedScheduling")
        kubelet = [event for event in await world.all_events() if event["source"]["component"] == "kubelet"]
    assert len(kubelet) < 60 * 4


async def test_rollout_events_come_from_the_deployment_and_its_replica_set(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(2))
        await world.told("ScalingReplicaSet: Scaled up replica set web-", " from 0 to 2", "Created pod: web-")
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 1}})
        await world.told("Scaled down replica set web-", " from 2 to 1", "SuccessfulDelete: Deleted pod: web-")


@pytest.mark.parametrize(
    ("spec", "annotations", "said"),
    [
        ({}, fail("Storage"), 'ProvisioningFailed: failed to provision volume with StorageClass "standard": '),
        ({"storageClassName": "standard-wait"}, {}, "WaitForFirstConsumer: waiting for first consumer to be created"),
        ({"storageClassName": "none"}, {}, 'ProvisioningFailed: storageclass.storage.k8s.io "none" not found'),
        ({"storageClassName": ""}, {}, "FailedBinding: no persistent volumes available for this claim"),
        ({}, {}, "ProvisioningSucceeded: Successfully provisioned volume pvc-"),
    ],
)
async def test_pvc_events_report_pending_reasons_and_provisioning(
    cluster: EmbeddedCluster, spec: dict[str, str], annotations: dict[str, str], said: str
) -> None:
    base_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = build_manifest("v1", "PersistentVolumeClaim", {**base_spec, **spec})
    claim["metadata"]["annotations"] = annotations
    async with simulated(cluster) as world:
        await cluster.create(claim)
        await world.told(said)
        if annotations:
            assert health(await world.get(CLAIM))[0] == "Progressing"
            await world.patch(CLAIM, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
            await world.becomes(CLAIM, lambda manifest: health(manifest)[0] == "Healthy")


async def test_slow_pvc_is_bound_after_a_delay(cluster: EmbeddedCluster) -> None:
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = build_manifest("v1", "PersistentVolumeClaim", claim_spec)
    claim["metadata"]["annotations"] = fail("Slow")
    async with leaping(cluster) as (world, clock):
        await cluster.create(claim)
        await world.settled()
        assert (await world.get(CLAIM))["status"]["phase"] == "Pending"
        clock.leap(31)
        await world.becomes(CLAIM, lambda manifest: manifest["status"]["phase"] == "Bound")
