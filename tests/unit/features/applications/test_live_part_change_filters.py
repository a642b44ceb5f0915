"""Filters that decide which object changes update which page of an Application."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.applications.list.page import digest_ids
from argosy.features.applications.live_page_change_filters import (
    affects_application,
    affects_list,
    is_application_change,
    is_own_change,
)
from argosy.gitops.application import read_application
from argosy.web.request import RequestContext
from support.page_site import a_request, a_site


def build_request() -> RequestContext:
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
    return a_request(a_site(), "GET", "/apps/argocd/web", subject=app)


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
def test_application_page_follows_changes_where_its_objects_are(manifest: dict[str, Any], matters: bool) -> None:
    assert affects_application(build_request(), None, manifest) is matters
    assert affects_application(build_request(), manifest, None) is matters


def test_change_filters_match_the_application_itself_or_any_application() -> None:
    assert is_own_change(build_request(), None, changed("Application", "argocd", "web"))
    assert not is_own_change(build_request(), None, changed("Application", "argocd", "web-2"))
    assert is_application_change(None, changed("Application", "argocd"))
    assert not is_application_change(None, changed("Pod", "ml"))


def test_application_list_follows_projects_and_ignores_secrets() -> None:
    assert affects_list(None, changed("AppProject", "argocd"))
    assert not affects_list(changed("Secret", "argocd"), None)


def test_id_digest_depends_on_the_order() -> None:
    assert digest_ids(["a", "b"]) == digest_ids(iter(["a", "b"]))
    assert digest_ids(["a", "b"]) != digest_ids(["b", "a"])
