"""Which changes make which page of an Application other."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.applications.list.page import shape_of
from argosy.features.applications.page_updates import its_own, near, of_applications, of_lists
from argosy.gitops.application import read_application
from argosy.web.auth.caller import NOBODY
from argosy.web.request import Asked, Query


def asked() -> Asked:
    spec = {
        "source": {"repoURL": "https://git.example.com/a.git", "path": "."},
        "destination": {"namespace": "ml", "server": "https://kubernetes.default.svc"},
    }
    resources = [
        {"kind": "ConfigMap", "namespace": "other", "name": "a", "status": "Synced", "version": "v1"},
        {"kind": "PersistentVolume", "name": "disk", "status": "Synced", "version": "v1"},
    ]
    metadata = {"name": "web", "namespace": "argocd", "resourceVersion": "7"}
    app = read_application({"metadata": metadata, "spec": spec, "status": {"resources": resources}})
    return Asked("GET", "/apps/argocd/web", {}, Query([]), {}, NOBODY, None, subject=app)  # type: ignore[arg-type]


def changed(kind: str, namespace: str, name: str = "x") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": namespace, "name": name}}


@pytest.mark.parametrize(
    ("manifest", "matters"),
    [
        (changed("Application", "argocd", "web"), True),
        (changed("Application", "argocd", "other"), False),
        (changed("Pod", "ml"), True),
        (changed("ConfigMap", "other"), True),
        (changed("Pod", "somewhere"), False),
        (changed("PersistentVolume", "", "disk"), True),
        (changed("PersistentVolume", "", "another"), False),
        (changed("Node", "", "disk"), False),
    ],
)
def test_a_tree_follows_what_is_where_its_objects_are(manifest: dict[str, Any], matters: bool) -> None:
    assert near(asked(), None, manifest) is matters
    assert near(asked(), manifest, None) is matters


def test_other_pages_follow_their_application_alone() -> None:
    assert its_own(asked(), None, changed("Application", "argocd", "web"))
    assert not its_own(asked(), None, changed("Application", "argocd", "web-2"))
    assert of_applications(None, changed("Application", "argocd"))
    assert not of_applications(None, changed("Pod", "ml"))


def test_lists_follow_applications_and_projects() -> None:
    assert of_lists(None, changed("AppProject", "argocd"))
    assert not of_lists(changed("Secret", "argocd"), None)


def test_another_order_is_another_shape() -> None:
    assert shape_of(["a", "b"]) == shape_of(iter(["a", "b"]))
    assert shape_of(["a", "b"]) != shape_of(["b", "a"])
