"""The Ansible roles against a real kube-apiserver. Takes minutes; runs only in tier "realcluster"."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from argosy.kube.schema.bundled_crds import load_definition
from support import control_plane
from support.ansible_playbooks import Run, ask, needs_ansible, needs_kubectl, play, read

pytestmark = [needs_ansible, needs_kubectl, pytest.mark.tier("realcluster")]

FOREIGN = {"group": "example.com", "kind": "Theirs", "check": "return {status = 'Healthy'}\n"}
OURS = [
    {"group": "", "kind": "PersistentVolumeClaim", "check": "return {}\n"},
    {"group": "serving.kserve.io", "kind": "InferenceService", "check": "return {status = 'Degraded'}\n"},
]
KEYS = ("PersistentVolumeClaim", "serving.kserve.io_InferenceService")
DATA = {f"resource.customizations.health.{key}": health_check["check"] for key, health_check in zip(KEYS, OURS)}
GITOPS = ("-n", "openshift-gitops")
ARGOCD = {
    "apiVersion": "argoproj.io/v1beta1",
    "kind": "ArgoCD",
    "metadata": {"name": "openshift-gitops", "namespace": "openshift-gitops"},
}


@pytest.fixture(scope="module")
def real() -> Iterator[control_plane.RealCluster]:
    if not control_plane.programs():
        pytest.skip(f"a real server: it is not in {control_plane.CACHE} (make realcluster)")
    with control_plane.real_cluster(with_controllers=False) as started:
        for namespace in ("openshift-gitops", "argocd", "gitea", "self-healing-platform"):
            ask(started, "create", "namespace", namespace)
        for name in ("argocds.argoproj.io", "gitea.pfe.rhpds.com"):
            create(started, load_definition(name))
            # Not with --for=condition: kubectl rejects a CRD that has no conditions yet, as is the case for a moment.
            established = '{.status.conditions[?(@.type=="Established")].status}'
            ask(started, "wait", f"--for=jsonpath={established}=True", f"crd/{name}")
        yield started


def create(real: control_plane.RealCluster, manifest: object) -> None:
    ask(real, "create", "-f", "-", stdin=json.dumps(manifest))


def run(real: control_plane.RealCluster, *flags: object, **variables: Any) -> Run:
    return play(real, "--tags", "health", *flags, argocd_health_checks=OURS, **variables)


def settings(namespace: str, data: dict[str, str]) -> dict[str, object]:
    metadata = {"name": "argocd-cm", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize("spec", [{"resourceHealthChecks": [FOREIGN]}, {"server": {}}, None], ids=str)
def test_role_patches_health_checks_into_the_argocd_resource(
    real: control_plane.RealCluster, spec: dict[str, object] | None
) -> None:
    ask(real, *GITOPS, "delete", "argocd,configmap", "--all")
    create(real, ARGOCD if spec is None else {**ARGOCD, "spec": spec})
    create(real, settings("openshift-gitops", DATA))  # as the operator would write it
    first = run(real, wait_retries=1)
    assert "openshift-gitops-application-controller in namespace openshift-gitops does not run (no pod)" in first.words
    foreign_checks = [FOREIGN] if spec and "resourceHealthChecks" in spec else []
    argocd_resource = read(real, *GITOPS, "argocd", "openshift-gitops")
    assert argocd_resource["spec"]["resourceHealthChecks"] == [*foreign_checks, *OURS]


def test_check_mode_writes_nothing_and_existing_checks_are_not_changed(real: control_plane.RealCluster) -> None:
    ask(real, *GITOPS, "delete", "argocd,configmap", "--all")
    create(real, {**ARGOCD, "spec": {"resourceHealthChecks": [FOREIGN]}})
    create(real, settings("openshift-gitops", DATA))
    before = read(real, *GITOPS, "argocd", "openshift-gitops")["metadata"]["resourceVersion"]
    assert run(real, "--check").changed == 1
    assert read(real, *GITOPS, "argocd", "openshift-gitops")["metadata"]["resourceVersion"] == before
    ask(real, *GITOPS, "delete", "argocd", "--all")
    create(real, {**ARGOCD, "spec": {"resourceHealthChecks": OURS}})
    done = run(real)
    assert (done.code, done.changed) == (0, 0), done.text


def test_role_patches_health_checks_into_argocd_cm_without_an_operator(real: control_plane.RealCluster) -> None:
    create(real, settings("argocd", {"theirs": "kept"}))
    first = run(real, argocd_namespace="argocd", wait_retries=1)
    assert first.changed == 1, first.text
    assert read(real, "-n", "argocd", "configmap", "argocd-cm")["data"] == {"theirs": "kept", **DATA}


def test_role_creates_both_secrets_and_a_second_run_changes_nothing(real: control_plane.RealCluster) -> None:
    metadata = {"name": "gitea-with-admin", "namespace": "gitea"}
    manifest = {"apiVersion": "pfe.rhpds.com/v1", "kind": "Gitea", "metadata": metadata}
    create(real, {**manifest, "spec": {"giteaAdminUser": "ops"}})
    status = ("--subresource=status", "--type=merge", "-p", '{"status": {"adminPassword": "of-a-test"}}')
    ask(real, "-n", "gitea", "patch", "gitea.pfe.rhpds.com", "gitea-with-admin", *status)
    for flags, changed in (([], 2), ([], 0)):
        done = play(real, "--tags", "secrets", *flags)
        assert (done.code, done.changed) == (0, changed), done.text
    secret = read(real, "-n", "self-healing-platform", "secret", "git-credentials-source")
    assert secret["type"] == "kubernetes.io/basic-auth" and "annotations" not in secret["metadata"]
