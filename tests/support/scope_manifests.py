"""An Application, its project and a Secret, for tests of Secret masking.

In: the fields that a test changes. Out: manifests. Never: uses a cluster.
"""

from __future__ import annotations

import base64
from typing import Any

from support.page_site import CONTROL

HERE = "https://kubernetes.default.svc"


def application(
    name: str = "shop", *, namespace: str = "web", project: str = "ml", status: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {"project": project, "destination": {"server": HERE, "namespace": namespace}},
        "status": status,
    }


def project(*namespaces: str) -> dict[str, Any]:
    """Return the project `ml`, which allows these destination namespaces."""
    destinations = [{"server": HERE, "namespace": namespace} for namespace in namespaces]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "ml", "namespace": CONTROL},
        "spec": {"destinations": destinations},
    }


def secret(namespace: str, value: str, version: int = 1) -> dict[str, Any]:
    metadata = {"name": "own", "namespace": namespace, "resourceVersion": str(version)}
    data = {"token": base64.b64encode(value.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
