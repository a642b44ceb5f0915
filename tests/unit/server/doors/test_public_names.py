"""Names and addresses are public where they belong, and nobody can test guesses by naming objects after them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from argosy.model.annotations import INSTANCE_LABEL, TRACKING_ID
from argosy.server.doors.application_masks import ApplicationMasks
from argosy.server.doors.hiding import mask_of
from support.page_site import CONTROL, StillLookout

HERE = "https://kubernetes.default.svc"
VALUE = "blue-lagoon"
TOLD, HIDDEN = f"cannot reach {VALUE}", "cannot reach ++++++++"
NO_PODS = {"namespaceResourceWhitelist": [{"group": "rbac.authorization.k8s.io", "kind": "Role"}]}


def app(name: str = "shop", namespace: str = "web", url: str = "https://git.example.com/r") -> dict[str, Any]:
    source = {"repoURL": url, "path": "app", "targetRevision": "main"}
    spec = {"project": "ml", "source": source, "destination": {"server": HERE, "namespace": namespace}}
    metadata = {"name": name, "namespace": CONTROL}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def project(name: str = "ml", namespace: str = CONTROL, **spec: Any) -> dict[str, Any]:
    spec = {"sourceRepos": ["*"], "destinations": [{"server": HERE, "namespace": "web"}], **spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": spec}


def secret(namespace: str = "web", value: str = VALUE, **more: str) -> dict[str, Any]:
    labels = {"argocd.argoproj.io/secret-type": "repository"} if more else {}
    values = {"password": value, **more}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    metadata = {"name": "own", "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


def role(namespace: str, name: str = VALUE) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata}


def pod(namespace: str) -> dict[str, Any]:
    spec = {"containers": [{"name": VALUE}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}


def cluster_wide(kind: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": VALUE}}


def told(*manifests: dict[str, Any], text: str = TOLD) -> str:
    lookout = StillLookout(manifests)
    return ApplicationMasks(mask_of(lookout, CONTROL), lookout.cache, CONTROL).by_name("shop").hide_text(text)


GUESSES = {
    "a Role in another namespace": role("other"),
    "a Role in a namespace of that name": role(VALUE, "r"),
    "a container in another namespace": pod("other"),
    "a Namespace": cluster_wide("Namespace"),
    "another Application": app(VALUE, "other"),
    "an AppProject in another namespace": project(VALUE, "other"),
}


@pytest.mark.parametrize("case", GUESSES)
def test_a_name_elsewhere_unmasks_nothing(case: str) -> None:
    assert told(project(), app(), secret(), GUESSES[case]) == HIDDEN


def test_an_address_of_another_application_unmasks_nothing() -> None:
    address = "https://git.example.com/blue-lagoon"
    manifests = project(), app(), secret(value=address)
    text = f"cannot reach {address}"
    assert told(*manifests, app("other", "other", f"{address}/guess"), text=text) == HIDDEN
    assert told(project(), app(url=f"{address}/own"), secret(value=address), text=text) == text


@pytest.mark.parametrize("own", [role("web"), pod("web")])
def test_a_name_in_a_namespace_whose_secrets_its_writers_can_read_is_public(own: dict[str, Any]) -> None:
    assert told(project(), app(), secret(), own) == TOLD


@pytest.mark.parametrize("own", [role("web"), pod("web")])
@pytest.mark.parametrize("others", [(project(**NO_PODS), secret()), (secret(),)])
def test_a_name_unmasks_no_secret_that_its_writers_cannot_read(own: dict[str, Any], others: Any) -> None:
    assert told(app(), own, *others) == HIDDEN


def test_a_name_unmasks_no_credential_of_the_project() -> None:
    token = "ghp-zx81kqplm03vbn7rtyw"
    declared = secret(CONTROL, token, project="ml")
    assert told(app(), project(), role("web", token), declared, text=TOLD.replace(VALUE, token)) == HIDDEN
    short = secret(CONTROL, project="ml")
    assert told(app(), project(), role("web"), short) == told(app(), project(), short) == TOLD


def test_a_name_unmasks_no_value_that_another_secret_has_too_if_that_one_cannot_be_read() -> None:
    shop = app()
    shop["status"] = {"resources": [{"kind": "Role", "namespace": "old", "name": "r", "status": "Synced"}]}
    assert told(project(), shop, role("web"), secret(), secret("old")) == HIDDEN


@pytest.mark.parametrize("safe", [cluster_wide("StorageClass"), project(VALUE)])
def test_names_that_administrators_give_are_public_everywhere(safe: dict[str, Any]) -> None:
    assert told(project(), app(), secret(), safe) == TOLD


def delivered(kind: str, label: str = "") -> dict[str, Any]:
    made = cluster_wide(kind)
    tracking = {"labels": {label: "shop"}} if label else {"annotations": {TRACKING_ID: f"shop:/{kind}:/{VALUE}"}}
    return {**made, "metadata": {**made["metadata"], **tracking}}


def settings(label: str) -> dict[str, Any]:
    metadata = {"name": "argocd-cm", "namespace": CONTROL}
    data = {"application.instanceLabelKey": label}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    "guess",
    [
        delivered("ClusterRole"), delivered("ClusterRole", INSTANCE_LABEL),
        delivered("ClusterRole", "corp.example/app"), cluster_wide("CustomResourceDefinition"),
        {"apiVersion": "example.com/v1", "kind": VALUE, "metadata": {"name": "x"}},
        {"apiVersion": "example.com/v1", "kind": VALUE, "metadata": {"name": "x", "namespace": "other"}},
    ],
)  # fmt: skip
def test_a_cluster_wide_name_that_tenants_choose_unmasks_nothing(guess: dict[str, Any]) -> None:
    assert told(project(), app(), secret(), settings("corp.example/app"), guess) == HIDDEN


def test_names_of_an_applications_own_objects_are_public_in_it() -> None:
    shop = app()
    shop["status"] = {"resources": [{"kind": "Role", "namespace": "web", "name": VALUE, "status": "Synced"}]}
    assert told(project(**NO_PODS), shop, secret()) == TOLD
