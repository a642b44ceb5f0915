"""Names and addresses are unmasked where they belong, but nobody can test guesses by naming objects after them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from argosy.annotations import INSTANCE_LABEL, TRACKING_ID
from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks
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


def mask_text(*manifests: dict[str, Any], text: str = TOLD) -> str:
    lookout = StillLookout(manifests)
    return (
        ApplicationMasks(build_mask(lookout, CONTROL), lookout.cache, CONTROL)
        .get_mask_for_application("shop")
        .mask_text(text)
    )


GUESSES = {
    "a Role in another namespace": role("other"),
    "a Role in a namespace of that name": role(VALUE, "r"),
    "a container in another namespace": pod("other"),
    "a Namespace": cluster_wide("Namespace"),
    "another Application": app(VALUE, "other"),
    "an AppProject in another namespace": project(VALUE, "other"),
}


@pytest.mark.parametrize("case", GUESSES)
def test_name_outside_the_application_unmasks_nothing(case: str) -> None:
    assert mask_text(project(), app(), secret(), GUESSES[case]) == HIDDEN


def test_repository_url_of_another_application_unmasks_nothing() -> None:
    address = "https://git.example.com/blue-lagoon"
    manifests = project(), app(), secret(value=address)
    text = f"cannot reach {address}"
    assert mask_text(*manifests, app("other", "other", f"{address}/guess"), text=text) == HIDDEN
    assert mask_text(project(), app(url=f"{address}/own"), secret(value=address), text=text) == text


@pytest.mark.parametrize("own", [role("web"), pod("web")])
def test_name_is_public_in_a_namespace_whose_secrets_its_writers_can_read(own: dict[str, Any]) -> None:
    assert mask_text(project(), app(), secret(), own) == TOLD


@pytest.mark.parametrize("own", [role("web"), pod("web")])
@pytest.mark.parametrize("others", [(project(**NO_PODS), secret()), (secret(),)])
def test_name_unmasks_no_secret_that_its_writers_cannot_read(own: dict[str, Any], others: Any) -> None:
    assert mask_text(app(), own, *others) == HIDDEN


def test_name_unmasks_no_project_credential() -> None:
    token = "ghp-zx81kqplm03vbn7rtyw"
    declared = secret(CONTROL, token, project="ml")
    assert mask_text(app(), project(), role("web", token), declared, text=TOLD.replace(VALUE, token)) == HIDDEN
    short = secret(CONTROL, project="ml")
    assert mask_text(app(), project(), role("web"), short) == mask_text(app(), project(), short) == TOLD


def test_name_unmasks_no_value_shared_with_an_unreadable_secret() -> None:
    shop = app()
    shop["status"] = {"resources": [{"kind": "Role", "namespace": "old", "name": "r", "status": "Synced"}]}
    assert mask_text(project(), shop, role("web"), secret(), secret("old")) == HIDDEN


@pytest.mark.parametrize("safe", [cluster_wide("StorageClass"), project(VALUE)])
def test_names_given_by_administrators_are_public_everywhere(safe: dict[str, Any]) -> None:
    assert mask_text(project(), app(), secret(), safe) == TOLD


def delivered(kind: str, label: str = "") -> dict[str, Any]:
    manifest = cluster_wide(kind)
    tracking = {"labels": {label: "shop"}} if label else {"annotations": {TRACKING_ID: f"shop:/{kind}:/{VALUE}"}}
    return {**manifest, "metadata": {**manifest["metadata"], **tracking}}


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
def test_cluster_scoped_name_chosen_by_a_tenant_unmasks_nothing(guess: dict[str, Any]) -> None:
    assert mask_text(project(), app(), secret(), settings("corp.example/app"), guess) == HIDDEN


def test_names_of_an_applications_own_objects_are_public_in_it() -> None:
    shop = app()
    shop["status"] = {"resources": [{"kind": "Role", "namespace": "web", "name": VALUE, "status": "Synced"}]}
    assert mask_text(project(**NO_PODS), shop, secret()) == TOLD


def watched(*manifests: dict[str, Any]) -> tuple[StillLookout, ApplicationMasks]:
    lookout = StillLookout((project(), app(), secret(), *manifests))
    return lookout, ApplicationMasks(build_mask(lookout, CONTROL), lookout.cache, CONTROL)


LABEL = "corp.example/app"
GUESS = delivered("ClusterRole", LABEL)


def test_tenant_name_unmasks_nothing_if_the_settings_arrive_last() -> None:
    lookout, masks = watched()
    lookout.put(GUESS)
    lookout.put(settings(LABEL))
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == HIDDEN


def test_tenant_name_unmasks_nothing_after_the_label_key_changed() -> None:
    lookout, masks = watched(settings(LABEL))
    lookout.put(settings("corp.example/other"))
    lookout.put(GUESS)  # it keeps the old label until its next sync
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == HIDDEN
    lookout.put(delivered("ClusterRole", "corp.example/other"))
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == HIDDEN


def test_cluster_scoped_name_is_masked_once_an_application_delivers_it() -> None:
    lookout, masks = watched()
    lookout.put(cluster_wide("ClusterRole"))
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == TOLD
    lookout.put(delivered("ClusterRole"))
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == HIDDEN
    lookout.put(cluster_wide("StorageClass"))
    assert masks.get_mask_for_application("shop").mask_text(TOLD) == TOLD, "an administrator named another object so"


def test_application_lists_are_masked_again_when_a_name_stops_being_public() -> None:
    shop = app()
    shop["status"] = {"conditions": [{"type": "SyncError", "message": TOLD}]}
    lookout, masks = watched(GUESS)
    lookout.put(shop)
    message = masks.mask_application(shop)["status"]["conditions"][0]["message"]
    assert message == TOLD
    lookout.put(settings(LABEL))
    assert masks.mask_application(shop)["status"]["conditions"][0]["message"] == HIDDEN


def test_streams_are_masked_again_when_a_name_stops_being_public() -> None:
    lookout, masks = watched(GUESS)
    assert masks.get_mask_for_application("shop").mask_chunk(TOLD.encode()) == TOLD.encode()
    lookout.put(settings(LABEL))
    assert masks.get_mask_for_application("shop").mask_chunk(TOLD.encode()) == HIDDEN.encode()


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"), ("networking.k8s.io/v1", "NetworkPolicy"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("apps/v1", "Deployment"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("namespace", ["", "other"])
def test_built_in_kubernetes_kinds_are_public_everywhere(version: str, kind: str, namespace: str) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}}
    assert mask_text(project(), app(), secret(value=kind), manifest, text=f"no such {kind}") == f"no such {kind}"


@pytest.mark.parametrize("group", ["networking.k8s.io", "guess.k8s.io", "rbac.authorization.k8s.io", "example.com"])
@pytest.mark.parametrize("namespace", ["", "other"])
def test_custom_kinds_unmask_nothing_whatever_their_group(group: str, namespace: str) -> None:
    metadata = {"name": "x", "namespace": namespace}
    guess = {"apiVersion": f"{group}/v1", "kind": VALUE, "metadata": metadata}
    assert mask_text(project(), app(), secret(), guess) == HIDDEN


def tracked(label: str, instance: str = "shop") -> dict[str, Any]:
    metadata = {"name": "s", "namespace": "old", "labels": {label: instance}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([tracked(INSTANCE_LABEL)], HIDDEN), ([tracked(LABEL), settings(LABEL)], HIDDEN),
        ([tracked(LABEL)], TOLD), ([tracked(LABEL, "other"), settings(LABEL)], TOLD),
    ],
    ids=["usual label", "label of the settings", "any other label", "of another Application"],
)  # fmt: skip
def test_forbidden_namespace_stays_masked_while_tracked_objects_remain(
    objects: list[dict[str, Any]], expected: str
) -> None:
    assert mask_text(project(), app(namespace="old"), secret("old"), *objects) == expected
