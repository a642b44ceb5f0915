"""Health checks that Argo CD implements in Go, without a script.

In: a live manifest. Out: an Assessment, or None if the kind has no built-in check. Never: raises: an unknown version of
a kind, or a field of the wrong type, is Unknown with a fault, as in Argo CD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.autoscaling import horizontal_pod_autoscaler
from argosy.gitops.health.builtin.batch import job, workflow
from argosy.gitops.health.builtin.extensions import api_service
from argosy.gitops.health.builtin.fields import WrongField
from argosy.gitops.health.builtin.network import ingress, service
from argosy.gitops.health.builtin.pods import pod
from argosy.gitops.health.builtin.storage import claim
from argosy.gitops.health.builtin.workloads import daemon_set, deployment, replica_set, stateful_set
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

__all__ = ["CHECKS", "judge"]

Judge = Callable[[Manifest], Assessment]
_ANY: Final = ()


def _check(
    group: str, kind: str, ask: Judge, versions: tuple[str, ...], called: str = ""
) -> tuple[tuple[str, str], Judge]:
    """Build the entry of a check. `display_name` is the name of the kind in Argo CD's error messages."""
    rule = f"built-in {group}/{kind}" if group else f"built-in {kind}"

    def check(manifest: Manifest) -> Assessment:
        _, version = split_api_version(str(manifest.get("apiVersion", "")))
        if versions and version not in versions:
            return _faulty(rule, f"unsupported {called or kind} GVK: {group}/{version}, Kind={kind}")
        try:
            found = ask(manifest)
        except WrongField as error:
            return _faulty(rule, _conversion(called or kind, str(error)))
        return Assessment(found.health, found.message, rule)

    return (group, kind), check


def _conversion(called: str, error: str) -> str:
    return error if error.startswith("failed to") else f"failed to convert unstructured {called} to typed: {error}"


def _faulty(rule: str, fault: str) -> Assessment:
    return Assessment(Health.UNKNOWN, fault, rule, fault)


CHECKS: Final[Mapping[tuple[str, str], Judge]] = MappingProxyType(
    dict(
        (
            _check("apps", "Deployment", deployment, ("v1",)),
            _check("apps", "StatefulSet", stateful_set, ("v1",)),
            _check("apps", "ReplicaSet", replica_set, ("v1",)),
            _check("apps", "DaemonSet", daemon_set, ("v1",)),
            _check("", "Pod", pod, ("v1",)),
            _check("", "Service", service, ("v1",)),
            _check("", "PersistentVolumeClaim", claim, ("v1",)),
            _check("batch", "Job", job, ("v1",)),
            _check("networking.k8s.io", "Ingress", ingress, _ANY),
            _check("extensions", "Ingress", ingress, _ANY),
            _check(
                "autoscaling",
                "HorizontalPodAutoscaler",
                horizontal_pod_autoscaler,
                ("v1", "v2", "v2beta1", "v2beta2"),
                called="HPA",
            ),
            _check("apiregistration.k8s.io", "APIService", api_service, ("v1", "v1beta1")),
            _check("argoproj.io", "Workflow", workflow, _ANY),
        )
    )
)


def judge(manifest: Manifest) -> Assessment | None:
    """Return the built-in health, for objects without a script that are not being deleted."""
    group, _ = split_api_version(str(manifest.get("apiVersion", "")))
    check = CHECKS.get((group, str(manifest.get("kind", ""))))
    return check(manifest) if check else None
