"""Small OpenShift and KServe manifests, their simulators, and their health.

In: a live manifest. Out: its health by the health rules of argosy. Never: sleeps.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from argosy.gitops.health.assess import assess_by_rule
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import Customizations
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, ROUTE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import build_addon
from support.simulators import CLAIM, DEPLOYMENT, POD, REPLICA_SET, World, build_manifest

BUILD_CONFIG, BUILD = GroupKind("build.openshift.io", "BuildConfig"), GroupKind("build.openshift.io", "Build")
STREAM, STREAM_TAG = GroupKind("image.openshift.io", "ImageStream"), GroupKind("image.openshift.io", "ImageStreamTag")
PLAN = GroupKind("operators.coreos.com", "InstallPlan")


@contextlib.asynccontextmanager
async def modelled(cluster: EmbeddedCluster, *kinds: GroupKind, **options: Any) -> AsyncIterator[World]:
    """Run the simulators of the sandbox for these kinds only, so that a test does not wait for the others."""
    async with run_addons([build_addon(kinds, **options)], cluster, on_failure=lambda: None):
        yield World(cluster)


def assess_health(live: Manifest, profile: str = "") -> tuple[str, str]:
    group, _, kind = str(live["apiVersion"]).partition("/")[0], "", str(live["kind"])
    profiles = {f"{group}/{kind}": profile} if profile else {}
    assessment = assess_by_rule(live, HealthRules(Customizations(profiles=profiles)).find_rule(group, kind), {})
    assert assessment is not None
    return str(assessment.health), assessment.message


def route(name: str = "web", **spec: Any) -> Manifest:
    return build_manifest("route.openshift.io/v1", "Route", {"to": {"name": "web"}, **spec}, name)


def build_config(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    default_spec = {
        "source": {"git": {"uri": "https://example.com/it.git"}},
        "strategy": {"dockerStrategy": {}},
        "output": {"to": {"kind": "ImageStreamTag", "name": "model:latest"}},
        "triggers": [{"type": "ConfigChange"}],
    }
    manifest = build_manifest("build.openshift.io/v1", "BuildConfig", {**default_spec, **spec})
    manifest["metadata"]["annotations"] = annotations or {}
    return manifest


def stream(name: str = "model", **spec: Any) -> Manifest:
    return build_manifest("image.openshift.io/v1", "ImageStream", spec, name)


def subscription(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    default_spec = {"name": "rhods-operator", "source": "redhat-operators", "sourceNamespace": "openshift-marketplace"}
    manifest = build_manifest(
        "operators.coreos.com/v1alpha1", "Subscription", {**default_spec, "channel": "stable", **spec}
    )
    manifest["metadata"]["annotations"] = annotations or {}
    return manifest


def operator_group() -> Manifest:
    return build_manifest("operators.coreos.com/v1", "OperatorGroup", {}, "all")


def runtime(name: str = "vllm", formats: list[Manifest] | None = None, **spec: Any) -> Manifest:
    container = {
        "name": "kserve-container", "image": "vllm:1", "args": ["--served-model-name={{.Name}}"],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    }  # fmt: skip
    supported = formats or [{"name": "vLLM", "autoSelect": True}]
    full_spec = {"supportedModelFormats": supported, "containers": [container], **spec}
    return build_manifest("serving.kserve.io/v1alpha1", "ServingRuntime", full_spec, name)


def cluster_runtime(name: str, **spec: Any) -> Manifest:
    manifest = {**runtime(name, **spec), "kind": "ClusterServingRuntime"}
    return {**manifest, "metadata": {"name": name}}


def model(annotations: dict[str, str] | None = None, *, exposed: bool = True, **model_fields: Any) -> Manifest:
    """Return an InferenceService; `model_fields` are fields of its model, except `predictor`: predictor fields."""
    predictor = model_fields.pop("predictor", {})
    served = {"modelFormat": {"name": "vLLM"}, "storageUri": "s3://models/web", **model_fields}
    manifest = build_manifest(
        "serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"model": served, **predictor}}
    )
    manifest["metadata"]["annotations"] = annotations or {}
    if exposed:
        manifest["metadata"]["labels"] = {"networking.kserve.io/visibility": "exposed"}
    return manifest


SERVING_RUNTIME = GroupKind("serving.kserve.io", "ServingRuntime")
MODEL_KINDS = (INFERENCE_SERVICE, ROUTE, DEPLOYMENT, REPLICA_SET, POD, CLAIM)
