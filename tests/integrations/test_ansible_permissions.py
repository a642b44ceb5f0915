"""The permissions listed in the README of the roles are sufficient."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ansible_playbooks import ask, needs_ansible, needs_kubectl, play, read
from support.clusters import Sandbox, argosy, sandbox

pytestmark = [needs_ansible, needs_kubectl]

RULES = {
    "openshift-gitops": [
        ("argoproj.io", "argocds", ["get", "patch"]),
        ("", "configmaps", ["get"]),
        ("", "pods", ["list"]),
    ],
    "gitea": [("pfe.rhpds.com", "gitea", ["get"])],
    "self-healing-platform": [("", "secrets", ["get", "create", "patch"])],
}


class Someone(NamedTuple):
    """Provides a user's kubeconfig in place of a cluster."""

    kubeconfig: Path


def furnish(started: Sandbox) -> None:
    available = "--for=jsonpath={.status.phase}=Available"
    ask(started, "-n", "openshift-gitops", "wait", "argocd/openshift-gitops", available)
    for namespace in ("gitea", "self-healing-platform"):
        ask(started, "create", "namespace", namespace)
    metadata = {"name": "gitea-with-admin", "namespace": "gitea"}
    manifest = {"apiVersion": "pfe.rhpds.com/v1", "kind": "Gitea", "metadata": metadata}
    ask(started, "create", "-f", "-", stdin=json.dumps({**manifest, "spec": {"giteaAdminUser": "ops"}}))
    status = ("--subresource=status", "--type=merge", "-p", '{"status": {"adminPassword": "of-a-test"}}')
    ask(started, "-n", "gitea", "patch", "gitea.pfe.rhpds.com", "gitea-with-admin", *status)


def permit(started: Sandbox) -> None:
    for namespace, rules in RULES.items():
        role = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "deployer", "namespace": namespace},
            "rules": [{"apiGroups": [group], "resources": [name], "verbs": verbs} for group, name, verbs in rules],
        }
        ask(started, "create", "-f", "-", stdin=json.dumps(role))
        ask(started, "-n", namespace, "create", "rolebinding", "deployer", "--role=deployer", "--user=deployer")


@pytest.mark.tier("all")
def test_listed_permissions_suffice_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with sandbox(folder, "--port", "0", "--rbac", "--addons", "argocd_operator") as started:
        furnish(started)
        added = argosy("sandbox", "user", "add", "deployer", "--data-dir", folder, home=tmp_path)
        assert added.code == 0, added.err
        someone = Someone(tmp_path / "deployer" / "kubeconfig")
        someone.kubeconfig.parent.mkdir()
        someone.kubeconfig.write_text(added.out)
        refused = play(someone)
        assert refused.code != 0 and 'User "deployer" cannot get resource "argocds"' in refused.words, refused.text
        permit(started)
        done = play(someone)
        assert (done.code, done.changed) == (0, 3), done.text
        assert len(read(started, "-n", "self-healing-platform", "secrets")["items"]) == 2
