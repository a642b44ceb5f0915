"""Ephemeral containers can be added to a Pod, and nothing else of the Pod changes."""

from __future__ import annotations

from typing import Any

from argosy.sandbox.apiserver.ephemeral_containers import keep_only_ephemeral_containers, validate_update


def pod(*debuggers: dict[str, Any], image: str = "a:1") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": image}], "ephemeralContainers": list(debuggers)}
    return {"metadata": {"name": "p", "uid": "u"}, "spec": spec}


DEBUGGER = {"name": "d", "image": "shell:1"}


def test_update_changes_only_ephemeral_containers() -> None:
    new = keep_only_ephemeral_containers(pod(DEBUGGER, image="other:2"), pod())
    assert new["spec"] == pod(DEBUGGER)["spec"]


def test_update_keeps_managed_fields_of_the_request() -> None:
    sent = {**pod(DEBUGGER), "metadata": {"name": "p", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}}
    assert keep_only_ephemeral_containers(sent, pod())["metadata"] == {
        "name": "p",
        "uid": "u",
        "managedFields": [{"manager": "m"}],
    }


def test_existing_ephemeral_container_cannot_be_changed_or_removed() -> None:
    assert not validate_update(pod(DEBUGGER, {"name": "e"}), pod(DEBUGGER))
    changed = [str(error) for error in validate_update(pod({**DEBUGGER, "image": "shell:2"}), pod(DEBUGGER))]
    removed = [str(error) for error in validate_update(pod(), pod(DEBUGGER))]
    prefix = 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be'
    assert (changed, removed) == ([f"{prefix} changed"], [f"{prefix} removed"])
