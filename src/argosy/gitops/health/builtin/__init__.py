"""Health checks that Argo CD implements in Go, without a script.

In: a live manifest. Out: an Assessment, or None if the kind has no built-in check. Never: raises: an unknown version of
a kind, or a field of the wrong type, is Unknown with a fault, as in Argo CD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.api_services import assess_api_service
from argosy.gitops.health.builtin.autoscaling import assess_horizontal_pod_autoscaler
from argosy.gitops.health.builtin.fields import FieldTypeError
from argosy.gitops.health.builtin.jobs_and_workflows import assess_job, assess_workflow
from argosy.gitops.health.builtin.network import assess_ingress, assess_service
from argosy.gitops.health.builtin.pods import assess_pod
from argosy.gitops.health.builtin.storage import assess_persistent_volume_claim
from argosy.gitops.health.builtin.workloads import (
    assess_daemon_set,
    assess_deployment,
    assess_replica_set,
    assess_stateful_set,
)
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version

__all__ = ["BUILTIN_CHECKS", "assess_builtin"]

HealthCheckFunction = Callable[[Manifest], Assessment]
_ANY_VERSION: Final = ()


def _build_check(
    group: str, kind: str, assess: HealthCheckFunction, versions: tuple[str, ...], display_name: str = ""
) -> tuple[tuple[str, str], HealthCheckFunction]:
    """Build the entry of a check. `display_name` is the name of the kind in Argo CD's error messages."""
    rule = f"built-in {group}/{kind}" if group else f"built-in {kind}"

    def check(manifest: Manifest) -> Assessment:
        _, version = split_api_version(str(manifest.get("apiVersion", "")))
        if versions and version not in versions:
            return _unknown_health(rule, f"unsupported {display_name or kind} GVK: {group}/{version}, Kind={kind}")
        try:
            assessment = assess(manifest)
        except FieldTypeError as error:
            return _unknown_health(rule, _conversion_error(display_name or kind, str(error)))
        return Assessment(assessment.health, assessment.message, rule)

    return (group, kind), check


def _conversion_error(display_name: str, error: str) -> str:
    return (
        error if error.startswith("failed to") else f"failed to convert unstructured {display_name} to typed: {error}"
    )


def _unknown_health(rule: str, fault: str) -> Assessment:
    return Assessment(HealthStatus.UNKNOWN, fault, rule, fault)


BUILTIN_CHECKS: Final[Mapping[tuple[str, str], HealthCheckFunction]] = MappingProxyType(
    dict(
        (
            _build_check("apps", "Deployment", assess_deployment, ("v1",)),
            _build_check("apps", "StatefulSet", assess_stateful_set, ("v1",)),
            _build_check("apps", "ReplicaSet", assess_replica_set, ("v1",)),
            _build_check("apps", "DaemonSet", assess_daemon_set, ("v1",)),
            _build_check("", "Pod", assess_pod, ("v1",)),
            _build_check("", "Service", assess_service, ("v1",)),
            _build_check("", "PersistentVolumeClaim", assess_persistent_volume_claim, ("v1",)),
            _build_check("batch", "Job", assess_job, ("v1",)),
            _build_check("networking.k8s.io", "Ingress", assess_ingress, _ANY_VERSION),
            _build_check("extensions", "Ingress", assess_ingress, _ANY_VERSION),
            _build_check(
                "autoscaling",
                "HorizontalPodAutoscaler",
                assess_horizontal_pod_autoscaler,
                ("v1", "v2", "v2beta1", "v2beta2"),
                display_name="HPA",
            ),
            _build_check("apiregistration.k8s.io", "APIService", assess_api_service, ("v1", "v1beta1")),
            _build_check("argoproj.io", "Workflow", assess_workflow, _ANY_VERSION),
        )
    )
)


def assess_builtin(manifest: Manifest) -> Assessment | None:
    """Return the built-in health, for objects without a script that are not being deleted."""
    group, _ = split_api_version(str(manifest.get("apiVersion", "")))
    check = BUILTIN_CHECKS.get((group, str(manifest.get("kind", ""))))
    return check(manifest) if check else None
