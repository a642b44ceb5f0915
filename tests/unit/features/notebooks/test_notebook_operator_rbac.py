"""RBAC in deploy/notebooks grants every right that the operator uses, and no other right."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.features.notebooks.addon import CRD_NAME, make
from argosy.features.notebooks.model_checks.model_kinds_and_readiness import MODEL_KINDS
from argosy.features.notebooks.runner.termination_message import pack_results
from argosy.kube.controller import run
from argosy.kube.objects import Manifest, dump_yaml, read_yaml_documents
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition, load_definitions
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.notebook_controller import ToldRuns, World, job
from support.paths import ROOT
from support.recording_client import RecordedCluster, Right

pytestmark = pytest.mark.anyio
SHIPPED = ROOT / "deploy" / "notebooks"
POD = ResourceKey("", "Pod", "default", "train-validation")
CONFIG = ResourceKey("build.openshift.io", "BuildConfig", "default", "train-build")
PIPELINE = ResourceKey("tekton.dev", "PipelineRun", "default", "train-build")
SERVICE = "serving.kserve.io/v1beta1"
PASSED = {"status": "succeeded", "exit_code": 0, "statistics": {"succeeded_cells": 1, "failed_cells": 0}}
ENDED = {"exitCode": 0, "message": pack_results(PASSED)}
DONE = {"phase": "Succeeded", "containerStatuses": [{"name": "validator", "state": {"terminated": ENDED}}]}
# Rights that this test cannot exercise: OpenShift admission, platforms whose CRDs are not installed, leader election
ELSEWHERE = {("update", "mlops.mlops.dev", "notebookvalidationjobs/finalizers")}
ELSEWHERE |= {("get", kind.group, f"{kind.kind.lower()}s") for kind in MODEL_KINDS.values() if kind.kind not in (
    "InferenceService", "Deployment")}  # fmt: skip
ELSEWHERE |= {(verb, "coordination.k8s.io", "leases") for verb in ("get", "create", "update")}
# Granted to every user by the default Kubernetes roles; and calls that may be forbidden
EVERYBODYS = {("create", "authorization.k8s.io", "selfsubjectaccessreviews"), ("get", "", "secrets")}


def granted() -> set[Right]:
    roles = read_yaml_documents((SHIPPED / "roles.yaml").read_text())
    return {
        (verb, group, resource)
        for role in roles for rule in role["rules"]
        for verb in rule["verbs"] for group in rule["apiGroups"] for resource in rule["resources"]
    }  # fmt: skip


@contextlib.asynccontextmanager
async def operator(cluster: EmbeddedCluster, used: set[Right], *kinds: str) -> AsyncIterator[World]:
    """Run the shipped controllers; add each right that they use to `used`."""
    for crd in (load_definition(CRD_NAME), *(definition for kind in kinds for definition in load_definitions(kind))):
        await cluster.apply(crd, manager="test", force=True)
    recorded = RecordedCluster(cluster)
    recorded.used = used
    work = asyncio.create_task(run(make("pods").controllers, recorded))  # type: ignore[arg-type]
    try:
        yield World(cluster, ToldRuns(), None)  # type: ignore[arg-type]
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def appears(cluster: EmbeddedCluster, key: ResourceKey, is_so: Callable[[Manifest], bool]) -> Manifest:
    async with asyncio.timeout(HANG_SECONDS):
        while (live := await cluster.get(key)) is None or not is_so(live):
            await asyncio.sleep(0.01)
    return live


async def passes(cluster: EmbeddedCluster, mark: str) -> None:
    await appears(cluster, POD, lambda pod: pod["metadata"]["annotations"]["mlops.dev/run"].endswith(mark))
    await cluster.patch(POD, {"status": DONE}, subresource="status")


async def runs_notebooks(cluster: EmbeddedCluster, used: set[Right]) -> None:
    claim = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "models", "namespace": "default"}
    async with operator(cluster, used) as at:
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        await cluster.create({**kind, "metadata": metadata, "spec": spec})
        mounts = [{"name": "models", "mountPath": "/mnt"}]
        await at.apply(job(pod={"volumes": [claim], "volumeMounts": mounts}))
        await passes(cluster, "1-1")
        await at.ends()
        await at.patch({"spec": {"timeout": "10m"}})
        await passes(cluster, "2-2")
        await at.apply(job("other"))  # uses the same runner
        await appears(cluster, ResourceKey("", "Pod", "default", "other-validation"), bool)
        await at.delete("other")


async def builds_images(cluster: EmbeddedCluster, used: set[Right]) -> None:
    kinds = ("buildconfigs.build.openshift.io", "builds.build.openshift.io", "imagestreams.image.openshift.io")
    async with operator(cluster, used, *kinds, "pipelineruns.tekton.dev") as at:
        for strategy, key in (("s2i", CONFIG), ("tekton", PIPELINE)):
            await at.apply(job(pod={"buildConfig": {"enabled": True, "strategy": strategy}}))
            first = await appears(cluster, key, bool)
            await at.becomes(lambda status: status["buildStatus"]["message"] != "starting the build")
            await at.patch({"spec": {"timeout": "10m"}})
            uid = first["metadata"]["uid"]
            await appears(cluster, key, lambda live, uid=uid: live["metadata"]["uid"] != uid)  # type: ignore[misc]
            await at.delete()


async def asks_models(cluster: EmbeddedCluster, used: set[Right]) -> None:
    labels = {"app": "fraud"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    async with operator(cluster, used, "inferenceservices.serving.kserve.io") as at:
        metadata = {"name": "fraud", "namespace": "default"}
        await cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        status = {"availableReplicas": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1,
                  "observedGeneration": 1}  # fmt: skip
        await cluster.patch(
            ResourceKey("apps", "Deployment", "default", "fraud"), {"status": status}, subresource="status"
        )  # fmt: skip
        prediction = {"testData": '{"instances": [[1]]}'}
        for number, platform in enumerate(("kserve", "vllm")):
            model_validation = {"platform": platform, "targetModels": ["fraud"], "predictionValidation": prediction}
            await at.apply(job(f"asks-{number}", modelValidation=model_validation))
            await at.becomes(lambda status: status["modelValidationResult"]["message"], f"asks-{number}")


async def sets_off(cluster: EmbeddedCluster, used: set[Right]) -> None:
    labels = {"serving.kserve.io/inferenceservice": "fraud"}
    pod = {"containers": [{"name": "a", "image": "a:1"}]}
    made_of = {"selector": {"matchLabels": {"app": "web"}},
               "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}}  # fmt: skip
    kinds = ("inferenceservices.serving.kserve.io", "applications.argoproj.io")
    async with operator(cluster, used, *kinds) as at:
        metadata = {"name": "web", "namespace": "default"}
        source = {"repoURL": "https://example.org/a.git", "path": "a"}
        destination = {"namespace": "default", "name": "in-cluster"}
        objects: list[Manifest] = [
            {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": made_of}
            for kind in ("Deployment", "StatefulSet", "DaemonSet")
        ]
        model = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}
        objects += [
            {"apiVersion": SERVICE, "kind": "InferenceService", "metadata": {**metadata, "name": name}, "spec": model}
            for name in ("web", "fraud")
        ]
        objects += [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "labels": labels}, "spec": pod},
            {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
             "spec": {"project": "default", "source": source, "destination": destination}},
        ]  # fmt: skip
        for manifest in objects:
            await cluster.create(manifest)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        web = ResourceKey("", "Pod", "default", "web")
        await cluster.patch(web, {"status": ready}, subresource="status")
        entries: list[dict[str, Any]] = [
            {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": manifest["metadata"]["name"],
             "action": "sync" if manifest["kind"] == "Application" else "restart"}
            for manifest in objects if manifest["kind"] != "Pod"
        ]  # fmt: skip
        entries[3]["strategy"] = "rolling"
        await at.apply(job(annotations={"mlops.dev/on-success-trigger": dump_yaml(entries)}))
        await passes(cluster, "1-1")
        await at.becomes(lambda status: all(trigger["status"] != "Pending" for trigger in status["triggers"]))
        async with asyncio.timeout(HANG_SECONDS):
            while await cluster.get(web) is not None:
                await asyncio.sleep(0.01)
        results = [(trigger.get("status"), trigger.get("message")) for trigger in (await at.status())["triggers"]]
        assert not [result for result in results if result[0] == "Failed"], results


async def test_roles_grant_exactly_the_rights_that_the_operator_uses() -> None:
    used: set[Right] = set()
    for flow in (runs_notebooks, builds_images, asks_models, sets_off):
        async with EmbeddedCluster.open() as cluster:
            await flow(cluster, used)
    assert used - granted() - EVERYBODYS == set(), "a right is missing in deploy/notebooks/roles.yaml"
    assert granted() - used - ELSEWHERE == set(), "a right of deploy/notebooks/roles.yaml is never used"


def test_shipped_crd_equals_the_bundled_crd() -> None:
    assert (SHIPPED / "definition.yaml").read_text() == dump_yaml(load_definition(CRD_NAME)), "dump it there again"


def test_roles_are_bound_only_to_the_operator_service_account() -> None:
    names = {
        (role["kind"], role["metadata"]["name"]) for role in read_yaml_documents((SHIPPED / "roles.yaml").read_text())
    }
    account, *bindings = read_yaml_documents((SHIPPED / "bindings.yaml").read_text())
    assert {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings} == names
    subject = {"kind": "ServiceAccount", **{name: account["metadata"][name] for name in ("name", "namespace")}}
    assert all(binding["subjects"] == [subject] for binding in bindings)


def test_roles_grant_no_secret_access_and_no_privilege_escalation() -> None:
    resources = {resource for _, _, resource in granted()}
    assert not resources & {"secrets", "roles", "rolebindings", "clusterroles", "serviceaccounts/token", "*"}
    assert not {verb for verb, _, _ in granted()} & {"*", "escalate", "bind", "impersonate"}


def test_deployment_meets_the_restricted_pod_security_standard() -> None:
    (deployment,) = read_yaml_documents((SHIPPED / "deployment.yaml").read_text())
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert deployment["metadata"]["name"] == "jupyter-notebook-validator-operator-controller-manager"
    assert deployment["metadata"]["namespace"] == "jupyter-notebook-validator-system"
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip
