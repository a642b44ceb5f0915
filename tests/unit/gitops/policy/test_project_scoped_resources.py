"""Repositories and clusters whose Secret names a project are permitted in that project."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from argosy.gitops.application import read_destination
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.destination_cluster_lookup import read_clusters
from argosy.gitops.policy.project_scoped_resources import add_scoped_resources
from argosy.gitops.policy.projects import permits_destination, permits_source
from argosy.kube.objects import Manifest

FAR = "https://far.example"


def secret(kind: str, **data: str) -> Manifest:
    labels = {"argocd.argoproj.io/secret-type": kind}
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"metadata": {"name": f"a-{kind}", "namespace": "argocd", "labels": labels}, "data": encoded}


def scoped_project(*secrets: Manifest, name: str = "team", **spec: Any) -> Project:
    projects = {key: read_project({"metadata": {"name": key}, "spec": spec}) for key in ("team", "other")}
    return add_scoped_resources(projects, secrets, read_clusters(secrets))[name]


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/team/app.git",
        "git@git.example.com:team/app",
        "file:///srv/team/app",
        "https://[2001:db8::1]/app",
        "https://git.example.com/a,b/{c}",
    ],
)
def test_repository_of_a_project_is_permitted_only_there(url: str) -> None:
    repository = secret("repository", url=url, project="team")
    assert permits_source(scoped_project(repository), url)
    assert not permits_source(scoped_project(repository, name="other"), url)
    assert not permits_source(scoped_project(repository), url.removesuffix(".git") + "-2")


def test_other_spelling_of_the_repository_is_permitted() -> None:
    repository = secret("repository", url="HTTPS://Git.Example.com:443/team/app.git", project="team")
    assert permits_source(scoped_project(repository), "https://git.example.com/team/app")


@pytest.mark.parametrize(
    ("kind", "url", "requested"),
    [
        ("repo-creds", "https://git.example.com/team", "https://git.example.com/team"),
        ("repository-write", "https://git.example.com/team", "https://git.example.com/team"),
        ("repository", "*", "https://git.example.com/team"),
        ("repository", "**", "https://git.example.com/team"),
        ("repository", "https://git.example.com/**", "https://git.example.com/team"),
        ("repository", "https://git.example.com/*", "https://git.example.com/team"),
        ("repository", "!https://git.example.com/x", "https://git.example.com/team"),
        ("repository", "", "https://git.example.com/team"),
    ],
)
def test_template_or_pattern_in_a_secret_permits_nothing(kind: str, url: str, requested: str) -> None:
    assert not permits_source(scoped_project(secret(kind, url=url, project="team")), requested)


def test_denials_of_the_project_win_over_scoped_resources() -> None:
    url = "https://git.example.com/team/app"
    secrets = secret("repository", url=url, project="team"), secret("cluster", server=FAR, project="team")
    project = scoped_project(
        *secrets, sourceRepos=["!https://git.example.com/**"], destinations=[{"server": FAR, "namespace": "!prod"}]
    )
    assert not permits_source(project, url)
    assert permits_destination(project, read_destination(FAR, "", "dev"))
    assert not permits_destination(project, read_destination(FAR, "", "prod"))


def test_cluster_of_a_project_is_permitted_only_there() -> None:
    cluster = secret("cluster", name="far", server="HTTPS://Far.example:443/", project="team")
    assert permits_destination(scoped_project(cluster), read_destination(FAR, "far", "any"))
    assert not permits_destination(scoped_project(cluster), read_destination("https://near.example", "", "any"))
    assert not permits_destination(scoped_project(cluster, name="other"), read_destination(FAR, "far", "any"))


def test_cluster_with_namespaces_permits_only_these() -> None:
    project = scoped_project(secret("cluster", server=FAR, project="team", namespaces="dev, te*t,!prod"))
    permitted = [name for name in ("dev", "test", "te*t", "prod", "") if permits_destination(
        project, read_destination(FAR, "", name))]  # fmt: skip
    assert permitted == ["dev", "te*t"]


def test_secret_without_a_project_changes_nothing() -> None:
    secrets = secret("repository", url="https://git.example.com/team"), secret("cluster", server=FAR)
    assert scoped_project(*secrets) == scoped_project()
