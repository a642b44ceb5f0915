"""Health messages that name a cause are explained with the conditions of that object."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.cluster_view.health_message_of_causing_object import explain_health_message
from argosy.kube.controller.cache import InformerCache
from argosy.kube.resource_key import ResourceKey


def living(*conditions: dict[str, str]) -> Any:
    cache = InformerCache()
    metadata = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "1"}
    manifest: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    cache.put({**manifest, "status": {"conditions": list(conditions)}})
    assert cache.get(ResourceKey("apps", "Deployment", "shop", "web"))
    return cache.get


def test_cause_is_explained_with_the_failing_condition_of_the_object() -> None:
    lookout = living(
        {"type": "Progressing", "status": "True", "message": "it goes on"},
        {"type": "Available", "status": "False", "message": "does not have\nminimum availability"},
    )
    assert explain_health_message(lookout, "Caused by apps/Deployment:shop/web and 2 more") == (
        "Deployment/web: does not have minimum availability"
    )


@pytest.mark.parametrize("why", ["", "2 fields differ", "Caused by apps/Deployment:shop/gone", "Caused by nobody"])
def test_message_without_a_known_object_is_unchanged(why: str) -> None:
    assert explain_health_message(living(), why) == why


def test_object_without_conditions_leaves_the_message_unchanged() -> None:
    assert (
        explain_health_message(living(), "Caused by apps/Deployment:shop/web") == "Caused by apps/Deployment:shop/web"
    )
