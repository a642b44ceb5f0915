"""Tests drift attribution: what made an Application differ, judged from cached data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.app_row import build_row
from argosy.gitops.application_client.drift_attribution import DriftTextCache, describe_drift_authors
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

OLD, NEW = "a" * 40, "b" * 40
ENDED = "2026-11-15T10:00:00Z"
KEY = ResourceKey("", "ConfigMap", "ml", "settings")


def application(git: str = NEW, *, server: str = "https://kubernetes.default.svc", **row: Any) -> dict[str, Any]:
    """Return an Application whose ConfigMap differs; `git` is the revision in Git, and OLD was deployed."""
    differs = {"kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "OutOfSync", **row}
    source = {"repoURL": "https://git.example.org/a", "path": "."}
    state = {"phase": "Succeeded", "operation": {"sync": {}}, "startedAt": ENDED, "finishedAt": ENDED}
    return {
        "metadata": {"name": "models", "namespace": "argocd"},
        "spec": {"project": "default", "source": source, "destination": {"server": server, "namespace": "ml"}},
        "status": {
            "sync": {"status": "OutOfSync", "revision": git},
            "health": {"status": "Healthy"},
            "resources": [differs],
            "history": [{"id": 0, "revision": OLD, "source": source, "deployedAt": ENDED}],
            "operationState": {**state, "syncResult": {"revision": OLD}},
        },
    }


def live(*writers: tuple[str, str, str], version: str = "1") -> Manifest:
    fields = [{"manager": name, "time": at, "fieldsV1": {f"f:{part}": {}}} for name, at, part in writers]
    return {"metadata": {"name": "settings", "resourceVersion": version, "managedFields": fields}}


def describe_drift(app: dict[str, Any], live_object: Manifest | None) -> str:
    return describe_drift_authors(read_application(app), {KEY: live_object}.get)


OURS = ("argocd-controller", ENDED, "data")
EARLIER = ("kubectl-edit", "2026-11-15T09:00:00Z", "data")
HAND = ("kubectl-edit", "2026-11-15T10:30:00Z", "data")


@pytest.mark.parametrize(
    ("app", "live_object", "expected"),
    [
        (application(), live(OURS), "1 object differs: 1 Git change"),
        (application(OLD), live(OURS, HAND), "1 object differs: 1 by kubectl-edit"),
        (application(OLD), live(OURS), ""),  # a default or a webhook: only a render can tell
        (application(), live(OURS, HAND), ""),  # changed in Git, by kubectl-edit or by both
        (application(), live(OURS, EARLIER), "1 object differs: 1 Git change"),
        (application(), live(OURS, ("manager", HAND[1], "metadata")), "1 object differs: 1 Git change"),
        (application(requiresPruning=True), live(OURS), "1 to prune"),
        (application(health={"status": "Missing"}), None, "1 to create"),
        (application(OLD, health={"status": "Missing"}), None, "1 deleted in the cluster"),
        (application(), None, ""),  # the object may exist but not be visible
        (application(server="https://elsewhere.example.org"), live(OURS), ""),
    ],
)
def test_drift_is_attributed_only_if_certain(app: dict[str, Any], live_object: Manifest | None, expected: str) -> None:
    assert describe_drift(app, live_object) == expected


def test_stored_drift_text_is_used_until_live_object_changes() -> None:
    counted, app = DriftTextCache(), read_application(application())
    counted.store(app, {KEY: live(OURS)}.get, "2 fields differ: 2 Git change")
    assert counted.describe_drift(app, {KEY: live(OURS)}.get) == "2 fields differ: 2 Git change"
    assert counted.describe_drift(app, {KEY: live(OURS, version="2")}.get) == "1 object differs: 1 Git change"
    busy = replace(app, operation=app.state.request if app.state else None)
    assert counted.describe_drift(busy, {KEY: live(OURS)}.get) == ""  # no drift text while an operation is requested


def test_drift_text_of_a_row_is_computed_once() -> None:
    counted, row = DriftTextCache(), build_row(application())
    reads: list[int] = []

    def read() -> Application:
        reads.append(1)
        return read_application(application())

    first, again = (counted.add_drift_text(row, read, {KEY: live(OURS)}.get) for _ in range(2))
    assert (first.why, again is first, len(reads)) == ("1 object differs: 1 Git change", True, 1)
