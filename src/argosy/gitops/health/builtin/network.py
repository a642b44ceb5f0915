"""Health of Services and Ingresses: Healthy once they have a load balancer address.

In: a live manifest. Out: an Assessment without a message, as in Argo CD. Never: connects to the address.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.builtin.fields import items, text
from argosy.kube.objects import Manifest


def service(manifest: Manifest) -> Assessment:
    balanced = text(manifest, "spec", "type") == "LoadBalancer"
    if balanced and not items(manifest, "status", "loadBalancer", "ingress"):
        return Assessment(Health.PROGRESSING)
    return Assessment(Health.HEALTHY)


def ingress(manifest: Manifest) -> Assessment:
    """argo: accepts every version, and ignores fields of the wrong type, unlike the other checks."""
    value: Any = manifest
    for name in ("status", "loadBalancer", "ingress"):
        value = value.get(name) if isinstance(value, dict) else None
    return Assessment(Health.HEALTHY if isinstance(value, list) and value else Health.PROGRESSING)
