"""Writes deploy/argosy, a Kustomize base with the output of `argosy install`: .venv/bin/python tools/make_deploy.py

In: the manifests of an installation. Out: one file per part, and a kustomization. Never: adds a manifest.
"""

from __future__ import annotations

from pathlib import Path

from argosy.features.install.manifests import build_manifests
from argosy.features.install.options import InstallOptions
from argosy.kube.objects import Manifest, dump_yaml

FOLDER = Path(__file__).parents[1] / "deploy" / "argosy"
HEAD = """\
# argosy in a cluster: kubectl apply --server-side -k deploy/argosy
# Generated from `argosy install` by tools/make_deploy.py. Build the image from deploy/Containerfile, and set its name
# (`images:`) and the hostname of the page (--hostname) in an overlay.
"""
FILES = {
    "Namespace": "namespace", "CustomResourceDefinition": "definitions",
    "ServiceAccount": "roles", "Role": "roles", "RoleBinding": "roles",
    "ClusterRole": "roles", "ClusterRoleBinding": "roles",
}  # fmt: skip


def files() -> dict[str, str]:
    """Return the contents of the files by name."""
    parts: dict[str, list[Manifest]] = {}
    for manifest in build_manifests(InstallOptions()):
        part = str(manifest["metadata"]["name"]).removeprefix("argosy-")
        parts.setdefault(FILES.get(manifest["kind"], part), []).append(manifest)
    contents = {f"{name}.yaml": "---\n".join(map(dump_yaml, manifests)) for name, manifests in parts.items()}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(contents),
    }
    return {"kustomization.yaml": HEAD + dump_yaml(kustomization), **contents}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)
