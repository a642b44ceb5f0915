"""Output of generated manifests. In: a wait definition. Out: the manifests as text, and a hint about RBAC rules.
Never: accesses a cluster or a file."""

from __future__ import annotations

import json
from collections.abc import Sequence

from argosy.features.generate.wait_for_image import ImageWait
from argosy.features.generate.wait_for_notebook import NotebookWait
from argosy.kube.objects import Manifest, dump_yaml, dump_yaml_documents

__all__ = ["ImageWait", "NotebookWait", "render_manifests", "render_missing_rules"]


def render_manifests(manifests: Sequence[Manifest], output: str) -> str:
    """Render YAML documents or one JSON List; `kubectl apply -f -` accepts both."""
    if output == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"
    return dump_yaml_documents(manifests)


def render_missing_rules(wait: ImageWait | NotebookWait, rbac_hint: str) -> str:
    """List the rules that a user's own service account needs; empty if RBAC is generated as well."""
    if wait.has_rbac:
        return ""
    rules = "".join(f"  {line}\n" for line in dump_yaml(wait.build_rules()).splitlines())
    account_name = f"service account {wait.account} in {wait.namespace}"
    return f"{account_name} needs these rules, in an earlier wave ({rbac_hint}):\n{rules}"
