"""Clusters read from Secrets, and the destinations that refer to them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from argosy.gitops.application import Destination, read_application, read_destination
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_SERVER, DestinationClusters, read_clusters
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


def secret(called: str, /, kind: str = "cluster", annotations: dict[str, str] | None = None, **data: str) -> Manifest:
    return {
        "metadata": {
            "name": called,
            "labels": {"argocd.argoproj.io/secret-type": kind},
            "annotations": annotations or {},
        },
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
    }


CLUSTERS = read_clusters(
    [
        secret("far-secret", name="far", server="https://far.example/", config='{"bearerToken": "no-one-sees-this"}'),
        secret("near-secret", name="near", server=IN_CLUSTER_SERVER, project="ml"),
        secret("repo", kind="repository", server="https://git.example"),
        secret("no-address", name="lost"),
        secret("twin-a", name="twin", server="https://a.example"),
        secret("twin-b", name="twin", server="https://b.example"),
    ]
)


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        (Destination(IN_CLUSTER_SERVER, "", "a"), ""),
        (Destination("", "in-cluster", "a"), ""),
        (Destination("", "near", "a"), ""),
        (Destination(IN_CLUSTER_SERVER, "near", "a"), "can't have both name and server"),
        (Destination("", "far", "a"), ""),
        (Destination("https://far.example", "", "a"), ""),
        (read_destination("HTTPS://Far.Example:443/", "", "a"), ""),
        (
            Destination("", "twin", "a"),
            "there are 2 clusters with the same name: [https://a.example https://b.example]",
        ),
        (Destination("https://b.example", "", "a"), ""),
        (
            Destination("https://nowhere.example", "", "a"),
            'error getting cluster by server "https://nowhere.example": cluster "https://nowhere.example" not found',
        ),
        (Destination("", "lost", "a"), "there are no clusters with this name: lost"),
        (Destination("", "", "a"), "Destination server missing from app spec"),
    ],
)
def test_destination_of_an_unknown_or_ambiguous_cluster_is_an_error(destination: Destination, words: str) -> None:
    error = CLUSTERS.find_destination_error(destination)
    assert words in error
    assert bool(error) is bool(words)


def resolve_destination(clusters: DestinationClusters, **destination: str) -> Destination:
    spec: dict[str, Any] = {"destination": destination}
    return clusters.resolve_destination(read_application({"metadata": {"name": "a"}, "spec": spec})).destination


def test_destination_is_completed_with_name_and_server_of_its_secret() -> None:
    assert resolve_destination(CLUSTERS, name="near", namespace="a") == Destination(IN_CLUSTER_SERVER, "near", "a")
    assert resolve_destination(CLUSTERS, name="far") == Destination("https://far.example", "far", "")
    assert resolve_destination(CLUSTERS, server="https://far.example") == Destination("https://far.example", "far", "")
    assert resolve_destination(CLUSTERS, name="unheard") == Destination("", "unheard", "")
    assert resolve_destination(CLUSTERS, name="in-cluster") == Destination("", "in-cluster", "")


def test_cluster_credentials_are_not_kept() -> None:
    assert "no-one-sees-this" not in repr(CLUSTERS)


def test_skip_reconcile_annotation_of_the_secret_pauses_a_cluster() -> None:
    paused = {"argocd.argoproj.io/skip-reconcile": "true"}
    clusters = read_clusters([secret("near", annotations=paused, name="near", server=IN_CLUSTER_SERVER)])
    assert clusters.is_paused(Destination(IN_CLUSTER_SERVER, "", "a")) and clusters.is_paused(
        Destination("", "near", "a")
    )
    assert not CLUSTERS.is_paused(Destination(IN_CLUSTER_SERVER, "", "a"))


def test_in_cluster_destination_can_be_disabled() -> None:
    clusters = read_clusters([], {"cluster.inClusterEnabled": "false"})
    assert "disabled by cluster.inClusterEnabled" in clusters.find_destination_error(
        Destination(IN_CLUSTER_SERVER, "", "a")
    )


def test_malformed_cluster_secrets_are_ignored() -> None:
    odd = secret("odd", name="odd", server="x")
    assert read_clusters([{**odd, "data": {"server": "!!!"}}, {**odd, "data": None}]) == DestinationClusters()


@pytest.mark.parametrize(
    ("limits", "namespace", "words"),
    [
        ({}, "c", ""),
        ({}, "", ""),
        ({"namespaces": "a, b"}, "b", ""),
        ({"namespaces": "a, b"}, "c", 'namespace "c" for Role "r" is not managed'),
        ({"namespaces": "a"}, "", 'cluster level Role "r" can not be managed when in namespaced mode'),
        ({"namespaces": "a", "clusterResources": "true"}, "", ""),
        ({"clusterResources": "false"}, "", ""),
    ],
)
def test_cluster_secret_limits_managed_namespaces(limits: dict[str, str], namespace: str, words: str) -> None:
    cluster = read_clusters([secret("near", name="near", server=IN_CLUSTER_SERVER, **limits)]).find(
        Destination(IN_CLUSTER_SERVER, "", "a")
    )
    key = ResourceKey("", "Role", namespace, "r")
    assert cluster is not None
    assert cluster.find_scope_error(key, is_namespaced=bool(namespace)) == words
