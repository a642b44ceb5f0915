"""ApplicationSets without an ApplicationSet controller: the engine does not expand them, but sets a condition."""

from __future__ import annotations

import pytest

from argosy.errors import ClusterError
from argosy.gitops.policy.applicationset_controller_detection import NO_CONTROLLER_REASON
from argosy.kube.objects import Manifest
from argosy.kube.schema.bundled_crds import load_definition
from support.deadlines import wait_until_async
from support.engine import CONTROL, Room

pytestmark = pytest.mark.anyio


def application_set(name: str) -> Manifest:
    spec = {"generators": [{"list": {"elements": []}}], "template": {"metadata": {"name": "x"}, "spec": {}}}
    metadata = {"name": name, "namespace": CONTROL}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata, "spec": spec}


async def test_application_set_without_controller_gets_a_condition(room: Room) -> None:
    await room.cluster.create(load_definition("applicationsets.argoproj.io"))

    async def is_created() -> bool:
        """Return False while a real server does not serve the new kind yet."""
        try:
            await room.cluster.create(application_set("teams"))
        except ClusterError as error:
            if error.code != 404:
                raise
            return False
        return True

    await wait_until_async(is_created)

    async def has_condition() -> bool:
        manifest = await room.get("argoproj.io/ApplicationSet", "teams", CONTROL) or {}
        return [condition["reason"] for condition in (manifest.get("status") or {}).get("conditions") or ()] == [
            NO_CONTROLLER_REASON
        ]

    await wait_until_async(has_condition)
