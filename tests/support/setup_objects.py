"""Runs `argosy setup` in a sandbox, and reads the objects that it creates.

In: a sandbox and names. Out: API paths, objects, output of the command. Never: mocks the cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.clusters import Finished, Sandbox, argosy

GITOPS, PLAIN = "openshift-gitops", "argocd"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMES = ("dev", "staging", "production")
FOREIGN = {"group": "", "kind": "PersistentVolumeClaim", "check": "return {status = 'Healthy'}\n"}
DELIVERY = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository: {{url: https://github.com/acme/models.git{credentials}}}
argocd: {{namespace: {argocd}}}
environments:
  dev: {{application: {name}-dev, path: overlays/dev, sync: auto}}
  staging: {{application: {name}-staging, path: overlays/staging, after: dev}}
  production: {{application: {name}-production, namespace: {name}-prod, path: overlays/production}}
health: {{profile: strict}}
rbac:
  admins: [cluster-admins, {name}-admins]
  roles:
    {name}-developer: {{groups: [scientists], may: [get, sync, override, action/*], applications: default/{name}-*}}
"""


def delivery(folder: Path, name: str, *, argocd: str = GITOPS, credentials: str = "") -> Path:
    file = folder / "argosy.yaml"
    file.write_text(DELIVERY.format(name=name, argocd=argocd, credentials=credentials))
    return file


def setup(where: Sandbox, *words: object, **options: Any) -> Finished:
    return argosy("setup", *words, "--data-dir", where.folder, home=where.folder.parent, **options)


def get(where: Sandbox, path: str) -> Any:
    answer = where.request("GET", path)
    return answer.json() if answer.code == 200 else None


def application(name: str, namespace: str = GITOPS) -> str:
    return f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications/{name}"


def binding(namespace: str) -> str:
    return f"{RBAC}/namespaces/{namespace}/rolebindings/argocd-admin"


def argocd() -> str:
    return f"/apis/argoproj.io/v1beta1/namespaces/{GITOPS}/argocds/{GITOPS}"


def patch(where: Sandbox, path: str, change: Any) -> None:
    answer = where.request("PATCH", path, change, "application/merge-patch+json")
    assert answer.code == 200, answer.body


def versions(where: Sandbox, name: str, namespace: str = GITOPS) -> dict[str, str]:
    """Return the resourceVersion of every object that `argosy setup` can change."""
    paths = [f"/api/v1/namespaces/{name}-{end}" for end in ("dev", "staging", "prod")]
    paths += [binding(f"{name}-{end}") for end in ("dev", "staging", "prod")]
    paths += [application(f"{name}-{end}", namespace) for end in NAMES]
    paths += [
        f"/api/v1/namespaces/{namespace}/configmaps/{config_map}" for config_map in ("argocd-cm", "argocd-rbac-cm")
    ]
    paths += [argocd()] if namespace == GITOPS else []
    return {path: (get(where, path) or {"metadata": {"resourceVersion": "none"}})["metadata"]["resourceVersion"]
            for path in paths}  # fmt: skip
