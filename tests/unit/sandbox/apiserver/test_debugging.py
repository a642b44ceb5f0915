"""Ephemeral containers may be added to a Pod, and nothing else of it changes on the way."""

from __future__ import annotations

from typing import Any

from argosy.sandbox.apiserver.ephemeral_containers import keep_only_ephemeral_containers, validate_update


def pod(*debuggers: dict[str, Any], image: str = "a:1") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": image}], "ephemeralContainers": list(debuggers)}
    return {"metadata": {"name": "p", "uid": "u"}, "spec": spec}


DEBUGGER = {"name": "d", "image": "shell:1"}


def test_only_the_ephemeral_containers_of_what_is_sent_count() -> None:
    new = keep_only_ephemeral_containers(pod(DEBUGGER, image="other:2"), pod())
    assert new["spec"] == pod(DEBUGGER)["spec"]


def test_who_owns_the_new_fields_is_kept() -> None:
    sent = {**pod(DEBUGGER), "metadata": {"name": "p", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]}}
    assert keep_only_ephemeral_containers(sent, pod())["metadata"] == {
        "name": "p",
        "uid": "u",
        "managedFields": [{"manager": "m"}],
    }


def test_one_that_is_there_may_be_neither_changed_nor_removed() -> None:
    assert not validate_update(pod(DEBUGGER, {"name": "e"}), pod(DEBUGGER))
    changed = [str(error) for error in validate_update(pod({**DEBUGGER, "image": "shell:2"}), pod(DEBUGGER))]
    removed = [str(error) for error in validate_update(pod(), pod(DEBUGGER))]
    prefix = 'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be'
    assert (changed, removed) == ([f"{prefix} changed"], [f"{prefix} removed"])
