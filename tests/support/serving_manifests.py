"""Small manifests of OpenShift and KServe, and their health after simulation.

In: a live manifest. Out: its health by argosy's rules. Never: sleeps.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from argosy.gitops.health.assess import judge
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Customizations
from argosy.kube.controller.addon_loader import running
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import playing
from support.simulators import CLAIM, DEPLOYMENT, POD, REPLICA_SET, World, made

ROUTE = GroupKind("route.openshift.io", "Route")
BUILD_CONFIG, BUILD = GroupKind("build.openshift.io", "BuildConfig"), GroupKind("build.openshift.io", "Build")
STREAM, STREAM_TAG = GroupKind("image.openshift.io", "ImageStream"), GroupKind("image.openshift.io", "ImageStreamTag")
SUBSCRIPTION = GroupKind("operators.coreos.com", "Subscription")
PLAN = GroupKind("operators.coreos.com", "InstallPlan")
VERSION = GroupKind("operators.coreos.com", "ClusterServiceVersion")


@contextlib.asynccontextmanager
async def modelled(cluster: EmbeddedCluster, *kinds: GroupKind, **options: Any) -> AsyncIterator[World]:
    """Simulators like in the sandbox, but only for these kinds, so that a test does not wait for others."""
    async with running([playing(kinds, **options)], cluster, on_failure=lambda: None):
        yield World(cluster)


def judged(live: Manifest, profile: str = "") -> tuple[str, str]:
    group, _, kind = str(live["apiVersion"]).partition("/")[0], "", str(live["kind"])
    chosen = {f"{group}/{kind}": profile} if profile else {}
    found = judge(live, Rulebook(Customizations(profiles=chosen)).rule_for(group, kind), {})
    assert found is not None
    return str(found.health), found.message


def route(name: str = "web", **spec: Any) -> Manifest:
    return made("route.openshift.io/v1", "Route", {"to": {"name": "web"}, **spec}, name)


def build_config(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    wanted = {
        "source": {"git": {"uri": "https://example.com/it.git"}},
        "strategy": {"dockerStrategy": {}},
        "output": {"to": {"kind": "ImageStreamTag", "name": "model:latest"}},
        "triggers": [{"type": "ConfigChange"}],
    }
    found = made("build.openshift.io/v1", "BuildConfig", {**wanted, **spec})
    found["metadata"]["annotations"] = annotations or {}
    return found


def stream(name: str = "model", **spec: Any) -> Manifest:
    return made("image.openshift.io/v1", "ImageStream", spec, name)


def subscription(annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    wanted = {"name": "rhods-operator", "source": "redhat-operators", "sourceNamespace": "openshift-marketplace"}
    found = made("operators.coreos.com/v1alpha1", "Subscription", {**wanted, "channel": "stable", **spec})
    found["metadata"]["annotations"] = annotations or {}
    return found


def operator_group() -> Manifest:
    return made("operators.coreos.com/v1", "OperatorGroup", {}, "all")


def runtime(name: str = "vllm", formats: list[Manifest] | None = None, **spec: Any) -> Manifest:
    container = {
        "name": "kserve-container", "image": "vllm:1", "args": ["--served-model-name={{.Name}}"],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    }  # fmt: skip
    supported = formats or [{"name": "vLLM", "autoSelect": True}]
    wanted = {"supportedModelFormats": supported, "containers": [container], **spec}
    return made("serving.kserve.io/v1alpha1", "ServingRuntime", wanted, name)


def cluster_runtime(name: str, **spec: Any) -> Manifest:
    found = {**runtime(name, **spec), "kind": "ClusterServingRuntime"}
    return {**found, "metadata": {"name": name}}


def model(annotations: dict[str, str] | None = None, *, exposed: bool = True, **wanted: Any) -> Manifest:
    """An InferenceService; `wanted` are fields of its model, except `predictor`: fields of the predictor."""
    predictor = wanted.pop("predictor", {})
    served = {"modelFormat": {"name": "vLLM"}, "storageUri": "s3://models/web", **wanted}
    found = made("serving.kserve.io/v1beta1", "InferenceService", {"predictor": {"model": served, **predictor}})
    found["metadata"]["annotations"] = annotations or {}
    if exposed:
        found["metadata"]["labels"] = {"networking.kserve.io/visibility": "exposed"}
    return found


SERVICE = GroupKind("serving.kserve.io", "InferenceService")
SERVING_RUNTIME = GroupKind("serving.kserve.io", "ServingRuntime")
MODEL_KINDS = (SERVICE, ROUTE, DEPLOYMENT, REPLICA_SET, POD, CLAIM)
