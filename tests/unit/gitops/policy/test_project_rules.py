"""What a project permits, and the messages for what it denies."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.application import Destination, read_application
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters, KnownCluster
from argosy.gitops.policy.projects import (
    find_permission_error,
    find_signature_keys,
    list_violations,
    permits_destination,
    permits_kind,
    permits_source,
)
from argosy.kube.resource_key import GroupKind, ResourceKey


def project(**spec: Any) -> Project:
    return read_project({"metadata": {"name": "ml"}, "spec": spec})


@pytest.mark.parametrize(
    ("patterns", "url", "expected"),
    [
        (["*"], "https://git.example/a/b", True),
        ([], "https://git.example/a/b", False),
        (["https://git.example/a/b"], "https://git.example/a/b.git", True),
        (["https://git.example/a/b.git"], "https://GIT.example/a/b/", True),
        (["https://git.example/a/*"], "https://git.example/a/b", True),
        (["https://git.example/*"], "https://git.example/a/b", False),
        (["https://git.example/**"], "https://git.example/a/b", True),
        (["https://git.example/a"], "https://git.example/a-evil", False),
        (["*", "!https://git.example/a/*"], "https://git.example/a/b", False),
        (["!https://git.example/a/*"], "https://git.example/c/d", False),
    ],
)
def test_source_patterns_match_by_path_segment_and_deny_wins(patterns: list[str], url: str, expected: bool) -> None:
    assert permits_source(project(sourceRepos=patterns), url) is expected


HERE = "https://kubernetes.default.svc"


@pytest.mark.parametrize(
    ("entries", "namespace", "expected"),
    [
        ([{"server": "*", "namespace": "*"}], "prod", True),
        ([], "prod", False),
        ([{"server": HERE, "namespace": "prod"}], "prod", True),
        ([{"server": HERE, "namespace": "team-*"}], "team-a", True),
        ([{"server": HERE, "namespace": "team-*"}], "prod", False),
        ([{"server": HERE, "namespace": "*"}, {"server": HERE, "namespace": "!kube-system"}], "kube-system", False),
        ([{"server": HERE, "namespace": "*"}, {"server": HERE, "namespace": "!kube-system"}], "prod", True),
        ([{"server": "*", "namespace": "*"}, {"server": "!" + HERE, "namespace": "*"}], "prod", False),
        ([{"server": "https://other", "namespace": "*"}], "prod", False),
        ([{"name": "in-cluster", "namespace": "*"}], "prod", True),
    ],
)
def test_destinations_match_server_and_namespace(entries: list[dict[str, str]], namespace: str, expected: bool) -> None:
    destination = Destination(HERE, "in-cluster", namespace)
    assert permits_destination(project(destinations=entries), destination) is expected


@pytest.mark.parametrize(
    ("spec", "is_namespaced", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"namespaceResourceWhitelist": []}, True, False),
        ({"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}, True, True),
        ({"namespaceResourceBlacklist": [{"group": "apps", "kind": "Deploy*"}]}, True, False),
        ({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}, False, True),
        (
            {
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "clusterResourceBlacklist": [{"group": "apps", "kind": "Deployment"}],
            },
            False,
            False,
        ),
        ({"clusterResourceWhitelist": [{"group": "apps", "kind": "Deployment", "name": "other"}]}, False, False),
        ({"clusterResourceWhitelist": [{"group": "apps", "kind": "Deployment", "name": "w*"}]}, False, True),
    ],
)
def test_namespaced_kinds_are_permitted_by_default_and_cluster_kinds_are_not(
    spec: dict[str, Any], is_namespaced: bool, expected: bool
) -> None:
    kind = GroupKind("apps", "Deployment")
    assert permits_kind(project(**spec), kind, is_namespaced=is_namespaced, name="web") is expected


def test_error_names_the_namespace_that_is_not_permitted() -> None:
    rules = project(destinations=[{"server": HERE, "namespace": "prod"}])
    key = ResourceKey("apps", "Deployment", "kube-system", "web")
    error = find_permission_error(rules, key, is_namespaced=True, destination=Destination(HERE, "", "prod"))
    assert error == "namespace kube-system is not permitted in project 'ml': destinations does not list it"


def test_all_violated_project_rules_are_listed() -> None:
    app = read_application(
        {
            "metadata": {"name": "models", "namespace": "elsewhere"},
            "spec": {
                "project": "ml",
                "source": {"repoURL": "https://git.example/x"},
                "destination": {"server": HERE, "namespace": "prod"},
            },
        }
    )
    violations = list_violations(project(), app, control_namespace="argocd")
    assert len(violations) == 3
    assert "namespace 'elsewhere' is not permitted to use project 'ml'" in violations[0]
    assert violations[0].endswith("sourceNamespaces does not list it")
    assert violations[1] == (
        "application repo https://git.example/x is not permitted in project 'ml': sourceRepos does not list it"
    )
    assert (
        "do not match any of the allowed destinations in project 'ml': destinations does not list it" in violations[2]
    )
    assert list_violations(None, app, control_namespace="argocd") == [
        "Application referencing project ml which does not exist"
    ]


def refusals(rules: Project, **spec: Any) -> list[str]:
    defaults = {"source": {"repoURL": "https://git.example/x"}, "destination": {"server": HERE, "namespace": "prod"}}
    app = read_application({"metadata": {"name": "models", "namespace": "argocd"}, "spec": {**defaults, **spec}})
    return list_violations(rules, app, control_namespace="argocd")


def test_violation_quotes_the_deny_pattern() -> None:
    everywhere = {"server": "*", "namespace": "*"}
    by_repo = project(sourceRepos=["*", "!https://git.example/x"], destinations=[everywhere])
    assert refusals(by_repo)[0].endswith("sourceRepos denies it by '!https://git.example/x'")
    by_namespace = project(sourceRepos=["*"], destinations=[everywhere, {"server": "*", "namespace": "!prod"}])
    assert refusals(by_namespace)[0].endswith("destinations denies it by '!prod'")
    by_place = project(sourceRepos=["*"], destinations=[everywhere, {"server": f"!{HERE}", "namespace": "*"}])
    assert refusals(by_place)[0].endswith(f"destinations denies it by '!{HERE}'")


def test_project_scoped_clusters_restrict_destinations() -> None:
    rules = project(sourceRepos=["*"], destinations=[{"server": "*", "namespace": "*"}])
    app = read_application(
        {
            "metadata": {"name": "models", "namespace": "argocd"},
            "spec": {"project": "ml", "source": {"repoURL": "x"}, "destination": {"server": HERE, "namespace": "a"}},
        }
    )
    own_cluster, other_cluster = (
        KnownCluster("here", HERE, "s", project="ml"),
        KnownCluster("here", HERE, "s", project="web"),
    )
    for clusters, is_allowed in (((own_cluster,), True), ((other_cluster,), False), ((), False)):
        violations = list_violations(rules, app, control_namespace="argocd", clusters=DestinationClusters(clusters))
        assert (violations == []) is is_allowed
        assert is_allowed or "permitOnlyProjectScopedClusters" in violations[0]
    assert list_violations(rules, app, control_namespace="argocd") == []


@pytest.mark.parametrize(
    ("spec", "is_namespaced", "rule"),
    [
        ({"namespaceResourceBlacklist": [{"group": "*", "kind": "*"}]}, True, "namespaceResourceBlacklist lists it"),
        ({"namespaceResourceWhitelist": []}, True, "namespaceResourceWhitelist does not list it"),
        ({}, False, "clusterResourceWhitelist does not list it"),
        (
            {
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "clusterResourceBlacklist": [{"group": "", "kind": "Thing"}],
            },
            False,
            "clusterResourceBlacklist lists it",
        ),
    ],
)
def test_error_names_the_list_that_forbids_a_kind(spec: dict[str, Any], is_namespaced: bool, rule: str) -> None:
    key = ResourceKey("", "Thing", "prod" if is_namespaced else "", "a")
    error = find_permission_error(
        project(**spec), key, is_namespaced=is_namespaced, destination=Destination(HERE, "", "prod")
    )
    assert error == f"resource :Thing is not permitted in project ml: {rule}"


@pytest.mark.parametrize(
    ("policies", "is_refused"),
    [
        ([], False),
        ([{"repos": [{"url": "*"}], "gpg": {"mode": "head", "keys": ["A"]}}], False),
        ([{"repos": [{"url": "*"}], "gpg": {"mode": "head"}}] * 2, True),
        ([{"repos": [{"url": "*"}], "gpg": {"mode": "strict"}}], True),
        ([{"repos": [{"url": "*"}]}], True),
        ([{"repos": [{"url": "*"}], "gpg": {"mode": "none"}}], False),
        ([{"repos": [{"url": "https://git.example/**"}], "gpg": {"mode": "strict"}}], True),
        ([{"repos": [{"url": "https://other.example/**"}], "gpg": {"mode": "strict"}}], False),
        ([{"repos": [{"url": "*"}, {"url": "!https://GIT.example:443/a/*"}], "gpg": {"mode": "strict"}}], False),
    ],
)
def test_source_is_refused_if_its_integrity_cannot_be_verified(policies: list[Any], is_refused: bool) -> None:
    rules = project(sourceRepos=["*"], sourceIntegrity={"git": {"policies": policies}})
    assert permits_source(rules, "https://git.example/a/b") is not is_refused
    app = read_application({"spec": {"project": "ml", "source": {"repoURL": "https://git.example/a/b"}}})
    reasons = [
        violation for violation in list_violations(rules, app, control_namespace="") if "sourceIntegrity" in violation
    ]
    assert bool(reasons) is is_refused


def test_integrity_policy_decides_which_keys_may_sign_and_signature_keys_count_for_other_repositories() -> None:
    def keys(url: str, **policy: Any) -> tuple[str, ...] | None:
        policies = [{"repos": [{"url": "https://git.example/**"}], "gpg": policy}] if policy else []
        spec: dict[str, Any] = {"signatureKeys": [{"keyID": "OLD"}], "sourceIntegrity": {"git": {"policies": policies}}}
        return find_signature_keys(project(sourceRepos=["*"], **spec), url)

    selected, other = "https://git.example/a/b", "https://other.example/a/b"
    assert keys(selected) == ("OLD",)
    assert keys(selected, mode="head", keys=["NEW"]) == ("NEW",)
    assert keys(selected, mode="head") == ()
    assert keys(selected, mode="none") is None
    assert keys(other, mode="head", keys=["NEW"]) == ("OLD",)
    assert find_signature_keys(project(sourceRepos=["*"]), other) is None
