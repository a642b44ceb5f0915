"""Health of Services and Ingresses: Healthy once they have a load balancer address.

In: a live manifest. Out: an Assessment without a message, as in Argo CD. Never: connects to the address.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.builtin.fields import read_objects, read_text
from argosy.kube.objects import Manifest


def assess_service(manifest: Manifest) -> Assessment:
    has_load_balancer = read_text(manifest, "spec", "type") == "LoadBalancer"
    if has_load_balancer and not read_objects(manifest, "status", "loadBalancer", "ingress"):
        return Assessment(HealthStatus.PROGRESSING)
    return Assessment(HealthStatus.HEALTHY)


def assess_ingress(manifest: Manifest) -> Assessment:
    """argo: accepts every version, and ignores fields of the wrong type, unlike the other checks."""
    value: Any = manifest
    for name in ("status", "loadBalancer", "ingress"):
        value = value.get(name) if isinstance(value, dict) else None
    return Assessment(HealthStatus.HEALTHY if isinstance(value, list) and value else HealthStatus.PROGRESSING)
