"""The projects of an installation.

In: a desk. Out: AppProjects. Never: leaves out the default one, which is there even where nobody wrote it.
"""

from __future__ import annotations

from typing import Any

from argosy.app.applications.desk import Desk
from argosy.controllers.settings import EVERYTHING_ALLOWED, PROJECT


async def projects_of(desk: Desk) -> list[dict[str, Any]]:
    found = [dict(each) for each in (await desk.cluster.list(PROJECT, namespace=desk.namespace)).items]
    if not any(each["metadata"]["name"] == "default" for each in found):
        found.append({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", **EVERYTHING_ALLOWED})
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))
